"""The smoke suite of the wheels passes on the package that is installed here."""

import subprocess
import sys
from pathlib import Path

SMOKE = Path(__file__).with_name("smoke.py")


def test_every_check_passes(tmp_path: Path) -> None:
    listed = _run("--list", tmp_path)
    done = _run(None, tmp_path)
    assert done.stdout == listed.stdout
    assert len(done.stdout.splitlines()) >= 20


def test_a_check_that_fails_ends_it(tmp_path: Path) -> None:
    """What is no database is found where one is to be made."""
    (tmp_path / "profile.db").write_text(
        "no database, and longer than the header of a file of SQLite's" * 9
    )
    ended = subprocess.run(
        [sys.executable, SMOKE], cwd=tmp_path, capture_output=True, text=True, timeout=100
    )
    assert ended.returncode == 1
    assert "a_profile_is_applied" in ended.stderr


def _run(option: str | None, directory: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SMOKE), *([option] if option else [])]
    ended = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=100)
    assert ended.returncode == 0, ended.stderr
    return ended
