"""Weights to and from Keras, PyTorch, compat.v1's CuDNN layers and tf.contrib's checkpoints."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

import layer_cases
from cases import Case
from tf_cudnn_rnn_ops import layers, reference, weights

L = keras.layers
STOCK = {
    "lstm": lambda units, **options: L.LSTM(units, **options),
    "gru": lambda units, **options: L.GRU(units, reset_after=True, **options),
    "rnn_tanh": lambda units, **options: L.SimpleRNN(units, activation="tanh", **options),
    "rnn_relu": lambda units, **options: L.SimpleRNN(units, activation="relu", **options),
}
MODES = tuple(STOCK)


def x_of(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def stock_layer(mode, bidirectional, units=4, width=3, seed=0, **options):
    layer = STOCK[mode](units, **options)
    if bidirectional:
        layer = L.Bidirectional(layer)
    layer.build((None, None, width))
    return layer_cases.randomize(layer, seed)


# Keras.


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("use_bias", [False, True])
def test_from_keras_and_back(mode, bidirectional, use_bias):
    options = {"return_sequences": True, "return_state": True, "use_bias": use_bias}
    stock = stock_layer(mode, bidirectional, **options)
    ours = weights.from_keras(stock)
    assert isinstance(ours, layer_cases.CLASSES[mode])
    assert ours.direction == ("bidirectional" if bidirectional else "unidirectional")
    x = x_of(2, 5, 3)
    for one, other in zip(ours(x), stock(x), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    (back,) = weights.to_keras(ours)
    assert type(back) is type(stock)
    for one, other in zip(back.get_weights(), stock.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(back(x), stock(x), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("mode", MODES)
def test_each_weight_of_keras_on_its_own(mode):
    """One weight or bias is 1 and all others 0: no gate can be taken for another."""
    stock = stock_layer(mode, False, units=2, width=1)
    zeros = [np.zeros_like(w) for w in stock.get_weights()]
    x, state = x_of(1, 2, 1), [x_of(1, 2, seed=s) for s in range(2)][: 2 if mode == "lstm" else 1]
    for index, array in enumerate(zeros):
        for place in np.ndindex(array.shape):
            one_hot = [w.copy() for w in zeros]
            one_hot[index][place] = 1
            stock.set_weights(one_hot)
            ours = weights.from_keras(stock)
            np.testing.assert_allclose(
                ours(x, initial_state=state), stock(x, initial_state=state), atol=1e-6
            )


def test_biases_follow_the_rule():
    lstm = stock_layer("lstm", False)
    bias = lstm.get_weights()[2]
    ours = weights.from_keras(lstm)
    np.testing.assert_array_equal(ours.bias_l0.numpy(), [np.zeros(16), bias])
    ours.bias_l0.assign(np.stack([bias, 3 * bias]))
    np.testing.assert_array_equal(weights.to_keras(ours)[0].get_weights()[2], 4 * bias)
    gru = stock_layer("gru", False)
    assert gru.get_weights()[2].shape == (2, 12)
    z, r, h = np.split(gru.get_weights()[2], 3, axis=1)
    np.testing.assert_array_equal(
        weights.from_keras(gru).bias_l0.numpy(), np.concatenate([r, z, h], axis=1)
    )


def test_a_gru_is_not_one_with_reset_after_false():
    stock = stock_layer("gru", False)
    other = L.GRU(4, reset_after=False)
    other.build((None, None, 3))
    kernel, recurrent, bias = stock.get_weights()
    other.set_weights([kernel, recurrent, bias.sum(axis=0)])
    x = x_of(2, 5, 3)
    ours = weights.from_keras(stock)(x)
    np.testing.assert_allclose(ours, stock(x), atol=1e-6)
    assert np.abs(ours - other(x)).max() > 1e-3


class MyLSTM(L.LSTM):
    pass


REFUSED = [
    (lambda: L.GRU(2, reset_after=False), "reset_after=False"),
    (lambda: L.LSTM(2, activation="relu"), "activation is relu, not tanh"),
    (
        lambda: L.LSTM(2, recurrent_activation="hard_sigmoid"),
        "recurrent_activation is hard_sigmoid",
    ),
    (lambda: L.SimpleRNN(2, activation="sigmoid"), "activation is sigmoid, not tanh or relu"),
    (lambda: L.LSTM(2, dropout=0.1), "dropout=0.1 drops elements within"),
    (lambda: L.GRU(2, recurrent_dropout=0.2), "recurrent_dropout=0.2"),
    (lambda: MyLSTM(2), "MyLSTM is none of"),
    (lambda: L.RNN(L.LSTMCell(2)), "RNN is none of"),
    (lambda: L.ConvLSTM1D(2, 3), "ConvLSTM1D is none of"),
    (lambda: L.Bidirectional(L.LSTM(2), merge_mode="sum"), "merge_mode is 'sum'"),
    (
        lambda: L.Bidirectional(L.LSTM(2), backward_layer=L.GRU(2, go_backwards=True)),
        "two directions are different kinds",
    ),
    (
        lambda: L.Bidirectional(L.LSTM(2), backward_layer=L.LSTM(3, go_backwards=True)),
        "two directions have different units: 2, 3",
    ),
    (
        lambda: L.Bidirectional(L.GRU(2, reset_after=False)),
        "reset_after=False",
    ),
]


@pytest.mark.parametrize("make,message", REFUSED, ids=[message[:25] for _, message in REFUSED])
def test_what_keras_has_and_cudnn_has_not(make, message):
    layer = make()
    assert message in weights.why_not(layer)
    with pytest.raises(ValueError, match="cannot be converted: "):
        weights.from_keras(layer)


def test_dropout_of_keras_can_be_left_out():
    stock = stock_layer("lstm", False, dropout=0.3, recurrent_dropout=0.2)
    ours = weights.from_keras(stock, ignore_dropout=True)
    x = x_of(2, 5, 3)
    np.testing.assert_allclose(ours(x), stock(x), atol=1e-6)


def test_unbuilt_layers():
    with pytest.raises(ValueError, match="has no weights yet"):
        weights.from_keras(L.LSTM(2))
    with pytest.raises(ValueError, match="has no weights yet"):
        weights.to_keras(layers.CudnnLSTM(2))
    with pytest.raises(ValueError, match="has no weights yet"):
        weights.to_torch(layers.CudnnLSTM(2))


def test_options_of_keras_are_carried_over():
    stock = L.LSTM(
        4,
        name="encoder",
        dtype="mixed_bfloat16",
        return_sequences=True,
        go_backwards=True,
        zero_output_for_mask=True,
        unit_forget_bias=False,
        kernel_initializer=keras.initializers.HeNormal(seed=1),
        recurrent_regularizer=keras.regularizers.L2(0.1),
        bias_constraint=keras.constraints.NonNeg(),
        activity_regularizer=keras.regularizers.L1(0.2),
    )
    stock.trainable = False
    stock.build((None, None, 3))
    ours = weights.from_keras(stock)
    theirs, mine = stock.get_config(), ours.get_config()
    shared = set(theirs) & set(mine) - {"dropout", "seed"}
    assert {name: mine[name] for name in shared} == {name: theirs[name] for name in shared}
    (back,) = weights.to_keras(ours)
    dropped = {"dropout", "seed"}
    assert {k: v for k, v in back.get_config().items() if k not in dropped} == {
        k: v for k, v in theirs.items() if k not in dropped
    }
    assert not ours.trainable and weights.from_keras(stock, name="other").name == "other"


def test_what_is_no_layer():
    for function in (weights.to_keras, weights.to_torch, weights.get_canonical):
        for thing in (L.LSTM(3), "lstm", None):
            with pytest.raises(TypeError, match="layer must be one of tf_cudnn_rnn_ops.layers"):
                function(thing)
    for thing in ("lstm", [None], 3):
        with pytest.raises(TypeError, match="layers must be Keras layers, got"):
            weights.from_keras(thing)
    for thing in ([], [L.Dropout(0.1)]):
        with pytest.raises(ValueError, match="must hold a recurrent layer"):
            weights.from_keras(thing)


def test_a_stack_of_keras_layers_becomes_one():
    stack = [
        L.Bidirectional(L.GRU(4, return_sequences=True)),
        L.Dropout(0.25),
        L.Bidirectional(L.GRU(4, return_sequences=True)),
        L.Dropout(0.25),
        L.Bidirectional(L.GRU(4)),
    ]
    model = layer_cases.randomize(keras.Sequential([keras.Input((None, 3)), *stack]))
    ours = weights.from_keras(stack)
    assert (ours.num_layers, ours.dropout, ours.return_sequences) == (3, 0.25, False)
    x = x_of(2, 5, 3)
    np.testing.assert_allclose(ours(x), model(x), atol=1e-6)
    back = weights.to_keras(ours)
    assert [type(layer) for layer in back] == [type(layer) for layer in stack]
    again = keras.Sequential([keras.Input((None, 3)), *back])
    for one, other in zip(again.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


WRONG_STACKS = [
    ([L.LSTM(4), L.LSTM(4)], "must return sequences"),
    ([L.LSTM(4, return_sequences=True), L.LSTM(5)], "the same units"),
    ([L.LSTM(4, return_sequences=True), L.GRU(4)], "of the same kind"),
    ([L.LSTM(4, return_sequences=True), L.Bidirectional(L.LSTM(4))], "of the same kind"),
    ([L.LSTM(4, return_sequences=True), L.LSTM(4, return_state=True)], "not return its state"),
    ([L.LSTM(4, return_sequences=True, go_backwards=True), L.LSTM(4)], "not have go_backwards"),
    ([L.Dropout(0.1), L.LSTM(4)], "Dropout layers must stand between"),
]


@pytest.mark.parametrize(
    "stack,message", WRONG_STACKS, ids=[message for _, message in WRONG_STACKS]
)
def test_stacks_that_are_not_one_layer(stack, message):
    for layer in stack:
        if not layer.built:
            layer.build((None, None, 4))
    with pytest.raises(ValueError, match=message):
        weights.from_keras(stack)


def test_what_ours_have_and_keras_has_not():
    for options, message in (
        ({"num_proj": 2}, "has no projection"),
        ({"time_major": True}, "batch-major"),
        ({"num_layers": 2, "go_backwards": True}, "go_backwards with num_layers=2"),
    ):
        layer = layers.CudnnLSTM(3, **options)
        layer.build((None, None, 2))
        with pytest.raises(ValueError, match=message):
            weights.to_keras(layer)


@pytest.mark.parametrize("mode", MODES)
def test_skip_input_becomes_identities(mode):
    case = Case(mode, 2, "bidirectional", 5, 3, 4, 4, input_mode="skip_input", time_major=False)
    inputs = case.make_inputs()
    ours = layer_cases.make_layer(case, inputs, return_state=False)
    stock = keras.Sequential([keras.Input((None, 4)), *weights.to_keras(ours)])
    np.testing.assert_allclose(stock(inputs.input), ours(inputs.input), atol=1e-6)


# PyTorch.

TORCH = [
    ("LSTM", "lstm", {}),
    ("LSTM", "lstm", {"proj_size": 3}),
    ("GRU", "gru", {}),
    ("RNN", "rnn_tanh", {"nonlinearity": "tanh"}),
    ("RNN", "rnn_relu", {"nonlinearity": "relu"}),
    ("GRU", "gru", {"bias": False}),
]


@pytest.mark.parametrize("name,mode,options", TORCH, ids=str)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("num_layers", [1, 3])
def test_torch_modules(name, mode, options, bidirectional, num_layers):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = getattr(torch.nn, name)(
        4, 5, num_layers, bidirectional=bidirectional, batch_first=True, **options
    )
    state = {f"encoder.{key}": value for key, value in module.state_dict().items()}
    state["encoder.norm.weight"] = torch.zeros(1)
    ours = weights.from_torch(
        state,
        prefix="encoder.",
        nonlinearity=options.get("nonlinearity", "tanh"),
        return_sequences=True,
        return_state=True,
    )
    assert ours.rnn_mode == mode and ours.use_bias == options.get("bias", True)
    x = x_of(3, 6, 4)
    lengths = np.array([6, 2, 4])
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        torch.tensor(x), torch.tensor(lengths), batch_first=True, enforce_sorted=False
    )
    with torch.no_grad():
        result, final = module(packed)
    expected = torch.nn.utils.rnn.pad_packed_sequence(result, batch_first=True)[0]
    final = final if name == "LSTM" else (final,)
    output, *states = ours(x, sequence_lengths=lengths)
    np.testing.assert_allclose(output, expected, atol=1e-6)
    for index, tensor in enumerate(final):
        np.testing.assert_allclose(np.stack(states[index :: len(final)]), tensor, atol=1e-6)

    back = weights.to_torch(ours)
    assert list(back) == list(module.state_dict())
    for key, value in module.state_dict().items():
        np.testing.assert_array_equal(back[key], value.numpy())
    assert set(weights.to_torch(ours, "a.b.")) == {f"a.b.{key}" for key in back}
    # Arrays are taken as well as tensors, and the type is kept.
    double = {key: value.astype(np.float64) for key, value in back.items()}
    again = weights.from_torch(double, nonlinearity=options.get("nonlinearity", "tanh"))
    assert again.dtype == "float64"


def test_skip_input_in_torch():
    torch = pytest.importorskip("torch")
    case = Case("gru", 2, "unidirectional", 5, 3, 4, 4, input_mode="skip_input", time_major=False)
    inputs = case.make_inputs()
    ours = layer_cases.make_layer(case, inputs, return_state=False)
    module = torch.nn.GRU(4, 4, 2, batch_first=True)
    state = {key: torch.from_numpy(value) for key, value in weights.to_torch(ours).items()}
    module.load_state_dict(state)
    with torch.no_grad():
        expected = module(torch.tensor(inputs.input))[0]
    np.testing.assert_allclose(ours(inputs.input), expected, atol=1e-6)


def test_wrong_state_dictionaries():
    layer = layers.CudnnGRU(3, 2, "bidirectional")
    layer.build((None, None, 2))
    good = weights.to_torch(layer)
    for changed, message in (
        ({}, "state_dict must hold weight_ih_l0"),
        ({k: v for k, v in good.items() if "l0" not in k}, "for every layer and direction"),
        ({k: v for k, v in good.items() if k != "weight_hh_l1"}, "no weight_hh for layer 1"),
        ({k: v for k, v in good.items() if k != "bias_ih_l1_reverse"}, "layer 1, reverse"),
        ({**good, "weight_hh_l0": np.zeros((7, 3))}, "must be \\[G\\*H, H\\]"),
        ({**good, "weight_hh_l0": np.zeros((9, 0))}, "must be \\[G\\*H, H\\]"),
        ({**good, "weight_hh_l0": np.zeros(9)}, r"weight_hh_l0 must be \[any, any\], got \[9\]"),
        ({**good, "bias_hh_l1": np.zeros(8)}, r"bias_hh of layer 1 must be \[9\], got \[8\]"),
        ({**good, "weight_ih_l1": np.zeros((9, 5))}, "kernel of pseudo-layer 2 must be \\[9, 6\\]"),
    ):
        with pytest.raises(ValueError, match=message):
            weights.from_torch(changed)
    with pytest.raises(ValueError, match="nonlinearity must be"):
        weights.from_torch(good, nonlinearity="sigmoid")


def test_torch_modules_of_low_precision():
    torch = pytest.importorskip("torch")
    for dtype in (torch.float16, torch.bfloat16):
        module = torch.nn.GRU(3, 4).to(dtype)
        layer = weights.from_torch(module.state_dict())
        assert layer.kernel_l0.dtype == "float32"
        expected = module.weight_ih_l0.detach().float().numpy()
        np.testing.assert_array_equal(layer.kernel_l0, expected)


# compat.v1's CuDNNLSTM and CuDNNGRU.


def compat_v1_params(kernel, recurrent, bias, gates):
    """The params buffer that those layers made of their weights."""
    order = [1, 0, 2] if gates == 3 else range(gates)
    units = recurrent.shape[0]
    blocks = [
        matrix[:, gate * units : (gate + 1) * units].flatten()
        for matrix in (kernel, recurrent)
        for gate in order
    ]
    rows = bias.reshape(2 * gates, units)
    blocks += [rows[half * gates + gate] for half in range(2) for gate in order]
    return np.concatenate(blocks)


@pytest.mark.parametrize("mode,gates", [("lstm", 4), ("gru", 3)])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_compat_v1_weights(mode, gates, bidirectional):
    shapes = [(3, gates * 5), (5, gates * 5), (2 * gates * 5,)] * (2 if bidirectional else 1)
    arrays = [x_of(*shape, seed=seed) for seed, shape in enumerate(shapes)]
    ours = weights.from_compat_v1(arrays, return_sequences=True)
    x = x_of(2, 6, 3)
    expected = []
    for start in range(0, len(arrays), 3):
        backward = start > 0
        zeros = np.zeros((1, 2, 5))
        output, _, _ = reference.forward(
            input=np.swapaxes(x[:, ::-1] if backward else x, 0, 1),
            input_h=zeros,
            input_c=zeros,
            params=compat_v1_params(*arrays[start : start + 3], gates),
            rnn_mode=mode,
        )
        output = np.swapaxes(output, 0, 1)
        expected.append(output[:, ::-1] if backward else output)
    np.testing.assert_allclose(ours(x), np.concatenate(expected, axis=-1), atol=1e-5)
    # And on to Keras' LSTM, whose bias is half as long.
    (stock,) = weights.to_keras(ours)
    np.testing.assert_allclose(stock(x), ours(x), atol=1e-6)


def test_wrong_compat_v1_weights():
    for shapes, message in (
        ([(3, 20)], "3 arrays, or 6"),
        ([(3, 20), (5, 21), (40,)], r"\[H, 4\*H\]"),
        ([(3, 20), (5, 20), (20,)], r"bias must be \[40\]"),
        ([(3, 20), (0, 20), (40,)], r"\[H, 4\*H\]"),
        ([(3, 15), (5, 20), (40,)], r"kernel must be \[any, 20\], got \[3, 15\]"),
        ([(3, 20), (5, 20), (2, 20)], r"weights\[2\] must be \[any\], got \[2, 20\]"),
        ([(60,), (5, 20), (40,)], r"weights\[0\] must be \[any, any\], got \[60\]"),
        ([(3, 20), (5, 20), (40,), (3, 15), (5, 15), (30,)], r"bias must be \[40\]"),
    ):
        with pytest.raises(ValueError, match=message):
            weights.from_compat_v1([np.zeros(shape) for shape in shapes])


# tf.contrib.cudnn_rnn.


def contrib_variables(case, inputs, scope):
    """Names and values under which a tf.contrib.cudnn_rnn layer saved these canonical weights."""
    G, D = case.G, case.D
    cell = {
        "lstm": "cudnn_compatible_lstm_cell",
        "gru": "cudnn_compatible_gru_cell",
    }.get(case.rnn_mode, "basic_rnn_cell")
    values = {}
    for p in range(case.L * D):
        layer, backward = divmod(p, D)
        if D == 2:
            direction = "bw" if backward else "fw"
            prefix = f"stack_bidirectional_rnn/cell_{layer}/bidirectional_rnn/{direction}/{cell}"
        else:
            prefix = f"rnn/multi_rnn_cell/cell_{layer}/{cell}"
        prefix = f"{scope}/{prefix}" if scope else prefix
        W = inputs.weights[2 * G * p : 2 * G * p + G]
        R = inputs.weights[2 * G * p + G : 2 * G * (p + 1)]
        bW = inputs.biases[2 * G * p : 2 * G * p + G]
        bR = inputs.biases[2 * G * p + G : 2 * G * (p + 1)]
        joined = [np.concatenate([w, r], axis=1) for w, r in zip(W, R, strict=True)]
        summed = [a + b for a, b in zip(bW, bR, strict=True)]
        if case.rnn_mode == "lstm":
            order = [0, 2, 1, 3]  # i, c, f, o
            values[f"{prefix}/kernel"] = np.concatenate([joined[g] for g in order]).T
            values[f"{prefix}/bias"] = np.concatenate([summed[g] for g in order])
        elif case.rnn_mode == "gru":
            values[f"{prefix}/gates/kernel"] = np.concatenate(joined[:2]).T
            values[f"{prefix}/gates/bias"] = np.concatenate(summed[:2])
            for name, matrix, bias in (("input", W[2], bW[2]), ("hidden", R[2], bR[2])):
                values[f"{prefix}/candidate/{name}_projection/kernel"] = matrix.T
                values[f"{prefix}/candidate/{name}_projection/bias"] = bias
        else:
            values[f"{prefix}/kernel"] = joined[0].T
            values[f"{prefix}/bias"] = summed[0]
    return values


def write_v1_checkpoint(values, path):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variables = [
            tf.compat.v1.get_variable(name, initializer=value, use_resource=False)
            for name, value in values.items()
        ]
        session.run(tf.compat.v1.variables_initializer(variables))
        return tf.compat.v1.train.Saver(variables).save(session, str(path))


@pytest.mark.parametrize(
    "mode,direction,input_mode",
    list(
        itertools.product(
            MODES, ["unidirectional", "bidirectional"], ["linear_input", "skip_input"]
        )
    ),
)
def test_contrib_checkpoints(mode, direction, input_mode, tmp_path):
    case = Case(mode, 2, direction, 5, 3, 4, 4, input_mode=input_mode, dtype="float64")
    inputs = case.make_inputs()
    values = contrib_variables(case, inputs, "model/cudnn_rnn")
    values |= {"model/dense/kernel": np.zeros((4, 2)), "global_step": np.int64(7)}
    path = write_v1_checkpoint(values, tmp_path / "model.ckpt")
    ours = weights.from_contrib_checkpoint(
        path,
        nonlinearity="relu" if mode == "rnn_relu" else "tanh",
        time_major=True,
        return_sequences=True,
    )
    assert (ours.rnn_mode, ours.num_layers, ours.direction) == (mode, 2, direction)
    assert ours.skips_input == (input_mode == "skip_input")
    zeros = np.zeros((2 * case.D, 3, 4))
    expected = reference.forward(
        input=inputs.input, input_h=zeros, input_c=zeros, params=inputs.params, **case.attributes()
    )[0]
    np.testing.assert_allclose(ours(inputs.input), expected, atol=1e-12)


def test_contrib_scopes_and_refusals(tmp_path):
    case = Case("lstm", 1, "unidirectional", 5, 3, 4, 5)
    first = contrib_variables(case, case.make_inputs(0), "a/cudnn_lstm")
    second = contrib_variables(case, case.make_inputs(1), "b/cudnn_lstm")
    path = write_v1_checkpoint({**first, **second}, tmp_path / "two")
    with pytest.raises(ValueError, match=r"\['a/cudnn_lstm', 'b/cudnn_lstm'\], got None"):
        weights.from_contrib_checkpoint(path)
    layer = weights.from_contrib_checkpoint(tf.train.load_checkpoint(path), scope="b/cudnn_lstm")
    np.testing.assert_array_equal(
        layer.recurrent_kernel_l0.numpy(), np.concatenate(case.make_inputs(1).weights[4:])
    )
    bare = contrib_variables(case, case.make_inputs(0), "")
    path = write_v1_checkpoint(bare, tmp_path / "bare")
    assert weights.from_contrib_checkpoint(path, scope="").units == 5
    peephole = {next(iter(bare)).replace("kernel", "w_f_diag"): np.zeros(5, np.float32)}
    path = write_v1_checkpoint({**bare, **peephole}, tmp_path / "peephole")
    with pytest.raises(ValueError, match="peepholes and projections have no counterpart"):
        weights.from_contrib_checkpoint(path)
    deep = contrib_variables(case.replace(L=2), case.replace(L=2).make_inputs(), "")
    gap = {name: value for name, value in deep.items() if "cell_0" not in name}
    path = write_v1_checkpoint(gap, tmp_path / "gap")
    with pytest.raises(ValueError, match="incomplete or mixed"):
        weights.from_contrib_checkpoint(path)


# The canonical arrays themselves.


def test_canonical_weights():
    layer = layers.CudnnLSTM(4, 2, num_proj=3)
    layer.build((None, None, 2))
    pieces = weights.get_canonical(layer)
    assert [piece.kernel.shape for piece in pieces] == [(16, 2), (16, 3)]
    assert pieces[0].projection_kernel.shape == (3, 4)
    other = weights.make_layer("lstm", pieces)
    for one, same in zip(other.get_weights(), layer.get_weights(), strict=True):
        np.testing.assert_array_equal(one, same)
    with pytest.raises(ValueError, match="has 2 pseudo-layers .* weights for 1"):
        weights.set_canonical(layer, pieces[:1])
    wrong = [pieces[0]._replace(bias=None), pieces[1]]
    with pytest.raises(ValueError, match=r"bias of pseudo-layer 0 must be \[2, 16\], got none"):
        weights.set_canonical(layer, wrong)
    with pytest.raises(ValueError, match="rnn_mode must be one of gru, lstm, rnn_relu, rnn_tanh"):
        weights.make_layer("blstm", pieces)
    with pytest.raises(ValueError, match=r"and 1 direction\(s\), got 0"):
        weights.make_layer("lstm", [])
    with pytest.raises(ValueError, match=r"and 2 direction\(s\), got 1"):
        weights.make_layer("lstm", pieces[:1], bidirectional=True)
    flat = [pieces[0]._replace(recurrent_kernel=np.zeros(48, np.float32))]
    with pytest.raises(ValueError, match=r"recurrent_kernel must be \[any, any\], got \[48\]"):
        weights.make_layer("lstm", flat)
    odd = [pieces[0]._replace(recurrent_kernel=np.zeros((7, 3), np.float32))]
    with pytest.raises(ValueError, match="must have 4 rows for each unit, got 7 rows"):
        weights.make_layer("lstm", odd)
