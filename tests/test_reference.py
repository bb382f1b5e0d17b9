"""The NumPy reference itself, against PyTorch, Keras and values known from elsewhere."""

import numpy as np
import pytest

import cases
from compare import assert_close, assert_same_bits
from tf_cudnn_rnn_ops import reference

FORWARD = ("output", "output_h", "output_c")
BACKWARD = ("input_backprop", "input_h_backprop", "input_c_backprop", "params_backprop")


def run_reference(case, inputs):
    results = reference.forward(**inputs.forward(), **case.attributes())
    results += reference.gradients(**inputs.forward(), **inputs.backprops(), **case.attributes())
    return dict(zip(FORWARD + BACKWARD, results, strict=True))


def assert_agrees(actual, expected):
    for name in FORWARD:
        assert_close(actual[name], expected[name], 1e-12, name)
    for name in BACKWARD:
        assert_close(actual[name], expected[name], 1e-7, name)


@pytest.mark.parametrize("case", cases.GRADIENT_CASES, ids=lambda case: case.id)
def test_equals_torch(case):
    torch_oracle = pytest.importorskip("torch_oracle", reason="needs torch")
    inputs = case.make_inputs()
    assert_agrees(run_reference(case, inputs), torch_oracle.expected(case))


# The layout and num_layers are ours, not Keras'; one choice of them is enough.
KERAS_CASES = cases.select(cases.GRADIENT_CASES, num_proj=0, time_major=False, L=2)


@pytest.mark.parametrize("case", KERAS_CASES, ids=lambda case: case.id)
def test_equals_keras(case):
    import keras_oracle

    inputs = case.make_inputs()
    assert_agrees(run_reference(case, inputs), keras_oracle.expected(case))


@pytest.mark.parametrize(
    ("config", "size"),
    [
        ({"rnn_mode": "lstm", "num_layers": 3, "num_units": 143, "input_size": 143,
          "direction": "bidirectional"}, 1315600),
        ({"rnn_mode": "gru", "num_layers": 1, "num_units": 128, "input_size": 28}, 60672),
        ({"rnn_mode": "lstm", "num_layers": 1, "num_units": 2, "input_size": 3}, 56),
        ({"rnn_mode": "lstm", "num_layers": 1, "num_units": 5, "input_size": 4}, 220),
        ({"rnn_mode": "rnn_relu", "num_layers": 1, "num_units": 1, "input_size": 4}, 7),
        ({"rnn_mode": "gru", "num_layers": 1, "num_units": 1, "input_size": 4}, 21),
    ],
)  # fmt: skip
def test_params_size_known_values(config, size):
    assert reference.params_size(**config) == size


def test_gru_known_value():
    size = reference.params_size(
        rnn_mode="gru", num_layers=1, num_units=2, input_size=2, input_mode="skip_input"
    )
    output, _, _ = reference.forward(
        input=np.ones([1, 1, 2]),
        input_h=np.zeros([1, 1, 2]),
        input_c=np.zeros([]),
        params=np.zeros([size]),
        rnn_mode="gru",
        input_mode="skip_input",
    )
    np.testing.assert_allclose(output, np.full([1, 1, 2], 0.2048), atol=5e-5)


@pytest.mark.parametrize("case", cases.EDGE_CASES, ids=lambda case: case.id)
def test_pack_and_unpack_are_inverse(case):
    inputs = case.make_inputs()
    weights, biases = reference.unpack(inputs.params, **case.sizes(), **case.parameter_attributes())
    for actual, expected in zip(weights + biases, inputs.weights + inputs.biases, strict=True):
        assert_same_bits(actual, expected)
    assert inputs.params.size == reference.params_size(
        **case.sizes(), **case.parameter_attributes()
    )


def test_unpack_refuses_a_wrong_size():
    with pytest.raises(ValueError, match="7 elements, got 8"):
        reference.unpack(
            np.zeros([8]), rnn_mode="rnn_relu", num_layers=1, num_units=1, input_size=4
        )


def test_dropout_masks_multiply_the_inputs_of_later_layers():
    """Layer by layer by hand: the same as one call with masks."""
    case = cases.Case("gru", 3, "bidirectional", 5, 3, 4, 2, lengths="varied", dtype="float64")
    inputs = case.make_inputs()
    rng = np.random.default_rng(1)
    masks = [rng.integers(0, 2, (case.T, case.B, 4)) / 0.5 for _ in range(2)]
    output, output_h, _ = reference.forward(
        **inputs.forward(), **case.attributes(), dropout_masks=masks
    )
    x = inputs.input
    for layer in range(3):
        if layer > 0:
            x = x * masks[layer - 1]
        per_layer = 2 * 2 * case.G
        part = slice(layer * per_layer, (layer + 1) * per_layer)
        x, h, _ = reference.forward(
            input=x,
            input_h=inputs.input_h[2 * layer : 2 * layer + 2],
            input_c=np.zeros([]),
            params=reference.pack(inputs.weights[part], inputs.biases[part]),
            sequence_lengths=inputs.sequence_lengths,
            rnn_mode="gru",
            direction="bidirectional",
        )
        np.testing.assert_array_equal(h, output_h[2 * layer : 2 * layer + 2])
    np.testing.assert_array_equal(x, output)
