"""The ops on the simulated GPU against the ops on the CPU."""

import concurrent.futures
import ctypes
import os

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import kernels

import cases
import checks
import run_ops
from checks import CPU, GPU, NAMES, Comparison, Node, forward_and_backward, on
from tf_cudnn_rnn_ops import raw_ops

COMPUTE_OPS = [
    f"CudnnRNN{kind}{version}" for kind in ("", "Backprop") for version in ("", "V2", "V3")
]
CONVERSIONS = [
    f"CudnnRNN{kind}{version}"
    for kind in ("ParamsToCanonical", "CanonicalToParams")
    for version in ("", "V2")
]
ALL_OPS = [*COMPUTE_OPS, "CudnnRNNParamsSize", *CONVERSIONS]

# Rows of length 0 take another way on a GPU, which may sum in another order.
ZERO_LENGTH_TOLERANCE = {"float64": 1e-14, "float32": 1e-6, "float16": 1e-3, "bfloat16": 8e-3}


def case_table(mode):
    """Every forward, edge and typed gradient case of a mode, forward and backward."""
    comparison = Comparison()
    edges = [case.replace(dtype=dtype) for dtype in cases.DTYPES for case in cases.EDGE_CASES]
    rows = cases.FORWARD_CASES + edges + cases.TYPED_GRADIENT_CASES
    for case in cases.select(rows, rnn_mode=mode):
        inputs = case.make_inputs()
        has_zeros = (inputs.sequence_lengths == 0).any()
        tolerance = ZERO_LENGTH_TOLERANCE[case.dtype] if has_zeros else 0.0
        expected = forward_and_backward(case, inputs, CPU)
        actual = forward_and_backward(case, inputs, GPU)
        for name, value in expected.items():
            comparison.add(f"{case.id} {name}", actual[name], value, tolerance)
    return comparison.report()


def older_versions():
    """V1 and V2, and inference of all three."""
    comparison = Comparison()
    for case in cases.FORWARD_CASES:
        if case.dtype not in ("float32", "bfloat16") or not case.supports_version(1):
            continue
        inputs = case.make_inputs()
        for version in (1, 2):
            expected = forward_and_backward(case, inputs, CPU, version)
            actual = forward_and_backward(case, inputs, GPU, version)
            for name, value in expected.items():
                comparison.add(f"{case.id} V{version} {name}", actual[name], value)
        for version in (1, 2, 3):
            with on(CPU):
                expected = run_ops.forward(case, inputs, version, is_training=False)
            with on(GPU):
                actual = run_ops.forward(case, inputs, version, is_training=False)
            for name in (*run_ops.FORWARD_NAMES, "reserve_space"):
                comparison.add(
                    f"{case.id} V{version} inference {name}",
                    getattr(actual, name).numpy(),
                    getattr(expected, name).numpy(),
                )
    return comparison.report()


def packing():
    """The five parameter ops and the gradients of the conversions."""
    comparison = Comparison()
    rows = [case for case in cases.FORWARD_CASES if case.lengths == "none" and case.time_major]
    for case in rows:
        inputs = case.make_inputs()
        attributes = case.parameter_attributes()
        sizes = case.sizes()
        counts = {
            "num_params_weights": len(inputs.weights),
            "num_params_biases": len(inputs.biases),
        }
        with on(CPU):
            upstream = tf.constant(inputs.params)
            weights = [tf.constant(weight) for weight in inputs.weights]
            biases = [tf.constant(bias) for bias in inputs.biases]
        with on(GPU), tf.GradientTape() as tape:
            tape.watch(weights + biases)
            params = raw_ops.CudnnRNNCanonicalToParamsV2(
                **sizes, weights=weights, biases=biases, **attributes
            )
            gradients = tape.gradient(params, weights + biases, output_gradients=upstream)
        comparison.add(f"{case.id} params", params.numpy(), inputs.params)
        canonical = inputs.weights + inputs.biases
        for gradient, weight in zip(gradients, canonical, strict=True):
            comparison.add(f"{case.id} gradient of a weight", gradient.numpy(), weight)
        with on(GPU):
            back = raw_ops.CudnnRNNParamsToCanonicalV2(
                **sizes, params=params, **counts, **attributes
            )
        for part, expected in zip(back.weights + back.biases, canonical, strict=True):
            comparison.add(f"{case.id} canonical", part.numpy(), expected)
        for size_type in (tf.int32, tf.int64):
            with on(GPU):
                size = raw_ops.CudnnRNNParamsSize(
                    **sizes, T=tf.as_dtype(case.dtype), S=size_type, **attributes
                )
            expected = np.array([inputs.params.size], size_type.as_numpy_dtype)
            comparison.add(f"{case.id} size", size.numpy(), expected)
        if case.num_proj:
            continue
        attributes.pop("num_proj")
        with on(GPU):
            first = raw_ops.CudnnRNNCanonicalToParams(
                **sizes, weights=weights, biases=biases, **attributes
            )
            parts = raw_ops.CudnnRNNParamsToCanonical(
                **sizes, params=first, num_params=len(weights), **attributes
            )
        comparison.add(f"{case.id} V1 params", first.numpy(), inputs.params)
        for part, expected in zip(parts.weights + parts.biases, canonical, strict=True):
            comparison.add(f"{case.id} V1 canonical", part.numpy(), expected)
    return comparison.report()


def dropout():
    """Fresh kernels draw the CPU's masks, for the engine is the same; the next call others."""
    comparison = Comparison()
    for mode in cases.MODES:
        case = cases.Case(mode, 3, "bidirectional", 6, 5, 4, 16, lengths="zeros")
        found = {}
        for device in (CPU, GPU):
            with Node(case, device, dropout=0.4, seed=5, seed2=7) as node:
                found[device] = [node.run() for _ in range(2)]
        for call, (actual, expected) in enumerate(zip(found[GPU], found[CPU], strict=True)):
            for name, value, wanted in zip(NAMES, actual, expected, strict=True):
                comparison.add(f"{case.id} call {call} {name}", value, wanted, 1e-6)
        first, second = found[GPU]
        if np.array_equal(first[0], second[0]):
            comparison.failures.append(f"{case.id}: two calls dropped the same values")
    return comparison.report()


def one_node_in_two_threads():
    """Two executions of one node at once."""
    comparison = Comparison()
    case = cases.Case("lstm", 2, "bidirectional", 40, 8, 16, 24, 10, lengths="zeros")
    expected = forward_and_backward(case, case.make_inputs(), CPU)
    found = []
    with Node(case) as node:

        def run():
            for _ in range(20):
                found.append(node.run())

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(run) for _ in range(4)]:
                done.result()
    for values in found:
        for name, value in zip(NAMES, values, strict=True):
            comparison.add(name, value, expected[name], 1e-6)
    return {**comparison.report(), "runs": len(found)}


def long_sequences():
    """More than 65535 steps: right, or an error that says why not."""
    case = cases.Case("gru", 1, "unidirectional", 70000, 2, 3, 4)
    inputs = case.make_inputs()
    try:
        with on(GPU):
            actual = run_ops.forward(case, inputs)
    except tf.errors.OpError as error:
        return {"code": error.error_code, "message": error.message}
    with on(CPU):
        expected = run_ops.forward(case, inputs)
    comparison = Comparison()
    for name in run_ops.FORWARD_NAMES:
        comparison.add(name, getattr(actual, name).numpy(), getattr(expected, name).numpy())
    return comparison.report()


def registrations():
    """Of each op: the host-memory arguments of GPU kernels that go before TensorFlow's, or null."""
    found = {}
    for op in ALL_OPS:
        registered = kernels.get_registered_kernels_for_op(op).kernel
        ours = [k for k in registered if k.device_type == "GPU" and k.priority == 1]
        found[op] = None
        if ours:
            (kernel,) = ours
            types = {c.name: len(c.allowed_values.list.type) for c in kernel.constraint}
            found[op] = [sorted(kernel.host_memory_arg), types]
    return found


def out_of_memory():
    """What a call says that needs more memory than there is, and the next call's values."""
    large = cases.Case("lstm", 1, "unidirectional", 400, 64, 64, 256)
    inputs = large.make_inputs()
    try:
        with on(GPU):
            run_ops.forward(large, inputs)
        kind = "accepted"
    except tf.errors.OpError as error:
        kind = type(error).__name__
    comparison = Comparison()
    small = cases.Case("lstm", 2, "bidirectional", 4, 3, 5, 6)
    inputs = small.make_inputs()
    expected = forward_and_backward(small, inputs, CPU)
    actual = forward_and_backward(small, inputs, GPU)
    for name, value in expected.items():
        comparison.add(name, actual[name], value)
    return {**comparison.report(), "kind": kind}


def two_gpus():
    """Both GPUs, in turns and from threads of their own."""
    comparison = Comparison()
    gpus = [gpu.name.replace("/physical_device:", "/") for gpu in tf.config.list_physical_devices()]
    gpus = [gpu for gpu in gpus if "GPU" in gpu]
    rows = [case for case in cases.FORWARD_CASES if case.L == 2 and case.dtype == "float32"][::7]
    expected = {case: forward_and_backward(case, case.make_inputs(), CPU) for case in rows}

    def compare(gpu, case, actual):
        for name, value in expected[case].items():
            comparison.add(f"{gpu} {case.id} {name}", actual[name], value, 1e-6)

    for case in rows:
        for gpu in gpus:
            compare(gpu, case, forward_and_backward(case, case.make_inputs(), gpu))

    # Sessions, as TensorFlow mixes up the host arguments of eager ops that threads run at once on
    # one GPU, its own ops too: github.com/tensorflow/tensorflow/pull/123993.
    def run(gpu):
        for case in rows:
            with Node(case, gpu) as node:
                compare(gpu, case, dict(zip(NAMES, node.run(), strict=True)))

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(run, gpu) for gpu in gpus * 2]:
            done.result()
    contexts = ctypes.CDLL(os.environ["SIMGPU_CUDNN_PROVIDER"]).strict_cudnn_contexts()
    return {**comparison.report(), "gpus": gpus, "contexts": contexts}


def bfloat16_through_float():
    """bfloat16 on a GPU that does not take it: near the CPU's values, gradients too."""
    comparison = Comparison()
    rows = cases.select(cases.TYPED_GRADIENT_CASES, dtype="bfloat16")
    for case in rows:
        inputs = case.make_inputs()
        expected = forward_and_backward(case, inputs, CPU)
        actual = forward_and_backward(case, inputs, GPU)
        for name, value in expected.items():
            # Two roundings of what lies between steps: relu's gradients jump where they differ.
            if case.rnn_mode != "rnn_relu" or "backprop" not in name:
                comparison.add(f"{case.id} {name}", actual[name], value, 6e-2)
    return comparison.report()


def _own_words(error):
    """The message without the node and the device that TensorFlow puts around it."""
    return error.message.split("}} ")[-1].split("\n")[0].split(" [Op:")[0]


def bad_input():
    """What the CPU refuses, the GPU refuses with the same words."""
    case = cases.Case("lstm", 2, "bidirectional", 5, 3, 4, 6, lengths="varied")
    changes = {
        "sequence_lengths": [[1, 2], [1, 2, 6], [1, 2, -1], [[1], [2], [3]]],
        "params": [np.zeros(3, np.float32), np.zeros([2, 2], np.float32)],
        "input": [np.zeros([5, 3], np.float32)],
        "input_h": [np.zeros([4, 2, 6], np.float32), np.zeros([3, 3, 6], np.float32)],
        "input_c": [np.zeros([4, 3, 5], np.float32)],
    }
    messages = []
    for name, values in changes.items():
        for value in values:
            inputs = case.make_inputs()
            dtype = np.int32 if name == "sequence_lengths" else np.float32
            setattr(inputs, name, np.asarray(value, dtype))
            found = []
            for device in (CPU, GPU):
                try:
                    with on(device):
                        run_ops.forward(case, inputs)
                    found.append("accepted")
                except tf.errors.InvalidArgumentError as error:
                    found.append(_own_words(error))
            messages.append([name, *found])
    inputs = case.make_inputs()
    with on(CPU):
        foreign = run_ops.forward(case, inputs)
    try:
        with on(GPU):
            run_ops.backward(case.replace(T=5), inputs, foreign._replace(reserve_space=[0.0] * 7))
        messages.append(["reserve_space", "refused", "accepted"])
    except tf.errors.InvalidArgumentError as error:
        messages.append(["reserve_space", _own_words(error), _own_words(error)])
    return messages


if __name__ == "__main__":
    checks.main(globals())
