"""The forward ops against the NumPy reference, and the properties that need no reference."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

import cases
import run_ops
from cases import Case
from compare import assert_close, assert_same_bits
from tf_cudnn_rnn_ops import raw_ops, reference

NAMES = run_ops.FORWARD_NAMES


def run(case, inputs, version=3, **attributes):
    return run_ops.numpy_values(run_ops.forward(case, inputs, version, **attributes), NAMES)


def assert_equals_reference(case, seed=0):
    """All versions of the op, training and not, against the reference and against each other."""
    inputs = case.make_inputs(seed)
    expected = reference.forward(**inputs.forward(), **case.attributes())
    result = run_ops.forward(case, inputs)
    values = run_ops.numpy_values(result, NAMES)
    for name, value in zip(NAMES, expected, strict=True):
        assert values[name].dtype == case.numpy_dtype
        assert_close(values[name], value, case.tolerance, name)
    if case.rnn_mode != "lstm":
        assert values["output_c"].shape == (0,)
    padding = np.arange(case.T)[:, None] >= inputs.sequence_lengths[None, :]
    padded = values["output"][padding if case.time_major else padding.T]
    assert not np.any(padded), "output is not zero beyond the lengths"
    assert result.reserve_space.shape.rank == 1
    assert result.reserve_space.dtype == tf.as_dtype(case.numpy_dtype)
    assert result.host_reserved.dtype == tf.int8
    assert result.host_reserved.shape == [0]

    others = [run_ops.forward(case, inputs, is_training=False)]
    for version in (1, 2):
        if case.supports_version(version):
            others.append(run_ops.forward(case, inputs, version))
            others.append(run_ops.forward(case, inputs, version, is_training=False))
    for other in others:
        for name, value in run_ops.numpy_values(other, NAMES).items():
            assert_same_bits(value, values[name], name)
    assert others[0].reserve_space.shape == [0]


def assert_values_equal_reference(case, inputs):
    values = run(case, inputs)
    expected = reference.forward(**inputs.forward(), **case.attributes())
    for name, value in zip(NAMES, expected, strict=True):
        assert_close(values[name], value, case.tolerance, f"{case.id} {name}")


@pytest.mark.parametrize("case", cases.FORWARD_CASES, ids=lambda case: case.id)
def test_equals_reference(case):
    assert_equals_reference(case)


@pytest.mark.parametrize("dtype", cases.DTYPES)
@pytest.mark.parametrize("case", cases.EDGE_CASES, ids=lambda case: case.id)
def test_edge_equals_reference(case, dtype):
    assert_equals_reference(case.replace(dtype=dtype))


def random_case(rng):
    mode = str(rng.choice(cases.MODES))
    H = int(rng.integers(1, 41))
    num_proj = int(rng.integers(0, H + 1)) if mode == "lstm" and rng.random() < 0.4 else 0
    skip = num_proj in (0, H) and rng.random() < 0.2
    return Case(
        rnn_mode=mode,
        L=int(rng.integers(1, 4)),
        direction=str(rng.choice(cases.DIRECTIONS)),
        T=int(rng.integers(1, 13)),
        B=int(rng.integers(1, 21)),
        I=H if skip else int(rng.integers(1, 41)),
        H=H,
        num_proj=num_proj,
        input_mode="skip_input" if skip else "linear_input",
        lengths=str(rng.choice([*cases.LENGTHS, "short"])),
        time_major=bool(rng.random() < 0.5),
        dtype=str(rng.choice(cases.DTYPES)),
    )


@pytest.mark.parametrize("batch", range(10))
def test_random_shapes_one_after_another(batch):
    """No call leaves anything behind for the next one: 500 calls of changing shapes."""
    rng = np.random.default_rng(batch)
    for _ in range(50):
        case = random_case(rng)
        assert_values_equal_reference(case, case.make_inputs(batch))


PROPERTY_CASES = [
    Case(mode, 2, direction, 6, 5, 4, 19, num_proj, lengths="zeros", time_major=time_major)
    for mode, num_proj in (*((mode, 0) for mode in cases.MODES), ("lstm", 7))
    for direction in cases.DIRECTIONS
    for time_major in (True, False)
]


def pad_time(case, array, steps, value):
    """array with steps more steps of value at the end of its time axis."""
    padding = [(0, 0)] * 3
    padding[0 if case.time_major else 1] = (0, steps)
    return np.pad(array, padding, constant_values=value)


def time_slice(case, array, steps):
    return array[:steps] if case.time_major else array[:, :steps]


@pytest.mark.parametrize("fill", [0.0, 7.0, np.nan, np.inf])
@pytest.mark.parametrize("case", PROPERTY_CASES, ids=lambda case: case.id)
def test_padding_changes_nothing(case, fill):
    """Whatever the padding holds and however long it is, the rest keeps its bits."""
    inputs = case.make_inputs()
    values = run(case, inputs)
    padding = np.arange(case.T)[:, None] >= inputs.sequence_lengths[None, :]
    filled = inputs.input.copy()
    filled[padding if case.time_major else padding.T] = fill
    for steps in (0, 1, 58):
        padded = dataclasses.replace(inputs, input=pad_time(case, filled, steps, fill))
        more = run(case, padded)
        assert not np.any(more["output"]) or np.all(np.isfinite(more["output"]))
        assert_same_bits(time_slice(case, more["output"], case.T), values["output"])
        assert more["output"].shape[0 if case.time_major else 1] == case.T + steps
        assert not np.any(more["output"][case.T :] if case.time_major else 0)
        assert_same_bits(more["output_h"], values["output_h"])
        assert_same_bits(more["output_c"], values["output_c"])


@pytest.mark.parametrize("case", PROPERTY_CASES, ids=lambda case: case.id)
def test_each_row_alone_and_unpadded(case):
    """A row of a padded batch is what it is alone: also the reverse direction starts at its own
    last step. Products of other shapes may be summed in another order, hence the tolerance."""
    inputs = case.make_inputs()
    values = run(case, inputs)
    batch_axis = 1 if case.time_major else 0
    state_axis = 1 if case.time_major else 0
    for row, length in enumerate(inputs.sequence_lengths):
        x = np.take(inputs.input, [row], batch_axis)
        alone = dataclasses.replace(
            inputs,
            input=time_slice(case, x, length),
            input_h=np.take(inputs.input_h, [row], state_axis),
            input_c=np.take(inputs.input_c, [row], state_axis),
            sequence_lengths=np.array([length], np.int32),
        )
        single = run(case, alone)
        output = time_slice(case, np.take(values["output"], [row], batch_axis), length)
        assert_close(output, single["output"], 1e-6, f"output of row {row}")
        for name in ("output_h", "output_c"):
            if name == "output_c" and case.rnn_mode != "lstm":
                continue
            expected = np.take(values[name], [row], state_axis)
            assert_close(single[name], expected, 1e-6, f"{name} of row {row}")


@pytest.mark.parametrize("case", PROPERTY_CASES, ids=lambda case: case.id)
def test_zero_rows(case):
    """Length 0: zero output, and the final state is the initial one to the bit."""
    inputs = case.make_inputs()
    values = run(case, inputs)
    rows = np.flatnonzero(inputs.sequence_lengths == 0)
    assert rows.size
    axis = 1 if case.time_major else 0
    assert not np.any(np.take(values["output"], rows, axis))
    names = ["h", "c"] if case.rnn_mode == "lstm" else ["h"]
    for name in names:
        initial = np.take(getattr(inputs, "input_" + name), rows, axis)
        assert_same_bits(np.take(values["output_" + name], rows, axis), initial)


@pytest.mark.parametrize("case", PROPERTY_CASES, ids=lambda case: case.id)
def test_layouts_are_transposes(case):
    inputs = case.make_inputs()
    other = case.replace(time_major=not case.time_major)
    values, transposed = run(case, inputs), run(other, other.make_inputs())
    for name, value in values.items():
        if value.ndim == 3:
            assert_same_bits(np.swapaxes(transposed[name], 0, 1), value, name)


@pytest.mark.parametrize("case", PROPERTY_CASES, ids=lambda case: case.id)
def test_order_of_rows_does_not_matter(case):
    inputs = case.make_inputs()
    values = run(case, inputs)
    axis = 1 if case.time_major else 0
    for order in ([4, 3, 2, 1, 0], np.argsort(-inputs.sequence_lengths, kind="stable")):
        shuffled = dataclasses.replace(
            inputs,
            input=np.take(inputs.input, order, axis),
            input_h=np.take(inputs.input_h, order, axis),
            input_c=np.take(inputs.input_c, order, axis),
            sequence_lengths=inputs.sequence_lengths[order],
        )
        for name, value in run(case, shuffled).items():
            if value.ndim == 3:
                assert_close(value, np.take(values[name], order, axis), 1e-6, name)


@pytest.mark.parametrize("case", PROPERTY_CASES, ids=lambda case: case.id)
def test_two_layers_are_two_calls(case):
    inputs = case.make_inputs()
    values = run(case, inputs)
    weights_per_layer = len(inputs.weights) // 2
    biases_per_layer = len(inputs.biases) // 2
    x = inputs.input
    axis = 0 if case.time_major else 1
    for layer in range(2):
        weights = inputs.weights[layer * weights_per_layer : (layer + 1) * weights_per_layer]
        biases = inputs.biases[layer * biases_per_layer : (layer + 1) * biases_per_layer]
        states = range(case.D * layer, case.D * (layer + 1))
        single = dataclasses.replace(
            inputs,
            input=x,
            input_h=np.take(inputs.input_h, states, axis),
            input_c=np.take(inputs.input_c, states, axis),
            params=reference.pack(weights, biases),
        )
        result = run(case, single)
        assert_same_bits(result["output_h"], np.take(values["output_h"], states, axis))
        if case.rnn_mode == "lstm":
            assert_same_bits(result["output_c"], np.take(values["output_c"], states, axis))
        x = result["output"]
    assert_same_bits(x, values["output"])


@pytest.mark.parametrize("mode", ["rnn_relu", "rnn_tanh", "gru"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (1, 2), (7, 7, 7), (0, 1, 2, 3)])
def test_input_c_is_ignored_without_a_cell_state(mode, shape):
    case = Case(mode, 2, "bidirectional", 4, 3, 2, 5)
    inputs = case.make_inputs()
    values = run(case, inputs)
    other = dataclasses.replace(inputs, input_c=np.full(shape, np.nan, np.float32))
    for name, value in run(case, other).items():
        assert_same_bits(value, values[name], name)


@pytest.mark.parametrize("case", PROPERTY_CASES, ids=lambda case: case.id)
def test_nan_stays_in_its_row(case):
    inputs = case.make_inputs()
    values = run(case, inputs)
    row = int(np.argmax(inputs.sequence_lengths))
    poisoned = inputs.input.copy()
    poisoned[(0, row) if case.time_major else (row, 0)] = np.nan
    result = run(case, dataclasses.replace(inputs, input=poisoned))
    axis = 1 if case.time_major else 0
    others = [r for r in range(case.B) if r != row]
    if case.rnn_mode != "rnn_relu":  # max(NaN, 0) may be either
        assert np.any(np.isnan(np.take(result["output"], row, axis)))
    for name in ("output", "output_h"):
        assert_same_bits(np.take(result[name], others, axis), np.take(values[name], others, axis))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("mode", cases.MODES)
@pytest.mark.parametrize("scale", [1e-30, 1e2, 1e4, 1e30])
def test_extreme_inputs(mode, scale, dtype):
    """Gates that saturate, or see next to nothing, are exact and never NaN."""
    case = Case(mode, 1, "bidirectional", 3, 4, 5, 17, dtype=dtype)
    inputs = case.make_inputs()
    inputs = dataclasses.replace(inputs, input=(inputs.input * scale).astype(dtype))
    assert_values_equal_reference(case, inputs)


@pytest.mark.parametrize("mode", cases.MODES)
@pytest.mark.parametrize("batch", [6464, 70000])
def test_large_batch(mode, batch):
    case = Case(mode, 1, "unidirectional", 5 if batch < 10000 else 2, batch, 2, 3, lengths="zeros")
    inputs = case.make_inputs()
    assert_values_equal_reference(case, inputs)


def test_many_steps():
    case = Case("gru", 1, "unidirectional", 70000, 1, 1, 2, lengths="short", dtype="float64")
    inputs = case.make_inputs()
    assert_values_equal_reference(case, inputs)


@pytest.mark.parametrize("units", [5, 64])
def test_number_of_steps_changes_between_calls(units):
    """T = 74 and 75 in turn, full and short lengths: each call as if it were the first."""
    expected = {}
    for turn in range(20):
        T = 74 + turn % 2
        for lengths in ("none", "short"):
            case = Case("lstm", 1, "unidirectional", T, 2, units, units, lengths=lengths)
            inputs = case.make_inputs()
            if case not in expected:
                expected[case] = reference.forward(**inputs.forward(), **case.attributes())
            for name, value in zip(NAMES, expected[case], strict=True):
                assert_close(run(case, inputs)[name], value, case.tolerance, name)


def test_gru_known_value():
    for version, op in run_ops.FORWARD_OPS.items():
        more = {"sequence_lengths": [1]} if version == 3 else {}
        output = op(
            input=tf.ones([1, 1, 2]),
            input_h=tf.zeros([1, 1, 2]),
            input_c=0.0,
            params=tf.zeros([2 * 2 * 3 + 2 * 3 * 2]),
            rnn_mode="gru",
            input_mode="skip_input",
            **more,
        ).output
        np.testing.assert_allclose(output, np.full([1, 1, 2], 0.2048), atol=5e-5)


@pytest.mark.parametrize("mode", cases.MODES)
def test_core_op_and_ours_are_the_same(mode):
    """tf.raw_ops runs our kernels under the names that TensorFlow registers; attributes that do
    nothing without dropout do nothing."""
    case = Case(mode, 1, "unidirectional", 7, 3, 4, 5)
    inputs = case.make_inputs()
    values = run(case, inputs)
    for op, extra in (
        (tf.raw_ops.CudnnRNNV3, {"sequence_lengths": inputs.sequence_lengths}),
        (tf.raw_ops.CudnnRNNV2, {}),
        (tf.raw_ops.CudnnRNN, {}),
        (raw_ops.CudnnRNN, {}),
    ):
        with tf.device("/CPU:0"):
            result = op(**inputs.forward(2), rnn_mode=mode, seed=87654321, dropout=0.0, **extra)
        for name, value in run_ops.numpy_values(result, NAMES).items():
            assert_same_bits(value, values[name], name)


def test_lengths_out_of_range_are_refused():
    """T is accepted, as everywhere above; one more, and one less than nothing, are not."""
    case = Case("lstm", 1, "unidirectional", 4, 3, 2, 5)
    inputs = case.make_inputs()
    for bad, message in (([4, 5, 4], "5"), ([4, -1, 4], "-1")):
        wrong = dataclasses.replace(inputs, sequence_lengths=np.array(bad, np.int32))
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"sequence_lengths.*{message}"):
            run(case, wrong)
