"""What workers hand over of single operations: read back whole, and counted by what it came to."""

import sqlite3
from array import array

import pytest

from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.model import Metric
from oxlite.bench.harness.outcomes import (
    Errors,
    Outcome,
    digest,
    packed,
    percentiles_ms,
    together,
    unpacked,
)

LOCKED = "OperationalError: database is locked"
FULL_DISK = "OperationalError: database or disk is full"


def test_a_payload_is_read_back() -> None:
    arrays = [array("Q", [1, 2]), array("Q"), array("H", [3])]
    shape = [("Q", 2), ("Q", 0), ("H", 1)]
    assert unpacked(packed(arrays), shape) == arrays
    assert together(arrays[:2] * 2) == array("Q", [1, 2, 1, 2])


@pytest.mark.parametrize("shape", [[("Q", 1)], [("Q", 3)], [("Q", 2), ("H", 1)], []])
def test_a_payload_of_another_length_is_refused(shape: list[tuple[str, int]]) -> None:
    with pytest.raises(VerificationError, match="does not account for what it did"):
        unpacked(packed([array("Q", [1, 2])]), shape)


def test_an_outcome_tells_what_was_done_from_what_may_have_been() -> None:
    outcome = Outcome(
        array("Q", [10, 20, 30, 40, 50]), array("H", [0, 1, 2, 0, 1]), [LOCKED, FULL_DISK]
    )
    assert outcome.made("abcde") == (["a", "d"], ["c"])
    assert outcome.made("abcdefg") == (["a", "d"], ["c"])
    assert outcome.done() == 2
    assert outcome.times_of_done_ns() == array("Q", [10, 40])
    assert outcome.failed() == {LOCKED: 2, FULL_DISK: 1}


def test_errors_of_one_kind_have_one_number() -> None:
    errors = Errors()
    numbers = [
        errors.number(sqlite3.OperationalError(text))
        for text in ("database is locked", "database or disk is full", "database is locked")
    ]
    assert numbers == [1, 2, 1]
    assert errors.kinds() == [LOCKED, FULL_DISK]


def test_a_percentile_that_too_few_support_is_left_out() -> None:
    p50, p99 = (Metric(name, name, "lower") for name in ("p50_ms", "p99_ms"))
    values_ns = [1_000_000 * each for each in range(1, 101)]
    assert percentiles_ms(values_ns, {p50: 50.0, p99: 99.0}) == {"p50_ms": 50.0}


def test_a_digest_is_of_the_whole_work() -> None:
    assert digest(([1, 2], 3)) == digest(([1, 2], 3)) != digest(([1, 2], 4))
