"""The CudnnRNN ops as keyword-only functions: those of `tf.raw_ops`, documented and served.

Importing this module loads the kernels and registers the gradients; each function then calls the
function of the same name in `tf.raw_ops` and returns what that returns. See the functions for
arguments, shapes and errors; the letters in their shapes are

    T  time steps        I  input_size, width of the input
    B  batch size        H  num_units, width of the cell
    L  num_layers        R  width of the output and of the recurrent state: num_proj with a
    D  directions           projection, else H
    G  gates: rnn_relu and rnn_tanh 1, gru 3, lstm 4

and element types are one of bfloat16, half, float, double for all tensors of a call that are not
integers.

Errors: `tf.errors.InvalidArgumentError` for an argument that is out of its range or does not fit
the others; the message names it, says what it must be and what it was. While a graph is traced,
what is known of the shapes is checked as well; the error is then a ValueError.
"""

from tf_cudnn_rnn_ops import (
    gradients,  # noqa: F401
)
from tf_cudnn_rnn_ops._raw_compute_ops import (
    CudnnRNN,
    CudnnRNNBackprop,
    CudnnRNNBackpropV2,
    CudnnRNNBackpropV3,
    CudnnRNNV2,
    CudnnRNNV3,
)
from tf_cudnn_rnn_ops._raw_params_ops import (
    CudnnRNNCanonicalToParams,
    CudnnRNNCanonicalToParamsV2,
    CudnnRNNParamsSize,
    CudnnRNNParamsToCanonical,
    CudnnRNNParamsToCanonicalV2,
)

__all__ = [
    "CudnnRNN",
    "CudnnRNNBackprop",
    "CudnnRNNBackpropV2",
    "CudnnRNNBackpropV3",
    "CudnnRNNCanonicalToParams",
    "CudnnRNNCanonicalToParamsV2",
    "CudnnRNNParamsSize",
    "CudnnRNNParamsToCanonical",
    "CudnnRNNParamsToCanonicalV2",
    "CudnnRNNV2",
    "CudnnRNNV3",
]
