"""Calls by which published advisories, and stock TensorFlow's own faults, bring a process down.

As a program, runs those that standard input names, a JSON list, one after another, and prints what
became of each; test_advisories.py starts it, so that a crash loses one of them and not the test
run. Each function returns when all is well and raises when not.
"""

import json
import sys
import traceback

import numpy as np
import tensorflow as tf

import bad_input
import run_ops
from cases import MODES, Case
from compare import assert_close, assert_same_bits
from tf_cudnn_rnn_ops import raw_ops, reference

REFUSALS = (tf.errors.InvalidArgumentError, ValueError)
CALLS = {}


def called(name):
    """Puts a function into CALLS under the advisory's own number."""

    def add(function):
        CALLS[name] = function
        return function

    return add


def assert_refused(function, inputs, attributes, *names):
    """Eagerly and in a tf.function, by a message that has one of `names`."""
    for call in (function, tf.function(function, autograph=False)):
        try:
            call(**inputs, **attributes)
        except REFUSALS as error:
            message = str(error)
            assert any(name in message for name in names), message
            assert "must be" in message, message
        else:
            raise AssertionError(f"accepted: {attributes}")


def assert_right(case, version=3):
    """Values and gradients of a case are the reference's."""
    inputs = case.make_inputs()
    result = run_ops.forward(case, inputs, version)
    expected = reference.forward(**inputs.forward(), **case.attributes())
    for name, value in zip(run_ops.FORWARD_NAMES, expected, strict=True):
        assert_close(getattr(result, name), value, case.tolerance, name)
    gradients = run_ops.backward(case, inputs, result, version)
    assert all(np.all(np.isfinite(np.asarray(each, np.float64))) for each in gradients)
    return inputs, gradients


def tensors(op, shapes, **others):
    """Ones of the given shapes as the first inputs of the op, `others`, and ones for the rest."""
    inputs = {}
    names = [each.name for each in bad_input.op_def_registry.get(op).input_arg]
    for position, name in enumerate(names):
        shape = shapes[position] if position < len(shapes) else [2]
        dtype = {"sequence_lengths": tf.int32, "host_reserved": tf.int8}.get(name, tf.float32)
        inputs[name] = others.get(name, tf.ones(shape, dtype))
    return inputs


@called("CVE-2021-41221")
def vectors_for_everything():
    """Shape functions read the dimensions of inputs that had too few."""
    lengths = tf.constant([-1, 0, 1])
    for op in bad_input.COMPUTE:
        inputs = tensors(op, [[2], [1], [3], [2]], sequence_lengths=lengths)
        inputs = {name: value for name, value in inputs.items() if bad_input.has_input(op, name)}
        assert_refused(getattr(raw_ops, op), inputs, {}, "input")
    for op in bad_input.TO_CANONICAL + bad_input.TO_PARAMS:
        inputs = {name: tf.ones([2], tf.int32) for name in ("num_layers", "num_units")}
        inputs["input_size"] = tf.ones([1], tf.int32)
        attributes = {}
        if op in bad_input.TO_PARAMS:
            inputs |= {"weights": [tf.ones([2])] * 8, "biases": [tf.ones([2])] * 8}
        else:
            inputs["params"] = tf.ones([2, 2])
            names = ("num_params",)
            if op.endswith("V2"):
                names = ("num_params_weights", "num_params_biases")
            attributes = dict.fromkeys(names, 8)
        assert_refused(getattr(raw_ops, op), inputs, attributes, "num_layers")


@called("CVE-2020-26270")
def no_time_steps():
    """A sequence of no steps ended the process on a GPU."""
    import tf_cudnn_rnn_ops

    for mode in MODES:
        for time_major in (True, False):
            case = Case(mode, 2, "bidirectional", 0, 2, 3, 4, time_major=time_major)
            inputs, gradients = assert_right(case)
            assert_same_bits(gradients.input_h_backprop.numpy(), inputs.output_h_backprop)
            assert not np.any(gradients.params_backprop)
    layer = tf_cudnn_rnn_ops.CudnnLSTM(4, return_sequences=True, return_state=True)
    output, h, c = layer(tf.zeros([2, 0, 3]))
    assert output.shape == [2, 0, 4]
    assert not np.any(h) and not np.any(c)


@called("CVE-2022-29200")
def operands_of_other_ranks():
    """LSTMBlockCell took a scalar and a matrix where vectors are due."""
    case = Case("lstm", 1, "unidirectional", T=1, B=28, I=29, H=17)
    inputs = case.make_inputs().forward()
    for name in inputs:
        for shape in ([], [17], [28, 17]):
            if len(shape) == inputs[name].ndim:
                continue
            wrong = {**inputs, name: tf.ones(shape, inputs[name].dtype)}
            assert_refused(raw_ops.CudnnRNNV3, wrong, case.attributes(), name)


@called("CVE-2023-25658")
def scalars_in_the_gradient():
    """GRUBlockCellGrad read beyond a bias that was a scalar."""
    case = Case("gru", 1, "unidirectional", T=1, B=2, I=2, H=1)
    arrays = case.make_inputs()
    for version, op in run_ops.BACKWARD_OPS.items():
        result = run_ops.forward(case, arrays, version)
        inputs = arrays.forward(version) | arrays.backprops()
        for name in (*run_ops.FORWARD_NAMES, "reserve_space", "host_reserved"):
            if hasattr(result, name):
                inputs[name] = getattr(result, name)
        for name, value in inputs.items():
            # Of a gru the cell states are ignored, whatever their shapes.
            if name in ("input_c", "output_c", "output_c_backprop"):
                continue
            wrong = {**inputs, name: tf.zeros([], tf.convert_to_tensor(value).dtype)}
            assert_refused(op, wrong, case.attributes(version), name)


@called("CVE-2025-2998")
def lengths_beyond_the_memory():
    """pad_packed_sequence wrote where its lengths said."""
    case = Case("lstm", 2, "bidirectional", T=4, B=3, I=3, H=2)
    for op in bad_input.V3:
        for lengths in ([4, 5, 1], [4, -1, 2], [2**31 - 1] * 3, [-(2**31)] * 3, [4, 4], [4] * 4):
            arguments = bad_input.valid(op)
            names = [each.name for each in bad_input.op_def_registry.get(op).input_arg]
            inputs = {name: tf.constant(arguments.pop(name)) for name in names}
            inputs["sequence_lengths"] = tf.constant(lengths, tf.int32)
            assert_refused(getattr(raw_ops, op), inputs, arguments, "sequence_lengths")
    assert_right(case.replace(lengths="zeros"))


def round_trip(case):
    arrays = case.make_inputs()
    config = case.parameter_attributes()
    weights, biases = case.canonical_shapes()
    for suffix in ("V2", "") if not case.num_proj else ("V2",):
        counts = {"num_params_weights": len(weights), "num_params_biases": len(biases)}
        attributes = dict(config)
        if not suffix:
            counts = {"num_params": len(weights)}
            del attributes["num_proj"]
        params = getattr(raw_ops, f"CudnnRNNCanonicalToParams{suffix}")(
            **case.sizes(), weights=arrays.weights, biases=arrays.biases, **attributes
        )
        assert_same_bits(params.numpy(), arrays.params)
        lists = getattr(raw_ops, f"CudnnRNNParamsToCanonical{suffix}")(
            **case.sizes(), params=params, **counts, **attributes
        )
        for value, wanted in zip(
            [*lists.weights, *lists.biases], arrays.weights + arrays.biases, strict=True
        ):
            assert_same_bits(value.numpy(), wanted)


@called("tensorflow-12284")
def skip_input_of_five():
    """ParamsToCanonical ended the process ("expected 0, got 5")."""
    case = Case("gru", 1, "unidirectional", T=3, B=2, I=5, H=5, input_mode="skip_input")
    round_trip(case)
    assert_right(case)


@called("tensorflow-16042")
def skip_input_of_a_hundred():
    case = Case("gru", 1, "bidirectional", 100, 16, 100, 100, input_mode="skip_input")
    round_trip(case)
    assert_right(case)


@called("pytorch-106769")
def another_hidden_size():
    """GRUCell read beyond a state that was too small."""
    case = Case("gru", 1, "unidirectional", T=3, B=2, I=4, H=6)
    inputs = case.make_inputs().forward()
    for shape in ([1, 2, 5], [1, 2, 1], [1, 1, 6], [2, 2, 6]):
        wrong = {**inputs, "input_h": tf.zeros(shape)}
        assert_refused(raw_ops.CudnnRNNV3, wrong, case.attributes(), "input_h", "params")


@called("mxnet-19022")
def many_steps_of_one_unit():
    """The gradient on a CPU spoilt the heap."""
    for mode in ("rnn_tanh", "gru", "lstm"):  # of rnn_relu, so many steps are beyond any number
        assert_right(Case(mode, 1, "bidirectional", T=1024, B=4, I=4, H=1))


@called("stock-2")
def conversions():
    """Weights were looked for relative to a local's address."""
    for mode in MODES:
        round_trip(Case(mode, 2, "bidirectional", 1, 1, 4, 5))


@called("stock-7")
def bfloat16_conversions():
    for mode in MODES:
        case = Case(mode, 2, "bidirectional", 1, 1, 4, 5, dtype="bfloat16")
        round_trip(case)
        size = raw_ops.CudnnRNNParamsSize(
            **case.sizes(), **case.parameter_attributes(), T=tf.bfloat16, S=tf.int32
        )
        assert int(size[0]) == case.make_inputs().params.size


@called("stock-10")
def sizes_that_were_never_looked_at():
    """params, reserve_space and lengths shorter than what is read."""
    case = Case("lstm", 2, "bidirectional", T=4, B=3, I=3, H=5)
    arrays = case.make_inputs()
    inputs = arrays.forward()
    for name, shape in (("params", [1]), ("params", [0]), ("sequence_lengths", [1])):
        wrong = {**inputs, name: tf.ones(shape, inputs[name].dtype)}
        assert_refused(raw_ops.CudnnRNNV3, wrong, case.attributes(), name)
    result = run_ops.forward(case, arrays)
    for size in (0, 1, 16, int(result.reserve_space.shape[0]) - 1):
        wrong = result._replace(reserve_space=tf.zeros([size]))
        try:
            run_ops.backward(case, arrays, wrong)
        except tf.errors.InvalidArgumentError as error:
            assert "reserve_space must be" in error.message
        else:
            raise AssertionError(f"accepted: a reserve_space of {size}")


@called("stock-12")
def skip_input_conversions():
    for mode in MODES:
        for direction in ("unidirectional", "bidirectional"):
            round_trip(Case(mode, 2, direction, 1, 1, 5, 5, input_mode="skip_input"))


@called("stock-13")
def rows_of_no_steps():
    """Whole batches that a mask hides ended in an error of cuDNN or a crash."""
    for mode in MODES:
        for lengths in ("all_zero", "zeros"):
            assert_right(Case(mode, 2, "bidirectional", 5, 4, 3, 2, lengths=lengths))


@called("stock-16")
def sizes_of_zero():
    """No layers divided by zero."""
    for op in bad_input.SIZE + bad_input.TO_CANONICAL + bad_input.TO_PARAMS:
        for name in ("num_layers", "num_units", "input_size"):
            arguments = bad_input.valid(op)
            names = [each.name for each in bad_input.op_def_registry.get(op).input_arg]
            inputs = {each: arguments.pop(each) for each in names}
            inputs[name] = tf.constant(0)
            assert_refused(getattr(raw_ops, op), inputs, arguments, name)
    for mode in MODES:
        assert_right(Case(mode, 2, "bidirectional", 4, 0, 3, 5))
        assert_right(Case(mode, 2, "bidirectional", 0, 0, 3, 5))


def main():
    with tf.device("/CPU:0"):
        for name in json.load(sys.stdin):
            print(json.dumps({"begin": name}), flush=True)
            try:
                CALLS[name]()
                failure = ""
            except Exception:
                failure = traceback.format_exc()
            print(json.dumps({"end": name, "failure": failure}), flush=True)


if __name__ == "__main__":
    main()
