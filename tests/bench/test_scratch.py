"""The working directory goes away, unless it is to stay."""

from pathlib import Path

import pytest

from oxlite.bench import UsageError
from oxlite.bench.harness.scratch import copy_synced, scratch


def test_it_is_removed_however_it_ends(tmp_path: Path) -> None:
    def interrupted() -> None:
        with scratch(tmp_path, keep=False) as place:
            (place.fresh("a row") / "file").write_text("x")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not list(tmp_path.iterdir())


def test_it_stays_when_asked(tmp_path: Path) -> None:
    with scratch(tmp_path, keep=True) as place:
        place.fresh("a")
    assert (place.path / "a").is_dir()


def test_fresh_is_empty_each_time(tmp_path: Path) -> None:
    with scratch(tmp_path, keep=False) as place:
        (place.fresh("a row") / "file").write_text("x")
        assert not list(place.fresh("a row").iterdir())


def test_a_place_that_is_none_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="is not a directory"),
        scratch(tmp_path / "absent", keep=False),
    ):
        pass


def test_a_copy_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 100_000)
    copy_synced(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == b"x" * 100_000
