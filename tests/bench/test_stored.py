"""Stored results are read back and reported; files that are none are refused by name."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oxlite.bench import FutureRecordError, LabError, MalformedRecordError, UsageError
from oxlite.bench.stored import read, read_all

Recorded = Callable[[str], Path]


def changed(path: Path, target: Path, change: Callable[[Any], object]) -> Path:
    data = json.loads(path.read_text())
    change(data)
    target.write_text(json.dumps(data))
    return target


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda d: d.update(version=99), FutureRecordError, "schema version 99"),
        (lambda d: d.update(version="1"), MalformedRecordError, "no valid schema version"),
        (lambda d: d.update(format="other"), MalformedRecordError, "not a result"),
        (lambda d: d.pop("rows"), MalformedRecordError, "lacks the field 'rows'"),
        (lambda d: d.update(rows=7), MalformedRecordError, "malformed"),
        (lambda d: d.update(workload="tpcc"), MalformedRecordError, "no workload"),
        (lambda d: d["rows"][0].update(environment=[1]), MalformedRecordError, "malformed"),
        (lambda d: d["rows"][0]["environment"].pop("machine"), MalformedRecordError, "machine"),
        (lambda d: d["rows"][0]["scenario"].update(journal="x"), MalformedRecordError, "'x'"),
        (lambda d: d["rows"][0]["samples"][0].update(figures=3), MalformedRecordError, "malformed"),
    ],
)
def test_what_is_no_result_is_refused(
    recorded: Recorded,
    tmp_path: Path,
    change: Callable[[Any], object],
    error: type[LabError],
    message: str,
) -> None:
    path = changed(recorded("kv"), tmp_path / "changed.json", change)
    with pytest.raises(error, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "text.json").write_text("{")
    with pytest.raises(MalformedRecordError, match=r"text\.json is not JSON"):
        read(tmp_path / "text.json")
    with pytest.raises(UsageError, match="No such file"):
        read(tmp_path / "absent.json")
    with pytest.raises(UsageError, match="at least one"):
        read_all([])


def test_the_command_reports_in_three_forms(
    bench: Callable[..., Any], recorded: Recorded, tmp_path: Path
) -> None:
    shown = bench("report", recorded("kv"), recorded("driver"))
    assert shown.returncode == 0, shown.stderr
    assert "kv: key-value" in shown.stdout
    assert "repeat with: oxlite bench driver" in shown.stdout
    html, markdown = tmp_path / "r.html", tmp_path / "r.md"
    written = bench("report", recorded("kv"), "--html", html, "--markdown", markdown)
    assert written.returncode == 0, written.stderr
    assert f"report: {html}" in written.stdout.replace("\n", " ")
    assert html.read_text().startswith("<!DOCTYPE html>")
    assert "| stdlib" in markdown.read_text()


@pytest.mark.parametrize("option", ["--html", "--markdown"])
def test_a_report_that_cannot_be_written_is_one_line(
    bench: Callable[..., Any], recorded: Recorded, option: str
) -> None:
    ended = bench("report", recorded("kv"), option, "/dev/full")
    assert ended.returncode == 2
    assert ended.stderr == "oxlite: error: cannot write /dev/full: No space left on device\n"
