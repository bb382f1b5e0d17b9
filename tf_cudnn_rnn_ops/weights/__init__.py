"""Weights to and from other libraries: Keras, PyTorch, tf.compat.v1's CuDNN layers, tf.contrib.

Each `from_` function returns a new, built layer of `tf_cudnn_rnn_ops.layers`; to fill a layer that
exists already, `layer.set_weights(from_torch(...).get_weights())`. docs/keras.md has the table of
conventions.
"""

from .canonical import get_canonical, make_layer, set_canonical
from .keras_layers import from_keras, to_keras, why_not
from .tensorflow_v1 import from_compat_v1, from_contrib_checkpoint
from .torch_modules import from_torch, to_torch

__all__ = [
    "from_compat_v1",
    "from_contrib_checkpoint",
    "from_keras",
    "from_torch",
    "get_canonical",
    "make_layer",
    "set_canonical",
    "to_keras",
    "to_torch",
    "why_not",
]
