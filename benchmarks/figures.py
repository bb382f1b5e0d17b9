"""The figures that the project aims at, from a run."""

import dataclasses

from benchmarks.configurations import ENGINE, OP, PASSES
from benchmarks.results import geometric_mean

# Of the means.
MEAN_NAMES = [f"c{number}" for number in range(1, 11)] + ["c12"]
KERAS = ("keras", "keras_xla")


@dataclasses.dataclass
class Figure:
    """What is aimed at.

    value: None where it was not measured; at_most: whether the value is to stay below the bound.
    """

    what: str
    value: float | None
    bound: float
    at_most: bool = False

    @property
    def reached(self):
        """None where there is no value."""
        if self.value is None:
            return None
        return self.value <= self.bound if self.at_most else self.value >= self.bound


def figures(run):
    """All of them, with the largest number of threads of the run."""
    return [
        *_against_peers(run),
        *_against_the_machine(run),
        *_against_ourselves(run),
        *_scaling(run),
    ]


def _against_peers(run):
    threads = run.thread_counts[-1]
    for pass_ in PASSES:
        ratios = {name: run.ratio_to_fastest(name, pass_, threads) for name in run.names}
        ratios = {name: ratio for name, ratio in ratios.items() if ratio}
        slowest = min(ratios, key=ratios.get, default=None)
        yield Figure(
            f"{pass_}: smallest ratio to the fastest peer ({slowest})", ratios.get(slowest), 1.0
        )
    for pass_, torch_bound, keras_bound in (("inference", 1.8, 2.5), ("training", 1.8, 4.0)):
        yield Figure(
            f"{pass_}: geometric mean against PyTorch",
            geometric_mean(run.ratio(name, pass_, threads, OP, "pytorch") for name in MEAN_NAMES),
            torch_bound,
        )
        yield Figure(
            f"{pass_}: geometric mean against the better of Keras and Keras with XLA",
            geometric_mean(
                run.ratio_to_fastest(name, pass_, threads, KERAS) for name in MEAN_NAMES
            ),
            keras_bound,
        )
    keras = run.ratio("c11", "inference", threads, "keras", OP)
    yield Figure("c11: op over Keras", keras, 1 / 3, at_most=True)


def _against_the_machine(run):
    threads = run.thread_counts[-1]
    for pass_, bound in (("inference", 0.75), ("training", 0.65)):
        for name in ("c3", "c5", "c7"):
            share = run.share_of_peak(name, pass_, threads, ENGINE)
            yield Figure(f"{name} {pass_}: engine's share of the peak", share, bound)
    share = run.bandwidth_share("c4", "inference", threads)
    yield Figure("c4 inference: engine's share of the read bandwidth", share, 0.6)


def _against_ourselves(run):
    threads = run.thread_counts[-1]
    for pass_ in PASSES:
        for entrant in (OP, ENGINE):
            padded = run.ratio("c9", pass_, threads, f"{entrant}_unpadded", entrant)
            yield Figure(
                f"c9 {pass_}: {entrant} over its valid steps alone", padded, 1.15, at_most=True
            )
        for dtype in ("bfloat16", "float16"):
            narrow = run.ratio(f"c13-{dtype}", pass_, threads, f"{OP}_float32", OP)
            yield Figure(f"c13 {pass_}: {dtype} over float", narrow, 1.3, at_most=True)
    reserves = [run.find(name, "training", threads, OP).get("reserve_share") for name in MEAN_NAMES]
    largest = max((share for share in reserves if share), default=None)
    what = "training: largest reserve_space over (G + 2)·H per valid step, layer and direction"
    # A hundredth for its header.
    yield Figure(what, largest, 1.01, at_most=True)
    ours = run.find("c7", "training", threads, OP).get("peak_bytes")
    theirs = run.find("c7", "training", threads, "pytorch").get("peak_bytes")
    memory = ours / theirs if ours and theirs else None
    yield Figure("c7 training: peak memory of the op over PyTorch's", memory, 1.0, at_most=True)


def _scaling(run):
    threads = run.thread_counts[-1]
    for name in ("c3", "c5", "c6", "c7"):
        for pass_ in PASSES:
            one = run.seconds(name, pass_, 1, ENGINE)
            all_ = run.seconds(name, pass_, threads, ENGINE)
            speedup = one / all_ if one and all_ and threads > 1 else None
            yield Figure(f"{name} {pass_}: engine, {threads} threads over 1", speedup, 1.8)
    for pass_ in PASSES:
        base = run.gflops("c3", pass_, threads, ENGINE)
        for name in run.names:
            rate = run.gflops(name, pass_, threads, ENGINE)
            if name.startswith("c3-") and base and rate:
                # Time linear in T and B is work per second that does not fall.
                yield Figure(
                    f"{name} {pass_}: engine's GFLOP/s over those of c3", rate / base, 0.95
                )
