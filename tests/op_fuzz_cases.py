"""Calls of the eleven ops, at random, and what must become of them.

make_trial(seed, number) gives the same call each time: arguments that fit, of which some have been
changed. expectation() tells from docs/rnn.md's rules, without a look at the library, whether such a
call is to be accepted. op_fuzz.py makes the calls.
"""

import dataclasses

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

import run_ops
from bad_input import BACKPROP, COMPUTE, FORWARD, PROJECTING, SIZE, TO_CANONICAL, TO_PARAMS, V3
from cases import DIRECTIONS, DTYPES, MODES, Case
from tf_cudnn_rnn_ops import raw_ops, reference

OPS = COMPUTE + SIZE + TO_CANONICAL + TO_PARAMS
# The backprop ops have the most arguments.
SHARES = {op: 2 if op in BACKPROP else 1 for op in OPS}

# eager: the kernel alone. In a tf.function whose inputs have shapes that are known, known in part
# or unknown, or that are constants. traced: a graph that is built and not run, of any sizes.
RUN_MODES = ("eager", "eager", "known", "partial", "unknown", "constants")

INT32_MAX = 2**31 - 1
HUGE = (46341, 65535, 65536, 2**20, 2**30, INT32_MAX)
BEYOND = (2**31, 2**32 + 1, 2**33, 2**40, 2**62, 2**63 - 1)
TYPES = ("float16", "bfloat16", "float32", "float64", "int8", "int32", "int64", "uint8", "bool")
TYPES += ("complex64", "string", "qint8", "float8_e4m3fn")
LEAST_DROPOUT_OF_ONE = float(np.nextafter(1, 0))  # 1 as a float

HEADER = 64  # bytes of a reserve space that tell what it belongs to
MOST_ELEMENTS = 1 << 20  # of a tensor that a trial makes for itself


@dataclasses.dataclass
class Trial:
    """A call.

    inputs: tensors, lists of tensors or None; specs of tensors where mode is "traced".
    changes: what was done to arguments that fit, in words.
    by_tensorflow: a change that TensorFlow itself must refuse (types, words, numbers of outputs).
    reserve: of a backprop op, the forward call's reserve_space and its configuration().
    reserve_damage: whether another content in its place is known to be wrong; not, if it may pass.
    isolated: the argument that a refusal must name, if there is only one that can be at fault.
    values: whether values can be compared with the reference.
    infinite: whether infinities are among the data.
    huge: whether the outputs are more than fits into memory.
    """

    op: str
    mode: str
    inputs: dict
    attributes: dict
    changes: list = dataclasses.field(default_factory=list)
    by_tensorflow: bool = False
    reserve: tuple = (None, None)
    reserve_damage: bool = True
    isolated: str | None = None
    values: bool = True
    infinite: bool = False
    huge: bool = False

    def describe(self):
        def text(value):
            if isinstance(value, list):
                return [text(each) for each in value]
            if value is None:
                return "None"
            return f"{value.dtype.name}{value.shape}"

        return {
            "op": self.op,
            "mode": self.mode,
            "inputs": {name: text(value) for name, value in self.inputs.items()},
            "attributes": {name: str(value) for name, value in self.attributes.items()},
            "changes": self.changes,
        }


def input_names(op):
    return [each.name for each in op_def_registry.get(op).input_arg]


def attribute_names(op):
    return [each.name for each in op_def_registry.get(op).attr]


# ---- Arguments that fit ----------------------------------------------------------------------


def draw_case(rng, op):
    mode = str(rng.choice(MODES))
    H = int(rng.integers(1, 8))
    I = int(rng.integers(1, 7))
    num_proj, time_major, lengths = 0, True, "none"
    if op in PROJECTING and mode == "lstm" and rng.random() < 0.4:
        num_proj = int(rng.integers(1, H + 1))
    if op in V3:
        time_major = bool(rng.random() < 0.5)
        lengths = str(rng.choice(["none", "varied", "short", "zeros", "all_zero"]))
    input_mode = str(rng.choice(["linear_input", "skip_input", "auto_select"]))
    if input_mode == "skip_input" or (input_mode == "auto_select" and rng.random() < 0.5):
        I = H
        if input_mode == "skip_input":
            num_proj = 0
    return Case(
        mode,
        int(rng.integers(1, 4)),
        str(rng.choice(DIRECTIONS)),
        0 if rng.random() < 0.06 else int(rng.integers(1, 6)),
        0 if rng.random() < 0.06 else int(rng.integers(1, 5)),
        I,
        H,
        num_proj,
        input_mode,
        lengths,
        time_major,
        str(rng.choice(DTYPES)),
    )


def tensor(value):
    return tf.constant(value)


def fitting_trial(rng, op, case):
    names = set(attribute_names(op))
    attributes = {**case.parameter_attributes(), "time_major": case.time_major}
    attributes["dropout"] = float(rng.choice([0, 0, 0, 0.3, 0.99]))
    for seed in ("seed", "seed2"):
        attributes[seed] = int(rng.choice([0, 1, -1, 2**63 - 1, -(2**63)]))
    attributes["is_training"] = bool(op in BACKPROP or rng.random() < 0.7)
    attributes = {name: value for name, value in attributes.items() if name in names}
    trial = Trial(op, str(rng.choice(RUN_MODES)), {}, attributes)
    arrays = case.make_inputs(int(rng.integers(1 << 30)))
    if op in COMPUTE:
        version = 3 if op in V3 else 1
        trial.inputs = {key: tensor(value) for key, value in arrays.forward(version).items()}
        if case.rnn_mode != "lstm" and rng.random() < 0.5:
            trial.inputs["input_c"] = tf.zeros([], case.dtype)
        if op in BACKPROP:
            add_forward_results(trial, arrays)
        return trial
    trial.inputs = {key: tensor(np.int32(value)) for key, value in case.sizes().items()}
    counts = len(arrays.weights), len(arrays.biases)
    if op in SIZE:
        attributes |= {
            "T": tf.as_dtype(case.dtype),
            "S": tf.int32 if rng.random() < 0.5 else tf.int64,
        }
    elif op in TO_CANONICAL:
        trial.inputs["params"] = tensor(arrays.params)
        if op.endswith("V2"):
            attributes |= {"num_params_weights": counts[0], "num_params_biases": counts[1]}
        else:
            attributes["num_params"] = counts[0]
    else:
        trial.inputs["weights"] = [tensor(value) for value in arrays.weights]
        trial.inputs["biases"] = [tensor(value) for value in arrays.biases]
    return trial


def forward_of(trial):
    """The result of the forward op that a backprop trial belongs to."""
    op = trial.op.replace("Backprop", "")
    attributes = {
        name: value for name, value in trial.attributes.items() if name in attribute_names(op)
    }
    inputs = {name: trial.inputs[name] for name in input_names(op)}
    return getattr(raw_ops, op)(**inputs, **attributes)


def add_forward_results(trial, arrays):
    result = forward_of(trial)
    for name in (*run_ops.FORWARD_NAMES, "reserve_space", "host_reserved"):
        if name in input_names(trial.op):
            trial.inputs[name] = getattr(result, name)
    backprops = arrays.backprops()
    trial.inputs |= {name: tensor(value) for name, value in backprops.items()}
    trial.reserve = trial.inputs["reserve_space"], configuration(trial)


# ---- Changes ---------------------------------------------------------------------------------


def filled(shape, dtype):
    if tf.as_dtype(dtype) == tf.string:
        return tf.fill(shape, "")
    return tf.cast(tf.zeros(shape), dtype)


class Skip(Exception):
    """There is nothing to change in this way."""


def pick_tensor(rng, trial, names=None):
    """(name, index in a list or None, tensor) of an input that has one; Skip if there is none."""
    names = [name for name in names or list(trial.inputs) if trial.inputs.get(name) is not None]
    if not names:
        raise Skip
    name = str(rng.choice(names))
    value = trial.inputs[name]
    if isinstance(value, list):
        if not value:
            raise Skip
        index = int(rng.integers(len(value)))
        return name, index, value[index]
    return name, None, value


def put(trial, name, index, value):
    if index is None:
        trial.inputs[name] = value
    else:
        trial.inputs[name][index] = value


def change_rank(rng, trial):
    name, index, value = pick_tensor(rng, trial)
    rank = int(rng.integers(0, 6))
    sizes = [0, 1, 2, *[int(size) for size in value.shape]]
    shape = [int(rng.choice(sizes)) for _ in range(rank)]
    if rng.random() < 0.4 and len(value.shape) < 5:
        # The same elements, with a dimension of 1 more.
        shape = [int(size) for size in value.shape]
        shape.insert(int(rng.integers(len(shape) + 1)), 1)
    if np.prod(shape, dtype=object) > MOST_ELEMENTS:
        return None
    put(trial, name, index, filled(shape, value.dtype))
    return f"{name} {shape}", {name}


def change_dimension(rng, trial):
    name, index, value = pick_tensor(rng, trial)
    shape = [int(size) for size in value.shape]
    if not shape:
        return None
    axis = int(rng.integers(len(shape)))
    size = shape[axis]
    shape[axis] = max(0, int(rng.choice([0, 1, size - 1, size + 1, 2 * size, 7, 65537])))
    if np.prod(shape, dtype=object) > MOST_ELEMENTS:
        return None
    put(trial, name, index, filled(shape, value.dtype))
    return f"{name} {shape}", {name}


def swap_dimensions(rng, trial):
    name, index, value = pick_tensor(rng, trial)
    if len(value.shape) < 2:
        return None
    order = [int(each) for each in rng.permutation(len(value.shape))]
    try:
        put(trial, name, index, tf.transpose(value, order))
    except tf.errors.InvalidArgumentError:  # TensorFlow multiplies dimensions beyond 2**63
        return None
    return f"{name} transposed {order}", {name}


def make_vast_and_empty(rng, trial):
    """Dimensions whose product is beyond 2**31 or 2**63, but for a 0."""
    name, index, value = pick_tensor(rng, trial)
    rank = max(1, len(value.shape))
    shape = [int(rng.choice([*HUGE, *BEYOND, 1, 2, 3])) for _ in range(rank)]
    shape[int(rng.integers(rank))] = 0
    try:
        put(trial, name, index, tf.zeros(shape, value.dtype))
    except Exception:  # TensorFlow has no such tensor.
        return None
    if trial.mode == "constants":  # NumPy, through which constants go, has no such array.
        trial.mode = "unknown"
    trial.values = False
    return f"{name} {shape}", {name}


def change_type(rng, trial):
    name, index, value = pick_tensor(rng, trial)
    dtype = tf.as_dtype(str(rng.choice(TYPES)))
    if dtype == value.dtype:
        return None
    shape = value.shape
    try:
        other = filled(shape, dtype)
    except Exception:
        return None
    put(trial, name, index, other)
    # Where no other argument has type T, another of the four is right.
    alone = trial.op in TO_CANONICAL and name == "params"
    trial.by_tensorflow |= not (alone and dtype.name in DTYPES)
    return f"{name} of {dtype.name}", {name}


def take_another_argument(rng, trial):
    name, index, _ = pick_tensor(rng, trial)
    other, other_index, value = pick_tensor(rng, trial)
    mine = trial.inputs[name] if index is None else trial.inputs[name][index]
    if name == other and index == other_index:
        return None
    trial.by_tensorflow |= mine.dtype != value.dtype
    put(trial, name, index, value)
    return f"{name} is {other}", {name}


def leave_out(rng, trial):
    name = str(rng.choice(list(trial.inputs)))
    trial.inputs[name] = None
    trial.by_tensorflow = True
    return f"{name} None", {name}


def special_values(rng, trial):
    candidates = [
        name
        for name in trial.inputs
        if name not in ("reserve_space", "host_reserved", "sequence_lengths")
    ]
    name, index, value = pick_tensor(rng, trial, candidates)
    if value.dtype.name not in DTYPES or not 0 < np.prod(value.shape) <= MOST_ELEMENTS:
        return None
    array = np.array(value.numpy())
    kind = str(rng.choice(["nan", "inf", "-inf", "max", "least"]))
    limits = np.finfo(np.float16) if value.dtype == tf.float16 else np.finfo(np.float32)
    special = {"max": float(limits.max), "least": 1e-40}.get(kind) or float(kind)
    for _ in range(int(rng.integers(1, 4))):
        array.flat[int(rng.integers(array.size))] = special
    put(trial, name, index, tensor(array))
    trial.values &= kind != "max"
    trial.infinite |= "inf" in kind
    return f"{kind} in {name}", set()


def change_lengths(rng, trial):
    value = trial.inputs.get("sequence_lengths")
    if value is None or value.dtype != tf.int32 or len(value.shape) != 1:
        return None
    lengths = np.array(value.numpy())
    if lengths.size == 0:
        return None
    wrong = [-1, 0, 1, 5, 6, 7, -(2**31), INT32_MAX]
    lengths[int(rng.integers(lengths.size))] = int(rng.choice(wrong))
    trial.inputs["sequence_lengths"] = tensor(lengths)
    return f"sequence_lengths {lengths.tolist()}", {"sequence_lengths"}


def change_list(rng, trial):
    names = [name for name in ("weights", "biases") if isinstance(trial.inputs.get(name), list)]
    if not names:
        return None
    name = str(rng.choice(names))
    entries = trial.inputs[name]
    kind = str(rng.choice(["drop", "drop", "add", "empty", "reverse", "double"]))
    if kind == "empty":
        trial.inputs[name] = []
    elif kind == "reverse":
        trial.inputs[name] = entries[::-1]
    elif kind == "double":
        trial.inputs[name] = entries + entries
    elif kind == "drop" and entries:
        del entries[int(rng.integers(len(entries)))]
    elif entries:
        entries.append(entries[0])
    return f"{name}: {kind}", {name, "num_params"}


def change_count(rng, trial):
    names = [name for name in trial.attributes if name.startswith("num_params")]
    if not names:
        return None
    name = str(rng.choice(names))
    count = trial.attributes[name]
    value = int(rng.choice([0, -1, 1, count - 1, count + 1, 2 * count, 1000]))
    trial.attributes[name] = value
    trial.by_tensorflow |= value < 1
    return f"{name} {value}", {name}


def change_size(rng, trial):
    names = [name for name in ("num_layers", "num_units", "input_size") if name in trial.inputs]
    if not names:
        return None
    name = str(rng.choice(names))
    value = int(rng.choice([0, -1, 1, 2, 3, 4, 7, -(2**31), *HUGE]))
    trial.inputs[name] = tensor(np.int32(value))
    return f"{name} {value}", set()


def change_attribute(rng, trial):
    values = {
        "dropout": (-0.1, -0.0, 1e-40, 0.5, LEAST_DROPOUT_OF_ONE, 1, 1.5, 1e30, *BAD_FLOATS),
        "num_proj": (0, 1, 2, 3, 7, 8, -1, 2**31, 2**63 - 1, -(2**63)),
        "seed": (2**63 - 1, -(2**63)),
        "rnn_mode": (*MODES, "", "LSTM", "lstm\0", "x" * 1000),
        "input_mode": ("linear_input", "skip_input", "auto_select", "skip"),
        "direction": (*DIRECTIONS, "backward"),
        "time_major": (True, False),
        "is_training": (True, False),
    }
    name = str(rng.choice([name for name in values if name in trial.attributes]))
    value = values[name][int(rng.integers(len(values[name])))]
    if value == trial.attributes[name]:
        return None
    trial.attributes[name] = value
    words = {"rnn_mode": MODES, "direction": DIRECTIONS, "input_mode": values["input_mode"][:3]}
    trial.by_tensorflow |= name in words and value not in words[name]
    return f"{name} {str(value)[:20]!r}", {name} if name == "dropout" else set()


BAD_FLOATS = (float("nan"), float("inf"), float("-inf"))


def change_reserve(rng, trial):
    value = trial.inputs.get("reserve_space")
    if value is None or len(value.shape) != 1 or value.dtype.name not in DTYPES:
        return None
    array = np.array(value.numpy())
    kinds = ["longer", "shorter", "empty", "header", "header", "content", "zeros", "ones"]
    kind = str(rng.choice([*kinds, "type", "type", "call", "call"]))
    raw = array.view(np.uint8) if array.size else np.zeros(0, np.uint8)
    damage = True
    if kind == "longer":
        array = np.resize(array, array.size + int(rng.choice([1, 16, 1000])))
    elif kind in ("shorter", "empty"):
        array = array[: 0 if kind == "empty" else -int(rng.choice([1, 2, 16]))]
    elif kind in ("zeros", "ones"):
        array = np.full_like(array, kind == "ones")
    elif kind in ("header", "content") and raw.size > HEADER:
        first, last = (0, HEADER) if kind == "header" else (HEADER, raw.size)
        damage = kind == "header"
        for bit in rng.choice(8 * (last - first), int(rng.choice([1, 1, 64])), replace=False):
            raw[first + bit // 8] ^= 1 << (bit % 8)
    elif kind in ("type", "call"):
        op = trial.op.replace("Backprop", "")
        other = fitting_trial(rng, op, draw_case(rng, op))
        other.attributes["is_training"] = True
        damage = configuration(other) != trial.reserve[1]
        bits = np.array(forward_of(other).reserve_space.numpy())
        if bits.dtype != array.dtype or rng.random() < 0.5:
            bits = np.resize(bits.view(np.uint8), array.nbytes) if bits.size else bits
        array = bits.view(array.dtype) if bits.size else array[:0]
    else:
        return None
    trial.inputs["reserve_space"] = tensor(array)
    trial.reserve_damage = damage
    trial.values = False
    return f"reserve_space: {kind}", {"reserve_space"}


def ask_for_much(rng, trial):
    """Outputs of more bytes than there are."""
    if trial.op not in FORWARD or rng.random() < 0.7:
        return None
    dtype = trial.inputs["input"].dtype
    T, B, H = 1 << 21, 4, 512
    order = (lambda *shape: shape) if trial.attributes.get("time_major", True) else swapped
    trial.attributes |= {"rnn_mode": "rnn_relu", "direction": "unidirectional"}
    trial.attributes["input_mode"] = "linear_input"
    if "num_proj" in trial.attributes:
        trial.attributes["num_proj"] = 0
    trial.inputs["input"] = tf.zeros(order(T, B, 1), dtype)
    trial.inputs["input_h"] = tf.zeros(order(1, B, H), dtype)
    trial.inputs["input_c"] = tf.zeros([], dtype)
    trial.inputs["params"] = tf.zeros([H + H * H + 2 * H], dtype)
    if "sequence_lengths" in trial.inputs:
        trial.inputs["sequence_lengths"] = tf.fill([B], T)
    trial.huge = True
    trial.values = False
    return f"T {T}, H {H}", set()


def swapped(first, second, *rest):
    return second, first, *rest


CHANGES = (
    *(change_rank, change_rank, change_dimension, change_dimension, change_dimension),
    *(swap_dimensions, make_vast_and_empty, change_type, take_another_argument, leave_out),
    *(special_values, special_values, change_lengths, change_lengths, change_list, change_list),
    *(change_count, change_size, change_size, change_attribute, change_attribute),
    *(change_reserve, change_reserve, change_reserve, ask_for_much),
)

# Arguments on which no other depends.
ISOLATED = {"params", "sequence_lengths", "reserve_space", "dropout", "output", "output_h"}
ISOLATED |= {"output_backprop", "output_h_backprop", "host_reserved"}


def make_trial(seed, number):
    rng = np.random.default_rng([seed, number])
    shares = [op for op in OPS for _ in range(SHARES[op])]
    op = str(rng.choice(shares))
    if op in COMPUTE and rng.random() < 0.12:
        return traced_trial(rng, op)
    trial = fitting_trial(rng, op, draw_case(rng, op))
    at_fault = set()
    for _ in range(int(rng.choice([0, 0, 1, 1, 1, 1, 1, 2, 2, 3]))):
        for _ in range(20):
            # Of types and Nones one is enough: TensorFlow refuses the call.
            change = CHANGES[int(rng.integers(len(CHANGES)))]
            try:
                done = None if trial.by_tensorflow else change(rng, trial)
            except Skip:
                continue
            if done is not None:
                trial.changes.append(done[0])
                at_fault |= done[1] or {"?"}
                break
    # The gradients are those of the forward call's own arguments.
    trial.values &= op not in BACKPROP or not trial.changes
    if len(at_fault) == 1 and at_fault <= ISOLATED:
        (trial.isolated,) = at_fault
    return trial


def traced_trial(rng, op):
    """Placeholders of sizes that no memory holds, of which one may not fit."""

    def size():
        kind = rng.random()
        if kind < 0.3:
            return int(rng.choice(HUGE))
        if kind < 0.5:
            return int(rng.choice(BEYOND))
        return int(rng.integers(0, 6))

    case = draw_case(rng, op)
    T, B, I, H = size(), size(), size(), size()
    if case.input_mode == "skip_input":
        I = H
    R = case.num_proj if 0 < case.num_proj < H else H
    pseudo, width = case.L * case.D, case.D * R
    order = (lambda *shape: shape) if case.time_major else swapped
    states = order(pseudo, B, R), order(pseudo, B, H)
    shapes = {
        "input": order(T, B, I),
        "input_h": states[0],
        "input_c": states[1],
        "params": (None,),
        "sequence_lengths": (B,),
        "output": order(T, B, width),
        "output_h": states[0],
        "output_c": states[1],
        "output_backprop": order(T, B, width),
        "output_h_backprop": states[0],
        "output_c_backprop": states[1],
        "reserve_space": (None,),
        "host_reserved": (None,),
    }
    attributes = {**case.attributes(), "dropout": 0.5}
    changes = []
    if rng.random() < 0.5:
        name = str(rng.choice([name for name in shapes if name in input_names(op)]))
        shape = [size() if rng.random() < 0.5 else each for each in shapes[name]]
        if rng.random() < 0.3:
            shape = [size() for _ in range(int(rng.integers(0, 6)))]
        shapes[name] = tuple(shape)
        changes.append(f"{name} {shape}")
    types = {"sequence_lengths": "int32", "host_reserved": "int8"}
    specs = {}
    for name in input_names(op):
        known = [None if rng.random() < 0.1 else each for each in shapes[name]]
        shape = [each if each is None or each < 2**63 else None for each in known]
        shape = None if rng.random() < 0.05 else shape
        specs[name] = tf.TensorSpec(shape, types.get(name, case.dtype))
    names = attribute_names(op)
    attributes = {name: value for name, value in attributes.items() if name in names}
    return Trial(op, "traced", specs, attributes, changes, values=False)


# ---- What must become of a call --------------------------------------------------------------


class Misfit(Exception):
    """The call breaks a rule; says which."""


def require(condition, *what):
    if not condition:
        raise Misfit(" ".join(str(each) for each in what))


def shape_of(value):
    return tuple(int(size) for size in value.shape)


def check_attributes(attributes):
    dropout = np.float32(attributes["dropout"])
    require(np.isfinite(dropout) and 0 <= dropout < 1, "dropout")
    num_proj = attributes.get("num_proj", 0)
    require(num_proj >= 0, "num_proj")
    require(num_proj == 0 or attributes["rnn_mode"] == "lstm", "num_proj")


def resolve_skip(attributes, I, H, R):
    require(attributes["input_mode"] != "skip_input" or (I == H and R == H), "skip_input")
    return attributes["input_mode"] != "linear_input" and I == H and R == H


def sizes_of(trial):
    """(L, D, T, B, I, H, R, skip) of a compute op; Misfit."""
    attributes, inputs = trial.attributes, trial.inputs
    check_attributes(attributes)
    time_major = attributes.get("time_major", True)
    lstm = attributes["rnn_mode"] == "lstm"
    D = 2 if attributes["direction"] == "bidirectional" else 1

    def dims(name):
        shape = shape_of(inputs[name])
        require(len(shape) == 3, name)
        return shape if time_major else (shape[1], shape[0], shape[2])

    T, B, I = dims("input")
    pseudo, state_batch, R = dims("input_h")
    H, num_proj = R, attributes.get("num_proj", 0)
    if lstm:
        c_pseudo, c_batch, H = dims("input_c")
        require((c_pseudo, c_batch) == (pseudo, B), "input_c")
        require((num_proj or H) == R and num_proj <= H, "input_h")
    require(state_batch == B, "input_h")
    require(I >= 1 and H >= 1 and pseudo >= D and pseudo % D == 0, "sizes")
    skip = resolve_skip(attributes, I, H, R)
    # cuDNN counts sizes and strides in 32 bits.
    require(max(T, B, I, B * H, D * R, pseudo) <= INT32_MAX, "sizes")
    return pseudo // D, D, T, B, I, H, R, skip


def lengths_of(trial, T, B):
    lengths = trial.inputs.get("sequence_lengths")
    return (T,) * B if lengths is None else tuple(int(each) for each in lengths.numpy().flat)


def configuration(trial):
    """All that a reserve space depends on."""
    L, D, T, B, I, H, R, skip = sizes_of(trial)
    dropout = float(np.float32(trial.attributes["dropout"])) if L > 1 else 0.0
    if dropout < np.finfo(np.float32).tiny:  # subnormal: no dropout
        dropout = 0.0
    mode, dtype = trial.attributes["rnn_mode"], trial.inputs["input"].dtype.name
    return dtype, mode, L, D, T, B, I, H, R, skip, dropout, lengths_of(trial, T, B)


def check_compute(trial):
    L, D, T, B, I, H, R, skip = sizes_of(trial)
    inputs = trial.inputs
    gates = reference.GATES[trial.attributes["rnn_mode"]]
    size = 0
    for layer in range(L):
        columns = D * R if layer else 0 if skip else I
        size += D * (gates * H * (columns + R + 2) + (R * H if R < H else 0))
    require(shape_of(inputs["params"]) == (size,), "params")
    if "sequence_lengths" in inputs:
        require(shape_of(inputs["sequence_lengths"]) == (B,), "sequence_lengths")
        require(all(0 <= each <= T for each in lengths_of(trial, T, B)), "sequence_lengths")
    if trial.op not in BACKPROP:
        return
    output = (T, B, D * R) if trial.attributes.get("time_major", True) else (B, T, D * R)
    expected = {"output": output, "output_h": shape_of(inputs["input_h"])}
    if trial.attributes["rnn_mode"] == "lstm":
        expected["output_c"] = shape_of(inputs["input_c"])
    for name, shape in expected.items():
        require(shape_of(inputs[name]) == shape, name)
        require(shape_of(inputs[f"{name}_backprop"]) == shape, f"{name}_backprop")
    require(len(inputs["reserve_space"].shape) == 1, "reserve_space")
    require("host_reserved" not in inputs or len(inputs["host_reserved"].shape) == 1, "host")
    if T == 0 or B == 0:
        require(shape_of(inputs["reserve_space"]) == (0,), "reserve_space")
    elif inputs["reserve_space"] is trial.reserve[0]:
        require(configuration(trial) == trial.reserve[1], "reserve_space of another call")
    else:
        require(not trial.reserve_damage, "reserve_space")


def check_params(trial):
    attributes, inputs = trial.attributes, trial.inputs
    check_attributes(attributes)
    sizes = {}
    for name in ("num_layers", "num_units", "input_size"):
        require(shape_of(inputs[name]) == (), name)
        sizes[name] = int(inputs[name])
        require(sizes[name] >= 1, name)
    L, H, I = sizes["num_layers"], sizes["num_units"], sizes["input_size"]
    R = attributes.get("num_proj", 0) or H
    require(R <= H, "num_proj")
    skip = resolve_skip(attributes, I, H, R)
    gates = reference.GATES[attributes["rnn_mode"]]
    D = 2 if attributes["direction"] == "bidirectional" else 1
    matrices = 2 * gates + (R < H)

    def size_of_layer(columns):
        return D * (gates * H * (columns + R + 2) + (R * H if R < H else 0))

    size = size_of_layer(0 if skip else I) + (L - 1) * size_of_layer(D * R)
    # The documented limits: entries of the lists in 32 bits, bytes in 64.
    require(L <= INT32_MAX // (9 * D), "num_layers")
    element = (attributes.get("T") or tensors_of(trial)[0].dtype).size
    require(size * element < 2**63, "params")
    if trial.op in SIZE:
        require(attributes["S"] == tf.int64 or size <= INT32_MAX, "params_size")
        return
    counts = matrices * L * D, 2 * gates * L * D
    if trial.op in TO_CANONICAL:
        own = attributes.get("num_params"), attributes.get("num_params")
        if trial.op.endswith("V2"):
            own = attributes["num_params_weights"], attributes["num_params_biases"]
        require(own == counts, "counts")
        require(shape_of(inputs["params"]) == (size,), "params")
        return
    require((len(inputs["weights"]), len(inputs["biases"])) == counts, "counts")
    weights, biases = reference.canonical_shapes(
        **sizes,
        **{key: attributes[key] for key in ("rnn_mode", "input_mode", "direction")},
        num_proj=attributes.get("num_proj", 0),
    )
    require([shape_of(each) for each in inputs["weights"]] == weights, "weights")
    require([shape_of(each) for each in inputs["biases"]] == biases, "biases")


def tensors_of(trial):
    """The tensors of type T."""
    values = [trial.inputs[name] for name in trial.inputs if name in ("params", "weights", "input")]
    flat = tf.nest.flatten(values)
    return flat or tf.nest.flatten(trial.inputs["biases"])


def expectation(trial):
    """("accept" | "refuse" | "either" | "tensorflow", why)."""
    if trial.by_tensorflow:
        return "tensorflow", "types, words and missing arguments"
    if trial.mode == "traced":
        return "either", "sizes that no kernel will see"
    if trial.op in TO_PARAMS and not (trial.inputs["weights"] and trial.inputs["biases"]):
        return "tensorflow", "an empty list"
    if trial.op == "CudnnRNNCanonicalToParams":
        if len(trial.inputs["weights"]) != len(trial.inputs["biases"]):
            return "tensorflow", "one attribute counts both lists"
    try:
        check_compute(trial) if trial.op in COMPUTE else check_params(trial)
    except Misfit as misfit:
        return "refuse", str(misfit)
    if trial.huge:
        return "memory", "more than there is"
    if trial.op in BACKPROP and trial.inputs["reserve_space"] is not trial.reserve[0]:
        return "either", "damage that does not show, or a call that is alike"
    return "accept", ""
