"""A permutation test of many rows at once: would chance alone divide the rounds so?

The rounds of two runs are divided anew into two groups, the same rounds for every row, and for each
division the row that differs most counts (Westfall and Young's max-T). The probability of a row is
the part of the divisions in which the most different row differs as much as this one does between
the two runs. So it accounts for how many rows are looked at, and for their going up and down
together, and its smallest value depends on the number of rounds alone.

How much a row differs is the square of Student's t, of logarithms: rows of different scatter count
alike. All divisions are looked at where there are no more than :data:`EXACT`, else seeded random
ones.

Invariant: the same figures give the same probabilities.
"""

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

EXACT = 4000
"""Seven rounds against seven have 3432 divisions."""
DRAWN = 4000

ALIKE = 1e-9
"""Logarithms that are closer differ by rounding."""

Division = tuple[int, ...]
"""The indices of the rounds in the first group."""


@dataclass(frozen=True)
class Groups:
    """One figure in the rounds of two runs, in order; ``None`` in rounds that lack it."""

    first: Sequence[float | None]
    second: Sequence[float | None]

    def known(self) -> tuple[list[float], list[float]]:
        """The figures that there are."""
        return _known(self.first), _known(self.second)

    def rarest(self) -> float:
        """The smallest probability that so many figures can have."""
        first, second = (len(values) for values in self.known())
        return min(1.0, 2 / math.comb(first + second, first))


def repeats_needed(alpha: float) -> int:
    """How many repeats each run must have so that any row can be as improbable as ``alpha``."""
    return next(count for count in itertools.count(2) if 2 / math.comb(2 * count, count) <= alpha)


def together(rows: Sequence[Groups]) -> list[float]:
    """The probability of each row; two-sided, and corrected for there being all of them.

    Args:
        rows: of positive figures, at least one in each run, of the same rounds.
    """
    if not rows:
        return []
    first = max(len(row.first) for row in rows)
    second = max(len(row.second) for row in rows)
    differ = [_difference(row, first, second) for row in rows]
    # What differs as much but for rounding differs as much.
    found = [one(tuple(range(first))) * (1 - ALIKE) for one in differ]
    as_much = [0] * len(rows)
    count = 0
    for division in _divisions(first + second, first):
        count += 1
        most = max(one(division) for one in differ)
        for index, value in enumerate(found):
            as_much[index] += most >= value
    if math.comb(first + second, first) > EXACT:
        # The division that was found is one of all.
        return [(times + 1) / (count + 1) for times in as_much]
    return [times / count for times in as_much]


def _divisions(rounds: int, first: int) -> Iterator[Division]:
    if math.comb(rounds, first) <= EXACT:
        yield from itertools.combinations(range(rounds), first)
        return
    stream = random.Random(1)
    for _ in range(DRAWN):
        yield tuple(stream.sample(range(rounds), first))


def _difference(row: Groups, first: int, second: int) -> Callable[[Division], float]:
    """How much a row differs in a division: t squared."""
    figures = [
        *row.first, *[None] * (first - len(row.first)),
        *row.second, *[None] * (second - len(row.second)),
    ]  # fmt: skip
    logs = [None if value is None else math.log(value) for value in figures]
    known = _known(logs)
    count, mean = len(known), math.fsum(known) / len(known)
    centred = [0.0 if log is None else log - mean for log in logs]
    present = [int(log is not None) for log in logs]
    scatter = math.fsum(value * value for value in centred)
    complete = count == len(logs)

    def difference(division: Division) -> float:
        chosen = first if complete else sum([present[index] for index in division])
        others = count - chosen
        if not chosen or not others or scatter <= count * ALIKE * ALIKE:
            return 0.0
        apart = sum([centred[index] for index in division])
        between = apart * apart * count / (chosen * others)
        # Without scatter inside the groups t would be infinite, or rounding alone.
        part = min(between / scatter, 1 - ALIKE)
        if part < ALIKE * ALIKE:
            return 0.0
        return (count - 2) * part / (1 - part)

    return difference


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]
