"""Ours: the engine alone through cuDNN's C API, in a program of its own.

build/engine_benchmark (benchmarks/engine_benchmark.cc) times one configuration with data of its own
and prints a line of JSON. Its values are those of the op, which makes the same calls; they are
checked there.
"""

import json
import os
import subprocess

from benchmarks import ROOT
from benchmarks.contestants import Unsupported, Work

PROGRAM = "BENCHMARK_ENGINE"  # The environment variable that names another program.
_TYPES = {"float32": "float", "float64": "double", "float16": "half", "bfloat16": "bfloat16"}
# Each round starts the program anew; it takes the median of a few calls.
_REPEATS = 3


def prepare(case, inputs, training, threads):
    options = {
        "mode": case.rnn_mode,
        "B": case.B,
        "T": case.T,
        "I": case.I,
        "H": case.H,
        "L": case.L,
        "D": case.D,
        "type": _TYPES[case.dtype],
        "threads": threads,
        "repeats": _REPEATS,
        "pass": "training" if training else "forward",
    }
    if case.num_proj:
        options["proj"] = case.num_proj
    if case.lengths != "none":
        # The very lengths that the others get: the work depends on them.
        options["lengths"] = ",".join(str(length) for length in inputs.sequence_lengths)
    run(options)
    return Work(seconds=lambda: run(options)["seconds"])


def run(options):
    """The program's line of JSON. Raises Unsupported where there is none."""
    program = os.environ.get(PROGRAM, str(ROOT / "build" / "engine_benchmark"))
    command = [program]
    for name, value in options.items():
        command += [f"--{name}"] + ([] if value is True else [str(value)])
    try:
        result = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise Unsupported(f"engine_benchmark is not built ({error.strerror})") from error
    if result.returncode != 0:
        raise Unsupported(f"engine_benchmark failed: {result.stderr.strip()[-300:]}")
    return json.loads(result.stdout.splitlines()[-1])


def peak_gflops(threads):
    """GFLOP/s of multiply-adds in float that the machine can do; None without the program."""
    return _figure({"peak": True, "threads": threads}, "peak_gflops")


def bandwidth(threads, size):
    """GB/s at which the threads read the same `size` bytes, each its share, again and again; None
    without the program."""
    return _figure({"bandwidth": size, "threads": threads}, "gbytes_per_second")


def _figure(options, key):
    try:
        return run(options)[key]
    except Unsupported:
        return None
