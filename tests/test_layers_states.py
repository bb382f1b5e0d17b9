"""The Keras layers' states: order, checks, stateful layers."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import layer_cases
from tf_cudnn_rnn_ops import layers


def x_of(batch=3, steps=4, width=2, seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((batch, steps, width)).astype(dtype)


def test_order_is_that_of_keras_lstm_and_bidirectional():
    """h, c; and forward h, c, backward h, c."""
    x = x_of()
    states = [x_of(3, 4, 5, seed=1)[:, p] for p in range(4)]
    ours = layers.CudnnLSTM(5, direction="bidirectional", return_state=True)
    stock = keras.layers.Bidirectional(keras.layers.LSTM(5, return_state=True))
    ours.build(x.shape)
    stock.build(x.shape)
    weights = []
    for suffix in ("l0", "l0_reverse"):
        weights.append(getattr(ours, f"kernel_{suffix}").numpy().T)
        weights.append(getattr(ours, f"recurrent_kernel_{suffix}").numpy().T)
        weights.append(getattr(ours, f"bias_{suffix}").numpy().sum(axis=0))
    stock.set_weights(weights)
    for one, other in zip(
        ours(x, initial_state=states), stock(x, initial_state=states), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_initial_states_may_be_nested():
    layer = layers.CudnnLSTM(3, 2, "bidirectional", return_state=True)
    x = x_of()
    flat = [np.full((3, 3), 0.1 * p, np.float32) for p in range(8)]
    expected = layer(x, initial_state=flat)
    nested = [
        tuple(flat),
        [[h, c] for h, c in zip(flat[0::2], flat[1::2], strict=True)],
        [[flat[0:2], flat[2:4]], [flat[4:6], flat[6:8]]],
    ]
    for states in nested:
        for one, other in zip(layer(x, initial_state=states), expected, strict=True):
            np.testing.assert_array_equal(one, other)
    gru = layers.CudnnGRU(3)
    state = flat[3]
    np.testing.assert_array_equal(gru(x, initial_state=state), gru(x, initial_state=[state]))


def test_a_sequence_may_be_cut_at_any_step():
    for mode in layer_cases.MODES:
        layer = layer_cases.CLASSES[mode](5, 3, return_sequences=True, return_state=True)
        x = x_of(steps=9)
        whole, *final = layer(x)
        first, *states = layer(x[:, :4])
        second, *states = layer(x[:, 4:], initial_state=states)
        np.testing.assert_allclose(np.concatenate([first, second], axis=1), whole, atol=1e-6)
        for one, other in zip(states, final, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)


WRONG_STATES = [
    ([(3, 4)], r"initial_state must hold 4 tensors, got 1"),
    ([(3, 4)] * 5, r"initial_state must hold 4 tensors, got 5"),
    (
        [(3, 2), (3, 4), (2, 2), (3, 4)],
        r"initial_state\[2\] must be of shape \[3, 2\], got",
    ),
    (
        [(3, 2), (3, 2), (3, 2), (3, 4)],
        r"initial_state\[1\] must be of shape \[3, 4\], got",
    ),
    ([(3, 2), (3, 4), (3, 2), (3, 4, 1)], r"initial_state\[3\] must be of shape \[3, 4\]"),
]


@pytest.mark.parametrize("shapes,message", WRONG_STATES, ids=lambda value: str(value)[:40])
def test_wrong_initial_states(shapes, message):
    layer = layers.CudnnLSTM(4, 2, num_proj=2)
    with pytest.raises(ValueError, match=message):
        layer(x_of(), initial_state=[np.zeros(shape, np.float32) for shape in shapes])


@pytest.mark.parametrize("state", [None, tf.RaggedTensor.from_row_lengths([[1.0] * 4], [1, 0, 0])])
def test_initial_states_that_are_no_tensors(state):
    with pytest.raises(TypeError, match=r"initial_state\[1\] must be a dense tensor, got "):
        layers.CudnnLSTM(4)(x_of(), initial_state=[np.zeros((3, 4), np.float32), state])


def test_a_wrong_batch_size_that_shows_only_at_run_time():
    layer = layers.CudnnGRU(4)
    layer.build((None, None, 2))
    run = tf.function(
        lambda x, state: layer(x, initial_state=state),
        input_signature=[tf.TensorSpec([None, None, 2]), tf.TensorSpec([None, 4])],
    )
    assert run(x_of(), np.zeros((3, 4), np.float32)).shape == (3, 4)
    with pytest.raises(tf.errors.InvalidArgumentError, match="input_h"):
        run(x_of(), np.zeros((2, 4), np.float32))


@pytest.mark.parametrize("policy", ["float64", "float16", "mixed_float16", "mixed_bfloat16"])
def test_states_are_cast_to_the_compute_dtype(policy):
    layer = layers.CudnnLSTM(4, dtype=policy, return_state=True)
    results = layer(x_of(), initial_state=[np.ones((3, 4), np.float32)] * 2)
    assert {one.dtype.name for one in results} == {layer.compute_dtype}
    assert {one.dtype.name for one in layer.get_initial_state(3)} == {layer.compute_dtype}


def test_get_initial_state():
    layer = layers.CudnnLSTM(4, 2, "bidirectional", num_proj=3)
    states = layer.get_initial_state(batch_size=5)
    assert [tuple(state.shape) for state in states] == [(5, 3), (5, 4)] * 4
    assert layer.state_size == [3, 4] * 4
    assert not any(np.any(state) for state in states)
    assert layers.CudnnGRU(4).get_initial_state(tf.constant(2))[0].shape == (2, 4)


@pytest.mark.parametrize("policy", ["float32", "mixed_float16", "mixed_bfloat16"])
@pytest.mark.parametrize("time_major", [False, True])
def test_stateful(policy, time_major):
    layer = layers.CudnnLSTM(
        4, 2, stateful=True, time_major=time_major, dtype=policy, return_sequences=True
    )
    x = x_of(steps=6)
    if time_major:
        x = np.swapaxes(x, 0, 1).copy()
    time_axis = 0 if time_major else 1
    first, second = np.split(x, 2, axis=time_axis)
    plain = type(layer).from_config({**layer.get_config(), "stateful": False})
    plain(x)
    layer(first)
    plain.set_weights(layer.get_weights())
    layer.reset_state()
    whole = plain(x).numpy()
    parts = [layer(first).numpy(), layer(second).numpy()]
    tolerance = 1e-6 if policy == "float32" else 2e-2
    np.testing.assert_allclose(
        np.concatenate(parts, axis=time_axis).astype(float), whole.astype(float), atol=tolerance
    )
    assert {state.dtype.name for state in layer.states} == {layer.compute_dtype}
    assert len(layer.states) == 4 and len(layer.weights) == 6

    # A state given for one call takes the place of the kept one, and is followed by that call's.
    given = [np.full((3, 4), 0.1 * p, np.float32) for p in range(4)]
    from_given = layer(second, initial_state=given).numpy()
    np.testing.assert_array_equal(from_given, plain(second, initial_state=given))
    layer.reset_states(given)
    np.testing.assert_array_equal(layer(second), from_given)
    layer.reset_states()
    np.testing.assert_array_equal(layer(first), parts[0])


def test_stateful_in_a_model():
    model = keras.Sequential(
        [
            keras.Input((None, 2), batch_size=3),
            layers.CudnnGRU(4, stateful=True, return_sequences=True),
            layers.CudnnGRU(4, stateful=True),
        ]
    )
    model.compile("sgd", "mse")
    x = x_of(steps=8)
    together = model.predict(x, verbose=0)
    for layer in model.layers:
        layer.reset_state()
    for part in np.split(x, 4, axis=1):
        apart = model.predict(part, verbose=0)
    np.testing.assert_allclose(apart, together, atol=1e-6)
    model.fit(x, np.zeros((3, 4)), batch_size=3, epochs=2, verbose=0)


def test_refusals_of_stateful_layers():
    layer = layers.CudnnLSTM(4, stateful=True)
    with pytest.raises(ValueError, match="requires a static batch size"):
        layer.build((None, None, 2))
    with pytest.raises(ValueError, match="only a stateful, built layer"):
        layer.reset_state()
    layer = layers.CudnnLSTM(4, stateful=True)
    layer(x_of())
    with pytest.raises(ValueError, match="built for batches of 3 rows was called with 2"):
        layer(x_of(2))
    with pytest.raises(ValueError, match="initial_state must hold 2 tensors"):
        layer.reset_state([np.zeros((3, 4))])
    assert layers.CudnnLSTM(4).states is None


def test_states_of_an_encoder_start_a_decoder():
    """In another type, too."""
    source, target = keras.Input((None, 2)), keras.Input((None, 2))
    _, *states = layers.CudnnLSTM(4, 2, return_state=True)(source)
    decoder = layers.CudnnLSTM(4, 2, return_sequences=True, dtype="mixed_float16")
    model = keras.Model([source, target], decoder(target, initial_state=states))
    assert model.predict([x_of(), x_of(steps=6)], verbose=0).shape == (3, 6, 4)
    model.compile("sgd", "mse")
    model.fit([x_of(), x_of(steps=6)], np.zeros((3, 6, 4)), verbose=0)
