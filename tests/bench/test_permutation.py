"""The permutation test: it counts divisions, of all rows at once."""

import random

import pytest

from oxlite.bench.permutation import Groups, repeats_needed, together


def test_divisions_are_counted() -> None:
    # All of the first are below all of the second: 2 of the 70 divisions are as far apart.
    assert together([Groups([1, 2, 3, 4], [5, 6, 7, 8])]) == [pytest.approx(2 / 70)]
    assert together([Groups([1, 2, 4, 8], [1, 2, 4, 8])]) == [1]
    assert together([Groups([1.0], [1.2])]) == [1]
    assert together([]) == []


def test_too_many_divisions_are_drawn_with_a_seed() -> None:
    stream = random.Random(1)
    groups = Groups(*([stream.gauss(m, 0.1) for _ in range(20)] for m in (1.0, 1.2)))
    assert together([groups]) == together([groups])
    assert 0 < together([groups])[0] < 0.001


def test_the_smallest_probability_is_that_of_one_row_however_many_there_are() -> None:
    stream = random.Random(2)

    def row(factor: float) -> Groups:
        return Groups(*([m * stream.gauss(1, 0.01) for _ in range(5)] for m in (1.0, factor)))

    rows = [row(2.0), *(row(1.0) for _ in range(40))]
    found = together(rows)
    assert found[0] == pytest.approx(2 / 252)
    # The more rows are looked at, the more one of them differs by chance.
    assert found[1] > together(rows[1:2])[0]


def test_what_does_not_scatter_is_no_division_by_zero() -> None:
    assert together([Groups([3.0] * 5, [3.0] * 5)]) == [1]
    assert together([Groups([3.0] * 5, [4.0] * 5)]) == [pytest.approx(2 / 252)]


def test_a_round_that_lacks_the_figure_is_left_out() -> None:
    groups = Groups([1, 2, 3, 4, None], [None, 5, 6, 7, 8])
    assert groups.rarest() == pytest.approx(2 / 70)
    [probability] = together([groups])
    assert 2 / 252 <= probability < 0.1


def test_how_many_repeats_it_takes() -> None:
    assert [repeats_needed(alpha) for alpha in (0.5, 0.05, 0.01)] == [2, 4, 5]
