"""Random calls of the eleven ops: none may end the process or hang, each refusal names its reason.

    python tests/op_fuzz.py --trials 50000 --log build/op_fuzz.jsonl   carries on where the log ends
    python tests/op_fuzz.py --only 1234                                one trial, told at length

The calls are made by worker processes, with a limit on their memory and on the time of a call.
Verdicts that are well:

    right        accepted; values as the reference has them, or only shapes where it has none
    refused      InvalidArgument (ValueError while a graph is built) that names an argument
    tensorflow   refused by TensorFlow itself: types, words and lists that the signature excludes
    no memory    ResourceExhausted
    either       accepted or refused, and both well: damage to a reserve space that does not show,
                 graphs of sizes that no kernel will see

All others begin with "FAULT".
"""

import argparse
import collections
import json
import os
import queue
import re
import resource
import subprocess
import sys
import threading
from pathlib import Path

OWN_MEMORY = 3 << 30  # bytes that a worker may take beyond what it has after its imports
TRIALS_OF_A_WORKER = 1000
START_LIMIT, TRIAL_LIMIT = 300, 120  # seconds; times --patience on a machine that is busy


# ---- The worker ------------------------------------------------------------------------------


def limit_memory():
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + OWN_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def placeholder(spec):
    import tensorflow as tf

    try:
        return tf.compat.v1.placeholder(spec.dtype, spec.shape)
    except ValueError:  # TensorFlow counts elements in 63 bits.
        return tf.compat.v1.placeholder(spec.dtype, None)


def call(trial):
    """Makes the call; returns its outputs as a flat list of arrays, or None if there are none."""
    import numpy as np
    import tensorflow as tf

    from tf_cudnn_rnn_ops import raw_ops

    function = getattr(raw_ops, trial.op)
    inputs, attributes, mode = trial.inputs, trial.attributes, trial.mode
    if mode == "traced":
        with tf.Graph().as_default():
            placeholders = {name: placeholder(spec) for name, spec in inputs.items()}
            function(**placeholders, **attributes)
        return None
    if mode == "eager":
        result = function(**inputs, **attributes)
    elif mode == "constants":
        result = tf.function(lambda: function(**inputs, **attributes), autograph=False)()
    else:
        rng = np.random.default_rng(len(trial.inputs))

        def spec(value):
            if value is None:
                return None
            shape = [int(size) for size in value.shape]
            if mode == "partial":
                shape = [None if rng.random() < 0.5 else size for size in shape]
            return tf.TensorSpec(None if mode == "unknown" else shape, value.dtype)

        present = {name: value for name, value in inputs.items() if value is not None}
        absent = {name: None for name in inputs if name not in present}
        graph = tf.function(
            lambda tensors: function(**tensors, **absent, **attributes),
            autograph=False,
            input_signature=[tf.nest.map_structure(spec, present)],
        )
        result = graph(present)
    # An array without elements cannot have every shape that a tensor can.
    return [each.numpy() if tf.size(each) else None for each in tf.nest.flatten(result)]


def judge_values(trial, outputs):
    """Raises AssertionError where outputs differ from what the reference computes."""
    import numpy as np
    import tensorflow as tf

    import op_fuzz_cases
    from bad_input import FORWARD, SIZE, TO_CANONICAL, TO_PARAMS
    from cases import TOLERANCES
    from compare import assert_close, assert_same_bits
    from tf_cudnn_rnn_ops import reference

    attributes = trial.attributes
    arrays = tf.nest.map_structure(lambda value: value.numpy(), trial.inputs)
    config = {name: attributes[name] for name in ("rnn_mode", "input_mode", "direction")}
    if trial.op in SIZE + TO_CANONICAL + TO_PARAMS:
        config |= {name: int(arrays[name]) for name in ("num_layers", "num_units", "input_size")}
        config["num_proj"] = attributes.get("num_proj", 0)
        if trial.op in TO_PARAMS:
            expected = [reference.pack(arrays["weights"], arrays["biases"])]
        elif trial.op in TO_CANONICAL:
            weights, biases = reference.unpack(arrays["params"], **config)
            expected = [*weights, *biases]
        elif config["num_layers"] > 1000:
            return
        else:
            size = reference.params_size(**config)
            expected = [np.array([size], attributes["S"].as_numpy_dtype)]
        for value, wanted in zip(outputs, expected, strict=True):
            if wanted.size:
                assert_same_bits(value, wanted)
        return

    T, B = op_fuzz_cases.sizes_of(trial)[2:4]
    config |= {"num_proj": attributes.get("num_proj", 0)}
    config["time_major"] = attributes.get("time_major", True)
    names = ("input", "input_h", "input_c", "params")
    config |= {name: np.asarray(arrays[name], np.float64) for name in names}
    config["sequence_lengths"] = arrays.get("sequence_lengths", np.full([B], T, np.int32))
    tolerance = TOLERANCES[trial.inputs["input"].dtype.name]
    if trial.op in FORWARD:
        with np.errstate(all="ignore"):
            expected = reference.forward(**config)
        for value, wanted, name in zip(outputs, expected, ("output", "h", "c"), strict=False):
            if name == "c" and attributes["rnn_mode"] != "lstm":
                assert value is None
                continue
            wanted = np.asarray(wanted)
            value = np.zeros(wanted.shape) if value is None else value.astype(np.float64)
            finite = np.isfinite(wanted)
            # A gate that an infinity closes is not quite 0: what it multiplies may stay infinite
            # where the reference has 0 times infinity.
            known = finite | np.isinf(wanted) if trial.infinite else np.full(wanted.shape, True)
            assert np.array_equal(np.isnan(value[known]), np.isnan(wanted[known])), f"{name}: NaN"
            beyond = np.isinf(wanted)
            assert np.array_equal(value[beyond], wanted[beyond]), f"{name}: infinities"
            assert_close(value[finite], wanted[finite], tolerance, name)
        return
    if arrays["params"].size > 200:
        return
    lstm = attributes["rnn_mode"] == "lstm"
    for name in ("output_backprop", "output_h_backprop", "output_c_backprop"):
        config[name] = np.asarray(arrays[name], np.float64)
    if not lstm:
        config["input_c"] = config["output_c_backprop"] = np.zeros([0])
    if T == 0 or B == 0:
        states = config["output_h_backprop"], config["output_c_backprop"]
        expected = (config["input"], *states, np.zeros_like(config["params"]))
    else:
        expected = reference.gradients(**config)
    for value, wanted, name in zip(outputs, expected, ("x", "h", "c", "params"), strict=True):
        if name == "c" and not lstm:
            assert value is None or not np.any(value)
        elif np.size(wanted):
            assert_close(value, wanted, max(1e-6, 2 * tolerance), name)


def has_values(trial):
    """Whether the reference can tell what comes out."""
    if not trial.values or trial.huge:
        return False
    attributes, inputs = trial.attributes, trial.inputs
    if "input" not in inputs:
        return True
    pseudo_layers = inputs["input_h"].shape[0 if attributes.get("time_major", True) else 1]
    # The masks are the library's own.
    drops = attributes["dropout"] > 0 and attributes.get("is_training", True)
    return not (drops and pseudo_layers > 1)


def verdict_of(trial):
    """(verdict, detail)."""
    import tensorflow as tf

    from op_fuzz_cases import attribute_names, expectation, input_names

    expected, why = expectation(trial)
    try:
        outputs = call(trial)
    except Exception as error:
        kind, message = type(error), getattr(error, "message", str(error))
        detail = f"{kind.__name__}: {message[:600]}"
        if isinstance(error, (tf.errors.ResourceExhaustedError, MemoryError)):
            return ("no memory" if expected in ("memory", "either") else "FAULT: memory"), detail
        if expected == "tensorflow":
            well = isinstance(error, (TypeError, ValueError, tf.errors.InvalidArgumentError))
            # What TensorFlow makes of a captured tensor whose type is not the input's.
            well |= kind is AssertionError and message == "Unreachable"
            return ("tensorflow" if well else "FAULT: another kind of error"), detail
        if expected in ("accept", "memory"):
            return "FAULT: refused what is right", detail
        building = trial.mode != "eager"
        if not isinstance(error, tf.errors.InvalidArgumentError) and not (
            building and kind is ValueError
        ):
            return "FAULT: another kind of error", f"{detail} ({why})"
        # Without the node, which TensorFlow adds with all its attributes.
        words = re.split(r"\[\[\{|\{\{node", message)[0]
        names = [*input_names(trial.op), *attribute_names(trial.op)]
        named = [name for name in names if re.search(rf"\b{name}\b", words)]
        # Of two that differ, either may be named where the rest does not tell which is right.
        if trial.mode != "partial" and why == trial.isolated and why not in named:
            return f"FAULT: does not name {why}", detail
        if not named or not re.search(r"must be|more than fits|must be at most", message):
            # TensorFlow's own words for shapes that it has no room for.
            return "FAULT: names no argument", f"{detail} ({why})"
        return ("either" if expected == "either" else "refused"), detail
    if expected == "refuse":
        return "FAULT: accepted what is wrong", why
    if expected == "tensorflow":
        return "FAULT: accepted what TensorFlow should refuse", why
    if expected == "either" or outputs is None:
        return "either", ""
    if has_values(trial):
        try:
            judge_values(trial, outputs)
        except AssertionError as error:
            return "FAULT: wrong values", str(error)[:600]
        return "right", "values"
    return "right", ""


def work(seed, numbers):
    import tensorflow as tf

    import op_fuzz_cases

    tf.config.threading.set_intra_op_parallelism_threads(2)
    tf.constant(0) + 1  # starts TensorFlow's threads, whose stacks are not the trials' memory
    limit_memory()
    say = lambda **message: print(json.dumps(message), flush=True)  # noqa: E731
    with tf.device("/CPU:0"):
        for number in numbers:
            say(begin=number)
            trial = op_fuzz_cases.make_trial(seed, number)
            described = trial.describe()
            say(made=number, **described)
            verdict, detail = verdict_of(trial)
            say(end=number, op=trial.op, mode=trial.mode, verdict=verdict, detail=detail)


# ---- The driver ------------------------------------------------------------------------------


def environment():
    root = Path(__file__).resolve().parent
    paths = [str(root), str(root.parent), os.environ.get("PYTHONPATH", "")]
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        # Address space is what the workers' memory is measured in.
        "MALLOC_ARENA_MAX": "2",
    }


def run_worker(seed, numbers, patience=1):
    """Yields the results of one worker, up to the trial that it does not survive, with that."""
    process = subprocess.Popen(
        [sys.executable, __file__, "--worker", "--seed", str(seed)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    lines = queue.Queue()
    errors = collections.deque(maxlen=50)

    def read(stream, put):
        for line in stream:
            put(line)
        put(None)

    readers = [
        threading.Thread(target=read, args=arguments, daemon=True)
        for arguments in ((process.stdout, lines.put), (process.stderr, errors.append))
    ]
    for reader in readers:
        reader.start()
    process.stdin.write(json.dumps(list(numbers)))
    process.stdin.close()
    begun, made, limit, hung = None, {}, START_LIMIT, False
    while True:
        try:
            line = lines.get(timeout=limit * patience)
        except queue.Empty:
            hung = True
            process.kill()
            break
        if line is None:
            break
        limit = TRIAL_LIMIT
        try:
            message = json.loads(line)
        except ValueError:
            continue  # something that is not ours, printed
        if "begin" in message:
            begun, made = message["begin"], {}
        elif "made" in message:
            made = message
        else:
            begun = None
            if message["verdict"].startswith("FAULT"):
                message["call"] = made
            yield message
    status = process.wait()
    readers[1].join()
    tail = "".join(line for line in errors if line)[-2000:]
    if begun is not None:
        verdict = "FAULT: hang" if hung else f"FAULT: the process ended with status {status}"
        yield {
            "end": begun,
            "op": made.get("op"),
            "mode": made.get("mode"),
            "verdict": verdict,
            "detail": tail,
            "call": made,
        }
    elif status != 0:
        raise RuntimeError(f"a worker ended with status {status} outside of trials: {tail}")


def run_trials(seed, numbers, log=None, patience=1):
    """Yields the results of all trials, in order, from one worker after another."""
    numbers = list(numbers)
    while numbers:
        done = set()
        for result in run_worker(seed, numbers[:TRIALS_OF_A_WORKER], patience):
            done.add(result["end"])
            if log is not None:
                log.write(json.dumps(result) + "\n")
                log.flush()
            yield result
        numbers = [number for number in numbers if number not in done]


def table(results):
    """Counts by op and verdict, as text."""
    kinds = ["right", "refused", "tensorflow", "no memory", "either"]
    counts = collections.Counter((result["op"], result["verdict"]) for result in results)
    kinds += sorted({verdict for _, verdict in counts} - set(kinds))
    ops = sorted({str(op) for op, _ in counts})
    lines = [f"| op | trials | {' | '.join(kinds)} |", "|---" * (len(kinds) + 2) + "|"]
    for op in [*ops, "all"]:
        row = [sum(counts[each, kind] for each in (ops if op == "all" else [op])) for kind in kinds]
        lines.append(f"| {op} | {sum(row)} | {' | '.join(map(str, row))} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=Path, help="a file to which results are added, line by line")
    parser.add_argument("--patience", type=float, default=1, help="a factor for time limits")
    parser.add_argument("--only", type=int, nargs="+", help="numbers of trials, in this process")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work(options.seed, json.load(sys.stdin))
    if options.only:
        return work(options.seed, options.only)

    results = {}
    if options.log and options.log.exists():
        for line in options.log.read_text().splitlines():
            result = json.loads(line)
            # What has been mended since is tried again.
            if not result["verdict"].startswith("FAULT"):
                results[result["end"]] = result
    missing = [number for number in range(options.trials) if number not in results]
    log = None
    if options.log:
        options.log.parent.mkdir(parents=True, exist_ok=True)
        log = options.log.open("a")
    for result in run_trials(options.seed, missing, log, options.patience):
        results[result["end"]] = result
        if result["verdict"].startswith("FAULT"):
            print(json.dumps(result, indent=1), flush=True)
    print(table([results[number] for number in range(options.trials)]))
    return None


if __name__ == "__main__":
    sys.exit(main())
