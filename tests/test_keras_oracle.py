"""Forward and gradients against Keras' own layers, and the op called just as Keras calls it."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import cases
import keras_oracle
import run_ops
from cases import Case
from compare import assert_close, relative_error
from tf_cudnn_rnn_ops import raw_ops

CASES = cases.select(cases.GRADIENT_CASES, num_proj=0, time_major=False, L=2)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_equals_keras(case):
    inputs = case.make_inputs()
    expected = keras_oracle.expected(case)
    result = run_ops.forward(case, inputs)
    for name in run_ops.FORWARD_NAMES:
        assert_close(getattr(result, name), expected[name], 1e-12, name)
    gradients = run_ops.backward(case, inputs, result)
    for name in run_ops.BACKWARD_NAMES:
        assert_close(getattr(gradients, name), expected[name], 1e-11, name)


def keras_params(mode, layer):
    """The params buffer as Keras builds it for a layer of its own, without any conversion op."""
    kernel, recurrent, bias = layer.get_weights()
    gates = {"gru": 3, "lstm": 4}[mode]
    kernels = np.split(kernel, gates, axis=1)
    recurrents = np.split(recurrent, gates, axis=1)
    if mode == "gru":
        # Keras keeps z, r, h; the op takes r, z, h, in the kernels and in both rows of biases.
        order = [1, 0, 2]
        kernels = [kernels[g] for g in order]
        recurrents = [recurrents[g] for g in order]
        biases = [np.split(row, gates)[g] for row in bias for g in order]
    else:
        biases = [np.zeros_like(bias), bias]
    weights = [matrix.T.reshape(-1) for matrix in kernels + recurrents]
    return np.concatenate(weights + biases)


def keras_layer(mode, units, features, seed, **options):
    options = {
        "return_sequences": True,
        "return_state": True,
        "bias_initializer": keras.initializers.RandomNormal(stddev=0.4, seed=seed + 1),
        "kernel_initializer": keras.initializers.RandomNormal(stddev=0.3, seed=seed + 2),
        "recurrent_initializer": keras.initializers.RandomNormal(stddev=0.3, seed=seed + 3),
        **options,
    }
    if mode == "lstm":
        layer = keras.layers.LSTM(units, unit_forget_bias=False, **options)
    else:
        layer = keras.layers.GRU(units, reset_after=options.pop("reset_after", True), **options)
    layer.build([None, None, features])
    return layer


def call_as_keras_does(mode, layer, x, mask, go_backwards=False):
    """The op with the attributes and shapes that Keras gives it on a GPU."""
    batch, steps, _ = x.shape
    lengths = np.full([batch], steps, np.int32) if mask is None else mask.sum(1).astype(np.int32)
    if go_backwards:
        x = tf.reverse_sequence(x, lengths, 1)
    state = np.zeros([batch, 1, layer.units], np.float32)
    result = tf.raw_ops.CudnnRNNV3(
        input=x,
        input_h=state,
        input_c=state if mode == "lstm" else 0,
        params=keras_params(mode, layer),
        is_training=True,
        rnn_mode=mode,
        sequence_lengths=lengths,
        time_major=False,
    )
    output = result.output
    if go_backwards:
        output = tf.reverse(tf.reverse_sequence(output, lengths, 1), [1])
    return output.numpy(), result.output_h[:, 0].numpy(), result.output_c.numpy()


@pytest.mark.parametrize("mode", ["gru", "lstm"])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("go_backwards", [False, True])
def test_called_as_keras_calls_it(mode, masked, go_backwards):
    x = np.random.default_rng(0).standard_normal([5, 9, 4]).astype(np.float32)
    lengths = np.array([9, 2, 5, 1, 7])
    mask = np.arange(9)[None, :] < lengths[:, None] if masked else None
    layer = keras_layer(mode, 7, 4, 3, go_backwards=go_backwards, zero_output_for_mask=True)
    expected, expected_h, *expected_c = layer(x, mask=mask)
    output, h, c = call_as_keras_does(mode, layer, x, mask, go_backwards)
    # Both leave the padding of a reversed row in front.
    assert_close(output, expected, 1e-5)
    assert_close(h, expected_h, 1e-5)
    if mode == "lstm":
        assert_close(c[:, 0], expected_c[0], 1e-5)


@pytest.mark.parametrize("mode", ["gru", "lstm"])
def test_through_keras_own_gpu_path(mode, monkeypatch):
    """Keras' private function that builds the params and calls the op on a GPU, here on the CPU.
    It swaps the GRU's gates in a CUDA build only."""
    backend = pytest.importorskip("keras.src.backend.tensorflow.rnn")
    function = getattr(backend, f"_cudnn_{mode}", None)
    if function is None:
        pytest.skip(f"this Keras has no _cudnn_{mode}")
    build_info = {**tf.sysconfig.get_build_info(), "is_cuda_build": True, "is_rocm_build": False}
    monkeypatch.setattr(tf.sysconfig, "get_build_info", lambda: build_info)
    x = tf.random.stateless_normal([3, 6, 4], [1, 2])
    mask = tf.sequence_mask([6, 2, 4], 6)
    layer = keras_layer(mode, 5, 4, 8, zero_output_for_mask=True)
    expected, expected_h, *_ = layer(x, mask=mask)
    kernel, recurrent, bias = [weight.value for weight in layer.weights]
    states = [tf.zeros([3, 5])] * (2 if mode == "lstm" else 1)
    outputs = function(x, *states, kernel, recurrent, bias, mask, False, False, True)
    last, output, final = outputs[0], outputs[1], outputs[2]
    final = final[0] if isinstance(final, (list, tuple)) else final
    assert_close(output, expected, 1e-5)
    assert_close(last, expected_h, 1e-5)
    assert_close(final, expected_h, 1e-5)


def test_gru_is_the_reset_after_variant():
    """With random weights the two variants differ, and the op is not the other one."""
    x = np.random.default_rng(0).standard_normal([3, 6, 4]).astype(np.float32)
    after = keras_layer("gru", 5, 4, 3)
    before = keras_layer("gru", 5, 4, 3, reset_after=False)
    kernel, recurrent, bias = after.get_weights()
    before.set_weights([kernel, recurrent, bias.sum(0)])
    output, _, _ = call_as_keras_does("gru", after, x, None)
    assert relative_error(output, after(x)[0]) < 1e-5
    assert relative_error(output, before(x)[0]) > 1e-3


@pytest.mark.parametrize("piece", range(12))
def test_one_hot_gru_gates(piece):
    """One canonical piece at a time holds a 1, with the others 0: r, u, n each for W, R, bW, bR.
    A gate or a bias in the wrong place cannot hide behind zeros."""
    case = Case("gru", 1, "unidirectional", 4, 3, 2, 5, time_major=False)
    inputs = case.make_inputs()
    pieces = [np.zeros_like(array) for array in inputs.weights + inputs.biases]
    pieces[piece][(1, 1) if piece < 6 else 1] = 1.0
    inputs.weights, inputs.biases = pieces[:6], pieces[6:]
    inputs.params = np.concatenate([array.reshape(-1) for array in pieces])
    expected = keras_oracle.run(case, inputs)
    result = run_ops.forward(case, inputs)
    for name in run_ops.FORWARD_NAMES:
        assert_close(getattr(result, name), expected[name], 1e-6, name)
    gradients = run_ops.backward(case, inputs, result)
    for name in run_ops.BACKWARD_NAMES:
        assert_close(getattr(gradients, name), expected[name], 1e-5, name)


def test_padded_steps_are_zero_where_keras_repeats():
    """The op's rule for padded steps is zero; Keras' unidirectional default repeats the last
    valid output there. Valid steps agree."""
    x = np.random.default_rng(0).standard_normal([2, 5, 4]).astype(np.float32)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], bool)
    layer = keras_layer("lstm", 5, 4, 3)
    expected = layer(x, mask=mask)[0].numpy()
    output, _, _ = call_as_keras_does("lstm", layer, x, mask)
    assert not np.any(output[0, 3:])
    np.testing.assert_array_equal(expected[0, 3], expected[0, 2])
    assert_close(output[mask], expected[mask], 1e-5)


def test_state_of_a_fully_masked_row_is_the_initial_one():
    case = Case("lstm", 1, "unidirectional", 5, 4, 3, 6, lengths="zeros", time_major=False)
    inputs = case.make_inputs()
    inputs.sequence_lengths = np.array([3, 0, 5, 0], np.int32)
    expected = keras_oracle.run(case, inputs)
    for is_training in (True, False):
        result = raw_ops.CudnnRNNV3(
            **inputs.forward(), **case.attributes(), is_training=is_training
        )
        for name in run_ops.FORWARD_NAMES:
            assert_close(getattr(result, name), expected[name], 1e-5, name)
        np.testing.assert_array_equal(result.output_h[1::2], inputs.input_h[1::2])
