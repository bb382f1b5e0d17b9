"""Dropout: where it acts, what it scales by, when masks repeat, and gradients through it.

The masks are read off the op itself. They depend on the seeds, the number of the call, the layer
and the element only, so a net that makes them visible (probe()) shares them with every other net
of the same width, which the reference then computes with those masks.
"""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf

import cases
import run_ops
from cases import Case
from compare import assert_close, assert_same_bits
from tf_cudnn_rnn_ops import reference

FORWARD = run_ops.FORWARD_NAMES
BACKWARD = run_ops.BACKWARD_NAMES


def probe(case, rate, calls=1, **seeds):
    """The masks of `calls` successive training calls of a new kernel: [call][L-1] arrays shaped as
    the output, of zeros and 1 / (1 - rate).

    For the mask in front of layer l: a net of l + 1 rnn_relu layers of the same width, in double.
    Layer l-1 emits 1 everywhere, and every unit of layer l the mask's row as a binary number.
    """
    width = case.D * case.R
    masks = []
    for layer in range(1, case.L):
        net = Case("rnn_relu", layer + 1, case.direction, case.T, case.B, 1, case.R)
        net = net.replace(time_major=case.time_major, dtype="float64")
        inputs = net.make_inputs()
        weights = [np.zeros_like(weight) for weight in inputs.weights]
        biases = [np.zeros_like(bias) for bias in inputs.biases]
        for reverse in range(case.D):
            biases[2 * (case.D * (layer - 1) + reverse)][:] = 1.0
            weights[2 * (case.D * layer + reverse)][:] = 2.0 ** np.arange(width)
        inputs = dataclasses.replace(inputs, params=reference.pack(weights, biases))
        outputs = successive_outputs(net, inputs, calls, dropout=rate, **seeds)
        codes = np.rint(np.stack(outputs)[..., 0] * (1.0 - rate)).astype(np.int64)
        bits = (codes[..., None] >> np.arange(width)) & 1
        masks.append(bits / (1.0 - rate))
    return [[mask[call] for mask in masks] for call in range(calls)]


def successive_outputs(case, inputs, calls, **attributes):
    """The outputs of the first calls of a new kernel."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        output = run_ops.forward(case, inputs, **attributes).output
        return [session.run(output) for _ in range(calls)]


DROPOUT_CASES = [
    Case(mode, L, direction, 6, 5, 4, H, num_proj, "linear_input", lengths, time_major, "float64")
    for mode, H, num_proj in (*((mode, 3, 0) for mode in cases.MODES), ("lstm", 5, 3))
    for L in (2, 3)
    for direction, lengths, time_major in (
        ("unidirectional", "none", True),
        ("unidirectional", "zeros", False),
        ("bidirectional", "varied", True),
        ("bidirectional", "zeros", False),
    )
]


@pytest.mark.parametrize("case", DROPOUT_CASES, ids=lambda case: case.id)
def test_values_and_gradients_with_the_ops_own_masks(case):
    """Output, states and all gradients are those of the reference with the same masks; so dropout
    acts on nothing else, and backward uses what forward drew."""
    # The attribute is a float; 1 / (1 - dropout) is formed from that.
    rate, seeds = float(np.float32(0.4)), {"seed": 11, "seed2": 7}
    # Rows of the probe have full length, which no mask depends on.
    (masks,) = probe(case.replace(lengths="none"), rate, **seeds)
    inputs = case.make_inputs()
    expected = reference.forward(**inputs.forward(), **case.attributes(), dropout_masks=masks)
    expected += reference.gradients(
        **inputs.forward(), **inputs.backprops(), **case.attributes(), dropout_masks=masks
    )

    def build():
        result = run_ops.forward(case, inputs, dropout=rate, **seeds)
        gradients = run_ops.backward(case, inputs, result, dropout=rate, **seeds)
        return [getattr(result, name) for name in FORWARD] + list(gradients)

    values = run_ops.run_fresh(build)
    for name, value, wanted in zip(FORWARD + BACKWARD, values, expected, strict=True):
        assert_close(value, wanted, 1e-12 if name in FORWARD else 1e-6, name)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_share_of_kept_elements(rate):
    case = Case("rnn_relu", 2, "bidirectional", 40, 50, 1, 5)
    (masks,) = probe(case, rate, seed=1)
    kept = np.mean(masks[0] > 0)
    assert abs(kept - (1 - rate)) < 5 * (rate * (1 - rate) / masks[0].size) ** 0.5
    np.testing.assert_allclose(masks[0][masks[0] > 0], 1 / (1 - rate))
    # Every step, row and unit is drawn by itself.
    for axes in ((0, 1), (0, 2), (1, 2)):
        share = np.mean(masks[0] > 0, axis=axes)
        assert np.ptp(share) > 0
        assert np.all(np.abs(share - (1 - rate)) < 0.25)


def test_masks_of_layers_and_calls_differ():
    case = Case("rnn_relu", 3, "unidirectional", 10, 10, 1, 6)
    drawn = [mask for masks in probe(case, 0.5, calls=3, seed=3) for mask in masks]
    for first, one in enumerate(drawn):
        for other in drawn[first + 1 :]:
            assert 0.4 < np.mean(one == other) < 0.6


PAIR = Case("lstm", 2, "unidirectional", 7, 6, 3, 20, dtype="float32")


def test_same_seeds_repeat_and_others_do_not():
    inputs = PAIR.make_inputs()
    outputs = {}
    for seeds in ((1, 2), (2, 1), (1, 3), (0, 1), (2**62, -1), (-(2**63), 2**63 - 1)):
        runs = [
            successive_outputs(PAIR, inputs, 3, dropout=0.5, seed=seeds[0], seed2=seeds[1])
            for _ in range(2)
        ]
        for one, other in zip(*runs, strict=True):
            assert_same_bits(one, other)
        for output in runs[0]:
            outputs[output.tobytes()] = seeds
    assert len(outputs) == 6 * 3, "every pair of seeds and every call has a mask of its own"


def test_two_zeros_are_no_seed():
    """As elsewhere in TensorFlow: without a seed every kernel draws masks of its own."""
    inputs = PAIR.make_inputs()
    outputs = [
        output.tobytes()
        for _ in range(2)
        for output in successive_outputs(PAIR, inputs, 2, dropout=0.5)
    ]
    assert len(set(outputs)) == 4


def test_without_a_seed_gradients_use_the_forward_mask():
    """Layer 1 emits 1 everywhere, layer 2 passes it on: the output is the mask, and the gradient of
    layer 1's bias is its sum over steps and rows, weighted by the upstream gradient."""
    case = Case("rnn_relu", 2, "unidirectional", 9, 8, 1, 30, dtype="float64")
    inputs = ones_and_identity(case)
    for _ in range(3):
        result = run_ops.forward(case, inputs, dropout=0.5)
        masks = result.output.numpy()
        assert set(np.unique(masks)) == {0.0, 2.0}
        gradients = run_ops.backward(case, inputs, result, dropout=0.5)
        _, biases = reference.unpack(
            gradients.params_backprop.numpy(), **case.sizes(), **case.parameter_attributes()
        )
        # R is 0, so the final states add layer 1's own upstream gradient, undropped.
        wanted = np.sum(masks * upstream_of_output(case, inputs), axis=(0, 1))
        assert_close(biases[0], wanted + np.sum(inputs.output_h_backprop[0], axis=0), 1e-12)


def ones_and_identity(case):
    """Inputs of a two-layer rnn_relu net whose output is the mask between its layers."""
    inputs = case.make_inputs()
    weights = [np.zeros_like(weight) for weight in inputs.weights]
    biases = [np.zeros_like(bias) for bias in inputs.biases]
    biases[0][:] = 1
    weights[2][:] = np.eye(case.H)
    return dataclasses.replace(inputs, params=reference.pack(weights, biases))


def upstream_of_output(case, inputs):
    """output_backprop with the gradient of the last layer's final state added at its last step."""
    upstream = inputs.output_backprop.copy()
    upstream[-1] += inputs.output_h_backprop[1]
    return upstream


@pytest.fixture(scope="module")
def other_process():
    """What another process finds: the bytes of two seeded calls and their gradients, in hex, and
    what dropout without a seed is told where ops have to be deterministic."""
    code = """
        import json
        import tensorflow as tf
        tf.config.experimental.enable_op_determinism()
        import run_ops, test_dropout
        case = test_dropout.PAIR
        inputs = case.make_inputs()
        seeds = {"seed": 5, "seed2": 6}
        calls = []
        for turn in range(2):
            result = run_ops.forward(case, inputs, dropout=0.3, **seeds)
            gradients = run_ops.backward(case, inputs, result, dropout=0.3, **seeds)
            calls.append([tensor.numpy().tobytes().hex() for tensor in [result.output, *gradients]])
        # Neither inference nor a single layer needs a seed.
        run_ops.forward(case, inputs, dropout=0.5, is_training=False)
        run_ops.forward(case.replace(L=1), case.replace(L=1).make_inputs(), dropout=0.5)
        try:
            run_ops.forward(case, inputs, dropout=0.5)
            message = "accepted"
        except tf.errors.InvalidArgumentError as error:
            message = error.message
        print(json.dumps({"calls": calls, "message": message}))
    """
    return json.loads(run_ops.run_python(code).splitlines()[-1])


def test_same_seeds_repeat_in_another_process(other_process):
    inputs = PAIR.make_inputs()
    seeds = {"seed": 5, "seed2": 6}
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        result = run_ops.forward(PAIR, inputs, dropout=0.3, **seeds)
        gradients = run_ops.backward(PAIR, inputs, result, dropout=0.3, **seeds)
        calls = [session.run([result.output, *gradients]) for _ in range(2)]
    assert calls[0][0].tobytes() != calls[1][0].tobytes()
    for arrays, wanted in zip(calls, other_process["calls"], strict=True):
        assert [array.tobytes().hex() for array in arrays] == wanted


def test_determinism_needs_a_seed(other_process):
    assert "seed" in other_process["message"]


def test_one_layer_has_no_dropout():
    case = PAIR.replace(L=1)
    inputs = case.make_inputs()
    plain = run_ops.forward(case, inputs)
    result = run_ops.forward(case, inputs, dropout=0.9, seed=1)
    for name in FORWARD:
        assert_same_bits(getattr(result, name), getattr(plain, name), name)
    expected = run_ops.backward(case, inputs, plain)
    gradients = run_ops.backward(case, inputs, result, dropout=0.9, seed=1)
    for name in BACKWARD:
        assert_same_bits(getattr(gradients, name), getattr(expected, name), name)


def test_inference_has_no_dropout():
    inputs = PAIR.make_inputs()
    plain = run_ops.forward(PAIR, inputs, is_training=False)
    for _ in range(2):
        result = run_ops.forward(PAIR, inputs, dropout=0.9, seed=1, is_training=False)
        for name in FORWARD:
            assert_same_bits(getattr(result, name), getattr(plain, name), name)


def test_inference_does_not_use_up_masks():
    """is_training is an attribute, hence another kernel: its calls do not shift the masks."""
    inputs = PAIR.make_inputs()

    def build(inference_first):
        before = []
        if inference_first:
            before = [run_ops.forward(PAIR, inputs, dropout=0.5, is_training=False).output]
        with tf.control_dependencies(before):
            return run_ops.forward(PAIR, inputs, dropout=0.5, seed=4).output

    expected = run_ops.run_fresh(lambda: build(False))
    assert_same_bits(run_ops.run_fresh(lambda: build(True)), expected)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_version_drops(version):
    inputs = PAIR.make_inputs()
    plain = run_ops.forward(PAIR, inputs, version).output.numpy()
    attributes = {"dropout": 0.5, "seed": 21}
    expected = successive_outputs(PAIR, inputs, 1, **attributes)[0]
    values = run_ops.run_fresh(lambda: run_ops.forward(PAIR, inputs, version, **attributes).output)
    assert np.any(values != plain)
    assert_same_bits(values, expected)


@pytest.mark.parametrize("dtype", cases.DTYPES)
def test_gradients_belong_to_their_own_call(dtype):
    """Two forward calls, then both gradients, the first one twice: each has its own mask."""
    case = PAIR.replace(dtype=dtype)
    inputs = case.make_inputs()
    attributes = {"dropout": 0.5, "seed": 31}
    results = [run_ops.forward(case, inputs, **attributes) for _ in range(2)]
    assert np.any(results[0].output.numpy() != results[1].output.numpy())
    gradients = [
        run_ops.numpy_values(run_ops.backward(case, inputs, results[turn], **attributes), BACKWARD)
        for turn in (1, 0, 0)
    ]
    for name in BACKWARD:
        assert np.any(gradients[0][name] != gradients[1][name])
        assert_same_bits(gradients[1][name], gradients[2][name], name)


def test_types_share_their_masks():
    """A half-precision net drops what the double one drops: the mask knows no type."""
    outputs = {}
    for dtype in cases.DTYPES:
        case = Case("rnn_relu", 2, "unidirectional", 9, 8, 1, 30, dtype=dtype)
        (output,) = successive_outputs(case, ones_and_identity(case), 1, dropout=0.5, seed=3)
        outputs[dtype] = np.asarray(output, np.float64)
        assert set(np.unique(outputs[dtype])) == {0.0, 2.0}
    for output in outputs.values():
        np.testing.assert_array_equal(output, outputs["float64"])


def test_no_dropout_costs_no_reserve():
    inputs = PAIR.make_inputs()
    plain = run_ops.forward(PAIR, inputs).reserve_space.shape[0]
    dropped = run_ops.forward(PAIR, inputs, dropout=0.5).reserve_space.shape[0]
    assert plain <= dropped
