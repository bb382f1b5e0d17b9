"""Loading: whatever is wrong with the library is told before it can do harm, with the way out."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

import tf_cudnn_rnn_ops
from tf_cudnn_rnn_ops import _load

MAJOR, MINOR = (int(each) for each in tf.__version__.split(".")[:2])


@pytest.fixture
def package(tmp_path):
    """A folder that looks like the installed package, to the loader."""
    folder = tmp_path / "site-packages" / "tf_cudnn_rnn_ops"
    folder.mkdir(parents=True)
    shutil.copy(_load.__file__, folder)
    (folder / "_ops.so").write_bytes(b"not a library")
    describe(folder, tf.__version__)
    return folder


def describe(folder, tensorflow_version):
    info = {"version": "1.2.3", "tensorflow_version": tensorflow_version}
    (folder / "build_info.json").write_text(json.dumps(info))


def loader(folder):
    specification = importlib.util.spec_from_file_location("loader", folder / "_load.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize("other", [f"{MAJOR}.{MINOR + 1}.0", f"{MAJOR}.{MINOR - 1}.1", "1.15.0"])
def test_another_tensorflow(package, other):
    # Refused before loading: the file could not be loaded at all.
    describe(package, other)
    with pytest.raises(ImportError) as error:
        loader(package).load()
    message = str(error.value)
    assert f"tf_cudnn_rnn_ops 1.2.3 was built for TensorFlow {other}" in message
    assert f"cannot be used with TensorFlow {tf.__version__}" in message
    assert "pip install --no-build-isolation --no-deps --force-reinstall" in message
    assert "--no-binary tf-cudnn-rnn-ops" in message
    assert f'pip install "tensorflow=={".".join(other.split(".")[:2])}.*"' in message


def test_another_patch_version_will_do(package):
    describe(package, f"{MAJOR}.{MINOR}.99")
    shutil.copy(tf_cudnn_rnn_ops.library_path(), package / "_ops.so")
    code = f"import sys; sys.path.insert(0, {str(package)!r}); import _load; _load.load()"
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "2"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_no_library(package):
    (package / "_ops.so").unlink()
    with pytest.raises(ImportError) as error:
        loader(package).load()
    assert f"the op library {package / '_ops.so'} is missing" in str(error.value)
    assert "pip install" in str(error.value)


def test_in_a_source_tree(package):
    (package / "_ops.so").unlink()
    (package.parent / "setup.py").write_text("")
    with pytest.raises(ImportError, match=f"--editable {package.parent}$"):
        loader(package).load()


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"version": "1.2.3"}', "\x00"])
def test_no_build_information(package, content):
    path = package / "build_info.json"
    path.unlink()
    if content is not None:
        path.write_text(content)
    with pytest.raises(
        ImportError, match="build_info.json, which tells .* cannot be read"
    ) as error:
        loader(package).load()
    assert "pip install" in str(error.value)


def test_not_a_library(package):
    with pytest.raises(ImportError) as error:
        loader(package).load()
    message = str(error.value)
    assert "cannot be loaded into TensorFlow" in message
    assert "invalid ELF header" in message or "file too short" in message
    assert isinstance(error.value.__cause__, tf.errors.OpError)


def test_links_are_not_followed(package, tmp_path):
    # As build systems lay files out: each a link to somewhere else.
    folder = tmp_path / "links"
    folder.mkdir()
    (folder / "_load.py").symlink_to(package / "_load.py")
    assert loader(folder).library_path() == str(folder / "_ops.so")


def test_no_tensorflow(package):
    code = f"""
import sys
sys.modules["tensorflow"] = None
sys.path.insert(0, {str(package)!r})
try:
    import _load
except ImportError as error:
    print(error)
"""
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert "needs TensorFlow" in process.stdout
    assert "pip install tensorflow-cpu" in process.stdout


def test_library_path():
    path = Path(tf_cudnn_rnn_ops.library_path())
    assert path.is_file()
    assert path.parent == Path(tf_cudnn_rnn_ops.__file__).parent
