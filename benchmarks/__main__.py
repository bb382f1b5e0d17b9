"""python -m benchmarks: peers and ours in turn in one run, as JSON, Markdown and a plot.

Needs the extra `bench` and the built library; from the root of the repository. docs/performance.md
says what is measured and how.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import ROOT, options
from benchmarks.report import markdown, plot
from benchmarks.results import Run


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    options.add_shared(parser)
    parser.add_argument(
        "--threads", default="1,all", help="numbers of threads, default: 1,all (cores)"
    )
    output = ROOT / "build" / "benchmarks"
    parser.add_argument("--json", type=Path, default=output / "benchmarks.json")
    parser.add_argument("--markdown", type=Path, default=output / "benchmarks.md")
    parser.add_argument("--plot", type=Path, default=output / "benchmarks.png")
    arguments = parser.parse_args()
    try:
        arguments.threads = thread_counts(arguments.threads)
        options.check(arguments)
    except ValueError as error:
        parser.error(str(error))
    return arguments


def thread_counts(text):
    """Ascending numbers from a list such as "1,all". Raises ValueError."""
    cores = len(os.sched_getaffinity(0))
    counts = sorted({cores if part == "all" else int(part) for part in text.split(",")})
    if counts[0] < 1:
        raise ValueError(f"--threads must be at least 1, was {counts[0]}")
    return counts


def run_worker(arguments, threads):
    """The worker's lines, parsed, and whether it came to its end."""
    with tempfile.NamedTemporaryFile("r", suffix=".jsonl") as results:
        command = [sys.executable, "-m", "benchmarks.worker", "--threads", str(threads)]
        command += ["--results", results.name, *options.words(arguments)]
        environment = {
            "TF_CPP_MIN_LOG_LEVEL": "2",
            **os.environ,
            # For OpenMP below PyTorch; torch.set_num_threads reaches one pool only.
            "OMP_NUM_THREADS": str(threads),
        }
        done = subprocess.run(command, cwd=ROOT, env=environment)
        lines = [json.loads(line) for line in results]
    return lines, done.returncode == 0


def main():
    arguments = parse_arguments()
    lines, complete = [], True
    for threads in arguments.threads:
        more, finished = run_worker(arguments, threads)
        lines += [(threads, line) for line in more]
        complete = complete and finished
    run = Run.from_lines(lines)
    if not run.results:
        sys.exit("error: nothing was measured")
    for path in (arguments.json, arguments.markdown, arguments.plot):
        path.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(run.as_dict(), indent=1) + "\n")
    command = shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]])
    text = markdown(run, command, arguments.quick)
    arguments.markdown.write_text(text)
    plot(run, arguments.plot)
    print(text)
    print(f"written: {arguments.json}, {arguments.markdown}, {arguments.plot}", file=sys.stderr)
    failed = [result for result in run.results if "failed" in result]
    if failed or not complete:
        sys.exit("error: a worker ended early" if not complete else "error: some runs failed")


if __name__ == "__main__":
    main()
