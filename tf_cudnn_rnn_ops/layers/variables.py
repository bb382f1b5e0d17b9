"""How a layer's variables start, and how Keras' regularizers and constraints see them.

The variables hold W with y = W x, that is [units, inputs]; Keras' kernels are the transpose,
[inputs, units]. Initializers, regularizers and constraints are written for Keras' shape (fans,
axes), so each of them works on the transpose.
"""

import keras
import numpy as np
import tensorflow as tf


class TransposedRegularizer(keras.regularizers.Regularizer):
    """Applies a regularizer to the transpose of a variable."""

    def __init__(self, regularizer):
        self.regularizer = regularizer

    def __call__(self, x):
        return self.regularizer(keras.ops.transpose(x))

    def get_config(self):
        return {"regularizer": keras.regularizers.serialize(self.regularizer)}


class TransposedConstraint(keras.constraints.Constraint):
    """Applies a constraint to the transpose of a variable."""

    def __init__(self, constraint):
        self.constraint = constraint

    def __call__(self, w):
        return keras.ops.transpose(self.constraint(keras.ops.transpose(w)))

    def get_config(self):
        return {"constraint": keras.constraints.serialize(self.constraint)}


def get_initializer(identifier, gates, argument):
    """An initializer, or a list of one for each gate, from what the user gave.

    Raises ValueError when a list has not `gates` entries; `argument` is the name to report.
    """
    if not isinstance(identifier, (list, tuple)):
        return keras.initializers.get(identifier)
    if len(identifier) != gates:
        raise ValueError(
            f"{argument} must be one initializer or a list of {gates}, one for each gate, "
            f"got a list of {len(identifier)}"
        )
    return [keras.initializers.get(one) for one in identifier]


def serialize_initializer(initializer):
    """The config entry from which `get_initializer` makes the same again."""
    if isinstance(initializer, list):
        return [keras.initializers.serialize(one) for one in initializer]
    return keras.initializers.serialize(initializer)


def _reseeded(initializer, place):
    """A copy of `initializer` that draws its own numbers.

    An initializer of Keras with a fixed seed (drawn at construction when none was given) returns
    the same values at each call, and would fill all gates, layers and directions alike. `place`, a
    tuple of integers, tells the matrices apart.
    """
    if not hasattr(initializer, "get_config") or not hasattr(initializer, "seed"):
        return initializer
    if isinstance(initializer.seed, keras.random.SeedGenerator):
        return initializer
    config = initializer.get_config()
    if isinstance(config.get("seed"), int):
        mixed = np.random.SeedSequence([config["seed"] & (2**64 - 1), *place])
        config["seed"] = int(mixed.generate_state(1)[0] >> 1)
    return type(initializer).from_config(config)


def _for_gate(initializer, gate, place):
    if isinstance(initializer, list):
        initializer = initializer[gate]
    return _reseeded(initializer, (*place, gate))


def _working_dtype(dtype):
    # Some initializers have no low precision kernel (the QR of `orthogonal`), and a float16 draw is
    # coarse.
    return dtype if dtype in ("float32", "float64") else "float32"


def matrix_initializer(initializer, gates, place):
    """For `add_weight`: fills [gates*rows, columns], each gate's [rows, columns] on its own."""

    def fill(shape, dtype=None):
        rows, columns = shape[0] // gates, shape[1]
        blocks = [
            tf.transpose(
                _for_gate(initializer, gate, place)((columns, rows), dtype=_working_dtype(dtype))
            )
            for gate in range(gates)
        ]
        return tf.cast(tf.concat(blocks, axis=0), dtype)

    return fill


def bias_initializer(initializer, gates, place, *, both, ones_gate=None):
    """For `add_weight`: fills [2, gates*units], row 0 the bias beside W, row 1 the one beside R.

    Args:
      both: fill both rows from the initializer; otherwise row 0 starts at zero, so that the sum,
        which is all that matters to an LSTM or a simple RNN, starts as Keras' single bias does.
      ones_gate: the gate whose sum starts at one (an LSTM's forget gate), whatever the initializer.
    """

    def fill(shape, dtype=None):
        units = shape[1] // gates
        working = _working_dtype(dtype)
        rows = []
        for row in range(2):
            if row == 0 and not both:
                rows.append(tf.zeros([gates * units], working))
                continue
            blocks = [
                tf.ones([units], working)
                if gate == ones_gate
                else _for_gate(initializer, gate, (*place, row))((units,), dtype=working)
                for gate in range(gates)
            ]
            rows.append(tf.concat(blocks, axis=0))
        return tf.cast(tf.stack(rows), dtype)

    return fill


def transposed_regularizer(regularizer):
    """`regularizer` for a variable that holds the transpose of what it expects; None stays None."""
    return None if regularizer is None else TransposedRegularizer(regularizer)


def transposed_constraint(constraint):
    """`constraint` for a variable that holds the transpose of what it expects; None stays None."""
    return None if constraint is None else TransposedConstraint(constraint)
