"""Samples of numbers, and what the driver's and Django's aggregates make of them."""

import random
from collections.abc import Iterable

from tests.functions.comparison import Outcome

from oxlite import sqlite3
from oxlite._native import create_statistic_functions
from oxlite.django.sqlite3.functions import STATISTICS

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


def aggregated(connection: sqlite3.Connection, name: str, sample: Sample) -> tuple[type, str]:
    """What an aggregate makes of a sample, to the bit, or how it fails."""
    rows = " UNION ALL ".join("SELECT ?" for _ in sample) or "SELECT 1 WHERE 0"
    try:
        (value,) = connection.execute(
            f"WITH t(a) AS ({rows}) SELECT {name}(a) FROM t", sample
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


def compare_samples(count: int, seed: int) -> Outcome:
    """Aggregate so many random samples by both."""
    found = Outcome()

    def counted(name: str, original: type) -> type:
        class Counted(original):  # type: ignore[misc]
            def __init__(self) -> None:
                found.originals[name] += 1

        return Counted

    ours = with_aggregates(ours={name: counted(name, kind) for name, kind in STATISTICS.items()})
    theirs = with_aggregates(STATISTICS)
    chance = random.Random(seed)
    names = list(STATISTICS)
    for _ in range(count):
        name, sample = chance.choice(names), random_sample(chance)
        expected = aggregated(theirs, name, sample)
        found.calls[name] += 1
        found.errors[name] += issubclass(expected[0], Exception)
        if (actual := aggregated(ours, name, sample)) != expected:
            found.differences.append(((name, tuple(sample)), expected, actual))
    ours.close()
    theirs.close()
    return found
