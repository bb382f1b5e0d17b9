"""The order of a layer's states, and how they are read, joined and taken apart.

A layer with L stacked layers in D directions has, for each pseudo-layer p = D*layer + direction,
one state h [batch, R] and, in an LSTM, a cell state c [batch, units] after it. The flat order is
h_0, c_0, h_1, c_1, ...: for one layer that of keras.layers.LSTM, for one bidirectional layer that
of keras.layers.Bidirectional (forward h, c, backward h, c).
"""

import keras
import tensorflow as tf

from .inputs import to_dense


class StateVariables(tf.Module):
    """The variables of a stateful layer.

    They are no weights of the layer (as in keras.layers.RNN), because their batch size is that of
    one run: a model with another batch size must be able to load the same checkpoint.
    """

    def __init__(self, sizes, batch, dtype):
        super().__init__(name="states")
        self.batch = batch
        # In the flat order.
        self.values = [
            tf.Variable(tf.zeros([batch, size], dtype), trainable=False, name=f"state_{index}")
            for index, size in enumerate(sizes)
        ]

    def assign(self, values):
        """Sets all states to `values`, tensors in the flat order, or to zero if None."""
        if values is None:
            values = [tf.zeros_like(variable) for variable in self.values]
        for variable, value in zip(self.values, values, strict=True):
            variable.assign(value)


def read(initial_state, sizes, *, batch, dtype, layer):
    """The flat list of state tensors in `dtype`, checked.

    Args:
      initial_state: a tensor, or tensors nested in lists and tuples in the flat order.
      sizes: the width of each state.
      batch: the batch size, or None where it is not known statically.

    Raises:
      TypeError: a state that is no tensor.
      ValueError: another number of states, or a state that is not [batch, size].
    """
    flat = keras.tree.flatten(initial_state)
    if len(flat) != len(sizes):
        raise ValueError(f"{layer}: initial_state must hold {len(sizes)} tensors, got {len(flat)}")
    states = []
    for index, (given, size) in enumerate(zip(flat, sizes, strict=True)):
        state = to_dense(given, f"initial_state[{index}]", layer)
        if not state.shape.is_compatible_with([batch, size]):
            expected = f"[{'batch' if batch is None else batch}, {size}]"
            raise ValueError(
                f"{layer}: initial_state[{index}] must be of shape {expected}, got {state.shape}"
            )
        states.append(tf.cast(state, dtype))
    return states


def zeros(sizes, batch, dtype, *, lstm, batch_axis):
    """What `join` makes of zeros, as one tensor of each kind instead of one for each state."""
    per_kind = len(sizes) // 2 if lstm else len(sizes)

    def kind(width):
        shape = [batch, per_kind, width] if batch_axis == 0 else [per_kind, batch, width]
        return tf.zeros(shape, dtype)

    return kind(sizes[0]), kind(sizes[1]) if lstm else tf.constant(0.0, dtype)


def join(flat, *, lstm, batch_axis):
    """input_h and input_c for the op from the flat list; the states' axis is 1 - `batch_axis`."""
    axis = 1 - batch_axis
    if not lstm:
        return _stack(flat, axis), tf.constant(0.0, flat[0].dtype)
    return _stack(flat[0::2], axis), _stack(flat[1::2], axis)


def _stack(tensors, axis):
    return tf.expand_dims(tensors[0], axis) if len(tensors) == 1 else tf.stack(tensors, axis)


def take_apart(output_h, output_c, *, lstm, batch_axis):
    """The flat list from the op's output_h and output_c."""
    axis = 1 - batch_axis
    hidden = tf.unstack(output_h, axis=axis)
    if not lstm:
        return hidden
    cells = tf.unstack(output_c, axis=axis)
    return [state for pair in zip(hidden, cells, strict=True) for state in pair]
