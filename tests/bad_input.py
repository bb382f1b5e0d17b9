"""The table of what the ops must refuse, and the worker that tries it.

As a program, reads the names of trials from standard input, a JSON list, and runs each on the CPU;
test_bad_input.py starts it and looks at what it prints, so that a crash loses one trial and not the
test run. Names are "op | what is wrong".
"""

import dataclasses
import functools
import json
import pickle
import sys
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from tf_cudnn_rnn_ops import raw_ops

T, B, I, H, L = 4, 3, 5, 6, 2
GATES = {"rnn_relu": 1, "rnn_tanh": 1, "gru": 3, "lstm": 4}

FORWARD = ("CudnnRNN", "CudnnRNNV2", "CudnnRNNV3")
BACKPROP = ("CudnnRNNBackprop", "CudnnRNNBackpropV2", "CudnnRNNBackpropV3")
V3 = ("CudnnRNNV3", "CudnnRNNBackpropV3")
COMPUTE = FORWARD + BACKPROP
SIZE = ("CudnnRNNParamsSize",)
TO_CANONICAL = ("CudnnRNNParamsToCanonical", "CudnnRNNParamsToCanonicalV2")
TO_PARAMS = ("CudnnRNNCanonicalToParams", "CudnnRNNCanonicalToParamsV2")
PARAMS = SIZE + TO_CANONICAL + TO_PARAMS
PROJECTING = (*V3, *SIZE, "CudnnRNNParamsToCanonicalV2", "CudnnRNNCanonicalToParamsV2")
GROUPS = {"forward": FORWARD, "backprop": BACKPROP, "params": PARAMS}

# How a trial is run: with kernels alone, with a graph that knows no shape, and while a graph is
# built that knows all shapes and the values of integers.
MODES = ("eager", "unknown shapes", "known shapes")


# ---- Arguments that are right ----------------------------------------------------------------


def canonical_shapes(config):
    """The shapes of weights and of biases."""
    gates = GATES[config["rnn_mode"]]
    directions = 2 if config["direction"] == "bidirectional" else 1
    width = config["num_proj"] or H
    weights, biases = [], []
    for layer in range(L):
        for _ in range(directions):
            columns = directions * width if layer else config["input_size"]
            if layer == 0 and config["input_mode"] == "skip_input":
                columns = 0
            weights += [[H, columns]] * gates + [[H, width]] * gates
            weights += [[width, H]] if 0 < width < H else []
            biases += [[H]] * (2 * gates)
    return weights, biases


def attributes(op, config):
    """Those of `config` that the op has."""
    names = {attr.name for attr in op_def_registry.get(op).attr}
    return {key: value for key, value in config.items() if key in names}


def valid(op, **changes):
    """Arguments that the op accepts; `changes` are attributes, and input_size."""
    config = {
        "rnn_mode": "lstm",
        "direction": "unidirectional",
        "input_mode": "linear_input",
        "num_proj": 0,
        "time_major": True,
        "input_size": I,
        "dtype": "float32",
    } | changes
    weights, biases = canonical_shapes(config)
    size = sum(int(np.prod(shape)) for shape in weights + biases)
    dtype = config["dtype"]
    if op in PARAMS:
        arguments = {name: np.int32(value) for name, value in (("num_layers", L), ("num_units", H))}
        arguments["input_size"] = np.int32(config["input_size"])
        if op in SIZE:
            arguments |= {"T": tf.as_dtype(dtype), "S": config.get("S", tf.int32)}
        elif op in TO_PARAMS:
            arguments["weights"] = [np.ones(shape, dtype) for shape in weights]
            arguments["biases"] = [np.ones(shape, dtype) for shape in biases]
        else:
            arguments["params"] = np.ones(size, dtype)
            counts = {"num_params_weights": len(weights), "num_params_biases": len(biases)}
            arguments |= counts if op.endswith("V2") else {"num_params": len(biases)}
        return arguments | attributes(op, config)

    arguments = forward_arguments(config, size)
    if op not in V3:
        del arguments["sequence_lengths"]
    if op in FORWARD:
        return arguments | attributes(op, config)
    forward = op.replace("Backprop", "")
    result = getattr(raw_ops, forward)(**arguments, **attributes(forward, config))
    results = {name: value.numpy() for name, value in result._asdict().items()}
    for name in ("output", "output_h", "output_c"):
        results[f"{name}_backprop"] = np.ones_like(results[name])
    return arguments | results | attributes(op, config)


def forward_arguments(config, params_size):
    states = L * (2 if config["direction"] == "bidirectional" else 1)
    generator = np.random.default_rng(0)

    def tensor(first, batch, last):
        shape = (first, batch, last) if config["time_major"] else (batch, first, last)
        return generator.uniform(-1, 1, shape).astype(config["dtype"])

    return {
        "input": tensor(T, B, config["input_size"]),
        "input_h": tensor(states, B, config["num_proj"] or H),
        "input_c": tensor(states, B, H) if config["rnn_mode"] == "lstm" else np.float32(0),
        "params": generator.uniform(-1, 1, params_size).astype(config["dtype"]),
        "sequence_lengths": np.array([2, T, 0], np.int32),
    }


# ---- Arguments that are wrong ----------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Row:
    """Something that is wrong with the arguments of `ops`.

    change: takes valid arguments and returns what is to replace some of them.
    argument, want, got: regular expressions, parts of "ARGUMENT must be WANT, got GOT".
    config: changes of the valid arguments.
    known: whether it can be told from shapes and constants, so that no such graph can be built.
    fuzz: whether an argument was replaced blindly, so that it need not be the one at fault.
    """

    what: str
    ops: tuple
    change: Callable
    argument: str
    want: str
    got: str
    config: dict = dataclasses.field(default_factory=dict)
    known: bool = True
    fuzz: bool = False


def replaced(name, value):
    return lambda arguments: {name: value}


def with_shape(name, *shape):
    """`name` with another shape."""
    return lambda arguments: {name: np.ones(shape, arguments[name].dtype)}


def shape_row(name, ops, shape, want, config=None, argument=None, got=None):
    return Row(
        what=f"{name} {list(shape)}" + (f" {config}" if config else ""),
        ops=ops,
        change=with_shape(name, *shape),
        argument=argument or name,
        want=want,
        got=shape_text(*shape) if got is None else got,
        config=config or {},
    )


def shape_text(*shape):
    return rf"\[{','.join(map(str, shape))}\]"


def rank_rows():
    """Every tensor with every other rank than its own."""
    ranks = {
        "input": 3,
        "input_h": 3,
        "input_c": 3,
        "params": 1,
        "sequence_lengths": 1,
        "output": 3,
        "output_h": 3,
        "output_c": 3,
        "output_backprop": 3,
        "output_h_backprop": 3,
        "output_c_backprop": 3,
        "reserve_space": 1,
        "host_reserved": 1,
    }
    for name, rank in ranks.items():
        ops = tuple(op for op in COMPUTE if has_input(op, name))
        for other in {0, 1, 2, 3, 4} - {rank}:
            yield shape_row(name, ops, (1,) * other, "")
    for other in (0, 2, 3):
        yield shape_row("params", TO_CANONICAL, (1,) * other, "")
    for name in ("num_layers", "num_units", "input_size"):
        for shape in ((1,), (0,), (1, 1)):
            yield shape_row(name, PARAMS, shape, "a scalar")
    for i, shape in ((0, (H * I,)), (0, ()), (5, (H, H, 1)), (0, (H, I + 1)), (9, (H + 1, H))):
        yield entry_row("weights", i, shape)
    for i, shape in ((0, ()), (0, (H, 1)), (3, (H + 1,)), (15, (0,))):
        yield entry_row("biases", i, shape)


def entry_row(name, i, shape):
    def change(arguments):
        entries = list(arguments[name])
        entries[i] = np.ones(shape, entries[i].dtype)
        return {name: entries}

    # Where sizes are not looked at first, weights[0] tells what weights[1] must be.
    return Row(
        f"{name}[{i}] {list(shape)}",
        TO_PARAMS,
        change,
        rf"{name}\[\d+\]",
        r"a tensor of (shape|rank)",
        r"\[[\d,]*\]",
    )


def has_input(op, name):
    return name in {each.name for each in op_def_registry.get(op).input_arg}


def state_rows():
    """Dimensions of input, states and params that do not fit together."""
    gru, both, batch_major, projection = (
        {"rnn_mode": "gru"},
        {"direction": "bidirectional"},
        {"time_major": False},
        {"num_proj": 2},
    )
    right = shape_text(L, B, H)
    # Another batch size, and another number of units, is the fault of those that come after.
    want = shape_text(L, B + 1, H)
    yield shape_row("input", COMPUTE, (T, B + 1, I), want, argument="input_h", got=right)
    want = shape_text(L, B, H + 1)
    yield shape_row("input_h", COMPUTE, (L, B, H + 1), want, argument="input_c", got=right)
    size = shape_text(r"\d+")
    yield shape_row("input_h", COMPUTE, (L, B, H + 1), size, gru, "params", size)
    yield shape_row("input_h", COMPUTE, (L, B + 1, H), right)
    yield shape_row("input_c", COMPUTE, (L, B, H + 1), right)
    yield shape_row("input_c", COMPUTE, (L + 1, B, H), right)
    yield shape_row("input_c", COMPUTE, (L, B - 1, H), right)
    yield shape_row("input_h", COMPUTE, (3, B, H), "multiple of 2", both)
    yield shape_row("input_h", COMPUTE, (0, B, H), "multiple of 2", both)
    for config in ({}, gru):
        yield shape_row("input_h", COMPUTE, (0, B, H), "multiple of 1", config)
        argument = "(input|the last dimension of input)"
        yield shape_row("input", COMPUTE, (T, B, 0), "", config, argument, "0")
    yield Row(
        "num_units 0",
        COMPUTE,
        lambda arguments: {
            "input_h": np.ones((L, B, 0), np.float32),
            "input_c": np.ones((L, B, 0), np.float32),
        },
        "input_[hc]",
        "",
        "0",
    )
    # The order of time-major states where batch-major ones are due.
    yield shape_row("input_h", V3, (L, B, H), shape_text(B, B, H), batch_major)
    yield shape_row("input_c", V3, (L, B, H), shape_text(B, L, H), batch_major)
    yield shape_row("input_h", V3, (L, B, H), shape_text(L, B, 2), projection)
    yield shape_row("input_c", V3, (L, B, 1), "at most num_units", projection, "num_proj", "2")
    size = params_size()
    for other in (0, 1, size - 1, size + 1):
        yield shape_row("params", COMPUTE + TO_CANONICAL, (other,), shape_text(size))


def params_size():
    weights, biases = canonical_shapes(
        {
            "rnn_mode": "lstm",
            "direction": "unidirectional",
            "input_mode": "linear_input",
            "num_proj": 0,
            "input_size": I,
        }
    )
    return sum(int(np.prod(shape)) for shape in weights + biases)


def length_rows():
    for count in (0, B - 1, B + 1):
        yield shape_row("sequence_lengths", V3, (count,), shape_text(B))
    for position in range(B):
        for value in (-1, T + 1, -(2**31), 2**31 - 1):
            lengths = np.full(B, T, np.int32)
            lengths[position] = value
            yield Row(
                f"sequence_lengths[{position}] {value}",
                V3,
                replaced("sequence_lengths", lengths),
                rf"sequence_lengths\[{position}\]",
                rf"in \[0, {T}\]",
                str(value),
            )


def attribute_rows():
    for value in (-0.1, 1.0, 1.5, float("nan"), float("inf"), float("-inf")):
        yield Row(
            f"dropout {value}",
            COMPUTE + PARAMS,
            replaced("dropout", value),
            "dropout",
            r"in \[0, 1\)",
            f"{value:g}",
        )
    for value in (-1, -(2**63)):
        yield Row(
            f"num_proj {value}", PROJECTING, replaced("num_proj", value), "num_proj", "", str(value)
        )
    for value in (H + 1, 2**31, 2**63 - 1):
        want = rf"at most num_units.*{H}" if value == H + 1 else ""
        change = replaced("num_proj", value)
        yield Row(f"num_proj {value}", PROJECTING, change, "num_proj", want, str(value))
    for mode in ("rnn_relu", "rnn_tanh", "gru"):
        yield Row(
            f"num_proj of {mode}",
            PROJECTING,
            replaced("num_proj", 2),
            "num_proj",
            f"0 with rnn_mode {mode}",
            "2",
            {"rnn_mode": mode},
        )
    skip = replaced("input_mode", "skip_input")
    width = "(input|the last dimension of input|input_size)"
    ops = COMPUTE + SIZE + TO_CANONICAL
    yield Row("skip_input", ops, skip, width, f"num_units, {H}", str(I))
    # While sizes are not looked at, the shapes of weights are what does not fit.
    width = r"(input_size|weights\[0\])"
    yield Row("skip_input", TO_PARAMS, skip, width, f"num_units, {H}", str(I))
    yield Row(
        "skip_input with a projection",
        PROJECTING,
        skip,
        "num_proj",
        f"0 or num_units, {H}",
        "2",
        {"num_proj": 2, "input_size": H},
    )


def size_rows():
    for name in ("num_layers", "num_units", "input_size"):
        for value in (0, -1, -(2**31)):
            change = replaced(name, np.int32(value))
            yield Row(f"{name} {value}", PARAMS, change, name, "", str(value))
    most = np.int32(2**31 - 1)
    for name in ("num_layers", "num_units", "input_size"):
        yield Row(
            f"{name} too large for int32",
            SIZE,
            replaced(name, most),
            "(params_size|num_layers|the size of params)",
            "",
            r"\d+",
        )
    for S in (tf.int32, tf.int64):
        yield Row(
            f"more parameters than {S.name} can count",
            SIZE,
            lambda arguments, S=S: (
                {"num_units": most, "input_size": most, "num_layers": most} | {"S": S}
            ),
            "(params_size|num_layers|the size of params)",
            "",
            r"\d+",
        )
    for name in ("num_layers", "num_units", "input_size"):
        yield Row(
            f"{name} beyond the lists",
            TO_CANONICAL + TO_PARAMS,
            replaced(name, most),
            r"(num_\w+|params|weights\[\d+\]|biases\[\d+\]|the size of params)",
            "",
            r"\S",
        )


def list_rows():
    for op, names in (
        ("CudnnRNNParamsToCanonical", ("num_params",)),
        ("CudnnRNNParamsToCanonicalV2", ("num_params_weights", "num_params_biases")),
    ):
        for name in names:
            for count in (1, 15, 17, 32):
                change = replaced(name, count)
                # Without num_layers, 32 biases are those of four layers.
                argument = "num_params(_weights|_biases)?" if count == 32 else name
                yield Row(f"{name} {count}", (op,), change, argument, r"\d+", str(count))
    # A projection has its own entries.
    yield Row(
        "num_params_weights with a projection",
        ("CudnnRNNParamsToCanonicalV2",),
        replaced("num_params_weights", 16),
        "num_params_weights",
        "18",
        "16",
        {"num_proj": 2},
    )
    for name in ("weights", "biases"):
        yield Row(
            f"one of {name} missing",
            ("CudnnRNNCanonicalToParamsV2",),
            lambda arguments, name=name: {name: arguments[name][:-1]},
            f"num_params_{name}",
            "(16|multiple of 8)",
            "15",
        )
    yield Row(
        "one of both lists missing",
        ("CudnnRNNCanonicalToParams",),
        lambda arguments: {name: arguments[name][:-1] for name in ("weights", "biases")},
        "num_params",
        "(16|multiple of 8)",
        "15",
    )


def backprop_rows():
    for name in ("output", "output_backprop"):
        for shape in ((T + 1, B, H), (T, B - 1, H), (T, B, H + 1), (T, B, 2 * H)):
            yield shape_row(name, BACKPROP, shape, shape_text(T, B, H))
        # Time-major where batch-major is due; the width without the second direction.
        yield shape_row(name, V3[1:], (T, B, H), shape_text(B, T, H), {"time_major": False})
        both = {"direction": "bidirectional"}
        yield shape_row(name, BACKPROP, (T, B, H), shape_text(T, B, 2 * H), both)
        yield shape_row(name, V3[1:], (T, B, H), shape_text(T, B, 2), {"num_proj": 2})
    for name in ("output_h", "output_c", "output_h_backprop", "output_c_backprop"):
        for shape in ((L + 1, B, H), (L, B - 1, H), (L, B, H + 1), (B, L, H)):
            yield shape_row(name, BACKPROP, shape, shape_text(L, B, H))
    yield from reserve_rows()


def reserve_rows():
    def row(what, change, want="what the forward op made", got="", ops=BACKPROP, **config):
        return Row(what, ops, change, "reserve_space", want, got, config, known=False)

    def scaled(add):
        return lambda arguments: {
            "reserve_space": np.resize(
                arguments["reserve_space"], arguments["reserve_space"].size + add
            )
        }

    yield row("reserve_space empty", with_shape("reserve_space", 0), got=r"\[0\]")
    yield row("reserve_space of one element", with_shape("reserve_space", 1), got=r"\[1\]")
    yield row("reserve_space too short by one", scaled(-1), got=r"\[\d+\]")
    yield row("reserve_space too long by one", scaled(1), got=r"\[\d+\]")

    def zeros(arguments):
        return {"reserve_space": np.zeros_like(arguments["reserve_space"])}

    yield row("reserve_space of zeros", zeros)

    def of_another(**changes):
        """The reserve of a call that differs in `changes`, of a size that fits."""

        def change(arguments):
            op = "CudnnRNNBackpropV3" if "sequence_lengths" in arguments else "CudnnRNNBackprop"
            size = arguments["reserve_space"].size
            other = valid(op, **changes)["reserve_space"]
            return {"reserve_space": np.resize(other, size)}

        return change

    yield row("reserve_space of another direction", of_another(direction="bidirectional"))
    yield row(
        "reserve_space of another input mode", of_another(input_mode="skip_input", input_size=H)
    )
    yield row("reserve_space of another mode", of_another(rnn_mode="rnn_relu"), rnn_mode="rnn_tanh")

    def of_other_lengths(arguments):
        forward = {
            key: value
            for key, value in arguments.items()
            if has_input("CudnnRNNV3", key) or key in ("rnn_mode", "direction", "num_proj")
        }
        forward["sequence_lengths"] = np.array([T, 2, 0], np.int32)
        return {"reserve_space": raw_ops.CudnnRNNV3(**forward).reserve_space.numpy()}

    yield row("reserve_space of other lengths", of_other_lengths, ops=V3[1:])
    yield row(
        "reserve_space of inference",
        lambda arguments: {"reserve_space": np.zeros(0, np.float32)},
        got=r"\[0\]",
    )


def fuzz_rows():
    """Each input of each op with each rank, and without elements.

    The tensors come from a kernel: those that do without elements have no memory then.
    """
    for op in COMPUTE + PARAMS:
        for each in op_def_registry.get(op).input_arg:
            for shape in (
                *((), (1,), (2, 1), (1, 1, 1), (2, 1, 1, 2)),
                *((0,), (0, 0), (0, 0, 0), (B, 0), (L, B, 0), (0, B, H)),
            ):
                yield fuzz_row(op, each.name, bool(each.number_attr), shape)


def fuzz_row(op, name, is_list, shape):
    def change(arguments):
        value = arguments[name]
        if is_list:
            return {name: [tf.fill(shape, value[0].dtype.type(1)), *value[1:]]}
        return {name: tf.fill(shape, value.dtype.type(1))}

    return Row(f"fuzz {name} {list(shape)}", (op,), change, ".*", "", "", known=False, fuzz=True)


def all_rows():
    for rows in (
        rank_rows,
        state_rows,
        length_rows,
        attribute_rows,
        size_rows,
        list_rows,
        backprop_rows,
        fuzz_rows,
    ):
        yield from rows()


def trials():
    """Name -> (op, row)."""
    result = {}
    for row in all_rows():
        for op in row.ops:
            name = f"{op} | {row.what}"
            assert name not in result, name
            result[name] = op, row
    return result


# ---- The worker ------------------------------------------------------------------------------


@functools.cache
def graph_of_unknown_shapes(op, attrs, structure):
    """The op as a function of inputs whose shapes are not known. attrs, structure: of pickles."""
    attrs, structure = pickle.loads(attrs), pickle.loads(structure)
    specs = tf.nest.map_structure(lambda dtype: tf.TensorSpec(None, dtype), structure)
    function = getattr(raw_ops, op)
    return tf.function(lambda inputs: function(**inputs, **attrs), input_signature=[specs])


def run(op, arguments, mode):
    """Calls the op; raises what it raises."""
    function = getattr(raw_ops, op)
    tensors = {each.name for each in op_def_registry.get(op).input_arg}
    inputs = {key: value for key, value in arguments.items() if key in tensors}
    attrs = {key: value for key, value in arguments.items() if key not in tensors}
    if mode == "eager":
        function(**inputs, **attrs)
    elif mode == "unknown shapes":
        inputs = tf.nest.map_structure(tf.constant, inputs)
        structure = tf.nest.map_structure(lambda each: each.dtype, inputs)
        graph_of_unknown_shapes(op, pickle.dumps(attrs), pickle.dumps(structure))(inputs)
    else:
        with tf.Graph().as_default():
            function(**tf.nest.map_structure(tf.constant, inputs), **attrs)


def outcome(op, row, mode):
    """(kind of exception or "accepted", message)."""
    arguments = valid(op, **row.config)
    arguments |= row.change(arguments)
    try:
        run(op, arguments, mode)
    except Exception as error:  # Anything: the caller judges.
        return type(error).__name__, getattr(error, "message", str(error))
    return "accepted", ""


def main():
    table = trials()
    with tf.device("/CPU:0"):
        for name in json.load(sys.stdin):
            print(json.dumps({"begin": name}), flush=True)
            op, row = table[name]
            modes = [mode for mode in MODES if row.known or mode != "known shapes"]
            outcomes = {mode: outcome(op, row, mode) for mode in modes}
            print(json.dumps({"end": name, "outcomes": outcomes}), flush=True)


if __name__ == "__main__":
    main()
