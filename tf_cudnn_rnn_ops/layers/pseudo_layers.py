"""The variables of one layer in one direction, and the canonical lists made of all of them.

Pseudo-layer p = D*layer + direction, forward before backward.
"""

import typing

import tensorflow as tf

from . import variables


class PseudoLayer(typing.NamedTuple):
    """The variables of one pseudo-layer; None where it has none of a kind.

    Attributes:
      kernel: [G*H, W_in], None in the first layer under skip_input.
      recurrent_kernel: [G*H, R].
      bias: [2, G*H]: the bias beside W, then the one beside R. None without biases.
      projection_kernel: [R, H], None without a projection.
    """

    kernel: typing.Any
    recurrent_kernel: typing.Any
    bias: typing.Any
    projection_kernel: typing.Any


def _suffix(layer, pseudo_layer):
    index, backward = divmod(pseudo_layer, layer.num_directions)
    return f"l{index}_reverse" if backward else f"l{index}"


def get_variables(layer, pseudo_layer):
    """The variables of one pseudo-layer of a built layer."""
    suffix = _suffix(layer, pseudo_layer)
    return PseudoLayer(*(getattr(layer, f"{kind}_{suffix}", None) for kind in PseudoLayer._fields))


def add_variables(layer, pseudo_layer):
    """Adds the variables of one pseudo-layer to `layer`.

    They become attributes, such as kernel_l0 or bias_l1_reverse, because attributes are what
    tf.train.Checkpoint saves; the names are PyTorch's for the pseudo-layers.
    """
    suffix = _suffix(layer, pseudo_layer)
    first = pseudo_layer < layer.num_directions
    rows = layer.gates * layer.units

    def add(kind, shape, initializer, regularizer, constraint):
        name = f"{kind}_{suffix}"
        variable = layer.add_weight(
            name=name,
            shape=shape,
            initializer=initializer,
            regularizer=regularizer,
            constraint=constraint,
        )
        setattr(layer, name, variable)

    def add_matrix(kind, option, shape, gates, place):
        add(
            kind,
            shape,
            variables.matrix_initializer(
                getattr(layer, f"{option}_initializer"), gates, (pseudo_layer, place)
            ),
            variables.transposed_regularizer(getattr(layer, f"{option}_regularizer")),
            variables.transposed_constraint(getattr(layer, f"{option}_constraint")),
        )

    if not (first and layer.skips_input):
        width = layer.input_size if first else layer.num_directions * layer.output_width
        add_matrix("kernel", "kernel", (rows, width), layer.gates, 0)
    add_matrix("recurrent_kernel", "recurrent", (rows, layer.output_width), layer.gates, 1)
    if layer.use_bias:
        initializer = variables.bias_initializer(
            layer.bias_initializer,
            layer.gates,
            (pseudo_layer, 2),
            both=layer.both_biases,
            ones_gate=layer.ones_gate,
        )
        add("bias", (2, rows), initializer, layer.bias_regularizer, layer.bias_constraint)
    if layer.projects:
        add_matrix("projection_kernel", "projection", (layer.output_width, layer.units), 1, 3)


def canonical_lists(layer):
    """The canonical weights and biases of a built layer, in its compute dtype.

    Returns:
      Two lists for CudnnRNNCanonicalToParamsV2: for each pseudo-layer the G input weights [H, W_in]
      ([H, 0] under skip_input), the G recurrent weights [H, R] and the projection [R, H], if any;
      and for each pseudo-layer the 2G biases [H].
    """
    dtype = layer.compute_dtype
    weights, biases = [], []
    for one in layer.pseudo_layers:
        if one.kernel is None:
            weights += [tf.zeros([layer.units, 0], dtype)] * layer.gates
        else:
            weights += tf.split(tf.cast(one.kernel, dtype), layer.gates)
        weights += tf.split(tf.cast(one.recurrent_kernel, dtype), layer.gates)
        if one.projection_kernel is not None:
            weights.append(tf.cast(one.projection_kernel, dtype))
        if one.bias is None:
            biases += [tf.zeros([layer.units], dtype)] * (2 * layer.gates)
        else:
            rows = tf.reshape(tf.cast(one.bias, dtype), [2 * layer.gates, layer.units])
            biases += tf.unstack(rows)
    return weights, biases
