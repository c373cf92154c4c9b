"""Two runs: a slower driver is found, equal ones are not called different, unlike ones are refused.

The records are of a real short run; its repeats are replaced by figures with a scatter of 2 %, so
that what is found does not depend on how busy this machine is.
"""

import copy
import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from oxlite.bench import UsageError
from oxlite.bench.changes import (
    BETTER,
    SAME,
    UNKNOWN,
    WORSE,
    UnlikeError,
    Verdicts,
    compare,
)
from oxlite.bench.harness import record
from oxlite.bench.harness.model import Plan, Result, Row, Sample
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.stored import read
from oxlite.bench.workloads.kv.workload import KvWorkload

pytestmark = pytest.mark.slow

Recorded = Callable[[str], Path]
OURS = "oxlite wal tuned backoff"
SCATTER = 0.02


def scattered(
    path: Path, seed: int, slower: float = 1.0, machine: float = 1.0, repeats: int = 7
) -> Result:
    """The run anew: its rows' medians with scatter, Oxlite's so many times slower, or all."""
    result = copy.deepcopy(read(path))
    stream = random.Random(seed)
    for row in result.rows:
        summary = row.summary("wall_seconds")
        assert summary is not None
        factor = machine * (slower if row.scenario.driver == "oxlite" else 1.0)
        samples = [copy.deepcopy(row.samples[0]) for _ in range(repeats)]
        for sample in samples:
            noise = stream.gauss(1.0, SCATTER)
            sample.figures["wall_seconds"] = summary.median * factor * noise
        row.samples = samples
    result.repeats = repeats
    return result


def verdicts(old: Result, new: Result, **options: Any) -> dict[str, str]:  # noqa: ANN401
    return {one.label: one.verdict for one in compare(old, new, **options).changes}


@pytest.mark.parametrize("seed", range(10))
def test_ten_percent_is_found_either_way(recorded: Recorded, seed: int) -> None:
    usual = scattered(recorded("kv"), seed)
    slow = scattered(recorded("kv"), seed + 100, slower=1.1)
    assert verdicts(usual, slow) == {OURS: WORSE}
    assert compare(usual, slow).worse()
    assert verdicts(slow, usual) == {OURS: BETTER}
    assert not compare(slow, usual).worse()


def test_equal_runs_are_rarely_called_different(recorded: Recorded) -> None:
    different = [
        seed
        for seed in range(100)
        if verdicts(scattered(recorded("kv"), seed), scattered(recorded("kv"), seed + 1000))
        != {OURS: SAME}
    ]
    assert len(different) <= 5


def test_the_noise_is_said(recorded: Recorded) -> None:
    quiet = scattered(recorded("kv"), 1)
    loud = scattered(recorded("kv"), 2)
    for row in loud.rows:
        for sample, factor in zip(row.samples, (1, 2, 3, 4, 5, 6, 7), strict=True):
            sample.figures["wall_seconds"] = float(factor)
    [change] = compare(quiet, loud).changes
    # Of 1 to 7 the median is 4 and the median deviation 2.
    assert change.noise == pytest.approx(1.4826 * 2 / 4)


def test_a_run_is_not_different_from_itself(recorded: Recorded) -> None:
    usual = scattered(recorded("kv"), 1)
    assert verdicts(usual, usual) == {OURS: SAME}


def test_a_machine_that_was_slower_is_no_slower_driver(recorded: Recorded) -> None:
    usual = scattered(recorded("kv"), 1)
    assert verdicts(usual, scattered(recorded("kv"), 2, machine=1.3)) == {OURS: SAME}


def test_a_change_below_the_threshold_is_none(recorded: Recorded) -> None:
    pair = scattered(recorded("kv"), 1), scattered(recorded("kv"), 2, slower=1.1)
    assert verdicts(*pair, threshold=0.5) == {OURS: SAME}


def test_too_few_repeats_are_said_to_be(recorded: Recorded) -> None:
    pair = [
        scattered(recorded("kv"), seed, slower=s, repeats=3) for seed, s in ((1, 1.0), (2, 2.0))
    ]
    assert verdicts(*pair) == {OURS: UNKNOWN}
    found = compare(*pair)
    assert not found.worse()
    with pytest.raises(UsageError, match=r"it takes 4 in each run \(--repeats 4"):
        found.require_judged()


def many(seed: int, slower: float = 1.0, *, all_of_them: bool = True, repeats: int = 5) -> Result:
    """A run of twelve rows of Oxlite's, each with its peer; as slow as said are all, or the first.

    A round that is slower than others is so for all rows.
    """
    stream = random.Random(seed)
    rounds = [stream.gauss(1.0, SCATTER) for _ in range(repeats)]
    rows, compared = [], {}
    for place in range(12):
        scenario = Scenario(
            "oxlite", journal="wal", pragmas="tuned", busy="backoff", build="tuned",
            threads=str(place + 1),
        )  # fmt: skip
        peer = scenario.but(driver="stdlib", build="own")
        factor = slower if all_of_them or not place else 1.0
        for one, times in ((scenario, factor), (peer, 1.0)):
            figures = [times * one_round * stream.gauss(1.0, SCATTER) for one_round in rounds]
            rows.append(Row(one, [Sample({"wall_seconds": figure}) for figure in figures]))
        compared[scenario.label] = [peer.label]
    return Result(
        "kv", {}, Plan(repeats), repeats, [], rows, [], "", "", "2026-01-01", 1.0, compared=compared
    )


@pytest.mark.parametrize(("all_of_them", "at_least"), [(True, 17), (False, 14)])
def test_many_rows_need_no_more_repeats(*, all_of_them: bool, at_least: int) -> None:
    found = [
        compare(many(seed), many(seed + 500, 1.1, all_of_them=all_of_them)) for seed in range(20)
    ]
    assert sum(one.changes[0].verdict == WORSE for one in found) >= at_least
    assert all(one.changes[0].probability is not None for one in found)
    wrong = [one for one in found if not all_of_them and verdict_count(one, SAME) < 11]
    assert len(wrong) <= 2


def verdict_count(found: Verdicts, verdict: str) -> int:
    return sum(change.verdict == verdict for change in found.changes)


def test_of_many_equal_rows_hardly_any_is_called_different() -> None:
    # Without a threshold, and so by chance alone.
    different = [
        seed
        for seed in range(150)
        if verdict_count(compare(many(seed), many(seed + 5000), threshold=0), SAME) < 12
    ]
    assert len(different) <= 0.05 * 150


def failing(result: Result, part: float) -> Row:
    """The row of Oxlite's, in which so large a part of the operations fails, in no time."""
    row = next(row for row in result.rows if row.label == OURS)
    for sample in row.samples:
        sample.asked = 1000
        sample.errors = {"OperationalError: locked": int(1000 * part)} if part else {}
        sample.figures["wall_seconds"] *= 1 - part
    return row


def test_failing_fast_is_worse_and_not_better(recorded: Recorded) -> None:
    usual, broken = scattered(recorded("kv"), 1), scattered(recorded("kv"), 2)
    failing(usual, 0.0)
    failing(broken, 0.5)
    found = compare(usual, broken)
    assert found.worse()
    assert not found.changes
    assert found.missing[OURS] == "fails now: 3,500 of 7,000 operations"
    assert not compare(broken, usual, metrics=["jain"]).worse()
    with pytest.raises(UsageError, match="it is of all the work, which was not done"):
        compare(broken, broken)


def test_figures_that_can_be_zero_are_not_dropped_in_silence(recorded: Recorded) -> None:
    usual, zeros = scattered(recorded("kv"), 1), scattered(recorded("kv"), 2)
    for row in zeros.rows:
        row.samples[0].figures["jain"] = 0.0
    found = compare(usual, zeros, metrics=["wall_seconds", "jain"])
    assert [change.metric.name for change in found.changes] == ["wall_seconds"]
    [reason] = found.missing.values()
    assert reason == "it has zeros, of which there are no ratios"


def test_a_row_that_is_gone_is_worse_if_it_is_oxlites(recorded: Recorded) -> None:
    usual = scattered(recorded("kv"), 1)
    fewer = scattered(recorded("kv"), 2)
    fewer.rows = [row for row in fewer.rows if row.label != OURS]
    found = compare(usual, fewer)
    assert found.missing[OURS] == "only in the old run"
    assert found.worse()
    assert not compare(fewer, usual).worse()
    ours = scattered(recorded("kv"), 2)
    ours.rows = [row for row in ours.rows if row.label == OURS]
    assert not compare(usual, ours).worse()


def test_a_part_of_a_run_and_another_warm_up_are_said(recorded: Recorded) -> None:
    usual, part = scattered(recorded("kv"), 1), scattered(recorded("kv"), 2)
    assert not compare(usual, part).remarks
    part.interrupted = True
    part.plan = replace(part.plan, warm_ups=3)
    assert compare(usual, part).remarks == [
        "the new run was interrupted: it is a part, of 7 repeats",
        "the old run had 0 warm-up rounds, the new one 3",
    ]


@pytest.mark.parametrize(("driver", "is_worse"), [("oxlite", True), ("stdlib", False)])
def test_a_row_of_oxlite_that_fails_now_is_worse(
    recorded: Recorded, driver: str, is_worse: bool
) -> None:
    usual, broken = scattered(recorded("kv"), 1), scattered(recorded("kv"), 2)
    # Not the one that the others are compared with.
    row = [one for one in broken.rows if one.scenario.driver == driver][-1]
    row.failure = "worker 1 was killed"
    found = compare(usual, broken)
    assert found.worse() is is_worse
    assert found.missing[row.label] == "fails now: worker 1 was killed"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda r: r.parameters.update(queries=401), "parameter queries (400 and 401)"),
        (lambda r: setattr(r, "work_digest", "0"), "the work"),
        (lambda r: _machine(r)["cpu"].update(model="Z80"), "and Z80)"),
        (lambda r: _machine(r)["file_system"].update(type="nfs"), "file system"),
        (lambda r: _machine(r)["python"].update(version="4.0.0"), "Python ("),
        (lambda r: _pragmas(r).update(synchronous=0), "PRAGMA synchronous of stdlib"),
        (lambda r: r.rows[0].samples[0].detail["versions"].update(sqlite="9"), "stdlib's sqlite"),
    ],
)
def test_unlike_runs_are_refused_and_say_in_what(
    recorded: Recorded, change: Callable[[Result], object], named: str
) -> None:
    old, new = scattered(recorded("kv"), 1), scattered(recorded("kv"), 2)
    change(new)
    with pytest.raises(UnlikeError) as caught:
        compare(old, new)
    assert named in str(caught.value)
    assert "--anyway" in str(caught.value)
    found = compare(old, new, anyway=True)
    assert any(named in one for one in found.unlike)
    assert found.changes


def _machine(result: Result) -> Any:  # noqa: ANN401
    environment = result.rows[0].environment
    assert environment is not None
    return environment["machine"]


def _pragmas(result: Result) -> Any:  # noqa: ANN401
    environment = result.rows[0].environment
    assert environment is not None
    return environment["connection"]["pragmas"]


def test_what_cannot_be_compared_at_all(recorded: Recorded) -> None:
    usual = scattered(recorded("kv"), 1)
    with pytest.raises(UsageError, match="different workloads"):
        compare(usual, read(recorded("driver")), anyway=True)
    with pytest.raises(UsageError, match="unknown metric of kv 'speed'"):
        compare(usual, usual, metrics=["speed"])
    with pytest.raises(UsageError, match="did you mean 'wall_seconds'"):
        compare(usual, usual, metrics=["wall_second"])


def test_the_command_has_exit_codes_for_automation(
    bench: Callable[..., Any], recorded: Recorded, tmp_path: Path
) -> None:
    metrics = KvWorkload.metrics
    usual, slow = tmp_path / "usual.json", tmp_path / "slow.json"
    usual.write_text(record.dumps(scattered(recorded("kv"), 1), metrics))
    slow.write_text(record.dumps(scattered(recorded("kv"), 2, slower=1.1), metrics))
    same = bench("compare", usual, usual)
    assert (same.returncode, "1 no difference" in same.stdout) == (0, True), same.stderr
    worse = bench("compare", usual, slow)
    assert (worse.returncode, "1 worse" in worse.stdout) == (1, True)
    assert bench("compare", slow, usual).returncode == 0
    few = tmp_path / "few.json"
    few.write_text(record.dumps(scattered(recorded("kv"), 3, repeats=3), metrics))
    unjudged = bench("compare", few, few)
    assert (unjudged.returncode, "1 too few repeats" in unjudged.stdout) == (2, True)
    assert "it takes 4 in each run" in unjudged.stderr
    data = json.loads(slow.read_text())
    data["parameters"]["keys"] = 5
    slow.write_text(json.dumps(data))
    unlike = bench("compare", usual, slow)
    assert unlike.returncode == 2
    assert "they differ in parameter keys (10000 and 5)" in unlike.stderr
    assert bench("compare", usual, slow, "--anyway").returncode == 1
