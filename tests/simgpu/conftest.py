"""The simulated GPU: TensorFlow's GPU wheel in its own process, with a library of ours as cuDNN.

`make test-simgpu` sets SIMGPU_PYTHON, a Python with TensorFlow's GPU wheel and without NVIDIA's
packages, and SIMGPU_SOURCE, the folder with the simulated GPU's build.sh. Without them these tests
are skipped. What runs on the simulated GPU is in the files checks_*.py, which a Python of the wheel
executes: a process that aborts fails one test.
"""

import contextlib
import fcntl
import glob
import hashlib
import json
import os
import subprocess
import sys

import pytest

import other_gpus

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(ROOT, "build", "simgpu")
ENGINE = os.path.join(ROOT, "build", "libcudnn_rnn_cpu.so")
STRICT = os.path.join(BUILD, "libstrict_cudnn.so")


class SimulatedGpu:
    """Runs functions of checks_*.py where there is a GPU."""

    def __init__(self, python, source):
        self.python = python
        self.source = source

    def start(self, file, *arguments, provider=ENGINE, python=None, **environment):
        """Runs a file; what came of it, a CompletedProcess. provider: the library as cuDNN."""
        environment = {
            **os.environ,
            "SIMGPU_HOME": BUILD,
            "SIMGPU_CHECK": "1",
            "SIMGPU_CUDNN_PROVIDER": provider,
            "STRICT_CUDNN_ENGINE": ENGINE,
            "PYTHONPATH": os.pathsep.join([ROOT, os.path.join(ROOT, "tests"), HERE]),
            "TF_CPP_MIN_LOG_LEVEL": "1",
            **environment,
        }
        command = [
            os.path.join(self.source, "run.sh"),
            python or self.python,
            os.path.join(HERE, f"{file}.py"),
            *map(str, arguments),
        ]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=900, check=False
        )

    def process(self, check, *arguments, **options):
        """The same of `FILE.FUNCTION`."""
        return self.start(*check.split("."), *arguments, **options)

    def run(self, check, *arguments, **options):
        """The same, which must succeed; the value that the function returned."""
        done = self.process(check, *arguments, **options)
        assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
        assert "[simgpu]" not in done.stderr, done.stderr[-6000:]
        return json.loads(done.stdout.splitlines()[-1])


@contextlib.contextmanager
def _locked(folder):
    """One process of pytest at a time."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _cuda_headers(python):
    """Those in TensorFlow's GPU wheel."""
    code = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    site = subprocess.check_output([python, "-c", code], text=True).strip()
    return os.path.join(site, "tensorflow/include/third_party/gpus/cuda/include")


def _build(python, source):
    """The simulated GPU and the strict cuDNN."""
    with _locked(BUILD):
        if not os.path.exists(os.path.join(BUILD, "libcudnn.so.9")):
            environment = {**os.environ, "SIMGPU_CUDA_INCLUDE": _cuda_headers(python)}
            command = [os.path.join(source, "build.sh"), BUILD]
            subprocess.run(command, env=environment, check=True, capture_output=True)
        sources = [
            os.path.join(HERE, "strict_cudnn.cc"),
            os.path.join(ROOT, "cc", "cudnn", "cudnn_library.cc"),
        ]
        flags = ["-std=c++17", "-O1", "-fPIC", "-fvisibility=hidden", f"-I{ROOT}"]
        flags += ["-shared", "-Wl,-Bsymbolic"]
        command = [os.environ.get("CXX", "g++"), *flags, *sources, "-ldl"]
        made_of = _digest(sources + glob.glob(os.path.join(ROOT, "cc", "cudnn", "*.[hi]*")))
        record = STRICT + ".made_of"
        if not os.path.exists(record) or _read(record) != made_of:
            subprocess.run([*command, "-o", STRICT], check=True)
            with open(record, "w") as file:
                file.write(made_of)


def _read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def _digest(paths):
    return hashlib.sha256("".join(map(_read, sorted(paths))).encode()).hexdigest()


@pytest.fixture(scope="session")
def simgpu():
    python, source = os.environ.get("SIMGPU_PYTHON"), os.environ.get("SIMGPU_SOURCE")
    if not (python and source):
        pytest.skip("no simulated GPU: run make test-simgpu")
    for path in (python, os.path.join(source, "build.sh"), ENGINE):
        if not os.path.exists(path):
            pytest.skip(f"no simulated GPU: {path} is missing")
    _build(python, source)
    return SimulatedGpu(python, source)


@pytest.fixture(scope="session")
def strict_cudnn():
    """The path of the cuDNN that refuses what cuDNN refuses, and fails on demand."""
    return STRICT


@pytest.fixture(scope="session")
def cpu_python():
    """The Python that runs these tests, with TensorFlow for CPUs."""
    return sys.executable


def _other_gpu(simgpu, name, changes):
    """SIMGPU_HOME of a simulated GPU with changes."""
    folder = os.path.join(ROOT, "build", name)
    with _locked(folder):
        if not os.path.exists(os.path.join(folder, "libcudnn.so.9")):
            try:
                other_gpus.build(simgpu.source, folder, changes, _cuda_headers(simgpu.python))
            except other_gpus.ChangedError as error:
                pytest.skip(f"the simulated GPU has changed: {error}")
    return folder


@pytest.fixture(scope="session")
def two_gpus(simgpu):
    return _other_gpu(simgpu, "simgpu_two", other_gpus.TWO_DEVICES)


@pytest.fixture(scope="session")
def old_gpu(simgpu):
    return _other_gpu(simgpu, "simgpu_old", other_gpus.OLD_DEVICE)
