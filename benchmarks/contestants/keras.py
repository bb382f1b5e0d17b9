"""Keras' LSTM, GRU and SimpleRNN layers (not unrolled) inside a tf.function.

One Keras layer for each layer and direction, as keras.layers.Bidirectional has it too. Keras is
batch-major: its input is handed to it that way, not transposed within the time.
"""

import numpy as np
import tensorflow as tf

import keras_oracle
from benchmarks.contestants import BACKWARD_NAMES, FORWARD_NAMES, Unsupported, Work


def prepare(case, inputs, training, threads, jit_compile=None):
    """jit_compile: True to have XLA compile the function."""
    del threads  # TensorFlow's pools have been set for the process.
    if case.R < case.H:
        raise Unsupported("Keras has no projection")
    lstm = case.rnn_mode == "lstm"
    layers = _layers(case, inputs)
    variables = [variable.value for layer in layers for variable in layer.trainable_weights]
    x = tf.constant(np.swapaxes(inputs.input, 0, 1))
    states = [tf.constant(inputs.input_h)] + ([tf.constant(inputs.input_c)] if lstm else [])
    mask = None
    if case.lengths != "none":
        mask = tf.sequence_mask(inputs.sequence_lengths, case.T)
    backprops = [tf.constant(np.swapaxes(inputs.output_backprop, 0, 1))]
    backprops += [tf.constant(inputs.output_h_backprop)]
    backprops += [tf.constant(inputs.output_c_backprop)] if lstm else []

    @tf.function(autograph=False, jit_compile=jit_compile)
    def infer(x, states, mask):
        return _forward(case, layers, x, states, mask, False)

    @tf.function(autograph=False, jit_compile=jit_compile)
    def train(x, states, mask, backprops):
        sources = [x, *states, *variables]
        with tf.GradientTape() as tape:
            tape.watch([x, *states])
            results = _forward(case, layers, x, states, mask, True)
        return results + tape.gradient(results, sources, output_gradients=backprops)

    def call():
        return train(x, states, mask, backprops) if training else infer(x, states, mask)

    outputs = 1 + len(states)

    def values(result):
        result = [tf.convert_to_tensor(each).numpy() for each in result]
        named = dict(zip(FORWARD_NAMES, result[:outputs], strict=False))
        named["output"] = np.swapaxes(named["output"], 0, 1)
        if training:
            gradients = result[outputs : 2 * outputs]
            named.update(zip(BACKWARD_NAMES, gradients, strict=False))
            named["input_backprop"] = np.swapaxes(named["input_backprop"], 0, 1)
            named["params_backprop"] = _params_backprop(case, result[2 * outputs :])
        return named

    return Work(call, values)


def _layers(case, inputs):
    """The layers in the order of pseudo-layers, with the case's weights."""
    layers = []
    for p in range(case.L * case.D):
        options = {"zero_output_for_mask": True} if case.lengths != "none" else {}
        layer = keras_oracle.make_layer(case, go_backwards=bool(p % case.D), **options)
        layer.build((case.B, case.T, case.I if p < case.D else case.D * case.R))
        both = slice(p * 2 * case.G, (p + 1) * 2 * case.G)
        weights = keras_oracle.kernels(case, inputs.weights[both], inputs.biases[both])
        layer.set_weights(weights)
        layers.append(layer)
    return layers


def _forward(case, layers, x, states, mask, training):
    """[output, output_h] and, for lstm, output_c; the output batch-major."""
    finals = [[] for _ in states]
    for layer in range(case.L):
        outputs = []
        for direction in range(case.D):
            p = case.D * layer + direction
            output, *final = layers[p](
                x, mask=mask, initial_state=[state[p] for state in states], training=training
            )
            outputs.append(tf.reverse(output, [1]) if direction else output)
            for kind, state in zip(finals, final, strict=True):
                kind.append(state)
        x = tf.concat(outputs, axis=-1) if case.D == 2 else outputs[0]
    return [x] + [tf.stack(kind) for kind in finals]


def _params_backprop(case, gradients):
    weights, biases = [], []
    for p in range(case.L * case.D):
        layer_weights, layer_biases = keras_oracle.canonical_gradients(
            case, *gradients[3 * p : 3 * p + 3]
        )
        weights += layer_weights
        biases += layer_biases
    return np.concatenate([np.reshape(part, -1) for part in weights + biases])
