"""``oxlite tasks`` as a user meets it."""

import json
from pathlib import Path

import pytest

from oxlite.cli import main
from oxlite.tasks import Queue


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with Queue(tmp_path / "app.db") as queue:
        fails = queue.task(name="app.fails")(lambda n: 1 / n)
        with queue.worker(threads=1):
            for result in [fails.enqueue(0), fails.enqueue(0), fails.enqueue(1)]:
                assert result.wait(60)
        fails.using(queue_name="mails").enqueue(5)
    return tmp_path / "app.db"


def statuses(file: Path) -> list[str]:
    with Queue(file) as queue:
        return [one.status for one in reversed(queue.find())]


def test_how_queues_stand_is_shown(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "stats", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "mails" in shown
    assert "0 workers" in shown
    assert main(["tasks", "stats", str(file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["counts"] == {
        "default": {"failed": 2, "successful": 1}, "mails": {"ready": 1},
    }  # fmt: skip


def test_tasks_are_listed(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "list", str(file), "--status", "failed"]) == 0
    assert "app.fails" in capsys.readouterr().out
    assert main(["tasks", "list", str(file), "--queue", "default", "--limit", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["tasks"]
    assert [one["id"] for one in found] == [3, 2]
    assert found[1]["errors"][0]["exception_class_path"] == "builtins.ZeroDivisionError"


def test_tasks_are_retried_discarded_and_cancelled(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tasks", "retry", str(file), "1"]) == 0
    assert statuses(file) == ["ready", "failed", "successful", "ready"]
    assert main(["tasks", "cancel", str(file), "1", "4"]) == 0
    assert main(["tasks", "retry", str(file), "--all", "--status", "cancelled"]) == 0
    assert capsys.readouterr().out.endswith("2 tasks to run again\n")
    assert main(["tasks", "discard", str(file), "--all", "--name", "app.fails"]) == 0
    assert statuses(file) == ["ready", "successful", "ready"]
    assert main(["tasks", "cancel", str(file)]) == 2
    assert "name tasks by their numbers" in capsys.readouterr().err
    assert main(["tasks", "retry", str(file), "3", "--status", "failed"]) == 2
    assert "go with --all" in capsys.readouterr().err
    assert main(["tasks", "pause", str(file), "male"]) == 0
    assert "No task is in male now" in capsys.readouterr().err
    assert main(["tasks", "stats", str(file)]) == 0
    assert "male (paused)" in capsys.readouterr().out
    assert main(["tasks", "retry", str(file), "3", "99"]) == 1
    assert "2 are not there, or not in a status for that" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["1", "--all"]])
def test_numbers_or_all_are_named(
    file: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main(["tasks", "discard", str(file), *arguments]) == 2
    assert "name tasks by their numbers, or say --all" in capsys.readouterr().err


def test_a_queue_is_paused_and_resumed(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", "pause", str(file), "mails"]) == 0
    assert "mails is paused; go on: oxlite tasks resume" in capsys.readouterr().out
    with Queue(file) as queue:
        assert queue.paused() == ["mails"]
    assert main(["tasks", "resume", str(file), "mails"]) == 0
    assert main(["tasks", "resume", str(file), "mails"]) == 0
    assert capsys.readouterr().out == "mails goes on\nmails was not paused\n"


def test_a_file_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tasks", "stats", str(tmp_path / "gone.db")]) == 2
    assert "gone.db is not there" in capsys.readouterr().err
    assert not (tmp_path / "gone.db").exists()
