"""Many calls of changing sizes: memory stays; and sizes at which counters and stacks end.

python tests/test_long_runs.py 20000      the long form; docs/reliability.md has its figures
"""

import gc
import json
import resource
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import run_ops
from cases import MODES, Case
from compare import assert_close
from tf_cudnn_rnn_ops import raw_ops, reference

LARGEST = Case("lstm", 2, "bidirectional", T=40, B=12, I=16, H=24, lengths="varied")


def resident_bytes():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def run_calls(calls, report=None):
    """Training calls whose T, B and lengths change from call to call, eagerly and as one graph.

    Returns resident memory after each tenth of them, in bytes.
    """
    rng = np.random.default_rng(0)
    inputs = LARGEST.make_inputs()
    D = LARGEST.D

    def step(x, h, c, params, lengths):
        with tf.GradientTape() as tape:
            tape.watch(params)
            result = raw_ops.CudnnRNNV3(
                input=x,
                input_h=h,
                input_c=c,
                params=params,
                sequence_lengths=lengths,
                dropout=0.2,
                seed=1,
                **LARGEST.attributes(),
            )
            loss = tf.reduce_sum(result.output)
        return tape.gradient(loss, params)

    sizes = [None, None]
    graph = tf.function(
        step,
        input_signature=[
            tf.TensorSpec([*sizes, LARGEST.I]),
            tf.TensorSpec([LARGEST.L * D, None, LARGEST.H]),
            tf.TensorSpec([LARGEST.L * D, None, LARGEST.H]),
            tf.TensorSpec([None]),
            tf.TensorSpec([None], tf.int32),
        ],
    )
    params = tf.constant(inputs.params)
    resident = []
    for call in range(calls):
        T, B = int(rng.integers(1, LARGEST.T + 1)), int(rng.integers(1, LARGEST.B + 1))
        arguments = (
            tf.constant(inputs.input[:T, :B]),
            tf.constant(inputs.input_h[:, :B]),
            tf.constant(inputs.input_c[:, :B]),
            params,
            tf.constant(rng.integers(0, T + 1, B), tf.int32),
        )
        (step if call % 2 else graph)(*arguments)
        if (call + 1) % max(1, calls // 10) == 0:
            resident.append(resident_bytes())
            if report:
                report(call + 1, resident[-1])
    return resident


def run_new_nodes(graphs):
    """Resident memory in bytes after each of many graphs, with kernels of their own, run once."""
    case = LARGEST.replace(T=3, B=2)
    inputs = case.make_inputs()
    resident = []
    for _ in range(graphs):
        run_ops.run_fresh(lambda: run_ops.forward(case, inputs, dropout=0.5).output)
        resident.append(resident_bytes())
    return resident


def in_new_process(call):
    """A call of a function above, where no earlier test has moved resident memory by 10 MiB."""
    code = f"import json, test_long_runs; print(json.dumps(test_long_runs.{call}))"
    return json.loads(run_ops.run_python(code).splitlines()[-1])


def test_memory_stays():
    """A thousand calls; nothing grows after the first three hundred."""
    resident = in_new_process("run_calls(1000)")
    assert max(resident[3:]) - resident[2] < 4 << 20, resident


def test_memory_of_new_nodes_stays():
    """Kernels take what they keep with them: many graphs, one after another."""
    resident = in_new_process("run_new_nodes(30)")
    # TensorFlow itself keeps some of every graph.
    assert resident[-1] - resident[10] < 16 << 20, resident[::5]


# ---- Sizes -----------------------------------------------------------------------------------


def assert_forward_right(case, rows=None, tolerance=1e-4):
    """Outputs of some rows, or all, are the reference's; inputs, values and states are small."""
    inputs = case.make_inputs()
    result = run_ops.forward(case, inputs)
    rows = slice(None) if rows is None else rows
    arguments = inputs.forward()
    for name in ("input", "input_h", "input_c"):
        arguments[name] = arguments[name][:, rows]
    arguments["sequence_lengths"] = arguments["sequence_lengths"][rows]
    output, h, c = reference.forward(**arguments, **case.attributes())
    assert_close(result.output.numpy()[:, rows], output, tolerance, "output")
    assert_close(result.output_h.numpy()[:, rows], h, tolerance, "output_h")
    if case.rnn_mode == "lstm":
        assert_close(result.output_c.numpy()[:, rows], c, tolerance, "output_c")
    return inputs, result


def assert_gradients_right(case, tolerance=1e-4):
    """Gradients in the direction of random changes are differences of the reference's losses."""
    case = case.replace(dtype="float64")
    inputs = case.make_inputs()
    result = run_ops.forward(case, inputs)
    gradients = run_ops.backward(case, inputs, result)
    rng = np.random.default_rng(1)
    changes = {
        name: rng.standard_normal(getattr(inputs, name).shape)
        for name in ("input", "input_h", "input_c", "params")
    }
    if case.rnn_mode != "lstm":
        changes["input_c"][:] = 0

    def loss(step):
        arguments = inputs.forward()
        for name, change in changes.items():
            arguments[name] = arguments[name] + step * change
        output, h, c = reference.forward(**arguments, **case.attributes())
        total = np.sum(output * inputs.output_backprop) + np.sum(h * inputs.output_h_backprop)
        return total + (np.sum(c * inputs.output_c_backprop) if case.rnn_mode == "lstm" else 0)

    expected = (loss(1e-6) - loss(-1e-6)) / 2e-6
    actual = sum(
        np.sum(gradient.numpy() * change)
        for gradient, change in zip(gradients, changes.values(), strict=True)
    )
    assert_close(np.array([actual]), np.array([expected]), tolerance)


def test_a_hundred_thousand_steps():
    case = Case("gru", 1, "unidirectional", T=100_000, B=1, I=1, H=2)
    assert_forward_right(case)
    assert_gradients_right(case.replace(T=20_000))


def test_seventy_thousand_rows():
    """More than 16 bits of rows; every thousandth of them, and the last, against the reference."""
    case = Case("lstm", 1, "bidirectional", T=3, B=70_000, I=2, H=3, lengths="zeros")
    rows = np.append(np.arange(0, case.B, 1000), case.B - 1)
    inputs, result = assert_forward_right(case, rows)
    gradients = run_ops.backward(case, inputs, result)
    one = dict(vars(inputs))
    for name in one:
        if name.startswith(("input", "output")):
            one[name] = one[name][:, rows]
    one["sequence_lengths"] = one["sequence_lengths"][rows]
    small = type(inputs)(**one)
    few = case.replace(B=len(rows))
    wanted = run_ops.backward(few, small, run_ops.forward(few, small))
    for name in run_ops.BACKWARD_NAMES[:3]:
        value = getattr(gradients, name).numpy()[:, rows]
        assert_close(value, getattr(wanted, name).numpy(), 1e-5, name)
    assert np.all(np.isfinite(gradients.params_backprop))


@pytest.mark.parametrize("mode", MODES)
def test_one_row_of_one_unit(mode):
    case = Case(mode, 1, "bidirectional", T=50, B=1, I=1, H=1)
    assert_forward_right(case)
    assert_gradients_right(case)


@pytest.mark.parametrize("mode", MODES)
def test_twenty_layers(mode):
    case = Case(mode, 20, "bidirectional", T=5, B=3, I=4, H=4, lengths="varied")
    assert_forward_right(case)
    assert_gradients_right(case)


def main():
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    start = time.monotonic()

    def report(call, resident):
        print(f"{call:7} calls  {resident / 2**20:7.1f} MiB  {time.monotonic() - start:5.0f} s")

    run_calls(calls, report)


if __name__ == "__main__":
    main()
