"""The rounds: interleaved, paired, bounded by time, and not stopped by one failure."""

from array import array
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from oxlite.bench import WorkerError
from oxlite.bench.errors import Interrupted
from oxlite.bench.harness.model import Metric, Plan, Result, Sample
from oxlite.bench.harness.run import CutShort, order, run
from oxlite.bench.scenarios.scenario import Scenario

A, B = Scenario("stdlib", journal="rollback"), Scenario("stdlib", journal="wal")
WALL = Metric("wall_seconds", "wall time", "lower")


def outcome(sample: Sample) -> str:
    return f"{sample.figures['wall_seconds']}"


def test_rounds_interleave_and_warm_up_is_forgotten(scripted: Any, listener: Any) -> None:  # noqa: ANN401
    session = scripted(lambda label, turn: Sample({"wall_seconds": float(turn)}))
    rows, orders = run(session, [A, B], Plan(repeats=2), listener, outcome)
    assert session.turns == [A.label, B.label, B.label, A.label, B.label, A.label]
    assert orders == [[B.label, A.label], [B.label, A.label]]
    assert rows[0].figures("wall_seconds") == [1.0, 2.0]


@pytest.mark.parametrize("count", range(1, 25))
def test_orders_are_balanced_for_place_and_predecessor(count: int) -> None:
    span = 2 * count
    orders = [order(count, number) for number in range(span)]
    assert all(sorted(turns) == list(range(count)) for turns in orders)
    for place in range(count):
        assert set(Counter(turns[place] for turns in orders).values()) == {2}
    followed = Counter(pair for turns in orders for pair in pairwise(turns))
    assert len(followed) == count * (count - 1)
    assert all(times == 2 for times in followed.values())
    assert order(count, span + 1) == order(count, 1)


@pytest.mark.parametrize("count", [3, 5, 15, 20])
def test_no_predecessor_is_frequent_in_seven_rounds(count: int) -> None:
    followed = Counter(pair for number in range(1, 8) for pair in pairwise(order(count, number)))
    assert max(followed.values()) <= (4 if count == 3 else 2)


def test_the_time_budget_ends_it_but_not_before_one_round(scripted: Any, listener: Any) -> None:  # noqa: ANN401
    now = [0.0]

    def answer(label: str, turn: int) -> Sample:
        now[0] += 10.0
        return Sample({"wall_seconds": 1.0})

    plan = Plan(repeats=7, time_budget_seconds=1.0)
    _, orders = run(scripted(answer), [A], plan, listener, outcome, clock=lambda: now[0])
    assert len(orders) == 1
    assert listener.heard[-1] == ("stopped", "1", "7")
    plan = Plan(repeats=7, time_budget_seconds=45.0)
    _, orders = run(scripted(answer), [A], plan, listener, outcome, clock=lambda: now[0])
    assert len(orders) == 3


def test_a_failure_ends_its_row_alone(scripted: Any, listener: Any) -> None:  # noqa: ANN401
    def answer(label: str, turn: int) -> Sample:
        if label == A.label and turn == 1:
            raise WorkerError("worker 0 was killed by SIGKILL")
        return Sample({"wall_seconds": 1.0})

    session = scripted(answer)
    rows, orders = run(session, [A, B], Plan(repeats=3), listener, outcome)
    assert orders == [[B.label, A.label], [B.label], [B.label]]
    assert rows[0].failure == "worker 0 was killed by SIGKILL"
    assert rows[0].summary("wall_seconds") is None
    assert len(rows[1].samples) == 3
    assert session.turns.count(A.label) == 2


@pytest.mark.parametrize(("fails_in", "kept"), [(0, 0), (1, 1)])
def test_when_all_rows_have_failed_no_other_round_is_begun(
    scripted: Any,  # noqa: ANN401
    listener: Any,  # noqa: ANN401
    fails_in: int,
    kept: int,
) -> None:
    def answer(label: str, turn: int) -> Sample:
        if turn == fails_in:
            raise WorkerError("worker 0 was killed by SIGKILL")
        return Sample({"wall_seconds": 1.0})

    session = scripted(answer)
    rows, orders = run(session, [A, B], Plan(repeats=7), listener, outcome)
    assert all(row.failure for row in rows)
    assert len(orders) == kept
    assert not any(heard[0] == "stopped" for heard in listener.heard)


def test_latencies_are_pooled_over_the_repeats(scripted: Any, listener: Any) -> None:  # noqa: ANN401
    session = scripted(
        lambda label, turn: Sample(
            {"wall_seconds": 1.0},
            latencies_ns={"read": array("Q", range(turn * 10, turn * 10 + 10))},
        )
    )
    rows, _ = run(session, [A], Plan(repeats=2), listener, outcome)
    assert rows[0].latencies["read"].count == 20
    assert rows[0].latencies["read"].percentiles[50.0] == 19
    assert rows[0].latencies["read"].percentiles[95.0] is None


def test_improvements_are_of_paired_rounds(scripted: Any, listener: Any) -> None:  # noqa: ANN401
    session = scripted(
        lambda label, turn: Sample({"wall_seconds": (turn + 1.0) * (4 if label == A.label else 1)})
    )
    rows, _ = run(session, [A, B], Plan(repeats=3), listener, outcome)
    result = Result("kv", {}, Plan(repeats=3), 3, [A.label], rows, [], "", "", "", 0.0)
    better = result.improvement(rows[1], WALL, A.label)
    assert better is not None
    assert (better.minimum, better.median, better.maximum) == (4.0, 4.0, 4.0)
    rows[0].failure = "gone"
    assert result.improvement(rows[1], WALL, A.label) is None
    assert result.failed()


class InParts:
    """A session of parts; the first is done twice in a round."""

    parts = ("first", "second")

    def __init__(self, fails: tuple[str, str] | None = None) -> None:
        self.done: list[tuple[str, str]] = []
        self._fails = fails
        self._times = 0

    def do(self, scenario: Scenario, part: str) -> None:
        self.done.append((part, scenario.label))
        if (part, scenario.label) == self._fails:
            raise WorkerError("gone")

    def again(self, part: str) -> bool:
        self._times = self._times + 1 if part == "first" else 0
        return self._times == 1

    def measure(self, scenario: Scenario, *, with_environment: bool) -> Sample:
        return Sample({"wall_seconds": float(with_environment)})


def test_all_cells_do_a_part_before_any_does_the_next(listener: Any) -> None:  # noqa: ANN401
    session = InParts()
    rows, orders = run(session, [A, B], Plan(repeats=2, warm_ups=0), listener, outcome)
    assert [part for part, _ in session.done] == (["first"] * 4 + ["second"] * 2) * 2
    a, b = A.label, B.label
    assert orders == [[a, b, b, a, b, a], [b, a, b, a, b, a]]
    assert rows[0].figures("wall_seconds") == [1.0, 0.0]
    ended = [heard[2] for heard in listener.heard if heard[0] == "ended"]
    assert ended == ["first", "second"] * 2


def cut_in_parts(
    listener: Any,  # noqa: ANN401
    turns: int,
    warm_ups: int = 0,
    *,
    is_measured: bool = True,
) -> CutShort:
    """A run in parts that is interrupted in the turn after ``turns``."""

    class Interrupting(InParts):
        def do(self, scenario: Scenario, part: str) -> None:
            if len(self.done) == turns:
                raise Interrupted
            super().do(scenario, part)

        def measure(self, scenario: Scenario, *, with_environment: bool) -> Sample:
            # As in a session that knows a cell from its first part on.
            assert any(label == scenario.label for _, label in self.done)
            sample = super().measure(scenario, with_environment=with_environment)
            return sample if is_measured else Sample({})

    with pytest.raises(CutShort) as caught:
        run(Interrupting(), [A, B], Plan(repeats=2, warm_ups=warm_ups), listener, outcome)
    return caught.value


@pytest.mark.parametrize(
    ("turns", "samples"),
    [(0, [0, 0]), (1, [1, 0]), (2, [1, 1]), (5, [1, 1]), (6, [1, 1]), (8, [1, 1])],
)
def test_of_a_first_round_in_parts_is_kept_what_there_is(
    listener: object, turns: int, samples: list[int]
) -> None:
    cut = cut_in_parts(listener, turns)
    assert [len(row.samples) for row in cut.rows] == samples
    assert len(cut.orders) == bool(turns)


def test_of_turns_that_do_not_count_yet_nothing_is_kept(listener: object) -> None:
    cut = cut_in_parts(listener, 1, is_measured=False)
    assert not cut.orders
    assert not any(row.samples for row in cut.rows)


def test_of_a_warm_up_in_parts_nothing_is_kept(listener: object) -> None:
    cut = cut_in_parts(listener, 5, warm_ups=1)
    assert not cut.orders
    assert not any(row.samples for row in cut.rows)


def test_a_cell_that_fails_in_a_part_does_no_other(listener: Any) -> None:  # noqa: ANN401
    session = InParts(("first", A.label))
    rows, _ = run(session, [A, B], Plan(repeats=1, warm_ups=0), listener, outcome)
    assert rows[0].failure == "gone"
    assert not rows[0].samples
    assert len(rows[1].samples) == 1
    assert session.done.count(("first", A.label)) == 1
    assert ("second", A.label) not in session.done
    assert any("failed: gone" in heard[-1] for heard in listener.heard)
