"""A Case computed by Keras: LSTM, GRU(reset_after=True) or SimpleRNN layers, masks, GradientTape.

One Keras layer for each layer and direction, stacked here, so that nothing but a single Keras layer
is relied upon. Keras keeps its kernels transposed, the GRU's gates as z, r, h, and one bias where
the canonical lists have two (the GRU keeps both).
"""

import functools

import keras
import numpy as np
import tensorflow as tf

FORWARD_NAMES = ("output", "output_h", "output_c")
BACKWARD_NAMES = ("input_backprop", "input_h_backprop", "input_c_backprop", "params_backprop")

# Position in Keras' kernels -> gate of the canonical order.
KERAS_GATES = {"rnn_relu": (0,), "rnn_tanh": (0,), "gru": (1, 0, 2), "lstm": (0, 1, 2, 3)}


def kernels(case, weights, biases):
    """(kernel, recurrent_kernel, bias) of a Keras layer from one pseudo-layer's canonical lists."""
    order = KERAS_GATES[case.rnn_mode]
    G = case.G
    kernel = np.concatenate([weights[g].T for g in order], axis=1)
    recurrent = np.concatenate([weights[G + g].T for g in order], axis=1)
    bias_w = np.concatenate([biases[g] for g in order])
    bias_r = np.concatenate([biases[G + g] for g in order])
    bias = np.stack([bias_w, bias_r]) if case.rnn_mode == "gru" else bias_w + bias_r
    return kernel, recurrent, bias


def canonical_gradients(case, kernel, recurrent, bias):
    """(weights, biases) gradients of one pseudo-layer from those of kernels()' results.

    kernel is None for skip_input.
    """
    order = KERAS_GATES[case.rnn_mode]
    places = np.argsort(order)
    H = case.H
    columns = [slice(place * H, (place + 1) * H) for place in places]
    if kernel is None:
        weights = [np.zeros((H, 0))] * case.G
    else:
        weights = [kernel[:, block].T for block in columns]
    weights += [recurrent[:, block].T for block in columns]
    # A sum of two biases hands its gradient to both.
    bias_w, bias_r = bias if case.rnn_mode == "gru" else (bias, bias)
    biases = [bias_w[block] for block in columns] + [bias_r[block] for block in columns]
    return weights, biases


def make_layer(case, **options):
    options = {"dtype": case.dtype, "return_sequences": True, "return_state": True, **options}
    if case.rnn_mode == "lstm":
        return keras.layers.LSTM(case.H, **options)
    if case.rnn_mode == "gru":
        return keras.layers.GRU(case.H, reset_after=True, **options)
    return keras.layers.SimpleRNN(case.H, activation=case.rnn_mode.removeprefix("rnn_"), **options)


def run(case, inputs):
    """Returns a dictionary of NumPy arrays with FORWARD_NAMES and BACKWARD_NAMES, as the ops'.

    The case must not have a projection.
    """
    lstm = case.rnn_mode == "lstm"
    G = case.G
    # Keras layers are batch-major; the states' order is chosen here, [L*D, B, H].
    x = inputs.input if not case.time_major else np.swapaxes(inputs.input, 0, 1)
    h, c = inputs.input_h, inputs.input_c
    if not case.time_major:
        h, c = np.swapaxes(h, 0, 1), np.swapaxes(c, 0, 1)
    x, h, c = tf.constant(x), tf.constant(h), tf.constant(c)
    mask = tf.sequence_mask(inputs.sequence_lengths, case.T)

    pieces = []
    with tf.GradientTape() as tape:
        tape.watch([x, h, c])
        layer_input = x
        finals_h, finals_c = [], []
        for layer in range(case.L):
            outputs = []
            for reverse in range(case.D):
                p = case.D * layer + reverse
                weights = inputs.weights[p * 2 * G : (p + 1) * 2 * G]
                biases = inputs.biases[p * 2 * G : (p + 1) * 2 * G]
                skip = weights[0].shape[1] == 0
                if skip:
                    weights = [np.eye(case.H)] * G + weights[G:]
                keras_layer = make_layer(
                    case, go_backwards=bool(reverse), zero_output_for_mask=True
                )
                keras_layer.build(layer_input.shape)
                keras_layer.set_weights(kernels(case, weights, biases))
                state = [h[p], c[p]] if lstm else [h[p]]
                output, *state = keras_layer(layer_input, mask=mask, initial_state=state)
                outputs.append(tf.reverse(output, [1]) if reverse else output)
                finals_h.append(state[0])
                finals_c.append(state[-1])
                pieces.append((skip, keras_layer.trainable_weights))
            layer_input = tf.concat(outputs, axis=-1)
        output, output_h, output_c = layer_input, tf.stack(finals_h), tf.stack(finals_c)
        if case.time_major:
            output = tf.transpose(output, [1, 0, 2])
        else:
            output_h = tf.transpose(output_h, [1, 0, 2])
            output_c = tf.transpose(output_c, [1, 0, 2])
        loss = tf.reduce_sum(output * inputs.output_backprop)
        loss += tf.reduce_sum(output_h * inputs.output_h_backprop)
        if lstm:
            loss += tf.reduce_sum(output_c * inputs.output_c_backprop)

    variables = [variable.value for _, layer_variables in pieces for variable in layer_variables]
    zero = tf.UnconnectedGradients.ZERO
    dx, dh, dc, *dv = tape.gradient(loss, [x, h, c, *variables], unconnected_gradients=zero)
    dx, dh, dc = dx.numpy(), dh.numpy(), dc.numpy()
    if case.time_major:
        dx = np.swapaxes(dx, 0, 1)
    else:
        dh, dc = np.swapaxes(dh, 0, 1), np.swapaxes(dc, 0, 1)
    all_weights, all_biases = [], []
    for index, (skip, _) in enumerate(pieces):
        kernel, recurrent, bias = [gradient.numpy() for gradient in dv[3 * index : 3 * index + 3]]
        weights, biases = canonical_gradients(case, None if skip else kernel, recurrent, bias)
        all_weights += weights
        all_biases += biases
    params_backprop = np.concatenate([np.reshape(part, -1) for part in all_weights + all_biases])

    output_c = output_c.numpy() if lstm else np.zeros([0])
    results = [output.numpy(), output_h.numpy(), output_c, dx, dh, dc, params_backprop]
    return dict(zip(FORWARD_NAMES + BACKWARD_NAMES, results, strict=True))


@functools.cache
def expected(case, seed=0):
    """run() on the case's own inputs, computed once."""
    return run(case, case.make_inputs(seed))
