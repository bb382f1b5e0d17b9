"""What a cuDNN that fails does to the ops: with the strict cuDNN, which fails on demand."""

import ctypes
import itertools
import os
import re

import numpy as np
import tensorflow as tf

import cases
import checks
import run_ops
from checks import CPU, GPU, Comparison, Node, on

STATUSES = {
    "BAD_PARAM": 2000,
    "NOT_SUPPORTED": 3000,
    "INTERNAL_ERROR": 4000,
    "HOST_ALLOCATION_FAILED": 4003,
    "DEVICE_ALLOCATION_FAILED": 4004,
    "EXECUTION_FAILED": 5000,
}
with open(os.path.join(checks.ROOT, "cc", "cudnn", "cudnn_functions.inc")) as file:
    FUNCTIONS = re.findall(r"^CUDNN_RNN_FUNCTION\(cudnnStatus_t, (\w+),", file.read(), re.MULTILINE)
OBJECTS = (
    "Handle",
    "TensorDescriptor",
    "FilterDescriptor",
    "DropoutDescriptor",
    "RNNDescriptor",
    "RNNDataDescriptor",
)


class StrictCudnn:
    """The library that simgpu has opened, seen from the test."""

    def __init__(self):
        self.library = ctypes.CDLL(os.environ["SIMGPU_CUDNN_PROVIDER"])
        self.library.strict_cudnn_calls.restype = ctypes.c_int64
        self.library.strict_cudnn_live.restype = ctypes.c_int64

    def fail(self, count, status, name=None):
        name = name and name.encode()
        self.library.strict_cudnn_fail(name, ctypes.c_int64(count), status)

    def calls(self, name=None):
        return self.library.strict_cudnn_calls(name and name.encode())

    def live(self):
        return {name: self.library.strict_cudnn_live(name.encode()) for name in OBJECTS}

    def last_math_type(self):
        return self.library.strict_cudnn_last_math_type()


def every_function_fails():
    """Fails the calls of every cuDNN function in a node's first run; then runs the node again.

    Of each function the first, the second and the last call, in two of the ways, by turns.
    """
    cudnn = StrictCudnn()
    problems, errors, unnoticed, faults = [], {}, set(), 0
    ways = itertools.cycle(STATUSES.items())
    variants = (
        (cases.Case("lstm", 2, "bidirectional", 4, 3, 5, 6, 3, lengths="zeros"), {}),
        (
            cases.Case("gru", 2, "unidirectional", 4, 3, 5, 6, time_major=False),
            {"dropout": 0.5, "seed": 1},
        ),
    )
    # Handles are made at first use only.
    for name in ("cudnnCreate", "cudnnSetStream"):
        with Node(variants[0][0]) as node:
            cudnn.fail(1, STATUSES["INTERNAL_ERROR"], name)
            try:
                node.run()
                problems.append(f"{name} failed and nobody noticed")
            except tf.errors.InternalError as error:
                if name not in error.message or cudnn.live()["Handle"] != 0:
                    problems.append(f"{name}: {error.message}, {cudnn.live()}")
    with Node(variants[0][0]) as node:
        node.run()
    for case, attributes in variants:
        before = {name: cudnn.calls(name) for name in FUNCTIONS}
        with Node(case, **attributes) as node:
            expected = node.run()
        calls = {name: cudnn.calls(name) - before[name] for name in FUNCTIONS}
        # The check mode of the simulated GPU calls these, not the kernels.
        for name in ("cudnnGetRNNDataDescriptor", "cudnnGetTensorNdDescriptor"):
            del calls[name]
        # Handles are kept; more of them may be idle after two were needed at once.
        at_rest = {**cudnn.live(), "Handle": 8}
        for name, most in calls.items():
            for count in sorted({1, 2, most} & set(range(1, most + 1))) * 2:
                kind, status = next(ways)
                what = f"{case.id}: {kind} in call {count} of {name}"
                faults += 1
                with Node(case, **attributes) as node:
                    cudnn.fail(count, status, name)
                    try:
                        node.run()
                        unnoticed.add(name)
                    except tf.errors.OpError as error:
                        errors.setdefault(type(error).__name__, set()).add(kind)
                        if "injected fault" not in error.message or name not in error.message:
                            problems.append(f"{what}: {error.message}")
                    cudnn.fail(0, 0)
                    # Dropout's masks are those of the first call only where that did not happen.
                    values = node.run()
                    if not attributes and not all(map(np.array_equal, values, expected)):
                        problems.append(f"{what}: the next call is wrong")
                grown = {key: n for key, n in cudnn.live().items() if n > at_rest[key]}
                if grown:
                    problems.append(f"{what}: left behind {grown}, before {at_rest}")
    return {
        "problems": problems[:20],
        "faults": faults,
        "unnoticed": sorted(unnoticed),
        "errors": {name: sorted(kinds) for name, kinds in errors.items()},
        "live": cudnn.live(),
    }


def every_call_fails():
    """Fails the n-th cuDNN call of a node's first run, for every n; then runs the node again."""
    cudnn = StrictCudnn()
    case = cases.Case("lstm", 1, "bidirectional", 4, 3, 5, 6, 3, lengths="zeros")
    with Node(case) as node:
        expected = node.run()
    at_rest = {**cudnn.live(), "Handle": 8}
    problems, noticed = [], 0
    before = cudnn.calls()
    with Node(case) as node:
        node.run()
    calls = cudnn.calls() - before
    for count in range(1, calls + 1):
        with Node(case) as node:
            cudnn.fail(count, STATUSES["EXECUTION_FAILED"])
            try:
                node.run()
            except tf.errors.InternalError as error:
                noticed += 1
                if "injected fault" not in error.message:
                    problems.append(f"call {count}: {error.message}")
            cudnn.fail(0, 0)
            if not all(map(np.array_equal, node.run(), expected)):
                problems.append(f"call {count}: the next call is wrong")
        grown = {key: n for key, n in cudnn.live().items() if n > at_rest[key]}
        if grown:
            problems.append(f"call {count}: left behind {grown}, before {at_rest}")
    return {"problems": problems[:20], "calls": calls, "noticed": noticed}


def keeping():
    """cuDNN calls of a node's first run and of its next one."""
    cudnn = StrictCudnn()
    with Node(cases.Case("gru", 2, "unidirectional", 4, 3, 5, 6)) as node:
        counts = [cudnn.calls()]
        for _ in range(2):
            node.run()
            counts.append(cudnn.calls())
    return [counts[1] - counts[0], counts[2] - counts[1]]


def old_version():
    """The GPU kernel's error, and that the CPU kernel and the packing on a GPU work."""
    case = cases.Case("lstm", 1, "unidirectional", 3, 2, 4, 5)
    inputs = case.make_inputs()
    with on(CPU):
        run_ops.forward(case, inputs)
        upstream = tf.constant(inputs.params)
    with on(GPU):
        sizes = {**case.sizes(), **case.parameter_attributes()}
        back = run_ops.raw_ops.CudnnRNNParamsToCanonicalV2(
            params=upstream, num_params_weights=8, num_params_biases=8, **sizes
        )
    assert np.array_equal(back.weights[0].numpy(), inputs.weights[0])
    messages = []
    for _ in range(2):
        try:
            with on(GPU):
                run_ops.forward(case, inputs)
            messages.append("accepted")
        except tf.errors.OpError as error:
            messages.append(error.message)
    return messages


def nothing_to_compute():
    """Empty batches, no steps, conversions: cuDNN calls that each makes, all together."""
    cudnn = StrictCudnn()
    before = cudnn.calls()
    comparison = Comparison()
    for sizes in ({"T": 0}, {"B": 0}, {"T": 0, "B": 0}):
        case = cases.Case("lstm", 2, "bidirectional", 3, 2, 4, 5).replace(**sizes)
        inputs = case.make_inputs()
        expected = checks.forward_and_backward(case, inputs, CPU)
        actual = checks.forward_and_backward(case, inputs, GPU)
        for name, value in expected.items():
            comparison.add(f"{case.id} {name}", actual[name], value)
    return {**comparison.report(), "calls": cudnn.calls() - before, "live": cudnn.live()}


def case_subset():
    """Cases with everything that is worked around, on the strict cuDNN."""
    comparison = Comparison()
    rows = [
        case
        for case in cases.FORWARD_CASES + cases.EDGE_CASES
        if case.dtype in ("float32", "float64") and (case.L > 1 or case.lengths != "none")
    ]
    for case in rows[::3]:
        inputs = case.make_inputs()
        tolerance = 1e-6 if (inputs.sequence_lengths == 0).any() else 0.0
        expected = checks.forward_and_backward(case, inputs, CPU)
        actual = checks.forward_and_backward(case, inputs, GPU)
        for name, value in expected.items():
            comparison.add(f"{case.id} {name}", actual[name], value, tolerance)
    return comparison.report()


def tensor_float_32():
    """cuDNN's math type of float ops under either setting of TensorFlow's switch."""
    cudnn = StrictCudnn()
    case = cases.Case("lstm", 1, "unidirectional", 3, 2, 4, 5)
    inputs = case.make_inputs()
    found = []
    for enabled in (True, False, True):
        tf.config.experimental.enable_tensor_float_32_execution(enabled)
        # Kept descriptors answer for both settings from the second time on.
        with on(GPU):
            run_ops.forward(case, inputs)
        found.append(cudnn.last_math_type())
    return found


def kept_descriptors():
    """Many configurations through one node: what stays is bounded."""
    cudnn = StrictCudnn()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        names = ("input", "input_h", "input_c", "params")
        feeds = [tf.compat.v1.placeholder(tf.float32, name=name) for name in names]
        with tf.device(GPU):
            output = run_ops.raw_ops.CudnnRNNV3(
                **dict(zip(names, feeds, strict=True)), sequence_lengths=tf.constant([2, 2])
            ).output
        for units in list(range(1, 40)) * 2:
            case = cases.Case("lstm", 1, "unidirectional", 2, 2, 3, units)
            values = case.make_inputs()
            feed = {key: getattr(values, name) for key, name in zip(feeds, names, strict=True)}
            session.run(output, feed)
        return cudnn.live()


if __name__ == "__main__":
    checks.main(globals())
