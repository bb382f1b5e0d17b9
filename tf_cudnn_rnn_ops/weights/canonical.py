"""Canonical weights as NumPy arrays: what every conversion goes through."""

import numpy as np

from tf_cudnn_rnn_ops.layers import CudnnGRU, CudnnLSTM, CudnnRNNRelu, CudnnRNNTanh
from tf_cudnn_rnn_ops.layers.pseudo_layers import PseudoLayer

LAYERS = {layer.rnn_mode: layer for layer in (CudnnGRU, CudnnLSTM, CudnnRNNRelu, CudnnRNNTanh)}


def get_canonical(layer):
    """The weights of a built layer.

    Returns:
      A list with a `PseudoLayer` of NumPy arrays for each layer and direction, forward before
      backward: kernel [G*H, W_in] (None in the first layer under skip_input), recurrent_kernel
      [G*H, R], bias [2, G*H] or None, projection_kernel [R, H] or None.

    Raises:
      ValueError: the layer is not built.
    """
    if not layer.built:
        raise ValueError(f"{layer.name} has no weights yet; build it or call it once")
    return [
        PseudoLayer(*(None if variable is None else variable.numpy() for variable in pseudo_layer))
        for pseudo_layer in layer.pseudo_layers
    ]


def set_canonical(layer, pieces):
    """Fills the variables of a built layer with what `get_canonical` returns.

    Raises:
      ValueError: a piece is missing, superfluous or of another shape than its variable.
    """
    targets = layer.pseudo_layers
    if len(pieces) != len(targets):
        raise ValueError(
            f"{layer.name} has {len(targets)} pseudo-layers (layers times directions), "
            f"got weights for {len(pieces)}"
        )
    for index, (target, piece) in enumerate(zip(targets, pieces, strict=True)):
        for kind, variable, value in zip(PseudoLayer._fields, target, piece, strict=True):
            expected = None if variable is None else tuple(variable.shape)
            got = None if value is None else np.shape(value)
            if expected != got:
                raise ValueError(
                    f"{layer.name}: {kind} of pseudo-layer {index} must be "
                    f"{'absent' if expected is None else list(expected)}, "
                    f"got {'none' if got is None else list(got)}"
                )
    for target, piece in zip(targets, pieces, strict=True):
        for variable, value in zip(target, piece, strict=True):
            if variable is not None:
                variable.assign(value)


def make_layer(rnn_mode, pieces, *, bidirectional=False, batch=None, **options):
    """A built layer of `rnn_mode` ("lstm", "gru", "rnn_tanh", "rnn_relu") that holds `pieces`.

    Sizes come from the arrays, as does the absence of a bias or of the first kernel (skip_input).

    Args:
      pieces: as from `get_canonical`.
      bidirectional: whether every second piece is a backward one.
      batch: batch size for a stateful layer.
      **options: further constructor arguments.
    """
    layer_class = LAYERS[rnn_mode]
    directions = 2 if bidirectional else 1
    first = pieces[0]
    rows, width = np.shape(first.recurrent_kernel)
    options = {
        "dtype": "float64" if first.recurrent_kernel.dtype == np.float64 else "float32",
        "input_mode": "skip_input" if first.kernel is None else "linear_input",
        "use_bias": first.bias is not None,
        **options,
    }
    if first.projection_kernel is not None:
        options["num_proj"] = width
    layer = layer_class(
        rows // layer_class.gates,
        len(pieces) // directions,
        "bidirectional" if bidirectional else "unidirectional",
        **options,
    )
    input_size = width if first.kernel is None else np.shape(first.kernel)[1]
    layer.build((None, batch, input_size) if layer.time_major else (batch, None, input_size))
    set_canonical(layer, pieces)
    return layer


def identity_kernel(gates, units, dtype):
    """The kernel [gates*units, units] that does what skip_input does: x itself in every gate."""
    return np.tile(np.eye(units, dtype=dtype), (gates, 1))
