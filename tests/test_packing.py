"""Parameter ops: sizes, both conversions in both versions, and gradients through them."""

import numpy as np
import pytest
import tensorflow as tf

import cases
import run_ops
from cases import Case
from compare import assert_close, assert_same_bits
from tf_cudnn_rnn_ops import raw_ops, reference

# Sizes are all that matters here: every configuration without lengths and layouts.
CASES = {
    (case.rnn_mode, case.L, case.direction, case.I, case.H, case.num_proj, case.input_mode): case
    for case in cases.FORWARD_CASES + cases.EDGE_CASES
    if case.dtype == "float32" and case.lengths == "none" and case.time_major
}.values()
TYPED_CASES = [case.replace(dtype=dtype) for case in CASES for dtype in cases.DTYPES]


def params_size(case, S="int32"):
    return raw_ops.CudnnRNNParamsSize(
        **case.sizes(), **case.parameter_attributes(), T=case.dtype, S=S
    )


def to_params(case, weights, biases, version=2):
    if version == 1:
        return raw_ops.CudnnRNNCanonicalToParams(
            **case.sizes(), weights=weights, biases=biases, **case.attributes(version=1)
        )
    return raw_ops.CudnnRNNCanonicalToParamsV2(
        **case.sizes(), weights=weights, biases=biases, **case.parameter_attributes()
    )


def to_canonical(case, params, version=2):
    weight_shapes, bias_shapes = case.canonical_shapes()
    if version == 1:
        return raw_ops.CudnnRNNParamsToCanonical(
            **case.sizes(),
            params=params,
            num_params=len(weight_shapes),
            **case.attributes(version=1),
        )
    return raw_ops.CudnnRNNParamsToCanonicalV2(
        **case.sizes(),
        params=params,
        num_params_weights=len(weight_shapes),
        num_params_biases=len(bias_shapes),
        **case.parameter_attributes(),
    )


def distinct_bits(count, dtype):
    """count numbers of the type with all kinds of bits: also infinities, NaNs, -0, subnormals."""
    rng = np.random.default_rng(count)
    return np.frombuffer(rng.bytes(count * dtype.itemsize), dtype).copy()


@pytest.mark.parametrize("case", TYPED_CASES, ids=lambda case: case.id)
def test_both_ways_bit_by_bit(case):
    """Params of random bits become the lists that the reference cuts, and come back."""
    size = reference.params_size(**case.sizes(), **case.parameter_attributes())
    params = distinct_bits(size, case.numpy_dtype)
    expected = reference.unpack(params, **case.sizes(), **case.parameter_attributes())
    for version in (1, 2):
        if version == 1 and case.num_proj:
            continue
        result = to_canonical(case, params, version)
        for tensors, arrays in zip((result.weights, result.biases), expected, strict=True):
            assert len(tensors) == len(arrays)
            for tensor, array in zip(tensors, arrays, strict=True):
                assert_same_bits(tensor.numpy(), array)
        back = to_params(case, result.weights, result.biases, version)
        assert_same_bits(back.numpy(), params)


@pytest.mark.parametrize("case", TYPED_CASES, ids=lambda case: case.id)
def test_params_size(case):
    expected = reference.params_size(**case.sizes(), **case.parameter_attributes())
    for S in ("int32", "int64"):
        size = params_size(case, S)
        assert size.dtype == S
        assert size.shape == [1]
        assert size[0] == expected


@pytest.mark.parametrize("dtype", cases.DTYPES)
@pytest.mark.parametrize(
    ("case", "expected"),
    [
        # One bias for each gate would be 3432 less.
        (Case("lstm", 3, "bidirectional", 1, 1, 143, 143), 1315600),
        (Case("gru", 1, "unidirectional", 1, 1, 28, 128), 60672),
        (Case("lstm", 1, "unidirectional", 1, 1, 3, 2), 56),
        (Case("lstm", 1, "unidirectional", 1, 1, 4, 5), 220),
        (Case("rnn_relu", 1, "unidirectional", 1, 1, 4, 1), 7),
        (Case("gru", 1, "unidirectional", 1, 1, 4, 1), 21),
        # 2 directions x (4*8*5 + 4*8*3 + 3*8 + 8*8) + 2 x (4*8*6 + 4*8*3 + 3*8 + 8*8).
        (Case("lstm", 2, "bidirectional", 1, 1, 5, 8, num_proj=3), 1440),
        (Case("lstm", 2, "bidirectional", 1, 1, 5, 8, num_proj=8), 2624),
    ],
    ids=lambda value: value.id if isinstance(value, Case) else value,
)
def test_known_sizes(case, expected, dtype):
    assert params_size(case.replace(dtype=dtype))[0] == expected


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("mode", cases.MODES)
@pytest.mark.parametrize("direction", cases.DIRECTIONS)
def test_order_of_the_pieces(mode, direction, version):
    """Each piece is filled with a marker of its own; the buffer holds them layer by layer,
    direction by direction, input weights before recurrent ones, all weights before all biases."""
    case = Case(mode, 2, direction, 1, 1, 4, 5)
    G, D = case.G, case.D
    weights, biases, buffer = [], [], []
    for layer in range(2):
        for reverse in range(D):
            for part in range(2):
                for gate in range(G):
                    marker = 100 * layer + 10 * reverse + gate + 0.5 * part
                    width = 5 if part else (4 if layer == 0 else 5 * D)
                    weights.append(np.full([5, width], marker, np.float32))
                    biases.append(np.full([5], -1 - marker, np.float32))
                    buffer.append(np.full([5 * width], marker, np.float32))
    buffer += biases
    params = to_params(case, weights, biases, version)
    assert_same_bits(params.numpy(), np.concatenate(buffer))
    result = to_canonical(case, params, version)
    for tensor, array in zip([*result.weights, *result.biases], weights + biases, strict=True):
        assert_same_bits(tensor.numpy(), array)


def test_matrices_are_row_major():
    """params[W_in * row + column] is weight[row, column]."""
    case = Case("rnn_tanh", 1, "unidirectional", 1, 1, 3, 2)
    weights = [np.arange(6.0).reshape(2, 3), np.arange(6.0, 10.0).reshape(2, 2)]
    biases = [np.arange(10.0, 12.0), np.arange(12.0, 14.0)]
    np.testing.assert_array_equal(to_params(case, weights, biases), np.arange(14.0))


@pytest.mark.parametrize("mode", cases.MODES)
@pytest.mark.parametrize("units", [5, 100])
def test_skip_input_has_empty_input_weights(mode, units):
    case = Case(mode, 1, "bidirectional", 1, 1, units, units, input_mode="skip_input")
    size = int(params_size(case)[0])
    assert size == 2 * case.G * (units * units + 2 * units)
    params = np.arange(size, dtype=np.float32)
    for version in (1, 2):
        result = to_canonical(case, params, version)
        shapes = [[units, 0]] * case.G + [[units, units]] * case.G
        assert [weight.shape.as_list() for weight in result.weights] == shapes * 2
        back = to_params(case, result.weights, result.biases, version)
        assert_same_bits(back.numpy(), params)


def test_projection_is_the_ninth_weight():
    case = Case("lstm", 2, "bidirectional", 1, 1, 5, 8, num_proj=3)
    params = np.arange(int(params_size(case)[0]), dtype=np.float32)
    result = to_canonical(case, params)
    shapes = [weight.shape.as_list() for weight in result.weights]
    first = [[8, 5]] * 4 + [[8, 3]] * 4 + [[3, 8]]
    later = [[8, 6]] * 4 + [[8, 3]] * 4 + [[3, 8]]
    assert shapes == first * 2 + later * 2
    assert [bias.shape.as_list() for bias in result.biases] == [[8]] * 32
    # The projection lies behind the recurrent weights of its own pseudo-layer.
    assert result.weights[8][0, 0] == 4 * 8 * 5 + 4 * 8 * 3
    # num_proj == num_units is no projection.
    plain = case.replace(num_proj=8)
    assert len(plain.canonical_shapes()[0]) == 32
    params = np.arange(int(params_size(plain)[0]), dtype=np.float32)
    assert len(to_canonical(plain, params).weights) == 32


@pytest.mark.parametrize("mode", cases.MODES)
def test_auto_select_resolves_by_the_sizes(mode):
    for input_size, other in ((5, "skip_input"), (6, "linear_input")):
        auto = Case(mode, 2, "bidirectional", 1, 1, input_size, 5, input_mode="auto_select")
        size = int(params_size(auto)[0])
        assert size == int(params_size(auto.replace(input_mode=other))[0])
        params = np.arange(size, dtype=np.float32)
        result = to_canonical(auto, params)
        assert_same_bits(to_params(auto, result.weights, result.biases).numpy(), params)


GRADIENT_CASES = [
    Case("lstm", 2, "bidirectional", 1, 1, 3, 4, dtype="float64"),
    Case("lstm", 2, "bidirectional", 1, 1, 3, 4, num_proj=2, dtype="float64"),
    Case("gru", 1, "unidirectional", 1, 1, 4, 4, input_mode="skip_input", dtype="float64"),
    Case("rnn_relu", 3, "bidirectional", 1, 1, 3, 1, dtype="float64"),
]


@pytest.mark.parametrize("case", GRADIENT_CASES, ids=lambda case: case.id)
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("graph", [False, True])
def test_gradient_of_the_conversions(case, version, graph):
    """The conversions only move elements: the gradient of one is the other of the gradient."""
    if version == 1 and case.num_proj:
        pytest.skip("V1 knows no projection")
    inputs = case.make_inputs()
    pieces = [tf.constant(piece) for piece in inputs.weights + inputs.biases]
    count = len(inputs.weights)
    factors = np.arange(1.0, 1.0 + inputs.params.size)

    def of_packing(*pieces):
        with tf.GradientTape() as tape:
            tape.watch(pieces)
            params = to_params(case, pieces[:count], pieces[count:], version)
            loss = tf.reduce_sum(params * factors)
        return tape.gradient(loss, pieces)

    expected = reference.unpack(factors, **case.sizes(), **case.parameter_attributes())
    run = tf.function(of_packing) if graph else of_packing
    for actual, wanted in zip(run(*pieces), expected[0] + expected[1], strict=True):
        np.testing.assert_array_equal(actual, wanted)

    def of_unpacking(params):
        with tf.GradientTape() as tape:
            tape.watch(params)
            result = to_canonical(case, params, version)
            # The last bias stays out of the loss: its gradient is missing, and is taken as 0.
            parts = [*result.weights, *result.biases][:-1]
            wanted = (expected[0] + expected[1])[:-1]
            loss = tf.add_n([tf.reduce_sum(a * b) for a, b in zip(parts, wanted, strict=True)])
        return tape.gradient(loss, params)

    factors[-case.H :] = 0
    run = tf.function(of_unpacking) if graph else of_unpacking
    np.testing.assert_array_equal(run(tf.constant(inputs.params)), factors)


@pytest.mark.parametrize("case", cases.select(cases.TYPED_GRADIENT_CASES, dtype="float32", L=2),
                         ids=lambda case: case.id)  # fmt: skip
def test_gradient_of_canonical_weights_through_the_rnn(case):
    """Canonical weights → params → RNN → loss: the gradients are the pieces of params'."""
    inputs = case.make_inputs()
    pieces = [tf.constant(piece) for piece in inputs.weights + inputs.biases]
    count = len(inputs.weights)
    with tf.GradientTape() as tape:
        tape.watch(pieces)
        tensors = inputs.forward()
        tensors["params"] = to_params(case, pieces[:count], pieces[count:])
        result = raw_ops.CudnnRNNV3(**tensors, **case.attributes())
        loss = tf.reduce_sum(result.output * inputs.output_backprop)
        loss += tf.reduce_sum(result.output_h * inputs.output_h_backprop)
        loss += tf.reduce_sum(result.output_c * inputs.output_c_backprop)
    gradients = tape.gradient(loss, pieces)
    result = run_ops.forward(case, inputs)
    whole = run_ops.backward(case, inputs, result).params_backprop.numpy()
    expected = reference.unpack(whole, **case.sizes(), **case.parameter_attributes())
    for actual, wanted in zip(gradients, expected[0] + expected[1], strict=True):
        assert_close(actual, wanted, 1e-6)
