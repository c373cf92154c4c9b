"""A sync is measured on a file of our own, which never stays."""

import os
from pathlib import Path

import pytest

from oxlite.environment import fsync, measure_fsync


def test_each_call_is_measured_after_each_kind_of_write(tmp_path: Path) -> None:
    result = measure_fsync(tmp_path, samples=3)
    assert result["measured"] is True
    assert result["block_bytes"] == 4096
    assert {(one["call"], one["write"]) for one in result["series"]} == {
        (call, write) for call in ("fsync", "fdatasync") for write in ("append", "overwrite")
    }
    for one in result["series"]:
        assert one["samples"] == 3
        assert 0 <= one["min_us"] <= one["median_us"] <= one["max_us"]
    assert list(tmp_path.iterdir()) == []


def test_a_slow_disk_ends_a_series_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fsync, "_SERIES_LIMIT_SECONDS", 0.0)
    series = measure_fsync(tmp_path, samples=50)["series"]
    assert {one["samples"] for one in series} == {fsync._FEWEST_SAMPLES}


@pytest.mark.parametrize("directory", ["/proc", "/no/such/directory"])
def test_where_no_file_can_be_made_the_reason_is_given(directory: str) -> None:
    result = measure_fsync(directory)
    assert result["measured"] is False
    assert result["reason"]
    assert directory not in result["reason"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_the_file_is_removed_when_syncing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def failing(descriptor: int) -> None:
        raise error

    monkeypatch.setattr(os, "fdatasync", failing)
    if isinstance(error, OSError):
        assert measure_fsync(tmp_path, samples=1) == {
            "measured": False, "reason": "No space left on device",
        }  # fmt: skip
    else:
        with pytest.raises(KeyboardInterrupt):
            measure_fsync(tmp_path, samples=1)
    assert list(tmp_path.iterdir()) == []


def test_a_platform_without_fdatasync_measures_fsync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "fdatasync")
    assert {one["call"] for one in measure_fsync(tmp_path, samples=1)["series"]} == {"fsync"}


def test_no_samples_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        measure_fsync(tmp_path, samples=0)
