"""Calls of the ops of which one allocation after another fails.

As a program, with faults/failing_allocations.cc preloaded and its path as argument, makes the calls
and prints what became of each as JSON; test_allocation_failures.py starts it.
"""

import ctypes
import gc
import json
import sys

import numpy as np
import tensorflow as tf

import bad_input
import tf_cudnn_rnn_ops
from compare import assert_same_bits
from tf_cudnn_rnn_ops import raw_ops

# Of the ops that have the attributes.
CONFIGS = {
    "projected": {"rnn_mode": "lstm", "direction": "bidirectional", "num_proj": 2},
    "dropping": {"rnn_mode": "lstm", "dropout": 0.3, "seed": 3},
    "half": {"rnn_mode": "lstm", "direction": "bidirectional", "dtype": "float16"},
}


def code_of(name):
    """[begin, end) of a library's mappings."""
    ranges = []
    with open("/proc/self/maps") as maps:
        for line in maps:
            if name in line:
                ranges += [int(each, 16) for each in line.split()[0].split("-")]
    return min(ranges), max(ranges)


class Allocations:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.allocations_arm.argtypes = [ctypes.c_int] + [ctypes.c_size_t] * 4
        self.library.allocations_live.restype = ctypes.c_long
        self.ranges = (*code_of(tf_cudnn_rnn_ops.library_path()), *code_of("libstdc++"))

    def live(self):
        """How many that the library made, while one of them was to fail, have not been freed."""
        gc.collect()
        return self.library.allocations_live()

    def run(self, nth, function):
        """(whether the nth allocation failed, the result or exception)."""
        self.library.allocations_arm(nth, *self.ranges)
        try:
            result = function()
        except Exception as error:
            result = error
        return bool(self.library.allocations_disarm()), result


def calls():
    """Name -> a function that calls an op, for every op and configuration."""
    result = {}
    for op in raw_ops.__all__:
        names = {each.name for each in bad_input.op_def_registry.get(op).attr} | {"dtype"}
        for title, config in CONFIGS.items():
            # The reserve space of a forward call that drops is another call's each time.
            if not set(config) <= names or ("dropout" in config and op in bad_input.BACKPROP):
                continue
            arguments = bad_input.valid(op, **config)
            tensors = {each.name for each in bad_input.op_def_registry.get(op).input_arg}
            arguments = {
                key: tf.nest.map_structure(tf.constant, value) if key in tensors else value
                for key, value in arguments.items()
            }
            result[f"{op} {title}"] = lambda op=op, arguments=arguments: tf.nest.flatten(
                getattr(raw_ops, op)(**arguments)
            )
    return result


def op_of(name):
    return name.split()[0]


def arrays_of(name, values):
    """What a call computes: not the reserve space, which has gaps."""
    forward = op_of(name) in bad_input.FORWARD
    return [np.asarray(value) for value in values[: 3 if forward else None]]


def fail_each(allocations, name, function):
    """Fails one allocation after another; the number of them. Raises where that is not well."""
    # Each call of a node that drops has another mask.
    repeats = "dropping" not in name or op_of(name) not in bad_input.FORWARD
    expected = arrays_of(name, function())
    nth = 0
    while True:
        nth += 1
        fired, result = allocations.run(nth, function)
        if not fired:
            assert not isinstance(result, Exception), result
            return nth - 1
        results = [function()]
        if isinstance(result, Exception):
            assert isinstance(result, tf.errors.ResourceExhaustedError), (nth, result)
        else:
            results.append(result)  # a thread could not be asked to help, and others did the work
        for values in results:
            for value, wanted in zip(arrays_of(name, values), expected, strict=True):
                if repeats:
                    assert_same_bits(value, wanted)
                else:
                    assert value.shape == wanted.shape and np.all(np.isfinite(value))


def main():
    allocations = Allocations(sys.argv[1])
    with tf.device("/CPU:0"):
        for name, function in calls().items():
            print(json.dumps({"begin": name}), flush=True)
            # What a kernel keeps for its next call is there after the first.
            allocations.run(0, function)
            before = allocations.live()
            _, result = allocations.run(0, function)
            assert allocations.live() > before or op_of(name) in bad_input.SIZE, "nothing is seen"
            del result
            failures = fail_each(allocations, name, function)
            left = allocations.live() - before
            print(json.dumps({"end": name, "failures": failures, "left": left}), flush=True)


if __name__ == "__main__":
    main()
