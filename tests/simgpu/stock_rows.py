"""What stock TensorFlow gets wrong in these ops, row by row, as calls of tf.raw_ops.

    python stock_rows.py stock|ours FIRST

runs the rows from FIRST on and prints one JSON line for each before and after. With `ours` the op
library is loaded first, with `stock` it is not; otherwise both run the same code. A row returns ""
where the result is right, else what is wrong with it; errors are caught here, and where the process
ends in a row, whoever started it goes on behind it.
"""

# ruff: noqa: E402, what is imported from the package depends on the first argument
import concurrent.futures
import ctypes
import dataclasses
import inspect
import json
import os
import sys
import types

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OURS = sys.argv[1] == "ours"
if OURS:
    import tf_cudnn_rnn_ops  # noqa: F401
else:
    # cases.py needs the reference, which needs no library: a package that loads none.
    package = types.ModuleType("tf_cudnn_rnn_ops")
    package.__path__ = [os.path.join(ROOT, "tf_cudnn_rnn_ops")]
    sys.modules["tf_cudnn_rnn_ops"] = package

import numpy as np
import tensorflow as tf

from cases import Case
from compare import relative_error
from tf_cudnn_rnn_ops import reference

CPU, GPU = "/CPU:0", "/GPU:0"
SMALL = Case("lstm", 2, "bidirectional", 3, 2, 2, 3, dtype="float64")
FORWARD = {1: tf.raw_ops.CudnnRNN, 2: tf.raw_ops.CudnnRNNV2, 3: tf.raw_ops.CudnnRNNV3}
BACKWARD = {
    1: tf.raw_ops.CudnnRNNBackprop,
    2: tf.raw_ops.CudnnRNNBackpropV2,
    3: tf.raw_ops.CudnnRNNBackpropV3,
}


class NotSeenError(Exception):
    """The simulated GPU cannot show what happens."""


class OverreadError(Exception):
    """Memory behind a tensor was read, and what came of it depends on what lay there."""


def forward(case, inputs, version=3, device=GPU, **attributes):
    with tf.device(device):
        return FORWARD[version](**inputs.forward(version), **case.attributes(version), **attributes)


def backward(case, inputs, result, version=3, **changes):
    tensors = inputs.forward(version) | inputs.backprops()
    tensors |= {name: getattr(result, name) for name in ("output", "output_h", "output_c")}
    tensors["reserve_space"] = result.reserve_space
    if version > 1:
        tensors["host_reserved"] = result.host_reserved
    with tf.device(GPU):
        return BACKWARD[version](**{**tensors, **changes}, **case.attributes(version))


def differences(names, actual, expected, tolerance):
    for name, value, wanted in zip(names, actual, expected, strict=True):
        value = value.numpy()
        if value.shape != np.shape(wanted):
            return f"{name} has shape {list(value.shape)}"
        error = relative_error(value, wanted)
        if not error <= tolerance:
            return f"{name} is wrong"
    return ""


def check_forward(case, inputs, result):
    expected = reference.forward(**inputs.forward(), **case.attributes())
    names = ["output", "output_h"] + (["output_c"] if case.rnn_mode == "lstm" else [])
    values = [getattr(result, name) for name in names]
    return differences(names, values, expected[: len(names)], 10 * case.tolerance)


def check_gradients(case, inputs, gradients):
    expected = reference.gradients(**inputs.forward(), **inputs.backprops(), **case.attributes())
    names = ("input_backprop", "input_h_backprop", "input_c_backprop", "params_backprop")
    return differences(names, gradients, expected, max(1e-6, 2 * case.tolerance))


def check_both(case, version=3):
    inputs = case.make_inputs()
    result = forward(case, inputs, version)
    wrong = check_forward(case, inputs, result)
    return wrong or check_gradients(case, inputs, backward(case, inputs, result, version))


def refused(call):
    """Right is an InvalidArgument, in eager mode or while a graph is built."""
    try:
        call()
    except (tf.errors.InvalidArgumentError, ValueError):
        return ""
    return "accepted"


def canonical_arguments(case, inputs):
    return {
        **case.sizes(),
        **case.parameter_attributes(),
        "num_params_weights": len(inputs.weights),
        "num_params_biases": len(inputs.biases),
    }


def check_to_params(case):
    inputs = case.make_inputs()
    with tf.device(CPU):
        weights = [tf.constant(weight) for weight in inputs.weights]
        biases = [tf.constant(bias) for bias in inputs.biases]
    with tf.device(GPU):
        params = tf.raw_ops.CudnnRNNCanonicalToParamsV2(
            **case.sizes(), weights=weights, biases=biases, **case.parameter_attributes()
        )
    return "" if np.array_equal(params.numpy(), inputs.params) else "params are wrong"


def check_to_canonical(case):
    inputs = case.make_inputs()
    with tf.device(GPU):
        result = tf.raw_ops.CudnnRNNParamsToCanonicalV2(
            params=inputs.params, **canonical_arguments(case, inputs)
        )
    for actual, expected in zip(
        result.weights + result.biases, inputs.weights + inputs.biases, strict=True
    ):
        if not np.array_equal(actual.numpy(), expected):
            return "a weight is wrong"
    return ""


# ---- the rows; the number is that of the defect ----


def row_1_kernels_on_a_cpu():
    """`CudnnRNNV3` on a CPU"""
    inputs = SMALL.make_inputs()
    tf.config.set_soft_device_placement(False)
    try:
        return check_forward(SMALL, inputs, forward(SMALL, inputs, device=CPU))
    finally:
        tf.config.set_soft_device_placement(True)


def row_2_canonical_to_params_v2():
    """`CudnnRNNCanonicalToParamsV2`"""
    return check_to_params(SMALL)


def row_2_params_to_canonical_v1():
    """`CudnnRNNParamsToCanonical`"""
    case = SMALL
    inputs = case.make_inputs()
    with tf.device(GPU):
        result = tf.raw_ops.CudnnRNNParamsToCanonical(
            **case.sizes(),
            params=inputs.params,
            num_params=len(inputs.weights),
            **case.attributes(version=1),
        )
    right = all(map(np.array_equal, (w.numpy() for w in result.weights), inputs.weights))
    return "" if right else "a weight is wrong"


def row_3_params_to_canonical_v2_without_a_projection():
    """`CudnnRNNParamsToCanonicalV2` without a projection"""
    return check_to_canonical(SMALL)


def row_4_projection():
    """lstm with a projection"""
    return check_both(SMALL.replace(num_proj=2, L=1))


def row_5_versions_1():
    """`CudnnRNN` and its backprop"""
    return check_both(SMALL, version=1)


def row_5_versions_2():
    """`CudnnRNNV2` and its backprop"""
    return check_both(SMALL, version=2)


def row_6_batch_major_states():
    """batch-major, two layers, two directions"""
    return check_both(SMALL.replace(time_major=False))


def row_7_bfloat16_params_size():
    """`CudnnRNNParamsSize` in bfloat16"""
    case = SMALL.replace(dtype="bfloat16")
    with tf.device(GPU):
        size = tf.raw_ops.CudnnRNNParamsSize(
            **case.sizes(), **case.parameter_attributes(), T=tf.bfloat16, S=tf.int32
        )
    return "" if size.numpy()[0] == case.make_inputs().params.size else "the size is wrong"


def row_7_bfloat16_conversion():
    """`CudnnRNNCanonicalToParamsV2` in bfloat16"""
    return check_to_params(SMALL.replace(dtype="bfloat16"))


def row_8_bfloat16_gradients():
    """gradients in bfloat16"""
    if not OURS:
        raise NotSeenError("its casts are GPU kernels, which are not run here")
    return check_both(Case("lstm", 1, "unidirectional", 3, 2, 2, 3, dtype="bfloat16"))


def row_9_padding_in_double():
    """padded outputs in double"""
    case = SMALL.replace(lengths="varied", T=5, B=4)
    inputs = case.make_inputs()
    for _ in range(5):
        wrong = check_forward(case, inputs, forward(case, inputs))
        if wrong:
            return wrong
    return ""


def row_10_too_few_sequence_lengths():
    """too few sequence_lengths"""
    inputs = SMALL.make_inputs()
    wrong = dataclasses.replace(inputs, sequence_lengths=np.array([3], np.int32))
    try:
        if refused(lambda: forward(SMALL, wrong).output.numpy()) == "":
            return ""
    except tf.errors.OpError:
        pass
    raise OverreadError("what lies behind sequence_lengths is taken for the missing lengths")


def row_10_a_length_beyond_the_last_step():
    """a length beyond the last step"""
    inputs = SMALL.make_inputs()
    wrong = dataclasses.replace(inputs, sequence_lengths=np.array([3, 4], np.int32))
    return refused(lambda: forward(SMALL, wrong).output.numpy())


def row_10_params_too_short():
    """params of one element"""
    inputs = SMALL.make_inputs()
    wrong = dataclasses.replace(inputs, params=inputs.params[:1])
    return refused(lambda: forward(SMALL, wrong).output.numpy())


def row_10_reserve_space_too_short():
    """reserve_space of one element"""
    inputs = SMALL.make_inputs()
    result = forward(SMALL, inputs)
    with tf.device(CPU):
        short = tf.constant(np.zeros([1]))
    return refused(
        lambda: backward(SMALL, inputs, result, reserve_space=short).params_backprop.numpy()
    )


def row_11_shape_functions_of_backprop():
    """a graph with inputs of rank 1 to `CudnnRNNBackpropV3`"""
    inputs = SMALL.make_inputs()
    vector = np.zeros([2])
    tensors = inputs.forward() | inputs.backprops()
    tensors |= dict.fromkeys(("output", "output_h", "output_c", "input"), vector)
    tensors |= {"reserve_space": vector, "host_reserved": np.zeros([0], np.int8)}

    @tf.function
    def build():
        return tf.raw_ops.CudnnRNNBackpropV3(**tensors, **SMALL.attributes())

    return refused(build.get_concrete_function)


def row_11_static_shape_of_params():
    """static shape of params in a graph"""
    inputs = SMALL.make_inputs()

    @tf.function
    def build():
        return tf.raw_ops.CudnnRNNCanonicalToParamsV2(
            **SMALL.sizes(),
            weights=inputs.weights,
            biases=inputs.biases,
            **SMALL.parameter_attributes(),
        )

    shape = build.get_concrete_function().output_shapes.as_list()
    return "" if shape == [inputs.params.size] else f"params have shape {shape}"


def row_12_skip_input():
    """canonical weights with skip_input"""
    return check_to_canonical(SMALL.replace(input_mode="skip_input", I=3))


def row_13_all_lengths_are_0():
    """all lengths are 0"""
    case = SMALL.replace(lengths="all_zero", dtype="float32")
    inputs = case.make_inputs()
    return check_forward(case, inputs, forward(case, inputs))


def row_13_gradients_with_a_length_of_0():
    """gradients with a length of 0"""
    case = SMALL.replace(lengths="zeros", dtype="float32")
    inputs = case.make_inputs()
    gradients = backward(case, inputs, forward(case, inputs))
    expected = reference.gradients(**inputs.forward(), **inputs.backprops(), **case.attributes())
    return differences(["gradient"] * 4, gradients, expected, 1e-4)


def row_14_the_same_gradient_twice():
    """the same backprop call twice"""
    inputs = SMALL.make_inputs()
    result = forward(SMALL, inputs)
    first, second = (backward(SMALL, inputs, result).params_backprop.numpy() for _ in range(2))
    return "" if np.array_equal(first, second) else "the second one is another"


def row_15_kept_descriptors_are_bounded():
    """descriptors kept after 40 sizes"""
    library = ctypes.CDLL(os.environ["SIMGPU_CUDNN_PROVIDER"])
    library.strict_cudnn_live.restype = ctypes.c_int64
    case = Case("lstm", 1, "unidirectional", 2, 2, 3, 4)
    before = library.strict_cudnn_live(b"RNNDescriptor")
    for units in range(1, 41):
        forward(case, case.replace(H=units).make_inputs())
    kept = library.strict_cudnn_live(b"RNNDescriptor") - before
    return "" if kept <= 8 else f"{kept} descriptors kept after 40 sizes"


def row_16_no_steps():
    """no time steps"""
    case = SMALL.replace(T=0)
    inputs = case.make_inputs()
    result = forward(case, inputs)
    return "" if np.array_equal(result.output_h.numpy(), inputs.input_h) else "output_h is wrong"


def row_16_no_rows():
    """no batch rows"""
    case = SMALL.replace(B=0)
    result = forward(case, case.make_inputs())
    return "" if result.output.shape == [3, 0, 6] else "output has another shape"


def row_16_params_size_in_int64():
    """`CudnnRNNParamsSize` in int64"""
    with tf.device(GPU):
        size = tf.raw_ops.CudnnRNNParamsSize(
            **SMALL.sizes(), **SMALL.parameter_attributes(), T=tf.float32, S=tf.int64
        )
    return "" if size.numpy()[0] == SMALL.make_inputs().params.size else "the size is wrong"


def row_16_no_layers():
    """num_layers 0"""
    sizes = {**SMALL.sizes(), "num_layers": 0}

    def call():
        with tf.device(GPU):
            tf.raw_ops.CudnnRNNParamsSize(
                **sizes, **SMALL.parameter_attributes(), T=tf.float32, S=tf.int32
            )

    return refused(call)


def row_17_gradient_of_the_conversions():
    """gradient through `CudnnRNNCanonicalToParamsV2`"""
    inputs = SMALL.make_inputs()

    @tf.function
    def build():
        weights = [tf.constant(weight) for weight in inputs.weights]
        params = tf.raw_ops.CudnnRNNCanonicalToParamsV2(
            **SMALL.sizes(), weights=weights, biases=inputs.biases, **SMALL.parameter_attributes()
        )
        return tf.gradients(params, weights)

    build.get_concrete_function()
    return ""


def row_18_one_node_twice_at_once():
    """one node run by several threads at once"""
    library = ctypes.CDLL(os.environ["SIMGPU_CUDNN_PROVIDER"])
    case = Case("lstm", 1, "unidirectional", 200, 8, 64, 64)
    inputs = case.make_inputs()
    library.strict_cudnn_most_at_once()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        output = forward(case, inputs).output
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(session.run, output) for _ in range(24)]:
                done.result()
    return "" if library.strict_cudnn_most_at_once() > 1 else "one run waits for the other"


def row_19_one_op_for_stacked_layers():
    """a Keras layer for stacked, projecting lstm"""
    import keras

    if OURS:
        from tf_cudnn_rnn_ops import layers

        model = layers.CudnnLSTM(4, 2, "bidirectional", num_proj=2, dropout=0.1)
        model(np.zeros([2, 3, 2], np.float32))
    else:
        keras.layers.LSTM(4, num_layers=2, num_proj=2)
    return ""


ROWS = [
    (name, function)
    for name, function in globals().items()
    if name.startswith("row_") and inspect.isfunction(function)
]


def main(first):
    for index, (name, function) in list(enumerate(ROWS))[first:]:
        print(json.dumps({"index": index, "row": name, "title": function.__doc__}), flush=True)
        # TensorFlow logs there what it does not put into the error.
        print(f"row {index}", file=sys.stderr, flush=True)
        try:
            wrong = function()
            outcome = ["wrong", wrong] if wrong else ["right", ""]
        except NotSeenError as reason:
            outcome = ["not seen", str(reason)]
        except OverreadError as reason:
            outcome = ["reads out of bounds", str(reason)]
        except Exception as error:
            text = getattr(error, "message", None) or str(error)
            outcome = ["error", f"{type(error).__name__}: {text}"]
        print(json.dumps({"index": index, "outcome": outcome}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[2]))
