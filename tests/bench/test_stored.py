"""Stored results are read back and reported; files that are none are refused by name."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oxlite.bench import FutureRecordError, LabError, MalformedRecordError, UsageError
from oxlite.bench.stored import read, read_all, stored_in

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


ENORMOUS = 10**400


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["rows"][0]["samples"][0]["figures"].update(wall_seconds=math.inf),
        lambda d: d["rows"][0]["samples"][0]["figures"].update(wall_seconds=math.nan),
        lambda d: d["rows"][0]["samples"][0]["figures"].update(wall_seconds="nan"),
        lambda d: d["rows"][0]["samples"][0]["figures"].update(wall_seconds=ENORMOUS),
        lambda d: d["rows"][0]["samples"][0].update(asked=ENORMOUS),
        lambda d: d["rows"][0]["samples"][0].update(errors={"a": [1]}),
        lambda d: d["rows"][0]["samples"][0].update(detail=7),
        lambda d: d["rows"][0]["samples"][0]["detail"].update(versions=3),
        lambda d: d["rows"][0]["latencies"]["read"].update(percentiles_ns={"nan": 1}),
        lambda d: d["rows"][0]["latencies"]["read"].update(percentiles_ns={"101": 1}),
        lambda d: d["rows"][0]["latencies"]["read"].update(percentiles_ns={"50": [1]}),
        lambda d: d["rows"][0]["latencies"]["read"].update(maximum_ns="long"),
        lambda d: d["rows"][0]["environment"].update(connection=[1]),
        lambda d: d["rows"][0]["environment"]["connection"].update(pragmas=[1]),
        lambda d: d["rows"][0]["environment"]["connection"].update(compile_options=7),
        lambda d: d["rows"][0]["environment"]["connection"].update(compile_options=[7]),
        lambda d: d["rows"][0]["environment"]["machine"].update(cpu="Z80"),
        lambda d: d["rows"][0]["environment"]["machine"].update(memory_total_bytes=ENORMOUS),
        lambda d: d["rows"][0]["environment"]["machine"]["file_system"].update(options=3),
        lambda d: d["rows"][0]["scenario"].update(processes="many"),
        lambda d: d["rows"][0]["scenario"].update(processes=[2]),
        lambda d: d["rows"][0]["scenario"].update(colour="red"),
        lambda d: d["plan"].update(repeats="many"),
        lambda d: d["plan"].update(time_budget_seconds=None),
        lambda d: d.update(parameters=[1]),
        lambda d: d.update(command='oxlite bench "kv'),
        lambda d: d.update(duration_seconds=math.inf),
        lambda d: d.update(compared=[1]),
        lambda d: d.update(orders=7),
        lambda d: d.update(left=7),
        lambda d: d.update(rows=[None]),
    ],
)
def test_whatever_is_wrong_in_a_file_is_one_line(
    recorded: Recorded, tmp_path: Path, change: Callable[[Any], object]
) -> None:
    path = changed(recorded("kv"), tmp_path / "changed.json", change)
    with pytest.raises(MalformedRecordError) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("repeats", [0, 10**12])
def test_a_run_in_which_everything_failed_is_reported_however_often_it_was_tried(
    recorded: Recorded, tmp_path: Path, repeats: int
) -> None:
    def fail(data: dict[str, Any]) -> None:
        data["repeats"] = repeats
        for row in data["rows"]:
            row.update(failure="gone", samples=[], latencies={}, environment=None)

    assert read(changed(recorded("kv"), tmp_path / "failed.json", fail)).failed()


def test_a_file_nested_too_deeply_is_no_result(bench: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * 200_000)
    ended = bench("report", path)
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"oxlite: error: {path} is not JSON: ")
    assert len(ended.stderr.splitlines()) == 1


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "text.json").write_text("{")
    with pytest.raises(MalformedRecordError, match=r"text\.json is not JSON"):
        read(tmp_path / "text.json")
    with pytest.raises(UsageError, match="No such file"):
        read(tmp_path / "absent.json")
    with pytest.raises(UsageError, match="at least one"):
        read_all([])


def test_a_result_that_is_named_twice_is_read_once(recorded: Recorded, tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(recorded("kv"))
    read_results = read_all([recorded("kv"), recorded("driver"), link, recorded("kv")])
    assert [result.workload for result in read_results] == ["kv", "driver"]


def test_of_a_series_whole_results_are_taken_the_full_ones_last(tmp_path: Path) -> None:
    for name in ("kv.json", "kv.quick.json", "web.quick.json", "kv.part.json", "gate.json"):
        (tmp_path / name).touch()
    names = [path.name for path in stored_in(tmp_path)]
    assert names == ["kv.quick.json", "web.quick.json", "gate.json", "kv.json"]


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


def test_a_report_destroys_neither_its_input_nor_another(
    bench: Callable[..., Any], recorded: Recorded, tmp_path: Path
) -> None:
    own, link = tmp_path / "own.json", tmp_path / "link"
    own.write_bytes(recorded("kv").read_bytes())
    link.symlink_to(own)
    for option in ("--html", "--markdown"):
        ended = bench("report", own, option, link)
        assert ended.returncode == 2
        assert ended.stderr == (
            f"oxlite: error: {link} is a result: name another file for the report\n"
        )
    same = bench("report", own, "--html", tmp_path / "r", "--markdown", tmp_path / "r")
    assert same.returncode == 2
    assert "--html and --markdown name the same file" in same.stderr
    assert own.read_bytes() == recorded("kv").read_bytes()
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("option", ["--html", "--markdown"])
def test_a_report_that_cannot_be_written_is_one_line(
    bench: Callable[..., Any], recorded: Recorded, option: str
) -> None:
    ended = bench("report", recorded("kv"), option, "/dev/full")
    assert ended.returncode == 2
    assert ended.stderr == "oxlite: error: cannot write /dev/full: No space left on device\n"
