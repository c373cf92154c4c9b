"""Samples of values, and what the driver's and Django's aggregates make of them."""

import random
from collections.abc import Callable, Iterable

from tests.functions.comparison import Outcome, bound, mark

from oxlite import sqlite3
from oxlite._native import create_any_value_function, create_statistic_functions
from oxlite.django.sqlite3.functions import ANY_VALUE, STATISTICS


class AnyValue(list):  # type: ignore[type-arg]
    """Django's, where the one that is installed has none yet."""

    step = list.append

    def finalize(self) -> object:
        """The first value."""
        return self[0]


FIRST = ANY_VALUE or AnyValue

Sample = list[int | float | str | bytes | None]


def random_sample(chance: random.Random) -> Sample:
    """Numbers of one kind or of several; now and then something that is none."""
    count = chance.choice((0, 1, 2, 3, chance.randrange(4, 40), chance.randrange(4, 40)))
    scale = chance.choice((1.0, 1e-3, 1e6, 1e15, 1e150, 1e-150, 1e-308, 5e-324, 1e308))
    bits = chance.choice((1, 4, 20, 40, 53, 62, 63))
    whole = chance.getrandbits(bits)

    def integer() -> int:
        return chance.choice((1, -1)) * chance.getrandbits(bits)

    def real() -> float:
        return chance.gauss(0, 1) * scale

    def price() -> float:
        return chance.randrange(100_000) / 100

    def any_exponent() -> float:
        return chance.choice((1, -1)) * chance.random() * 2.0 ** chance.randrange(-1074, 1023)

    def near() -> int:
        return min(whole + chance.randrange(3), 2**63 - 1)

    makers = chance.choice(
        ([integer], [integer], [real], [price], [any_exponent], [near], [integer, real, price])
    )
    sample: Sample = [chance.choice(makers)() for _ in range(count)]
    if sample and chance.random() < 0.1:
        odd = chance.choice((None, "1", "", b"1", float("inf"), float("-inf"), -0.0, -(2**63)))
        sample[chance.randrange(len(sample))] = odd
    return sample


def random_values(chance: random.Random) -> Sample:
    """Values of all kinds; texts that begin with ``text:`` may be no Unicode."""
    makers = (
        lambda: chance.choice((None, 0, -1, 2**63 - 1, -(2**63))),
        lambda: chance.choice((0.0, -0.0, 1.5, float("inf"), float("nan"), chance.gauss(0, 1))),
        lambda: chance.choice(("", "a", "a\0b", "\U0001f600é", "a" * 1000)),
        lambda: chance.choice((b"", b"a", b"\0\xff", b"a" * 1000)),
    )
    sample: Sample = [chance.choice(makers)() for _ in range(chance.randrange(6))]
    if sample and chance.random() < 0.1:
        harmed = chance.choice((b"text:\xff", b"text:a\xed\xa0\x80", b"text:ok"))
        sample[chance.randrange(len(sample))] = harmed
    return sample


def aggregated(connection: sqlite3.Connection, name: str, sample: Sample) -> tuple[type, str]:
    """What an aggregate makes of a sample, to the bit, or how it fails."""
    rows = " UNION ALL ".join(f"SELECT {mark(value)}" for value in sample) or "SELECT 1 WHERE 0"
    try:
        (value,) = connection.execute(
            f"WITH t(a) AS ({rows}) SELECT {name}(a) FROM t", [*map(bound, sample)]
        ).fetchone()
    except sqlite3.Error as error:
        return type(error), str(error)
    return type(value), repr(value)


def with_aggregates(
    names: Iterable[str] = (), *, ours: dict[str, type] | None = None
) -> sqlite3.Connection:
    """A connection with Django's aggregates, or with the driver's over others."""
    connection = sqlite3.connect(":memory:")
    if ours is not None:
        create_statistic_functions(connection, ours)
    else:
        for name in names:
            connection.create_aggregate(name, 1, STATISTICS[name])
    return connection


def with_any_value(original: type, *, is_ours: bool) -> sqlite3.Connection:
    """A connection with ``ANY_VALUE``: the driver's over another, or that other."""
    connection = sqlite3.connect(":memory:")
    if is_ours:
        create_any_value_function(connection, original)
    else:
        connection.create_aggregate("ANY_VALUE", 1, original)
    return connection


def compare_samples(count: int, seed: int) -> Outcome:
    """Aggregate so many random samples of numbers by both."""
    found = Outcome()
    counting = {name: _counted(found, name, kind) for name, kind in STATISTICS.items()}
    ours, theirs = with_aggregates(ours=counting), with_aggregates(STATISTICS)
    _compare(found, ours, theirs, list(STATISTICS), random_sample, count, seed)
    return found


def compare_any_values(count: int, seed: int) -> Outcome:
    """Take any value of so many random samples by both."""
    found = Outcome()
    ours = with_any_value(_counted(found, "ANY_VALUE", FIRST), is_ours=True)
    theirs = with_any_value(FIRST, is_ours=False)
    _compare(found, ours, theirs, ["ANY_VALUE"], random_values, count, seed)
    return found


def _counted(found: Outcome, name: str, original: type) -> type:
    class Counted(original):  # type: ignore[misc]
        def __init__(self) -> None:
            found.originals[name] += 1

    return Counted


def _compare(
    found: Outcome,
    ours: sqlite3.Connection,
    theirs: sqlite3.Connection,
    names: list[str],
    source: Callable[[random.Random], Sample],
    count: int,
    seed: int,
) -> None:
    chance = random.Random(seed)
    for _ in range(count):
        name, sample = chance.choice(names), source(chance)
        expected = aggregated(theirs, name, sample)
        found.calls[name] += 1
        found.errors[name] += issubclass(expected[0], Exception)
        if (actual := aggregated(ours, name, sample)) != expected:
            found.differences.append(((name, tuple(sample)), expected, actual))
    ours.close()
    theirs.close()
