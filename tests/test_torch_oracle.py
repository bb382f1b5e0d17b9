"""Forward and gradients against PyTorch's RNN modules, where torch is installed."""

import numpy as np
import pytest

import cases
import run_ops
from cases import Case
from compare import assert_close

torch_oracle = pytest.importorskip("torch_oracle", reason="needs torch")

# Both sides are exact to rounding in double, so this is much tighter than finite differences.
TOLERANCE = 1e-11


def assert_equals_torch(case, expected):
    inputs = case.make_inputs()
    result = run_ops.forward(case, inputs)
    for name in run_ops.FORWARD_NAMES:
        assert_close(getattr(result, name), expected[name], 1e-12, name)
    gradients = run_ops.backward(case, inputs, result)
    for name in run_ops.BACKWARD_NAMES:
        assert_close(getattr(gradients, name), expected[name], TOLERANCE, name)


@pytest.mark.parametrize("case", cases.GRADIENT_CASES, ids=lambda case: case.id)
def test_equals_torch(case):
    assert_equals_torch(case, torch_oracle.expected(case))


@pytest.mark.parametrize("case", cases.EDGE_CASES, ids=lambda case: case.id)
def test_edge_equals_torch(case):
    if case.input_mode == "auto_select" and case.I == case.R == case.H:
        case = case.replace(input_mode="skip_input")
    case = case.replace(dtype="float64")
    assert_equals_torch(case, torch_oracle.expected(case))


WIDE = [
    Case(mode, L, direction, 5, B, I, H, num_proj, "linear_input", lengths, dtype="float64")
    for mode, num_proj in (*((mode, 0) for mode in cases.MODES), ("lstm", 40))
    for L, direction, B, I, H, lengths in (
        (1, "unidirectional", 37, 150, 200, "varied"),
        (2, "bidirectional", 33, 20, 96, "zeros"),
        (3, "bidirectional", 1, 64, 64, "none"),
    )
]


@pytest.mark.parametrize("case", WIDE, ids=lambda case: case.id)
def test_wide_equals_torch(case):
    assert_equals_torch(case, torch_oracle.expected(case))


@pytest.mark.parametrize("mode", ["gru", "lstm"])
def test_zero_input_with_biases(mode):
    """x = 0: the gates then see the biases alone, the GRU's candidate both of its own apart."""
    case = Case(mode, 3, "bidirectional", 4, 3, 6, 5, dtype="float64")
    inputs = case.make_inputs()
    inputs.input = np.zeros_like(inputs.input)
    expected = torch_oracle.run(case, inputs)
    result = run_ops.forward(case, inputs)
    for name in run_ops.FORWARD_NAMES:
        assert_close(getattr(result, name), expected[name], 1e-12, name)


def test_projection_of_the_field_report():
    """Units 8, num_proj 3, two layers, both directions: the output is 2*3 wide, h 3, c 8."""
    case = Case("lstm", 2, "bidirectional", 4, 3, 5, 8, num_proj=3, dtype="float64")
    result = run_ops.forward(case, case.make_inputs())
    assert result.output.shape == [4, 3, 6]
    assert result.output_h.shape == [4, 3, 3]
    assert result.output_c.shape == [4, 3, 8]
    assert_equals_torch(case, torch_oracle.expected(case))


@pytest.mark.parametrize("mode", cases.MODES)
def test_rows_of_length_zero_as_clamped_and_blanked(mode):
    """What users of PyTorch do by hand: clamp lengths to 1, then blank those rows."""
    case = Case(mode, 1, "bidirectional", 5, 4, 3, 6, lengths="zeros", dtype="float64")
    inputs = case.make_inputs()
    result = run_ops.forward(case, inputs)
    zero = inputs.sequence_lengths == 0
    assert np.any(zero)
    clamped = case.make_inputs()
    clamped.sequence_lengths = np.maximum(inputs.sequence_lengths, 1)
    expected = torch_oracle.run(case, clamped)
    expected["output"][:, zero] = 0
    expected["output_h"][:, zero] = inputs.input_h[:, zero]
    if mode == "lstm":
        expected["output_c"][:, zero] = inputs.input_c[:, zero]
    for name in run_ops.FORWARD_NAMES:
        assert_close(getattr(result, name), expected[name], 1e-12, name)
