"""Two runs: a slower driver is found, equal ones are not called different, unlike ones are refused.

The records are of a real short run; its repeats are replaced by figures with a scatter of 2 %, so
that what is found does not depend on how busy this machine is.
"""

import copy
import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oxlite.bench import UsageError
from oxlite.bench.comparing import BETTER, SAME, UNKNOWN, WORSE, UnlikeError, compare, permutation
from oxlite.bench.harness import record
from oxlite.bench.harness.model import Result
from oxlite.bench.stored import read
from oxlite.bench.workloads.kv.workload import KvWorkload

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
    assert not compare(*pair).worse()


def test_a_row_that_fails_now_is_worse(recorded: Recorded) -> None:
    usual, broken = scattered(recorded("kv"), 1), scattered(recorded("kv"), 2)
    broken.rows[-1].failure = "worker 1 was killed"
    found = compare(usual, broken)
    assert found.worse()
    assert found.missing[broken.rows[-1].label] == "fails now: worker 1 was killed"


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
    with pytest.raises(UsageError, match="no metric 'speed'"):
        compare(usual, usual, metrics=["speed"])


def test_the_permutation_test_counts_divisions() -> None:
    # All of the first are below all of the second: 2 of the 70 divisions are as far apart.
    assert permutation([1, 2, 3, 4], [5, 6, 7, 8]) == pytest.approx(2 / 70)
    assert permutation([1, 2, 4, 8], [1, 2, 4, 8]) == 1
    few = [1.0, 1.1, 1.2]
    every = [(a, b) for a, b in itertools.permutations(few, 2)]
    assert all(permutation([a], [b]) == 1 for a, b in every)
    # Too many divisions to look at all of them: seeded, so the same each time.
    stream = random.Random(1)
    many = [[stream.gauss(m, 0.1) for _ in range(20)] for m in (1.0, 1.2)]
    assert permutation(*many) == permutation(*many) < 0.001


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
    data = json.loads(slow.read_text())
    data["parameters"]["keys"] = 5
    slow.write_text(json.dumps(data))
    unlike = bench("compare", usual, slow)
    assert unlike.returncode == 2
    assert "they differ in parameter keys (10000 and 5)" in unlike.stderr
    assert bench("compare", usual, slow, "--anyway").returncode == 1
