"""``oxlite cache`` as a user meets it."""

import json
import time
from pathlib import Path

import pytest

from oxlite.cache import Cache
from oxlite.cli import main


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with Cache(tmp_path / "cache.db") as cache:
        cache.set_many({f"k{n}": "x" for n in range(500)}, timeout=0.001)
        cache.set("stays", 1)
    time.sleep(0.01)
    return tmp_path / "cache.db"


def test_what_a_cache_holds_is_shown(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "stats", str(file)]) == 0
    assert "entries" in capsys.readouterr().out
    assert main(["cache", "stats", str(file), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["entries"] == 1
    assert 0 < shown["used_bytes"] <= shown["file_bytes"] + shown["wal_bytes"]


def test_what_has_expired_is_deleted_and_then_all(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cache", "prune", str(file)]) == 0
    assert capsys.readouterr().out == "500 expired entries deleted\n"
    with Cache(file) as cache:
        assert cache.get("stays") == 1
        assert main(["cache", "clear", str(file)]) == 0
        assert cache.get("stays") is None


@pytest.mark.parametrize("command", ["stats", "prune", "clear"])
def test_what_is_no_cache_is_refused_and_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    text = tmp_path / "text"
    text.write_text("no database\n" * 100)
    for path, message in ((tmp_path / "nothing.db", "is not there"), (text, "not a database")):
        assert main(["cache", command, str(path)]) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "nothing.db").exists()
    assert text.read_text() == "no database\n" * 100
