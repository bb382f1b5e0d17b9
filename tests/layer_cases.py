"""A Case run through the Keras layers, with the canonical lists as their variables."""

import numpy as np
import tensorflow as tf

from tf_cudnn_rnn_ops import layers

CLASSES = {
    "lstm": layers.CudnnLSTM,
    "gru": layers.CudnnGRU,
    "rnn_tanh": layers.CudnnRNNTanh,
    "rnn_relu": layers.CudnnRNNRelu,
}
MODES = tuple(CLASSES)


def suffixes(case):
    """The variables' suffixes in the order of the pseudo-layers."""
    return [
        f"l{layer}{reverse}"
        for layer in range(case.L)
        for reverse in ("", "_reverse")[: 2 if case.direction == "bidirectional" else 1]
    ]


def make_layer(case, inputs, **options):
    """A layer of the case's configuration that holds the case's weights."""
    options = {
        "input_mode": case.input_mode,
        "time_major": case.time_major,
        "return_sequences": True,
        "return_state": True,
        "dtype": case.dtype,
        **options,
    }
    if case.num_proj:
        options["num_proj"] = case.num_proj
    layer = CLASSES[case.rnn_mode](case.H, case.L, case.direction, **options)
    layer.build(inputs.input.shape)
    weights, biases = list(inputs.weights), list(inputs.biases)
    for suffix in suffixes(case):
        kernel = np.concatenate([weights.pop(0) for _ in range(case.G)])
        if kernel.size:
            getattr(layer, f"kernel_{suffix}").assign(kernel)
        recurrent = np.concatenate([weights.pop(0) for _ in range(case.G)])
        getattr(layer, f"recurrent_kernel_{suffix}").assign(recurrent)
        if 0 < case.num_proj < case.H:
            getattr(layer, f"projection_kernel_{suffix}").assign(weights.pop(0))
        rows = [np.concatenate([biases.pop(0) for _ in range(case.G)]) for _ in range(2)]
        getattr(layer, f"bias_{suffix}").assign(np.stack(rows))
    assert not weights and not biases
    return layer


def flat_states(case, h, c):
    """The layer's list of states from the op's input_h and input_c."""
    axis = 0 if case.time_major else 1
    hidden = [np.take(h, p, axis) for p in range(case.L * case.D)]
    if case.rnn_mode != "lstm":
        return hidden
    cells = [np.take(c, p, axis) for p in range(case.L * case.D)]
    return [state for pair in zip(hidden, cells, strict=True) for state in pair]


def run(case, inputs, **options):
    """The layer's results and gradients under the ops' names, as the oracles return them."""
    layer = make_layer(case, inputs)
    x = tf.constant(inputs.input)
    states = [tf.constant(state) for state in flat_states(case, inputs.input_h, inputs.input_c)]
    upstream = flat_states(case, inputs.output_h_backprop, inputs.output_c_backprop)
    with tf.GradientTape() as tape:
        tape.watch([x, *states])
        output, *final = layer(
            x,
            initial_state=states,
            sequence_lengths=inputs.sequence_lengths,
            **options,
        )
        loss = tf.reduce_sum(output * inputs.output_backprop)
        for state, backprop in zip(final, upstream, strict=True):
            loss += tf.reduce_sum(state * backprop)
    variables = [variable.value for variable in layer.trainable_variables]
    dx, dstates, dvariables = tape.gradient(loss, [x, states, variables])
    return {
        "output": output.numpy(),
        "states": [state.numpy() for state in final],
        "input_backprop": dx.numpy(),
        "states_backprop": [gradient.numpy() for gradient in dstates],
        "variables_backprop": {
            variable.name: gradient.numpy()
            for variable, gradient in zip(layer.trainable_variables, dvariables, strict=True)
        },
    }


def variables_of(case, params):
    """The layer's variables by name from a params buffer (or its gradient), laid out by hand."""
    G, H, R, D = case.G, case.H, case.R, case.D
    skips = case.input_mode == "skip_input"
    pieces, position = {}, 0

    def take(*shape):
        nonlocal position
        size = int(np.prod(shape))
        position += size
        return params[position - size : position].reshape(shape)

    for p, suffix in enumerate(suffixes(case)):
        width = (0 if skips else case.I) if p < D else D * R
        kernel = take(G * H, width)
        if width:
            pieces[f"kernel_{suffix}"] = kernel
        pieces[f"recurrent_kernel_{suffix}"] = take(G * H, R)
        if 0 < case.num_proj < H:
            pieces[f"projection_kernel_{suffix}"] = take(R, H)
    for suffix in suffixes(case):
        pieces[f"bias_{suffix}"] = take(2, G * H)
    assert position == params.size
    return pieces


def randomize(model, seed=0, scale=0.5):
    """Fills all weights, biases too, with numbers that differ."""
    rng = np.random.default_rng(seed)
    model.set_weights(
        [(scale * rng.standard_normal(w.shape)).astype(w.dtype) for w in model.get_weights()]
    )
    return model


def padded_batch(lengths, steps, width, seed=0, dtype=np.float32):
    """[B, T, width] with zeros after each row's length."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((len(lengths), steps, width)).astype(dtype)
    for row, length in enumerate(lengths):
        x[row, length:] = 0
    return x
