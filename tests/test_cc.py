"""Runs the C++ tests that `make test` has built with GoogleTest, each as a test of its own."""

import subprocess
from pathlib import Path

import pytest

BINARIES = Path(__file__).resolve().parent.parent / "build" / "cc_tests"


def list_tests():
    """(binary, full name of the test) of every test in every binary."""
    tests = []
    for binary in sorted(BINARIES.glob("*")):
        listing = subprocess.run(
            [binary, "--gtest_list_tests"], capture_output=True, text=True, check=True
        )
        suite = ""
        for line in listing.stdout.splitlines():
            name = line.split("#")[0].strip()
            if line.startswith("  "):
                tests.append(pytest.param(binary, suite + name, id=suite + name))
            elif name.endswith("."):
                suite = name
    return tests


TESTS = list_tests()


@pytest.mark.skipif(not TESTS, reason="no C++ tests were built: GoogleTest was not found")
@pytest.mark.parametrize(("binary", "name"), TESTS or [(None, None)])
def test_cc(binary, name):
    result = subprocess.run(
        [binary, f"--gtest_filter={name}"], capture_output=True, text=True, timeout=600
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "[  PASSED  ] 1 test." in result.stdout or "[  SKIPPED ] 1 test" in result.stdout
