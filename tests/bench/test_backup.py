"""The workload backup: what was made is looked at, and what is no backup is found out."""

import sqlite3
import sys
from array import array
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from oxlite import operations
from oxlite.bench import UsageError, VerificationError
from oxlite.bench.claims import ABSENT
from oxlite.bench.harness import cells, installed
from oxlite.bench.harness.databases import Database, make_file
from oxlite.bench.harness.model import Plan, Result, Row, Sample
from oxlite.bench.harness.outcomes import packed
from oxlite.bench.harness.run import Listener
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.harness.session import HandedOver
from oxlite.bench.lab import Request, perform
from oxlite.bench.report import markdown
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.backup import figures, verify, ways, work
from oxlite.bench.workloads.backup.figures import Outcome
from oxlite.bench.workloads.backup.flag import Flag
from oxlite.bench.workloads.backup.tables import TABLES
from oxlite.bench.workloads.backup.ways import NONE, OURS, WAYS
from oxlite.bench.workloads.backup.work import BackupParameters
from oxlite.bench.workloads.backup.workload import WAY, BackupSession
from oxlite.operations import compression

SMALL = BackupParameters(size_mebibytes=1)
TINY = {
    "size_mebibytes": 1, "lead_seconds": 0.05, "least_seconds": 0.1, "limit_seconds": 10.0,
}  # fmt: skip
ENDS = {"oxlite", "oxlite_zstd", "vacuum", "stdlib"}
"""The ways whose backups are always whole, and always there."""

LOCKED = "OperationalError: database is locked"


def fill(connection: Any, _: object = None) -> None:  # noqa: ANN401
    work.fill(connection, SMALL)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "backup.db"
    make_file(path, "wal", fill)
    return path


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


@pytest.mark.parametrize(
    "changes",
    [
        {"size_mebibytes": 0},
        {"processes": 0},
        {"lead_seconds": -1.0},
        {"least_seconds": 0.0},
        {"limit_seconds": float("nan")},
        {"timeout_seconds": -1.0},
    ],
)
def test_parameters_out_of_range_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="must be"):
        replace(SMALL, **changes)


def test_what_is_moved_depends_on_seed_and_process_alone() -> None:
    moved = work.transactions(SMALL, 0)
    assert moved == work.transactions(replace(SMALL, processes=7, least_seconds=1.0), 0)
    assert moved != work.transactions(SMALL, 1)
    assert moved != work.transactions(replace(SMALL, seed=2), 0)
    for first, second in moved:
        assert first[0] != second[0]
        assert first[1] == -second[1] > 0
    keys = {row[0] for one in moved for row in one}
    assert min(keys) >= 0
    assert SMALL.rows < max(keys) < SMALL.rows * 1.05
    assert moved[0].moment == moved[0].first[1] * (moved[0].first[0] - moved[0].second[0])


def test_the_database_has_the_size_that_was_asked_for(database: Path) -> None:
    assert 0.9 * (1 << 20) < database.stat().st_size < 1.1 * (1 << 20)


def test_all_see_the_flag(tmp_path: Path) -> None:
    Flag.make(tmp_path / "flag")
    with closing(Flag(tmp_path / "flag")) as one, closing(Flag(tmp_path / "flag")) as other:
        assert not other.is_up()
        one.lift()
        assert other.is_up()


@pytest.mark.slow
def test_backups_are_made_in_every_way(tmp_path: Path, listener: Listener) -> None:
    assert {NONE, *WAYS} == set(WAY.values)
    request = Request("backup", TINY, repeats=1, warm_up=False, directory=tmp_path)
    result = perform(request, listener)
    assert not result.failed(), [(row.failure, row.failed_figures()) for row in result.rows]
    found = {row.scenario["way"]: row for row in result.rows}
    absent = {cell.scenario["way"] for cell in result.impossible}
    assert found.keys() | absent == {NONE, *WAYS}
    for way, row in found.items():
        [sample] = row.samples
        assert not sample.errors
        assert sample.figures["commits_per_second"] > 0
        assert sample.figures["longest_ms"] > 0
        assert sample.asked == row.latencies[figures.COMMIT].count
        assert ("backups" in sample.figures) == (way != NONE)
        if way in ENDS:
            assert sample.figures["whole_backups"] == sample.figures["backups"] >= 1
            assert sample.figures["backup_seconds"] > 0
            assert sample.detail["sqlite_of_backup"].startswith("3.")
    assert found[NONE].environment is not None
    page = markdown.render(result)
    assert "cp is no backup" in page
    assert "commits per second, times those without a backup" in page
    assert not list(tmp_path.iterdir())


def test_a_good_copy_has_no_flaw(database: Path, tmp_path: Path) -> None:
    copy, small = tmp_path / "copy.db", tmp_path / "small.db"
    for way in sorted(ENDS - {"oxlite_zstd"}):
        assert ways.made(way, database, copy, 10.0) is None
        assert verify.flaw(copy, SMALL.rows) is None
        copy.unlink()
        Path(f"{copy}.json").unlink(missing_ok=True)
    if reason := compression.missing():
        pytest.skip(reason)
    assert ways.made("oxlite_zstd", database, small, 10.0) is None
    assert verify.flaw(small, SMALL.rows, compressed=True) is None


def test_a_copy_of_two_moments_is_found(database: Path) -> None:
    change(database, "UPDATE account SET amount = amount + 1 WHERE id = 17")
    assert verify.flaw(database, SMALL.rows) == "it is not of one moment"


def test_a_copy_without_some_rows_is_found(database: Path) -> None:
    change(database, "DELETE FROM account WHERE id = 17")
    assert verify.flaw(database, SMALL.rows) == "rows are missing"


def test_a_damaged_copy_is_found(database: Path) -> None:
    pages = bytearray(database.read_bytes())
    middle = len(pages) // 8192 * 4096
    pages[middle : middle + 4096] = pages[middle + 4096 : middle + 8192]
    database.write_bytes(pages)
    assert verify.flaw(database, SMALL.rows) == "the database is damaged"


@pytest.mark.parametrize("content", [b"", b"x" * 8192])
def test_what_is_no_database_is_found(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "copy.db"
    path.write_bytes(content)
    assert verify.flaw(path, SMALL.rows) == "the database cannot be read"


def test_a_damaged_compressed_copy_is_found(database: Path, tmp_path: Path) -> None:
    if reason := compression.missing():
        pytest.skip(reason)
    made = operations.backup(database, tmp_path / "copy.db", compress=True).path
    made.write_bytes(made.read_bytes()[:-100])
    assert verify.flaw(made, SMALL.rows, compressed=True) == "it cannot be restored"


def outcome(
    times: Sequence[tuple[int, int]], failed: dict[int, str] | None = None, moment: int = 0
) -> Outcome:
    """What a writer did whose transactions began and ended at those ms, some of which failed."""
    return figures.unpack(*handed_over(times, failed, moment))


def handed_over(
    times: Sequence[tuple[int, int]], failed: dict[int, str] | None = None, moment: int = 0
) -> HandedOver:
    failed = failed or {}
    texts = list(dict.fromkeys(failed.values()))
    numbers = [texts.index(failed[n]) + 1 if n in failed else 0 for n in range(len(times))]
    begun, ended = (array("Q", (one[n] * 1_000_000 for one in times)) for n in (0, 1))
    payload = packed((begun, ended, array("H", numbers)))
    return {"count": len(times), "errors": texts, "moment": moment}, payload


def maker(begun_ms: int, ended_ms: int, *attempts: tuple[Path, str | None]) -> dict[str, Any]:
    return {
        "begun_ns": begun_ms * 1_000_000,
        "ended_ns": ended_ms * 1_000_000,
        "attempts": [{"path": str(path), "seconds": 0.5, "why": why} for path, why in attempts],
        "wal_bytes": 3 << 20,
        "version": "3.0.0",
    }


def test_figures_are_of_what_was_under_way_meanwhile() -> None:
    writers = [
        outcome([(0, 90), (95, 105), (110, 120), (130, 1150), (1160, 1170)]),
        outcome([(90, 140), (150, 160), (170, 300)], {0: LOCKED, 2: LOCKED}),
    ]
    sample = figures.sample(writers, maker(100, 1100), [])
    assert sample.figures == {
        "commits_per_second": 3.0,  # the one that ended after it is none of them
        "longest_ms": 1020.0,
        "wal_mebibytes": 3.0,
    }
    assert sample.asked == 6
    assert sample.errors == {LOCKED: 2}
    assert sorted(sample.latencies_ns[figures.COMMIT]) == [
        10_000_000, 10_000_000, 10_000_000, 1_020_000_000,
    ]  # fmt: skip


def test_a_process_that_did_not_write_meanwhile_fails_the_row() -> None:
    with pytest.raises(VerificationError, match="a process did not write"):
        figures.sample([outcome([(0, 90)])], maker(100, 200), [])
    with pytest.raises(VerificationError, match="does not account"):
        figures.unpack({"count": 2, "errors": [], "moment": 0}, b"")


def test_what_was_not_made_is_told(database: Path) -> None:
    writers = [outcome([(100, 110)])]
    sample = figures.sample(writers, maker(0, 1000, (database, "did not end")), [])
    assert sample.figures["backups"] == 1
    assert sample.figures["whole_backups"] == 0
    assert sample.absent == {"backup_seconds": "did not end"}
    assert sample.detail["wrong"] == {"did not end": 1}


def test_a_lost_transaction_is_found(database: Path) -> None:
    verify.check(database, [outcome([])], SMALL.rows)
    [moved] = work.transactions(SMALL, 0)[:1]
    lost = [outcome([(0, 1)], moment=moved.moment)]
    with pytest.raises(VerificationError, match="not what the acknowledged transactions make"):
        verify.check(database, lost, SMALL.rows)
    # Of what failed with a lock nothing was done; of another error that is not known.
    with pytest.raises(VerificationError, match="not what the acknowledged"):
        verify.check(database, [*lost, outcome([(0, 1)], {0: LOCKED})], SMALL.rows)
    verify.check(database, [*lost, outcome([(0, 1)], {0: "disk I/O error"})], SMALL.rows)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.executemany(work.WRITE, moved)
    verify.check(database, lost, SMALL.rows)
    change(database, "UPDATE account SET amount = amount + 1 WHERE id = 17")
    with pytest.raises(VerificationError, match="come to 1"):
        verify.check(database, lost, SMALL.rows)


@pytest.mark.parametrize("way", ["oxlite", "cp"])
def test_a_bad_backup_fails_a_row_of_ours_alone(way: str, database: Path, tmp_path: Path) -> None:
    bad = tmp_path / "copy-0.db"
    bad.write_bytes(database.read_bytes())
    change(bad, "UPDATE account SET amount = amount + 1 WHERE id = 17")
    scenario = Scenario("oxlite", journal="wal", pragmas="tuned", busy="gate", way=way)
    with ExitStack() as exits:
        (tmp_path / "scratch").mkdir()
        session = BackupSession(SMALL, Scratch(tmp_path / "scratch"), exits)
        found = [handed_over([(100, 110)]), (maker(0, 1000, (bad, None)), b"")]
        sample = session.sample(Database(scenario, database, tmp_path), found)
    assert sample.figures["whole_backups"] == 0
    assert sample.detail["wrong"] == {"it is not of one moment": 1}
    assert bool(sample.failed) == (way in OURS)
    assert not bad.exists()


def test_what_is_missing_is_declared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    shell, other = (
        cells.cell(Scenario("oxlite", build="tuned", way=way)) for way in ("shell", "vacuum")
    )
    assert shell.reason == "the program sqlite3 is not on the PATH; run `apt install sqlite3`"
    assert other.reason is None
    for name in ("compression.zstd", "zstandard"):
        monkeypatch.setitem(sys.modules, name, None)
    # The extra brings nothing where Python is to have a module of its own.
    wanted = "zstandard" if sys.version_info >= (3, 14) else "'oxlite[operations]'"
    assert (installed.missing_way("oxlite_zstd") or "").endswith(f"pip install {wanted}")


def test_a_shell_that_does_not_end_is_given_up(
    database: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "bin" / "sqlite3"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    why = ways.made("shell", database, tmp_path / "copy.db", 0.3)
    assert why == "the shell did not end in 0 s"


def test_a_way_that_fails_says_why(tmp_path: Path) -> None:
    for way in WAYS.keys() - {"shell", "stdlib", "vacuum"}:
        assert ways.made(way, tmp_path / "absent.db", tmp_path / "copy.db", 1.0) is not None


def test_the_bars_are_judged() -> None:
    rows = []
    for way, rate, errors in ((NONE, 1000.0, {}), ("oxlite", 600.0, {LOCKED: 1})):
        scenario = Scenario("oxlite", journal="wal", pragmas="tuned", busy="gate", way=way)
        sample = Sample({"commits_per_second": rate}, 5000, errors)
        rows.append(Row(scenario, [sample, sample]))
    result = Result("backup", {}, Plan(), 2, [rows[0].label], rows, [], "", "", "", 1.0)
    drawn = {line.name: line for table in TABLES for one in table.drawings(result)
             for line in one.lines}  # fmt: skip
    cost = drawn["oxlite: commits per second, times those without a backup"]
    assert cost.cells[2].startswith("missed by 25%")
    assert drawn["oxlite: transactions that failed"].cells == ("0", "2 of 10,000", "missed")
    assert ABSENT in drawn["oxlite none"].cells
