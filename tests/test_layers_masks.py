"""The Keras layers' masks, sequence_lengths, ragged inputs and go_backwards."""

import time

import keras
import numpy as np
import pytest
import tensorflow as tf

import layer_cases
from compare import assert_close
from tf_cudnn_rnn_ops import layers

InvalidArgument = tf.errors.InvalidArgumentError
LENGTHS = [3, 0, 5, 1]
STEPS = 5


def mask_of(lengths=LENGTHS, steps=STEPS):
    return np.arange(steps) < np.asarray(lengths)[:, None]


def batch(width=3, lengths=LENGTHS):
    # Values in the padding, so that a layer that reads it is found out.
    rng = np.random.default_rng(5)
    return rng.standard_normal((len(lengths), STEPS, width)).astype(np.float32)


def row_by_row(layer, x, lengths):
    """The layer's outputs for each row on its own, unpadded: the definition of what a mask does."""
    return [
        layer(x[row : row + 1, :length])[0].numpy() if length else None
        for row, length in enumerate(lengths)
    ]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("mode", layer_cases.MODES)
@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
def test_a_mask_is_each_row_alone(mode, direction, training):
    layer = layer_cases.CLASSES[mode](4, 2, direction, return_sequences=True)
    x = batch()
    layer(x)
    layer_cases.randomize(layer)
    masked = layer(x, mask=mask_of(), training=training).numpy()
    by_lengths = layer(x, sequence_lengths=LENGTHS, training=training).numpy()
    np.testing.assert_array_equal(masked, by_lengths)
    for row, expected in enumerate(row_by_row(layer, x, LENGTHS)):
        np.testing.assert_array_equal(masked[row, LENGTHS[row] :], 0)
        if expected is not None:
            assert_close(masked[row, : LENGTHS[row]], expected, 1e-5, f"row {row}")


@pytest.mark.parametrize("direction", ["unidirectional", "bidirectional"])
def test_last_output_is_that_of_the_last_valid_step(direction):
    layer = layers.CudnnGRU(4, 2, direction)
    x = batch()
    initial = [np.full((4, 4), 0.1 * p, np.float32) for p in range(len(layer.state_size))]
    last = layer(x, mask=mask_of(), initial_state=initial).numpy()
    for row, length in enumerate(LENGTHS):
        if length:
            state = [one[row : row + 1] for one in initial]
            expected = layer(x[row : row + 1, :length], initial_state=state)[0]
            np.testing.assert_allclose(last[row], expected, atol=1e-6)
        else:
            top = initial[-layer.num_directions :]
            np.testing.assert_array_equal(last[row], np.concatenate([one[row] for one in top]))


def test_rows_without_a_valid_step():
    layer = layers.CudnnLSTM(4, 2, "bidirectional", return_sequences=True, return_state=True)
    x = tf.constant(batch())
    states = [tf.constant(batch(4)[:, p % STEPS]) for p in range(8)]
    for lengths in (LENGTHS, [0, 0, 0, 0]):
        with tf.GradientTape() as tape:
            tape.watch([x, *states])
            output, *final = layer(x, mask=mask_of(lengths), initial_state=states)
            loss = tf.reduce_sum(output) + sum(
                (p + 1) * tf.reduce_sum(state) for p, state in enumerate(final)
            )
        dx, dstates, dweights = tape.gradient(
            loss, [x, states, [v.value for v in layer.trainable_variables]]
        )
        empty = np.asarray(lengths) == 0
        np.testing.assert_array_equal(output.numpy()[empty], 0)
        np.testing.assert_array_equal(dx.numpy()[empty], 0)
        for p in range(8):
            np.testing.assert_array_equal(final[p].numpy()[empty], states[p].numpy()[empty])
            np.testing.assert_array_equal(dstates[p].numpy()[empty], p + 1)
        if not any(lengths):
            assert all(not np.any(gradient.numpy()) for gradient in dweights)


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "graph"])
def test_a_mask_with_a_hole_names_the_row(wrap):
    mask = mask_of([5, 4, 3, 2])
    mask[2] = [False, False, True, True, True]
    layer = layers.CudnnLSTM(4, name="encoder")
    call = wrap(lambda x, mask: layer(x, mask=mask))
    with pytest.raises(
        InvalidArgument, match=r"(?s)encoder: mask must be right-padded.*\brow\W+2\b"
    ):
        call(tf.constant(batch()), tf.constant(mask))
    mask[2] = True
    assert call(tf.constant(batch()), tf.constant(mask)).shape == (4, 4)


def test_a_mask_with_a_hole_is_found_while_training():
    model = keras.Sequential(
        [keras.Input((None, 3)), keras.layers.Masking(), layers.CudnnGRU(2), keras.layers.Dense(1)]
    )
    model.compile("sgd", "mse")
    x = batch(lengths=[1, 1, 1, 1])
    model.fit(x, np.zeros((4, 1)), verbose=0)
    x[1, 2] = 0
    with pytest.raises(InvalidArgument, match=r"(?s)mask must be right-padded.*\brow\W+1\b"):
        model.fit(x, np.zeros((4, 1)), shuffle=False, verbose=0)


WRONG_MASKS = [
    (np.ones((4, 6), bool), ValueError, r"mask must be \[batch, time\] .*\(4, 5\), got \(4, 6\)"),
    (np.ones((4, 4), bool), ValueError, r"mask must be \[batch, time\]"),
    (np.ones((3, 5), bool), ValueError, r"got \(3, 5\)"),
    (np.ones((4,), bool), ValueError, r"mask must be \[batch, time\]"),
    (np.ones((4, 5, 1), bool), ValueError, r"mask must be \[batch, time\]"),
    (np.ones((4, 5), np.int32), TypeError, "mask must be boolean, got int32"),
    (np.ones((4, 5), np.float32), TypeError, "mask must be boolean, got float32"),
    (
        tf.ragged.constant([[True], [True], [], [True]]),
        TypeError,
        "mask must be a dense tensor, got RaggedTensor",
    ),
]


@pytest.mark.parametrize("mask,error,message", WRONG_MASKS, ids=lambda value: str(value)[:30])
def test_wrong_masks(mask, error, message):
    with pytest.raises(error, match=message):
        layers.CudnnLSTM(4)(batch(), mask=mask)


@pytest.mark.parametrize("shape", [(4, 6), (4, 4), (3, 5), (5, 5)])
def test_wrong_masks_of_unknown_shape(shape):
    layer = layers.CudnnLSTM(4)
    layer.build((None, None, 3))
    run = tf.function(
        lambda x, mask: layer(x, mask=mask),
        input_signature=[tf.TensorSpec([None, None, 3]), tf.TensorSpec([None, None], tf.bool)],
    )
    assert run(batch(), np.ones((4, 5), bool)).shape == (4, 4)
    with pytest.raises(InvalidArgument, match=r"(?s)mask must be \[batch, time\].*4 5.*got"):
        run(batch(), np.ones(shape, bool))


WRONG_LENGTHS = [
    ([3, 0, 6, 1], InvalidArgument, r"sequence_lengths.*5.*6"),
    ([3, 0, -1, 1], InvalidArgument, r"sequence_lengths.*-1"),
    (np.array([3, 0, 2**32 + 3, 1]), InvalidArgument, "sequence_lengths"),
    (np.array([3, 0, -(2**40), 1]), InvalidArgument, "sequence_lengths"),
    (np.array([3, 0, 2**63, 1], np.uint64), InvalidArgument, "sequence_lengths"),
    ([3, 0, 5], ValueError, r"sequence_lengths must be of shape \[4\], .* got \(3,\)"),
    ([[3, 0, 5, 1]], ValueError, r"sequence_lengths must be of shape \[4\]"),
    ([3.0, 0.0, 5.0, 1.0], TypeError, "sequence_lengths must be integers, got float32"),
]


@pytest.mark.parametrize("lengths,error,message", WRONG_LENGTHS, ids=lambda value: str(value)[:30])
def test_wrong_lengths(lengths, error, message):
    with pytest.raises(error, match=message):
        layers.CudnnLSTM(4)(batch(), sequence_lengths=lengths)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "uint32", "uint64"])
def test_lengths_of_every_integer_type(dtype):
    layer = layers.CudnnLSTM(4)
    expected = layer(batch(), mask=mask_of())
    actual = layer(batch(), sequence_lengths=np.array(LENGTHS, dtype))
    np.testing.assert_array_equal(actual, expected)


def test_only_one_source_of_lengths():
    layer = layers.CudnnLSTM(4)
    with pytest.raises(ValueError, match="give sequence_lengths or mask, not both"):
        layer(batch(), mask=mask_of(), sequence_lengths=LENGTHS)
    ragged = tf.RaggedTensor.from_tensor(batch(), lengths=LENGTHS)
    with pytest.raises(ValueError, match="ragged inputs carry their own lengths"):
        layer(ragged, sequence_lengths=LENGTHS)


def test_an_attached_mask():
    """Also beside an initial state, where Keras does not pass it on; lengths override it."""
    layer = layers.CudnnGRU(4)
    attached = keras.layers.Masking()(layer_cases.padded_batch(LENGTHS, STEPS, 3))
    values = tf.constant(attached.numpy())
    state = batch(4)[:, 0]
    np.testing.assert_array_equal(layer(attached), layer(values, mask=mask_of()))
    np.testing.assert_array_equal(
        layer(attached, initial_state=state),
        layer(values, mask=mask_of(), initial_state=state),
    )
    for lengths in ([5, 5, 5, 5], tf.constant([5, 5, 5, 5])):
        np.testing.assert_array_equal(layer(attached, sequence_lengths=lengths), layer(values))


def test_masks_of_the_outputs():
    x = keras.layers.Masking()(layer_cases.padded_batch(LENGTHS, STEPS, 3))
    values = tf.constant(x.numpy())
    for options, expected in (
        ({"return_sequences": True}, mask_of()),
        ({"return_sequences": True, "go_backwards": True}, mask_of()[:, ::-1]),
        ({}, None),
    ):
        layer = layers.CudnnLSTM(4, **options)
        given = [layer(x), layer(values, sequence_lengths=LENGTHS), layer(values, mask=mask_of())]
        if "go_backwards" not in options:
            given.append(layer(x, sequence_lengths=LENGTHS))
        for output in given:
            mask = getattr(output, "_keras_mask", None)
            assert (mask is None) == (expected is None)
            if expected is not None:
                np.testing.assert_array_equal(mask, expected)
        assert getattr(layer(values), "_keras_mask", None) is None
    with_state = layers.CudnnLSTM(4, return_sequences=True, return_state=True)
    masks = with_state.compute_mask(x, tf.constant(mask_of()))
    np.testing.assert_array_equal(masks[0], mask_of())
    assert masks[1:] == [None, None]
    assert with_state.compute_mask(x, None) == [None, None, None]
    assert layers.CudnnLSTM(4).compute_mask(x, tf.constant(mask_of())) is None


def test_time_major_masks():
    major = layers.CudnnLSTM(4, 2, "bidirectional", time_major=True, return_sequences=True)
    minor = layers.CudnnLSTM(4, 2, "bidirectional", return_sequences=True)
    x = batch()
    minor(x)
    major(x)
    major.set_weights(minor.get_weights())
    swapped = np.swapaxes(x, 0, 1).copy()
    expected = np.swapaxes(minor(x, mask=mask_of()).numpy(), 0, 1)
    np.testing.assert_array_equal(major(swapped, mask=mask_of().T), expected)
    output = major(swapped, sequence_lengths=LENGTHS)
    np.testing.assert_array_equal(output, expected)
    np.testing.assert_array_equal(output._keras_mask, mask_of().T)
    with pytest.raises(ValueError, match=r"mask must be \[time, batch\]"):
        major(swapped, mask=mask_of())


def stock_twin(layer, stock, width):
    """A Keras LSTM with the weights of a layer of one layer and direction."""
    stock.build((None, None, width))
    stock.set_weights(
        [
            layer.kernel_l0.numpy().T,
            layer.recurrent_kernel_l0.numpy().T,
            layer.bias_l0.numpy().sum(axis=0),
        ]
    )
    return stock


@pytest.mark.parametrize("sequences", [False, True])
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_padded_steps_and_go_backwards_as_in_keras(sequences, zero, backwards, masked):
    if zero and not sequences:
        pytest.skip("Keras returns zero for the last output where its last step is masked")
    options = {
        "return_sequences": sequences,
        "return_state": True,
        "zero_output_for_mask": zero,
        "go_backwards": backwards,
    }
    layer = layers.CudnnLSTM(4, **options)
    layer.build((None, None, 3))
    layer_cases.randomize(layer)
    stock = stock_twin(layer, keras.layers.LSTM(4, **options), 3)
    mask = tf.constant(mask_of()) if masked else None
    for ours, theirs in zip(layer(batch(), mask=mask), stock(batch(), mask=mask), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


def test_repeated_outputs_have_gradients():
    layer = layers.CudnnLSTM(4, return_sequences=True, zero_output_for_mask=False)
    layer.build((None, None, 3))
    stock = stock_twin(layer, keras.layers.LSTM(4, return_sequences=True), 3)
    x, mask = tf.constant(batch()), tf.constant(mask_of())
    gradients = []
    for one in (layer, stock):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(one(x, mask=mask) ** 3)
        gradients.append(tape.gradient(loss, x))
    np.testing.assert_allclose(*gradients, atol=1e-6)


@pytest.mark.parametrize("mode", layer_cases.MODES)
def test_go_backwards_reads_each_row_from_its_end(mode):
    layer = layer_cases.CLASSES[mode](3, 2, "bidirectional", return_sequences=True)
    x = batch()
    layer(x)
    backwards = type(layer).from_config({**layer.get_config(), "go_backwards": True})
    backwards(x)
    backwards.set_weights(layer.get_weights())
    output = backwards(x, sequence_lengths=LENGTHS).numpy()
    for row, length in enumerate(LENGTHS):
        np.testing.assert_array_equal(output[row, : STEPS - length], 0)
        if length:
            expected = layer(x[row : row + 1, :length][:, ::-1].copy())[0]
            np.testing.assert_allclose(output[row, STEPS - length :], expected, atol=1e-6)


RAGGED = [{}, {"go_backwards": True}, {"return_state": True}]


@pytest.mark.parametrize("options", RAGGED, ids=str)
@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "graph"])
def test_ragged_inputs(options, wrap):
    layer = layers.CudnnGRU(4, 2, "bidirectional", return_sequences=True, **options)
    x = batch()
    layer(x)
    ragged = tf.RaggedTensor.from_tensor(tf.constant(x), lengths=LENGTHS)
    output = wrap(layer)(ragged)
    if "return_state" in options:
        output, *states = output
        _, *expected = layer(x, sequence_lengths=LENGTHS)
        for one, other in zip(states, expected, strict=True):
            np.testing.assert_array_equal(one, other)
    assert isinstance(output, tf.RaggedTensor)
    np.testing.assert_array_equal(output.row_lengths(), LENGTHS)
    for row, expected in enumerate(row_by_row(layer, x, LENGTHS)):
        if expected is not None and "return_state" not in options:
            np.testing.assert_allclose(output[row], expected, atol=1e-6)
    last = layers.CudnnGRU(4)
    np.testing.assert_array_equal(wrap(last)(ragged), last(x, sequence_lengths=LENGTHS))


def test_ragged_inputs_train():
    inputs = keras.Input((None, 3), ragged=True)
    sequences = layers.CudnnLSTM(4, return_sequences=True)(inputs)
    assert sequences.ragged
    outputs = keras.layers.Dense(1)(layers.CudnnLSTM(4)(sequences))
    model = keras.Model(inputs, outputs)
    model.compile("sgd", "mse")
    ragged = tf.RaggedTensor.from_tensor(batch(), lengths=LENGTHS)
    data = tf.data.Dataset.from_tensor_slices((ragged, np.ones((4, 1)))).batch(2)
    model.fit(data, epochs=2, verbose=0)
    assert model.predict(data, verbose=0).shape == (4, 1)


def test_wrong_ragged_inputs():
    two = tf.ragged.constant([[[[1.0], [2.0]], [[3.0]]]])
    with pytest.raises(ValueError):
        layers.CudnnLSTM(4)(two)
    flat = tf.ragged.constant([[1.0, 2.0], [3.0]])
    with pytest.raises(ValueError):
        layers.CudnnLSTM(4)(flat)
    ragged = tf.RaggedTensor.from_tensor(batch(), lengths=LENGTHS)
    with pytest.raises(ValueError, match="time_major must be False"):
        layers.CudnnLSTM(4, time_major=True)(ragged)


def test_a_mask_costs_little():
    """Less than 2 ms a call, in a graph after warm-up."""
    layer = layers.CudnnLSTM(8)
    x = tf.constant(np.random.default_rng(0).standard_normal((32, 50, 8)), tf.float32)
    mask = tf.sequence_mask(tf.range(32) + 19)
    lengths = tf.range(32, dtype=tf.int32) + 19
    assert mask.shape == (32, 50)
    masked = tf.function(lambda x, mask: layer(x, mask=mask))
    plain = tf.function(lambda x, lengths: layer(x, sequence_lengths=lengths))

    def seconds(call):
        start = time.perf_counter()
        call().numpy()
        return time.perf_counter() - start

    # In turn, and the shortest of each, which is what a call costs however busy the machine is.
    rounds = [
        (seconds(lambda: masked(x, mask)), seconds(lambda: plain(x, lengths))) for _ in range(200)
    ]
    with_mask, without = np.min(rounds[20:], axis=0)
    assert with_mask - without < 2e-3
