"""The same bits whatever the number of threads, eagerly and in a graph, and call after call."""

import hashlib

import numpy as np
import pytest
import tensorflow as tf

import cases
import run_ops
from cases import Case
from compare import assert_same_bits

NAMES = run_ops.FORWARD_NAMES + run_ops.BACKWARD_NAMES

# Large enough to be worth splitting: by rows, by units (B = 1), by direction; with dropout.
SPLIT_CASES = [
    Case(mode, L, direction, T, B, I, H, num_proj, "linear_input", lengths, time_major, dtype)
    for mode, num_proj in (*((mode, 0) for mode in cases.MODES), ("lstm", 33))
    for L, direction, T, B, I, H, lengths, time_major in (
        (2, "bidirectional", 11, 37, 45, 67, "zeros", True),
        (2, "unidirectional", 5, 1, 130, 259, "none", True),
        (2, "bidirectional", 7, 9, 64, 64, "varied", False),
    )
    for dtype in ("float32", "float64", "bfloat16")
]


def digests():
    """One line for each case: a hash of every output and gradient, with dropout between layers."""
    lines = []
    for case in SPLIT_CASES:
        inputs = case.make_inputs()
        result = run_ops.forward(case, inputs, dropout=0.25, seed=9)
        gradients = run_ops.backward(case, inputs, result, dropout=0.25, seed=9)
        values = [getattr(result, name) for name in run_ops.FORWARD_NAMES] + list(gradients)
        data = b"".join(run_ops.as_numpy(value).tobytes() for value in values)
        lines.append(f"{case.id} {hashlib.sha256(data).hexdigest()}")
    return lines


THREADS_CODE = """
    import sys
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(int(sys.argv[1]))
    tf.config.threading.set_inter_op_parallelism_threads(2)
    if sys.argv[2] == "True":
        tf.config.experimental.enable_op_determinism()
    import test_threads
    print("\\n".join(test_threads.digests()))
"""


@pytest.fixture(scope="module")
def one_thread():
    return run_ops.run_python(THREADS_CODE, "1", "False")


@pytest.mark.parametrize(("threads", "deterministic"), [(2, False), (3, True), (8, False)])
def test_number_of_threads(threads, deterministic, one_thread):
    """In processes of their own, once with TensorFlow's switch for deterministic ops on."""
    assert len(one_thread.splitlines()) == len(SPLIT_CASES)
    assert run_ops.run_python(THREADS_CODE, str(threads), str(deterministic)) == one_thread


GRAPH_CASES = [
    case
    for case in cases.FORWARD_CASES
    if case.L == 2 and case.lengths == "zeros" and case.dtype in ("float32", "float16")
]


@pytest.mark.parametrize("case", GRAPH_CASES, ids=lambda case: case.id)
def test_eager_graph_and_again(case):
    """Eagerly, in a tf.function with unknown sizes, and a second time: the same bits."""
    inputs = case.make_inputs()

    def everything(**tensors):
        changed = dict(vars(inputs), **tensors)
        changed = cases.Inputs(**changed)
        result = run_ops.forward(case, changed)
        gradients = run_ops.backward(case, changed, result)
        values = [getattr(result, name) for name in run_ops.FORWARD_NAMES] + list(gradients)
        return dict(zip(NAMES, values, strict=True))

    arrays = {
        name: value for name, value in vars(inputs).items() if name not in ("weights", "biases")
    }
    signature = {
        name: tf.TensorSpec([None] * value.ndim, tf.as_dtype(value.dtype))
        for name, value in arrays.items()
    }
    graph = tf.function(everything).get_concrete_function(**signature)
    tensors = {name: tf.constant(value) for name, value in arrays.items()}
    expected = everything(**tensors)
    for values in (everything(**tensors), graph(**tensors), graph(**tensors)):
        for name in NAMES:
            assert_same_bits(values[name].numpy(), expected[name].numpy(), name)


def test_calls_at_once():
    """One graph with sixteen independent calls, run by several inter-op threads."""
    case = Case("lstm", 1, "bidirectional", 9, 8, 20, 40, lengths="zeros")
    batches = [case.make_inputs(seed) for seed in range(16)]

    @tf.function
    def all_at_once():
        values = []
        for inputs in batches:
            result = run_ops.forward(case, inputs)
            values.append([result.output, *run_ops.backward(case, inputs, result)])
        return values

    for _ in range(3):
        for inputs, values in zip(batches, all_at_once(), strict=True):
            result = run_ops.forward(case, inputs)
            expected = [result.output, *run_ops.backward(case, inputs, result)]
            for value, wanted in zip(values, expected, strict=True):
                assert_same_bits(value.numpy(), wanted.numpy())


def test_values_are_finite():
    """The hashes above are of numbers."""
    for case in SPLIT_CASES[:3]:
        inputs = case.make_inputs()
        result = run_ops.forward(case, inputs)
        for value in [result.output, *run_ops.backward(case, inputs, result)]:
            assert np.all(np.isfinite(np.asarray(value.numpy(), np.float32)))
