"""Refuses to be compiled by XLA, in words shorter and clearer than XLA's own."""

import tensorflow as tf

try:
    # Not a public name of TensorFlow; without it XLA's message, which names the op, has to do.
    from tensorflow.python.ops.control_flow_util import GraphOrParentsInXlaContext
except ImportError:
    GraphOrParentsInXlaContext = None


def refuse(layer):
    """Raises NotImplementedError while a function with jit_compile=True is traced."""
    if tf.executing_eagerly() or GraphOrParentsInXlaContext is None:
        return
    if GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph()):
        raise NotImplementedError(
            f"{layer}: XLA has no kernels for the CudnnRNN ops; use jit_compile=False in "
            "tf.function, or jit_compile='auto' (the default) or False in model.compile()"
        )
