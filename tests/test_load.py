"""Loading: whatever is wrong with the library is told before it can do harm, with the way out."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import tf_cudnn_rnn_ops
from tf_cudnn_rnn_ops import _load, reference

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


@pytest.mark.parametrize("kept", [0.001, 0.3, 0.9, 0.9999])
def test_a_truncated_library(package, kept):
    # The dynamic linker would end the process with SIGBUS.
    library = Path(tf_cudnn_rnn_ops.library_path()).read_bytes()
    (package / "_ops.so").write_bytes(library[: int(kept * len(library))])
    with pytest.raises(ImportError, match=r"_ops\.so is shorter than it was built") as error:
        loader(package).load()
    assert "pip install" in str(error.value)


def test_an_empty_library(package):
    (package / "_ops.so").write_bytes(b"")
    with pytest.raises(ImportError, match="cannot be loaded into TensorFlow"):
        loader(package).load()


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


CALL = """
import numpy as np
import tensorflow as tf

def call(batch=2):
    states = np.zeros([1, batch, 5], np.float32)
    output = tf.raw_ops.CudnnRNNV3(
        input=np.ones([3, batch, 4], np.float32), input_h=states, input_c=states,
        params=np.full([4 * 5 * 9 + 40], 0.1, np.float32), sequence_lengths=[3] * batch
    ).output
    return float(output.numpy().sum())
"""


def run(code, *arguments, folder=None):
    """The words that a new process prints. folder: where the program is to be a file."""
    program = ["-c", code]
    if folder:
        program = [folder / "program.py"]
        program[0].write_text(code)
    done = subprocess.run(
        [sys.executable, *program, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(Path(tf_cudnn_rnn_ops.__file__).parent.parent)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-4000:]}"
    return done.stdout.split()


@pytest.mark.parametrize(
    "imports",
    [
        "import tf_cudnn_rnn_ops\nimport tensorflow",
        "import tensorflow\nimport tf_cudnn_rnn_ops",
        # TensorFlow in use before: a call without a kernel, a graph that holds one.
        """
        import tensorflow as tf
        zeros = tf.zeros([1, 2, 5])
        arguments = dict(input=tf.zeros([3, 2, 4]), input_h=zeros, input_c=zeros,
                         params=tf.zeros([220]), sequence_lengths=[3, 3])
        try:
            tf.raw_ops.CudnnRNNV3(**arguments)
            raise SystemExit("stock TensorFlow has a kernel")
        except (tf.errors.NotFoundError, tf.errors.InvalidArgumentError):
            pass
        graph = tf.function(lambda: tf.raw_ops.CudnnRNNV3(**arguments).output)
        graph.get_concrete_function()
        import tf_cudnn_rnn_ops
        assert graph().shape == [3, 2, 5]
        """,
    ],
    ids=["ours_first", "tensorflow_first", "tensorflow_in_use"],
)
def test_order_of_imports(imports):
    (value,) = run(f"{textwrap.dedent(imports)}\n{CALL}\nprint(call())")
    states = np.zeros([1, 2, 5])
    output = reference.forward(
        input=np.ones([3, 2, 4]), input_h=states, input_c=states, params=np.full([220], 0.1)
    )[0]
    assert float(value) == pytest.approx(output.sum(), rel=1e-5)


def test_imported_again():
    """reload() of every module, and a new import after all of them were forgotten."""
    code = """
import importlib, sys
import tf_cudnn_rnn_ops, tf_cudnn_rnn_ops.layers
print(call())
ours = [name for name in sys.modules if name.startswith("tf_cudnn_rnn_ops")]
for name in ours:
    importlib.reload(sys.modules[name])
print(call())
for name in ours:
    del sys.modules[name]
import tf_cudnn_rnn_ops
print(call())
with tf.GradientTape() as tape:
    weights = [tf.ones([1, 1])] * 2
    tape.watch(weights[0])
    params = tf.raw_ops.CudnnRNNCanonicalToParamsV2(
        num_layers=1, num_units=1, input_size=1, weights=weights, biases=[tf.ones([1])] * 2,
        rnn_mode="rnn_tanh")
print(float(tf.reduce_sum(tape.gradient(params, weights[0]))))
"""
    first, *others, gradient = run(CALL + code)
    assert others == [first, first]
    assert float(gradient) > 0


def test_the_same_library_loaded_twice(tmp_path):
    code = """
import os, sys
import tf_cudnn_rnn_ops
path = tf_cudnn_rnn_ops.library_path()
os.symlink(path, sys.argv[1])
for again in (path, sys.argv[1], path):
    tf.load_op_library(again)
print(call())
"""
    assert len(run(CALL + code, tmp_path / "link.so")) == 1


def test_another_copy_in_the_process(tmp_path):
    """Refused by name; nothing is registered twice, and the first one works on."""
    path = tf_cudnn_rnn_ops.library_path()
    shutil.copy(path, tmp_path / "copy.so")
    shutil.copy(path, tmp_path / "another.so")
    code = """
import ctypes, sys
import tf_cudnn_rnn_ops
from tensorflow.python.framework import kernels
def count():
    return len(kernels.get_registered_kernels_for_op("CudnnRNNV3").kernel)
before = call(), count()
try:
    tf.load_op_library(sys.argv[1] + "/copy.so")
except tf.errors.FailedPreconditionError as error:
    assert f"loaded already, from {tf_cudnn_rnn_ops.library_path()}" in error.message, error
    assert f"{sys.argv[1]}/copy.so is another copy" in error.message, error
    print("refused")
# A program that loads it by itself finds it in the log.
ctypes.CDLL(sys.argv[1] + "/another.so")
assert (call(), count()) == before
"""
    assert run(CALL + code, tmp_path) == ["refused"]


def test_another_copy_of_the_package(tmp_path):
    package = Path(tf_cudnn_rnn_ops.__file__).parent
    shutil.copytree(package, tmp_path / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    code = """
import sys
import tf_cudnn_rnn_ops
for name in [name for name in sys.modules if name.startswith("tf_cudnn_rnn_ops")]:
    del sys.modules[name]
sys.path.insert(0, sys.argv[1])
try:
    import tf_cudnn_rnn_ops
except ImportError as error:
    assert "another copy" in str(error), error
    print("refused")
print(call())
"""
    assert run(CALL + code, tmp_path)[0] == "refused"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes(method, tmp_path):
    """Children of a process that has loaded the library, before and after it has run an op."""
    code = """
import multiprocessing, sys
import tf_cudnn_rnn_ops
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(1) as pool:
        print(*pool.map_async(call, [2, 64]).get(100))
    print(call(), call(64))
    with context.Pool(1) as pool:
        print(*pool.map_async(call, [2, 64]).get(100))
"""
    values = run(CALL + code, method, folder=tmp_path)
    assert len(values) == 6
    assert values[:2] == values[2:4] == values[4:]
