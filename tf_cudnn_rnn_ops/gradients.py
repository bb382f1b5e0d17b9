"""Gradients of the CudnnRNN ops, registered when this module is imported.

TensorFlow brings those of CudnnRNN, CudnnRNNV2 and CudnnRNNV3, and where it does they stay. It has
none for the conversions between params and canonical weights, which are linear and inverse to each
other: the gradient of each is the other one, applied to the gradient.
"""

import contextlib

import tensorflow as tf

from tf_cudnn_rnn_ops import _load

_load.load()

_MODE_ATTRS = ("rnn_mode", "input_mode", "direction", "dropout", "seed", "seed2")


def _register(op_name):
    """A decorator: registers a gradient function unless the op has one."""

    def decorate(function):
        # Refused where there is one: TensorFlow's own, or ours of an earlier import.
        with contextlib.suppress(KeyError):
            tf.RegisterGradient(op_name)(function)
        return function

    return decorate


def _attrs(op, *names):
    return {name: op.get_attr(name) for name in (*_MODE_ATTRS, *names)}


def _given(gradients, values):
    """The gradients, with zeros for those that are None."""
    return [
        tf.zeros_like(value) if gradient is None else gradient
        for gradient, value in zip(gradients, values, strict=True)
    ]


def _backprop_arguments(op, grads):
    """What all three backprop ops take: the forward op's inputs and outputs, and the gradients of
    the outputs."""
    if not op.get_attr("is_training"):
        raise ValueError(
            f"the gradient of {op.type} must be taken of an op with is_training=True, got "
            "is_training=False: only a training op keeps what its gradient needs. With dropout=0 "
            "both compute the same"
        )
    backprops = _given(grads[:3], op.outputs[:3])
    return {
        "input": op.inputs[0],
        "input_h": op.inputs[1],
        "input_c": op.inputs[2],
        "params": op.inputs[3],
        "output": op.outputs[0],
        "output_h": op.outputs[1],
        "output_c": op.outputs[2],
        "output_backprop": backprops[0],
        "output_h_backprop": backprops[1],
        "output_c_backprop": backprops[2],
        "reserve_space": op.outputs[3],
    }


@_register("CudnnRNN")
def _cudnn_rnn_gradient(op, *grads):
    return tf.raw_ops.CudnnRNNBackprop(**_backprop_arguments(op, grads), **_attrs(op))


@_register("CudnnRNNV2")
def _cudnn_rnn_v2_gradient(op, *grads):
    return tf.raw_ops.CudnnRNNBackpropV2(
        **_backprop_arguments(op, grads), host_reserved=op.outputs[4], **_attrs(op)
    )


@_register("CudnnRNNV3")
def _cudnn_rnn_v3_gradient(op, *grads):
    backprops = tf.raw_ops.CudnnRNNBackpropV3(
        **_backprop_arguments(op, grads),
        sequence_lengths=op.inputs[4],
        host_reserved=op.outputs[4],
        **_attrs(op, "num_proj", "time_major"),
    )
    return [*backprops, None]


def _sizes(op):
    return dict(zip(("num_layers", "num_units", "input_size"), op.inputs[:3], strict=True))


def _canonical_to_params_gradient(op, grad, to_canonical, count_attrs, attrs):
    counts = {name: op.get_attr(name) for name in count_attrs}
    lists = to_canonical(params=grad, **_sizes(op), **counts, **attrs)
    return [None, None, None, *lists.weights, *lists.biases]


def _params_to_canonical_gradient(op, grads, to_params, weights, attrs):
    grads = _given(grads, op.outputs)
    params = to_params(weights=grads[:weights], biases=grads[weights:], **_sizes(op), **attrs)
    return [None, None, None, params]


@_register("CudnnRNNCanonicalToParams")
def _canonical_to_params_v1_gradient(op, grad):
    return _canonical_to_params_gradient(
        op, grad, tf.raw_ops.CudnnRNNParamsToCanonical, ["num_params"], _attrs(op)
    )


@_register("CudnnRNNCanonicalToParamsV2")
def _canonical_to_params_v2_gradient(op, grad):
    return _canonical_to_params_gradient(
        op,
        grad,
        tf.raw_ops.CudnnRNNParamsToCanonicalV2,
        ["num_params_weights", "num_params_biases"],
        _attrs(op, "num_proj"),
    )


@_register("CudnnRNNParamsToCanonical")
def _params_to_canonical_v1_gradient(op, *grads):
    return _params_to_canonical_gradient(
        op,
        grads,
        tf.raw_ops.CudnnRNNCanonicalToParams,
        op.get_attr("num_params"),
        _attrs(op),
    )


@_register("CudnnRNNParamsToCanonicalV2")
def _params_to_canonical_v2_gradient(op, *grads):
    return _params_to_canonical_gradient(
        op,
        grads,
        tf.raw_ops.CudnnRNNCanonicalToParamsV2,
        op.get_attr("num_params_weights"),
        _attrs(op, "num_proj"),
    )
