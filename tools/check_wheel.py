#!/usr/bin/env python3
"""Checks a built wheel from outside; prints what it found and exits 1 when something is off.

    python tools/check_wheel.py dist/*.whl

The tag is py3-none-<platform>; the file is below 5 MB; its Python files are those of the tree; it
holds one shared library, which needs TensorFlow's framework library and the C and C++ runtimes and
nothing of CUDA or cuDNN, exports tf_cudnn_rnn_ops_* and nothing else, and keeps no path of the
machine that built it. Needs readelf and nm.
"""

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "tf_cudnn_rnn_ops"
LARGEST_WHEEL = 5_000_000
NEEDED = re.compile(
    r"libtensorflow_framework\.so|lib(stdc\+\+|gcc_s|c|m|dl|pthread)\.so|ld-linux-.*\.so"
)


def tool_lines(*command):
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return result.stdout.splitlines()


def check_library(path):
    """Yields what is wrong with the shared library at `path`."""
    dynamic = tool_lines("readelf", "-d", "-W", path)
    needed = [re.search(r"\[(.*)\]", line).group(1) for line in dynamic if "(NEEDED)" in line]
    for name in needed:
        if not NEEDED.match(name):
            yield f"the library needs {name}"
    for line in dynamic:
        if "RPATH" in line or "RUNPATH" in line:
            yield f"the library keeps a search path: {line.strip()}"
    symbols = [line.split()[-1] for line in tool_lines("nm", "-D", "--defined-only", path)]
    for name in symbols:
        if not name.startswith(f"{PACKAGE}_"):
            yield f"the library exports {name}"
    if str(ROOT).encode() in Path(path).read_bytes():
        yield f"the library contains the path {ROOT}"
    print(f"{PACKAGE}/_ops.so: {Path(path).stat().st_size / 1e6:.2f} MB")
    print(f"  needs {' '.join(needed)}")
    print(f"  exports {' '.join(symbols)}")


def check_wheel(path):
    """Yields what is wrong with the wheel at `path`."""
    print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB")
    if not re.fullmatch(rf"{PACKAGE}-[^-]+-py3-none-(?!any)\w+\.whl", path.name):
        yield f"{path.name} is not tagged py3-none-<platform>"
    if path.stat().st_size > LARGEST_WHEEL:
        yield f"{path.name} is larger than {LARGEST_WHEEL} bytes"
    expected = {
        str(source.relative_to(ROOT))
        for source in (ROOT / PACKAGE).rglob("*.py")
        if "__pycache__" not in source.parts
    }
    expected |= {f"{PACKAGE}/_ops.so", f"{PACKAGE}/build_info.json"}
    with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory() as folder:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        for name in sorted(expected - names):
            yield f"{name} is not in the wheel"
        for name in sorted(names - expected):
            yield f"{name} does not belong into the wheel"
        if f"{PACKAGE}/_ops.so" in names:
            yield from check_library(archive.extract(f"{PACKAGE}/_ops.so", folder))


def main(paths):
    faults = [fault for path in paths for fault in check_wheel(Path(path))]
    for fault in faults:
        print(f"error: {fault}")
    return 1 if faults or not paths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
