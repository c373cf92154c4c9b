"""``oxlite worker``: processes that are killed, stopped, told to end, or cannot begin."""

import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.wait import LIMIT_SECONDS, until

from oxlite.tasks import Queue, TaskResult

APPLICATION = """
import os, signal, sys, time
from oxlite.tasks import Queue

queue = Queue("app.db")

@queue.task(name="pid")
def pid():
    return os.getpid()

@queue.task(name="sleep", takes_context=True)
def sleep(context, first, later=0.0):
    time.sleep(first if context.attempt == 1 else later)
    return os.getpid()

@queue.task(name="waits")
def waits(file):
    while not os.path.exists(file):
        time.sleep(0.01)

@queue.task(name="kills", takes_context=True)
def kills(context, attempts):
    if context.attempt <= attempts:
        os.kill(os.getpid(), signal.SIGKILL)
    return context.attempt

@queue.task(name="terminates")
def terminates():
    import multiprocessing
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(3600,))
    child.start()
    time.sleep(0.05)
    child.terminate()
    child.join(20)
    return child.exitcode

@queue.task(name="greedy")
def greedy():
    return len(bytearray(4 << 30))

@queue.task(name="deaf")
def deaf():
    time.sleep(3600)

@queue.task(name="stubborn")
def stubborn():
    try:
        while True:
            time.sleep(0.01)
    except BaseException:
        raise ValueError("interrupted") from None
"""


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[Queue]:
    """That of the application, with its tasks."""
    (tmp_path / "app.py").write_text(APPLICATION)
    with Queue(tmp_path / "app.db") as queue:
        for name in ("pid", "sleep", "waits", "kills", "greedy", "terminates"):
            queue.task(name=name)(_anything)
        for name in ("deaf", "stubborn"):
            queue.task(name=name, time_limit=0.1)(_anything)
        yield queue


def _anything(*_args: object, **_kwargs: object) -> None:
    raise AssertionError("only a worker runs it")


class Program:
    """An ``oxlite worker`` that runs; ``python`` says how it is begun."""

    def __init__(
        self, folder: Path, *options: str, python: Sequence[str] = ("-m", "oxlite.cli")
    ) -> None:
        command = [sys.executable, *python, "worker", "app:queue", *options]
        self.log = folder / "worker.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, cwd=folder, stdout=log, stderr=log, start_new_session=True
            )

    def processes(self) -> list[int]:
        """Those that run tasks."""
        if self.process.poll() is not None:
            return []
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in children.read_text().split()]

    def said(self) -> str:
        return self.log.read_text()


@contextmanager
def working(
    queue: Queue, *options: str, python: Sequence[str] = ("-m", "oxlite.cli")
) -> Iterator[Program]:
    """A program that has begun, and is ended."""
    program = Program(Path(queue.path).parent, *options, python=python)
    try:
        until(lambda: queue.stats().workers > 0 or program.process.poll() is not None)
        yield program
    finally:
        children = program.processes()
        program.process.kill()
        program.process.wait()
        for pid in children:
            os.kill(pid, signal.SIGKILL)


def ended(result: TaskResult[Any]) -> TaskResult[Any]:
    assert result.wait(LIMIT_SECONDS), result.status
    return result


def running(queue: Queue, result: TaskResult[Any]) -> int:
    """In which process a task runs, once it does."""
    until(lambda: queue.get(result.id).status == "running")
    found = re.search(r"\.(\d+)\.[0-9a-f]{16}$", queue.get(result.id).worker or "")
    assert found
    return int(found[1])


def test_tasks_are_run_by_all_processes(queue: Queue) -> None:
    with working(queue, "--processes", "2", "--threads", "2") as program:
        until(lambda: queue.stats().workers == 2)
        naps = queue.enqueue_many(queue.tasks["sleep"], [(0.1,)] * 8)
        assert {ended(one).return_value for one in naps} == set(program.processes())
        program.process.send_signal(signal.SIGTERM)
        assert program.process.wait(LIMIT_SECONDS) == 0
    assert queue.stats().workers == 0


@pytest.mark.parametrize("count", [1, 2])
def test_the_tasks_of_a_killed_process_are_run_again(queue: Queue, count: int) -> None:
    with working(queue, "--processes", str(count), "--threads", "4") as program:
        until(lambda: queue.stats().workers == count)
        naps = queue.enqueue_many(queue.tasks["sleep"], [(3600,)] * 3)
        pids = {running(queue, one) for one in naps}
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        for one in naps:
            assert ended(one).return_value not in pids
            assert one.attempts == 2
            assert [each.exception_class_path for each in one.errors] == [
                "oxlite.tasks.errors.WorkerLost"
            ]
        until(lambda: queue.stats().workers == count)
        assert len(program.processes()) == count
    assert "has ended by signal 9" in program.said()


def test_a_task_that_kills_its_process_is_set_aside(queue: Queue) -> None:
    with working(queue, "--processes", "2", "--threads", "1"):
        survives = queue.tasks["kills"].enqueue(2)
        poison = queue.tasks["kills"].enqueue(1000)
        assert ended(survives).return_value == 3
        assert ended(poison).status == "failed"
        assert poison.attempts == 3
        assert poison.errors[-1].message == "the process of its worker has ended"
        assert ended(queue.tasks["pid"].enqueue()).status == "successful"


def test_a_cancelled_task_is_not_run_again_after_the_death_of_its_process(queue: Queue) -> None:
    with working(queue, "--threads", "1"):
        nap = queue.tasks["sleep"].enqueue(3600)
        pid = running(queue, nap)
        assert queue.cancel(nap.id) == "running"
        os.kill(pid, signal.SIGKILL)
        assert (ended(nap).status, nap.attempts) == ("cancelled", 1)


def test_a_worker_elsewhere_takes_over(queue: Queue) -> None:
    """No supervisor is there, and no other process of its own."""
    with working(queue, "--threads", "2") as program:
        nap = queue.tasks["sleep"].enqueue(3600)
        running(queue, nap)
        with Queue(queue.path) as here:
            here.task(name="sleep")(lambda first: "here")
            with here.worker(threads=1):
                for pid in [program.process.pid, *program.processes()]:
                    os.kill(pid, signal.SIGKILL)
                assert ended(nap).return_value == "here"


def test_sigterm_finishes_what_runs(queue: Queue) -> None:
    with working(queue, "--threads", "1") as program:
        nap = queue.tasks["sleep"].enqueue(0.3)
        running(queue, nap)
        waiting = queue.tasks["pid"].enqueue()
        program.process.send_signal(signal.SIGTERM)
        assert program.process.wait(LIMIT_SECONDS) == 0
    assert queue.get(nap.id).status == "successful"
    assert queue.get(waiting.id).status == "ready"


@pytest.mark.parametrize("signals", [1, 2])
def test_what_takes_too_long_at_the_end_is_handed_back(queue: Queue, signals: int) -> None:
    grace = "0.2" if signals == 1 else "3600"
    with working(queue, "--threads", "2", "--grace", grace) as program:
        nap = queue.tasks["sleep"].enqueue(3600)
        running(queue, nap)
        for _ in range(signals):
            program.process.send_signal(signal.SIGINT)
            time.sleep(0.3)
        assert program.process.wait(LIMIT_SECONDS) == 0
    nap.refresh()
    assert (nap.status, nap.errors) == ("ready", [])
    assert queue.stats().workers == 0
    with working(queue):
        assert ended(nap).attempts == 2


def test_ctrl_c_comes_to_all_and_ends_them_once(queue: Queue) -> None:
    """A terminal sends it to each process: they wait for what the supervisor says."""
    with working(queue, "--threads", "1") as program:
        nap = queue.tasks["sleep"].enqueue(0.5)
        running(queue, nap)
        for pid in [*program.processes(), program.process.pid]:
            os.kill(pid, signal.SIGINT)
        assert program.process.wait(LIMIT_SECONDS) == 0
    assert queue.get(nap.id).status == "successful"


def test_sigterm_to_all_is_one(queue: Queue) -> None:
    """As service managers send it: what runs is finished all the same."""
    with working(queue, "--threads", "1") as program:
        nap = queue.tasks["sleep"].enqueue(0.5)
        running(queue, nap)
        os.killpg(program.process.pid, signal.SIGTERM)
        program.process.send_signal(signal.SIGTERM)
        assert program.process.wait(LIMIT_SECONDS) == 0
    assert (queue.get(nap.id).status, queue.get(nap.id).attempts) == ("successful", 1)


def test_signals_one_soon_after_the_other_are_one(queue: Queue) -> None:
    """However slow the machine is: here what comes within an hour is soon."""
    within_an_hour = """if True:
        from oxlite import cli
        from oxlite.tasks import supervisor
        supervisor._ONE_SIGNAL_SECONDS = 3600.0
        cli.main()
    """
    with working(queue, "--threads", "1", python=("-c", within_an_hour)) as program:
        waiting = queue.tasks["waits"].enqueue("go_on")
        running(queue, waiting)
        for _ in range(2):
            program.process.send_signal(signal.SIGTERM)
            time.sleep(0.1)
        (Path(queue.path).parent / "go_on").touch()
        assert program.process.wait(LIMIT_SECONDS) == 0
    assert queue.get(waiting.id).status == "successful"


def test_a_child_of_a_task_can_be_terminated(queue: Queue) -> None:
    with working(queue, "--threads", "2", "--grace", "0.5"):
        nap = queue.tasks["sleep"].enqueue(1.5)
        assert ended(queue.tasks["terminates"].enqueue()).return_value == -signal.SIGTERM
        assert ended(nap).attempts == 1


def test_a_process_ends_after_its_supervisor(queue: Queue) -> None:
    with working(queue, "--threads", "1") as program:
        nap = queue.tasks["sleep"].enqueue(0.3)
        pid = running(queue, nap)
        program.process.kill()
        program.process.wait()
        assert ended(nap).return_value == pid
        until(lambda: queue.stats().workers == 0)


@pytest.mark.slow
def test_a_process_that_is_stopped_for_long_is_killed(queue: Queue) -> None:
    """After ten seconds: a shorter stop does no harm."""
    with working(queue, "--processes", "2", "--threads", "1"):
        until(lambda: queue.stats().workers == 2)
        nap = queue.tasks["sleep"].enqueue(1.0)
        pid = running(queue, nap)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(2.0)
        os.kill(pid, signal.SIGCONT)
        assert ended(nap).return_value == pid
        nap = queue.tasks["sleep"].enqueue(3600)
        pid = running(queue, nap)
        os.kill(pid, signal.SIGSTOP)
        assert ended(nap).return_value != pid


def test_a_time_limit_is_kept_by_a_signal(queue: Queue) -> None:
    with working(queue, "--threads", "1"):
        assert ended(queue.tasks["stubborn"].enqueue()).errors[-1].message == "interrupted"


def test_what_does_not_end_after_its_time_limit_costs_its_process(queue: Queue) -> None:
    # What waits in C hears nothing in a thread that is not the main one.
    with working(queue, "--threads", "2", "--overtime", "0"):
        found = ended(queue.tasks["deaf"].enqueue())
        assert found.status == "failed"
        assert [error.exception_class_path for error in found.errors] == [
            "oxlite.tasks.errors.WorkerLost"
        ] * 3
        assert ended(queue.tasks["pid"].enqueue()).status == "successful"


def test_where_no_process_can_be_begun_one_is_begun_later(queue: Queue) -> None:
    with working(queue, "--threads", "1") as program:
        supervisor = program.process.pid
        limits = resource.prlimit(supervisor, resource.RLIMIT_NOFILE)
        resource.prlimit(supervisor, resource.RLIMIT_NOFILE, (4, limits[1]))
        os.kill(program.processes()[0], signal.SIGKILL)
        until(lambda: "no process can be begun" in program.said())
        resource.prlimit(supervisor, resource.RLIMIT_NOFILE, limits)
        assert ended(queue.tasks["pid"].enqueue()).status == "successful"
        program.process.send_signal(signal.SIGTERM)
        assert program.process.wait(LIMIT_SECONDS) == 0


def test_a_process_that_is_there_for_more_is_not_killed_for_its_task(queue: Queue) -> None:
    serves = "from app import *; queue.worker(threads=1).start(); input(); os._exit(0)"
    web = subprocess.Popen(
        [sys.executable, "-c", serves], cwd=Path(queue.path).parent, stdin=subprocess.PIPE
    )
    try:
        nap = queue.tasks["sleep"].using(time_limit=3600).enqueue(3600)
        assert running(queue, nap) == web.pid
        with queue.database.write() as connection:
            connection.execute("UPDATE oxlite_task SET deadline = 0")
        with working(queue, "--threads", "1"):
            assert ended(nap).attempts == 2
        web.communicate(b"\n", LIMIT_SECONDS)
        assert web.returncode == 0
    finally:
        web.kill()
        web.wait()


def test_memory_is_limited(queue: Queue) -> None:
    with working(queue, "--memory", "1024"):
        error = ended(queue.tasks["greedy"].enqueue()).errors[-1]
        assert error.exception_class_path == "builtins.MemoryError"


@pytest.mark.parametrize(
    ("module", "target", "says"),
    [
        ("", "gone:queue", "there is no module 'gone'"),
        ("x = 1", "app2:queue", "'app2' has no oxlite.tasks.Queue of the name 'queue'"),
        ("import gone", "app2:queue", "No module named 'gone'"),
        ("1 / 0", "app2:queue", "ZeroDivisionError"),
        ("import os; os._exit(7)", "app2:queue", "has ended with exit code 7"),
        ("", "app2", "'app2' names no queue: say module:name"),
    ],
)
def test_what_cannot_begin_says_why(tmp_path: Path, module: str, target: str, says: str) -> None:
    (tmp_path / "app2.py").write_text(module)
    command = [sys.executable, "-m", "oxlite.cli", "worker", target, "--processes", "2"]
    found = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )
    assert found.returncode == 1
    assert says in found.stderr


def test_processes_that_die_one_after_the_other_are_begun_again(queue: Queue) -> None:
    with working(queue, "--threads", "1") as program:
        for _ in range(3):
            queue.tasks["kills"].enqueue(1000)
        until(lambda: len(queue.find(status="failed")) == 3)
        assert ended(queue.tasks["pid"].enqueue()).status == "successful"
    assert program.said().count("has ended by signal 9") == 9
