"""Files that a run is written to: refused before it, whole or absent after it."""

import os
import stat
from pathlib import Path

import pytest

from oxlite.bench import UsageError
from oxlite.bench.harness.files import reserved


def names(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


def test_it_is_begun_at_once_and_then_whole(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    with reserved(path) as destination:
        assert names(tmp_path) == ["r.json.partial"]
        destination.write("whole")
        assert names(tmp_path) == ["r.json"]
    assert path.read_text() == "whole"


def test_nothing_is_left_of_a_run_that_ended_early(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("before")
    with pytest.raises(KeyboardInterrupt), reserved(path):
        raise KeyboardInterrupt
    assert names(tmp_path) == ["r.json"]
    assert path.read_text() == "before"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (".", "is a directory"),
        ("absent/r.json", "is not a directory"),
        ("file/r.json", "is not a directory"),
        ("x" * 300, "cannot write"),
        ("/proc/r.json", "cannot write"),
    ],
)
def test_a_place_that_is_none_is_refused_before_the_run(
    tmp_path: Path, name: str, message: str
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=message), reserved(tmp_path / name):
        pytest.fail("it was not refused")


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.json").touch()
    link = tmp_path / "link.json"
    link.symlink_to("real.json")
    with reserved(link) as destination:
        destination.write("x")
    assert link.is_symlink()
    assert (tmp_path / "real.json").read_text() == "x"


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with reserved(path) as destination:
        destination.write("x")
    assert os.read(reader, 10) == b"x"
    os.close(reader)
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert names(tmp_path) == ["pipe"]
