"""What a layer may be given: dense or ragged sequences, lengths, masks."""

import dataclasses
import typing

import numpy as np
import tensorflow as tf


@dataclasses.dataclass
class Sequences:
    """One batch of sequences, ready for the op.

    Attributes:
      values: [B, T, I], or [T, B, I] when time-major.
      lengths: [B] int32, the number of steps of each row.
      given: whether lengths, a mask or a ragged tensor said so; otherwise each row has T steps.
      mask: what to attach to the output, or None where Keras attaches the inputs' own mask or there
        is none.
      ragged: whether the sequences came as a RaggedTensor.
    """

    values: typing.Any
    lengths: typing.Any
    given: bool
    mask: typing.Any
    ragged: bool


def read(inputs, sequence_lengths, mask, *, time_major, dtype, layer):
    """Checks a layer's inputs and returns them as `Sequences`.

    Args:
      inputs: [B, T, I] ([T, B, I] when time-major), or a RaggedTensor [B, (T), I].
      sequence_lengths: None or [B] integers.
      mask: None or booleans of the inputs' first two dimensions, True for steps that count.
      dtype: what to cast the values to.
      layer: the layer's name, for messages.

    Raises:
      TypeError: inputs that are no real numbers, lengths that are no integers, a mask that is not
        boolean, or what is no dense tensor.
      ValueError: shapes that do not fit, or more than one of ragged inputs, lengths and mask.
      tf.errors.InvalidArgumentError: a mask that is not right-padded (when the op runs, in a
      graph).
    """
    if isinstance(inputs, tf.RaggedTensor):
        if mask is not None or sequence_lengths is not None:
            raise ValueError(
                f"{layer}: ragged inputs carry their own lengths; "
                "give neither mask nor sequence_lengths"
            )
        return _from_ragged(inputs, time_major=time_major, dtype=dtype, layer=layer)
    attached = getattr(inputs, "_keras_mask", None)
    if sequence_lengths is not None and mask is not None and mask is not attached:
        raise ValueError(f"{layer}: give sequence_lengths or mask, not both")

    values = _read_values(inputs, dtype, layer)
    batch_axis, time_axis = (1, 0) if time_major else (0, 1)
    if sequence_lengths is not None:
        lengths = _read_lengths(sequence_lengths, values.shape[batch_axis], layer)
        steps = _size(values, time_axis)
        mask = valid_steps(lengths, steps, time_major) if attached is None else None
        return Sequences(values, lengths, True, mask, False)
    if mask is None:
        # Keras passes an attached mask on only when the inputs are the one tensor among the
        # arguments.
        mask = attached
    if mask is not None:
        lengths = _lengths_of_mask(mask, values, time_axis=time_axis, layer=layer)
        return Sequences(values, lengths, True, None, False)
    lengths = tf.fill([_size(values, batch_axis)], _size(values, time_axis))
    return Sequences(values, lengths, False, None, False)


def _size(values, axis):
    """One dimension, an int32 tensor; a constant where it is known."""
    size = values.shape[axis]
    return tf.shape(values)[axis] if size is None else tf.constant(size)


def valid_steps(lengths, steps, time_major):
    """[B, T] booleans, or [T, B] when time-major: True in the first lengths[b] steps of row b."""
    valid = tf.sequence_mask(lengths, steps)
    return tf.transpose(valid) if time_major else valid


def reverse(values, sequences, *, time_major):
    """`values` with the valid steps of each row in the opposite order, padding left where it is."""
    batch_axis, time_axis = (1, 0) if time_major else (0, 1)
    if not sequences.given:
        return tf.reverse(values, [time_axis])
    return tf.reverse_sequence(values, sequences.lengths, seq_axis=time_axis, batch_axis=batch_axis)


def to_dense(value, argument, layer):
    """`value` as a tensor. Raises TypeError where it is none, for instance ragged or None."""
    try:
        return tf.convert_to_tensor(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"{layer}: {argument} must be a dense tensor, got {type(value).__name__}"
        ) from None


def _read_values(inputs, dtype, layer):
    values = inputs if isinstance(inputs, tf.RaggedTensor) else to_dense(inputs, "inputs", layer)
    if not (values.dtype.is_floating or values.dtype.is_integer or values.dtype.is_bool):
        raise TypeError(f"{layer}: inputs must be real numbers, got {values.dtype.name}")
    return tf.cast(values, dtype)


def _from_ragged(inputs, *, time_major, dtype, layer):
    if time_major:
        raise ValueError(
            f"{layer}: ragged inputs are [batch, (time), features]; time_major must be False"
        )
    if inputs.ragged_rank != 1 or inputs.shape.rank != 3:
        raise ValueError(
            f"{layer}: ragged inputs must be [batch, (time), features] with one ragged dimension, "
            f"got shape {inputs.shape} with {inputs.ragged_rank}"
        )
    lengths = tf.cast(inputs.row_lengths(), tf.int32)
    values = _read_values(inputs, dtype, layer).to_tensor()
    return Sequences(values, lengths, True, None, True)


def _read_lengths(sequence_lengths, batch, layer):
    lengths = to_dense(sequence_lengths, "sequence_lengths", layer)
    if lengths.shape.rank == 1 and lengths.shape[0] == 0:
        lengths = tf.cast(lengths, tf.int32)  # an empty Python list becomes float32
    if not lengths.dtype.is_integer:
        raise TypeError(f"{layer}: sequence_lengths must be integers, got {lengths.dtype.name}")
    if lengths.shape.rank not in (None, 1) or (
        batch is not None and not lengths.shape.is_compatible_with([batch])
    ):
        expected = "[batch]" if batch is None else f"[{batch}]"
        raise ValueError(
            f"{layer}: sequence_lengths must be of shape {expected}, one value for each row, "
            f"got {lengths.shape}"
        )
    if lengths.dtype != tf.int32:
        # Values out of int32's range must reach the op as values that it refuses, not wrapped
        # around.
        limit = np.iinfo(np.int32).max
        if lengths.dtype.size > 4 or lengths.dtype.is_unsigned:
            limit = tf.cast(min(limit, lengths.dtype.max), lengths.dtype)
            lengths = tf.minimum(lengths, limit)
            if not lengths.dtype.is_unsigned:
                lengths = tf.maximum(lengths, tf.constant(-1, lengths.dtype))
        lengths = tf.cast(lengths, tf.int32)
    return lengths


def _lengths_of_mask(mask, values, *, time_axis, layer):
    """[B] int32: how many steps of each row count, where the mask is checked to be right-padded."""
    mask = to_dense(mask, "mask", layer)
    if mask.dtype != tf.bool:
        raise TypeError(f"{layer}: mask must be boolean, got {mask.dtype.name}")
    names = "[time, batch]" if time_axis == 0 else "[batch, time]"
    if not mask.shape.is_compatible_with(values.shape[:2]):
        raise ValueError(
            f"{layer}: mask must be {names} like the inputs, {values.shape[:2]}, got {mask.shape}"
        )
    if time_axis == 0:
        after, before = mask[1:], mask[:-1]
    else:
        after, before = mask[:, 1:], mask[:, :-1]
    wrong_rows = tf.reduce_any(tf.logical_and(after, tf.logical_not(before)), axis=time_axis)
    lengths = tf.reduce_sum(tf.cast(mask, tf.int32), axis=time_axis)
    if tf.executing_eagerly():
        wrong = np.flatnonzero(wrong_rows.numpy())
        if wrong.size:
            raise tf.errors.InvalidArgumentError(
                None,
                None,
                f"{layer}: mask must be right-padded (each row True first, then False), "
                f"but row {wrong[0]} has True after False",
            )
        return lengths
    rows = tf.size(wrong_rows)
    first_wrong = tf.reduce_min(tf.where(wrong_rows, tf.range(rows), rows))
    checks = [
        tf.raw_ops.Assert(
            condition=tf.logical_not(tf.reduce_any(wrong_rows)),
            data=[
                tf.constant(
                    f"{layer}: mask must be right-padded (each row True first, then False), but row"
                ),
                first_wrong,
                tf.constant("has True after False"),
            ],
        )
    ]
    if not (mask.shape.is_fully_defined() and values.shape[:2].is_fully_defined()):
        checks.append(
            tf.raw_ops.Assert(
                condition=tf.reduce_all(tf.equal(tf.shape(mask), tf.shape(values)[:2])),
                data=[
                    tf.constant(f"{layer}: mask must be {names} like the inputs,"),
                    tf.shape(values)[:2],
                    tf.constant("got"),
                    tf.shape(mask),
                ],
            )
        )
    with tf.control_dependencies(checks):
        return tf.identity(lengths)
