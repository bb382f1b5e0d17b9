"""Whatever is wrong with their arguments, the ops say so, by name, and the process lives on."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import bad_input
from tf_cudnn_rnn_ops import raw_ops

TRIALS = bad_input.trials()


def group_of(op):
    return next(group for group, ops in bad_input.GROUPS.items() if op in ops)


def run_trials(names):
    """Name -> outcomes. A trial that ends its worker has {"worker": exit status} instead."""
    results = {}
    worker = Path(bad_input.__file__)
    paths = [str(worker.parent), str(worker.parent.parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
    while names:
        process = subprocess.run(
            [sys.executable, str(worker)],
            input=json.dumps(names),
            capture_output=True,
            text=True,
            env=environment,
            timeout=600,
        )
        begun = None
        for line in process.stdout.splitlines():
            message = json.loads(line)
            if "begin" in message:
                begun = message["begin"]
            else:
                results[message["end"]] = message["outcomes"]
                begun = None
        if begun is not None:
            results[begun] = {"worker": process.returncode, "stderr": process.stderr[-3000:]}
        else:
            assert process.returncode == 0, process.stderr[-3000:]
        names = [name for name in names if name not in results]
    return results


@pytest.fixture(scope="session")
def outcomes():
    """A function from an op to the outcomes of its group, all run at the first call."""
    done = {}

    def of_group(op):
        group = group_of(op)
        if group not in done:
            ops = bad_input.GROUPS[group]
            done[group] = run_trials([name for name, (op, _) in TRIALS.items() if op in ops])
        return done[group]

    return of_group


REFUSED = [name for name, (_, row) in TRIALS.items() if not row.fuzz]
FUZZED = [name for name, (_, row) in TRIALS.items() if row.fuzz]


@pytest.mark.parametrize("name", REFUSED)
def test_refused(outcomes, name):
    op, row = TRIALS[name]
    result = outcomes(op)[name]
    assert "worker" not in result, f"the process died: {result}"
    for mode, (kind, message) in result.items():
        kinds = {"eager": ["InvalidArgumentError"], "known shapes": ["ValueError"]}
        # An attribute is refused whatever the shapes.
        kinds["unknown shapes"] = ["InvalidArgumentError", "ValueError"]
        assert kind in kinds[mode], (mode, kind, message)
        want = "" if mode == "known shapes" else row.want
        pattern = rf"(^|\W){row.argument} (must be .*{want}.*got .*{row.got}|is more than fits)"
        assert re.search(pattern, message, re.DOTALL), (mode, message)


@pytest.mark.parametrize("name", FUZZED)
def test_fuzzed(outcomes, name):
    op, _ = TRIALS[name]
    result = outcomes(op)[name]
    assert "worker" not in result, f"the process died: {result}"
    for mode, (kind, message) in result.items():
        if kind == "accepted":
            # What is replaced may be as it should be: no other way is there to be right.
            assert re.search(r"fuzz (num_\w+|input_size) \[\]|fuzz host_reserved \[[01]\]", name)
        else:
            assert kind == "InvalidArgumentError", (mode, kind, message)
            assert re.search(r"\S must be .*got ", message, re.DOTALL), (mode, message)


def test_the_valid_arguments_are_accepted():
    configs = [
        {},
        {"rnn_mode": "gru", "direction": "bidirectional"},
        {"rnn_mode": "rnn_relu", "input_mode": "skip_input", "input_size": bad_input.H},
        {"num_proj": 2},
        {"time_major": False},
    ]
    for op in raw_ops.__all__:
        for config in configs:
            names = set(bad_input.attributes(op, config)) | {"input_size"}
            if names >= set(config):
                arguments = bad_input.valid(op, **config)
                for mode in bad_input.MODES:
                    bad_input.run(op, arguments, mode)


@pytest.mark.parametrize("op", bad_input.COMPUTE)
@pytest.mark.parametrize("rnn_mode", ["rnn_relu", "rnn_tanh", "gru"])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (2, 3), (1, 2, 3, 4, 5)])
def test_input_c_of_other_modes_is_ignored(op, rnn_mode, shape):
    arguments = bad_input.valid(op, rnn_mode=rnn_mode)
    arguments["input_c"] = np.full(shape, np.nan, np.float32)
    if op in bad_input.BACKPROP:
        for name in ("output_c", "output_c_backprop"):
            arguments[name] = np.full(shape, np.nan, np.float32)
    result = getattr(raw_ops, op)(**arguments)
    if op in bad_input.FORWARD:
        assert result.output_c.shape == [0]
        assert np.isfinite(result.output).all()
    else:
        np.testing.assert_array_equal(result.input_c_backprop, np.zeros(shape))
        assert np.isfinite(result.params_backprop).all()


@pytest.mark.parametrize("op", bad_input.V3)
def test_lengths_of_another_type_are_refused(op):
    arguments = bad_input.valid(op)
    for dtype in (tf.int64, tf.float32):
        arguments["sequence_lengths"] = tf.zeros([bad_input.B], dtype)
        errors = (tf.errors.InvalidArgumentError, TypeError, ValueError)
        with pytest.raises(errors, match="int32"):
            getattr(raw_ops, op)(**arguments)


def test_gradient_of_inference_is_refused():
    arguments = bad_input.valid("CudnnRNNV3")
    x = tf.constant(arguments.pop("input"))
    with tf.GradientTape() as tape:
        tape.watch(x)
        output = raw_ops.CudnnRNNV3(input=x, **arguments, is_training=False).output
    with pytest.raises(ValueError, match="is_training"):
        tape.gradient(output, x)


@pytest.mark.parametrize("rate", [1e-40, 1e-45])
def test_subnormal_dropout_is_none(rate):
    """TensorFlow's threads take such numbers for 0, Python's do not; a call may use both."""
    arguments = bad_input.valid("CudnnRNNBackpropV2", rnn_mode="gru")
    names = {each.name for each in bad_input.op_def_registry.get("CudnnRNNV2").input_arg}
    inputs = {name: tf.constant(arguments[name]) for name in names}
    forward = raw_ops.CudnnRNNV2(**inputs, rnn_mode="gru", dropout=rate)
    np.testing.assert_array_equal(forward.output, arguments["output"])
    backward = {**arguments, "reserve_space": forward.reserve_space, "dropout": rate}

    def gradients():
        return raw_ops.CudnnRNNBackpropV2(**backward)

    for value, wanted in zip(gradients(), tf.function(gradients)(), strict=True):
        np.testing.assert_array_equal(value, wanted)
