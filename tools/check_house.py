#!/usr/bin/env python3
"""House rules that no formatter knows; prints each breach and exits 1 when there is one.

- The layers below the kernels (cc/cudnn, cc/cpu, cc/rnn) include neither TensorFlow nor abseil,
  and a lower layer includes no higher one.
- Every C++ source stands in cc/sources.bzl once, and nothing else stands there.
- No file of code is longer than 500 lines; tests may be.
- No tracked file names a path of some machine.
"""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from build_cc import ROOT, load_sources

LINE_CEILING = 500
# What each layer may include from cc/, itself included.
LAYERS = {
    "cudnn": {"cudnn"},
    "cpu": {"cpu", "cudnn"},
    "rnn": {"rnn", "cudnn", "cpu"},
}
FRAMEWORKS = re.compile(r'#include [<"](tensorflow|tsl|xla|absl|Eigen|google)/')
OWN_INCLUDE = re.compile(r'#include "cc/(\w+)/')
MACHINE_PATH = re.compile(r"(?<![\w./])/(work|farm|root|home|Users)/")


def tracked_files():
    """Tracked files that exist, as paths relative to the root."""
    result = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [name for name in result.stdout.splitlines() if (ROOT / name).is_file()]


def check_layers(name, lines):
    parts = Path(name).parts
    if len(parts) < 3 or parts[0] != "cc" or parts[1] not in LAYERS:
        return
    allowed = LAYERS[parts[1]]
    for number, line in enumerate(lines, 1):
        if FRAMEWORKS.match(line):
            yield f"{name}:{number}: cc/{parts[1]} does without frameworks: {line}"
        own = OWN_INCLUDE.match(line)
        if own and own.group(1) not in allowed:
            yield f"{name}:{number}: cc/{parts[1]} must not know cc/{own.group(1)}"


def check_length(name, lines):
    code = name.endswith((".cc", ".h", ".inc", ".py", ".bzl"))
    if code and not name.startswith("tests/") and len(lines) > LINE_CEILING:
        yield f"{name}: {len(lines)} lines, the ceiling is {LINE_CEILING}"


def check_paths(name, lines):
    for number, line in enumerate(lines, 1):
        if MACHINE_PATH.search(line):
            yield f"{name}:{number}: a path of some machine: {line.strip()}"


def check_sources(files):
    lists = load_sources()
    listed = Counter()
    for key, value in lists.items():
        if not key.endswith("_SOURCES"):
            continue
        if key == "CPU_KERNEL_SOURCES":
            value = {source for machine in value.values() for source in machine}
        listed.update(value)
    present = {name for name in files if re.match(r"(cc|benchmarks)/.*\.cc$", name)}
    for name in files:
        if re.match(r"tests/cc/.*\.cc$", name) and "<gtest/gtest.h>" in (ROOT / name).read_text():
            present.add(name)
    for name in sorted(present - listed.keys()):
        yield f"cc/sources.bzl: {name} is missing"
    for name in sorted(listed.keys() - present):
        yield f"cc/sources.bzl: {name} does not exist or is not tracked"
    for name, count in listed.items():
        if count > 1:
            yield f"cc/sources.bzl: {name} stands there {count} times"


def main():
    files = tracked_files()
    breaches = list(check_sources(files))
    for name in files:
        try:
            lines = (ROOT / name).read_text().splitlines()
        except UnicodeDecodeError:
            continue
        for check in (check_layers, check_length, check_paths):
            breaches += check(name, lines)
    print("\n".join(breaches) or f"house rules hold in {len(files)} files")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
