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
from oxlite.bench.series import Series, perform_all
from oxlite.bench.stored import read
from oxlite.bench.workloads.catalogue import WORKLOADS

PATIENCE_SECONDS = 90.0
SHORT = ("all", "--quick", "--time-budget", "0")


class Watching:
    def __init__(self, listener: Any) -> None:  # noqa: ANN401
        self.heard: list[tuple[str, ...]] = []
        self._listener = listener

    def workload(self, place: int, count: int, name: str, left_seconds: float | None) -> None:
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


def test_a_series_ends_with_its_report(finished: Path) -> None:
    assert sorted(entry.name for entry in finished.iterdir()) == ["driver.json", "report.html"]
    assert "driver: " in (finished / "report.html").read_text()


def test_what_is_finished_is_kept(finished: Path, listener: Any) -> None:  # noqa: ANN401
    before = (finished / "driver.json").read_bytes()
    assert again(finished, listener) == [("begun", "driver"), ("kept", "driver")]
    assert (finished / "driver.json").read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.update(interrupted=True),
        lambda data: data["parameters"].update(seed=7),
        lambda data: data.update(command=data["command"].replace("--quick", "")),
        lambda data: data["rows"][0].update(failure="worker 1 was killed"),
        lambda data: data.update(version=99),
    ],
    ids=["interrupted", "other parameters", "not the quick one", "failed", "of a later lab"],
)
def test_what_is_not_that_result_is_measured_anew(
    finished: Path, tmp_path: Path, listener: object, change: Callable[[Any], object]
) -> None:
    data = json.loads((finished / "driver.json").read_text())
    change(data)
    (tmp_path / "driver.json").write_text(json.dumps(data))
    assert again(tmp_path, listener) == [("begun", "driver")]
    result = read(tmp_path / "driver.json")
    assert not result.interrupted
    assert not result.failed()


def test_the_names_are_of_workloads(tmp_path: Path, listener: Any) -> None:  # noqa: ANN401
    with pytest.raises(UsageError, match="did you mean 'inserts'"):
        again(tmp_path, listener, workloads=("driver", "insert"))
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot make"):
        again(tmp_path / "file", listener)


def test_one_that_cannot_run_does_not_stop_the_others(
    finished: Path,
    listener: object,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workload = WORKLOADS.get("gate")

    def impossible(*_: object, **__: object) -> Metric:
        raise UsageError("nothing to run here")

    monkeypatch.setattr(workload, "parameters", impossible)
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
    (results / "driver.json").write_bytes((finished / "driver.json").read_bytes())
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
    assert names == ["busy.json", "driver.json", "report.html"]
    assert read(results / "busy.json").interrupted
    assert "busy was interrupted" in (results / "report.html").read_text()
