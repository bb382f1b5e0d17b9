"""One forward call of a layer: canonical weights to params, then exactly one CudnnRNNV3."""

import tensorflow as tf

from tf_cudnn_rnn_ops import raw_ops

# The name that shows up in error messages about a graph's nodes, so that whoever loads a SavedModel
# without this package reads its name in "No OpKernel was registered to support Op 'CudnnRNNV3'".
SCOPE = "tf_cudnn_rnn_ops"


def pack_params(weights, biases, *, num_layers, num_units, input_size, attrs):
    """The params buffer from the canonical lists, differentiable.

    Args:
      weights, biases: canonical lists, layer by layer, forward before backward.
      attrs: rnn_mode, input_mode, direction and num_proj.

    Returns:
      A vector in the layout that the compute ops read.
    """
    with tf.name_scope(SCOPE):
        return raw_ops.CudnnRNNCanonicalToParamsV2(
            num_layers=num_layers,
            num_units=num_units,
            input_size=input_size,
            weights=weights,
            biases=biases,
            **attrs,
        )


def train(x, h, c, params, lengths, *, attrs, dropout=0.0, seed=0, seed2=0):
    """output, output_h, output_c of a forward call whose gradient the op itself knows."""
    with tf.name_scope(SCOPE):
        return raw_ops.CudnnRNNV3(
            input=x,
            input_h=h,
            input_c=c,
            params=params,
            sequence_lengths=lengths,
            dropout=dropout,
            seed=seed,
            seed2=seed2,
            is_training=True,
            **attrs,
        )[:3]


def infer(x, h, c, params, lengths, *, attrs):
    """output, output_h, output_c without dropout and without a reserve, still differentiable.

    An op with is_training=False keeps no reserve and refuses a gradient. Serving and evaluation
    want exactly that op; the few who differentiate an inference call (saliency, a policy's
    gradient) pay for a second forward pass, which makes the reserve when the gradient is asked for.
    """

    @tf.custom_gradient
    def run(x, h, c, params, lengths):
        with tf.name_scope(SCOPE):
            outputs = raw_ops.CudnnRNNV3(
                input=x,
                input_h=h,
                input_c=c,
                params=params,
                sequence_lengths=lengths,
                is_training=False,
                **attrs,
            )[:3]

        def gradient(output_backprop, output_h_backprop, output_c_backprop):
            forward = raw_ops.CudnnRNNV3(
                input=x,
                input_h=h,
                input_c=c,
                params=params,
                sequence_lengths=lengths,
                is_training=True,
                **attrs,
            )
            backprops = raw_ops.CudnnRNNBackpropV3(
                input=x,
                input_h=h,
                input_c=c,
                params=params,
                sequence_lengths=lengths,
                output=forward[0],
                output_h=forward[1],
                output_c=forward[2],
                output_backprop=output_backprop,
                output_h_backprop=output_h_backprop,
                output_c_backprop=output_c_backprop,
                reserve_space=forward[3],
                host_reserved=forward[4],
                **attrs,
            )
            return (*backprops, None)

        return outputs, gradient

    return run(x, h, c, params, lengths)
