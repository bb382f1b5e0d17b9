"""Keras 3 layers over the CudnnRNN ops: CudnnLSTM, CudnnGRU, CudnnRNNTanh, CudnnRNNRelu.

Each layer is a stack of `num_layers` recurrent layers, in one direction or in both, run by one op.
Its variables are the canonical weights: for each layer and direction an input `kernel` [G*H, W_in],
a `recurrent_kernel` [G*H, R], a `bias` [2, G*H] and, for a projecting LSTM, a `projection_kernel`
[R, H]. docs/keras.md shows the layers in use.
"""

import keras

if keras.backend.backend() != "tensorflow":
    raise ImportError(
        "tf_cudnn_rnn_ops.layers needs Keras on TensorFlow, but the backend is "
        f"{keras.backend.backend()!r}; set KERAS_BACKEND=tensorflow before keras is imported"
    )

from .base import CudnnRNNBase  # noqa: E402
from .modes import CudnnGRU, CudnnLSTM, CudnnRNNRelu, CudnnRNNTanh  # noqa: E402

__all__ = ["CudnnGRU", "CudnnLSTM", "CudnnRNNBase", "CudnnRNNRelu", "CudnnRNNTanh"]
