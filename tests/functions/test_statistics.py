"""The driver's aggregates are Django's: the same results to the bit, and errors."""

import random

import pytest

pytest.importorskip("django", reason="the extra oxlite[django] is not installed")

from tests.functions.samples import (
    FIRST,
    aggregated,
    compare_any_values,
    compare_samples,
    with_aggregates,
    with_any_value,
)

import oxlite
from oxlite import sqlite3
from oxlite.django.sqlite3 import functions


class Refused:
    """An original that is not to be asked."""

    def __init__(self) -> None:
        raise AssertionError


REFUSED: dict[str, type] = dict.fromkeys(functions.STATISTICS, Refused)


def test_random_samples_have_one_outcome(seed: int) -> None:
    found = compare_samples(20_000, seed)
    assert found.differences == []
    assert found.calls.keys() == functions.STATISTICS.keys()
    for name, count in found.calls.items():
        assert found.originals[name] < 0.5 * count
        assert found.errors[name]


@pytest.mark.parametrize("name", functions.STATISTICS)
def test_many_numbers(name: str) -> None:
    ours, theirs = with_aggregates(ours=REFUSED), with_aggregates([name])
    chance = random.Random(7)
    for of in (lambda: chance.gauss(100, 30), lambda: chance.getrandbits(63), lambda: 2**63 - 1.5):
        numbers = [(of(),) for _ in range(30_000)]
        outcomes = []
        for connection in (ours, theirs):
            connection.execute("CREATE TEMP TABLE t (a)")
            connection.executemany("INSERT INTO t VALUES (?)", numbers)
            outcomes += [connection.execute(f"SELECT {name}(a) FROM t").fetchone()]
            connection.execute("DROP TABLE t")
        assert outcomes[0] == outcomes[1]
    ours.close()
    theirs.close()


def test_what_is_no_number_is_djangos(monkeypatch: pytest.MonkeyPatch) -> None:
    """The values before it and after it as well, in their order."""
    taken = []

    class Taken(list):  # type: ignore[type-arg]
        def step(self, value: object) -> None:
            self.append(value)

        def finalize(self) -> int:
            taken.append(list(self))
            return len(self)

    connection = with_aggregates(ours={"VAR_POP": Taken})
    assert aggregated(connection, "VAR_POP", [1, 2.5, None, "a", 3]) == (int, "5")
    assert aggregated(connection, "VAR_POP", [1, float("inf")]) == (int, "2")
    assert aggregated(connection, "VAR_POP", [1, 2]) == (float, "0.25")
    assert taken == [[1, 2.5, None, "a", 3], [1, float("inf")]]
    connection.close()


@pytest.mark.parametrize("sample", [[1, None], [float("inf")]])
def test_an_original_that_cannot_be_made_is_an_error(sample: list[int | float | None]) -> None:
    connection = with_aggregates(ours=REFUSED)
    kind, text = aggregated(connection, "VAR_POP", sample)
    assert kind is sqlite3.OperationalError
    assert text == "user-defined aggregate's '__init__' method raised error"
    connection.close()


def test_a_connection_of_django_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "STATISTICS", REFUSED)
    connection = oxlite.connect(":memory:")
    functions.register_functions(connection)
    query = "WITH t(g, a) AS (VALUES (1, 1), (1, 3), (2, 5)) SELECT VAR_POP(a) FROM t GROUP BY g"
    assert connection.execute(query).fetchall() == [(1,), (0,)]
    connection.close()


def test_any_value_has_one_outcome(seed: int) -> None:
    found = compare_any_values(20_000, seed)
    assert found.differences == []
    assert found.originals["ANY_VALUE"] < 0.1 * found.calls["ANY_VALUE"]
    assert found.errors["ANY_VALUE"]


def test_any_value_is_the_first_of_a_group() -> None:
    connection = with_any_value(Refused, is_ours=True)
    values = "(1, 'é'), (1, 2), (2, NULL), (2, 3), (3, x'ff')"
    query = f"WITH t(g, a) AS (VALUES {values}) SELECT ANY_VALUE(a) FROM t"
    assert connection.execute(f"{query} GROUP BY g").fetchall() == [("é",), (None,), (b"\xff",)]
    assert connection.execute(f"{query} WHERE 0").fetchall() == [(None,)]
    assert connection.execute(f"{query} WHERE 0 GROUP BY g").fetchall() == []
    connection.close()


@pytest.mark.parametrize("sample", [[b"text:\xff"], [1, b"text:\xff", 2], [None, b"text:\xff"]])
def test_a_text_that_is_no_unicode_is_an_error_of_any_value(
    sample: list[bytes | int | None],
) -> None:
    ours, theirs = with_any_value(FIRST, is_ours=True), with_any_value(FIRST, is_ours=False)
    expected = aggregated(theirs, "ANY_VALUE", [*sample])
    assert aggregated(ours, "ANY_VALUE", [*sample]) == expected
    assert expected == (
        sqlite3.OperationalError,
        "user-defined aggregate's 'step' method raised error",
    )
    ours.close()
    theirs.close()
