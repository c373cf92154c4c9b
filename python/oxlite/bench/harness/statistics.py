"""Statistics of repeated measurements, and the rules for printing them.

Definitions, each chosen to say something with as few as seven repeats:

noise
    1.4826 x the median absolute deviation / the median: for normal scatter this
    estimates the standard deviation in parts of the value, and one outlier (a
    disturbed repeat) does not move it. Needs two values.
paired improvement
    for each repeat, the value of a row against that of the baseline *in the same
    round*, so that slow drift of the machine cancels; above 1 is better than the
    baseline, whichever way the metric counts.
interval of the median
    the spread that is printed: from the k-th smallest to the k-th largest value, k as
    large as holds the true median with a confidence of 95 %, whatever the values'
    distribution (sign test). Up to eight repeats it is from the smallest to the
    largest, which hold it with 98 % where there are seven, and where there are too few
    for 95 %, with less: 94 % of five, 75 % of three.
percentile
    the nearest rank, a value that was measured, never an interpolation. It is
    withheld unless at least ten samples lie beyond it: fewer say nothing about
    the tail. The largest value is always given.
Jain's index
    (sum x)^2 / (n * sum x^2) of rates: 1 when all are equal, 1/n when one has all.

Percentiles are computed from all latencies, not from a histogram: a few million
integers are cheap and the result is exact.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

PERCENTILES: tuple[float, ...] = (50.0, 95.0, 99.0, 99.9, 99.99)
SAMPLES_BEYOND = 10
SCALE_OF_NORMAL = 1.4826
CONFIDENCE = 0.95

Better = Literal["lower", "higher"]


@dataclass(frozen=True)
class Interval:
    """Where a true median lies, with which ``confidence`` (0 to 1)."""

    low: float
    high: float
    confidence: float


@dataclass(frozen=True)
class Summary:
    """Repeated values of one metric, in its unit; ``interval`` is the median's.

    ``noise`` is relative.
    """

    count: int
    median: float
    interval: Interval
    minimum: float
    maximum: float
    noise: float | None


@dataclass(frozen=True)
class Latencies:
    """A distribution of latencies in nanoseconds.

    Attributes:
        count: how many there are.
        percentiles: by percent; ``None`` where fewer than ten lie beyond.
        maximum_ns: the largest, ``None`` if there are none.
    """

    count: int
    percentiles: dict[float, int | None]
    maximum_ns: int | None


def noise(values: Sequence[float]) -> float | None:
    """The relative scatter of ``values``; ``None`` for fewer than two or a median of 0."""
    if len(values) < 2:
        return None
    middle = statistics.median(values)
    if middle == 0:
        return None
    deviation = statistics.median(abs(value - middle) for value in values)
    return SCALE_OF_NORMAL * deviation / abs(middle)


def summarise(values: Sequence[float]) -> Summary | None:
    """Median, its interval, extremes and noise of ``values``; ``None`` if there are none."""
    interval = median_interval(values)
    if interval is None:
        return None
    return Summary(
        len(values),
        statistics.median(values),
        interval,
        min(values),
        max(values),
        noise(values),
    )


def median_interval(values: Sequence[float]) -> Interval | None:
    """Where the true median of what ``values`` are drawn from lies; ``None`` without values."""
    if not values:
        return None
    ordered = sorted(values)
    count = len(ordered)
    found = Interval(ordered[0], ordered[-1], _held(count, 1))
    # Of the 2**count ways in which values fall below and above the median, those that have fewer
    # than ``rank`` below it: in integers, for 2.0**1024 is no float.
    ways = outside = 1
    for rank in range(2, count // 2 + 1):
        ways = ways * (count - rank + 2) // (rank - 1)
        outside += ways
        held = _held(count, outside)
        if held < CONFIDENCE:
            break
        found = Interval(ordered[rank - 1], ordered[-rank], held)
    return found


def _held(count: int, outside: int) -> float:
    """How probably the median lies inside, if it may be outside in so many ways on either side."""
    return max(0.0, 1.0 - outside / (1 << (count - 1)))


def improvements(
    row: Sequence[float | None], baseline: Sequence[float | None], better: Better
) -> list[float]:
    """How many times better each repeat of ``row`` is than that of ``baseline``.

    Repeats in which either is absent or zero are left out.
    """
    return [ratio for ratio in paired(row, baseline, better) if ratio is not None]


def paired(
    row: Sequence[float | None], baseline: Sequence[float | None], better: Better
) -> list[float | None]:
    """The same in each round; ``None`` where either is absent or zero."""
    return [
        times_better(value, base, better) if value and base else None
        for value, base in zip(row, baseline, strict=False)
    ]


def times_better(value: float, base: float, better: Better) -> float:
    """How many times better ``value`` is than ``base``."""
    return base / value if better == "lower" else value / base


def rank(count: int, percent: float) -> int:
    """The 1-based nearest rank of a percentile among ``count`` sorted values."""
    # In integers, because 0.999 * 10_000 is not 9_990 in floating point.
    thousandths = round(percent * 1000)
    return max(1, -(-count * thousandths // 100_000))


def supported(count: int, percent: float) -> bool:
    """Whether enough of ``count`` samples lie beyond the percentile to print it."""
    return count - rank(count, percent) >= SAMPLES_BEYOND


def latencies(values_ns: Iterable[int], percentiles: Sequence[float] = PERCENTILES) -> Latencies:
    """The distribution of ``values_ns``, with unsupported percentiles withheld."""
    ordered = sorted(values_ns)
    count = len(ordered)
    found = {
        percent: ordered[rank(count, percent) - 1] if supported(count, percent) else None
        for percent in percentiles
    }
    return Latencies(count, found, ordered[-1] if ordered else None)


def jains_index(rates: Sequence[float]) -> float | None:
    """Jain's fairness index of ``rates``; ``None`` if there are none or all are 0."""
    squares = math.fsum(rate * rate for rate in rates)
    if squares == 0:
        return None
    return math.fsum(rates) ** 2 / (len(rates) * squares)
