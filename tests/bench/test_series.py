"""All workloads in a row: finished files are kept, what cannot run does not stop the others."""

import json
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from oxlite.bench import UsageError
from oxlite.bench.harness.model import Metric
from oxlite.bench.series import LOCK, Series, perform_all
from oxlite.bench.stored import read
from oxlite.bench.workloads.catalogue import WORKLOADS

pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 90.0
FILE = "driver.quick.json"
REPORT = "report.quick.html"


class Watching:
    def __init__(self, listener: Any) -> None:  # noqa: ANN401
        self.heard: list[tuple[str, ...]] = []
        self._listener = listener

    def workload(
        self, place: int, count: int, name: str, spent_seconds: float, planned_seconds: float | None
    ) -> None:
        self.heard.append(("begun", name))

    def kept(self, name: str, path: Path) -> None:
        self.heard.append(("kept", name))

    def trouble(self, name: str, why: str) -> None:
        self.heard.append(("trouble", name, why))

    def listening(self) -> AbstractContextManager[Any]:
        return nullcontext(self._listener)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the finished result of a quick run of ``driver``."""
    from rich.console import Console

    from oxlite.bench.report.progress import Lines

    place = tmp_path_factory.mktemp("series")
    quiet = Watching(Lines(Console(quiet=True)))
    outcome = perform_all(Series(place, ("driver",), quick=True, time_budget_seconds=0), quiet)
    assert not outcome.failed()
    return place


def again(place: Path, listener: Any, **options: Any) -> list[tuple[str, ...]]:  # noqa: ANN401
    watching = Watching(listener)
    settings = {"workloads": ("driver",), "quick": True, "time_budget_seconds": 0.0, **options}
    perform_all(Series(place, **settings), watching)
    return watching.heard


@pytest.fixture
def gate_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def impossible(*_: object, **__: object) -> Metric:
        raise UsageError("nothing to run here")

    monkeypatch.setattr(WORKLOADS.get("gate"), "parameters", impossible)


def test_a_series_ends_with_its_report(finished: Path) -> None:
    assert sorted(entry.name for entry in finished.iterdir()) == [LOCK, FILE, REPORT]
    assert "driver: " in (finished / REPORT).read_text()


def test_what_is_finished_is_kept(finished: Path, listener: Any) -> None:  # noqa: ANN401
    before = (finished / FILE).read_bytes()
    assert again(finished, listener) == [("begun", "driver"), ("kept", "driver")]
    assert (finished / FILE).read_bytes() == before


def _row(data: Any, driver: str) -> Any:  # noqa: ANN401
    return next(row for row in data["rows"] if row["scenario"]["driver"] == driver)


def test_what_a_peer_could_not_do_is_not_measured_anew(
    finished: Path, tmp_path: Path, listener: object
) -> None:
    data = json.loads((finished / FILE).read_text())
    _row(data, "apsw").update(failure="apsw cannot be loaded")
    (tmp_path / FILE).write_text(json.dumps(data))
    assert again(tmp_path, listener) == [("begun", "driver"), ("kept", "driver")]


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.update(interrupted=True),
        lambda data: data["parameters"].update(seed=7),
        lambda data: data.update(command=data["command"].replace("--quick", "")),
        lambda data: _row(data, "oxlite").update(failure="worker 1 was killed"),
        lambda data: data.update(version=99),
        lambda data: data.update(command=f"{data['command']} --directory /elsewhere"),
        lambda data: data["rows"][0]["environment"]["machine"]["file_system"].update(type="nfs"),
        lambda data: [
            row["samples"][0]["detail"]["versions"].update(driver="0.0.1") for row in data["rows"]
        ],
        lambda data: data["plan"].update(time_budget_seconds=-1),
    ],
    ids=[
        "interrupted",
        "other parameters",
        "not the quick one",
        "failed",
        "of a later lab",
        "elsewhere",
        "on another file system",
        "of another Oxlite",
        "with less time",
    ],
)
def test_what_is_not_that_result_is_measured_anew(
    finished: Path, tmp_path: Path, listener: object, change: Callable[[Any], object]
) -> None:
    data = json.loads((finished / FILE).read_text())
    change(data)
    (tmp_path / FILE).write_text(json.dumps(data))
    assert again(tmp_path, listener) == [("begun", "driver")]
    result = read(tmp_path / FILE)
    assert not result.interrupted
    assert not result.failed()


def test_fewer_repeats_are_measured_anew_only_if_there_is_time_for_more(
    finished: Path, tmp_path: Path, listener: object
) -> None:
    data = json.loads((finished / FILE).read_text())
    assert data["repeats"] < data["plan"]["repeats"]
    data["plan"]["time_budget_seconds"] = 100
    (tmp_path / FILE).write_text(json.dumps(data))
    heard = again(tmp_path, listener, time_budget_seconds=150.0)
    assert heard == [("begun", "driver"), ("kept", "driver")]


def test_the_report_is_of_all_results_of_its_kind(
    finished: Path, recorded: Callable[[str], Path], tmp_path: Path, listener: object
) -> None:
    (tmp_path / FILE).write_bytes((finished / FILE).read_bytes())
    (tmp_path / "kv.quick.json").write_bytes(recorded("kv").read_bytes())
    (tmp_path / "inserts.json").write_bytes(recorded("ladder").read_bytes())
    again(tmp_path, listener)
    report = (tmp_path / REPORT).read_text()
    assert "kv: " in report
    assert "inserts: " not in report


def test_a_place_that_is_none_is_refused_once(tmp_path: Path, listener: Any) -> None:  # noqa: ANN401
    watching = Watching(listener)
    absent = Series(tmp_path, quick=True, time_budget_seconds=0, directory=tmp_path / "absent")
    with pytest.raises(UsageError, match="absent is not a directory"):
        perform_all(absent, watching)
    assert not watching.heard


@pytest.mark.usefixtures("gate_cannot_run")
def test_two_series_do_not_write_the_same_files(tmp_path: Path, listener: object) -> None:
    series = Series(tmp_path, ("gate",), quick=True)

    class Meanwhile(Watching):
        def workload(
            self, place: int, count: int, name: str, spent: float, planned: float | None
        ) -> None:
            super().workload(place, count, name, spent, planned)
            with pytest.raises(UsageError, match="another series is being measured into"):
                perform_all(series, Watching(listener))

    for _ in range(2):  # one after the other they do
        watching = Meanwhile(listener)
        perform_all(series, watching)
        assert ("begun", "gate") in watching.heard


@pytest.mark.usefixtures("gate_cannot_run")
def test_no_report_is_announced_where_there_is_none(tmp_path: Path, listener: object) -> None:
    outcome = perform_all(Series(tmp_path, ("gate",), quick=True), Watching(listener))
    assert outcome.report is None
    assert outcome.failed()
    assert [entry.name for entry in tmp_path.iterdir()] == [LOCK]


def test_the_names_are_of_workloads(tmp_path: Path, listener: Any) -> None:  # noqa: ANN401
    with pytest.raises(UsageError, match="did you mean 'inserts'"):
        again(tmp_path, listener, workloads=("driver", "insert"))
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is not a directory"):
        again(tmp_path / "file", listener)


@pytest.mark.usefixtures("gate_cannot_run")
def test_one_that_cannot_run_does_not_stop_the_others(finished: Path, listener: object) -> None:
    watching = Watching(listener)
    settings = Series(finished, ("gate", "driver"), quick=True, time_budget_seconds=0)
    outcome = perform_all(settings, watching)
    assert ("trouble", "gate", "nothing to run here") in watching.heard
    assert watching.heard[-1] == ("kept", "driver")
    assert outcome.failed()
    assert [result.workload for result in outcome.results] == ["driver"]


def test_ctrl_c_keeps_what_is_finished_and_goes_on_later(
    start: Callable[..., Any], finished: Path, tmp_path: Path
) -> None:
    results, place = tmp_path / "results", tmp_path / "place"
    results.mkdir()
    place.mkdir()
    data = json.loads((finished / FILE).read_text())
    data["plan"]["time_budget_seconds"] = 1000
    data["command"] += f" --directory {place}"
    (results / FILE).write_text(json.dumps(data))
    arguments = (
        "all", "--quick", "--workload", "driver", "--workload", "busy",
        "--time-budget", "1000", "--results", str(results), "--directory", str(place),
    )  # fmt: skip
    lab = start(*arguments)
    heard = []
    for line in lab.stdout:
        heard.append(line)
        if line.startswith("repeat 2/"):
            break
    lab.send_signal(signal.SIGINT)
    _, stderr = lab.communicate(timeout=PATIENCE_SECONDS)
    assert lab.returncode == 128 + signal.SIGINT
    assert "Traceback" not in stderr
    assert any("driver was finished before" in line for line in heard)
    assert not list(place.iterdir())
    names = sorted(entry.name for entry in results.iterdir())
    assert names == [LOCK, "busy.quick.json", FILE, REPORT]
    assert read(results / "busy.quick.json").interrupted
    assert "busy was interrupted" in (results / REPORT).read_text()
