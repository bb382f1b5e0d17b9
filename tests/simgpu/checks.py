"""What the files checks_*.py share: running one function as a program, devices, comparison."""

import contextlib
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

import numpy as np
import tensorflow as tf

import run_ops
import tf_cudnn_rnn_ops  # noqa: F401
from compare import relative_error

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CPU, GPU = "/CPU:0", "/GPU:0"
NAMES = run_ops.FORWARD_NAMES + run_ops.BACKWARD_NAMES


def main(functions):
    """Calls the function named first with the other arguments; prints its value as JSON."""
    value = functions[sys.argv[1]](*sys.argv[2:])
    sys.stdout.flush()
    print(json.dumps(value))


def on(device):
    """For eager ops: nothing but the ops under test may be computed on the simulated GPU."""
    return tf.device(device)


@contextlib.contextmanager
def rnn_ops_on(device):
    """Inside a function that is being traced: the RNN ops on `device`, all others on the CPU."""
    graph = tf.compat.v1.get_default_graph()

    def place(op):
        return device if op.type.startswith("CudnnRNN") else CPU

    with graph.device(place):
        yield


def forward_and_backward(case, inputs, device, version=3, **attributes):
    """All outputs of both ops, as NumPy arrays by name."""
    with on(device):
        result = run_ops.forward(case, inputs, version, **attributes)
        attributes.pop("is_training", None)
        gradient = run_ops.backward(case, inputs, result, version, **attributes)
        again = run_ops.backward(case, inputs, result, version, **attributes)
    for tensor in (*result[:4], *gradient):
        assert device[1:] in tensor.device, f"{tensor.device}, not on {device}"
    values = run_ops.numpy_values(result, run_ops.FORWARD_NAMES)
    values |= run_ops.numpy_values(gradient, run_ops.BACKWARD_NAMES)
    for name, value in run_ops.numpy_values(again, run_ops.BACKWARD_NAMES).items():
        assert value.tobytes() == values[name].tobytes(), f"{name} differs the second time"
    return values


class Node:
    """A forward and a backward node with kernels, a graph and a session of their own."""

    def __init__(self, case, device=GPU, **attributes):
        inputs = case.make_inputs()
        self.graph = tf.Graph()
        with self.graph.as_default(), on(device):
            result = run_ops.forward(case, inputs, **attributes)
            gradient = run_ops.backward(case, inputs, result, **attributes)
            self.fetches = [*result[:3], *gradient]

    def __enter__(self):
        self.session = tf.compat.v1.Session(graph=self.graph)
        return self

    def __exit__(self, *_):
        self.session.close()

    def run(self):
        """The values of NAMES, in their order."""
        return self.session.run(self.fetches)


class Comparison:
    """Counts tensors that agree; bit for bit, or within `tolerance` of the largest value."""

    def __init__(self):
        self.tensors = 0
        self.equal = 0
        self.worst = 0.0
        self.failures = []

    def add(self, what, actual, expected, tolerance=0.0):
        self.tensors += 1
        if actual.dtype == expected.dtype and actual.shape == expected.shape:
            if actual.tobytes() == expected.tobytes():
                self.equal += 1
                return
            error = relative_error(actual, expected)
            self.worst = max(self.worst, error)
            if error <= tolerance:
                return
            self.failures.append(f"{what}: differs by {error:.3g}")
        else:
            self.failures.append(f"{what}: {actual.dtype}{actual.shape}")

    def report(self):
        return {
            "tensors": self.tensors,
            "equal": self.equal,
            "worst": float(np.nan_to_num(self.worst, posinf=1e308)),
            "failures": self.failures[:20],
        }
