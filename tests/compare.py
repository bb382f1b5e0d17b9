"""Comparison of tensors with one stated measure."""

import numpy as np


def relative_error(actual, expected):
    """The largest difference over the largest absolute value of expected (1 where that is 0)."""
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    assert actual.shape == expected.shape, f"shape {actual.shape}, expected {expected.shape}"
    if actual.size == 0:
        return 0.0
    scale = np.max(np.abs(expected))
    return float(np.max(np.abs(actual - expected)) / (scale if scale > 0 else 1.0))


def assert_close(actual, expected, tolerance, what=""):
    """relative_error() at most tolerance; the message names what and where it is worst."""
    error = relative_error(actual, expected)
    if error <= tolerance:
        return
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    difference = np.nan_to_num(np.abs(actual - expected), nan=np.inf)
    worst = np.unravel_index(np.argmax(difference), actual.shape)
    raise AssertionError(
        f"{what}: relative error {error:.3g} is more than {tolerance:.3g}; "
        f"at {[int(i) for i in worst]} {actual[worst]!r}, expected {expected[worst]!r}"
    )


def assert_same_bits(actual, expected, what=""):
    """Same type, shape and bits; NaN equals NaN of the same bits."""
    actual, expected = np.ascontiguousarray(actual), np.ascontiguousarray(expected)
    assert actual.dtype == expected.dtype, f"{what}: {actual.dtype}, expected {expected.dtype}"
    assert actual.shape == expected.shape, f"{what}: {actual.shape}, expected {expected.shape}"
    if actual.tobytes() != expected.tobytes():
        difference = relative_error(actual, expected)
        raise AssertionError(f"{what}: bits differ, relative error {difference:.3g}")
