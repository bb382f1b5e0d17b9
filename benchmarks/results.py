"""A run's results, looked up by name, and what follows from them."""

import dataclasses
import math

from benchmarks.configurations import ENGINE, OP, PEERS


@dataclasses.dataclass
class Run:
    """One run of the benchmark.

    machines: {threads: worker.describe_machine()}; recurrent: {(configuration, threads):
    worker.machine_for()}; results: worker's results in the order of the run.
    """

    machines: dict
    recurrent: dict
    results: list

    @classmethod
    def from_lines(cls, lines):
        """lines: the workers' lines, parsed, as (threads, {kind: value})."""
        run = cls({}, {}, [])
        for threads, line in lines:
            ((kind, value),) = line.items()
            if kind == "machine":
                run.machines[threads] = value
            elif kind == "recurrent":
                run.recurrent[value["configuration"], threads] = value
            else:
                run.results.append(value)
        return run

    def as_dict(self):
        return {
            "machines": list(self.machines.values()),
            "recurrent_weights": [
                {"threads": threads, **value} for (_, threads), value in self.recurrent.items()
            ],
            "results": [self._with_figures(result) for result in self.results],
        }

    def _with_figures(self, result):
        if "seconds" not in result:
            return result
        key = (result["configuration"], result["pass"], result["threads"])
        return {
            **result,
            "gflops": self.gflops(*key, result["entrant"]),
            "share_of_peak": self.share_of_peak(*key, result["entrant"]),
            "peers_time_over_this": {
                peer: self.ratio(*key, result["entrant"], peer)
                for peer in PEERS
                if self.seconds(*key, peer)
            },
        }

    @property
    def thread_counts(self):
        return sorted(self.machines)

    @property
    def names(self):
        return list(dict.fromkeys(result["configuration"] for result in self.results))

    def find(self, name, pass_, threads, entrant):
        """The result, or {}."""
        key = (name, pass_, threads, entrant)
        for result in self.results:
            if key == tuple(
                result[field] for field in ("configuration", "pass", "threads", "entrant")
            ):
                return result
        return {}

    def seconds(self, name, pass_, threads, entrant):
        """The median, or None."""
        return self.find(name, pass_, threads, entrant).get("seconds")

    def gflops(self, name, pass_, threads, entrant):
        result = self.find(name, pass_, threads, entrant)
        return result["flops"] / result["seconds"] / 1e9 if "seconds" in result else None

    def share_of_peak(self, name, pass_, threads, entrant):
        """Part of the multiply-adds that the machine can do in that time, or None."""
        gflops = self.gflops(name, pass_, threads, entrant)
        if gflops is None:
            return None
        peak = self.machines[threads]["peak_gflops"]
        if not peak:
            return None
        # A vector holds half as many doubles.
        double = self.find(name, pass_, threads, entrant)["case"]["dtype"] == "float64"
        return gflops / (peak / 2 if double else peak)

    def ratio(self, name, pass_, threads, entrant, other):
        """The other's time over the entrant's: above 1 the entrant is faster. None if unknown."""
        ours = self.seconds(name, pass_, threads, entrant)
        theirs = self.seconds(name, pass_, threads, other)
        return theirs / ours if ours and theirs else None

    def ratio_to_fastest(self, name, pass_, threads, peers=PEERS, entrant=OP):
        """ratio() to the fastest of the peers, or None."""
        ratios = [self.ratio(name, pass_, threads, entrant, peer) for peer in peers]
        return min((ratio for ratio in ratios if ratio), default=None)

    def bandwidth_share(self, name, pass_, threads, entrant=ENGINE):
        """The time in which every step reads the recurrent weights once, over the time taken."""
        result = self.find(name, pass_, threads, entrant)
        weights = self.recurrent.get((name, threads), {})
        if "seconds" not in result or not weights.get("gbytes_per_second"):
            return None
        read = result["case"]["T"] * weights["recurrent_bytes"]
        bound = read / (1e9 * weights["gbytes_per_second"])
        return bound / result["seconds"]


def geometric_mean(values):
    """Of those that are not None, or None."""
    values = [value for value in values if value]
    if not values:
        return None
    return math.exp(sum(math.log(value) for value in values) / len(values))
