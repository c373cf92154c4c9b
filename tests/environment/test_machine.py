"""The machine is described, and neither the host nor a foreign checkout is named."""

import datetime
import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from oxlite.environment import ReportError, machine_report
from oxlite.environment.machine import git_revision


def test_the_report_describes_this_machine(tmp_path: Path) -> None:
    report = machine_report(tmp_path)
    assert report["cpu"]["logical_cores"] >= 1
    assert report["cpu"]["usable_cores"] >= 1
    assert report["memory_total_bytes"] > 2**20
    assert report["operating_system"]["kernel"] == platform.release()
    assert report["python"]["version"] == platform.python_version()
    assert report["python"]["compiler"] == platform.python_compiler()
    assert report["file_system"]["mount_point"].startswith("/")
    assert json.loads(json.dumps(report)) == report


def test_the_interpreter_lock_is_reported_as_it_is(tmp_path: Path) -> None:
    python = machine_report(tmp_path)["python"]
    assert python["gil_enabled"] or python["free_threaded_build"]


def test_the_date_is_utc(tmp_path: Path) -> None:
    date = datetime.datetime.fromisoformat(machine_report(tmp_path)["date"])
    assert date.utcoffset() == datetime.timedelta(0)


def test_the_host_is_not_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "node", lambda: pytest.fail("the host's name was asked for"))
    report = json.dumps(machine_report(tmp_path))
    assert "hostname" not in report
    assert "nodename" not in report


def test_a_missing_psutil_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    with pytest.raises(ReportError, match=r"pip install 'oxlite\[cli\]'"):
        machine_report(tmp_path)


def _checkout(path: Path) -> Path:
    """A git checkout that looks like Oxlite's, with one commit."""
    (path / "crates" / "oxlite-sqlite").mkdir(parents=True)
    (path / "crates" / "oxlite-sqlite" / "a.rs").write_text("//! A.\n")
    person = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    for arguments in (("init", "-q"), ("add", "."), (*person, "commit", "-q", "-m", "a")):
        subprocess.run(["git", "-C", str(path), *arguments], check=True)
    return path


@pytest.fixture
def _git() -> None:
    try:
        subprocess.run(["git", "--version"], check=True, capture_output=True)
    except OSError:
        pytest.skip("git is not installed")


@pytest.mark.usefixtures("_git")
def test_the_revision_of_our_own_tree(tmp_path: Path) -> None:
    checkout = _checkout(tmp_path)
    first = git_revision(checkout)
    assert first is not None
    assert len(first["revision"]) == 40
    assert first["dirty"] is False
    (checkout / "new").touch()
    assert git_revision(checkout) == {**first, "dirty": True}


@pytest.mark.usefixtures("_git")
def test_somebody_elses_tree_has_no_revision(tmp_path: Path) -> None:
    subprocess.run(["git", "-C", str(tmp_path), "init", "-q"], check=True)
    assert git_revision(tmp_path) is None


def test_without_git_there_is_no_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "crates" / "oxlite-sqlite").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    assert git_revision(tmp_path) is None
    monkeypatch.setenv("PATH", "/nowhere")
    assert git_revision(tmp_path) is None
    assert git_revision(tmp_path / "missing") is None
