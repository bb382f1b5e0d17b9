"""The benchmark: its arithmetic, and a run at tiny sizes. No time is held against anything."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import configurations, figures, report
from benchmarks.contestants import engine
from benchmarks.results import Run, geometric_mean

ROOT = Path(__file__).resolve().parent.parent


def test_flops():
    (c3,) = configurations.select(["c3"])
    lengths = c3.case.make_inputs().sequence_lengths
    assert configurations.flops(c3.case, lengths, False) == 2 * 50 * 64 * 4 * 512 * 1024
    assert configurations.flops(c3.case, lengths, True) == 3 * 2 * 50 * 64 * 4 * 512 * 1024
    (c10,) = configurations.select(["c10"])
    per_step = 4 * 512 * (256 + 256) + 256 * 512
    lengths = c10.case.make_inputs().sequence_lengths
    assert configurations.flops(c10.case, lengths, False) == 2 * 3200 * per_step
    (c5,) = configurations.select(["c5"])
    per_step = 2 * 4 * 256 * (256 + 256) + 2 * 4 * 256 * (512 + 256)
    lengths = c5.case.make_inputs().sequence_lengths
    assert configurations.flops(c5.case, lengths, False) == 2 * 3200 * per_step


def test_select():
    names = [each.name for each in configurations.select(["c13", "c1"])]
    assert names == ["c1", "c13-bfloat16", "c13-float16"]
    assert len(configurations.select()) == 15
    scaled = [each.name for each in configurations.select(["c3"], scaling=True)]
    assert scaled == ["c3", "c3-T100", "c3-T200", "c3-B128", "c3-B256"]
    with pytest.raises(ValueError, match="c99"):
        configurations.select(["c99"])


def test_lengths_of_c9():
    (c9,) = configurations.select(["c9"])
    lengths = c9.case.make_inputs().sequence_lengths
    assert lengths.min() >= 20 and lengths.max() <= 200
    (dense,) = {entrant.case for entrant in c9.entrants() if entrant.label.endswith("_unpadded")}
    assert abs(dense.T * dense.B - lengths.sum()) <= dense.B / 2


def test_thread_counts():
    assert command.thread_counts("2,1,2") == [1, 2]
    with pytest.raises(ValueError, match="at least 1, was 0"):
        command.thread_counts("0,1")


def make_run():
    """One configuration with made-up times."""

    def result(entrant, **values):
        case = {"T": 50, "B": 64, "I": 512, "H": 512, "L": 1, "num_proj": 0, "rnn_mode": "lstm"}
        case |= {"direction": "unidirectional", "lengths": "none", "dtype": "float32"}
        named = {"configuration": "c3", "pass": "inference", "threads": 2, "entrant": entrant}
        return ("result", {**named, "case": case, "flops": 4e9, **values})

    machine = {
        "cpu": "some",
        "cores": 2,
        "versions": {},
        "instruction_set": "x",
        "peak_gflops": 100.0,
    }
    lines = [
        ("machine", {**machine, "memory_gbytes_per_second": 10.0}),
        (
            "recurrent",
            {"configuration": "c3", "recurrent_bytes": 4e6, "gbytes_per_second": 20.0},
        ),
        result("op", seconds=0.05),
        result("engine", seconds=0.04),
        result("pytorch", seconds=0.1),
        result("keras", seconds=0.4),
        result("keras_xla", seconds=0.2),
        result("onnxruntime", skipped="not here"),
    ]
    return Run.from_lines([(2, {kind: value}) for kind, value in lines])


def test_figures():
    run = make_run()
    key = ("c3", "inference", 2)
    assert run.ratio(*key, "op", "pytorch") == pytest.approx(2)
    assert run.ratio_to_fastest(*key) == pytest.approx(2)
    assert run.ratio_to_fastest(*key, figures.KERAS) == pytest.approx(4)
    assert run.ratio(*key, "op", "onnxruntime") is None
    assert run.share_of_peak(*key, "engine") == pytest.approx(1.0)
    assert run.bandwidth_share(*key) == pytest.approx(50 * 4e6 / 20e9 / 0.04)
    values = {figure.what: figure for figure in figures.figures(run)}
    mean = values["inference: geometric mean against PyTorch"]
    assert mean.value == pytest.approx(2) and mean.reached
    assert values["c11: op over Keras"].reached is None
    text = report.markdown(run, "command")
    assert "| 100 (2.00) |" in text and "onnxruntime, skipped: not here (c3 inference)" in text
    assert geometric_mean([1, None, 4]) == pytest.approx(2)


@pytest.mark.slow
def test_run(tmp_path, monkeypatch):
    """Everything runs, the values of all agree, the three files are written."""
    for package in ("torch", "onnx", "onnxruntime", "matplotlib"):
        pytest.importorskip(package)
    # In the place of the engine's program, which may not have been built.
    program = tmp_path / "engine"
    figures_ = {"seconds": 1e-3, "peak_gflops": 50.0, "gbytes_per_second": 20.0}
    program.write_text(f"#!{sys.executable}\nprint('''{json.dumps(figures_)}''')\n")
    program.chmod(0o755)
    monkeypatch.setenv(engine.PROGRAM, str(program))
    files = {name: tmp_path / f"benchmarks.{name}" for name in ("json", "markdown", "plot")}
    files["plot"] = files["plot"].with_suffix(".png")
    options = [word for name, path in files.items() for word in (f"--{name}", str(path))]
    process = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "--only", "c9,c11", "--threads", "1"]
        + options,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert process.returncode == 0, f"{process.stdout}\n{process.stderr}"

    results = json.loads(files["json"].read_text())["results"]
    timed = {
        (result["configuration"], result["pass"], result["entrant"])
        for result in results
        if "seconds" in result
    }
    contestants = {"op", "engine", "pytorch", "keras", "keras_xla"}
    expected = {
        (name, pass_, contestant)
        for name in ("c9", "c11")
        for pass_ in ("inference", "training")
        for contestant in contestants | ({"onnxruntime"} if pass_ == "inference" else set())
    }
    expected |= {
        ("c9", pass_, f"{contestant}_unpadded")
        for pass_ in ("inference", "training")
        for contestant in ("op", "engine")
    }
    assert timed == expected
    checked = [result for result in results if result["entrant"] not in ("engine", "onnxruntime")]
    assert all("error" in each for each in checked if each["entrant"] != "engine_unpadded")
    assert files["markdown"].read_text() in process.stdout
    assert files["plot"].read_bytes().startswith(b"\x89PNG")


def test_refuses(capsys, monkeypatch):
    for words, message in (
        (["--only", "c99"], "no configuration"),
        (["--contestants", "op,cafe"], "--contestants must be of"),
        (["--rounds", "0"], "--rounds must be at least 1, was 0"),
        (["--threads", "0"], "--threads must be at least 1, was 0"),
    ):
        monkeypatch.setattr(sys, "argv", ["benchmarks", *words])
        with pytest.raises(SystemExit):
            command.parse_arguments()
        assert message in capsys.readouterr().err
