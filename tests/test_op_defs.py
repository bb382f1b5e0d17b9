"""The op definitions in the library: equal to TensorFlow's, and registered where it has none."""

import ctypes
import glob
import os
import subprocess
import sys

import pytest
import tensorflow as tf
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.framework import op_def_registry

import tf_cudnn_rnn_ops
from tf_cudnn_rnn_ops import raw_ops

MODE_ATTRS = ["rnn_mode", "input_mode", "direction", "dropout", "seed", "seed2"]
STATEFUL = {
    "CudnnRNN",
    "CudnnRNNV2",
    "CudnnRNNV3",
    "CudnnRNNBackprop",
    "CudnnRNNBackpropV2",
    "CudnnRNNBackpropV3",
}


def our_definitions():
    function = ctypes.CDLL(tf_cudnn_rnn_ops.library_path()).tf_cudnn_rnn_ops_op_definitions
    function.restype = ctypes.c_void_p
    size = ctypes.c_size_t()
    data = function(ctypes.byref(size))
    ops = op_def_pb2.OpList.FromString(ctypes.string_at(data, size.value)).op
    return {op.name: op for op in ops}


def test_every_op_is_defined():
    assert set(our_definitions()) == set(raw_ops.__all__)
    assert len(raw_ops.__all__) == 11


@pytest.mark.parametrize("name", raw_ops.__all__)
def test_equal_to_tensorflow(name):
    assert our_definitions()[name] == op_def_registry.get(name)


@pytest.mark.parametrize("name", raw_ops.__all__)
def test_as_documented(name):
    op = our_definitions()[name]
    assert op.is_stateful == (name in STATEFUL)
    attrs = {attr.name: attr for attr in op.attr}
    types = [tf.as_dtype(each).name for each in attrs["T"].allowed_values.list.type]
    assert types == ["bfloat16", "float16", "float32", "float64"]
    names = list(attrs)
    start = names.index("rnn_mode")
    assert names[start : start + 6] == MODE_ATTRS
    defaults = {
        "rnn_mode": b"lstm",
        "input_mode": b"linear_input",
        "direction": b"unidirectional",
        "dropout": 0,
        "seed": 0,
        "seed2": 0,
        "num_proj": 0,
        "is_training": True,
        "time_major": True,
    }
    for attr in op.attr:
        if attr.name in defaults:
            kind = attr.default_value.WhichOneof("value")
            assert getattr(attr.default_value, kind) == defaults[attr.name]
        else:
            assert not attr.HasField("default_value")


def run(code, *arguments):
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "2"}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment
    )


# A process with TensorFlow's framework but without its ops. The registry is asked with its C++
# method LookUp, whose argument is a std::string: pointer, length and a buffer of 16 bytes.
FRAMEWORK_ONLY = """
import ctypes, sys
framework = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
registry = framework._ZN10tensorflow10OpRegistry6GlobalEv
registry.restype = ctypes.c_void_p
look_up = getattr(framework, "_ZNK10tensorflow10OpRegistry6LookUpERKNSt7__cxx1112basic_string"
                             "IcSt11char_traitsIcESaIcEEE")
look_up.restype = ctypes.c_void_p
look_up.argtypes = [ctypes.c_void_p, ctypes.c_void_p]

class String(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("size", ctypes.c_size_t), ("rest", ctypes.c_char * 16)]

def registered(name):
    text = String(name.encode(), len(name), b"")
    return look_up(registry(), ctypes.byref(text)) is not None

names = sys.argv[3:]
before = [name for name in names if registered(name)]
ctypes.CDLL(sys.argv[2])
print(before, [name for name in names if not registered(name)], registered("MatMul"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="names of the GNU C++ library")
def test_registered_where_tensorflow_has_none():
    framework = glob.glob(os.path.join(tf.sysconfig.get_lib(), "libtensorflow_framework.so*"))[0]
    process = run(FRAMEWORK_ONLY, framework, tf_cudnn_rnn_ops.library_path(), *raw_ops.__all__)
    assert process.returncode == 0, process.stderr
    assert process.stdout.strip() == "[] [] False"


# Any way of loading, more than once, before and after the package.
LOADS = {
    "by the dynamic linker": "import tensorflow; ctypes.CDLL(path)",
    "by TensorFlow": "import tensorflow as tf; tf.load_op_library(path); tf.load_op_library(path)",
    "linker, then TensorFlow": """
import tensorflow as tf
ctypes.CDLL(path)
tf.load_op_library(path)
""",
    "by the package, reloaded": """
import importlib
import tensorflow as tf
import tf_cudnn_rnn_ops
from tf_cudnn_rnn_ops import _load, gradients, raw_ops
for module in (_load, gradients, raw_ops, tf_cudnn_rnn_ops):
    importlib.reload(module)
tf.load_op_library(path)
""",
}


@pytest.mark.parametrize("how", LOADS)
def test_loading(how):
    code = (
        "import ctypes, sys; path = sys.argv[1]\n"
        + LOADS[how]
        + """
import tensorflow as tf
size = tf.raw_ops.CudnnRNNParamsSize(num_layers=1, num_units=2, input_size=3, T=tf.float32,
                                     S=tf.int32)
print(size.numpy())
with tf.Graph().as_default():
    try:
        tf.raw_ops.CudnnRNNParamsSize(num_layers=0, num_units=2, input_size=3, T=tf.float32,
                                      S=tf.int32)
    except ValueError as error:
        print(str(error).split(" for ")[0])
"""
    )
    process = run(code, tf_cudnn_rnn_ops.library_path())
    assert process.returncode == 0, process.stderr
    assert process.stdout.split("\n")[:2] == [
        "[56]",
        "num_layers must be in [1, 2147483647], got 0",
    ]
