"""Stock TensorFlow beside ours, for each row of what stock gets wrong.

Writes docs/stock_comparison.md from what happened.
"""

import json
import os
import re
import signal
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PAGE = os.path.join(ROOT, "docs", "stock_comparison.md")

HEAD = """# Stock TensorFlow beside this package

What the same calls of `tf.raw_ops` give in TensorFlow {version} alone and with this package loaded,
on a GPU unless said otherwise. The numbers group the rows by subject. *Aborts*: the process ends.

The GPU is a simulated one and its cuDNN is this project's CPU engine behind cuDNN's own refusals
(docs/gpu.md), so what is TensorFlow's own is seen as it is, and what depends on NVIDIA's library
is not. `make test-simgpu` runs the calls, which are in tests/simgpu/stock_rows.py, and writes this
page.

| | call | stock TensorFlow | with this package |
|---|---|---|---|
"""


def run_rows(simgpu, strict_cudnn, whose):
    """By row: its title, the kind of outcome, what was said, and what was logged."""
    rows, first = {}, 0
    while True:
        done = simgpu.start("stock_rows", whose, first, provider=strict_cudnn)
        logs = re.split(r"^row (\d+)$", done.stderr, flags=re.MULTILINE)
        logs = dict(zip(map(int, logs[1::2]), logs[2::2], strict=True))
        for line in done.stdout.splitlines():
            if not line.startswith("{"):
                continue
            line = json.loads(line)
            row = rows.setdefault(line["index"], {"log": logs[line["index"]]})
            row.update(line)
        if done.returncode == 0:
            return {row["row"]: row for _, row in sorted(rows.items())}
        assert done.returncode < 0 and rows, done.stderr[-3000:]
        first = max(rows)
        rows[first]["outcome"] = ["aborts", signal.Signals(-done.returncode).name]
        first += 1


def told(row):
    kind, text = row["outcome"]
    lines = [line for line in text.splitlines() if line.strip()] or [""]
    text = lines[-1] if lines[0].endswith("in user code:") else lines[0]
    text = re.sub(r"\{\{.*?\}\} ?| ?\[Op:\w+\].*| ?\[\[.*", "", text)
    if kind == "aborts":
        # The check mode ends the process where a GPU would read another tensor's memory.
        overrun = re.findall(r"\[simgpu\] (.*)", row["log"])
        reasons = re.findall(r"F\d{4} .*?\] (.*)", row["log"])
        kind, text = (
            ("reads out of bounds", overrun[-1])
            if overrun
            else (kind, reasons[-1] if reasons else text)
        )
        text = re.sub(r"0x[0-9a-f]+", "...", text)
    elif kind == "error":
        # TensorFlow's own message is its configuration only; the reason is in the log before.
        reason = re.search(r"dnn\.cc:\d+\] (.*)", row["log"])
        text = text.split(": ")[0] + ": " + reason[1] if reason else text
    text = text.strip().replace("|", "\\|")
    text = text if len(text) <= 120 else text[:117] + "..."
    return f"{kind}: {text}" if text else kind


def test_every_row_is_right_here(simgpu, strict_cudnn):
    stock = run_rows(simgpu, strict_cudnn, "stock")
    ours = run_rows(simgpu, strict_cudnn, "ours")
    assert stock.keys() == ours.keys()
    assert {
        name: row["outcome"] for name, row in ours.items() if row["outcome"][0] != "right"
    } == {}
    numbers = {int(name.split("_")[1]) for name in stock}
    assert numbers == set(range(1, 20))
    # Stock TensorFlow would have to be mended before most of the page is out of date.
    assert sum(row["outcome"][0] != "right" for row in stock.values()) > len(stock) // 2

    version = subprocess.run(
        [simgpu.python, "-c", "import tensorflow as tf; print(tf.__version__)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    rows = [
        f"| {name.split('_')[1]} | {row['title']} | {told(row)} | {told(ours[name])} |\n"
        for name, row in stock.items()
    ]
    page = HEAD.format(version=version) + "".join(rows)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page)
