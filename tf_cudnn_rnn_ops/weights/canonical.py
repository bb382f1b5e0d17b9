"""Canonical weights as NumPy arrays: what every conversion goes through."""

import numpy as np

from tf_cudnn_rnn_ops.layers import (
    CudnnGRU,
    CudnnLSTM,
    CudnnRNNBase,
    CudnnRNNRelu,
    CudnnRNNTanh,
)
from tf_cudnn_rnn_ops.layers.pseudo_layers import PseudoLayer

LAYERS = {layer.rnn_mode: layer for layer in (CudnnGRU, CudnnLSTM, CudnnRNNRelu, CudnnRNNTanh)}


def check_ours(layer):
    """Raises TypeError unless `layer` is one of `tf_cudnn_rnn_ops.layers`."""
    if not isinstance(layer, CudnnRNNBase):
        raise TypeError(f"layer must be one of tf_cudnn_rnn_ops.layers, got {type(layer).__name__}")


def check_shape(name, value, expected):
    """Raises ValueError unless an array has the shape `expected`; None stands for any size."""
    shape = np.shape(value)
    if len(shape) != len(expected) or any(
        size is not None and size != got for size, got in zip(expected, shape, strict=True)
    ):
        sizes = ", ".join("any" if size is None else str(size) for size in expected)
        raise ValueError(f"{name} must be [{sizes}], got {list(shape)}")


def get_canonical(layer):
    """The weights of a built layer.

    Returns:
      A list with a `PseudoLayer` of NumPy arrays for each layer and direction, forward before
      backward: kernel [G*H, W_in] (None in the first layer under skip_input), recurrent_kernel
      [G*H, R], bias [2, G*H] or None, projection_kernel [R, H] or None.

    Raises:
      TypeError: it is none of `tf_cudnn_rnn_ops.layers`.
      ValueError: the layer is not built.
    """
    check_ours(layer)
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
    check_ours(layer)
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

    Raises:
      ValueError: no such mode, no pieces, or arrays that do not fit each other.
    """
    if rnn_mode not in LAYERS:
        raise ValueError(f"rnn_mode must be one of {', '.join(sorted(LAYERS))}, got {rnn_mode!r}")
    layer_class = LAYERS[rnn_mode]
    directions = 2 if bidirectional else 1
    if not pieces or len(pieces) % directions:
        raise ValueError(
            f"pieces must be one for each layer and {directions} direction(s), got {len(pieces)}"
        )
    first = pieces[0]
    check_shape("recurrent_kernel", first.recurrent_kernel, [None, None])
    if first.kernel is not None:
        check_shape("kernel", first.kernel, [None, None])
    rows, width = np.shape(first.recurrent_kernel)
    if rows == 0 or rows % layer_class.gates:
        raise ValueError(
            f"recurrent_kernel must have {layer_class.gates} rows for each unit, got {rows} rows"
        )
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
