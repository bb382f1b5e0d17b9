"""python -m tf_cudnn_rnn_ops: what is installed, what was found, and whether it computes right.

Prints the versions, the instruction set of the CPU kernels, the cuDNN that GPU kernels would use
or where it was looked for, the registered kernels of each op, and the outcome of a comparison of
the ops with the NumPy reference, which takes about two seconds. Exit status: 0, or 1 when a
comparison fails.
"""

import ctypes
import json
import platform
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import kernels as tf_kernels

import tf_cudnn_rnn_ops
from tf_cudnn_rnn_ops import raw_ops, reference

OPS = (
    "CudnnRNN",
    "CudnnRNNV2",
    "CudnnRNNV3",
    "CudnnRNNBackprop",
    "CudnnRNNBackpropV2",
    "CudnnRNNBackpropV3",
    "CudnnRNNParamsSize",
    "CudnnRNNParamsToCanonical",
    "CudnnRNNParamsToCanonicalV2",
    "CudnnRNNCanonicalToParams",
    "CudnnRNNCanonicalToParamsV2",
)

# What the comparison runs: small, but more than one layer, both directions, uneven lengths.
CHECKED = (
    {"rnn_mode": "rnn_relu"},
    {"rnn_mode": "rnn_tanh", "time_major": False},
    {"rnn_mode": "gru", "direction": "bidirectional"},
    {"rnn_mode": "lstm", "direction": "bidirectional"},
    {"rnn_mode": "lstm", "num_proj": 3},
)
LAYERS, STEPS, BATCH, INPUT_SIZE, UNITS = 2, 5, 3, 4, 5
LENGTHS = np.array([3, 0, 5], np.int32)

# Relative to the largest expected value.
FORWARD_TOLERANCE = {"float64": 1e-12, "float32": 1e-5}
GRADIENT_TOLERANCE = 1e-6


def library_text(name):
    """What the C function `name` of the loaded library, of type const char*(), returns."""
    function = getattr(ctypes.CDLL(tf_cudnn_rnn_ops.library_path()), name)
    function.restype = ctypes.c_char_p
    function.argtypes = []
    return function().decode()


def report():
    """Yields the lines about versions, devices and kernels."""
    path = Path(tf_cudnn_rnn_ops.library_path())
    info = json.loads((path.parent / "build_info.json").read_text())
    yield f"tf_cudnn_rnn_ops  {tf_cudnn_rnn_ops.__version__}"
    yield f"library           {path} ({path.stat().st_size / 1e6:.2f} MB)"
    yield f"built with        TensorFlow {info['tensorflow_version']}, {info['compiler']}"
    yield f"running           TensorFlow {tf.__version__}, Python {platform.python_version()}, " + (
        f"Keras {tf.keras.__version__}, NumPy {np.__version__}"
    )
    devices = ", ".join(device.name for device in tf.config.list_physical_devices("GPU"))
    yield f"GPUs              {devices or 'none'}"
    yield f"instruction set   {library_text('tf_cudnn_rnn_ops_instruction_set')}"
    cudnn = library_text("tf_cudnn_rnn_ops_cudnn")
    yield "cuDNN             " + cudnn.replace("; ", ";\n                  ")
    yield "kernels"
    for op in OPS:
        yield f"  {op:<28} {registered_kernels(op)}"


def registered_kernels(op):
    """For example "CPU: bfloat16 double float half"."""
    types = {}
    for kernel in tf_kernels.get_registered_kernels_for_op(op).kernel:
        of_device = types.setdefault(kernel.device_type, set())
        for constraint in kernel.constraint:
            if constraint.name == "T":
                names = (tf.as_dtype(each).name for each in constraint.allowed_values.list.type)
                of_device.update(names)
    return "; ".join(f"{key}: {' '.join(sorted(types[key]))}" for key in sorted(types)) or "none"


def make_inputs(config, generator):
    """The arguments of CudnnRNNV3 and the gradients of its outputs, as float64 arrays."""
    time_major = config.get("time_major", True)
    directions = 2 if config.get("direction") == "bidirectional" else 1
    width = config.get("num_proj") or UNITS

    def draw(first, batch, last):
        shape = (first, batch, last) if time_major else (batch, first, last)
        return generator.uniform(-1, 1, shape)

    size = reference.params_size(
        num_layers=LAYERS,
        num_units=UNITS,
        input_size=INPUT_SIZE,
        **{key: value for key, value in config.items() if key != "time_major"},
    )
    state = LAYERS * directions
    arguments = {
        "input": draw(STEPS, BATCH, INPUT_SIZE),
        "input_h": draw(state, BATCH, width),
        "input_c": draw(state, BATCH, UNITS),
        "params": generator.uniform(-0.5, 0.5, size),
    }
    backprops = {
        "output_backprop": draw(STEPS, BATCH, directions * width),
        "output_h_backprop": draw(state, BATCH, width),
        "output_c_backprop": draw(state, BATCH, UNITS),
    }
    return arguments, backprops


def largest_error(actual, expected):
    """The largest deviation relative to the largest expected value; infinite for NaN."""
    worst = 0.0
    for have, want in zip(actual, expected, strict=True):
        have = np.asarray(have, np.float64)
        if have.shape != want.shape:
            return np.inf
        if want.size:
            error = np.max(np.abs(have - want)) / max(np.max(np.abs(want)), 1e-30)
            worst = max(worst, error if np.isfinite(error) else np.inf)
    return worst


def check(config):
    """Yields (what, error, tolerance) for one configuration on the CPU."""
    arguments, backprops = make_inputs(config, np.random.default_rng(1))
    expected = reference.forward(**arguments, sequence_lengths=LENGTHS, **config)
    is_lstm = config["rnn_mode"] == "lstm"
    for dtype, tolerance in FORWARD_TOLERANCE.items():
        with tf.device("/CPU:0"), tf.GradientTape() as tape:
            tensors = {key: tf.constant(value, dtype) for key, value in arguments.items()}
            tape.watch(tensors)
            results = raw_ops.CudnnRNNV3(**tensors, sequence_lengths=LENGTHS, **config)[:3]
            yield f"forward {dtype}", largest_error(results, expected), tolerance
            if dtype != "float64":
                continue
            count = 3 if is_lstm else 2
            outputs = results[:count]
            upstream = [tf.constant(value) for value in backprops.values()][:count]
        gradients = tape.gradient(outputs, list(tensors.values()), upstream)
        expected_gradients = reference.gradients(
            **arguments, **backprops, sequence_lengths=LENGTHS, **config
        )
        yield "gradient", largest_error(gradients, expected_gradients), GRADIENT_TOLERANCE


def main():
    for line in report():
        print(line)
    print("self-check against the NumPy reference, largest relative errors")
    failures = 0
    for config in CHECKED:
        outcomes = list(check(config))
        failures += sum(not error <= tolerance for _, error, tolerance in outcomes)
        mode, *others = config.items()
        name = " ".join([mode[1], *(f"{key}={value}" for key, value in others)])
        errors = ", ".join(
            f"{what} {error:.1e}" + ("" if error <= tolerance else " FAILED")
            for what, error, tolerance in outcomes
        )
        print(f"  {name:<28}  {errors}")
    print(f"{failures} comparisons failed" if failures else "all comparisons passed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
