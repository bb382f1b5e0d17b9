"""From TensorFlow 1: weights of compat.v1's CuDNNLSTM and CuDNNGRU, tf.contrib's checkpoints."""

import re

import numpy as np
import tensorflow as tf

from .canonical import PseudoLayer, check_shape, make_layer

_GATES = {"lstm": 4, "gru": 3}
# Their gates in the order of ours: tf.compat.v1's GRU has z, r, h where the canonical lists have
# r, z, h; tf.contrib's LSTM has i, c, f, o where they have i, f, c, o.
_COMPAT_V1_GRU = (1, 0, 2)
_CONTRIB_LSTM = (0, 2, 1, 3)

_CELL = re.compile(
    r"(?P<scope>(?:.*/)?)"
    r"(?:rnn/multi_rnn_cell/cell_(?P<uni>\d+)"
    r"|stack_bidirectional_rnn/cell_(?P<bi>\d+)/bidirectional_rnn/(?P<direction>fw|bw))"
    r"/(?P<cell>cudnn_compatible_lstm_cell|cudnn_compatible_gru_cell|basic_rnn_cell)/(?P<name>.+)"
)
_NAMES = {
    "cudnn_compatible_lstm_cell": {"kernel", "bias"},
    "cudnn_compatible_gru_cell": {
        "gates/kernel",
        "gates/bias",
        "candidate/input_projection/kernel",
        "candidate/input_projection/bias",
        "candidate/hidden_projection/kernel",
        "candidate/hidden_projection/bias",
    },
    "basic_rnn_cell": {"kernel", "bias"},
}


def _blocks(array, count):
    return np.split(np.asarray(array), count, axis=-1)


def from_compat_v1(weights, **options):
    """A layer with the weights of tf.compat.v1.keras.layers.CuDNNLSTM or CuDNNGRU.

    Those layers hold cuDNN's own memory, gate after gate, under the shapes of Keras' kernels: a
    gate's block [inputs, units] is the matrix [units, inputs] read in the same order, not its
    transpose.

    Args:
      weights: their `get_weights()`: kernel [I, G*H], recurrent_kernel [H, G*H], bias [2*G*H]; six
        arrays, forward then backward, of a Bidirectional.
      **options: constructor arguments of the layer.

    Raises:
      ValueError: another number of arrays, or shapes that are of neither layer.
    """
    if len(weights) not in (3, 6):
        raise ValueError(f"weights must be 3 arrays, or 6 of a Bidirectional, got {len(weights)}")
    for index, value in enumerate(weights):
        check_shape(f"weights[{index}]", value, [None] * (1 if index % 3 == 2 else 2))
    units = np.shape(weights[1])[0]
    modes = {gates: mode for mode, gates in _GATES.items()}
    gates, rest = divmod(np.shape(weights[1])[1], units) if units else (0, 0)
    if rest or gates not in modes:
        raise ValueError(
            "recurrent_kernel must be [H, 4*H] (LSTM) or [H, 3*H] (GRU), "
            f"got {np.shape(weights[1])}"
        )
    pieces = []
    for kernel, recurrent, bias in zip(weights[0::3], weights[1::3], weights[2::3], strict=True):
        if np.shape(bias) != (2 * gates * units,):
            raise ValueError(
                f"bias must be [{2 * gates * units}], two for each gate, got {np.shape(bias)}"
            )
        check_shape("kernel", kernel, [None, gates * units])
        check_shape("recurrent_kernel", recurrent, [units, gates * units])
        order = _COMPAT_V1_GRU if modes[gates] == "gru" else range(gates)
        rows = np.asarray(bias).reshape(2, gates, units)[:, list(order)]
        pieces.append(
            PseudoLayer(
                _from_memory(kernel, gates, order),
                _from_memory(recurrent, gates, order),
                rows.reshape(2, gates * units),
                None,
            )
        )
    return make_layer(modes[gates], pieces, bidirectional=len(weights) == 6, **options)


def _from_memory(matrix, gates, order):
    blocks = _blocks(matrix, gates)
    return np.concatenate([blocks[gate].reshape(blocks[gate].shape[::-1]) for gate in order])


def from_contrib_checkpoint(checkpoint, *, scope=None, nonlinearity="tanh", **options):
    """A layer with the weights that a tf.contrib.cudnn_rnn layer saved in a TF 1 checkpoint.

    Such checkpoints hold the weights for the platform-independent cells, under
    "rnn/multi_rnn_cell/cell_{l}/..." or
    "stack_bidirectional_rnn/cell_{l}/bidirectional_rnn/{fw,bw}/...". Where only the sum of two
    biases was saved, the recurrent one gets it and the other is zero.

    Args:
      checkpoint: the checkpoint's path, as for tf.train.load_checkpoint, or a reader made by it.
      scope: the layer's variable scope, for instance "cudnn_lstm"; not needed when the checkpoint
        holds one such layer.
      nonlinearity: "tanh" or "relu", for basic RNN cells, whose weights do not tell.
      **options: constructor arguments of the layer.

    Raises:
      ValueError: no such layer, several of them, or one that these layers cannot compute.
    """
    reader = checkpoint
    if not hasattr(reader, "get_variable_to_shape_map"):
        reader = tf.train.load_checkpoint(checkpoint)
    found = {}
    for key in reader.get_variable_to_shape_map():
        match = _CELL.fullmatch(key)
        if match:
            cells = found.setdefault(match["scope"].rstrip("/"), {})
            place = (int(match["uni"] or match["bi"] or 0), match["direction"] or "", match["cell"])
            cells.setdefault(place, {})[match["name"]] = key
    if scope is None and len(found) == 1:
        scope = next(iter(found))
    if scope not in found:
        raise ValueError(
            f"scope must name one of the cudnn_rnn layers in the checkpoint, {sorted(found)}, "
            f"got {scope!r}"
        )
    cells = found[scope]
    kinds = {cell for _, _, cell in cells}
    directions = sorted({direction for _, direction, _ in cells}, reverse=True)
    depth = len(cells) // max(1, len(directions))
    bidirectional = directions == ["fw", "bw"]
    places = [(layer, one, cell) for layer in range(depth) for one in directions for cell in kinds]
    if len(kinds) != 1 or (directions != [""] and not bidirectional) or set(places) != set(cells):
        raise ValueError(f"the layers under {scope!r} are incomplete or mixed: {sorted(cells)}")
    cell = kinds.pop()
    pieces = []
    for place in places:
        keys = cells[place]
        if set(keys) != _NAMES[cell]:
            raise ValueError(
                f"{cell} must have the variables {sorted(_NAMES[cell])}, got {sorted(keys)}; "
                "peepholes and projections have no counterpart here"
            )
        pieces.append(_READERS[cell]({name: reader.get_tensor(key) for name, key in keys.items()}))
    mode = {"cudnn_compatible_lstm_cell": "lstm", "cudnn_compatible_gru_cell": "gru"}.get(
        cell, f"rnn_{nonlinearity}"
    )
    return make_layer(mode, pieces, bidirectional=bidirectional, **options)


def _split_rows(kernel, units):
    """[W_in + H, columns] as W_in rows (None if there are none: skip_input) and H rows."""
    inputs = kernel.shape[0] - units
    return (kernel[:inputs] if inputs else None), kernel[inputs:]


def _stacked(matrix, order, gates):
    return None if matrix is None else np.concatenate([_blocks(matrix, gates)[g].T for g in order])


def _read_lstm(values):
    units = values["kernel"].shape[1] // 4
    kernel, recurrent = _split_rows(values["kernel"], units)
    bias = np.concatenate([_blocks(values["bias"], 4)[gate] for gate in _CONTRIB_LSTM])
    return PseudoLayer(
        _stacked(kernel, _CONTRIB_LSTM, 4),
        _stacked(recurrent, _CONTRIB_LSTM, 4),
        np.stack([np.zeros_like(bias), bias]),
        None,
    )


def _read_gru(values):
    hidden = values["candidate/hidden_projection/kernel"]
    kernel, recurrent = _split_rows(values["gates/kernel"], hidden.shape[0])
    if kernel is not None:
        kernel = np.concatenate(
            [_stacked(kernel, (0, 1), 2), values["candidate/input_projection/kernel"].T]
        )
    gates = values["gates/bias"]
    biases = [
        np.concatenate([np.zeros_like(gates), values["candidate/input_projection/bias"]]),
        np.concatenate([gates, values["candidate/hidden_projection/bias"]]),
    ]
    recurrent = np.concatenate([_stacked(recurrent, (0, 1), 2), hidden.T])
    return PseudoLayer(kernel, recurrent, np.stack(biases), None)


def _read_basic(values):
    kernel, recurrent = _split_rows(values["kernel"], values["kernel"].shape[1])
    bias = values["bias"]
    return PseudoLayer(
        None if kernel is None else kernel.T,
        recurrent.T,
        np.stack([np.zeros_like(bias), bias]),
        None,
    )


_READERS = {
    "cudnn_compatible_lstm_cell": _read_lstm,
    "cudnn_compatible_gru_cell": _read_gru,
    "basic_rnn_cell": _read_basic,
}
