"""What is measured: the named cases, their entrants, their arithmetic and their tolerances."""

import dataclasses

import numpy as np

from cases import BENCHMARK_CASES, Case

PASSES = ("inference", "training")

# Who takes part: a module of benchmarks.contestants each.
OP, ENGINE = "op", "engine"
PEERS = ("pytorch", "onnxruntime", "keras", "keras_xla")

# The relative error against PyTorch in double up to which a time counts. Sums over hundreds of
# steps: wider than the tests', narrow enough to tell a wrong gate or a forgotten bias.
TOLERANCES = {"float32": 2e-4, "float64": 1e-10, "float16": 2e-2, "bfloat16": 1e-1}


@dataclasses.dataclass(frozen=True)
class Entrant:
    """One time of a configuration: who computes, and which case (most often the configuration's).

    label: the name in results; contestant: the module's name.
    """

    label: str
    contestant: str
    case: Case


@dataclasses.dataclass(frozen=True)
class Configuration:
    """A named case, and whether the peers are measured as well."""

    name: str
    case: Case
    with_peers: bool = True

    def entrants(self):
        """Ours first. Besides the case itself, what it is to be compared with."""
        case = self.case
        entrants = [Entrant(OP, OP, case), Entrant(ENGINE, ENGINE, case)]
        if case.dtype in ("float16", "bfloat16"):
            # No peer: the aim is a ratio to our own float.
            full = case.replace(dtype="float32")
            entrants += [Entrant("op_float32", OP, full), Entrant("engine_float32", ENGINE, full)]
            return entrants
        if case.lengths != "none":
            # As many steps without padding, for what the padding costs.
            mean = float(np.mean(case.make_inputs().sequence_lengths))
            dense = case.replace(T=max(1, round(mean)), lengths="none")
            entrants += [
                Entrant("op_unpadded", OP, dense),
                Entrant("engine_unpadded", ENGINE, dense),
            ]
        if self.with_peers:
            entrants += [Entrant(peer, peer, case) for peer in PEERS]
        return entrants


def flops(case, sequence_lengths, training):
    """Floating-point operations of the matrix products over the valid steps.

    2 per multiply-add; the backward pass has two products for each of the forward pass.
    Element-wise work is not counted.
    """
    per_step = 0
    for layer in range(case.L):
        width_in = case.I if layer == 0 else case.D * case.R
        products = case.G * case.H * (width_in + case.R)
        if case.R < case.H:
            products += case.R * case.H
        per_step += case.D * products
    return 2 * int(np.sum(sequence_lengths)) * per_step * (3 if training else 1)


def reserve_bound(case, sequence_lengths):
    """Elements of reserve_space: G + 2 values per unit, valid step, layer and direction."""
    return (case.G + 2) * case.H * int(np.sum(sequence_lengths)) * case.L * case.D


def recurrent_bytes(case):
    """Bytes of one pseudo-layer's recurrent weights."""
    return case.G * case.H * case.R * case.numpy_dtype.itemsize


def tiny(case):
    """The case at sizes at which everything runs at once; its times mean nothing."""
    return case.replace(
        T=min(case.T, 10),
        B=min(case.B, 4),
        I=min(case.I, 16),
        H=min(case.H, 16),
        num_proj=min(case.num_proj, 8),
    )


def scaling_configurations():
    """c3 at other T and B, without peers: time should be proportional to both."""
    base = BENCHMARK_CASES["c3"]
    sizes = [("T", base.T * factor) for factor in (2, 4)]
    sizes += [("B", base.B * factor) for factor in (2, 4)]
    return [
        Configuration(f"c3-{size}{value}", base.replace(**{size: value}), with_peers=False)
        for size, value in sizes
    ]


def select(only=None, quick=False, scaling=False):
    """The configurations to measure.

    only: names, or what stands before the dash of a name; None for all. quick: tiny() sizes.
    scaling: with scaling_configurations().

    Raises ValueError for a name that selects nothing.
    """
    configurations = [Configuration(name, case) for name, case in BENCHMARK_CASES.items()]
    if scaling:
        configurations += scaling_configurations()
    if only:
        names = {alias for each in configurations for alias in _aliases(each)}
        unknown = set(only) - names
        if unknown:
            raise ValueError(f"no configuration {sorted(unknown)}; there are {sorted(names)}")
        configurations = [each for each in configurations if _aliases(each) & set(only)]
    if quick:
        configurations = [
            dataclasses.replace(each, case=tiny(each.case)) for each in configurations
        ]
    return configurations


def _aliases(configuration):
    return {configuration.name, configuration.name.split("-")[0]}
