"""The engine's matrix product beside PyTorch's (oneDNN), in the shapes of the benchmark.

    python -m benchmarks.products [--threads 2] [--rounds 9]

Prints GFLOP/s as a Markdown table. `recurrent` is one time step, [B, R] · [R, G·H]; `input` is all
of them, [T·B, I] · [I, G·H]. The engine packs the weights once per call and multiplies by them in
every step, so its column for a step is without packing; PyTorch packs, or not, as it sees fit.
"""

import argparse
import statistics
import time

import torch

from benchmarks import configurations
from benchmarks.contestants import engine

_NAMES = ("c2", "c3", "c4", "c5", "c6", "c7", "c8", "c12")
_LEAST_SECONDS = 0.02


def _torch_gflops(a, b):
    """Of one sample: as many products as take _LEAST_SECONDS."""
    count, start = 0, time.perf_counter()
    while (seconds := time.perf_counter() - start) < _LEAST_SECONDS or count == 0:
        torch.mm(a, b)
        count += 1
    return 2e-9 * a.shape[0] * a.shape[1] * b.shape[1] * count / seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    print("| | product | M | K | N | ours, packed | ours with packing | PyTorch | ratio |")
    print("|---|---|---|---|---|---|---|---|---|")
    gates = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
    for configuration in configurations.select(_NAMES):
        case = configuration.case
        columns = gates[case.rnn_mode] * case.H
        for name, M, K in (("recurrent", case.B, case.H), ("input", case.B * case.T, case.I)):
            a, b = torch.randn(M, K), torch.randn(columns, K).t()
            torch.mm(a, b)
            ours, theirs = [], []
            for _ in range(arguments.rounds):
                options = {"product": M, "K": K, "N": columns, "threads": arguments.threads}
                ours.append(engine.run({**options, "repeats": 3}))
                theirs.append(_torch_gflops(a, b))
            packed = statistics.median(each["packed_gflops"] for each in ours)
            whole = statistics.median(each["gflops"] for each in ours)
            peer = statistics.median(theirs)
            print(
                f"| {configuration.name} | {name} | {M} | {K} | {columns} | {packed:.1f} "
                f"| {whole:.1f} | {peer:.1f} | {packed / peer:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
