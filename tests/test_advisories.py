"""Each published advisory on these ops or their like, and each fault of stock TensorFlow that ends
the process, by its number: ours lives on and does what is right. advisories.py has the calls.

CVE-...: the advisories; tensorflow-, pytorch- and mxnet-...: reports without one; stock-...: faults
of TensorFlow 2.21, numbered as in test_stock_defects.py.
"""

import json
import os
import subprocess
import sys

import pytest

import advisories


@pytest.fixture(scope="module")
def outcomes():
    """Name -> failure, "" where there is none; one process, and another after each crash."""
    results = {}
    names = list(advisories.CALLS)
    paths = [os.path.dirname(__file__), os.path.dirname(os.path.dirname(__file__))]
    paths += [os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}
    while names:
        process = subprocess.run(
            [sys.executable, advisories.__file__],
            input=json.dumps(names),
            capture_output=True,
            text=True,
            env=environment,
            timeout=600,
        )
        begun = None
        for line in process.stdout.splitlines():
            message = json.loads(line)
            begun = message.get("begin")
            if "end" in message:
                results[message["end"]] = message["failure"]
        assert begun is not None or process.returncode == 0, process.stderr[-3000:]
        if begun is not None:
            results[begun] = f"ended with {process.returncode}: {process.stderr[-3000:]}"
        names = [name for name in names if name not in results]
    return results


@pytest.mark.parametrize("name", advisories.CALLS)
def test_advisory(outcomes, name):
    assert outcomes[name] == ""
