"""tests/gpu/rnn_parity, the program for a machine with a GPU, with the CPU engine as its cuDNN."""

import json
import os
import re
import subprocess

import pytest

import cases

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "build", "gpu")
PROGRAM = os.path.join(FOLDER, "rnn_parity")
ENGINE = os.path.join(FOLDER, "libcudnn_rnn_cpu.so")


@pytest.fixture(scope="module")
def program(simgpu):
    subprocess.run([os.path.join(ROOT, "tests", "gpu", "build.sh"), FOLDER], check=True)
    return simgpu


def run(*arguments, **environment):
    done = subprocess.run(
        [PROGRAM, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def passed_and_failed(output):
    return tuple(
        map(int, re.search(r"^(\d+) passed, (\d+) failed$", output, re.MULTILINE).groups())
    )


def test_its_cases_are_those_of_the_table(program):
    _, output, _ = run("--list")
    expected = [case.id for case in cases.FORWARD_CASES + cases.EDGE_CASES]
    assert output.split() == expected


def test_on_host_memory(program, tmp_path):
    path = str(tmp_path / "report.json")
    status, output, error = run("--host", ENGINE, "--json", path, "--no-timing")
    assert status == 0, output + error
    passed, failed = passed_and_failed(output)
    assert failed == 0
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    assert len(report["cases"]) == passed
    assert all(case["passed"] for case in report["cases"])


def test_on_the_simulated_gpu(program, strict_cudnn, tmp_path):
    """The driver's copies and fills, cuDNN's refusals, another weight layout, and the timing."""
    path = str(tmp_path / "report.json")
    status, output, error = run(
        *("--json", path, "--filter", "lstm"),
        LD_LIBRARY_PATH=os.path.join(ROOT, "build", "simgpu"),
        SIMGPU_CHECK="1",
        SIMGPU_CUDNN_PROVIDER=strict_cudnn,
        STRICT_CUDNN_ENGINE=ENGINE,
        STRICT_CUDNN_LAYOUT="other",
        RNN_PARITY_CALLS="1",
    )
    assert status == 0, output + error
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    assert "cuDNN" in report["actual"]
    assert any("layout" in case for case in report["cases"])
    assert len(report["microseconds"]) >= 5
    assert all(row["forward"] > 0 and row["problem"] == "" for row in report["microseconds"])


def run_on_the_simulated_gpu(strict_cudnn, *arguments, **environment):
    return run(
        *("--no-timing", "--filter", "L1-un-T5B3I4H7-none-float32", *arguments),
        LD_LIBRARY_PATH=os.path.join(ROOT, "build", "simgpu"),
        SIMGPU_CUDNN_PROVIDER=strict_cudnn,
        STRICT_CUDNN_ENGINE=ENGINE,
        **environment,
    )


def test_a_failure_is_one_of_a_case(program, strict_cudnn):
    status, output, _ = run_on_the_simulated_gpu(
        strict_cudnn, STRICT_CUDNN_FAIL="cudnnRNNBackwardData_v8:2:5000"
    )
    assert status == 1
    passed, failed = passed_and_failed(output)
    assert passed > 0
    assert failed == 1
    assert re.search(
        r"^FAILED \S+: cudnnRNNBackwardData_v8 failed .*injected fault", output, re.MULTILINE
    )


def test_a_difference_is_found(program, strict_cudnn):
    status, output, _ = run_on_the_simulated_gpu(strict_cudnn, STRICT_CUDNN_WRONG="yes")
    assert status == 1
    assert passed_and_failed(output)[1] >= 1
    assert re.search(r"^FAILED rnn_relu\S+: .*\boutput differs by", output, re.MULTILINE)


def test_an_old_cudnn_is_refused(program, strict_cudnn):
    status, output, error = run_on_the_simulated_gpu(strict_cudnn, STRICT_CUDNN_VERSION="8901")
    assert status == 2
    assert "8.9.2 or later is needed" in error
    assert "passed" not in output


def test_without_a_gpu_it_says_so(program):
    status, output, error = run()
    assert status == 2
    assert "not found" in error or "no GPU" in error
