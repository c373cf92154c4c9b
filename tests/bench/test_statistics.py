"""The statistics: their properties, and what they refuse to say."""

import math
import random
import statistics as standard

import pytest

from oxlite.bench.harness import statistics


def test_a_summary_is_median_interval_and_extremes() -> None:
    values = [9.0, 1.0, 2.0, 8.0, 3.0, 7.0, 4.0, 6.0, 5.0]
    summary = statistics.summarise(values)
    assert summary is not None
    assert (summary.count, summary.median, summary.minimum, summary.maximum) == (9, 5.0, 1.0, 9.0)
    assert summary.interval == statistics.median_interval(values)
    assert (summary.interval.low, summary.interval.high) == (2.0, 8.0)


def test_nothing_has_no_summary() -> None:
    assert statistics.summarise([]) is None


def test_noise_is_relative_and_needs_two_values() -> None:
    assert statistics.noise([5.0]) is None
    assert statistics.noise([0.0, 0.0]) is None
    assert statistics.noise([7.0] * 5) == 0.0
    once = statistics.noise([9.0, 10.0, 11.0])
    assert once == pytest.approx(statistics.noise([90.0, 100.0, 110.0]))


def test_noise_ignores_one_outlier() -> None:
    calm = [10.0, 10.1, 9.9, 10.0, 10.1, 9.9]
    with_outlier = statistics.noise([*calm, 1000.0])
    assert with_outlier is not None
    assert with_outlier < 0.05


def test_noise_estimates_the_standard_deviation() -> None:
    source = random.Random(1)
    values = [source.gauss(100.0, 5.0) for _ in range(20_000)]
    assert statistics.noise(values) == pytest.approx(0.05, rel=0.05)


def test_an_improvement_is_above_one_when_better_whichever_way_the_metric_counts() -> None:
    assert statistics.improvements([1.0], [2.0], "lower") == [2.0]
    assert statistics.improvements([2.0], [1.0], "higher") == [2.0]


def test_improvements_pair_repeats_and_so_cancel_drift() -> None:
    baseline = [1.0, 2.0, 4.0]
    row = [0.5, 1.0, 2.0]
    assert statistics.improvements(row, baseline, "lower") == [2.0, 2.0, 2.0]


def test_improvements_leave_out_what_is_absent_or_zero() -> None:
    assert statistics.improvements([None, 0.0, 1.0], [1.0, 1.0, 3.0], "lower") == [3.0]


@pytest.mark.parametrize("percent", statistics.PERCENTILES)
def test_a_percentile_needs_ten_samples_beyond_it(percent: float) -> None:
    least = round(10 / (1 - percent / 100))
    assert statistics.supported(least, percent)
    assert not statistics.supported(least - 1, percent)


def test_percentiles_are_withheld_and_the_maximum_never() -> None:
    found = statistics.latencies(range(1, 1001))
    assert found.percentiles[50.0] == 500
    assert found.percentiles[99.0] == 990
    assert found.percentiles[99.9] is None
    assert found.maximum_ns == 1000
    assert found.count == 1000


def test_percentiles_are_measured_values_in_rising_order() -> None:
    source = random.Random(2)
    values = [source.randrange(10**9) for _ in range(200_000)]
    found = statistics.latencies(values)
    kept = [value for value in found.percentiles.values() if value is not None]
    assert len(kept) == len(statistics.PERCENTILES)
    assert kept == sorted(kept)
    assert set(kept) <= set(values)
    assert found.percentiles[50.0] == sorted(values)[100_000 - 1]
    assert abs(standard.median(values) - kept[0]) < 10**6


def test_no_latencies_have_no_maximum() -> None:
    assert statistics.latencies([]).maximum_ns is None


def test_jains_index_is_one_when_equal_and_one_nth_when_one_has_all() -> None:
    assert statistics.jains_index([3.0] * 25) == pytest.approx(1.0)
    assert statistics.jains_index([5.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    assert statistics.jains_index([1.0, 2.0]) == pytest.approx(statistics.jains_index([10.0, 20.0]))
    assert statistics.jains_index([]) is None
    assert statistics.jains_index([0.0, 0.0]) is None


@pytest.mark.parametrize(
    ("count", "rank", "confidence"),
    [(1, 1, 0.0), (5, 1, 0.9375), (6, 1, 0.96875), (8, 1, 0.9921875), (9, 2, 0.9609375)],
)
def test_the_interval_of_a_median_is_of_order_statistics(
    count: int, rank: int, confidence: float
) -> None:
    values = [float(value) for value in range(count)]
    random.Random(count).shuffle(values)
    found = statistics.median_interval(values)
    assert found == statistics.Interval(rank - 1.0, count - float(rank), confidence)


def test_the_interval_holds_the_true_median_as_often_as_it_says() -> None:
    source = random.Random(7)
    held = 0
    for _ in range(4000):
        found = statistics.median_interval([source.expovariate(1.0) for _ in range(9)])
        assert found is not None
        held += found.low <= math.log(2.0) <= found.high
    assert held / 4000 == pytest.approx(0.961, abs=0.012)


def test_many_values_have_an_interval() -> None:
    found = statistics.median_interval([float(value) for value in range(2000)])
    assert found is not None
    # The k-th smallest to largest, of a binomial distribution: about 1000 - 1.96 * sqrt(500).
    assert (found.low, found.high) == (955.0, 1044.0)
    assert found.confidence == pytest.approx(0.95, abs=0.005)


def test_nothing_has_no_interval() -> None:
    assert statistics.median_interval([]) is None
