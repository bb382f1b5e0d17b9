"""The shape functions: what the ops' outputs are known to be, and what is refused, while a graph is
built. What a kernel refuses too stands in bad_input.py; nothing runs here.
"""

import numpy as np
import pytest
import tensorflow as tf

import run_ops
from tf_cudnn_rnn_ops import raw_ops

L, T, B, I, H = 2, 7, 3, 4, 5
LSTM_SIZE = 4 * (H * I + H * H + 2 * H) + 4 * (H * H + H * H + 2 * H)


def static_shapes(op, arguments, dtype=tf.float32, **attributes):
    """The shapes of op's outputs when its tensors are placeholders of the given shapes.

    arguments: name -> shape (a list, or None where even the rank is unknown), a NumPy array for a
    constant, or a tuple of shapes for a list of tensors.
    """

    def tensor(name, value):
        if isinstance(value, tuple):
            return [tensor(name, each) for each in value]
        if isinstance(value, np.ndarray):
            return tf.constant(value)
        integers = {"host_reserved": tf.int8, "sequence_lengths": tf.int32}
        integers |= dict.fromkeys(("num_layers", "num_units", "input_size"), tf.int32)
        return tf.compat.v1.placeholder(integers.get(name, dtype), value)

    with tf.Graph().as_default():
        inputs = {name: tensor(name, value) for name, value in arguments.items()}
        result = getattr(raw_ops, op)(**inputs, **attributes)
        if tf.is_tensor(result):
            return as_list(result)
        return {
            name: [as_list(each) for each in value] if isinstance(value, list) else as_list(value)
            for name, value in result._asdict().items()
        }


def as_list(tensor):
    return None if tensor.shape.rank is None else tensor.shape.as_list()


def refused(op, arguments, match, **attributes):
    with pytest.raises(ValueError, match=match):
        static_shapes(op, arguments, **attributes)


def forward_arguments(op="CudnnRNNV3", **changed):
    arguments = {
        "input": [T, B, I],
        "input_h": [L, B, H],
        "input_c": [L, B, H],
        "params": [LSTM_SIZE],
        "sequence_lengths": [B],
    }
    if not op.endswith("V3"):
        del arguments["sequence_lengths"]
    return arguments | changed


def backprop_arguments(op="CudnnRNNBackpropV3", **changed):
    arguments = forward_arguments(op)
    arguments |= {
        "output": [T, B, H],
        "output_h": [L, B, H],
        "output_c": [L, B, H],
        "output_backprop": [T, B, H],
        "output_h_backprop": [L, B, H],
        "output_c_backprop": [L, B, H],
        "reserve_space": [None],
        "host_reserved": [0],
    }
    if op == "CudnnRNNBackprop":
        del arguments["host_reserved"]
    return arguments | changed


FORWARD = ["CudnnRNN", "CudnnRNNV2", "CudnnRNNV3"]
BACKPROP = ["CudnnRNNBackprop", "CudnnRNNBackpropV2", "CudnnRNNBackpropV3"]


@pytest.mark.parametrize("op", FORWARD)
@pytest.mark.parametrize("is_training", [True, False])
def test_forward(op, is_training):
    shapes = static_shapes(op, forward_arguments(op), is_training=is_training)
    reserve = [None] if is_training else [0]
    expected = {
        "output": [T, B, H],
        "output_h": [L, B, H],
        "output_c": [L, B, H],
        "reserve_space": reserve,
    }
    if op != "CudnnRNN":
        expected["host_reserved"] = reserve
    assert shapes == expected


@pytest.mark.parametrize("op", FORWARD)
def test_forward_of_unknown_ranks(op):
    arguments = dict.fromkeys(forward_arguments(op))
    shapes = static_shapes(op, arguments)
    for name in ("output", "output_h", "output_c"):
        assert shapes[name] == [None, None, None]


def test_inputs_complete_each_other():
    # T, I from input, B from the lengths, L and H from input_c alone.
    shapes = static_shapes(
        "CudnnRNNV3",
        {
            "input": [T, None, I],
            "input_h": [None, None, None],
            "input_c": [4, None, H],
            "params": None,
            "sequence_lengths": [B],
        },
        direction="bidirectional",
    )
    assert shapes["output"] == [T, B, 2 * H]
    assert shapes["output_h"] == shapes["output_c"] == [4, B, H]


def test_batch_major():
    arguments = forward_arguments(input=[B, T, I], input_h=[B, L, H], input_c=[B, L, H])
    shapes = static_shapes("CudnnRNNV3", arguments, time_major=False)
    assert shapes["output"] == [B, T, H]
    assert shapes["output_h"] == shapes["output_c"] == [B, L, H]
    refused(
        "CudnnRNNV3",
        forward_arguments(input=[B, T, I]),
        r"input_h must be a tensor of shape \[B,L\*D,R\] = \[3,\?,\?\], got \[2,3,5\]",
        time_major=False,
    )


@pytest.mark.parametrize("rnn_mode", ["rnn_relu", "rnn_tanh", "gru"])
@pytest.mark.parametrize("input_c", [None, [], [0], [9], [1, 2, 3, 4]])
def test_input_c_of_other_modes_is_ignored(rnn_mode, input_c):
    arguments = forward_arguments(input_c=input_c, params=None)
    shapes = static_shapes("CudnnRNNV3", arguments, rnn_mode=rnn_mode)
    assert shapes["output"] == [T, B, H]
    # It is [0]; TensorFlow's own shape function says [], and recorded that in SavedModels.
    assert shapes["output_c"] is None
    for output_c in ([0], []):
        arguments = backprop_arguments(
            input_c=input_c, params=None, output_c=output_c, output_c_backprop=output_c
        )
        shapes = static_shapes("CudnnRNNBackpropV3", arguments, rnn_mode=rnn_mode)
        assert shapes["input_c_backprop"] == input_c


def test_projection():
    size = 4 * (H * I + H * 2 + 2 * H) + 2 * H + 4 * (H * 2 + H * 2 + 2 * H) + 2 * H
    arguments = forward_arguments(input_h=[L, B, None], params=[size])
    shapes = static_shapes("CudnnRNNV3", arguments, num_proj=2)
    assert shapes["output"] == [T, B, 2]
    assert shapes["output_h"] == [L, B, 2]
    assert shapes["output_c"] == [L, B, H]
    # As wide as the cell: no projection.
    shapes = static_shapes("CudnnRNNV3", forward_arguments(), num_proj=H)
    assert shapes["output"] == [T, B, H]


@pytest.mark.parametrize("op", BACKPROP)
def test_backprop(op):
    assert static_shapes(op, backprop_arguments(op)) == {
        "input_backprop": [T, B, I],
        "input_h_backprop": [L, B, H],
        "input_c_backprop": [L, B, H],
        "params_backprop": [LSTM_SIZE],
    }


@pytest.mark.parametrize("op", BACKPROP)
def test_backprop_of_unknown_ranks(op):
    shapes = static_shapes(op, dict.fromkeys(backprop_arguments(op)))
    assert shapes["input_backprop"] == [None, None, None]
    assert shapes["params_backprop"] == [None]


def test_backprop_knows_the_size_of_params():
    arguments = backprop_arguments(params=None)
    assert static_shapes("CudnnRNNBackpropV3", arguments)["params_backprop"] == [LSTM_SIZE]


def test_legal_sizes_of_zero():
    for T0, B0 in ((0, B), (T, 0), (0, 0)):
        arguments = forward_arguments(
            input=[T0, B0, I], input_h=[L, B0, H], input_c=[L, B0, H], sequence_lengths=[B0]
        )
        assert static_shapes("CudnnRNNV3", arguments)["output"] == [T0, B0, H]


@pytest.mark.parametrize("op", FORWARD + BACKPROP)
def test_every_rank_is_checked(op):
    arguments = (forward_arguments if op in FORWARD else backprop_arguments)(op)
    for name, shape in arguments.items():
        for rank in (0, 1, 2, 3, 4):
            if rank != len(shape):
                match = rf"{name} must be a tensor of rank {len(shape)} "
                refused(op, arguments | {name: [1] * rank}, match)


def test_heap_read_of_cve_2021_41221():
    # The shapes of the advisory, for which TensorFlow once read past its arrays.
    arguments = {
        "input": [2],
        "input_h": [1],
        "input_c": [3],
        "params": [2],
        "sequence_lengths": np.array([-1, 0, 1], np.int32),
    }
    for op in FORWARD + BACKPROP:
        shapes = arguments | dict.fromkeys(
            backprop_arguments(op).keys() - arguments.keys() if op in BACKPROP else (), [1]
        )
        if not op.endswith("V3"):
            del shapes["sequence_lengths"]
        refused(op, shapes, r"input must be a tensor of rank 3 \[T,B,I\], got \[2\]")


def test_lengths_that_are_constants():
    for bad, match in (
        ([0, T + 1, T], rf"sequence_lengths\[1\] must be in \[0, {T}\], got {T + 1}"),
        ([0, 1, -1], rf"sequence_lengths\[2\] must be in \[0, {T}\], got -1"),
        ([0, 1], r"sequence_lengths must be a tensor of shape \[B\] = \[3\], got \[2\]"),
    ):
        refused("CudnnRNNV3", forward_arguments(sequence_lengths=np.array(bad, np.int32)), match)
    good = forward_arguments(sequence_lengths=np.array([T, 0, 1], np.int32))
    assert static_shapes("CudnnRNNV3", good)["output"] == [T, B, H]


# What stock shape functions let through (TensorFlow 2.21).
@pytest.mark.parametrize(
    ("changed", "attributes", "match"),
    [
        ({"sequence_lengths": [B + 1]}, {}, "sequence_lengths must be"),
        ({"params": [1]}, {}, rf"params must be .* = \[{LSTM_SIZE}\], got \[1\]"),
        ({"input_h": [L, B + 1, H]}, {}, "input_h must be"),
        ({}, {"num_proj": 9}, "num_proj must be at most num_units, 5, got 9"),
        ({}, {"num_proj": -1}, "num_proj must be"),
        ({}, {"rnn_mode": "gru", "num_proj": 2}, "num_proj must be 0 with rnn_mode gru, got 2"),
        ({}, {"dropout": 1.5}, r"dropout must be in \[0, 1\), got 1.5"),
        ({}, {"dropout": float("nan")}, r"dropout must be in \[0, 1\), got nan"),
        ({}, {"input_mode": "skip_input"}, "the last dimension of input must be num_units, 5"),
        ({"input_h": [3, B, H], "input_c": None}, {"direction": "bidirectional"}, "input_h must"),
        ({"input_h": None, "input_c": [3, B, H]}, {"direction": "bidirectional"}, "input_c must"),
        ({"input_h": [0, B, H], "input_c": [0, B, H]}, {}, "input_h must be"),
        ({"input": [T, B, 0]}, {}, "the last dimension of input must be"),
        ({"input_h": [L, B, 0], "input_c": [L, B, 0]}, {}, "the last dimension of input_c must"),
        ({"input_h": [L, B, H]}, {"num_proj": 2}, r"input_h must be .* \[2,3,2\], got \[2,3,5\]"),
        ({"input_c": [L, B, H + 1]}, {}, r"input_c must be .* \[2,3,5\], got \[2,3,6\]"),
        ({"input": [T, None, 1 << 40]}, {}, "the last dimension of input must be"),
    ],
)
def test_stock_accepts(changed, attributes, match):
    refused("CudnnRNNV3", forward_arguments(**changed), match, **attributes)


@pytest.mark.parametrize("version", ["", "V2"])
@pytest.mark.parametrize("op", ["CudnnRNNCanonicalToParams", "CudnnRNNParamsToCanonical"])
def test_a_list_of_the_wrong_length_is_refused(op, version):
    if op == "CudnnRNNCanonicalToParams":
        arguments, attributes = conversion_arguments() | {"weights": ([H, I],) * 15}, {}
        if not version:
            arguments["biases"] = ([H],) * 15
    elif version:
        attributes = {"num_params_weights": 15, "num_params_biases": 16}
    else:
        attributes = {"num_params": 15}
    if op == "CudnnRNNParamsToCanonical":
        arguments = sizes() | {"params": [LSTM_SIZE]}
    match = r"num_params must be a positive multiple of 8, got 15"
    if version:
        match = r"num_params_weights must be 16 with num_layers = 2 and no projection, got 15"
    refused(op + version, arguments, match, **attributes)


def sizes(num_layers=L, num_units=H, input_size=I):
    """Constants, or placeholders for None."""
    given = {"num_layers": num_layers, "num_units": num_units, "input_size": input_size}
    return {key: [] if value is None else np.int32(value)[...] for key, value in given.items()}


def conversion_arguments(**sizes_given):
    """Of an LSTM of two layers."""
    weights = ([H, I],) * 4 + ([H, H],) * 12
    return sizes(**sizes_given) | {"weights": weights, "biases": ([H],) * 16}


@pytest.mark.parametrize("S", [tf.int32, tf.int64])
def test_params_size(S):
    for given in ({}, {"num_layers": None}, {"num_units": None, "input_size": None}):
        shape = static_shapes("CudnnRNNParamsSize", sizes(**given), T=tf.half, S=S)
        assert shape == [1]


def test_params_size_refuses():
    match = r"params_size must be at most 2147483647 when S is int32, got 12000480000"
    too_many = sizes(num_units=30000, input_size=10000)
    refused("CudnnRNNParamsSize", too_many, match, T=tf.half, S=tf.int32)
    assert static_shapes("CudnnRNNParamsSize", too_many, T=tf.half, S=tf.int64) == [1]
    most = 2**31 - 1
    too_many = sizes(most, most, most)
    match = "the size of params is more than fits in int64: num_layers 2147483647, "
    refused("CudnnRNNParamsSize", too_many, match, T=tf.half, S=tf.int64)


@pytest.mark.parametrize("size", ["num_layers", "num_units", "input_size"])
def test_sizes_are_positive_scalars(size):
    for op, more in (
        ("CudnnRNNParamsSize", {"T": tf.float32, "S": tf.int32}),
        ("CudnnRNNParamsToCanonical", {"num_params": 16}),
        ("CudnnRNNParamsToCanonicalV2", {"num_params_weights": 16, "num_params_biases": 16}),
        ("CudnnRNNCanonicalToParams", {}),
        ("CudnnRNNCanonicalToParamsV2", {}),
    ):
        arguments = conversion_arguments() if "CanonicalTo" in op else sizes()
        if "ToCanonical" in op:
            arguments["params"] = None
        for bad in (0, -1):
            match = rf"{size} must be in \[1, 2147483647\], got {bad}"
            refused(op, arguments | {size: np.int32(bad)[...]}, match, **more)
        refused(op, arguments | {size: [1]}, rf"{size} must be a scalar, got \[1\]", **more)


@pytest.mark.parametrize("version", ["", "V2"])
def test_params_to_canonical(version):
    op = "CudnnRNNParamsToCanonical" + version
    counts = {"num_params": 16}
    if version:
        counts = {"num_params_weights": 16, "num_params_biases": 16}
    expected = {"weights": [[H, I]] * 4 + [[H, H]] * 12, "biases": [[H]] * 16}
    assert static_shapes(op, sizes() | {"params": None}, **counts) == expected
    # The number of layers follows from the lists.
    arguments = sizes(num_layers=None) | {"params": [LSTM_SIZE]}
    assert static_shapes(op, arguments, **counts) == expected
    # Of unknown sizes only the ranks remain.
    arguments = sizes(None, None, None) | {"params": None}
    assert static_shapes(op, arguments, **counts) == {
        "weights": [[None, None]] * 16,
        "biases": [[None]] * 16,
    }
    wrong = sizes() | {"params": [LSTM_SIZE + 1]}
    refused(op, wrong, rf"params must be .*\[{LSTM_SIZE}\], got \[{LSTM_SIZE + 1}\]", **counts)
    wrong = sizes(num_layers=3) | {"params": None}
    refused(op, wrong, r"num_params(_biases)? must be 24 with num_layers = 3, got 16", **counts)
    wrong = sizes(num_layers=None) | {"params": None}
    refused(
        op,
        wrong,
        r"num_params(_biases)? must be a positive multiple of 6, got 16",
        rnn_mode="gru",
        **counts,
    )


@pytest.mark.parametrize(
    ("num_layers", "direction", "rnn_mode", "num_proj", "first", "later"),
    [
        (1, "unidirectional", "gru", 0, [H, I], None),
        (3, "unidirectional", "rnn_relu", 0, [H, I], [H, H]),
        (2, "bidirectional", "rnn_tanh", 0, [H, I], [H, 2 * H]),
        (2, "bidirectional", "lstm", 2, [H, I], [H, 4]),
        (2, "bidirectional", "lstm", H, [H, I], [H, 2 * H]),
    ],
)
def test_canonical_shapes(num_layers, direction, rnn_mode, num_proj, first, later):
    gates = {"lstm": 4, "gru": 3}.get(rnn_mode, 1)
    directions = 2 if direction == "bidirectional" else 1
    width = num_proj or H
    projection = [[width, H]] if 0 < num_proj < H else []
    weights = []
    for layer in range(num_layers):
        for _ in range(directions):
            weights += [first if layer == 0 else later] * gates + [[H, width]] * gates + projection
    biases = [[H]] * (num_layers * directions * 2 * gates)
    size = sum(np.prod(shape) for shape in weights) + len(biases) * H
    attributes = {"direction": direction, "rnn_mode": rnn_mode, "num_proj": num_proj}
    all_sizes = sizes(num_layers=num_layers)
    lists = static_shapes(
        "CudnnRNNParamsToCanonicalV2",
        all_sizes | {"params": [size]},
        num_params_weights=len(weights),
        num_params_biases=len(biases),
        **attributes,
    )
    assert lists == {"weights": weights, "biases": biases}
    arguments = all_sizes | {"weights": tuple(weights), "biases": tuple(biases)}
    assert static_shapes("CudnnRNNCanonicalToParamsV2", arguments, **attributes) == [size]


@pytest.mark.parametrize("input_mode", ["skip_input", "auto_select"])
def test_skip_input(input_mode):
    size = 4 * (H * H + 2 * H)
    all_sizes = sizes(num_layers=1, input_size=H)
    lists = static_shapes(
        "CudnnRNNParamsToCanonical",
        all_sizes | {"params": [size]},
        num_params=8,
        input_mode=input_mode,
    )
    assert lists["weights"] == [[H, 0]] * 4 + [[H, H]] * 4
    arguments = all_sizes | {"weights": ([H, 0],) * 4 + ([H, H],) * 4, "biases": ([H],) * 8}
    shape = static_shapes("CudnnRNNCanonicalToParams", arguments, input_mode=input_mode)
    assert shape == [size]
    arguments = forward_arguments(
        input=[T, B, H], input_h=[1, B, H], input_c=[1, B, H], params=[size]
    )
    assert static_shapes("CudnnRNNV3", arguments, input_mode=input_mode)["output"] == [T, B, H]
    # Alone, skip_input makes the input as wide as the state.
    arguments |= {"input": None, "params": None}
    shapes = static_shapes("CudnnRNNV3", arguments, input_mode=input_mode)
    assert shapes["output"] == [None, B, H]


def test_auto_select_without_an_equal_width():
    # Neither another width nor a projection can be skipped to.
    lists = static_shapes(
        "CudnnRNNParamsToCanonical",
        sizes(num_layers=1) | {"params": None},
        num_params=8,
        input_mode="auto_select",
    )
    assert lists["weights"][0] == [H, I]
    for input_size in (H, 2):
        lists = static_shapes(
            "CudnnRNNParamsToCanonicalV2",
            sizes(num_layers=1, input_size=input_size) | {"params": None},
            num_params_weights=9,
            num_params_biases=8,
            num_proj=2,
            input_mode="auto_select",
        )
        assert lists["weights"][0] == [H, input_size]
    refused(
        "CudnnRNNParamsSize",
        sizes(),
        "num_proj must be 0 or num_units, 5, with skip_input, got 2",
        num_proj=2,
        input_mode="skip_input",
        T=tf.float32,
        S=tf.int32,
    )
    refused(
        "CudnnRNNParamsSize",
        sizes(),
        "input_size must be num_units, 5, with skip_input, got 4",
        input_mode="skip_input",
        T=tf.float32,
        S=tf.int32,
    )


def test_canonical_to_params():
    for op in ("CudnnRNNCanonicalToParams", "CudnnRNNCanonicalToParamsV2"):
        assert static_shapes(op, conversion_arguments()) == [LSTM_SIZE]
        # The shapes of the weights tell the sizes too.
        unknown = {"num_layers": None, "num_units": None, "input_size": None}
        assert static_shapes(op, conversion_arguments(**unknown)) == [LSTM_SIZE]
        arguments = sizes(**unknown) | {"weights": (None,) * 16, "biases": (None,) * 16}
        assert static_shapes(op, arguments) == [None]
        # With constant sizes nothing else is needed.
        assert static_shapes(op, arguments | sizes()) == [LSTM_SIZE]

        arguments = conversion_arguments()
        weights, biases = arguments["weights"], arguments["biases"]
        for i, bad in ((3, [H, I + 1]), (4, [H * H]), (9, [H, H, 1]), (15, [H + 1, H])):
            wrong = (*weights[:i], bad, *weights[i + 1 :])
            refused(op, arguments | {"weights": wrong}, rf"weights\[{i}\] must be a tensor of ")
        for i, bad in ((1, [H + 1]), (15, []), (7, [H, 1])):
            wrong = (*biases[:i], bad, *biases[i + 1 :])
            refused(op, arguments | {"biases": wrong}, rf"biases\[{i}\] must be a tensor of ")


def test_the_lists_tell_whether_there_is_a_projection():
    # num_proj = num_units is none, and num_units may be unknown.
    for per_layer, projection in ((9, [[2, None]]), (8, [])):
        lists = static_shapes(
            "CudnnRNNParamsToCanonicalV2",
            sizes(num_units=None, num_layers=1) | {"params": None},
            num_params_weights=per_layer,
            num_params_biases=8,
            num_proj=2,
        )
        units = None if projection else 2
        assert lists["weights"] == [[units, I]] * 4 + [[units, 2]] * 4 + projection


def test_in_a_function_the_shapes_are_known():
    @tf.function
    def size_and_output(x, h, weights, biases):
        params = raw_ops.CudnnRNNCanonicalToParamsV2(
            num_layers=1,
            num_units=H,
            input_size=I,
            weights=weights,
            biases=biases,
            rnn_mode="rnn_tanh",
        )
        output = raw_ops.CudnnRNNV3(
            input=x,
            input_h=h,
            input_c=0.0,
            params=params,
            sequence_lengths=tf.fill([tf.shape(x)[1]], tf.shape(x)[0]),
            rnn_mode="rnn_tanh",
        ).output
        return params, output

    params, output = size_and_output.get_concrete_function(
        tf.TensorSpec([None, None, I]),
        tf.TensorSpec([1, None, H]),
        [tf.TensorSpec([H, I]), tf.TensorSpec([H, H])],
        [tf.TensorSpec([H])] * 2,
    ).structured_outputs
    assert params.shape == [H * I + H * H + 2 * H]
    assert output.shape.as_list() == [None, None, H]


# Builds a graph of every op in many configurations, with TensorFlow alone or with the package, and
# imports one that the other has built. SavedModels hold the shapes too and are read this way.
GRAPHS = """
import itertools, sys
import tensorflow as tf
if sys.argv[1] == "ours":
    import tf_cudnn_rnn_ops

ops = tf.raw_ops
T, B, I, H = 7, 3, 4, 5

def build(mode, both, time_major, num_proj, is_training):
    D = 2 if both else 1
    L = 2
    G = {"lstm": 4, "gru": 3, "rnn_tanh": 1}[mode]
    R = num_proj or H
    direction = "bidirectional" if both else "unidirectional"
    order = (lambda t, b, w: [t, b, w]) if time_major else (lambda t, b, w: [b, t, w])
    attrs = dict(rnn_mode=mode, direction=direction)
    sizes = dict(num_layers=L, num_units=H, input_size=I)
    num_biases = L * D * 2 * G
    num_weights = num_biases + (L * D if num_proj else 0)
    counts = dict(num_params_weights=num_weights, num_params_biases=num_biases)
    ops.CudnnRNNParamsSize(T=tf.half, S=tf.int64, num_proj=num_proj, **sizes, **attrs)
    flat = tf.compat.v1.placeholder(tf.float32, [None])
    lists = ops.CudnnRNNParamsToCanonicalV2(
        params=flat, num_proj=num_proj, **sizes, **counts, **attrs)
    params = ops.CudnnRNNCanonicalToParamsV2(
        weights=lists.weights, biases=lists.biases, num_proj=num_proj, **sizes, **attrs)
    if not num_proj:
        lists = ops.CudnnRNNParamsToCanonical(
            params=flat, num_params=num_biases, **sizes, **attrs)
        ops.CudnnRNNCanonicalToParams(weights=lists.weights, biases=lists.biases, **sizes, **attrs)
    inputs = dict(
        input=tf.zeros(order(T, B, I)),
        input_h=tf.zeros(order(L * D, B, R)),
        input_c=tf.zeros(order(L * D, B, H)) if mode == "lstm" else 0.0,
        params=params,
    )
    v3 = dict(num_proj=num_proj, time_major=time_major)
    lengths = dict(sequence_lengths=tf.fill([B], T))
    for version in ("", "V2", "V3"):
        more = {}
        if version == "V3":
            more = v3 | lengths
        elif num_proj or not time_major:
            continue
        forward = getattr(ops, "CudnnRNN" + version)(
            is_training=is_training, **inputs, **attrs, **more)
        results = forward._asdict()
        backprops = {
            name + "_backprop": tf.zeros_like(results[name])
            for name in ("output", "output_h", "output_c")
        }
        getattr(ops, "CudnnRNNBackprop" + version)(
            **inputs, **results, **backprops, **attrs, **more)

with tf.Graph().as_default() as graph:
    for mode, both, time_major, num_proj, is_training in itertools.product(
        ("lstm", "gru", "rnn_tanh"), (False, True), (True, False), (0, 2), (True, False)
    ):
        if mode == "lstm" or not num_proj:
            build(mode, both, time_major, num_proj, is_training)
with open(sys.argv[2], "wb") as file:
    file.write(graph.as_graph_def(add_shapes=True).SerializeToString())
print("built", len(graph.get_operations()))
if len(sys.argv) > 3:
    with open(sys.argv[3], "rb") as file:
        other = tf.compat.v1.GraphDef.FromString(file.read())
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(other)
    print("imported", len(graph.get_operations()))
"""


@pytest.mark.slow
def test_graphs_of_stock_tensorflow_and_ours_are_exchangeable(tmp_path):
    ours, stock = tmp_path / "ours", tmp_path / "stock"
    run_ops.run_python(GRAPHS, "ours", ours)
    output = run_ops.run_python(GRAPHS, "stock", stock, ours)
    assert "imported" in output
    output = run_ops.run_python(GRAPHS, "ours", ours, stock)
    assert "imported" in output
