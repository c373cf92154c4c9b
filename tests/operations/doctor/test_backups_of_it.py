"""What the doctor says of backups: none, old, changed; and that its mend cures it."""

import json
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.operations.databases import filled

from oxlite import operations
from oxlite.cli import main
from oxlite.operations.backups import backups_of
from oxlite.operations.doctor import examine


def found(database: Path, backups: Path) -> dict[str, str]:
    """Codes, and how each is mended."""
    report = examine(database, backups=backups)
    return {one.code: one.mend for one in report.findings if one.code.startswith("backup-")}


def test_backups_are_judged_and_the_mend_makes_one(tmp_path: Path) -> None:
    database, backups = filled(tmp_path / "app 1.db"), tmp_path / "back ups"
    backups.mkdir()
    operations.backup(filled(tmp_path / "other.db", 1), backups)

    # Another host's, of a database of the same name.
    operations.backup(database, backups, host="elsewhere")

    [first] = [one for one in examine(database, backups=backups).findings if "backup" in one.code]
    assert "backups from another host: elsewhere" in first.what
    missing = found(database, backups)
    assert missing.keys() == {"backup-missing"}
    assert main(shlex.split(missing["backup-missing"])[1:]) == 0
    assert found(database, backups) == {}

    [made] = backups_of(database, backups)
    manifest = made.path.with_name(f"{made.path.name}.json")
    said = json.loads(manifest.read_text())
    said["created_at"] = (datetime.now(UTC) - timedelta(days=3)).isoformat()
    manifest.write_text(json.dumps(said))
    old = found(database, backups)
    assert old.keys() == {"backup-old"}
    assert main(shlex.split(old["backup-old"])[1:]) == 0
    assert found(database, backups) == {}

    made.path.write_bytes(b"short")
    assert found(database, backups).keys() == {"backup-changed"}
    for one in operations.backups_in(backups):
        one.path.write_bytes(b"short")
    assert found(database, backups).keys() == {"backup-changed", "backup-missing"}


def test_a_directory_that_is_not_there_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = filled(tmp_path / "app.db")
    assert main(["doctor", str(database), "--backups", str(tmp_path / "gone")]) == 2
    assert "there is no directory" in capsys.readouterr().err
    assert main(["doctor", str(database), "--backups", str(tmp_path)]) == 1
    assert "backup-missing" in capsys.readouterr().out
