"""The rounds: interleaved, paired, bounded by time, and not stopped by one failure."""

from array import array
from typing import Any

from oxlite.bench import WorkerError
from oxlite.bench.harness.model import Metric, Plan, Result, Sample
from oxlite.bench.harness.run import run
from oxlite.bench.scenarios.scenario import Scenario

A, B = Scenario("stdlib", "rollback"), Scenario("stdlib", "wal")
WALL = Metric("wall_seconds", "wall time", "lower")


def outcome(sample: Sample) -> str:
    return f"{sample.figures['wall_seconds']}"


def test_rounds_interleave_and_warm_up_is_forgotten(scripted: Any, listener: Any) -> None:  # noqa: ANN401
    session = scripted(lambda label, turn: Sample({"wall_seconds": float(turn)}))
    rows, repeats = run(session, [A, B], Plan(repeats=2), listener, outcome)
    assert session.turns == [A.label, B.label] * 3
    assert repeats == 2
    assert rows[0].figures("wall_seconds") == [1.0, 2.0]


def test_the_time_budget_ends_it_but_not_before_one_round(scripted: Any, listener: Any) -> None:  # noqa: ANN401
    now = [0.0]

    def answer(label: str, turn: int) -> Sample:
        now[0] += 10.0
        return Sample({"wall_seconds": 1.0})

    plan = Plan(repeats=7, time_budget_seconds=1.0)
    _, repeats = run(scripted(answer), [A], plan, listener, outcome, clock=lambda: now[0])
    assert repeats == 1
    assert listener.heard[-1] == ("stopped", "1", "7")
    plan = Plan(repeats=7, time_budget_seconds=45.0)
    _, repeats = run(scripted(answer), [A], plan, listener, outcome, clock=lambda: now[0])
    assert repeats == 3


def test_a_failure_ends_its_row_alone(scripted: Any, listener: Any) -> None:  # noqa: ANN401
    def answer(label: str, turn: int) -> Sample:
        if label == A.label and turn == 1:
            raise WorkerError("worker 0 was killed by SIGKILL")
        return Sample({"wall_seconds": 1.0})

    session = scripted(answer)
    rows, _ = run(session, [A, B], Plan(repeats=3), listener, outcome)
    assert rows[0].failure == "worker 0 was killed by SIGKILL"
    assert rows[0].summary("wall_seconds") is None
    assert len(rows[1].samples) == 3
    assert session.turns.count(A.label) == 2


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
    rows, repeats = run(session, [A, B], Plan(repeats=3), listener, outcome)
    result = Result("kv", {}, Plan(repeats=3), repeats, [A.label], rows, [], "", "", "", 0.0)
    better = result.improvement(rows[1], WALL, A.label)
    assert better is not None
    assert (better.minimum, better.median, better.maximum) == (4.0, 4.0, 4.0)
    rows[0].failure = "gone"
    assert result.improvement(rows[1], WALL, A.label) is None
    assert result.failed()
