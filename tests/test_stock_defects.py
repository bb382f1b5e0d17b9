"""What stock TensorFlow 2.21 gets wrong in these ops, and ours must get right on a CPU.

One test for each defect, under the name of its subject. The other test files go further into most
of them; here each stands alone, so that a report can list them.
"""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import kernels

import cases
import run_ops
from cases import Case
from compare import assert_close, assert_same_bits
from tf_cudnn_rnn_ops import raw_ops, reference

BAD = (tf.errors.InvalidArgumentError, ValueError)
OPS = (
    "CudnnRNN",
    "CudnnRNNV2",
    "CudnnRNNV3",
    "CudnnRNNBackprop",
    "CudnnRNNBackpropV2",
    "CudnnRNNBackpropV3",
    "CudnnRNNParamsSize",
    "CudnnRNNParamsToCanonical",
    "CudnnRNNParamsToCanonicalV2",
    "CudnnRNNCanonicalToParams",
    "CudnnRNNCanonicalToParamsV2",
)


def assert_forward_equals_reference(case, inputs, version=3, **attributes):
    result = run_ops.forward(case, inputs, version, **attributes)
    expected = reference.forward(**inputs.forward(), **case.attributes())
    for name, value in zip(run_ops.FORWARD_NAMES, expected, strict=True):
        assert_close(getattr(result, name), value, case.tolerance, name)
    return result


def assert_gradients_equal_reference(case, inputs, result, version=3):
    values = run_ops.backward(case, inputs, result, version)
    expected = reference.gradients(**inputs.forward(), **inputs.backprops(), **case.attributes())
    for value, wanted in zip(values, expected, strict=True):
        assert_close(value, wanted, 1e-6)


def canonical_call(case):
    """The keywords by which ParamsToCanonicalV2 learns the sizes of a case."""
    weight_shapes, bias_shapes = case.canonical_shapes()
    return {
        **case.sizes(),
        **case.parameter_attributes(),
        "num_params_weights": len(weight_shapes),
        "num_params_biases": len(bias_shapes),
    }


@pytest.mark.parametrize("op", OPS)
def test_defect_1_cpu_kernels(op):
    """All 11 ops have CPU kernels, for all four types."""
    registered = kernels.get_registered_kernels_for_op(op).kernel
    types = set()
    for kernel in registered:
        if kernel.device_type == "CPU":
            for constraint in kernel.constraint:
                if constraint.name == "T":
                    types.update(constraint.allowed_values.list.type)
    wanted = {tf.as_dtype(name).as_datatype_enum for name in cases.DTYPES}
    assert types >= wanted


def test_defect_2_conversions_do_not_abort():
    """CanonicalToParamsV2 and V1's ParamsToCanonical work."""
    case = Case("lstm", 2, "bidirectional", 1, 1, 4, 5)
    inputs = case.make_inputs()
    params = raw_ops.CudnnRNNCanonicalToParamsV2(
        **case.sizes(),
        weights=inputs.weights,
        biases=inputs.biases,
        **case.parameter_attributes(),
    )
    assert_same_bits(params.numpy(), inputs.params)
    result = raw_ops.CudnnRNNParamsToCanonical(
        **case.sizes(), params=params, num_params=32, **case.attributes(version=1)
    )
    for tensor, array in zip(result.weights, inputs.weights, strict=True):
        assert_same_bits(tensor.numpy(), array)


@pytest.mark.parametrize("mode", cases.MODES)
def test_defect_3_params_to_canonical_v2_without_projection(mode):
    case = Case(mode, 2, "bidirectional", 1, 1, 4, 5)
    inputs = case.make_inputs()
    result = raw_ops.CudnnRNNParamsToCanonicalV2(params=inputs.params, **canonical_call(case))
    for tensor, array in zip(
        [*result.weights, *result.biases], inputs.weights + inputs.biases, strict=True
    ):
        assert_same_bits(tensor.numpy(), array)


@pytest.mark.parametrize("direction", cases.DIRECTIONS)
@pytest.mark.parametrize("time_major", [True, False])
@pytest.mark.parametrize("num_proj", [1, 3, 7])
def test_defect_4_projection(num_proj, time_major, direction):
    case = Case("lstm", 2, direction, 4, 3, 5, 8, num_proj, lengths="varied", dtype="float64")
    case = case.replace(time_major=time_major)
    inputs = case.make_inputs()
    result = assert_forward_equals_reference(case, inputs)
    assert_gradients_equal_reference(case, inputs, result)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("mode", cases.MODES)
def test_defect_5_v1_and_v2(mode, version):
    """V1, V2 and their Backprops work, as V3 with every length T."""
    case = Case(mode, 2, "bidirectional", 4, 3, 5, 2, dtype="float64")
    inputs = case.make_inputs()
    result = assert_forward_equals_reference(case, inputs, version)
    assert_gradients_equal_reference(case, inputs, result, version)


@pytest.mark.parametrize("mode", cases.MODES)
def test_defect_6_batch_major_states(mode):
    """time_major=False: states are [B, L*D, R], in that order, forward and backward."""
    case = Case(mode, 3, "bidirectional", 4, 5, 2, 3, time_major=False, dtype="float64")
    inputs = case.make_inputs()
    assert inputs.input_h.shape == (5, 6, 3)
    result = assert_forward_equals_reference(case, inputs)
    assert result.output_h.shape == [5, 6, 3]
    assert_gradients_equal_reference(case, inputs, result)


@pytest.mark.parametrize("mode", cases.MODES)
def test_defect_7_bfloat16_parameter_ops(mode):
    case = Case(mode, 2, "bidirectional", 1, 1, 4, 5, dtype="bfloat16")
    inputs = case.make_inputs()
    size = raw_ops.CudnnRNNParamsSize(
        **case.sizes(), **case.parameter_attributes(), T=tf.bfloat16, S=tf.int32
    )
    assert size[0] == inputs.params.size
    result = raw_ops.CudnnRNNParamsToCanonicalV2(params=inputs.params, **canonical_call(case))
    params = raw_ops.CudnnRNNCanonicalToParamsV2(
        **case.sizes(),
        weights=result.weights,
        biases=result.biases,
        **case.parameter_attributes(),
    )
    assert_same_bits(params.numpy(), inputs.params)


@pytest.mark.parametrize("mode", cases.MODES)
def test_defect_8_bfloat16_gradients(mode):
    """They are those of the forward call's own reserve_space."""
    case = Case(mode, 2, "bidirectional", 4, 3, 5, 6, dtype="bfloat16")
    inputs = case.make_inputs()
    values = run_ops.backward(case, inputs, run_ops.forward(case, inputs))
    expected = reference.gradients(**inputs.forward(), **inputs.backprops(), **case.attributes())
    for value, wanted in zip(values, expected, strict=True):
        assert_close(value, wanted, 3e-2)


@pytest.mark.parametrize("mode", cases.MODES)
def test_defect_9_padding_in_double(mode):
    """Padded outputs are zeros in double too, whatever the memory held before."""
    case = Case(mode, 1, "bidirectional", 6, 4, 3, 5, lengths="zeros", dtype="float64")
    inputs = case.make_inputs()
    padding = np.arange(6)[:, None] >= inputs.sequence_lengths[None, :]
    for _ in range(5):
        output = run_ops.forward(case, inputs).output.numpy()
        assert not np.any(output[padding])
        assert np.all(np.any(output[~padding] != 0, axis=-1))


def _in_eager(function):
    return function()


def _in_graph(function):
    return tf.function(function)()


@pytest.mark.parametrize("call", [_in_eager, _in_graph], ids=["eager", "graph"])
@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("sequence_lengths", np.array([4, 4], np.int32)),
        ("sequence_lengths", np.array([4, 4, 4, 4], np.int32)),
        ("sequence_lengths", np.array([4, 5, 4], np.int32)),
        ("sequence_lengths", np.array([4, -1, 4], np.int32)),
        ("params", np.zeros([1], np.float32)),
        ("params", np.zeros([221], np.float32)),
        ("params", np.zeros([219], np.float32)),
    ],
)
def test_defect_10_sizes_and_values_are_checked(argument, value, call):
    """A wrong count or value of lengths, or length of params, is refused by name."""
    case = Case("lstm", 1, "unidirectional", 4, 3, 4, 5)
    inputs = case.make_inputs()
    wrong = dataclasses.replace(inputs, **{argument: value})
    with pytest.raises(BAD, match=argument):
        call(lambda: run_ops.forward(case, wrong).output)


@pytest.mark.parametrize("change", ["shorter", "longer", "empty", "foreign", "zeros"])
def test_defect_10_reserve_space_is_checked(change):
    case = Case("lstm", 1, "unidirectional", 4, 3, 4, 5)
    inputs = case.make_inputs()
    result = run_ops.forward(case, inputs)
    # The same size in elements, from rows of other lengths.
    other = case.replace(lengths="varied")
    foreign = run_ops.forward(other, other.make_inputs()).reserve_space
    reserve = {
        "shorter": result.reserve_space[:-1],
        "longer": tf.concat([result.reserve_space, [0.0]], 0),
        "empty": tf.zeros([0]),
        "foreign": foreign,
        "zeros": tf.zeros_like(result.reserve_space),
    }[change]
    with pytest.raises(tf.errors.InvalidArgumentError, match="reserve_space"):
        run_ops.backward(case, inputs, result._replace(reserve_space=reserve))


@pytest.mark.parametrize("position", range(11))
def test_defect_11_backprop_shapes_are_checked(position):
    """Every tensor argument of BackpropV3 of a wrong rank is refused while the graph is built."""
    case = Case("lstm", 1, "unidirectional", 4, 3, 4, 5)
    inputs = case.make_inputs()
    result = run_ops.forward(case, inputs)
    tensors = inputs.forward() | inputs.backprops()
    for name in (*run_ops.FORWARD_NAMES, "reserve_space", "host_reserved"):
        tensors[name] = getattr(result, name)
    name = [
        "input",
        "input_h",
        "input_c",
        "params",
        "sequence_lengths",
        "output",
        "output_h",
        "output_c",
        "output_backprop",
        "output_h_backprop",
        "output_c_backprop",
    ][position]
    tensors[name] = tf.zeros([2, 2, 2, 2], tf.convert_to_tensor(tensors[name]).dtype)
    with pytest.raises(BAD, match=name):
        _in_graph(lambda: raw_ops.CudnnRNNBackpropV3(**tensors, **case.attributes()))


def test_defect_11_static_shapes():
    """Constant sizes give params, weights and biases of static shape; dims are merged."""
    case = Case("lstm", 2, "bidirectional", 4, 3, 4, 5, num_proj=2)
    inputs = case.make_inputs()

    @tf.function
    def build(input, input_h):
        params = raw_ops.CudnnRNNCanonicalToParamsV2(
            **case.sizes(),
            weights=inputs.weights,
            biases=inputs.biases,
            **case.parameter_attributes(),
        )
        assert params.shape == inputs.params.shape
        result = raw_ops.CudnnRNNParamsToCanonicalV2(params=params, **canonical_call(case))
        for tensor, array in zip(
            [*result.weights, *result.biases], inputs.weights + inputs.biases, strict=True
        ):
            assert tensor.shape == array.shape
        forward = raw_ops.CudnnRNNV3(
            input=input,
            input_h=input_h,
            input_c=inputs.input_c,
            params=params,
            sequence_lengths=inputs.sequence_lengths,
            **case.attributes(),
        )
        # The batch size is known from input_c and the lengths alone.
        assert forward.output.shape.as_list() == [None, 3, 4]
        assert forward.output_h.shape.as_list() == [4, 3, 2]
        assert forward.output_c.shape.as_list() == [4, 3, 5]
        return forward.output

    build.get_concrete_function(
        tf.TensorSpec([None, None, 4], tf.float32), tf.TensorSpec([None, None, 2], tf.float32)
    )


@pytest.mark.parametrize("mode", cases.MODES)
def test_defect_12_skip_input(mode):
    """Layer 0 has no input weights: entries of shape [H, 0]; the values are right."""
    case = Case(mode, 1, "bidirectional", 4, 3, 5, 5, input_mode="skip_input", dtype="float64")
    inputs = case.make_inputs()
    result = raw_ops.CudnnRNNParamsToCanonicalV2(params=inputs.params, **canonical_call(case))
    assert [weight.shape for weight in result.weights[: case.G]] == [[5, 0]] * case.G
    result = assert_forward_equals_reference(case, inputs)
    assert_gradients_equal_reference(case, inputs, result)
    with pytest.raises(BAD, match="skip_input"):
        run_ops.forward(case, case.replace(I=6).make_inputs())


@pytest.mark.parametrize("mode", cases.MODES)
@pytest.mark.parametrize("lengths", [[3, 0, 5, 0], [0, 0, 0, 0], [0, 4, 0, 0], [4, 0, 1, 5]])
def test_defect_13_zero_lengths(mode, lengths):
    case = Case(mode, 2, "bidirectional", 5, 4, 3, 2, lengths="zeros", dtype="float64")
    inputs = dataclasses.replace(case.make_inputs(), sequence_lengths=np.array(lengths, np.int32))
    result = assert_forward_equals_reference(case, inputs)
    assert_forward_equals_reference(case, inputs, is_training=False)
    assert_gradients_equal_reference(case, inputs, result)


@pytest.mark.parametrize("mode", cases.MODES)
def test_defect_14_second_gradient_call(mode):
    """The same forward call differentiated twice gives the same gradient twice."""
    case = Case(mode, 2, "bidirectional", 5, 4, 3, 6, lengths="varied")
    inputs = case.make_inputs()
    params = tf.constant(inputs.params)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(params)
        result = run_ops.forward(case, dataclasses.replace(inputs, params=params))
        loss = tf.reduce_sum(result.output * inputs.output_backprop)
    first, second = tape.gradient(loss, params), tape.gradient(loss, params)
    assert np.any(first.numpy())
    assert_same_bits(second.numpy(), first.numpy())


@pytest.mark.parametrize("mode", cases.MODES)
@pytest.mark.parametrize(("T", "B"), [(0, 3), (4, 0), (0, 0)])
def test_defect_16_nothing_to_do(mode, T, B):
    """No steps or no rows: outputs of that shape, states passed through, gradients zero."""
    case = Case(mode, 2, "bidirectional", T, B, 3, 5)
    inputs = case.make_inputs()
    result = run_ops.forward(case, inputs)
    assert result.output.shape == [T, B, 10]
    assert_same_bits(result.output_h.numpy(), inputs.input_h)
    if mode == "lstm":
        assert_same_bits(result.output_c.numpy(), inputs.input_c)
    gradients = run_ops.backward(case, inputs, result)
    assert gradients.input_backprop.shape == inputs.input.shape
    assert_same_bits(gradients.input_h_backprop.numpy(), inputs.output_h_backprop)
    assert not np.any(gradients.params_backprop.numpy())
    assert gradients.params_backprop.shape == inputs.params.shape


def test_defect_16_params_size_in_int64():
    case = Case("lstm", 3, "bidirectional", 1, 1, 143, 143)
    size = raw_ops.CudnnRNNParamsSize(
        **case.sizes(), **case.parameter_attributes(), T=tf.float32, S=tf.int64
    )
    assert size.dtype == tf.int64
    assert size[0] == 1315600


@pytest.mark.parametrize("name", ["num_layers", "num_units", "input_size"])
@pytest.mark.parametrize("value", [0, -1])
def test_defect_16_sizes_below_one(name, value):
    case = Case("lstm", 1, "unidirectional", 1, 1, 4, 5)
    with pytest.raises(BAD, match=name):
        raw_ops.CudnnRNNParamsSize(
            **{**case.sizes(), name: value},
            **case.parameter_attributes(),
            T=tf.float32,
            S=tf.int32,
        )


def test_defect_17_gradient_through_the_conversions():
    case = Case("gru", 1, "unidirectional", 1, 1, 4, 5)
    inputs = case.make_inputs()
    weights = [tf.constant(weight) for weight in inputs.weights]
    with tf.GradientTape() as tape:
        tape.watch(weights)
        params = raw_ops.CudnnRNNCanonicalToParamsV2(
            **case.sizes(), weights=weights, biases=inputs.biases, **case.parameter_attributes()
        )
        loss = tf.reduce_sum(params**2)
    for gradient, weight in zip(tape.gradient(loss, weights), inputs.weights, strict=True):
        np.testing.assert_allclose(gradient, 2 * weight, rtol=1e-6)
