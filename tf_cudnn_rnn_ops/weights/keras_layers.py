"""To and from Keras' own LSTM, GRU, SimpleRNN and Bidirectional.

Keras' kernels are the transposes of the variables here. Its LSTM and SimpleRNN have one bias: on
the way in it becomes the bias beside the recurrent kernel (the other is zero), on the way out the
two are added. Its GRU keeps both, [2, 3*units], and has its gates in the order z, r, h.
"""

import keras
import numpy as np
import tensorflow as tf

from .canonical import PseudoLayer, check_ours, get_canonical, identity_kernel, make_layer

_TANH = (keras.activations.tanh, keras.ops.tanh, tf.nn.tanh)
_SIGMOID = (keras.activations.sigmoid, keras.ops.sigmoid, tf.nn.sigmoid)
_RELU = (keras.activations.relu, keras.ops.relu, tf.nn.relu)

# Position of our gates among Keras'; the same the other way round.
_ORDER = {"lstm": (0, 1, 2, 3), "gru": (1, 0, 2), "rnn_tanh": (0,), "rnn_relu": (0,)}

_SHARED = ("return_sequences", "return_state", "stateful", "go_backwards")
_KINDS = ("kernel", "recurrent", "bias")


def _mode(layer):
    """rnn_mode of one Keras layer, or None."""
    if type(layer) is keras.layers.LSTM:
        return "lstm"
    if type(layer) is keras.layers.GRU:
        return "gru"
    if type(layer) is keras.layers.SimpleRNN:
        return "rnn_relu" if layer.activation in _RELU else "rnn_tanh"
    return None


def why_not(layer, *, ignore_dropout=False):
    """Why a Keras layer cannot be expressed by these layers; None if it can.

    Args:
      layer: LSTM, GRU, SimpleRNN or a Bidirectional of them.
      ignore_dropout: accept Keras' dropout and recurrent_dropout, which act while training only and
        have no counterpart here, and lose them.
    """
    if isinstance(layer, keras.layers.Bidirectional):
        return _why_not_bidirectional(layer, ignore_dropout)
    mode = _mode(layer)
    if mode is None:
        return f"{type(layer).__name__} is none of LSTM, GRU, SimpleRNN, Bidirectional"
    if mode.startswith("rnn_"):
        if layer.activation not in _TANH + _RELU:
            return f"activation is {_name(layer.activation)}, not tanh or relu"
    else:
        if layer.activation not in _TANH:
            return f"activation is {_name(layer.activation)}, not tanh"
        if layer.recurrent_activation not in _SIGMOID:
            return f"recurrent_activation is {_name(layer.recurrent_activation)}, not sigmoid"
    if mode == "gru" and not layer.reset_after:
        return (
            "reset_after=False applies the reset gate before the recurrent product: another "
            "function, which cuDNN has not"
        )
    if layer.dtype_policy.quantization_mode is not None:
        return f"its weights are quantized ({layer.dtype_policy.quantization_mode})"
    if not ignore_dropout:
        for option in ("dropout", "recurrent_dropout"):
            rate = getattr(layer, option)
            if rate:
                return (
                    f"{option}={rate} drops elements within a layer while training; "
                    "ignore_dropout=True converts it without"
                )
    return None


def _why_not_bidirectional(layer, ignore_dropout):
    if layer.merge_mode != "concat":
        return f"merge_mode is {layer.merge_mode!r}, not 'concat'"
    both = (layer.forward_layer, layer.backward_layer)
    for one in both:
        if isinstance(one, keras.layers.Bidirectional):
            return "it wraps another Bidirectional"
        reason = why_not(one, ignore_dropout=ignore_dropout)
        if reason is not None:
            return reason
    if _mode(both[0]) != _mode(both[1]):
        return "its two directions are different kinds of layer"
    for option in ("units", "use_bias"):
        values = [getattr(one, option) for one in both]
        if values[0] != values[1]:
            return f"its two directions have different {option}: {values[0]}, {values[1]}"
    return None


def _name(activation):
    return getattr(activation, "__name__", repr(activation))


def from_keras(layers, *, ignore_dropout=False, **overrides):
    """A layer that computes what built Keras layers do, with their weights and options.

    Args:
      layers: an LSTM, GRU (reset_after=True), SimpleRNN (tanh or relu), or a Bidirectional of them
        that concatenates; or a list of such layers, equal but for their inputs' width, each reading
        the one before it, optionally with keras.layers.Dropout of one rate between them: they
        become one layer with num_layers > 1.
      ignore_dropout: see `why_not`.
      **overrides: constructor arguments that take the place of what the Keras layers say.

    Raises:
      TypeError: what is no Keras layer.
      ValueError: the layers cannot be expressed; the message says why. Or they are not built.
    """
    stack, dropout = _stack(layers if isinstance(layers, (list, tuple)) else [layers])
    for layer in stack:
        reason = why_not(layer, ignore_dropout=ignore_dropout)
        if reason is not None:
            raise ValueError(f"{layer.name} cannot be converted: {reason}")
        if not layer.built:
            raise ValueError(f"{layer.name} has no weights yet; build its model or call it once")
    bidirectional = isinstance(stack[0], keras.layers.Bidirectional)
    mode = _mode(_one_direction(stack[0]))
    _check_stack(stack, mode, bidirectional)
    pieces = []
    for layer in stack:
        for one in (layer.forward_layer, layer.backward_layer) if bidirectional else (layer,):
            pieces.append(_to_canonical(one, mode))
    options = {**_options(stack, mode), "dropout": dropout, **overrides}
    batch = stack[0].states[0].shape[0] if stack[0].stateful else None
    return make_layer(mode, pieces, bidirectional=bidirectional, batch=batch, **options)


def _stack(layers):
    """The recurrent layers of a list, and the rate of the Dropout layers between them."""
    for layer in layers:
        if not isinstance(layer, keras.Layer):
            raise TypeError(f"layers must be Keras layers, got {type(layer).__name__}")
    if all(isinstance(layer, keras.layers.Dropout) for layer in layers):
        raise ValueError("layers must hold a recurrent layer, got none")
    stack = [layer for layer in layers if not isinstance(layer, keras.layers.Dropout)]
    rates = [layer.rate for layer in layers if isinstance(layer, keras.layers.Dropout)]
    if not rates:
        return stack, 0.0
    between = all(isinstance(layer, keras.layers.Dropout) for layer in layers[1::2])
    if not between or len(layers) % 2 == 0 or len(rates) != len(stack) - 1 or len(set(rates)) > 1:
        raise ValueError(
            "Dropout layers must stand between all recurrent layers and have one rate, "
            f"got {[layer.name for layer in layers]} with rates {rates}"
        )
    return stack, rates[0]


def _one_direction(layer):
    return layer.forward_layer if isinstance(layer, keras.layers.Bidirectional) else layer


def _check_stack(stack, mode, bidirectional):
    if len(stack) == 1:
        return
    first = _one_direction(stack[0])
    for position, layer in enumerate(stack):
        one = _one_direction(layer)
        if isinstance(layer, keras.layers.Bidirectional) != bidirectional or _mode(one) != mode:
            raise ValueError(f"{layer.name} must be of the same kind as {stack[0].name}")
        for option in ("units", "use_bias", "stateful"):
            if getattr(one, option) != getattr(first, option):
                raise ValueError(f"{layer.name} must have the same {option} as {stack[0].name}")
        if one.go_backwards:
            raise ValueError(f"{layer.name} must not have go_backwards in a stack")
        if one.return_state:
            raise ValueError(f"{layer.name} must not return its state in a stack")
        if position < len(stack) - 1 and not one.return_sequences:
            raise ValueError(f"{layer.name} must return sequences, for the layer above it")


def _to_canonical(layer, mode):
    kernel, recurrent, *bias = layer.get_weights()
    order = _ORDER[mode]
    gates = len(order)

    def rows(matrix):
        blocks = np.split(matrix, gates, axis=1)
        return np.concatenate([blocks[gate].T for gate in order])

    if not bias:
        both = None
    elif mode == "gru":
        both = np.concatenate([np.split(bias[0], gates, axis=1)[gate] for gate in order], axis=1)
    else:
        both = np.stack([np.zeros_like(bias[0]), bias[0]])
    return PseudoLayer(rows(kernel), rows(recurrent), both, None)


def _options(stack, mode):
    last, one = stack[-1], _one_direction(stack[-1])
    options = {option: getattr(one, option) for option in _SHARED}
    for kind in _KINDS:
        for role in ("initializer", "regularizer", "constraint"):
            options[f"{kind}_{role}"] = getattr(one, f"{kind}_{role}")
    if mode == "lstm":
        options["unit_forget_bias"] = one.unit_forget_bias
    # A Bidirectional has it always, its layers only where they return sequences.
    options["zero_output_for_mask"] = one is not last or last.zero_output_for_mask
    options["dtype"] = one.dtype_policy
    options["trainable"] = all(layer.trainable for layer in stack)
    options["activity_regularizer"] = last.activity_regularizer
    options["name"] = stack[0].name
    return options


def to_keras(layer):
    """Built Keras layers that, one after the other, compute what a built layer does.

    Returns:
      A list: an LSTM, GRU or SimpleRNN, or a Bidirectional of them, for each of the stacked layers,
      and between them keras.layers.Dropout if the layer has dropout. All but the last return
      sequences; each returns its states if the layer does. Outputs of masked steps are zero, as the
      layer's.

    Raises:
      TypeError: it is none of `tf_cudnn_rnn_ops.layers`.
      ValueError: stock Keras cannot express the layer: a projection, time_major, or go_backwards
        with more than one layer (Keras passes masks on as if the order had not changed). Or the
        layer is not built.
    """
    check_ours(layer)
    if layer.projects:
        raise ValueError(f"{layer.name}: Keras' LSTM has no projection (num_proj={layer.num_proj})")
    if layer.time_major:
        raise ValueError(f"{layer.name}: Keras' layers are batch-major, this one is time_major")
    if layer.go_backwards and layer.num_layers > 1:
        raise ValueError(
            f"{layer.name}: go_backwards with num_layers={layer.num_layers} has no counterpart: "
            "Keras passes a mask on to the next layer as if the order of the steps had not changed"
        )
    pieces = get_canonical(layer)
    directions = layer.num_directions
    batch = layer.states[0].shape[0] if layer.stateful else None
    result = []
    for depth in range(layer.num_layers):
        width = layer.input_size if depth == 0 else directions * layer.units
        one = _keras_layer(layer, depth)
        one.build((batch, None, width))
        weights = []
        for piece in pieces[depth * directions : (depth + 1) * directions]:
            weights += _from_canonical(piece, layer.rnn_mode)
        one.set_weights(weights)
        one.trainable = layer.trainable
        if result and layer.dropout > 0:
            result.append(keras.layers.Dropout(layer.dropout, seed=layer.seed))
        result.append(one)
    return result


def _keras_layer(layer, depth):
    mode, top = layer.rnn_mode, depth == layer.num_layers - 1
    name = layer.name if layer.num_layers == 1 else f"{layer.name}_l{depth}"
    options = {option: getattr(layer, option) for option in (*_SHARED, "use_bias")}
    options["return_sequences"] = layer.return_sequences or not top
    # Without sequences Keras would return a zero for the last step where that is masked.
    options["zero_output_for_mask"] = options["return_sequences"] and (
        layer.zero_output_for_mask or not top
    )
    for kind in _KINDS:
        for role in ("initializer", "regularizer", "constraint"):
            value = getattr(layer, f"{kind}_{role}")
            # One initializer for each gate cannot be said to Keras; the weights are set anyway.
            if not isinstance(value, list):
                options[f"{kind}_{role}"] = value
    if mode == "lstm":
        options["unit_forget_bias"] = layer.unit_forget_bias
    options["dtype"] = layer.dtype_policy
    activity_regularizer = layer.activity_regularizer if top else None
    if layer.num_directions == 1:
        options["name"] = name
        options["activity_regularizer"] = activity_regularizer
    if mode == "lstm":
        one = keras.layers.LSTM(layer.units, **options)
    elif mode == "gru":
        one = keras.layers.GRU(layer.units, reset_after=True, **options)
    else:
        one = keras.layers.SimpleRNN(
            layer.units,
            activation=mode.removeprefix("rnn_"),
            **options,
        )
    if layer.num_directions == 1:
        return one
    backward = type(one).from_config({**one.get_config(), "go_backwards": not one.go_backwards})
    return keras.layers.Bidirectional(
        one,
        backward_layer=backward,
        name=name,
        dtype=layer.dtype_policy,
        activity_regularizer=activity_regularizer,
    )


def _from_canonical(piece, mode):
    order = _ORDER[mode]
    gates = len(order)

    def columns(matrix):
        blocks = np.split(matrix, gates)
        return np.concatenate([blocks[gate].T for gate in order], axis=1)

    kernel = piece.kernel
    if kernel is None:
        recurrent = piece.recurrent_kernel
        kernel = identity_kernel(gates, recurrent.shape[1], recurrent.dtype)
    weights = [columns(kernel), columns(piece.recurrent_kernel)]
    if piece.bias is not None:
        blocks = np.split(piece.bias, gates, axis=1)
        both = np.concatenate([blocks[gate] for gate in order], axis=1)
        weights.append(both if mode == "gru" else both[0] + both[1])
    return weights
