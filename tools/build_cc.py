#!/usr/bin/env python3
"""Compiles the C++ code: the op library, the stand-alone engine and the GoogleTest binaries.

    python tools/build_cc.py ops      tf_cudnn_rnn_ops/_ops.so and build_info.json beside it
    python tools/build_cc.py engine   build/libcudnn_rnn_cpu.so
    python tools/build_cc.py tests    build/cc_tests/*, where GoogleTest is found
    python tools/build_cc.py benchmark  build/engine_benchmark
    python tools/build_cc.py tidy     clang-tidy on the layers that do without TensorFlow

setup.py and the Makefile come here. Only what changed is compiled again: an object is stale when
its source, a header that its last compilation read, or its command is newer. Environment: CXX,
CXXFLAGS (added last), WERROR=1 (warnings are errors), JOBS (default: the number of processors),
GTEST_ROOT (a prefix with include/ and lib/).
"""

import argparse
import concurrent.futures
import contextlib
import fcntl
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD_DIR = ROOT / "build"
PACKAGE = "tf_cudnn_rnn_ops"


class BuildError(Exception):
    """A message for the user; no traceback is of use."""


def load_sources():
    """The assignments of cc/sources.bzl, as a dictionary."""
    names = {}
    exec((ROOT / "cc" / "sources.bzl").read_text(), names)
    return names


def version():
    names = {}
    exec((ROOT / PACKAGE / "_version.py").read_text(), names)
    return names["__version__"]


def compiler():
    return shlex.split(os.environ.get("CXX", "g++"))


def compiler_version():
    try:
        result = subprocess.run([*compiler(), "--version"], capture_output=True, text=True)
    except FileNotFoundError:
        raise BuildError(f"no C++ compiler {compiler()[0]!r}: install g++ or set CXX") from None
    return result.stdout.splitlines()[0] if result.returncode == 0 else compiler()[0]


def target_machine():
    """The architecture that the compiler compiles for, "x86_64" for example."""
    result = subprocess.run([*compiler(), "-dumpmachine"], capture_output=True, text=True)
    machine = result.stdout.split("-")[0].strip()
    return "aarch64" if machine == "arm64" else machine


def tensorflow_config():
    """Version, ABI and flags (from tf.sysconfig) of the TensorFlow that this Python imports."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        import tensorflow as tf
    except ImportError as error:
        raise BuildError(
            "building tf_cudnn_rnn_ops needs an installed TensorFlow and this Python "
            f"({sys.executable}) cannot import one: {error}\n"
            "Install it first and build against it:\n"
            "    pip install tensorflow-cpu          (or tensorflow, for a GPU)\n"
            "    pip install --no-build-isolation ."
        ) from error
    flags = []
    for flag in tf.sysconfig.get_compile_flags():
        # TensorFlow's headers are not ours to warn about.
        flags += ["-isystem", flag[2:]] if flag.startswith("-I") else [flag]
    abi = [flag[-1] for flag in flags if flag.startswith("-D_GLIBCXX_USE_CXX11_ABI=")]
    return {
        "version": tf.__version__,
        "cxx11_abi": int(abi[0]) if abi else 1,
        "compile_flags": flags + [f"-ffile-prefix-map={tf.sysconfig.get_include()}=tensorflow"],
        "link_flags": tf.sysconfig.get_link_flags(),
    }


class Builder:
    """Compiles files into build/obj/<compiler>/ and links them."""

    def __init__(self):
        self.sources = load_sources()
        self.toolchain = compiler_version()
        machine = target_machine()
        self.cpu_kernels = self.sources["CPU_KERNEL_SOURCES"].get(machine)
        if self.cpu_kernels is None:
            raise BuildError(
                f"no kernels for {machine}: cc/sources.bzl has "
                + ", ".join(sorted(self.sources["CPU_KERNEL_SOURCES"]))
            )
        self.object_dir = BUILD_DIR / "obj" / Path(compiler()[0]).name
        self.common = [*self.sources["COPTS"], "-I", str(ROOT), f"-ffile-prefix-map={ROOT}/="]
        self.last = (["-Werror"] if os.environ.get("WERROR") == "1" else []) + shlex.split(
            os.environ.get("CXXFLAGS", "")
        )

    def engine_units(self):
        """(source, flags) of the layers that do without TensorFlow."""
        standard = [self.sources["CXX_STANDARD"]]
        cpu = standard + self.sources["CPU_COPTS"]
        units = [(source, standard) for source in self.sources["CUDNN_SOURCES"]]
        units += [(source, cpu) for source in self.sources["CPU_SOURCES"]]
        units += [(source, cpu + flags) for source, flags in self.cpu_kernels.items()]
        return units

    def rnn_units(self):
        return [(source, [self.sources["CXX_STANDARD"]]) for source in self.sources["RNN_SOURCES"]]

    def compile(self, units):
        """Brings the objects of `units` up to date and returns their paths."""
        stale = [unit for unit in units if self._is_stale(*unit)]
        self._for_each(self._compile, stale, "compilation")
        return [str(self.object_path(source)) for source, _ in units]

    def tidy(self, units):
        """Runs clang-tidy ($CLANG_TIDY) on the sources of `units`."""
        self._for_each(self._tidy, units, "clang-tidy")

    def _for_each(self, action, units, what):
        """Calls action(source, flags), true for success, for several units at a time."""
        jobs = int(os.environ.get("JOBS", 0)) or os.cpu_count() or 1
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            outcomes = list(pool.map(lambda unit: action(*unit), units))
        failures = [source for (source, _), done in zip(units, outcomes, strict=True) if not done]
        if failures:
            raise BuildError(f"{what} failed: {', '.join(failures)}")

    def link(self, objects, output, flags):
        """Links `objects` into `output` unless the same objects already made it."""
        output = Path(output)
        command = [*compiler(), *objects, *flags]
        record = BUILD_DIR / "link" / (Path(compiler()[0]).name + "-" + output.name + ".cmd")
        text = f"{self.toolchain}\n{output}\n{shlex.join(command)}\n"
        if (
            output.exists()
            and record.exists()
            and record.read_text() == text
            and all(os.path.getmtime(each) <= output.stat().st_mtime for each in objects)
        ):
            return
        print(f"link    {os.path.relpath(output, ROOT)}", flush=True)
        output.parent.mkdir(parents=True, exist_ok=True)
        temporary = output.with_name(output.name + ".tmp")
        if subprocess.run([*command, "-o", str(temporary)], cwd=ROOT).returncode != 0:
            raise BuildError(f"linking {output.name} failed")
        # A process that has the old library open keeps it.
        os.replace(temporary, output)
        record.parent.mkdir(parents=True, exist_ok=True)
        record.write_text(text)

    def object_path(self, source):
        return self.object_dir / (source[: -len(".cc")] + ".o")

    def _command(self, source, flags):
        return [*compiler(), *self.common, *flags, *self.last, "-c", source]

    def _record(self, source, flags):
        return f"{self.toolchain}\n{shlex.join(self._command(source, flags))}\n"

    def _is_stale(self, source, flags):
        target = self.object_path(source)
        record = target.with_suffix(".cmd")
        dependencies = target.with_suffix(".d")
        if not (target.exists() and record.exists() and dependencies.exists()):
            return True
        if record.read_text() != self._record(source, flags):
            return True
        built = target.stat().st_mtime
        words = dependencies.read_text().replace("\\\n", " ").split(":", 1)[1].split()
        for name in words:
            path = ROOT / name
            if not path.exists() or path.stat().st_mtime > built:
                return True
        return False

    def _compile(self, source, flags):
        """Compiles one file; returns whether that succeeded."""
        target = self.object_path(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_suffix(".tmp.o")
        print(f"compile {source}\n", end="", flush=True)
        command = [*self._command(source, flags), "-o", str(temporary)]
        # All headers, also the system's: a new TensorFlow or compiler makes the object stale.
        command += ["-MD", "-MF", str(target.with_suffix(".d"))]
        start = time.time()
        if subprocess.run(command, cwd=ROOT).returncode != 0:
            return False
        # A file that was edited meanwhile is newer than the object.
        os.utime(temporary, (start, start))
        os.replace(temporary, target)
        target.with_suffix(".cmd").write_text(self._record(source, flags))
        return True

    def _tidy(self, source, flags):
        tool = os.environ.get("CLANG_TIDY", "clang-tidy")
        command = [tool, "--quiet", source, "--", *self.common, *flags]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        # Its standard error counts the warnings that it did not show.
        print(f"tidy    {source}\n{result.stdout}", end="", flush=True)
        return result.returncode == 0


@contextlib.contextmanager
def build_lock():
    """One build at a time in this tree."""
    BUILD_DIR.mkdir(exist_ok=True)
    with open(BUILD_DIR / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build_ops(output):
    """Builds the op library at `output`, and build_info.json in the same folder."""
    config = tensorflow_config()
    output = Path(output).resolve()
    with build_lock():
        builder = Builder()
        tensorflow_units = [
            (source, config["compile_flags"])
            for source in builder.sources["OPS_SOURCES"] + builder.sources["KERNEL_SOURCES"]
        ]
        if not tensorflow_units:
            raise BuildError("cc/sources.bzl lists no ops and no kernels")
        # The slow files first, so that no core idles at the end.
        objects = builder.compile(tensorflow_units + builder.rnn_units() + builder.engine_units())
        exports = f"-Wl,--version-script={ROOT / 'cc' / 'exports.lds'}"
        builder.link(
            objects,
            output,
            ["-shared", *builder.sources["LINKOPTS"], exports, *config["link_flags"], "-pthread"],
        )
        info = {
            "version": version(),
            "tensorflow_version": config["version"],
            "cxx11_abi": config["cxx11_abi"],
            "compiler": builder.toolchain,
            "machine": target_machine(),
        }
        text = json.dumps(info, indent=2) + "\n"
        path = output.parent / "build_info.json"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def build_engine(output=BUILD_DIR / "libcudnn_rnn_cpu.so"):
    """Builds the library that offers the engine under cuDNN's own names."""
    with build_lock():
        builder = Builder()
        standard = [builder.sources["CXX_STANDARD"]]
        units = [(source, standard) for source in builder.sources["CPU_EXPORT_SOURCES"]]
        if not units:
            raise BuildError("cc/sources.bzl lists no exports of the engine")
        objects = builder.compile(builder.engine_units() + units)
        soname = f"-Wl,-soname,{Path(output).name}"
        builder.link(objects, output, ["-shared", *builder.sources["LINKOPTS"], soname, "-pthread"])


def find_googletest():
    """(compile flags, link flags, None), or (None, None, why there is no GoogleTest)."""
    compile_flags, link_flags = [], ["-lgtest", "-lgtest_main", "-pthread"]
    prefix = os.environ.get("GTEST_ROOT")
    if prefix:
        compile_flags = ["-isystem", f"{prefix}/include"]
        folders = sorted({str(path.parent) for path in Path(prefix).glob("lib*/**/libgtest.*")})
        link_flags = [f"-L{folder}" for folder in folders] + link_flags
    probe = BUILD_DIR / "gtest_probe"
    command = [*compiler(), "-std=c++17", "-x", "c++", "-", *compile_flags, "-o", str(probe)]
    source = "#include <gtest/gtest.h>\nTEST(Probe, Links) {}\n"
    result = subprocess.run(
        command + link_flags, input=source, text=True, capture_output=True, cwd=ROOT
    )
    if result.returncode == 0:
        return compile_flags, link_flags, None
    where = f"below GTEST_ROOT={prefix}" if prefix else "on the compiler's paths"
    return (
        None,
        None,
        f"GoogleTest was not found {where}; install libgtest-dev or set GTEST_ROOT",
    )


def build_tests():
    """Builds one binary per GoogleTest file into build/cc_tests; says why when it cannot."""
    output_dir = BUILD_DIR / "cc_tests"
    with build_lock():
        compile_flags, link_flags, missing = find_googletest()
        if missing:
            shutil.rmtree(output_dir, ignore_errors=True)
            print(f"C++ tests are not built: {missing}", flush=True)
            return
        builder = Builder()
        standard = [builder.sources["CXX_STANDARD"]]
        tests = builder.sources["CC_TEST_SOURCES"]
        binaries = {Path(source).stem: source for source in tests}
        if output_dir.is_dir():
            for stale in {path.name for path in output_dir.iterdir()} - binaries.keys():
                (output_dir / stale).unlink()
        test_units = [(source, standard + compile_flags) for source in tests]
        objects = builder.compile(test_units + builder.rnn_units() + builder.engine_units())
        shared = objects[len(tests) :]
        for source, test_object in zip(tests, objects[: len(tests)], strict=True):
            builder.link(
                [test_object, *shared],
                output_dir / Path(source).stem,
                ["-Wl,--gc-sections", *link_flags, "-ldl"],
            )


def build_benchmark():
    """Builds the program that times the engine alone."""
    with build_lock():
        builder = Builder()
        flags = [builder.sources["CXX_STANDARD"], *builder.sources["CPU_COPTS"]]
        units = [(source, flags) for source in builder.sources["BENCHMARK_SOURCES"]]
        objects = builder.compile(units + builder.engine_units())
        builder.link(objects, BUILD_DIR / "engine_benchmark", ["-pthread", "-ldl"])


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["ops", "engine", "tests", "benchmark", "tidy"])
    parser.add_argument("--output", help="where the library goes (ops, engine)")
    arguments = parser.parse_args()
    try:
        if arguments.what == "ops":
            build_ops(arguments.output or ROOT / PACKAGE / "_ops.so")
        elif arguments.what == "engine":
            build_engine(arguments.output or BUILD_DIR / "libcudnn_rnn_cpu.so")
        elif arguments.what == "tests":
            build_tests()
        elif arguments.what == "benchmark":
            build_benchmark()
        else:
            builder = Builder()
            builder.tidy(builder.rnn_units() + builder.engine_units())
    except BuildError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
