"""The Keras layers: values, gradients, variables, initial values, configuration, shapes."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_oracle
import layer_cases
from cases import GRADIENT_CASES, Case
from compare import assert_close
from tf_cudnn_rnn_ops import layers, reference

# Every kind of mode, depth, direction, lengths, layout, input mode and projection occurs.
CASES = GRADIENT_CASES[::13]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.parametrize("training", [False, True])
def test_values_and_gradients(case, training):
    inputs = case.make_inputs()
    actual = layer_cases.run(case, inputs, training=training)
    if case.num_proj:
        torch_oracle = pytest.importorskip("torch_oracle")
        expected = torch_oracle.expected(case)
    else:
        expected = keras_oracle.expected(case)
    states = layer_cases.flat_states(case, expected["output_h"], expected["output_c"])
    dstates = layer_cases.flat_states(
        case, expected["input_h_backprop"], expected["input_c_backprop"]
    )
    assert_close(actual["output"], expected["output"], 1e-10, "output")
    for index, (one, other) in enumerate(zip(actual["states"], states, strict=True)):
        assert_close(one, other, 1e-10, f"state {index}")
    assert_close(actual["input_backprop"], expected["input_backprop"], 1e-8, "input_backprop")
    for index, (one, other) in enumerate(zip(actual["states_backprop"], dstates, strict=True)):
        assert_close(one, other, 1e-8, f"state_backprop {index}")
    wanted = layer_cases.variables_of(case, expected["params_backprop"])
    assert sorted(actual["variables_backprop"]) == sorted(wanted)
    for name, gradient in actual["variables_backprop"].items():
        assert_close(gradient, wanted[name], 1e-8, name)


@pytest.mark.parametrize("mode", layer_cases.MODES)
def test_variables_are_the_canonical_weights(mode):
    layer = layer_cases.CLASSES[mode](6, 2, "bidirectional")
    layer.build((None, None, 4))
    G = layer.gates
    shapes = {variable.path.split("/")[-1]: variable.shape for variable in layer.weights}
    expected = {}
    for suffix, width in (("l0", 4), ("l0_reverse", 4), ("l1", 12), ("l1_reverse", 12)):
        expected[f"kernel_{suffix}"] = (G * 6, width)
        expected[f"recurrent_kernel_{suffix}"] = (G * 6, 6)
        expected[f"bias_{suffix}"] = (2, G * 6)
    assert shapes == expected
    size = reference.params_size(
        num_layers=2, num_units=6, input_size=4, rnn_mode=mode, direction="bidirectional"
    )
    assert layer.count_params() == size
    assert all(getattr(layer, name) is not None for name in expected)


def test_variables_of_a_projection_and_of_skip_input():
    layer = layers.CudnnLSTM(6, 2, num_proj=2)
    layer.build((None, None, 4))
    assert layer.projection_kernel_l1.shape == (2, 6)
    assert layer.kernel_l1.shape == (24, 2)
    assert layer.recurrent_kernel_l0.shape == (24, 2)
    for no_projection in (None, 0, 6):
        plain = layers.CudnnLSTM(6, num_proj=no_projection)
        plain.build((None, None, 4))
        assert len(plain.weights) == 3 and plain.output_width == 6
    skipping = layers.CudnnGRU(4, 2, input_mode="auto_select")
    skipping.build((None, None, 4))
    assert skipping.skips_input and len(skipping.weights) == 5
    linear = layers.CudnnGRU(4, 2, input_mode="auto_select")
    linear.build((None, None, 3))
    assert not linear.skips_input and len(linear.weights) == 6
    assert len(layers.CudnnGRU(4, use_bias=False)(np.zeros((1, 2, 3))).shape) == 2


def test_use_bias_false_is_a_bias_of_zero():
    case = Case("gru", 2, "bidirectional", 4, 3, 2, 5, time_major=False, dtype="float64")
    inputs = case.make_inputs()
    inputs.biases = [np.zeros_like(bias) for bias in inputs.biases]
    with_bias = layer_cases.make_layer(case, inputs)
    without = type(with_bias).from_config({**with_bias.get_config(), "use_bias": False})
    without.build(inputs.input.shape)
    without.set_weights([v.numpy() for v in with_bias.weights if not v.name.startswith("bias")])
    for one, other in zip(with_bias(inputs.input), without(inputs.input), strict=True):
        np.testing.assert_array_equal(one, other)


# Initial values.


def gates_of(variable, gates):
    return np.split(variable.numpy(), gates)


def test_initializers_work_gate_by_gate():
    layer = layers.CudnnLSTM(16, 2, "bidirectional", bias_initializer="random_normal")
    layer.build((None, None, 10))
    for variable in (layer.recurrent_kernel_l0, layer.recurrent_kernel_l1_reverse):
        for gate in gates_of(variable, 4):
            np.testing.assert_allclose(gate @ gate.T, np.eye(16), atol=1e-5)
    limit = np.sqrt(6 / (10 + 16))
    for gate in gates_of(layer.kernel_l0, 4):
        assert 0.8 * limit < np.abs(gate).max() <= limit
    # The forget gate's bias starts at one, and one bias of two at zero.
    np.testing.assert_array_equal(layer.bias_l0.numpy()[0], 0)
    np.testing.assert_array_equal(layer.bias_l0.numpy()[1].reshape(4, 16)[1], 1)
    assert np.unique(layer.bias_l0.numpy()[1].reshape(4, 16)[[0, 2, 3]]).size == 48
    gru = layers.CudnnGRU(8, bias_initializer="random_normal")
    gru.build((None, None, 3))
    assert np.unique(gru.bias_l0.numpy()).size == 48
    no_ones = layers.CudnnLSTM(3, unit_forget_bias=False)
    no_ones.build((None, None, 3))
    np.testing.assert_array_equal(no_ones.bias_l0.numpy(), 0)


@pytest.mark.parametrize("seed", [None, 7])
def test_no_two_matrices_start_alike(seed):
    initializer = keras.initializers.RandomNormal(seed=seed)
    layer = layers.CudnnLSTM(
        5,
        2,
        "bidirectional",
        num_proj=4,
        kernel_initializer=initializer,
        recurrent_initializer=initializer,
        projection_initializer=initializer,
    )
    layer.build((None, None, 4))
    matrices = [v for v in layer.weights if not v.name.startswith("bias")]
    rows = np.concatenate([v.numpy()[:, :4].ravel() for v in matrices])
    assert np.unique(rows).size == rows.size


def test_initial_values_are_reproducible():
    def values(seed=None, kernel_initializer="glorot_uniform"):
        if seed is not None:
            keras.utils.set_random_seed(seed)
        layer = layers.CudnnGRU(4, 2, kernel_initializer=kernel_initializer)
        layer.build((None, None, 3))
        return layer.get_weights()

    for one, other in zip(values(3), values(3), strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(values(3)[0], values(4)[0])
    seeded = [values(None, keras.initializers.HeNormal(seed=1))[0] for _ in range(2)]
    np.testing.assert_array_equal(*seeded)
    generator = keras.random.SeedGenerator(1)
    drawn = [values(None, keras.initializers.HeNormal(seed=generator))[0] for _ in range(2)]
    assert not np.array_equal(*drawn)


def test_fans_are_those_of_the_matrix():
    layer = layers.CudnnRNNTanh(
        200, kernel_initializer=keras.initializers.VarianceScaling(1.0, "fan_in", "uniform", seed=1)
    )
    layer.build((None, None, 10))
    assert np.abs(layer.kernel_l0.numpy()).max() == pytest.approx(np.sqrt(3 / 10), rel=0.01)


def test_an_initializer_for_each_gate():
    layer = layers.CudnnGRU(2, kernel_initializer=["zeros", "ones", keras.initializers.Constant(3)])
    layer.build((None, None, 2))
    np.testing.assert_array_equal(layer.kernel_l0.numpy()[:, 0], [0, 0, 1, 1, 3, 3])
    again = layers.CudnnGRU.from_config(layer.get_config())
    again.build((None, None, 2))
    np.testing.assert_array_equal(again.kernel_l0.numpy(), layer.kernel_l0.numpy())
    with pytest.raises(ValueError, match="kernel_initializer must be .* a list of 3, .* of 2"):
        layers.CudnnGRU(2, kernel_initializer=["zeros", "ones"])


# Regularizers and constraints see the matrices as Keras' layers would show them.


def test_regularizers_see_keras_kernels():
    options = {
        "kernel_regularizer": keras.regularizers.OrthogonalRegularizer(0.1, mode="columns"),
        "recurrent_regularizer": keras.regularizers.L2(0.01),
        "bias_regularizer": keras.regularizers.L1(0.02),
    }
    ours, stock = layers.CudnnLSTM(3, **options), keras.layers.LSTM(3, **options)
    ours.build((None, None, 5))
    stock.build((None, None, 5))
    layer_cases.randomize(ours)
    ours.bias_l0.assign(np.stack([np.zeros(12), np.arange(12)]))
    stock.set_weights(
        [ours.kernel_l0.numpy().T, ours.recurrent_kernel_l0.numpy().T, np.arange(12.0)]
    )
    np.testing.assert_allclose(sorted(ours.losses), sorted(stock.losses), rtol=1e-5)
    projecting = layers.CudnnLSTM(3, num_proj=2, projection_regularizer="l2")
    projecting.build((None, None, 5))
    assert len(projecting.losses) == 1


def test_constraints_see_keras_kernels():
    layer = layers.CudnnLSTM(
        6,
        num_proj=4,
        kernel_constraint=keras.constraints.MaxNorm(0.3, axis=0),
        recurrent_constraint=keras.constraints.UnitNorm(axis=1),
        projection_constraint=keras.constraints.NonNeg(),
        bias_constraint=keras.constraints.MaxNorm(0.01, axis=1),
    )
    model = keras.Sequential([keras.Input((None, 5)), layer, keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    model.fit(np.ones((4, 3, 5)), np.ones((4, 1)), epochs=1, verbose=0)
    assert np.linalg.norm(layer.kernel_l0.numpy().T, axis=0).max() <= 0.3 + 1e-5
    norms = np.linalg.norm(layer.recurrent_kernel_l0.numpy().T, axis=1)
    np.testing.assert_allclose(norms, 1, rtol=1e-4)
    assert layer.projection_kernel_l0.numpy().min() >= 0
    assert np.linalg.norm(layer.bias_l0.numpy(), axis=1).max() <= 0.01 + 1e-5


def test_activity_regularizer():
    layer = layers.CudnnGRU(3, activity_regularizer=keras.regularizers.L1(0.5))
    output = layer(np.ones((2, 4, 3), np.float32))
    assert float(layer.losses[0]) == pytest.approx(0.25 * float(tf.reduce_sum(tf.abs(output))))


# Configuration.

OPTIONS = {
    "units": 6,
    "num_layers": 2,
    "direction": "bidirectional",
    "input_mode": "auto_select",
    "dropout": 0.25,
    "seed": -(2**40),
    "time_major": True,
    "return_sequences": True,
    "return_state": True,
    "stateful": True,
    "go_backwards": True,
    "zero_output_for_mask": False,
    "use_bias": False,
    "kernel_initializer": keras.initializers.HeNormal(seed=3),
    "recurrent_initializer": ["zeros"],
    "bias_initializer": keras.initializers.Constant(0.5),
    "kernel_regularizer": keras.regularizers.L1(0.1),
    "recurrent_regularizer": keras.regularizers.L2(0.2),
    "bias_regularizer": keras.regularizers.L1L2(0.1, 0.2),
    "kernel_constraint": keras.constraints.MaxNorm(2),
    "recurrent_constraint": keras.constraints.NonNeg(),
    "bias_constraint": keras.constraints.UnitNorm(),
    "activity_regularizer": keras.regularizers.L2(0.3),
    "dtype": "mixed_bfloat16",
    "trainable": False,
    "name": "encoder",
}
LSTM_OPTIONS = {
    "num_proj": 5,
    "unit_forget_bias": False,
    "projection_initializer": keras.initializers.Orthogonal(2.0),
    "projection_regularizer": keras.regularizers.L2(0.4),
    "projection_constraint": keras.constraints.MaxNorm(3),
}


@pytest.mark.parametrize("mode", layer_cases.MODES)
def test_every_option_survives_the_configuration(mode):
    layer_class = layer_cases.CLASSES[mode]
    options = dict(OPTIONS, recurrent_initializer=["zeros"] * layer_class.gates)
    if mode == "lstm":
        options |= LSTM_OPTIONS
    layer = layer_class(**options)
    config = layer.get_config()
    assert set(options) <= set(config)
    again = layer_class.from_config(config)
    assert again.get_config() == config
    default = layer_class(3).get_config()
    changed = {name for name in config if config[name] != default.get(name)}
    assert changed >= set(options)
    serialized = keras.saving.serialize_keras_object(layer)
    assert serialized["registered_name"] == f"tf_cudnn_rnn_ops>{layer_class.__name__}"
    assert keras.saving.deserialize_keras_object(serialized).get_config() == config
    # Every constructor argument is a configuration entry, so none can be lost.
    wrapped = keras.layers.Bidirectional(
        layer_class.from_config({**config, "go_backwards": False, "return_state": False})
    )
    inner = wrapped.backward_layer.get_config()
    same = set(config) - {"name", "go_backwards", "return_state", "zero_output_for_mask"}
    assert {name: inner[name] for name in same} == {name: config[name] for name in same}


REFUSED = [
    ({"units": 0}, "units must be an integer of at least 1, got 0"),
    ({"units": 2.5}, "units must be an integer of at least 1, got 2.5"),
    ({"units": 3, "num_layers": 0}, "num_layers must be an integer of at least 1"),
    ({"units": 3, "direction": "both"}, "direction must be one of unidirectional, bidirectional"),
    ({"units": 3, "input_mode": "skip"}, "input_mode must be one of linear_input, skip_input"),
    ({"units": 3, "dropout": 1.0}, "dropout must be at least 0 and less than 1, got 1.0"),
    ({"units": 3, "dropout": float("nan")}, "dropout must be at least 0 and less than 1, got nan"),
    ({"units": 3, "dropout": -0.1}, "dropout must be at least 0"),
    ({"units": 3, "dropout": None}, "dropout must be at least 0 and less than 1, got None"),
    ({"units": 3, "dropout": "0.1"}, "dropout must be at least 0 and less than 1, got '0.1'"),
    ({"units": 3, "seed": 2**63}, "seed must be None or an integer of 64 bits"),
    ({"units": 3, "seed": 1.5}, "seed must be None or an integer of 64 bits"),
    ({"units": 3, "num_proj": 4}, "num_proj must be None or 0 to units=3, got 4"),
    ({"units": 3, "num_proj": -1}, "num_proj must be None or 0 to units=3, got -1"),
    ({"units": 3, "num_proj": True}, "num_proj must be None or 0 to units=3, got True"),
    ({"units": 3, "dtype": "int32"}, "dtype must be one of float16, bfloat16, .*got 'int32'"),
    ({"units": 3, "nonsense": 1}, "nonsense"),
]


@pytest.mark.parametrize("options,message", REFUSED, ids=lambda value: str(value)[:40])
def test_refused_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        layers.CudnnLSTM(**options)


def test_a_projection_is_the_lstms_alone():
    with pytest.raises(ValueError, match="num_proj"):
        layers.CudnnGRU(3, num_proj=2)


def test_refused_inputs():
    with pytest.raises(ValueError, match="expected ndim=3, found ndim=2"):
        layers.CudnnLSTM(3)(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="known last dimension"):
        layers.CudnnLSTM(3).build((None, None, None))
    layer = layers.CudnnLSTM(3)
    layer(np.zeros((1, 2, 4)))
    with pytest.raises(ValueError, match="expected axis -1 .* to have value 4"):
        layer(np.zeros((1, 2, 5)))
    for options in ({"units": 3}, {"units": 4, "num_proj": 2}):
        with pytest.raises(ValueError, match="input_mode='skip_input' requires inputs of width"):
            layers.CudnnLSTM(input_mode="skip_input", **options).build((None, None, 4))


NO_NUMBERS = [
    (np.zeros((1, 2, 4), np.complex64), "inputs must be real numbers, got complex64"),
    (np.full((1, 2, 4), "a"), "inputs must be real numbers, got string"),
    (tf.sparse.from_dense(np.ones((1, 2, 4))), "inputs must be a dense tensor, got SparseTensor"),
    (
        tf.ragged.constant([[["a"] * 4]], ragged_rank=1),
        "inputs must be real numbers, got string",
    ),
]


@pytest.mark.parametrize("inputs,message", NO_NUMBERS, ids=[message for _, message in NO_NUMBERS])
def test_inputs_that_are_no_numbers(inputs, message):
    layer = layers.CudnnGRU(3)
    layer.build((None, None, 4))
    with pytest.raises(TypeError, match=message):
        layer(inputs)


@pytest.mark.parametrize("dtype", ["uint8", "int64", "bool", "float16", "float64"])
def test_inputs_are_cast(dtype):
    layer = layers.CudnnGRU(3)
    x = np.arange(24).reshape(2, 3, 4) % 3
    expected = layer(x.astype(dtype).astype(np.float32))
    np.testing.assert_array_equal(layer(x.astype(dtype)), expected)


# Shapes.


@pytest.mark.parametrize(
    "time_major,sequences,state,direction",
    list(
        itertools.product(
            [False, True], [False, True], [False, True], ["unidirectional", "bidirectional"]
        )
    ),
)
def test_static_shapes_are_the_real_ones(time_major, sequences, state, direction):
    layer = layers.CudnnLSTM(
        5,
        2,
        direction,
        num_proj=3,
        time_major=time_major,
        return_sequences=sequences,
        return_state=state,
    )
    x = np.zeros((7, 2, 4), np.float32)
    actual = keras.tree.map_structure(lambda tensor: tuple(tensor.shape), layer(x))
    assert layer.compute_output_shape(x.shape) == actual
    symbolic = layer(keras.KerasTensor(x.shape))
    assert keras.tree.map_structure(lambda tensor: tuple(tensor.shape), symbolic) == actual

    # In a graph the dimensions that are known stay known.
    traced = tf.function(layer).get_concrete_function(tf.TensorSpec([None, None, 4]))
    first = keras.tree.flatten(traced.structured_outputs)[0]
    width = 3 if direction == "unidirectional" else 6
    assert first.shape.as_list() == ([None, None, width] if sequences else [None, width])
    if state:
        states = keras.tree.flatten(traced.structured_outputs)[1:]
        assert [one.shape[-1] for one in states] == layer.state_size
    known = tf.function(layer).get_concrete_function(tf.TensorSpec(x.shape))
    shapes = [one.shape.as_list() for one in keras.tree.flatten(known.structured_outputs)]
    assert shapes == [list(shape) for shape in (actual if state else [actual])]


def test_summary_and_parameter_count(capsys):
    model = keras.Sequential(
        [keras.Input((None, 143)), layers.CudnnLSTM(143, 3, "bidirectional", name="rnn")]
    )
    model.summary()
    text = capsys.readouterr().out
    assert "(None, 286)" in text and "1,315,600" in text
    assert model.count_params() == 1_315_600


def test_one_trace_for_all_sizes():
    layer = layers.CudnnGRU(3, 2, "bidirectional")
    layer.build((None, None, 4))  # tf.function traces a call that makes variables twice
    traces = 0

    @tf.function(input_signature=[tf.TensorSpec([None, None, 4]), tf.TensorSpec([None], tf.int32)])
    def run(x, lengths):
        nonlocal traces
        traces += 1
        return layer(x, sequence_lengths=lengths)

    for size in range(50):
        batch, steps = size % 7, 1 + size % 11
        assert run(tf.ones([batch, steps, 4]), [steps] * batch).shape == (batch, 6)
    assert traces == 1


def operations(function):
    """Names of all ops of a concrete function and of the functions that it calls."""
    graph = function.graph.as_graph_def()
    nodes = list(graph.node) + [n for one in graph.library.function for n in one.node_def]
    return [node.op for node in nodes]


@pytest.mark.parametrize("training", [False, True])
def test_one_forward_op_per_call(training):
    layer = layers.CudnnLSTM(4, 3, "bidirectional", num_proj=2, return_state=True)
    signature = [tf.TensorSpec([None, None, 4]), tf.TensorSpec([None, None], tf.bool)]
    run = tf.function(lambda x, mask: layer(x, mask=mask, training=training))
    names = operations(run.get_concrete_function(*signature))
    assert [name for name in names if name.startswith("CudnnRNNV")] == ["CudnnRNNV3"]
    assert names.count("CudnnRNNCanonicalToParamsV2") == 1


def test_empty_batches_and_sequences():
    layer = layers.CudnnLSTM(3, 2, "bidirectional", return_sequences=True, return_state=True)
    output, *states = layer(np.zeros((0, 4, 5), np.float32))
    assert output.shape == (0, 4, 6) and states[0].shape == (0, 3)
    initial = [np.full((2, 3), value, np.float32) for value in range(8)]
    output, *states = layer(np.zeros((2, 0, 5), np.float32), initial_state=initial)
    assert output.shape == (2, 0, 6)
    for one, other in zip(states, initial, strict=True):
        np.testing.assert_array_equal(one, other)
