"""Times of several contestants in turn, and the memory that one call takes."""

import ctypes
import dataclasses
import gc
import math
import statistics
import time
from pathlib import Path

# After a call, the thread pools of OpenMP, Eigen and ONNX Runtime spin for up to a few
# milliseconds; the next contestant is not to pay for that.
_PAUSE_SECONDS = 0.02
# A call that is longer than this needs no other one before it to warm the caches.
_LONG_SECONDS = 0.25


@dataclasses.dataclass
class Times:
    """Seconds per call: one number for each round."""

    samples: list

    def as_dict(self):
        return {
            "seconds": statistics.median(self.samples),
            "fastest": min(self.samples),
            "slowest": max(self.samples),
            "samples": len(self.samples),
        }


def sampler(call, sample_seconds):
    """A function that times call() once more: seconds per call, over at least sample_seconds."""
    start = time.perf_counter()
    call()
    once = time.perf_counter() - start
    repeats = max(1, math.ceil(sample_seconds / max(once, 1e-7)))

    def sample():
        if once < _LONG_SECONDS:
            call()
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        return (time.perf_counter() - start) / repeats

    return sample


def measure_in_turn(samplers, rounds):
    """Runs every sampler once per round; {name: Times}.

    samplers: {name: function that returns seconds}. What disturbs the machine for a while then
    disturbs all of them, and every second round goes backwards so that nobody always follows the
    same predecessor.
    """
    samples = {name: [] for name in samplers}
    gc.collect()
    gc.disable()
    try:
        for round_number in range(rounds):
            order = list(samplers) if round_number % 2 == 0 else list(reversed(samplers))
            for name in order:
                time.sleep(_PAUSE_SECONDS)
                samples[name].append(samplers[name]())
    finally:
        gc.enable()
    return {name: Times(values) for name, values in samples.items()}


def peak_bytes(call):
    """Bytes by which call() raises the memory of the process at its highest, or None.

    None where the kernel does not keep such a mark. What malloc holds of earlier calls is given
    back first.
    """
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
        before = _status_bytes("VmRSS")
        call()
        return max(0, _status_bytes("VmHWM") - before)
    except (AttributeError, OSError, StopIteration):
        return None


def _status_bytes(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith(field + ":"))
    return int(line.split()[1]) * 1024
