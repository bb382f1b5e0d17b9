"""Those who are measured, one module each.

A module has prepare(case, inputs, training, threads) -> Work. inputs are the case's Inputs, in the
case's type; the process has been set up for that many threads. Everything that a program does once
(weights, tracing, compiling) is done in prepare() or in the first call.
"""

import dataclasses
import importlib
from collections.abc import Callable

FORWARD_NAMES = ("output", "output_h", "output_c")
BACKWARD_NAMES = ("input_backprop", "input_h_backprop", "input_c_backprop", "params_backprop")


class Unsupported(Exception):
    """This contestant cannot run this case; the text says why."""


@dataclasses.dataclass
class Work:
    """What is timed.

    call: does the work once, returns when it is done, with the contestant's own tensors.
    values: from call()'s result to NumPy arrays under the ops' names (FORWARD_NAMES and, in
      training, BACKWARD_NAMES; input_c and output_c of lstm only), in the ops' shapes.
    seconds: instead of these two, where the contestant takes its own time: a time per call.
    facts: what else belongs into the result, by name.
    """

    call: Callable | None = None
    values: Callable | None = None
    seconds: Callable | None = None
    facts: dict = dataclasses.field(default_factory=dict)


def prepare(contestant, case, inputs, training, threads):
    """The Work of the contestant of that name. Raises Unsupported."""
    try:
        module = importlib.import_module(f"{__name__}.{contestant}")
    except ImportError as error:
        raise Unsupported(f"not installed: {error}") from error
    return module.prepare(case, inputs, training, threads)
