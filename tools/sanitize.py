#!/usr/bin/env python3
"""Runs the C++ that does without TensorFlow under the sanitizers of clang.

    python tools/sanitize.py                  all lanes, minutes on two cores
    python tools/sanitize.py address          the C++ tests, AddressSanitizer and UBSan
    python tools/sanitize.py thread           the C++ tests that use threads, ThreadSanitizer
    python tools/sanitize.py fuzz [SECONDS]   libFuzzer on the engine's C API (default 20 s)

Tests of the engine run once per instruction set that the machine has. The fuzzer starts from the
inputs in tests/fuzz/corpus and keeps what it learns in build/sanitize/corpus; an input that fails
is written to build/sanitize and its path printed: run build/sanitize/engine_fuzzer with it.
Environment: CXX (clang++), JOBS, GTEST_ROOT as for tools/build_cc.py.
"""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("CXX", "clang++")

from build_cc import BUILD_DIR, ROOT, Builder, BuildError, find_googletest

OUTPUT = BUILD_DIR / "sanitize"
CORPUS = ROOT / "tests" / "fuzz" / "corpus"
FUZZER = "tests/fuzz/engine_fuzzer.cc"

# Enumerations come from C, where any int may be passed as one; the engine checks them itself.
ADDRESS = [
    "-fsanitize=address,undefined,fuzzer-no-link",
    "-fno-sanitize=enum",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
]
THREAD = ["-fsanitize=thread"]

# Tests whose code depends on the instruction set; the others run once.
ENGINE_TESTS = {"cpu_cudnn_test", "dropout_test", "engine_threads_test", "rnn_call_engine_test"}
THREAD_TESTS = {"engine_threads_test", "handle_pool_test", "intra_op_pool_test"}
SETS = ["avx512", "avx2", "baseline", "neon"]
FLAGS_OF_SETS = {
    "avx512": {"avx512f", "avx512bw", "avx512dq", "avx512vl"},
    "avx2": {"avx2", "fma"},
}


# These make four times as much work of the unrolled kernels; AddressSanitizer sees what they do.
KERNELS_WITHOUT = ["-fno-sanitize=alignment,null,object-size,pointer-overflow"]


class SanitizerBuilder(Builder):
    """Compiles into a folder of the lane's own, with the lane's flags."""

    def __init__(self, lane, flags):
        super().__init__()
        self.object_dir = OUTPUT / "obj" / lane
        self.common += flags
        self.last += ["-O1", "-g1"]
        self.cpu_kernels = {
            source: [*own, *KERNELS_WITHOUT] for source, own in self.cpu_kernels.items()
        }


def instruction_sets():
    """Those that the engine was built with and the machine has, the best first."""
    cpuinfo = Path("/proc/cpuinfo")
    has = set(cpuinfo.read_text().split()) if cpuinfo.exists() else set()
    built = {Path(source).stem.removeprefix("kernels_") for source in Builder().cpu_kernels}
    return [name for name in SETS if name in built and FLAGS_OF_SETS.get(name, set()) <= has]


def build(lane, flags, tests, fuzzer=False):
    """Builds the tests' binaries, and the fuzzer; {name: path}."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    with open(OUTPUT / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        compile_flags, link_flags, missing = find_googletest()
        if missing:
            raise BuildError(missing)
        builder = SanitizerBuilder(lane, flags)
        standard = [builder.sources["CXX_STANDARD"]]
        units = [(source, standard + compile_flags) for source in tests]
        if fuzzer:
            units.append((FUZZER, standard))
        layers = builder.engine_units() + (builder.rnn_units() if tests else [])
        objects = builder.compile(layers + units)
        shared = objects[: len(objects) - len(units)]
        binaries = {}
        for (source, _), test_object in zip(units, objects[len(shared) :], strict=True):
            name = Path(source).stem
            binaries[name] = OUTPUT / (name if source == FUZZER else f"{name}.{lane}")
            # The fuzzer has a main of its own.
            libraries = ["-fsanitize=fuzzer"] if source == FUZZER else link_flags
            builder.link(
                [test_object, *shared], binaries[name], [*flags, *libraries, "-pthread", "-ldl"]
            )
        return binaries


def run(command, instruction_set=None):
    """Runs it; its output appears only if it fails."""
    environment = dict(os.environ)
    environment.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    environment.setdefault("TSAN_OPTIONS", "halt_on_error=1")
    name = Path(command[0]).name
    if instruction_set:
        environment["TF_CUDNN_RNN_ISA"] = instruction_set
        name += f" ({instruction_set})"
    start = time.time()
    result = subprocess.run(
        [str(word) for word in command],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        cwd=ROOT,
    )
    print(f"{name}: {time.time() - start:.0f} s", flush=True)
    if result.returncode != 0:
        sys.exit(f"{result.stdout[-20000:]}\n{name} failed with status {result.returncode}")
    return result.stdout


def run_tests(binaries, engine_tests, others="*"):
    """others: the tests that count for all instruction sets but the best."""
    for name, binary in sorted(binaries.items()):
        sets = instruction_sets() if name in engine_tests else [None]
        for instruction_set in sets:
            tests = "*" if instruction_set == sets[0] else others
            run([binary, "--gtest_brief=1", f"--gtest_filter={tests}"], instruction_set)


def address_lane():
    tests = Builder().sources["CC_TEST_SOURCES"]
    # What the test of threads adds for each instruction set is the other lane's to see.
    run_tests(build("address", ADDRESS, tests), ENGINE_TESTS - THREAD_TESTS)


def thread_lane():
    tests = [
        source
        for source in Builder().sources["CC_TEST_SOURCES"]
        if Path(source).stem in THREAD_TESTS
    ]
    # The cells are shared out in the same way; minutes for each.
    run_tests(build("thread", THREAD, tests), ENGINE_TESTS, "*/lstm:EngineThreadsOnce.*")


def fuzz_lane(seconds):
    fuzzer = build("address", ADDRESS, [], fuzzer=True)["engine_fuzzer"]
    learned = OUTPUT / "corpus"
    learned.mkdir(exist_ok=True)
    sets = instruction_sets()
    for instruction_set in sets:
        report = run(
            [
                fuzzer,
                learned,
                CORPUS,
                f"-max_total_time={max(1, seconds // len(sets))}",
                "-max_len=512",
                "-timeout=60",
                "-rss_limit_mb=4096",
                f"-artifact_prefix={OUTPUT}/",
            ],
            instruction_set,
        )
        print(report.splitlines()[-1], flush=True)


def main():
    words = sys.argv[1:]
    lane = words[0] if words else "all"
    if lane not in ("all", "address", "thread", "fuzz"):
        sys.exit(__doc__)
    seconds = int(words[1]) if lane == "fuzz" and len(words) > 1 else 20
    try:
        if lane in ("all", "address"):
            address_lane()
        if lane in ("all", "thread"):
            thread_lane()
        if lane in ("all", "fuzz"):
            fuzz_lane(seconds)
    except BuildError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
