"""The gradients of the conversions between params and canonical lists, and their registration.

Both are linear, so that a gradient is known exactly: it is the other conversion.
"""

import importlib
import itertools

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import ops as tf_ops

from tf_cudnn_rnn_ops import gradients, raw_ops

I, H, L = 3, 4, 2
# (rnn_mode, direction, num_proj, input_mode), version
CONFIGS = [
    *itertools.product(
        [
            ("rnn_tanh", "unidirectional", 0, "linear_input"),
            ("gru", "bidirectional", 0, "linear_input"),
            ("lstm", "bidirectional", 0, "skip_input"),
        ],
        [1, 2],
    ),
    (("lstm", "bidirectional", 2, "linear_input"), 2),
]


class Model:
    """The shapes and attributes of one configuration, and its two ops."""

    def __init__(self, config, version):
        rnn_mode, direction, num_proj, input_mode = config
        gates = {"lstm": 4, "gru": 3}.get(rnn_mode, 1)
        directions = 2 if direction == "bidirectional" else 1
        skip = input_mode == "skip_input"
        input_size, width = H if skip else I, num_proj or H
        self.weights, self.biases = [], []
        for layer, _ in itertools.product(range(L), range(directions)):
            columns = directions * width if layer else 0 if skip else input_size
            self.weights += [[H, columns]] * gates + [[H, width]] * gates
            self.weights += [[width, H]] if num_proj else []
            self.biases += [[H]] * (2 * gates)
        self.size = sum(int(np.prod(shape)) for shape in self.weights + self.biases)
        arguments = {
            "num_layers": L,
            "num_units": H,
            "input_size": input_size,
            "rnn_mode": rnn_mode,
            "direction": direction,
            "input_mode": input_mode,
        }
        if version == 1:
            counts = {"num_params": len(self.biases)}
            functions = raw_ops.CudnnRNNCanonicalToParams, raw_ops.CudnnRNNParamsToCanonical
        else:
            counts = {
                "num_params_weights": len(self.weights),
                "num_params_biases": len(self.biases),
            }
            arguments["num_proj"] = num_proj
            functions = raw_ops.CudnnRNNCanonicalToParamsV2, raw_ops.CudnnRNNParamsToCanonicalV2
        self.to_params = lambda tensors: functions[0](
            weights=tensors[: len(self.weights)], biases=tensors[len(self.weights) :], **arguments
        )
        self.to_canonical = lambda params: [
            *itertools.chain(*functions[1](params=params, **counts, **arguments))
        ]

    def pieces(self, flat):
        """`flat` cut into the shapes of the lists: all weights, then all biases."""
        parts, start = [], 0
        for shape in self.weights + self.biases:
            parts.append(np.reshape(flat[start : start + np.prod(shape, dtype=int)], shape))
            start += parts[-1].size
        return parts


@pytest.fixture(params=CONFIGS, ids=lambda each: f"{'-'.join(map(str, each[0]))}-v{each[1]}")
def model(request):
    return Model(*request.param)


@pytest.fixture(params=[False, True], ids=["eager", "function"])
def run(request):
    return tf.function if request.param else lambda function: function


@pytest.mark.parametrize("dtype", [tf.float64, tf.float32, tf.half, tf.bfloat16])
def test_gradient_of_canonical_to_params(model, run, dtype):
    upstream = np.random.default_rng(0).normal(size=model.size)
    tensors = [tf.zeros(shape, dtype) for shape in model.weights + model.biases]

    @run
    def gradient(tensors, upstream):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            params = model.to_params(tensors)
        return tape.gradient(params, tensors, upstream)

    upstream = tf.constant(upstream, dtype)
    for actual, expected in zip(
        gradient(tensors, upstream), model.pieces(upstream.numpy()), strict=True
    ):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("dtype", [tf.float64, tf.float32, tf.half, tf.bfloat16])
def test_gradient_of_params_to_canonical(model, run, dtype):
    upstream = tf.constant(np.random.default_rng(0).normal(size=model.size), dtype)
    params = tf.zeros([model.size], dtype)

    @run
    def gradient(params, pieces):
        with tf.GradientTape() as tape:
            tape.watch(params)
            lists = model.to_canonical(params)
        return tape.gradient(lists, params, pieces)

    pieces = [tf.constant(piece, dtype) for piece in model.pieces(upstream.numpy())]
    np.testing.assert_array_equal(gradient(params, pieces), upstream)


def test_outputs_without_a_gradient_count_as_zero(model, run):
    params = tf.zeros([model.size])

    @run
    def gradient(params):
        with tf.GradientTape() as tape:
            tape.watch(params)
            lists = model.to_canonical(params)
            loss = tf.reduce_sum(lists[-1]) + 2 * tf.reduce_sum(lists[len(model.weights) - 1])
        return tape.gradient(loss, params)

    expected = [np.zeros(shape) for shape in model.weights + model.biases]
    expected[-1] += 1
    expected[len(model.weights) - 1] += 2
    np.testing.assert_array_equal(
        gradient(params), np.concatenate([piece.ravel() for piece in expected])
    )


def test_in_a_graph_too(model):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        params = tf.range(model.size, dtype=tf.float32)
        lists = model.to_canonical(params)
        (gradient,) = tf.gradients(lists[0], params)
        again = model.to_params(lists)
        (through,) = tf.gradients(again, params, tf.range(model.size, dtype=tf.float32) - 5)
        first = int(np.prod(model.weights[0]))
        values = session.run([gradient, again, through])
    np.testing.assert_array_equal(values[0], np.arange(model.size) < first)
    np.testing.assert_array_equal(values[1], np.arange(model.size))
    np.testing.assert_array_equal(values[2], np.arange(model.size) - 5.0)


def test_second_order(model, run):
    # Of sum(to_params(w)^3), the second derivative along v is 6 w v.
    generator = np.random.default_rng(1)
    point, along = generator.normal(size=(2, model.size))
    tensors = [tf.constant(piece) for piece in model.pieces(point)]

    @run
    def second(tensors):
        with tf.GradientTape() as outer:
            outer.watch(tensors)
            with tf.GradientTape() as inner:
                inner.watch(tensors)
                loss = tf.reduce_sum(model.to_params(tensors) ** 3)
            first = inner.gradient(loss, tensors)
            product = tf.add_n(
                [tf.reduce_sum(g * v) for g, v in zip(first, model.pieces(along), strict=True)]
            )
        return outer.gradient(product, tensors)

    for actual, expected in zip(second(tensors), model.pieces(6 * point * along), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-12)

    @run
    def second_of_the_inverse(params):
        with tf.GradientTape() as outer:
            outer.watch(params)
            with tf.GradientTape() as inner:
                inner.watch(params)
                lists = model.to_canonical(params)
                loss = tf.add_n([tf.reduce_sum(piece**3) for piece in lists])
            product = tf.reduce_sum(inner.gradient(loss, params) * along)
        return outer.gradient(product, params)

    actual = second_of_the_inverse(tf.constant(point))
    np.testing.assert_allclose(actual, 6 * point * along, rtol=1e-12)


def test_sizes_have_no_gradient():
    sizes = [tf.constant(value) for value in (1, 2, 3)]
    params = tf.zeros([56])
    with tf.GradientTape() as tape:
        tape.watch(params)
        lists = raw_ops.CudnnRNNParamsToCanonical(
            num_layers=sizes[0],
            num_units=sizes[1],
            input_size=sizes[2],
            params=params,
            num_params=8,
        )
    *of_sizes, of_params = tape.gradient(lists.weights, [*sizes, params])
    assert of_sizes == [None] * 3
    assert of_params.shape == [56]


NAMES = ["CudnnRNN", "CudnnRNNV2", "CudnnRNNV3"]
OUR_NAMES = [name for name in raw_ops.__all__ if "Canonical" in name]


def test_registered_once():
    registered = {name: tf_ops.gradient_registry.lookup(name) for name in NAMES + OUR_NAMES}
    importlib.reload(gradients)
    for name, function in registered.items():
        assert tf_ops.gradient_registry.lookup(name) is function
    for name in NAMES:
        # TensorFlow's own stay.
        assert registered[name].__module__.startswith("tensorflow.")
    for name in OUR_NAMES:
        assert registered[name].__module__ == gradients.__name__
