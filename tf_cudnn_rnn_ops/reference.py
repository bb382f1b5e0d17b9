"""The CudnnRNN ops in plain NumPy: slow, short, and independent of everything else.

This is the reference that the tests and `python -m tf_cudnn_rnn_ops` hold the ops against. It
shares no code with them, works in float64 throughout and states each formula as docs/rnn.md does.
Arguments have the names that the ops give them, so that the same dictionary of keywords can be
passed to both.

Letters for the sizes: T time steps, B batch, I input_size, H num_units, R width of the output and
of the recurrent state (num_proj with a projection, else H), L num_layers, D directions (1 or 2),
G gates (rnn_relu and rnn_tanh 1, gru 3, lstm 4), p = D * layer + direction the pseudo-layer. W_in
is the width of what a layer reads: I for layer 0, D * R for the later ones.

Nothing is checked here beyond what NumPy itself refuses; checking is the ops' part.
"""

import numpy as np

GATES = {"rnn_relu": 1, "rnn_tanh": 1, "gru": 3, "lstm": 4}


def canonical_shapes(
    *,
    rnn_mode,
    num_layers,
    num_units,
    input_size,
    input_mode="linear_input",
    direction="unidirectional",
    num_proj=0,
):
    """Shapes of the canonical weights and biases, in canonical order.

    For each p: G input weights [H, W_in] (with skip_input [H, 0] in layer 0), G recurrent weights
    [H, R], and with a projection (0 < num_proj < H) one projection [R, H]. Biases: for each p, 2 G
    of [H], first those that go with the input weights. Gate order: gru r, u, n; lstm i, f, g, o.

    Returns (weight_shapes, bias_shapes), two lists of tuples.
    """
    gates = GATES[rnn_mode]
    directions = _directions(direction)
    width = num_proj or num_units
    skip = _skips(input_mode, input_size, num_units, width)
    weight_shapes = []
    for layer in range(num_layers):
        if layer == 0:
            width_in = 0 if skip else input_size
        else:
            width_in = directions * width
        for _ in range(directions):
            weight_shapes += [(num_units, width_in)] * gates
            weight_shapes += [(num_units, width)] * gates
            if width < num_units:
                weight_shapes.append((width, num_units))
    bias_shapes = [(num_units,)] * (2 * gates * num_layers * directions)
    return weight_shapes, bias_shapes


def params_size(**config):
    """Elements of the params buffer. Keywords as for canonical_shapes().

    The sum over layers and directions of G*H*W_in + G*H*R + P + 2*G*H, where P = R*H with a
    projection, else 0.
    """
    weight_shapes, bias_shapes = canonical_shapes(**config)
    return sum(int(np.prod(shape)) for shape in weight_shapes + bias_shapes)


def pack(weights, biases):
    """The params buffer [params_size]: all weights, row-major, then all biases, nothing between.

    weights and biases are the canonical lists; the type of their elements is kept.
    """
    return np.concatenate([np.reshape(part, [-1]) for part in [*weights, *biases]])


def unpack(params, **config):
    """The canonical (weights, biases) of a params buffer: pack() backwards.

    params: [..., params_size]; leading axes stay in front of every weight and bias. Further
    keywords as for canonical_shapes().
    """
    weight_shapes, bias_shapes = canonical_shapes(**config)
    parts = []
    offset = 0
    for shape in weight_shapes + bias_shapes:
        size = int(np.prod(shape))
        parts.append(np.reshape(params[..., offset : offset + size], params.shape[:-1] + shape))
        offset += size
    if offset != params.shape[-1]:
        raise ValueError(f"params must have {offset} elements, got {params.shape[-1]}")
    return parts[: len(weight_shapes)], parts[len(weight_shapes) :]


def forward(
    *,
    input,
    input_h,
    input_c,
    params,
    sequence_lengths=None,
    rnn_mode="lstm",
    input_mode="linear_input",
    direction="unidirectional",
    num_proj=0,
    time_major=True,
    dropout_masks=None,
):
    """What CudnnRNNV3 computes.

    Args:
      input: [T, B, I], or [B, T, I] when not time_major.
      input_h: [L*D, B, R], or [B, L*D, R] when not time_major.
      input_c: lstm: [L*D, B, H], or [B, L*D, H] when not time_major. Else ignored.
      params: [params_size], see pack().
      sequence_lengths: [B] whole numbers in 0..T; None means T for every row.
      rnn_mode, input_mode, direction, num_proj, time_major: as the op's.
      dropout_masks: None, or L-1 arrays shaped as output, the factors (0 or 1 / (1 - dropout)) by
        which the inputs of the layers 1 .. L-1 are multiplied.

    input, input_h, input_c and params may have further axes in front, which broadcast against each
    other; gradients() computes many variations at once that way.

    Returns:
      (output, output_h, output_c) in float64: output [T, B, D*R] or [B, T, D*R], zero from each
      row's length on; output_h as input_h; output_c as input_c for lstm, else empty, [0].
    """
    input = np.asarray(input, np.float64)
    input_h = np.asarray(input_h, np.float64)
    input_c = np.asarray(input_c, np.float64) if rnn_mode == "lstm" else None
    params = np.asarray(params, np.float64)
    if not time_major:
        input = _swap_batch_and_time(input)
        input_h = _swap_batch_and_time(input_h)
        input_c = None if input_c is None else _swap_batch_and_time(input_c)
        dropout_masks = dropout_masks and [_swap_batch_and_time(mask) for mask in dropout_masks]

    steps, batch, input_size = input.shape[-3:]
    directions = _directions(direction)
    pseudo_layers, width = input_h.shape[-3], input_h.shape[-1]
    num_units = input_c.shape[-1] if rnn_mode == "lstm" else width
    num_layers = pseudo_layers // directions
    weights, biases = unpack(
        params,
        rnn_mode=rnn_mode,
        num_layers=num_layers,
        num_units=num_units,
        input_size=input_size,
        input_mode=input_mode,
        direction=direction,
        num_proj=num_proj,
    )
    weights_per_pseudo_layer = len(weights) // pseudo_layers
    biases_per_pseudo_layer = len(biases) // pseudo_layers
    if sequence_lengths is None:
        sequence_lengths = np.full([batch], steps)
    valid = np.arange(steps)[:, None] < np.asarray(sequence_lengths)[None, :]  # [T, B]

    layer_input = input
    final_h, final_c = [], []
    for layer in range(num_layers):
        if layer > 0 and dropout_masks is not None:
            layer_input = layer_input * np.asarray(dropout_masks[layer - 1], np.float64)
        outputs = []
        for reverse in range(directions):
            p = directions * layer + reverse
            output, h, c = _run(
                rnn_mode,
                layer_input,
                input_h[..., p, :, :],
                None if input_c is None else input_c[..., p, :, :],
                weights[p * weights_per_pseudo_layer : (p + 1) * weights_per_pseudo_layer],
                biases[p * biases_per_pseudo_layer : (p + 1) * biases_per_pseudo_layer],
                valid,
                skip=layer == 0 and _skips(input_mode, input_size, num_units, width),
                reverse=bool(reverse),
            )
            outputs.append(output)
            final_h.append(h)
            final_c.append(c)
        layer_input = np.concatenate(outputs, axis=-1)

    output = layer_input
    output_h = np.stack(final_h, axis=-3)
    output_c = np.stack(final_c, axis=-3) if rnn_mode == "lstm" else np.zeros([0])
    if not time_major:
        output = _swap_batch_and_time(output)
        output_h = _swap_batch_and_time(output_h)
        output_c = _swap_batch_and_time(output_c) if rnn_mode == "lstm" else output_c
    return output, output_h, output_c


def gradients(
    *,
    input,
    input_h,
    input_c,
    params,
    output_backprop,
    output_h_backprop,
    output_c_backprop,
    step=1e-5,
    max_bytes=1 << 24,
    **config,
):
    """What CudnnRNNBackpropV3 computes, by central differences of forward().

    For the loss  sum(output * output_backprop) + sum(output_h * output_h_backprop)
    + sum(output_c * output_c_backprop),  every element e of the four differentiable arguments in
    turn gives (loss(e + step) - loss(e - step)) / (2 * step). The error of that is of the order of
    step^2 and of 1e-16 / step, about 1e-10 for values near 1.

    Args:
      input, input_h, input_c, params: as for forward(), without further axes.
      output_backprop, output_h_backprop, output_c_backprop: shaped as forward()'s results;
        output_c_backprop is ignored unless rnn_mode is lstm.
      step: by how much an element is moved.
      max_bytes: roughly how much memory one batch of variations may take.
      config: the other keywords of forward().

    Returns:
      (input_backprop, input_h_backprop, input_c_backprop, params_backprop), float64, shaped as the
      arguments. input_c_backprop is zero unless rnn_mode is lstm.
    """
    arguments = {"input": input, "input_h": input_h, "input_c": input_c, "params": params}
    arguments = {name: np.asarray(value, np.float64) for name, value in arguments.items()}
    has_cell_state = config.get("rnn_mode", "lstm") == "lstm"

    def loss(**changed):
        output, output_h, output_c = forward(**{**arguments, **changed}, **config)
        total = np.sum(output * output_backprop, axis=(-3, -2, -1))
        total = total + np.sum(output_h * output_h_backprop, axis=(-3, -2, -1))
        if has_cell_state:
            total = total + np.sum(output_c * output_c_backprop, axis=(-3, -2, -1))
        return total

    def central_differences(name):
        value = arguments[name]
        gradient = np.zeros(value.size)
        sizes = [*(argument.size for argument in arguments.values()), 8 * np.size(output_backprop)]
        at_once = max(1, max_bytes // (8 * sum(sizes)))
        for first in range(0, value.size, at_once):
            moved = np.arange(first, min(first + at_once, value.size))
            shift = np.zeros([len(moved), value.size])
            shift[np.arange(len(moved)), moved] = step
            shift = np.reshape(shift, (len(moved), *value.shape))
            difference = loss(**{name: value + shift}) - loss(**{name: value - shift})
            gradient[moved] = difference / (2 * step)
        return np.reshape(gradient, value.shape)

    return tuple(
        np.zeros_like(arguments[name])
        if name == "input_c" and not has_cell_state
        else central_differences(name)
        for name in ("input", "input_h", "input_c", "params")
    )


def _run(rnn_mode, x, h, c, weights, biases, valid, *, skip, reverse):
    """One direction of one layer.

    x [..., T, B, W_in]; h [..., B, R]; c [..., B, H] or None; weights and biases those of the
    pseudo-layer; valid [T, B]. Returns output [..., T, B, R] and the final h and c.

    A row's state moves only at its valid steps. So a forward run keeps the state of the last valid
    step to the end, and a reverse run keeps the initial state until it reaches the row's last
    valid step; a row of length 0 keeps its initial state throughout.
    """
    gates = GATES[rnn_mode]
    steps = x.shape[-3]
    # The gates one below the other: W [..., G*H, W_in], R [..., G*H, R], bW and bR [..., G*H].
    W = np.concatenate(weights[:gates], axis=-2)
    R = np.concatenate(weights[gates : 2 * gates], axis=-2)
    P = weights[2 * gates] if len(weights) > 2 * gates else None
    bW = np.concatenate(biases[:gates], axis=-1)
    bR = np.concatenate(biases[gates:], axis=-1)

    # The part of every gate that does not depend on the state, for all steps: [..., T, B, G*H].
    if skip:
        from_input = np.concatenate([x] * gates, axis=-1) + bW[..., None, None, :]
    else:
        from_input = x @ _transpose(W)[..., None, :, :] + bW[..., None, None, :]

    outputs = [None] * steps
    for t in reversed(range(steps)) if reverse else range(steps):
        from_state = h @ _transpose(R) + bR[..., None, :]
        new_h, new_c = _cell(rnn_mode, from_input[..., t, :, :], from_state, h, c)
        if P is not None:
            new_h = new_h @ _transpose(P)
        row_is_valid = valid[t][:, None]
        outputs[t] = np.where(row_is_valid, new_h, 0.0)
        h = np.where(row_is_valid, new_h, h)
        c = None if c is None else np.where(row_is_valid, new_c, c)

    # Broadcasting against a variation of any argument gives every result the same leading axes.
    lead = np.broadcast_shapes(from_input.shape[:-3], h.shape[:-2], R.shape[:-2])
    h = np.broadcast_to(h, lead + h.shape[-2:])
    c = None if c is None else np.broadcast_to(c, lead + c.shape[-2:])
    if steps == 0:
        return np.zeros(lead + (0,) + h.shape[-2:]), h, c
    return np.stack(outputs, axis=-3), h, c


def _cell(rnn_mode, from_input, from_state, h, c):
    """One step: a = W x + bW and b = R h + bR, both [..., B, G*H], to the new h and c [..., B, H].

    rnn_relu, rnn_tanh: h' = act(a + b)
    gru:  r = sigmoid(a_r + b_r), u = sigmoid(a_u + b_u), n = tanh(a_n + r b_n),
          h' = (1 - u) n + u h
    lstm: i, f, o = sigmoid(a + b), g = tanh(a_g + b_g), c' = f c + i g, h' = o tanh(c')
    """
    if rnn_mode == "rnn_relu":
        return np.maximum(from_input + from_state, 0.0), None
    if rnn_mode == "rnn_tanh":
        return np.tanh(from_input + from_state), None
    if rnn_mode == "gru":
        a_r, a_u, a_n = np.split(from_input, 3, axis=-1)
        b_r, b_u, b_n = np.split(from_state, 3, axis=-1)
        r = _sigmoid(a_r + b_r)
        u = _sigmoid(a_u + b_u)
        n = np.tanh(a_n + r * b_n)
        return (1.0 - u) * n + u * h, None
    i, f, g, o = np.split(from_input + from_state, 4, axis=-1)
    new_c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
    return _sigmoid(o) * np.tanh(new_c), new_c


def _sigmoid(x):
    # 1 / (1 + exp(-x)) without overflow.
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def _transpose(matrix):
    return np.swapaxes(matrix, -1, -2)


def _swap_batch_and_time(array):
    return np.swapaxes(array, -3, -2)


def _directions(direction):
    return 2 if direction == "bidirectional" else 1


def _skips(input_mode, input_size, num_units, width):
    # auto_select skips where that is possible: x itself can only be added to gates as wide as it
    # is, and the op refuses skip_input together with a projection.
    possible = input_size == num_units == width
    return input_mode == "skip_input" or (input_mode == "auto_select" and possible)
