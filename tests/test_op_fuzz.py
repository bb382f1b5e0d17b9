"""Two thousand random calls of the ops; docs/reliability.md has the figures of fifty thousand."""

import concurrent.futures
import json

import op_fuzz

TRIALS = 2000


def test_random_calls():
    """No call ends the process, hangs, is refused without a reason or accepted without a right."""

    def run(numbers):
        return list(op_fuzz.run_trials(0, numbers))

    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        halves = threads.map(run, (range(0, TRIALS, 2), range(1, TRIALS, 2)))
        results = [result for half in halves for result in half]
    assert sorted(result["end"] for result in results) == list(range(TRIALS))
    faults = [result for result in results if result["verdict"].startswith("FAULT")]
    assert not faults, json.dumps(faults[:5], indent=1)
    # Each way that a call can go is there, and every op was right at least once.
    assert {"right", "refused", "tensorflow", "either"} <= {each["verdict"] for each in results}
    right = {each["op"] for each in results if each["verdict"] == "right"}
    assert len(right) == 11


def test_trials_repeat():
    """A trial is known by its number."""
    import op_fuzz_cases

    for number in range(20):
        first, second = (op_fuzz_cases.make_trial(3, number).describe() for _ in range(2))
        assert first == second
