"""Loads the op library into TensorFlow, once, after checking that the two belong together.

The library uses TensorFlow's C++ interface, which changes with every minor version: under another
one it would fail on an unknown symbol or, worse, crash in the first call. So the version that the
build recorded in build_info.json is compared before anything is loaded.
"""

import functools
import json
import os
import struct

try:
    import tensorflow as tf
except ImportError as error:
    raise ImportError(
        "tf_cudnn_rnn_ops needs TensorFlow, which could not be imported; for example\n"
        "    pip install tensorflow-cpu      (or tensorflow, for a GPU)"
    ) from error

# Not the real path: a build system may have put the two files here as links to different folders.
_FOLDER = os.path.dirname(os.path.abspath(__file__))


def library_path():
    """The path of the shared library that holds the ops.

    `tf.load_op_library` of it is all that the kernels need; importing the package does that.
    """
    return os.path.join(_FOLDER, "_ops.so")


@functools.cache
def load():
    """Loads the library; does nothing when it is loaded already.

    Raises:
      ImportError: there is no library, it was built for another TensorFlow, or it cannot be loaded.
        The message tells how to build it.
    """
    path = library_path()
    if not os.path.exists(path):
        raise ImportError(
            f"tf_cudnn_rnn_ops: the op library {path} is missing. Build it with\n{_build_command()}"
        )
    info = _build_info()
    built_for = info["tensorflow_version"]
    if _minor(built_for) != _minor(tf.__version__):
        raise ImportError(
            f"tf_cudnn_rnn_ops {info['version']} was built for TensorFlow {built_for} and cannot "
            f"be used with TensorFlow {tf.__version__}, which is installed. Build it again with\n"
            f"{_build_command()}\n"
            f'or install the other TensorFlow: pip install "tensorflow=={_minor(built_for)}.*"'
        )
    if _is_truncated(path):
        raise ImportError(
            f"tf_cudnn_rnn_ops: the op library {path} is shorter than it was built, as by a full "
            f"disk. Build it again with\n{_build_command()}"
        )
    try:
        tf.load_op_library(path)
    except tf.errors.FailedPreconditionError as error:
        raise ImportError(f"tf_cudnn_rnn_ops: {error.message}") from error
    except tf.errors.OpError as error:
        raise ImportError(
            f"tf_cudnn_rnn_ops {info['version']}, built for TensorFlow {built_for}, cannot be "
            f"loaded into TensorFlow {tf.__version__}: {error.message}\n"
            f"Building it again may help:\n{_build_command()}"
        ) from error


def _is_truncated(path):
    """Whether the end of a library is missing, which would end the process while it is loaded.

    An ELF file ends with the table of its sections; its header tells where. What is no such file
    is left to the dynamic linker, which says so.
    """
    with open(path, "rb") as file:
        header = file.read(64)
    if len(header) < 64 or header[:4] != b"\x7fELF":
        return False
    (table,) = struct.unpack_from("<Q", header, 0x28)
    entry_size, entries = struct.unpack_from("<HH", header, 0x3A)
    return os.path.getsize(path) < table + entry_size * entries


def _minor(version):
    """ "2.21" of "2.21.0"."""
    return ".".join(version.split(".")[:2])


def _build_info():
    path = os.path.join(_FOLDER, "build_info.json")
    try:
        with open(path, encoding="utf-8") as file:
            info = json.load(file)
        return {key: info[key] for key in ("version", "tensorflow_version")}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ImportError(
            f"tf_cudnn_rnn_ops: {path}, which tells what TensorFlow the op library was built for, "
            f"cannot be read ({error!r}). Build both again with\n{_build_command()}"
        ) from error


def _build_command():
    root = os.path.dirname(_FOLDER)
    if os.path.exists(os.path.join(root, "setup.py")):
        return f"    pip install --no-build-isolation --no-deps --force-reinstall --editable {root}"
    return (
        "    pip install --no-build-isolation --no-deps --force-reinstall --no-cache-dir"
        " --no-binary tf-cudnn-rnn-ops tf-cudnn-rnn-ops"
    )
