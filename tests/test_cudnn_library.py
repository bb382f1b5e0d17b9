"""How cuDNN is found: cc/cudnn/cudnn_library.cc on libraries that only bear cuDNN's names."""

import os
import re
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCES = os.path.join(ROOT, "tests", "cudnn_library")
SONAME = "libcudnn.so.9"
FUNCTIONS = os.path.join(ROOT, "cc", "cudnn", "cudnn_functions.inc")


def compile(output, *arguments):
    os.makedirs(os.path.dirname(output), exist_ok=True)
    compiler = os.environ.get("CXX", "g++")
    command = [compiler, "-std=c++17", "-O0", "-Wall", "-Wextra", f"-I{ROOT}", *arguments]
    subprocess.run([*command, "-o", output, "-ldl"], check=True)
    return output


def all_functions():
    with open(FUNCTIONS, encoding="utf-8") as file:
        return str(len(re.findall("^CUDNN_RNN_FUNCTION", file.read(), re.MULTILINE)))


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """probe, and folders each with a libcudnn.so.9."""
    home = str(tmp_path_factory.mktemp("cudnn_library"))
    library = os.path.join(ROOT, "cc", "cudnn", "cudnn_library.cc")
    compile(f"{home}/probe", f"{SOURCES}/probe.cc", library)
    for folder, version, *more in [
        ("pip", 92800),
        ("loaded", 91002),
        ("linker", 90300),
        ("old", 8901),
        ("oldest", 8902),
        ("incomplete", 90300, "-DFAKE_LACKS_FORWARD"),
    ]:
        compile(
            f"{home}/{folder}/{SONAME}",
            "-shared",
            "-fPIC",
            f"-Wl,-soname,{SONAME}",
            f"-DFAKE_VERSION={version}",
            *more,
            f"{SOURCES}/fake_cudnn.cc",
        )
    # As TensorFlow's GPU wheel does: all of cuDNN's names in the global scope, in another library.
    compile(
        f"{home}/trampolines/libframework.so",
        "-shared",
        "-fPIC",
        "-DFAKE_VERSION=0",
        f"{SOURCES}/fake_cudnn.cc",
    )
    os.makedirs(f"{home}/broken")
    with open(f"{home}/broken/{SONAME}", "w", encoding="utf-8") as file:
        file.write("not a library")
    os.makedirs(f"{home}/empty")
    return home


def probe(home, *arguments, linker_path="empty"):
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{home}/{linker_path}"}
    done = subprocess.run(
        [f"{home}/probe", SONAME, *(argument.format(home=home) for argument in arguments)],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def test_a_loaded_library_comes_first(home):
    found = probe(home, "+{home}/loaded/libcudnn.so.9", "{home}/pip", linker_path="linker")
    assert found == {
        "path": f"{home}/loaded/{SONAME}",
        "version": "9.10.2",
        "functions": all_functions(),
        "error": "",
    }


def test_then_the_folders_in_order(home):
    found = probe(home, "{home}/empty", "{home}/pip", "{home}/oldest", linker_path="linker")
    assert found["path"] == f"{home}/pip/{SONAME}"
    assert found["version"] == "9.28.0"


def test_then_the_linkers_path(home):
    found = probe(home, "{home}/empty", linker_path="linker")
    assert found["path"] == f"{home}/linker/{SONAME}"
    assert found["version"] == "9.3.0"


def test_a_folder_with_a_broken_file_is_passed_over(home):
    assert probe(home, "{home}/broken", "{home}/pip")["version"] == "9.28.0"


def test_nothing_found_tells_where_it_looked(home):
    found = probe(home, "{home}/empty", "{home}/broken")
    assert found["functions"] == "0"
    error = found["error"]
    for text in (
        "cuDNN was not found",
        f"{home}/empty/{SONAME}",
        f"{home}/broken/{SONAME}",
        "linker's search path",
        "cuDNN 8.9.2 or later is needed",
        "nvidia-cudnn-cu12",
    ):
        assert text in error


def test_global_names_of_another_library_do_not_count(home):
    found = probe(home, "+{home}/trampolines/libframework.so")
    assert "not found" in found["error"]
    found = probe(home, "+{home}/trampolines/libframework.so", "{home}/pip")
    assert (found["version"], found["functions"]) == ("9.28.0", all_functions())


def test_a_missing_name_is_not_taken_from_another_library(home):
    found = probe(home, "+{home}/trampolines/libframework.so", "{home}/incomplete")
    assert "lacks cudnnRNNForward;" in found["error"]


def test_too_old_a_version_is_refused(home):
    found = probe(home, "{home}/old", "{home}/pip")
    assert found["functions"] == "0"
    assert f"too old: {home}/old/{SONAME} is version 8.9.1" in found["error"]
    assert "8.9.2 or later is needed" in found["error"]


def test_the_oldest_version_is_accepted(home):
    found = probe(home, "{home}/oldest")
    assert (found["version"], found["error"]) == ("8.9.2", "")


def test_missing_functions_are_named(home):
    found = probe(home, "{home}/incomplete")
    assert found["functions"] == "0"
    assert f"{home}/incomplete/{SONAME} lacks cudnnRNNForward;" in found["error"]
