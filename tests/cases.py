"""The one table of RNN configurations that the tests and the benchmarks run.

A Case is a configuration with its sizes; make_inputs() gives it data. The lists at the end name the
subsets: FORWARD_CASES in all types, GRADIENT_CASES in double and small enough for finite
differences, TYPED_GRADIENT_CASES for the other types against double, EDGE_CASES with the sizes at
which things break, BENCHMARK_CASES of the sizes that are worth timing.

Letters for the sizes: T time steps, B batch, I input_size, H num_units, L num_layers, D directions,
R width of output and recurrent state, G gates.
"""

import dataclasses
import itertools

import ml_dtypes
import numpy as np

from tf_cudnn_rnn_ops import reference

MODES = ("rnn_relu", "rnn_tanh", "gru", "lstm")
DIRECTIONS = ("unidirectional", "bidirectional")
DTYPES = ("float32", "float64", "float16", "bfloat16")

# Kinds of sequence_lengths:
#   none      every row has T steps (the only kind that V1 and V2 know)
#   varied    1..T, unsorted, one row has T
#   short     1..T-1, no row has T
#   zeros     as varied, with rows of length 0 among them
#   all_zero  nothing but 0
#   uniform   T/10..T (BENCHMARK_CASES only)
LENGTHS = ("none", "varied", "zeros", "all_zero")

# Relative to the largest absolute value of the expected tensor.
TOLERANCES = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}


def numpy_dtype(name):
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


@dataclasses.dataclass(frozen=True)
class Case:
    """One configuration of the ops.

    rnn_mode, direction, input_mode, num_proj, time_major are the ops' attributes; lengths is one of
    the kinds above; dtype a key of TOLERANCES.
    """

    rnn_mode: str
    L: int
    direction: str
    T: int
    B: int
    I: int
    H: int
    num_proj: int = 0
    input_mode: str = "linear_input"
    lengths: str = "none"
    time_major: bool = True
    dtype: str = "float32"

    @property
    def D(self):
        return 2 if self.direction == "bidirectional" else 1

    @property
    def G(self):
        return {"rnn_relu": 1, "rnn_tanh": 1, "gru": 3, "lstm": 4}[self.rnn_mode]

    @property
    def R(self):
        return self.num_proj or self.H

    @property
    def id(self):
        parts = [
            self.rnn_mode,
            f"L{self.L}",
            self.direction[:2],
            f"T{self.T}B{self.B}I{self.I}H{self.H}",
            f"P{self.num_proj}" if self.num_proj else "",
            "" if self.input_mode == "linear_input" else self.input_mode.split("_")[0],
            self.lengths,
            "" if self.time_major else "batch_major",
            self.dtype,
        ]
        return "-".join(part for part in parts if part)

    @property
    def numpy_dtype(self):
        return numpy_dtype(self.dtype)

    @property
    def tolerance(self):
        return TOLERANCES[self.dtype]

    def replace(self, **changes):
        return dataclasses.replace(self, **changes)

    def attributes(self, version=3):
        """The attributes of CudnnRNN, CudnnRNNV2 or CudnnRNNV3 without dropout and is_training."""
        attributes = {
            "rnn_mode": self.rnn_mode,
            "input_mode": self.input_mode,
            "direction": self.direction,
        }
        if version == 3:
            attributes.update(num_proj=self.num_proj, time_major=self.time_major)
        return attributes

    def parameter_attributes(self):
        """The attributes of the parameter ops."""
        return {**self.attributes(version=2), "num_proj": self.num_proj}

    def sizes(self):
        """The three inputs with which the parameter ops begin."""
        return {"num_layers": self.L, "num_units": self.H, "input_size": self.I}

    def canonical_shapes(self):
        return reference.canonical_shapes(**self.sizes(), **self.parameter_attributes())

    def supports_version(self, version):
        """V1 and V2 have no lengths, no projection and no batch-major layout."""
        return version == 3 or (self.lengths == "none" and not self.num_proj and self.time_major)

    def make_inputs(self, seed=0):
        """Data for the case; the same seed gives the same numbers whatever the layout and type."""
        rng = np.random.default_rng([seed, self.L, self.D, self.T, self.B, self.I, self.H])
        weight_shapes, bias_shapes = self.canonical_shapes()

        def draw(*shape, scale=1.0):
            return (scale * rng.standard_normal(shape)).astype(self.numpy_dtype)

        def in_layout(array):
            return array if self.time_major else np.ascontiguousarray(np.swapaxes(array, 0, 1))

        lstm = self.rnn_mode == "lstm"
        states = (self.L * self.D, self.B)
        weights = [draw(*shape, scale=0.7 / max(1, shape[1]) ** 0.5) for shape in weight_shapes]
        biases = [draw(*shape, scale=0.3) for shape in bias_shapes]
        return Inputs(
            input=in_layout(draw(self.T, self.B, self.I)),
            input_h=in_layout(draw(*states, self.R, scale=0.6)),
            # Other modes must ignore input_c: give them something to ignore.
            input_c=in_layout(draw(*states, self.H, scale=0.6)),
            weights=weights,
            biases=biases,
            params=reference.pack(weights, biases),
            sequence_lengths=self._draw_lengths(rng),
            output_backprop=in_layout(draw(self.T, self.B, self.D * self.R)),
            output_h_backprop=in_layout(draw(*states, self.R)),
            output_c_backprop=in_layout(draw(*states, self.H)) if lstm else draw(0),
        )

    def _draw_lengths(self, rng):
        lengths = np.full([self.B], self.T, np.int32)
        if self.B == 0 or self.T == 0 or self.lengths == "none":
            return lengths
        if self.lengths == "all_zero":
            return np.zeros_like(lengths)
        if self.lengths == "short":
            return rng.integers(1, max(2, self.T), self.B).astype(np.int32)
        if self.lengths == "uniform":
            return rng.integers(max(1, self.T // 10), self.T + 1, self.B).astype(np.int32)
        lengths = rng.integers(1, self.T + 1, self.B).astype(np.int32)
        # The longest row is the last one, so that the order is not the descending one.
        lengths[-1] = self.T
        if self.lengths == "zeros":
            lengths[:-1:2] = 0
            if self.B == 1:
                lengths[0] = 0
        return lengths


@dataclasses.dataclass
class Inputs:
    """What a forward and a backward call take, as NumPy arrays of the case's type.

    sequence_lengths int32 [B]; weights and biases are the canonical lists of params; the rest has
    the ops' names and shapes.
    """

    input: np.ndarray
    input_h: np.ndarray
    input_c: np.ndarray
    weights: list
    biases: list
    params: np.ndarray
    sequence_lengths: np.ndarray
    output_backprop: np.ndarray
    output_h_backprop: np.ndarray
    output_c_backprop: np.ndarray

    def forward(self, version=3):
        """The tensor arguments of CudnnRNN, CudnnRNNV2 or CudnnRNNV3."""
        names = ["input", "input_h", "input_c", "params"]
        if version == 3:
            names.append("sequence_lengths")
        return {name: getattr(self, name) for name in names}

    def backprops(self):
        """The three upstream gradients."""
        return {
            "output_backprop": self.output_backprop,
            "output_h_backprop": self.output_h_backprop,
            "output_c_backprop": self.output_c_backprop,
        }


def _cross_product(sizes, dtypes, layers=(1, 2, 3)):
    """Modes x layers x directions x lengths x layouts x input modes (x projection) x types.

    sizes: tuples (T, B, I, H, num_proj) that the rows take in turn.
    """
    turns = itertools.cycle(sizes)
    rows = []
    for mode, L, direction, lengths, time_major, input_mode, projects in itertools.product(
        MODES,
        layers,
        DIRECTIONS,
        LENGTHS,
        (True, False),
        ("linear_input", "skip_input"),
        (False, True),
    ):
        if projects and (mode != "lstm" or input_mode == "skip_input"):
            continue
        T, B, I, H, num_proj = next(turns)
        num_proj = num_proj if projects else 0
        if input_mode == "skip_input":
            I = H
        case = Case(mode, L, direction, T, B, I, H, num_proj, input_mode, lengths, time_major)
        rows += [case.replace(dtype=dtype) for dtype in dtypes]
    return rows


# T, B and L*D differ, so that no two axes can be taken for one another, and the widths are no
# multiples of a vector. The number of rows is prime to those of the other factors.
_FORWARD_SIZES = (
    (5, 3, 4, 7, 3),
    (4, 5, 6, 3, 2),
    (7, 4, 1, 5, 1),
    (5, 7, 2, 2, 1),
    (8, 3, 9, 13, 6),
)
_GRADIENT_SIZES = ((4, 3, 2, 3, 2), (3, 5, 3, 2, 1), (5, 3, 1, 2, 1))

FORWARD_CASES = _cross_product(_FORWARD_SIZES, DTYPES)
GRADIENT_CASES = _cross_product(_GRADIENT_SIZES, ["float64"])

# The rest of the table: sizes and kinds of which one row per mode is enough.
_EDGES = (
    # One of everything.
    {"L": 1, "T": 1, "B": 1, "I": 1, "H": 1},
    {"L": 2, "T": 1, "B": 1, "I": 1, "H": 1, "direction": "bidirectional", "lengths": "zeros"},
    # One step; one row; one unit.
    {"L": 2, "T": 1, "B": 6, "I": 5, "H": 9, "direction": "bidirectional", "lengths": "zeros"},
    {"L": 2, "T": 9, "B": 1, "I": 5, "H": 6, "direction": "bidirectional", "lengths": "short"},
    {"L": 3, "T": 4, "B": 5, "I": 3, "H": 1, "direction": "bidirectional", "lengths": "varied"},
    {"L": 1, "T": 6, "B": 5, "I": 1, "H": 33},
    # Nobody reaches the last steps.
    {"L": 2, "T": 8, "B": 4, "I": 3, "H": 5, "direction": "bidirectional", "lengths": "short"},
    # Several vectors and blocks of every instruction set, with a rest.
    {"L": 2, "T": 4, "B": 19, "I": 70, "H": 67, "direction": "bidirectional", "lengths": "varied"},
    {"L": 1, "T": 3, "B": 17, "I": 131, "H": 130, "lengths": "varied", "time_major": False},
    {"L": 1, "T": 3, "B": 1, "I": 259, "H": 261},
    {"L": 1, "T": 2, "B": 33, "I": 16, "H": 64},
    # Widths that are whole vectors.
    {"L": 2, "T": 5, "B": 8, "I": 16, "H": 32, "direction": "bidirectional"},
    # Deep, long, wide.
    {"L": 20, "T": 3, "B": 2, "I": 3, "H": 4, "lengths": "varied"},
    {"L": 20, "T": 3, "B": 2, "I": 3, "H": 2, "direction": "bidirectional"},
    {"L": 1, "T": 300, "B": 2, "I": 3, "H": 5, "direction": "bidirectional", "lengths": "varied"},
    {"L": 1, "T": 3, "B": 1031, "I": 2, "H": 3, "direction": "bidirectional", "lengths": "zeros"},
    # Nothing to do.
    {"L": 2, "T": 4, "B": 0, "I": 3, "H": 5, "direction": "bidirectional"},
    {"L": 2, "T": 0, "B": 3, "I": 3, "H": 5, "direction": "bidirectional"},
    {"L": 2, "T": 0, "B": 3, "I": 3, "H": 5, "time_major": False},
    {"L": 1, "T": 0, "B": 0, "I": 3, "H": 5},
    # auto_select resolved both ways.
    {"L": 2, "T": 4, "B": 3, "I": 5, "H": 5, "input_mode": "auto_select"},
    {"L": 2, "T": 4, "B": 3, "I": 6, "H": 5, "input_mode": "auto_select"},
    # skip_input over several vectors.
    {"L": 2, "T": 4, "B": 9, "I": 37, "H": 37, "input_mode": "skip_input", "lengths": "varied"},
)
_LSTM_EDGES = (
    # num_proj == num_units is no projection; one unit less is one.
    {"L": 2, "T": 4, "B": 3, "I": 4, "H": 5, "num_proj": 5, "direction": "bidirectional"},
    {"L": 2, "T": 4, "B": 3, "I": 4, "H": 5, "num_proj": 4, "direction": "bidirectional"},
    {"L": 2, "T": 4, "B": 18, "I": 9, "H": 67, "num_proj": 35, "lengths": "zeros"},
    {"L": 1, "T": 4, "B": 3, "I": 9, "H": 130, "num_proj": 1, "time_major": False},
    {"L": 2, "T": 4, "B": 0, "I": 3, "H": 5, "num_proj": 2},
    {"L": 2, "T": 0, "B": 3, "I": 3, "H": 5, "num_proj": 2},
    {"L": 1, "T": 4, "B": 3, "I": 3, "H": 5, "num_proj": 3, "input_mode": "auto_select"},
)
EDGE_CASES = [
    Case(**{"rnn_mode": mode, "direction": "unidirectional", **edge})
    for mode, edges in (*((mode, _EDGES) for mode in MODES), ("lstm", _LSTM_EDGES))
    for edge in edges
]


def select(cases, **wanted):
    """The cases whose fields have the wanted values, e.g. select(FORWARD_CASES, L=1)."""
    return [
        case
        for case in cases
        if all(getattr(case, name) == value for name, value in wanted.items())
    ]


# Gradients in the narrower types: wide enough for vectors, one row per mode, layer and direction.
TYPED_GRADIENT_CASES = [
    Case(mode, L, direction, 5, 7, 6, 19, num_proj, "linear_input", lengths, time_major, dtype)
    for dtype in ("float32", "float16", "bfloat16")
    for mode, num_proj in (*((mode, 0) for mode in MODES), ("lstm", 8))
    for L, direction, lengths, time_major in (
        (1, "unidirectional", "none", True),
        (1, "bidirectional", "varied", False),
        (2, "bidirectional", "zeros", True),
        (3, "unidirectional", "varied", False),
    )
]


# What `python -m benchmarks` measures. Type by type where a name has a second part.
BENCHMARK_CASES = {
    "c1": Case("lstm", 1, "unidirectional", T=100, B=1, I=64, H=64),
    "c2": Case("lstm", 1, "unidirectional", T=100, B=32, I=128, H=128),
    "c3": Case("lstm", 1, "unidirectional", T=50, B=64, I=512, H=512),
    "c4": Case("lstm", 1, "unidirectional", T=100, B=1, I=512, H=512),
    "c5": Case("lstm", 2, "bidirectional", T=100, B=32, I=256, H=256),
    "c6": Case("gru", 1, "unidirectional", T=100, B=32, I=256, H=256),
    "c7": Case("lstm", 1, "unidirectional", T=50, B=128, I=1024, H=1024),
    "c8": Case("rnn_tanh", 1, "unidirectional", T=100, B=32, I=256, H=256),
    "c9": Case("lstm", 1, "bidirectional", T=200, B=64, I=40, H=256, lengths="uniform"),
    "c10": Case("lstm", 1, "unidirectional", T=100, B=32, I=256, H=512, num_proj=256),
    "c11": Case("gru", 1, "unidirectional", T=1, B=1, I=256, H=256),
    "c12": Case("gru", 3, "unidirectional", T=400, B=8, I=128, H=384),
    "c13-bfloat16": Case("lstm", 1, "unidirectional", 100, 32, 256, 256, dtype="bfloat16"),
    "c13-float16": Case("lstm", 1, "unidirectional", 100, 32, 256, 256, dtype="float16"),
    "c14": Case("lstm", 1, "unidirectional", 100, 32, 256, 256, dtype="float64"),
}
