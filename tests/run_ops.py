"""A Case through the ops. Needs the built library."""

import subprocess
import sys
import textwrap

import numpy as np
import tensorflow as tf

from tf_cudnn_rnn_ops import raw_ops

FORWARD_OPS = {1: raw_ops.CudnnRNN, 2: raw_ops.CudnnRNNV2, 3: raw_ops.CudnnRNNV3}
BACKWARD_OPS = {
    1: raw_ops.CudnnRNNBackprop,
    2: raw_ops.CudnnRNNBackpropV2,
    3: raw_ops.CudnnRNNBackpropV3,
}
FORWARD_NAMES = ("output", "output_h", "output_c")
BACKWARD_NAMES = ("input_backprop", "input_h_backprop", "input_c_backprop", "params_backprop")


def forward(case, inputs, version=3, **attributes):
    """The op's outputs, a named tuple of tensors."""
    attributes = {**case.attributes(version), **attributes}
    return FORWARD_OPS[version](**inputs.forward(version), **attributes)


def backward(case, inputs, result, version=3, **attributes):
    """The gradients that belong to forward()'s result, a named tuple of tensors."""
    tensors = inputs.forward(version) | inputs.backprops()
    for name in (*FORWARD_NAMES, "reserve_space", *(["host_reserved"] if version > 1 else [])):
        tensors[name] = getattr(result, name)
    return BACKWARD_OPS[version](**tensors, **{**case.attributes(version), **attributes})


def numpy_values(result, names):
    return {name: getattr(result, name).numpy() for name in names}


def run_fresh(build):
    """build()'s tensors, evaluated in a graph and session of their own: with new kernels, whose
    dropout begins at the first call."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        return session.run(build())


def run_python(code, *arguments, environment=None):
    """Runs code in a new interpreter that can import the tests' modules; its standard output.

    A failure of the code fails the test with the interpreter's output.
    """
    import os

    paths = [os.path.dirname(__file__), os.path.dirname(os.path.dirname(__file__))]
    inherited = os.environ.get("PYTHONPATH")
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths + ([inherited] if inherited else [])),
            **(environment or {}),
        },
        capture_output=True,
        text=True,
        timeout=1800,  # not a measure of speed: machines that build and test at once are slow
    )
    assert process.returncode == 0, f"{process.stdout}\n{process.stderr}"
    return process.stdout


def as_numpy(value):
    return value.numpy() if tf.is_tensor(value) else np.asarray(value)
