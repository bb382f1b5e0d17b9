"""TensorFlow's CudnnRNN ops, working on a CPU and, through cuDNN, on a GPU.

Importing the package loads the library of kernels; from then on tf.raw_ops.CudnnRNNV3 and the rest
of the family run. The faces, from low to high:

    tf_cudnn_rnn_ops.raw_ops          the eleven ops as documented keyword-only functions
    tf_cudnn_rnn_ops.CudnnLSTM        Keras layers (also CudnnGRU, CudnnRNNTanh, CudnnRNNRelu)
    tf_cudnn_rnn_ops.weights          weights to and from Keras, PyTorch and TensorFlow 1
    tf_cudnn_rnn_ops.convert_model    a Keras model with these layers in place of Keras' own

library_path() names the file for tf.load_op_library, in a server for example.

`python -m tf_cudnn_rnn_ops` reports versions and kernels and checks the arithmetic.
"""

import importlib
import sys

from tf_cudnn_rnn_ops import gradients, raw_ops
from tf_cudnn_rnn_ops._load import library_path
from tf_cudnn_rnn_ops._version import __version__

# Imported when asked for: the ops do without Keras, whose backend may not be TensorFlow. Where it
# is, see the end of this file.
_LAZY_MODULES = ("convert", "layers", "weights")
_LAZY = {
    "CudnnGRU": "layers",
    "CudnnLSTM": "layers",
    "CudnnRNNRelu": "layers",
    "CudnnRNNTanh": "layers",
    "convert_model": "convert",
    "to_stock_model": "convert",
}

__all__ = [
    "__version__",
    "gradients",
    "library_path",
    "raw_ops",
    *_LAZY_MODULES,
    *_LAZY,
]


def __getattr__(name):
    if name in _LAZY_MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _LAZY:
        return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)


# TensorFlow imports Keras. The layers introduce themselves to it at once, so that importing this
# package is enough for keras.models.load_model().
_keras = sys.modules.get("keras")
if hasattr(_keras, "config") and _keras.config.backend() == "tensorflow":
    importlib.import_module(f"{__name__}.layers")
