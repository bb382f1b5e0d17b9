"""To and from the state dictionaries of torch.nn.LSTM, GRU and RNN.

PyTorch's tensors are the variables as they are: weight_ih_l{k}[_reverse] the kernel, weight_hh the
recurrent kernel, bias_ih and bias_hh the two rows of the bias, weight_hr the projection kernel,
with the gates in the same order.
"""

import re

import numpy as np

from .canonical import PseudoLayer, check_shape, get_canonical, identity_kernel, make_layer

_KINDS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")


def to_torch(layer, prefix=""):
    """The weights of a built layer under PyTorch's names.

    Args:
      layer: a layer of `tf_cudnn_rnn_ops.layers`.
      prefix: what stands before each name, for instance "encoder.rnn.".

    Returns:
      A dictionary of NumPy arrays; `{name: torch.from_numpy(array)}` of it loads into nn.LSTM,
      nn.GRU or nn.RNN with the same sizes. A layer with skip_input gets identity matrices in
      weight_ih_l0.
    """
    state = {}
    for index, piece in enumerate(get_canonical(layer)):
        depth, backward = divmod(index, layer.num_directions)
        suffix = f"_l{depth}_reverse" if backward else f"_l{depth}"
        kernel = piece.kernel
        if kernel is None:
            kernel = identity_kernel(layer.gates, layer.units, piece.recurrent_kernel.dtype)
        values = [kernel, piece.recurrent_kernel, None, None, piece.projection_kernel]
        if piece.bias is not None:
            values[2:4] = piece.bias
        for kind, value in zip(_KINDS, values, strict=True):
            if value is not None:
                state[f"{prefix}{kind}{suffix}"] = value
    return state


def from_torch(state_dict, *, prefix="", nonlinearity="tanh", **options):
    """A layer that computes what the torch module with this state dictionary does.

    Number of layers, directions, sizes, projection and mode are read off the names and shapes.

    Args:
      state_dict: name -> NumPy array or torch tensor.
      prefix: take the names that begin with it, which must be followed by PyTorch's own.
      nonlinearity: "tanh" or "relu", for nn.RNN, whose weights do not tell.
      **options: constructor arguments of the layer, for instance return_sequences=True.

    Raises:
      ValueError: a name is missing, or the shapes are of no such module.
    """
    pieces = {}
    pattern = re.compile(re.escape(prefix) + rf"({'|'.join(_KINDS)})_l(\d+)(_reverse)?")
    for name, value in state_dict.items():
        match = pattern.fullmatch(name)
        if match:
            place = (int(match[2]), 1 if match[3] else 0)
            pieces.setdefault(place, {})[match[1]] = _array(value)
    bidirectional = any(backward for _, backward in pieces)
    depths = max((depth for depth, _ in pieces), default=-1) + 1
    places = [(depth, d) for depth in range(depths) for d in range(2 if bidirectional else 1)]
    if not pieces or sorted(pieces) != places:
        raise ValueError(
            f"state_dict must hold weight_ih_l0, weight_hh_l0, ... after the prefix {prefix!r} "
            f"for every layer and direction, got {sorted(state_dict)}"
        )
    pieces = [_piece(place, pieces[place]) for place in places]
    return make_layer(
        _mode(pieces[0], nonlinearity), pieces, bidirectional=bidirectional, **options
    )


def _array(value):
    if not hasattr(value, "detach"):
        return np.asarray(value)
    value = value.detach().cpu()
    # NumPy has no bfloat16, and no module of half precision needs more than float32.
    return (value.float() if value.element_size() < 4 else value).numpy()


def _piece(place, tensors):
    missing = {"weight_ih", "weight_hh"} - set(tensors)
    if ("bias_ih" in tensors) != ("bias_hh" in tensors):
        missing |= {"bias_ih", "bias_hh"} - set(tensors)
    if missing:
        depth, backward = place
        raise ValueError(
            f"state_dict has no {', '.join(sorted(missing))} for layer {depth}"
            f"{', reverse' if backward else ''}"
        )
    for kind, value in tensors.items():
        name = f"{kind}_l{place[0]}{'_reverse' if place[1] else ''}"
        check_shape(name, value, [None] * (1 if kind.startswith("bias") else 2))
    if "bias_ih" in tensors:
        check_shape(f"bias_hh of layer {place[0]}", tensors["bias_hh"], tensors["bias_ih"].shape)
    bias = np.stack([tensors["bias_ih"], tensors["bias_hh"]]) if "bias_ih" in tensors else None
    return PseudoLayer(tensors["weight_ih"], tensors["weight_hh"], bias, tensors.get("weight_hr"))


def _mode(piece, nonlinearity):
    if piece.projection_kernel is not None:
        return "lstm"
    rows, width = piece.recurrent_kernel.shape
    if nonlinearity not in ("tanh", "relu"):
        raise ValueError(f"nonlinearity must be 'tanh' or 'relu', got {nonlinearity!r}")
    modes = {4: "lstm", 3: "gru", 1: f"rnn_{nonlinearity}"}
    gates, rest = divmod(rows, width) if width else (0, 0)
    if rest or gates not in modes:
        raise ValueError(
            "weight_hh_l0 must be [G*H, H] with G=4 (LSTM), 3 (GRU) or 1 (RNN), "
            f"got {list(piece.recurrent_kernel.shape)}"
        )
    return modes[gates]
