"""The backward ops against finite differences of the reference, and what must hold besides."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

import cases
import run_ops
from cases import Case
from compare import assert_close, assert_same_bits
from tf_cudnn_rnn_ops import reference

FORWARD = run_ops.FORWARD_NAMES
BACKWARD = run_ops.BACKWARD_NAMES

# What rounding alone makes of a gradient in the narrower types: the forward outputs, and between
# the layers the gradients, are kept in the type.
GRADIENT_TOLERANCES = {"float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}


def run(case, inputs, version=3):
    result = run_ops.forward(case, inputs, version)
    return run_ops.numpy_values(run_ops.backward(case, inputs, result, version), BACKWARD)


def expected_gradients(case, inputs, **extra):
    values = reference.gradients(
        **inputs.forward(), **inputs.backprops(), **case.attributes(), **extra
    )
    return dict(zip(BACKWARD, values, strict=True))


def in_double(case, inputs):
    """The case in float64 with the very numbers of inputs."""
    wide = {
        name: np.asarray(value, np.float64)
        for name, value in dataclasses.asdict(inputs).items()
        if name not in ("sequence_lengths", "weights", "biases")
    }
    wide["weights"] = [weight.astype(np.float64) for weight in inputs.weights]
    wide["biases"] = [bias.astype(np.float64) for bias in inputs.biases]
    return case.replace(dtype="float64"), dataclasses.replace(inputs, **wide)


@pytest.mark.parametrize("case", cases.GRADIENT_CASES, ids=lambda case: case.id)
def test_equals_finite_differences(case):
    inputs = case.make_inputs()
    expected = expected_gradients(case, inputs)
    values = run(case, inputs)
    for name in BACKWARD:
        assert_close(values[name], expected[name], 1e-6, name)
    for version in (1, 2):
        if case.supports_version(version):
            for name, value in run(case, inputs, version).items():
                assert_same_bits(value, values[name], name)


@pytest.mark.parametrize("case", cases.EDGE_CASES, ids=lambda case: case.id)
def test_edge_equals_finite_differences_along_directions(case):
    """Where there are too many elements to move each of them: all at once, in random directions."""
    case, inputs = in_double(case, case.make_inputs())
    values = run(case, inputs)
    rng = np.random.default_rng(5)

    def loss(argument, value):
        changed = {**inputs.forward(), argument: value}
        total = 0.0
        outputs = reference.forward(**changed, **case.attributes())
        for output, backprop in zip(outputs, inputs.backprops().values(), strict=True):
            total += float(np.sum(output * backprop))
        return total

    for argument, name in zip(("input", "input_h", "input_c", "params"), BACKWARD, strict=True):
        value, gradient = getattr(inputs, argument), values[name]
        assert gradient.shape == value.shape
        if argument == "input_c" and case.rnn_mode != "lstm":
            assert not np.any(gradient)
            continue
        for _ in range(4 if value.size else 0):
            # Each element is moved by about 1e-4 / sqrt(size), so that the whole is a short step.
            direction = rng.standard_normal(value.shape) / value.size**0.5
            step = 1e-4
            slope = loss(argument, value + step * direction)
            slope = (slope - loss(argument, value - step * direction)) / (2 * step)
            scale = np.linalg.norm(gradient) / value.size**0.5
            assert abs(slope - np.sum(gradient * direction)) <= 1e-6 * max(1.0, scale), name


@pytest.mark.parametrize("case", cases.TYPED_GRADIENT_CASES, ids=lambda case: case.id)
def test_narrow_types_equal_double(case):
    inputs = case.make_inputs()
    expected = run(*in_double(case, inputs))
    for name, value in run(case, inputs).items():
        assert value.dtype == case.numpy_dtype
        assert_close(value, expected[name], GRADIENT_TOLERANCES[case.dtype], name)


PROPERTY_CASES = [
    Case(mode, 2, direction, 6, 5, 4, 9, num_proj, "linear_input", "zeros", time_major)
    for mode, num_proj in (*((mode, 0) for mode in cases.MODES), ("lstm", 5))
    for direction, time_major in (("unidirectional", False), ("bidirectional", True))
]
ALL_TYPES = [case.replace(dtype=dtype) for case in PROPERTY_CASES for dtype in cases.DTYPES]


@pytest.mark.parametrize("case", ALL_TYPES, ids=lambda case: case.id)
def test_backward_changes_none_of_its_inputs(case):
    """The same reserve_space gives the same gradient five times, with other calls in between."""
    inputs = case.make_inputs()
    result = run_ops.forward(case, inputs)
    reserve = run_ops.as_numpy(result.reserve_space).tobytes()
    first = run_ops.numpy_values(run_ops.backward(case, inputs, result), BACKWARD)
    for turn in range(4):
        run(case, case.make_inputs(seed=turn + 1))
        again = run_ops.numpy_values(run_ops.backward(case, inputs, result), BACKWARD)
        for name, value in again.items():
            assert_same_bits(value, first[name], name)
    assert run_ops.as_numpy(result.reserve_space).tobytes() == reserve


@pytest.mark.parametrize("case", PROPERTY_CASES, ids=lambda case: case.id)
def test_zero_rows(case):
    """Length 0: no gradient for the input, the state's own upstream gradient for the state."""
    inputs = case.make_inputs()
    values = run(case, inputs)
    rows = np.flatnonzero(inputs.sequence_lengths == 0)
    assert rows.size
    axis = 1 if case.time_major else 0
    assert not np.any(np.take(values["input_backprop"], rows, axis))
    for name in ("h", "c") if case.rnn_mode == "lstm" else ("h",):
        upstream = np.take(getattr(inputs, f"output_{name}_backprop"), rows, axis)
        assert_same_bits(np.take(values[f"input_{name}_backprop"], rows, axis), upstream, name)


@pytest.mark.parametrize("case", PROPERTY_CASES, ids=lambda case: case.id)
def test_zero_rows_contribute_nothing_to_params(case):
    """The gradient of params is the one that the other rows give without them."""
    inputs = case.make_inputs()
    values = run(case, inputs)
    rows = np.flatnonzero(inputs.sequence_lengths)
    axis = 1 if case.time_major else 0
    per_row = {
        field.name: np.take(getattr(inputs, field.name), rows, axis)
        for field in dataclasses.fields(inputs)
        if getattr(getattr(inputs, field.name), "ndim", 0) == 3
    }
    fewer = dataclasses.replace(inputs, sequence_lengths=inputs.sequence_lengths[rows], **per_row)
    assert_close(run(case, fewer)["params_backprop"], values["params_backprop"], 1e-6)


@pytest.mark.parametrize("fill", [3.0, np.nan, np.inf])
@pytest.mark.parametrize("case", PROPERTY_CASES, ids=lambda case: case.id)
def test_padding_changes_nothing(case, fill):
    """Neither what stands in the padding of the input and of the output's gradient, nor how much
    padding there is."""
    inputs = case.make_inputs()
    values = run(case, inputs)
    padding = np.arange(case.T)[:, None] >= inputs.sequence_lengths[None, :]
    padding = padding if case.time_major else padding.T
    time_axis = 0 if case.time_major else 1
    for steps in (0, 31):
        filled = {}
        for name in ("input", "output_backprop"):
            array = getattr(inputs, name).copy()
            array[padding] = fill
            widths = [(0, 0)] * 3
            widths[time_axis] = (0, steps)
            filled[name] = np.pad(array, widths, constant_values=fill)
        more = run(case, dataclasses.replace(inputs, **filled))
        first, rest = np.split(more.pop("input_backprop"), [case.T], axis=time_axis)
        assert_same_bits(first, values["input_backprop"], "input_backprop")
        assert not np.any(first[padding]) and not np.any(rest)
        for name, value in more.items():
            assert_same_bits(value, values[name], name)


@pytest.mark.parametrize("case", PROPERTY_CASES, ids=lambda case: case.id)
def test_each_upstream_gradient_alone(case):
    """The gradient is linear in the three upstream ones: it is the sum of what each gives."""
    case, inputs = in_double(case, case.make_inputs())
    values = run(case, inputs)
    total = {name: np.zeros_like(value) for name, value in values.items()}
    for name in inputs.backprops():
        others = {
            other: np.zeros_like(value)
            for other, value in inputs.backprops().items()
            if other != name
        }
        for gradient, value in run(case, dataclasses.replace(inputs, **others)).items():
            total[gradient] += value
    for name, value in values.items():
        assert_close(total[name], value, 1e-12, name)


def one_hot_cases():
    for mode in ("rnn_tanh", "gru", "lstm"):
        gates = Case(mode, 1, "unidirectional", 1, 1, 1, 1).G
        for kind in ("weights", "biases"):
            for place in range(2 * gates):
                yield pytest.param(mode, kind, place, id=f"{mode}-{kind}-{place}")


@pytest.mark.parametrize(("mode", "kind", "place"), list(one_hot_cases()))
def test_one_hot_parameters(mode, kind, place):
    """One canonical piece holds a single 1, all other weights are 0, and no bias is 0 except for
    the pieces in question: a gate or a bias in the wrong place shows."""
    case = Case(mode, 1, "bidirectional", 4, 3, 5, 2, lengths="varied", dtype="float64")
    inputs = case.make_inputs()
    weights = [np.zeros_like(weight) for weight in inputs.weights]
    biases = inputs.biases if kind == "weights" else [np.zeros_like(b) for b in inputs.biases]
    for p in range(case.D):
        piece = (weights if kind == "weights" else biases)[p * 2 * case.G + place]
        piece[(1, 0) if kind == "weights" else 1] = 1.0
    inputs = dataclasses.replace(inputs, params=reference.pack(weights, biases))
    expected = expected_gradients(case, inputs)
    result = run_ops.forward(case, inputs)
    outputs = reference.forward(**inputs.forward(), **case.attributes())
    for name, value in zip(FORWARD, outputs, strict=True):
        assert_close(getattr(result, name), value, 1e-12, name)
    for name, value in run(case, inputs).items():
        assert_close(value, expected[name], 1e-6, name)


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("mode", cases.MODES)
def test_registered_gradient(mode, version):
    """Through GradientTape, eagerly and in a tf.function, with all three outputs in the loss."""
    case = Case(mode, 2, "bidirectional", 4, 3, 5, 6, dtype="float64")
    inputs = case.make_inputs()
    expected = run(case, inputs)
    tensors = [tf.constant(value) for value in inputs.forward(2).values()]

    def gradients(*tensors):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            changed = dict(zip(("input", "input_h", "input_c", "params"), tensors, strict=True))
            result = run_ops.forward(case, dataclasses.replace(inputs, **changed), version)
            loss = tf.reduce_sum(result.output * inputs.output_backprop)
            loss += tf.reduce_sum(result.output_h * inputs.output_h_backprop)
            loss += tf.reduce_sum(result.output_c * inputs.output_c_backprop)
        return tape.gradient(loss, tensors)

    for function in (gradients, tf.function(gradients)):
        for name, value in zip(BACKWARD, function(*tensors), strict=True):
            if value is not None:
                assert_same_bits(value.numpy(), expected[name], name)
            else:
                assert name == "input_c_backprop" and mode != "lstm"


def test_persistent_tape():
    case = Case("lstm", 2, "bidirectional", 4, 3, 5, 6, lengths="zeros")
    inputs = case.make_inputs()
    params = tf.constant(inputs.params)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(params)
        result = run_ops.forward(case, dataclasses.replace(inputs, params=params))
        loss = tf.reduce_sum(result.output**2)
    first = tape.gradient(loss, params).numpy()
    assert np.any(first)
    for _ in range(3):
        assert_same_bits(tape.gradient(loss, params).numpy(), first)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_inference_has_no_gradient(version):
    """Refused when the gradient is built, with a text that says so."""
    case = Case("gru", 1, "unidirectional", 4, 3, 5, 6)
    inputs = case.make_inputs()
    params = tf.constant(inputs.params)
    with tf.GradientTape() as tape:
        tape.watch(params)
        changed = dataclasses.replace(inputs, params=params)
        result = run_ops.forward(case, changed, version, is_training=False)
    with pytest.raises(ValueError, match="is_training"):
        tape.gradient(result.output, params)


@pytest.mark.parametrize("mode", cases.MODES)
def test_a_loss_goes_down(mode):
    """Twenty steps of gradient descent on the sum of squares of the output."""
    case = Case(mode, 2, "bidirectional", 6, 8, 4, 9, lengths="zeros")
    inputs = case.make_inputs()
    params = tf.Variable(inputs.params)
    losses = []
    for _ in range(20):
        with tf.GradientTape() as tape:
            changed = dataclasses.replace(inputs, params=params)
            loss = tf.reduce_mean(run_ops.forward(case, changed).output ** 2)
        losses.append(float(loss))
        params.assign_sub(0.5 * tape.gradient(loss, params))
    assert all(later < earlier for earlier, later in zip(losses, losses[1:], strict=False))
