"""The Keras layers in training: gradients, dropout, types, compilation, surroundings."""

import random
import subprocess
import sys
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

import layer_cases
from cases import Case
from compare import assert_close
from tf_cudnn_rnn_ops import layers, reference


def data(rows=6, steps=5, width=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, steps, width)).astype(np.float32)
    return x, np.sin(x.sum(axis=(1, 2)))[:, None].astype(np.float32)


def model_of(*recurrent, width=3, **options):
    model = keras.Sequential([keras.Input((None, width)), *recurrent, keras.layers.Dense(1)])
    model.compile(**{"optimizer": "adam", "loss": "mse", **options})
    return model


@pytest.fixture(autouse=True)
def same_weights_each_time():
    """Training from unlucky initial weights need not lower the loss, whoever computes it."""
    keras.utils.set_random_seed(3)


# Gradients.


def test_inference_is_differentiable_without_dropout():
    case = Case("gru", 2, "bidirectional", 3, 2, 2, 3, dtype="float64", time_major=False)
    inputs = case.make_inputs()
    layer = layer_cases.make_layer(
        case, inputs, dropout=0.5, seed=1, return_state=False, return_sequences=False
    )
    x = tf.constant(inputs.input)

    def function(values):
        # The reference's last output: the top layer's final states.
        output_h = reference.forward(
            input=values,
            input_h=np.zeros_like(inputs.input_h),
            input_c=None,
            params=inputs.params,
            **case.attributes(),
        )[1]
        return output_h[:, 2:].reshape(case.B, -1)

    upstream = np.random.default_rng(1).standard_normal((case.B, 2 * case.H))
    expected = np.zeros_like(inputs.input)
    for index in np.ndindex(expected.shape):
        step = np.zeros_like(expected)
        step[index] = 1e-6
        difference = function(inputs.input + step) - function(inputs.input - step)
        expected[index] = np.sum(upstream * difference) / 2e-6
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        loss = tf.reduce_sum(layer(x, training=False) * upstream)
    for _ in range(2):
        assert_close(tape.gradient(loss, x), expected, 1e-6)
    in_graph = tf.function(lambda x: tf.gradients(tf.reduce_sum(layer(x) * upstream), x)[0])
    assert_close(in_graph(x), expected, 1e-6)


@pytest.mark.parametrize("training", [False, True])
def test_persistent_tapes_give_the_same_gradient_twice(training):
    layer = layers.CudnnLSTM(4, 2, "bidirectional", dropout=0.3, seed=2)
    x = tf.constant(data()[0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        output = layer(x, training=training)
        loss = tf.reduce_sum(output**2)
    sources = [x, *(variable.value for variable in layer.trainable_variables)]
    first, second = tape.gradient(loss, sources), tape.gradient(loss, sources)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "graph"])
@pytest.mark.parametrize("pfor", [False, True])
def test_jacobians(training, wrap, pfor):
    layer = layers.CudnnGRU(3, dtype="float64")
    x = tf.constant(data(rows=2, steps=3)[0], tf.float64)
    layer(x)

    @wrap
    def jacobian(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = layer(x, training=training)
        return tape.batch_jacobian(y, x, experimental_use_pfor=pfor)

    actual = jacobian(x).numpy()
    for unit in range(3):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, training=True)[:, unit]
        np.testing.assert_allclose(actual[:, unit], tape.gradient(y, x), atol=1e-12)


def test_vectorized_map():
    layer = layers.CudnnLSTM(3)
    x = tf.constant(data(rows=6)[0])
    layer(x)
    actual = tf.vectorized_map(layer, tf.reshape(x, [3, 2, 5, 3]))
    np.testing.assert_allclose(tf.reshape(actual, [6, 3]), layer(x), atol=1e-6)


def test_second_derivatives_are_refused_by_name():
    layer = layers.CudnnLSTM(3)
    x = tf.constant(data()[0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = layer(x)
        gradient = inner.gradient(y, x)
    with pytest.raises(LookupError, match="CudnnRNNBackpropV3"):
        outer.gradient(gradient, x)


def test_frozen_layers_pass_the_gradient_on():
    layer = layers.CudnnLSTM(4, 2)
    x, y = data()
    model = keras.Sequential(
        [keras.Input((None, 3)), keras.layers.Dense(3), layer, keras.layers.Dense(1)]
    )
    layer.trainable = False
    assert not layer.trainable_variables and len(layer.non_trainable_variables) == 6
    model.compile(keras.optimizers.SGD(0.1), "mse")
    before = [weight.copy() for weight in model.get_weights()]
    model.fit(x, y, epochs=1, verbose=0)
    changed = [not np.array_equal(*pair) for pair in zip(before, model.get_weights(), strict=True)]
    assert changed == [True] * 2 + [False] * 6 + [True] * 2
    with tf.GradientTape() as tape:
        inputs = tf.constant(x)
        tape.watch(inputs)
        loss = tf.reduce_sum(layer(inputs, training=True))
    assert np.any(tape.gradient(loss, inputs))


@pytest.mark.parametrize("name", ["Adam", "RMSprop", "AdamW", "Lion"])
def test_optimizers(name):
    layer = layers.CudnnLSTM(4, 2, "bidirectional", num_proj=2)
    x = data()[0]
    optimizer = getattr(keras.optimizers, name)(0.01)
    layer(x)
    before = layer.get_weights()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(x, training=True) ** 2)
    gradients = tape.gradient(loss, [v.value for v in layer.trainable_variables])
    optimizer.apply(gradients, layer.trainable_variables)
    for old, new in zip(before, layer.get_weights(), strict=True):
        assert np.all(np.isfinite(new)) and not np.array_equal(old, new)


def test_training_follows_keras_gru():
    """Twenty steps from the same weights; Keras' GRU has the same two biases."""
    x, y = data(rows=12)
    ours, stock = layers.CudnnGRU(5), keras.layers.GRU(5)
    models = [model_of(one, optimizer=keras.optimizers.SGD(0.1)) for one in (ours, stock)]
    order = [1, 0, 2]  # r, z, h to z, r, h

    def turned(array, axis):
        blocks = np.split(array, 3, axis)
        return np.concatenate([blocks[gate] for gate in order], axis)

    stock.set_weights(
        [
            turned(ours.kernel_l0.numpy(), 0).T,
            turned(ours.recurrent_kernel_l0.numpy(), 0).T,
            turned(ours.bias_l0.numpy(), 1),
        ]
    )
    models[1].layers[-1].set_weights(models[0].layers[-1].get_weights())
    losses = [
        model.fit(x, y, batch_size=6, epochs=10, shuffle=False, verbose=0).history["loss"]
        for model in models
    ]
    np.testing.assert_allclose(*losses, rtol=1e-4)
    assert losses[0][-1] < losses[0][0]


# Dropout.


def outputs_and_gradients(layer, x, **options):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        output = layer(x, **options)
        loss = tf.reduce_sum(output**2)
    return output.numpy(), tape.gradient(loss, x).numpy()


def test_dropout_acts_between_layers_while_training():
    x, _ = data()
    layer = layers.CudnnGRU(8, 2, dropout=0.5, seed=3, return_sequences=True)
    plain = layers.CudnnGRU(8, 2, return_sequences=True)
    layer(x), plain(x)
    plain.set_weights(layer.get_weights())
    for _ in range(2):
        np.testing.assert_array_equal(layer(x, training=False), plain(x))
        np.testing.assert_array_equal(layer(x), plain(x))
    first, second = layer(x, training=True).numpy(), layer(x, training=True).numpy()
    assert not np.allclose(first, plain(x)) and not np.allclose(first, second)

    # What the upper layer reads is the lower one's output with some elements missing, the rest
    # doubled: undo it with an upper layer that copies what it reads.
    case = Case("rnn_relu", 2, "unidirectional", 4, 30, 20, 20, time_major=False, lengths="none")
    inputs = case.make_inputs()
    inputs.weights[2], inputs.weights[3] = np.eye(20), np.zeros((20, 20))
    inputs.biases[2], inputs.biases[3] = np.zeros(20), np.zeros(20)
    copier = layer_cases.make_layer(case, inputs, dropout=0.25, seed=1, return_state=False)
    kept = copier(inputs.input, training=False).numpy()
    dropped = copier(inputs.input, training=True).numpy()
    live = kept > 0
    ratio = dropped[live] / kept[live]
    np.testing.assert_allclose(ratio[ratio > 0], 1 / 0.75, rtol=1e-5)
    assert np.mean(ratio == 0) == pytest.approx(0.25, abs=0.04)


def test_dropout_of_one_layer_warns_and_does_nothing():
    x, _ = data()
    with pytest.warns(UserWarning, match="dropout=0.5 has no effect with num_layers=1"):
        layer = layers.CudnnLSTM(4, dropout=0.5)
    np.testing.assert_array_equal(layer(x, training=True), layer(x, training=False))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layers.CudnnLSTM(4, 2, dropout=0.5)
        layers.CudnnLSTM(4)


DROPOUT_RUN = """
import sys
import keras, numpy as np, tensorflow as tf
from tf_cudnn_rnn_ops import layers

# What comes before must not matter to a seeded layer; keras.utils.set_random_seed decides for one
# without a seed.
keras.utils.set_random_seed(int(sys.argv[1]))
x = tf.reshape(tf.sin(tf.range(60, dtype=tf.float32)), [4, 5, 3])

def run(seed):
    layer = layers.CudnnLSTM(6, 3, "bidirectional", dropout=0.4, seed=seed, return_sequences=True)
    layer(x)
    rng = np.random.default_rng(0)
    layer.set_weights([rng.standard_normal(w.shape) for w in layer.get_weights()])
    for _ in range(2):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, training=True)
        print(y.numpy().tobytes().hex() + tape.gradient(y, x).numpy().tobytes().hex())

run(11)
keras.utils.set_random_seed(3)
run(None)
"""


def test_dropout_is_reproducible_in_two_processes():
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", DROPOUT_RUN, str(seed)], stdout=subprocess.PIPE, text=True
        )
        for seed in (1, 2)
    ]
    results = [process.communicate(timeout=180)[0].split() for process in processes]
    assert len(results[0]) == 4 and results[0] == results[1]
    assert len(set(results[0])) == 4


def test_dropout_seeds():
    random.seed(0)
    unseeded = [layers.CudnnLSTM(4, 2, dropout=0.5) for _ in range(2)]
    x, _ = data()
    for layer in unseeded[:1] + [
        layers.CudnnLSTM(4, 2, dropout=0.5, seed=s) for s in (5, -(2**63))
    ]:
        assert np.any(layer(x, training=True) != layer(x, training=True))
    assert unseeded[0]._dropout_seed != unseeded[1]._dropout_seed
    assert unseeded[0].get_config()["seed"] is None


def test_gradients_use_the_masks_of_their_forward_call():
    """The gradient in x equals finite differences of calls with the same mask."""
    x, _ = data(rows=3)
    options = {"dropout": 0.5, "return_sequences": True, "dtype": "float64"}
    rng = np.random.default_rng(4)
    weights = None

    def call(x, seed):
        nonlocal weights
        # A function of its own has its own kernel, whose first call draws the seed's first mask.
        layer = layers.CudnnLSTM(4, 2, seed=seed, **options)
        layer.build((None, None, 3))
        if weights is None:
            weights = [rng.standard_normal(w.shape) for w in layer.get_weights()]
        layer.set_weights(weights)

        @tf.function
        def run(x):
            y = tf.reduce_sum(layer(x, training=True) ** 2)
            return y, tf.gradients(y, x)[0]

        return [result.numpy() for result in run(tf.constant(x, tf.float64))]

    x = x.astype(np.float64)
    _, gradient = call(x, 21)
    direction = rng.standard_normal(x.shape)
    step = 1e-6 * direction
    difference = (call(x + step, 21)[0] - call(x - step, 21)[0]) / 2e-6
    assert np.sum(gradient * direction) == pytest.approx(difference, rel=1e-6)


# Types.


@pytest.mark.parametrize(
    "policy", ["float16", "bfloat16", "float64", "mixed_float16", "mixed_bfloat16"]
)
@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_tanh"])
def test_dtype_policies_build_and_train(policy, mode):
    options = {"num_proj": 3} if mode == "lstm" else {}
    layer = layer_cases.CLASSES[mode](4, 2, "bidirectional", dtype=policy, **options)
    x, y = data(rows=16)
    model = model_of(layer, optimizer=keras.optimizers.SGD(0.05))
    losses = model.fit(x, y, epochs=8, batch_size=8, verbose=0).history["loss"]
    assert np.all(np.isfinite(losses)) and losses[-1] < losses[0]
    assert {v.dtype for v in layer.weights} == {layer.variable_dtype}
    assert layer(x).dtype.name == layer.compute_dtype

    exact = type(layer).from_config({**layer.get_config(), "dtype": "float64"})
    exact(x)
    exact.set_weights([np.asarray(w, np.float64) for w in layer.get_weights()])
    tolerance = {"float64": 1e-12, "float16": 5e-3, "bfloat16": 4e-2}[layer.compute_dtype]
    assert_close(np.asarray(layer(x), np.float64), exact(x), tolerance)


def test_low_precision_starts_from_float32_initial_values():
    layer = layers.CudnnLSTM(16, dtype="bfloat16")
    layer(np.zeros((1, 2, 4)))
    for gate in np.split(np.asarray(layer.recurrent_kernel_l0.numpy(), np.float32), 4):
        np.testing.assert_allclose(gate @ gate.T, np.eye(16), atol=2e-2)


# Compilation.


def test_default_compilation_trains():
    layer = layers.CudnnLSTM(4)
    assert layer.supports_jit is False
    x, y = data()
    for model in (model_of(layer), model_of(keras.layers.Bidirectional(layers.CudnnGRU(4)))):
        assert not model.jit_compile
        losses = model.fit(x, y, epochs=3, verbose=0).history["loss"]
        assert losses[-1] < losses[0]
        model.evaluate(x, y, verbose=0)
        model.predict(x, verbose=0)
        model.train_on_batch(x, y)


def test_jit_compile_by_hand():
    x, y = data()
    with pytest.warns(UserWarning, match="doesn't support `jit_compile=True`"):
        model = model_of(layers.CudnnLSTM(4), jit_compile=True)
    model.fit(x, y, verbose=0)

    layer = layers.CudnnLSTM(4, name="encoder")
    layer(x)
    with pytest.raises(
        NotImplementedError, match="encoder: XLA has no kernels .* jit_compile=False"
    ):
        tf.function(layer, jit_compile=True)(x)

    class Late(keras.Model):
        """Its layers come after compile(), so that Keras cannot know."""

        def build(self, input_shape):
            self.encoder = layers.CudnnLSTM(1)
            self.encoder.build(input_shape)

        def call(self, inputs):
            return self.encoder(inputs)

    late = Late()
    late.compile("sgd", "mse", jit_compile=True)
    with pytest.raises(NotImplementedError, match="XLA has no kernels for the CudnnRNN ops"):
        late.fit(x, y, verbose=0)


def test_eager_training_and_steps_per_execution():
    x, y = data()
    losses = []
    for options in ({}, {"run_eagerly": True}, {"steps_per_execution": 2}):
        keras.utils.set_random_seed(0)
        model = model_of(layers.CudnnGRU(4, 2), optimizer=keras.optimizers.SGD(0.1), **options)
        history = model.fit(x, y, batch_size=2, epochs=2, shuffle=False, verbose=0)
        losses.append(history.history["loss"][-1])
    np.testing.assert_allclose(losses, losses[0], rtol=1e-5)


# Surroundings.


def test_datasets_and_callbacks(tmp_path):
    x, y = data(rows=10)
    lengths = np.array([5, 4, 3, 2, 1, 5, 0, 3, 2, 1], np.int32)
    inputs = keras.Input((None, 3), name="x"), keras.Input((), dtype="int32", name="n")
    hidden = layers.CudnnLSTM(4, 2, "bidirectional", name="rnn")(
        inputs[0], sequence_lengths=inputs[1]
    )
    model = keras.Model(inputs, keras.layers.Dense(1)(hidden))
    model.compile("adam", "mse")
    dataset = tf.data.Dataset.from_tensor_slices(({"x": x, "n": lengths}, y)).batch(4)
    history = model.fit(
        dataset,
        validation_data=dataset,
        epochs=3,
        verbose=0,
        callbacks=[
            keras.callbacks.ModelCheckpoint(tmp_path / "best.keras", save_best_only=True),
            keras.callbacks.EarlyStopping(patience=5, restore_best_weights=True),
            keras.callbacks.ReduceLROnPlateau(),
            keras.callbacks.CSVLogger(tmp_path / "log.csv"),
        ],
    )
    assert len(history.history["val_loss"]) == 3
    assert len((tmp_path / "log.csv").read_text().splitlines()) == 4
    restored = keras.models.load_model(tmp_path / "best.keras")
    arguments = {"x": x, "n": lengths}
    np.testing.assert_array_equal(
        restored.predict(arguments, verbose=0), model.predict(arguments, verbose=0)
    )


def test_tensorboard(tmp_path):
    x, y = data()
    model = model_of(layers.CudnnLSTM(4, 2, "bidirectional", name="rnn"))
    callback = keras.callbacks.TensorBoard(tmp_path, histogram_freq=1)
    model.fit(x, y, epochs=2, verbose=0, callbacks=[callback])
    tags = set()
    for path in tmp_path.rglob("events*"):
        for record in tf.data.TFRecordDataset(str(path)):
            event = tf.compat.v1.Event.FromString(record.numpy())
            tags |= {value.tag for value in event.summary.value}
    assert "epoch_loss" in tags
    assert any("kernel_l1_reverse" in tag for tag in tags)
