"""Compares what this project declares of cuDNN with cuDNN itself.

    python tools/check_cudnn.py FOLDER...         site-packages folders that hold a cudnn.h
    python tools/check_cudnn.py --fetch FOLDER    first unpacks the newest cuDNN of pip in FOLDER

A folder has TensorFlow's GPU wheel, or the wheels nvidia-cudnn-cu12, nvidia-cuda-runtime-cu12 and
nvidia-cuda-nvcc-cu12. For each cudnn.h in it, tests/cc/header_conformance_test.cc must compile, and
where libcudnn.so.9 is too, its symbol table must have every function of cudnn_functions.inc.
Needs g++ (or $CXX) and nm; no GPU.
"""

import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TEST = os.path.join(ROOT, "tests", "cc", "header_conformance_test.cc")
CUDNN = os.path.join(ROOT, "cc", "cudnn")
WHEELS = ["nvidia-cudnn-cu12", "nvidia-cuda-runtime-cu12", "nvidia-cuda-nvcc-cu12"]
# Where the headers lie in a site-packages folder: cuDNN's, then CUDA's.
HEADERS = [
    (
        "tensorflow/include/third_party/gpus/cudnn/include",
        ["tensorflow/include/third_party/gpus/cuda/include"],
    ),
    (
        "nvidia/cudnn/include",
        ["nvidia/cuda_runtime/include", "nvidia/cuda_nvcc/include"],
    ),
]


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def fetch(folder):
    """Unpacks the headers and libcudnn.so.9 of the newest cuDNN (the wheel has 700 MB)."""
    with tempfile.TemporaryDirectory() as temporary:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", temporary]
        subprocess.run([*command, "--only-binary", ":all:", *WHEELS], check=True)
        for wheel in glob.glob(os.path.join(temporary, "*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                for name in archive.namelist():
                    if name.endswith((".h", "/libcudnn.so.9")):
                        archive.extract(name, folder)


def check_completeness():
    """Every enum value of our headers must be compared by the test."""
    headers = read(CUDNN, "cudnn_rnn_api.h") + read(CUDNN, "cuda_driver.h")
    declared = set(re.findall(r"\b(CU[A-Z]*_\w+) = \d", headers))
    return sorted(name for name in declared if f"{name})" not in read(TEST).replace(" ==", ")"))


def check_headers(cudnn, cuda):
    include = [argument for folder in [cudnn, *cuda] for argument in ("-isystem", folder)]
    compiler = os.environ.get("CXX", "g++")
    command = [compiler, "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", f"-I{ROOT}", *include]
    return subprocess.run([*command, TEST], capture_output=True, text=True, check=False)


def missing_symbols(library):
    """Our functions that the library does not define."""
    command = ["nm", "-D", "--defined-only", library]
    table = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    defined = {line.split()[-1].split("@")[0] for line in table.splitlines()}
    list_of_functions = read(CUDNN, "cudnn_functions.inc")
    functions = re.findall(r"^CUDNN_RNN_FUNCTION\([^,]+, (\w+),", list_of_functions, re.MULTILINE)
    return len(functions), [name for name in functions if name not in defined]


def version(cudnn):
    names = ("MAJOR", "MINOR", "PATCHLEVEL")
    text = read(cudnn, "cudnn_version.h")
    return ".".join(re.search(rf"define CUDNN_{name} (\d+)", text)[1] for name in names)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fetch", metavar="FOLDER")
    parser.add_argument("folders", nargs="*", metavar="FOLDER")
    arguments = parser.parse_args()
    folders = list(arguments.folders)
    if arguments.fetch:
        fetch(arguments.fetch)
        folders.append(arguments.fetch)

    failures = [f"{name} is not compared in {TEST}" for name in check_completeness()]
    found = 0
    for folder in folders:
        for cudnn, cuda in HEADERS:
            cudnn = os.path.join(folder, cudnn)
            if not os.path.exists(os.path.join(cudnn, "cudnn.h")):
                continue
            found += 1
            done = check_headers(cudnn, [os.path.join(folder, path) for path in cuda])
            verdict = "differs" if done.returncode or done.stderr else "equal"
            print(f"cudnn.h {version(cudnn)} in {cudnn}: {verdict}")
            if verdict == "differs":
                failures.append(done.stderr)
        library = os.path.join(folder, "nvidia/cudnn/lib/libcudnn.so.9")
        if os.path.exists(library):
            count, missing = missing_symbols(library)
            print(f"{library}: {count - len(missing)} of {count} functions")
            failures += [f"{library} lacks {name}" for name in missing]
    if not found:
        failures.append("no cudnn.h found in: " + " ".join(folders))
    for failure in failures:
        print(failure, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
