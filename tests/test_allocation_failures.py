"""An op of which an allocation fails says ResourceExhausted, leaks nothing, and runs the next time.

Each allocation of a call fails once, for all ops: those that the library makes itself and all that
TensorFlow makes beneath the kernel. tests/cc/cpu_cudnn_test.cc has the same for the C functions of
cc/cpu.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import failing_calls
import run_ops

COMPILER = os.environ.get("CXX", "g++").split()[0]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if shutil.which(COMPILER) is None:
        pytest.skip(f"no {COMPILER}")
    source = Path(__file__).parent / "faults" / "failing_allocations.cc"
    path = tmp_path_factory.mktemp("faults") / "failing_allocations.so"
    flags = ["-std=c++17", "-O1", "-fPIC", "-shared", "-fno-builtin"]
    subprocess.run([COMPILER, *flags, source, "-o", path, "-ldl"], check=True)
    return str(path)


def test_each_allocation_fails_once(library):
    output = run_ops.run_python(
        "import failing_calls; failing_calls.main()",
        library,
        environment={"LD_PRELOAD": library, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    messages = [json.loads(line) for line in output.splitlines()]
    ends = [message for message in messages if "end" in message]
    assert len(ends) == len([message for message in messages if "begin" in message]) >= 20
    for message in ends:
        assert message["failures"] >= 1, message
        assert message["left"] <= 0, message


def test_every_op_is_called():
    assert {name.split()[0] for name in failing_calls.calls()} == set(failing_calls.raw_ops.__all__)
