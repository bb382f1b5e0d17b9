"""Measures with one number of threads, in a process of its own: `python -m benchmarks.worker`.

TensorFlow's pools and the peers' can be set only once for a process, so benchmarks.__main__ starts
one worker per number of threads. The worker appends its results to a file, a line of JSON each:
first {"machine": {...}}, then one {"result": {...}} per entrant, see _result().
"""

import argparse
import ctypes
import dataclasses
import functools
import importlib.metadata
import json
import os
import platform
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf
import torch

import tf_cudnn_rnn_ops
import torch_oracle
from benchmarks import configurations, contestants, options, timing
from benchmarks.contestants import Unsupported, engine
from compare import relative_error

_BIG_BUFFER = 1 << 28  # No cache holds it.


def set_threads(threads):
    """Before the first tensor: pools of that many threads, the calling one included."""
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    torch.set_num_threads(threads)
    torch.set_num_interop_threads(1)


def instruction_set():
    """The one that the ops run with, "avx2" for example."""
    function = ctypes.CDLL(tf_cudnn_rnn_ops.library_path()).tf_cudnn_rnn_ops_instruction_set
    function.restype = ctypes.c_char_p
    return function().decode()


def describe_machine(threads):
    """What the machine can do with these threads, and the versions of what runs on it."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    versions = {"python": platform.python_version()}
    for package in ("tensorflow-cpu", "tensorflow", "keras", "torch", "onnxruntime"):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "threads": threads,
        "cpu": model,
        "cores": os.cpu_count(),
        "instruction_set": instruction_set(),
        "versions": versions,
        "peak_gflops": engine.peak_gflops(threads),
        "memory_gbytes_per_second": engine.bandwidth(threads, _BIG_BUFFER),
    }


@functools.lru_cache(maxsize=2)
def expected_values(case):
    """The case in double by PyTorch, from the inputs as the case's type rounds them."""
    inputs = case.make_inputs()
    wide = {
        field.name: _widen(getattr(inputs, field.name))
        for field in dataclasses.fields(inputs)
        if field.name != "sequence_lengths"
    }
    return torch_oracle.run(case, dataclasses.replace(inputs, **wide))


def _widen(value):
    if isinstance(value, list):
        return [_widen(each) for each in value]
    return np.asarray(value, np.float64)


def largest_error(case, values):
    """The largest relative error of the values, by name; ValueError where it is too large."""
    expected = expected_values(case)
    errors = {name: relative_error(value, expected[name]) for name, value in values.items()}
    worst = max(errors, key=lambda name: np.nan_to_num(errors[name], nan=np.inf))
    if not errors[worst] <= configurations.TOLERANCES[case.dtype]:
        raise ValueError(f"wrong values: {worst} has a relative error of {errors[worst]:.3g}")
    return errors[worst]


class Measurement:
    """The entrants of one configuration and pass: prepared, checked, then timed in turn."""

    def __init__(self, configuration, training, arguments):
        self.configuration = configuration
        self.training = training
        self.arguments = arguments
        self.facts = {}
        self.samplers = {}

    def prepare(self, entrant):
        """Checks the entrant and makes it ready; raises Unsupported or what goes wrong in it."""
        case = entrant.case
        inputs = case.make_inputs()
        facts = {"flops": configurations.flops(case, inputs.sequence_lengths, self.training)}
        self.facts[entrant.label] = facts
        work = contestants.prepare(
            entrant.contestant, case, inputs, self.training, self.arguments.threads
        )
        facts.update(work.facts)
        if work.seconds:
            self.samplers[entrant.label] = work.seconds
            return
        facts["error"] = largest_error(case, work.values(work.call()))
        if self.training:
            facts["peak_bytes"] = timing.peak_bytes(work.call)
        self.samplers[entrant.label] = timing.sampler(work.call, self.arguments.sample_seconds)

    def run(self):
        """Yields one result per entrant that takes part in the run."""
        entrants = self.configuration.entrants()
        entrants = [each for each in entrants if each.contestant in self.arguments.contestants]
        for entrant in entrants:
            try:
                self.prepare(entrant)
            except Unsupported as reason:
                self.facts[entrant.label]["skipped"] = str(reason)
            except Exception as error:
                # One that fails does not take the others' times with it; it is reported.
                text = f"{type(error).__name__}: {error}".splitlines()[0]
                self.facts[entrant.label]["failed"] = text[:300]
        times = timing.measure_in_turn(self.samplers, self.arguments.rounds)
        for entrant in entrants:
            yield self._result(entrant, times.get(entrant.label))

    def _result(self, entrant, times):
        """configuration, pass, threads, entrant, case, flops (of the matrix products), and

        seconds (median), fastest, slowest, samples: per call; error: the largest relative error of
        its values; peak_bytes (training): memory of one call; reserve_share (training, op):
        elements of reserve_space over configurations.reserve_bound(); or skipped or failed: why
        there is no time.
        """
        result = {
            "configuration": self.configuration.name,
            "pass": "training" if self.training else "inference",
            "threads": self.arguments.threads,
            "entrant": entrant.label,
            "case": dataclasses.asdict(entrant.case),
            **self.facts[entrant.label],
        }
        if times:
            result.update(times.as_dict())
        return result


def machine_for(configuration, arguments):
    """How fast the recurrent weights can be read from the cache that they fit in."""
    size = configurations.recurrent_bytes(configuration.case)
    return {
        "configuration": configuration.name,
        "recurrent_bytes": size,
        "gbytes_per_second": engine.bandwidth(arguments.threads, size),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_shared(parser)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--results", required=True, help="the file that results are appended to")
    arguments = parser.parse_args()
    chosen = options.chosen_configurations(arguments)
    set_threads(arguments.threads)
    passes = [arguments.passes] if arguments.passes else configurations.PASSES

    with open(arguments.results, "a") as results:

        def write(kind, value):
            results.write(json.dumps({kind: value}) + "\n")
            results.flush()

        write("machine", describe_machine(arguments.threads))
        for configuration in chosen:
            write("recurrent", machine_for(configuration, arguments))
            for each in passes:
                print(
                    f"{configuration.name} {each}, threads: {arguments.threads}",
                    file=sys.stderr,
                    flush=True,
                )
                measurement = Measurement(configuration, each == "training", arguments)
                for result in measurement.run():
                    write("result", result)


if __name__ == "__main__":
    main()
