"""The Keras layers inside models of every kind."""

import io
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

import layer_cases
from tf_cudnn_rnn_ops import layers

L = keras.layers


def x_of(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def bidirectional_twin(layer, **options):
    """Stock Keras' Bidirectional with the weights of a bidirectional LSTM of one layer."""
    stock = L.Bidirectional(L.LSTM(layer.units, return_sequences=layer.return_sequences, **options))
    stock.build((None, None, layer.input_size))
    weights = []
    for suffix in ("l0", "l0_reverse"):
        weights.append(getattr(layer, f"kernel_{suffix}").numpy().T)
        weights.append(getattr(layer, f"recurrent_kernel_{suffix}").numpy().T)
        weights.append(getattr(layer, f"bias_{suffix}").numpy().sum(axis=0))
    stock.set_weights(weights)
    return stock


def test_masking_embedding_and_stacks():
    """Masks travel from layer to layer; two stacked bidirectional layers as in Keras."""
    tokens = np.array([[4, 2, 5, 0, 0], [1, 0, 0, 0, 0], [3, 3, 1, 2, 4], [0, 0, 0, 0, 0]])
    embedding = L.Embedding(6, 3, mask_zero=True)
    first = layers.CudnnLSTM(4, direction="bidirectional", return_sequences=True)
    second = layers.CudnnLSTM(3, direction="bidirectional")
    model = keras.Sequential([keras.Input((None,), dtype="int32"), embedding, first, second])
    layer_cases.randomize(model)
    stock = keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            embedding,
            bidirectional_twin(first),
            bidirectional_twin(second),
        ]
    )
    np.testing.assert_allclose(
        model.predict(tokens, verbose=0), stock.predict(tokens, verbose=0), atol=1e-6
    )


@pytest.mark.parametrize("merge_mode", ["concat", "sum", None])
@pytest.mark.parametrize("sequences", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_keras_bidirectional_of_ours(merge_mode, sequences, masked):
    """Equal to our own direction="bidirectional"."""
    wrapped = L.Bidirectional(
        layers.CudnnLSTM(4, 2, return_sequences=sequences, return_state=True), merge_mode=merge_mode
    )
    x = tf.constant(x_of(3, 5, 2))
    mask = tf.sequence_mask([3, 5, 0], 5) if masked else None
    output = wrapped(x, mask=mask)
    assert wrapped.backward_layer.go_backwards and len(wrapped.weights) == 12
    both = output[:2] if merge_mode is None else [output[0]]
    forward, *forward_states = wrapped.forward_layer(x, mask=mask)
    backward, *backward_states = wrapped.backward_layer(x, mask=mask)
    for one, other in zip(output[len(both) :], forward_states + backward_states, strict=True):
        np.testing.assert_array_equal(one, other)
    if sequences:
        backward = backward[:, ::-1]
    expected = {
        "concat": lambda: [np.concatenate([forward, backward], axis=-1)],
        "sum": lambda: [forward + backward],
        None: lambda: [forward, backward],
    }[merge_mode]()
    for one, other in zip(both, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    # The backward half, aligned, is that of a bidirectional layer with the same weights.
    if merge_mode == "concat":
        single = L.Bidirectional(layers.CudnnLSTM(4, return_sequences=sequences))
        own = layers.CudnnLSTM(4, direction="bidirectional", return_sequences=sequences)
        single(x), own(x)
        own.set_weights(single.get_weights())
        np.testing.assert_allclose(single(x, mask=mask), own(x, mask=mask), atol=1e-6)


def test_bidirectional_with_initial_states():
    wrapped = L.Bidirectional(layers.CudnnGRU(4, return_state=True))
    states = [x_of(3, 4, seed=1), x_of(3, 4, seed=2)]
    output, *final = wrapped(x_of(3, 5, 2), initial_state=states)
    assert output.shape == (3, 8) and len(final) == 2
    np.testing.assert_array_equal(output, np.concatenate(final, axis=-1))


@pytest.mark.parametrize("time", [3, None])
def test_time_distributed(time):
    layer = layers.CudnnGRU(4, 2, "bidirectional", return_sequences=True)
    model = keras.Sequential([keras.Input((time, 5, 2)), L.TimeDistributed(layer)])
    assert model.output_shape == (None, time, 5, 8)
    x = x_of(2, 3, 5, 2)
    output = model(x)
    for step in range(3):
        np.testing.assert_allclose(output[:, step], layer(x[:, step]), atol=1e-6)
    masked = keras.Sequential([keras.Input((3, 5, 2)), L.Masking(), L.TimeDistributed(layer)])
    x[0, 1, 2:] = 0
    output = masked(x).numpy()
    np.testing.assert_array_equal(output[0, 1, 2:], 0)
    np.testing.assert_allclose(output[0, 1, :2], layer(x[:1, 1, :2])[0], atol=1e-6)


def functional_model():
    x, n = keras.Input((None, 3), name="x"), keras.Input((), dtype="int32", name="n")
    sequences, *states = layers.CudnnLSTM(
        4, 2, "bidirectional", num_proj=2, return_sequences=True, return_state=True, name="bottom"
    )(x, sequence_lengths=n)
    merged = L.Concatenate()(states[0:8:2])
    top = layers.CudnnGRU(3, name="top")(
        sequences, sequence_lengths=n, initial_state=L.Dense(3)(merged)
    )
    return keras.Model([x, n], L.Dense(1)(top))


def test_functional_models():
    model = functional_model()
    x, n = x_of(5, 6, 3), np.array([6, 1, 0, 3, 5], np.int32)
    expected = model.predict([x, n], verbose=0)
    x[1, 1:] = 100  # padding
    np.testing.assert_array_equal(model.predict([x, n], verbose=0), expected)
    model.compile("sgd", "mse")
    model.fit([x, n], np.zeros((5, 1)), verbose=0)
    assert all(shape is not None for shape in model.get_layer("bottom").output[0].shape[2:])


class Encoder(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.rnn = layers.CudnnRNNTanh(4, 2, return_sequences=True)
        self.pool = L.GlobalMaxPooling1D()
        self.head = L.Dense(1)

    def build(self, input_shape):
        self.rnn.build(input_shape)
        self.head.build((None, 4))
        self.built = True

    def call(self, inputs, training=None):
        return self.head(self.pool(self.rnn(inputs, training=training)))


def test_subclassed_and_nested_models():
    encoder = Encoder()
    inputs = keras.Input((None, 3))
    nested = keras.Sequential([keras.Input((None, 3)), layers.CudnnGRU(3, return_sequences=True)])
    model = keras.Model(inputs, encoder(nested(inputs)))
    model.compile("sgd", "mse")
    model.fit(x_of(4, 5, 3), np.zeros((4, 1)), verbose=0)
    assert len(model.trainable_variables) == 3 + 6 + 2


def test_shared_layers():
    shared = layers.CudnnLSTM(4)
    a, b = keras.Input((None, 3)), keras.Input((7, 3))
    model = keras.Model([a, b], L.Subtract()([shared(a), shared(b)]))
    x = x_of(2, 7, 3)
    np.testing.assert_array_equal(model.predict([x, x], verbose=0), 0)
    assert len(model.weights) == 3


def test_clone_and_json_keep_the_model():
    model = functional_model()
    arguments = [x_of(3, 4, 3), np.array([4, 2, 0], np.int32)]
    expected = model.predict(arguments, verbose=0)
    copies = [
        keras.models.clone_model(model),
        keras.models.model_from_json(model.to_json()),
        keras.Model.from_config(model.get_config()),
    ]
    for copy in copies:
        for one, other in zip(model.layers, copy.layers, strict=True):
            assert json.dumps(one.get_config()) == json.dumps(other.get_config())
        copy.set_weights(model.get_weights())
        np.testing.assert_array_equal(copy.predict(arguments, verbose=0), expected)


def test_summary_of_a_functional_model():
    stream = io.StringIO()
    functional_model().summary(print_fn=lambda line: stream.write(line + "\n"))
    assert "bottom (CudnnLSTM)" in stream.getvalue()
