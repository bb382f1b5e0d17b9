"""Ops that run at once, inside control flow and functions; and ops that nobody wants any more.

Right is what the same call gives alone: results do not depend on threads, so bits are compared.
"""

import threading
import time

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.eager import cancellation

import cases
import run_ops
from cases import Case
from compare import assert_close, assert_same_bits

# Large enough that a call divides its work among the intra-op threads.
CASES = [
    Case("lstm", 2, "bidirectional", 12, 17, 20, 48, lengths="zeros"),
    Case("gru", 1, "unidirectional", 9, 33, 40, 64, lengths="varied", time_major=False),
    Case("lstm", 1, "unidirectional", 5, 1, 130, 259, num_proj=33),
]


def everything(case, inputs):
    """Output, states and gradients, as a list of tensors."""
    result = run_ops.forward(case, inputs)
    values = [getattr(result, name) for name in run_ops.FORWARD_NAMES]
    return values + list(run_ops.backward(case, inputs, result))


def arrays_of(values):
    return [np.asarray(value) for value in values]


def assert_all_same(values, expected):
    for value, wanted in zip(values, expected, strict=True):
        assert_same_bits(np.asarray(value), wanted)


def in_threads(count, function):
    """function(0) … function(count - 1) at once; the first failure is raised here."""
    failures = []
    start = threading.Barrier(count)

    def run(number):
        try:
            start.wait()
            function(number)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
        assert not thread.is_alive(), "deadlock"
    if failures:
        raise failures[0]


def graph_of(case):
    """everything() as one graph of tensors of unknown sizes."""
    inputs = case.make_inputs()
    names = [name for name in vars(inputs) if name not in ("weights", "biases")]
    signature = {
        name: tf.TensorSpec([None] * getattr(inputs, name).ndim, getattr(inputs, name).dtype)
        for name in names
    }

    def build(**tensors):
        return everything(case, cases.Inputs(**{**vars(inputs), **tensors}))

    graph = tf.function(build).get_concrete_function(**signature)
    return lambda inputs: graph(**{name: tf.constant(getattr(inputs, name)) for name in names})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_one_graph_from_eight_threads(case):
    graph = graph_of(case)
    data = [case.make_inputs(seed) for seed in range(8)]
    expected = [arrays_of(everything(case, inputs)) for inputs in data]

    def run(number):
        for turn in range(6):
            which = (number + turn) % len(data)
            assert_all_same(graph(data[which]), expected[which])

    in_threads(8, run)


def test_many_sessions():
    """Eight sessions of one graph, each used by two threads."""
    case = CASES[0]
    data = [case.make_inputs(seed) for seed in range(4)]
    expected = [arrays_of(everything(case, inputs)) for inputs in data]
    with tf.Graph().as_default() as graph:
        names = [name for name in vars(data[0]) if name not in ("weights", "biases")]
        fed = {name: tf.compat.v1.placeholder(getattr(data[0], name).dtype, None) for name in names}
        fetches = everything(case, cases.Inputs(**{**vars(data[0]), **fed}))
    sessions = [tf.compat.v1.Session(graph=graph) for _ in range(8)]

    def run(number):
        for turn in range(3):
            which = (number + turn) % len(data)
            feed = {fed[name]: getattr(data[which], name) for name in names}
            assert_all_same(sessions[number // 2].run(fetches, feed), expected[which])

    in_threads(16, run)
    for session in sessions:
        session.close()


def stacked(data, name):
    return tf.stack([getattr(inputs, name) for inputs in data])


def test_map_fn():
    """Twelve rows at once, with the gradient of each."""
    case = CASES[0]
    data = [case.make_inputs(seed) for seed in range(12)]
    params = data[0].params
    data = [cases.Inputs(**{**vars(inputs), "params": params}) for inputs in data]
    expected = [arrays_of(everything(case, inputs)) for inputs in data]
    names = [name for name in vars(data[0]) if name not in ("weights", "biases", "params")]

    @tf.function
    def run(tensors):
        def one(row):
            return tuple(
                everything(
                    case, cases.Inputs(**{**vars(data[0]), **dict(zip(names, row, strict=True))})
                )
            )

        return tf.map_fn(
            one,
            tensors,
            fn_output_signature=(tf.float32,) * len(expected[0]),
            parallel_iterations=12,
        )

    values = run(tuple(stacked(data, name) for name in names))
    for row, wanted in enumerate(expected):
        assert_all_same([value[row] for value in values], wanted)


def test_while_loop():
    """Iterations that do not wait for each other, ten at once, and the gradient through them."""
    case = Case("gru", 1, "bidirectional", 6, 5, 4, 24, dtype="float64")
    inputs = case.make_inputs()
    scales = np.linspace(0.5, 1.5, 12)

    def loss_of(x, params, scale):
        changed = cases.Inputs(**{**vars(inputs), "input": x * scale, "params": params})
        return tf.reduce_sum(run_ops.forward(case, changed).output ** 2)

    def sum_in_loop(x, params):
        def body(i, total):
            return i + 1, total + loss_of(x, params, tf.gather(scales, i))

        return tf.while_loop(
            lambda i, _: i < len(scales),
            body,
            (tf.constant(0), tf.constant(0.0, tf.float64)),
            parallel_iterations=10,
        )[1]

    def sum_unrolled(x, params):
        return tf.add_n([loss_of(x, params, scale) for scale in scales])

    def value_and_gradients(function):
        x, params = tf.constant(inputs.input), tf.constant(inputs.params)
        with tf.GradientTape() as tape:
            tape.watch([x, params])
            total = function(x, params)
        return [total, *tape.gradient(total, [x, params])]

    values = tf.function(value_and_gradients)(sum_in_loop)
    for value, wanted in zip(values, value_and_gradients(sum_unrolled), strict=True):
        assert_close(value, wanted, 1e-12)


def test_nested_functions():
    """An op in a function in a condition in a function, eagerly differentiated."""
    case = CASES[0]
    inputs = case.make_inputs()

    @tf.function
    def innermost(x):
        return run_ops.forward(case, cases.Inputs(**{**vars(inputs), "input": x})).output

    @tf.function
    def inner(x):
        return innermost(x) + innermost(-x)

    @tf.function
    def outer(x, twice):
        return tf.cond(twice, lambda: inner(inner(x)[..., : case.I]), lambda: inner(x))

    def eager(x, twice):
        def both(x):
            outputs = []
            for each in (x, -x):
                changed = cases.Inputs(**{**vars(inputs), "input": each})
                outputs.append(run_ops.forward(case, changed).output)
            return outputs[0] + outputs[1]

        return both(both(x)[..., : case.I]) if twice else both(x)

    for twice in (True, False):
        results = []
        for function in (outer, eager):
            x = tf.constant(inputs.input)
            with tf.GradientTape() as tape:
                tape.watch(x)
                output = function(x, tf.constant(twice))
            results.append([output, tape.gradient(output, x)])
        assert_all_same(results[0], arrays_of(results[1]))


FEW_THREADS_CODE = """
    import sys
    import tensorflow as tf
    tf.config.threading.set_inter_op_parallelism_threads(int(sys.argv[1]))
    tf.config.threading.set_intra_op_parallelism_threads(int(sys.argv[2]))
    import test_concurrency
    test_concurrency.run_more_calls_than_threads()
"""


def run_more_calls_than_threads():
    """Twelve calls of one graph, and eight such graphs at once."""
    data = [(case, case.make_inputs(seed)) for case in CASES for seed in range(4)]
    expected = [arrays_of(everything(case, inputs)) for case, inputs in data]

    @tf.function
    def all_at_once():
        return [everything(case, inputs) for case, inputs in data]

    def run(_):
        for values, wanted in zip(all_at_once(), expected, strict=True):
            assert_all_same(values, wanted)

    run(0)
    in_threads(8, run)


@pytest.mark.parametrize(("inter_op", "intra_op"), [(4, 2), (1, 1), (2, 8)])
def test_more_calls_than_threads(inter_op, intra_op):
    """Every thread of both pools is busy with calls, which must not wait for one another."""
    run_ops.run_python(FEW_THREADS_CODE, str(inter_op), str(intra_op))


# ---- Cancellation ----------------------------------------------------------------------------

# One row, two million multiplications a step: none can wait, and none is worth more threads.
LONG = Case("rnn_tanh", 1, "unidirectional", T=60000, B=1, I=1, H=1024)


def long_inputs(T, backward=False):
    case = LONG.replace(T=T)
    arrays = {
        "input": np.zeros([T, 1, 1]),
        "input_h": np.zeros([1, 1, case.H]),
        "input_c": np.zeros([]),
        "params": np.zeros([case.H * (case.H + 3)]),
        "output_backprop": np.zeros([T if backward else 0, 1, case.H]),
        "output_h_backprop": np.zeros([1, 1, case.H]),
        "output_c_backprop": np.zeros([0]),
    }
    # Tensors, of which a function takes no copy.
    tensors = {name: tf.constant(value, tf.float32) for name, value in arrays.items()}
    return case, cases.Inputs(
        **tensors, weights=[], biases=[], sequence_lengths=tf.constant([T], tf.int32)
    )


@pytest.fixture(scope="module")
def seconds():
    """How long a twentieth of LONG's steps take, with whatever else the machine has to do."""
    case, inputs = long_inputs(LONG.T // 20)
    start = time.monotonic()
    run_ops.forward(case, inputs, is_training=False)
    return time.monotonic() - start


def test_deadline_of_a_session(seconds):
    """A session's run ends soon after its deadline, and the session goes on."""
    small = CASES[0].make_inputs()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        fetch = run_ops.forward(*long_inputs(LONG.T), is_training=False).output_h
        other = run_ops.forward(CASES[0], small).output
        start = time.monotonic()
        with pytest.raises(tf.errors.DeadlineExceededError):
            session.run(fetch, options=tf.compat.v1.RunOptions(timeout_in_ms=200))
        assert time.monotonic() - start < 0.2 + max(1, 4 * seconds)
        output = session.run(other)
    assert_same_bits(output, run_ops.forward(CASES[0], small).output.numpy())


def assert_cancelled(function, limit):
    """function() ends within `limit` seconds of its cancellation, which comes half a second on."""
    manager = cancellation.CancellationManager()
    cancelable = manager.get_cancelable_function(tf.function(function).get_concrete_function())
    cancelled_at = []

    def cancel():
        time.sleep(0.5)
        cancelled_at.append(time.monotonic())
        manager.start_cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    with pytest.raises(tf.errors.CancelledError):
        cancelable()
    assert time.monotonic() - cancelled_at[0] < limit
    thread.join()


@pytest.mark.parametrize("training", [False, True])
def test_cancelled_forward(seconds, training):
    case, inputs = long_inputs(LONG.T)
    assert_cancelled(
        lambda: run_ops.forward(case, inputs, is_training=training).output_h, max(1, 4 * seconds)
    )


def test_cancelled_backward():
    """The backward pass alone; it takes longer than the forward pass."""
    case, inputs = long_inputs(LONG.T // 8, backward=True)
    start = time.monotonic()
    result = run_ops.forward(case, inputs)
    forward_seconds = time.monotonic() - start
    assert_cancelled(
        lambda: run_ops.backward(case, inputs, result).params_backprop,
        max(0.5, forward_seconds / 2),
    )
