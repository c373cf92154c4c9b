"""Snapshots, and the commands."""

import json
import shlex
from pathlib import Path

import pytest
from tests.operations.databases import filled, numbers, python

from oxlite import operations
from oxlite.cli import main
from oxlite.operations import OperationsError


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return filled(tmp_path / "app.db")


@pytest.mark.parametrize("name", ["app 1.db"])
def test_the_command_that_goes_back_can_be_pasted(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    database = filled(tmp_path / name)
    assert main(["snapshot", "create", str(database)]) == 0
    words = shlex.split(capsys.readouterr().err.partition("Back to it: ")[2])
    assert main(words[1:]) == 0


def shown(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr())


def test_a_snapshot_is_gone_back_to(database: Path) -> None:
    operations.create_snapshot(database, "before")
    python("import sys, oxlite; oxlite.Database(sys.argv[1]).execute('DELETE FROM t')", database)
    operations.create_snapshot(database)
    assert numbers(database) == []
    operations.restore_snapshot(database, "before")
    assert len(numbers(database)) == 1000
    operations.restore_snapshot(database)
    assert numbers(database) == []
    with pytest.raises(OperationsError, match="has no snapshot 'gone'; it has before, app-"):
        operations.restore_snapshot(database, "gone")
    assert [one.name for one in operations.prune_snapshots(database, keep=1)] == ["before"]
    assert len(operations.list_snapshots(database)) == 1


@pytest.mark.parametrize("name", ["", "..", "../../etc/passwd", "a/b", "-x", "ä", "x" * 101, ".x"])
def test_what_is_no_name_is_refused(database: Path, name: str) -> None:
    with pytest.raises(OperationsError, match="is no name of a snapshot"):
        operations.create_snapshot(database, name)


def test_without_a_database_there_is_no_directory(tmp_path: Path) -> None:
    with pytest.raises(OperationsError, match="there is no"):
        operations.create_snapshot(tmp_path / "gone.db")
    with pytest.raises(OperationsError, match=r"has no snapshot$"):
        operations.restore_snapshot(tmp_path / "gone.db")
    assert operations.list_snapshots(tmp_path / "gone.db") == []
    assert operations.prune_snapshots(tmp_path / "gone.db", keep=0) == []
    assert list(tmp_path.iterdir()) == []


def test_the_commands(database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app, backups = str(database), tmp_path / "backups"
    backups.mkdir()
    assert main(["snapshot", "list", app]) == 0
    assert capsys.readouterr() == ("", f"{app} has no snapshots\n")
    assert main(["snapshot", "create", app, "one"]) == 0
    assert f"Back to it: oxlite snapshot restore {shlex.quote(app)} one\n" in shown(capsys)
    assert main(["snapshot", "create", app, "two", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["snapshot"] == "two"
    assert main(["snapshot", "create", app, "one"]) == 2
    assert "exists" in shown(capsys)
    assert main(["snapshot", "list", app]) == 0
    assert "1,000" in shown(capsys)
    assert main(["snapshot", "list", app, "--json"]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)["snapshots"]] == [
        "one", "two",
    ]  # fmt: skip
    assert main(["snapshot", "restore", app, "one"]) == 0
    assert "app.db.before-" in shown(capsys)
    assert main(["snapshot", "prune", app]) == 2
    assert "say --keep N" in shown(capsys)
    assert main(["snapshot", "prune", app, "--keep", "1", "--keep-days", "0"]) == 0
    assert "deleted one" in shown(capsys)

    assert main(["backup", app, str(backups), "--rate", "1000"]) == 0
    assert "1 table, 1,000 rows" in shown(capsys)
    assert main(["backup", app, str(backups), "--compress", "--keep", "1", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert len(said["deleted"]) == 1
    assert main(["backup", app, str(backups / "typo"), "--keep", "1"]) == 2
    assert "go with a directory" in shown(capsys)
    assert not (backups / "typo").exists()
    assert said["manifest"]["compression"] == "zstd"
    assert main(["restore", said["backup"], app, "--json"]) == 0
    restored = json.loads(capsys.readouterr().out)
    assert (restored["rows"], restored["had_checksum"]) == (1000, True)
    assert main(["restore", app, str(tmp_path / "new.db")]) == 0
    assert "its checksum could not be compared" in shown(capsys)
    assert main(["restore", str(tmp_path / "gone"), app]) == 2
    assert main(["backup", app, f"{tmp_path}/typo/"]) == 2
    assert f"there is no directory {tmp_path}/typo/" in shown(capsys)
    assert main(["restore", str(backups), app]) == 2
    assert f"is a directory: name a backup in it, the last is {said['backup']}" in shown(capsys)
    assert main(["restore", f"{said['backup']}.json", app]) == 2
    assert f"is the manifest of a backup: name that, {said['backup']}" in shown(capsys)
    assert main(["backup", str(tmp_path / "gone"), str(backups)]) == 2
    assert "there is no" in shown(capsys)


def test_of_a_database_that_has_moved_all_snapshots_are_its_own(
    database: Path, tmp_path: Path
) -> None:
    operations.create_snapshot(database, "before")
    moved = tmp_path / "other" / "new.db"
    moved.parent.mkdir()
    database.rename(moved)
    database.with_name("app.db.snapshots").rename(moved.with_name("new.db.snapshots"))
    operations.create_snapshot(moved, "after")
    assert [one.name for one in operations.prune_snapshots(moved, keep=1)] == ["before"]
