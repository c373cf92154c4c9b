"""Writers in line that are killed, stopped or cancelled, each at every step of a write."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.process.actors import HEAD, WAITING, Actor, Start, locked, rows
from tests.wait import until

import oxlite

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="processes stand in line on Linux alone"
)

# The steps at which somebody who has SQLite's lock can be met, and whether what he was about
# is committed by then.
WITH_LOCK = {
    "in a transaction": False,
    "in mid-statement": False,
    "in mid-commit": False,
}
STEPS = {
    "in its turn": False,
    "head of the queue": False,
    "waiting for the gate": False,
    **WITH_LOCK,
    "just after the commit": True,
}


def bring(start: Start, path: Path, step: str) -> tuple[Actor, list[Actor]]:
    """A process at that step, and those it has taken to bring it there; who waits comes first."""
    others = []
    if step in {"head of the queue", "waiting for the gate"}:
        # Whoever holds the lock knows of no queue, so the next one is its head.
        outsider = start("standard")
        outsider.does("connection = standard.connect(sys.argv[1], isolation_level=None)")
        outsider.does("execute('BEGIN IMMEDIATE')")
        others.append(outsider)
        if step == "waiting for the gate":
            head = start()
            head.writes("INSERT INTO t VALUES ('head')")
            until(lambda: HEAD in locked(path))
            others.insert(0, head)  # freed by the other one, it would write
    actor = start()
    insert = "INSERT INTO t VALUES ('victim')"
    match step:
        case "in its turn":
            assert actor.does("execute('UPDATE t SET x = x')") == "done"
        case "head of the queue":
            actor.writes(insert)
            until(lambda: HEAD in locked(path))
        case "waiting for the gate":
            actor.writes(insert)
            until(lambda: WAITING in locked(path))
        case "in a transaction":
            assert actor.does(f'execute("BEGIN IMMEDIATE", "{insert}")') == "done"
        case "in mid-statement":
            actor.does("connection.create_function('pause', 0, pause)")
            actor.writes("INSERT INTO t SELECT 'victim' WHERE pause()")
            assert actor.answer() == "paused"
        case "in mid-commit":
            actor.does("connection.set_commit_hook(lambda: not pause())")
            actor.writes(insert)
            assert actor.answer() == "paused"
        case "just after the commit":
            actor.does("connection.set_wal_hook(pause)")
            actor.writes(insert)
            assert actor.answer() == "paused"
    return actor, others


@pytest.mark.parametrize("step", STEPS)
def test_a_killed_writer_holds_nobody_up(start: Start, path: Path, step: str) -> None:
    waiting, outsider = start(), start("standard")
    outsider.does("connection = standard.connect(sys.argv[1], isolation_level=None, timeout=30)")
    victim, others = bring(start, path, step)
    for actor in (waiting, outsider):
        actor.writes("INSERT INTO t VALUES ('after')")
    victim.kill()
    for other in others:
        other.kill()
    assert [waiting.answer(), outsider.answer()] == ["done", "done"]
    assert sorted(map(str, rows(path))) == ["after"] * 2 + ["victim"] * STEPS[step]
    # The thread that waits for the queue may still be on its way out of it.
    until(lambda: not locked(path))


@pytest.mark.parametrize("step", STEPS)
def test_a_stopped_writer_keeps_the_lock_alone(start: Start, path: Path, step: str) -> None:
    """Stopped without SQLite's lock it holds nobody up; and it goes on afterwards."""
    waiting = [start() for _ in range(3)]
    victim, others = bring(start, path, step)
    victim.signal(signal.SIGSTOP)
    for actor in waiting:
        actor.writes("INSERT INTO t VALUES ('after')")
    if step in WITH_LOCK:
        # They wait, and one that does so for a short time only is told by whom it is held.
        impatient = oxlite.connect(path, timeout=0.3)
        with pytest.raises(oxlite.LockedError):
            impatient.execute("INSERT INTO t VALUES ('impatient')")
        impatient.close()
        victim.signal(signal.SIGCONT)
        victim.tell("execute('COMMIT')" if step == "in a transaction" else "")
        assert victim.answer() == "done"
    else:
        for other in others:
            other.kill()
    assert [actor.answer() for actor in waiting] == ["done"] * 3
    if step not in WITH_LOCK:
        victim.signal(signal.SIGCONT)
        if step == "just after the commit":
            victim.tell("")
        if step != "in its turn":
            assert victim.answer() == "done"
    found = rows(path)
    assert found.count("after") == 3
    assert found.count("victim") == (step != "in its turn")
    until(lambda: not locked(path))


@pytest.mark.parametrize("place", ["lane", "head of the queue", "waiting for the gate"])
@pytest.mark.parametrize("how", ["timeout", "statement timeout", "interrupt", "SIGINT"])
def test_who_waits_no_longer_leaves_the_queue(
    start: Start, path: Path, place: str, how: str
) -> None:
    holder = start("standard")
    holder.does("connection = standard.connect(sys.argv[1], isolation_level=None)")
    holder.does("execute('BEGIN IMMEDIATE')")
    if place == "waiting for the gate":
        head = start()
        head.writes("INSERT INTO t VALUES ('head')")
        until(lambda: HEAD in locked(path))
    actor = start()
    option = {"timeout": "timeout=1", "statement timeout": "statement_timeout=1"}.get(how, "")
    actor.does(f"connection = oxlite.connect(sys.argv[1], isolation_level=None, {option})")
    if place == "lane":
        # The pass is another thread's of the same process.
        actor.does("other = oxlite.connect(sys.argv[1], check_same_thread=False, timeout=30)")
        actor.does("write = lambda: other.execute(\"INSERT INTO t VALUES ('head')\")")
        actor.does("thread = threading.Thread(target=write); thread.start()")
        until(lambda: HEAD in locked(path))
    # In the line that waits, so that it comes in the wait.
    first = {
        "interrupt": "threading.Timer(0.5, connection.interrupt).start(); ",
        "SIGINT": "threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start(); ",
    }.get(how, "")
    actor.tell(f"{first}execute(\"INSERT INTO t VALUES ('cancelled')\")")
    expected = {
        "timeout": "LockedError: database is locked",
        "statement timeout": "StatementTimeout: ",
        "interrupt": "OperationalError: interrupted",
        "SIGINT": "KeyboardInterrupt: ",
    }
    assert actor.answer().startswith(expected[how])
    if place != "lane":
        until(lambda: WAITING not in locked(path))
    holder.kill()
    if place == "lane":
        assert actor.does("thread.join(); other.commit()") == "done"
    if place == "waiting for the gate":
        assert head.answer() == "done"
    assert actor.does("execute(\"INSERT INTO t VALUES ('later')\")") == "done"
    assert rows(path) == ["later"] if place == "head of the queue" else ["head", "later"]
    until(lambda: not locked(path))


FORK = """
def fork():
    child = os.fork()
    if child == 0:
        os.close(0)
        os.close(1)
        time.sleep(120)
        os._exit(0)
    say(f"child {child}")
"""


@pytest.mark.parametrize("step", ["in a transaction", "head of the queue", "waiting for the gate"])
def test_a_forked_child_keeps_nothing_of_its_parents_place(
    start: Start, path: Path, step: str
) -> None:
    """The parent is killed, the child sleeps on: others get in."""
    waiting, outsider, holder = start(), start("standard"), start("standard")
    for actor in (outsider, holder):
        actor.does("connection = standard.connect(sys.argv[1], isolation_level=None, timeout=30)")
    actor = start()
    actor.does(f"exec({FORK!r}, globals())")
    if step == "in a transaction":
        actor.does("execute('BEGIN IMMEDIATE')")
        actor.tell("fork()")
        word = actor.answer()
        assert actor.answer() == "done"
    else:
        # Another thread forks while the main thread is in line.
        holder.does("execute('BEGIN IMMEDIATE')")
        head = start()
        if step == "waiting for the gate":
            head.writes("INSERT INTO t VALUES ('head')")
            until(lambda: HEAD in locked(path))
        actor.does("threading.Thread(target=lambda: (time.sleep(0.5), fork())).start()")
        actor.writes("INSERT INTO t VALUES ('victim')")
        word = actor.answer()
        place = HEAD if step == "head of the queue" else WAITING
        assert place in locked(path)
    child = int(word.removeprefix("child "))
    try:
        actor.kill()
        for writer in (waiting, outsider):
            writer.writes("INSERT INTO t VALUES ('after')")
        holder.kill()
        assert [waiting.answer(), outsider.answer()] == ["done", "done"]
        os.kill(child, 0)
        until(lambda: not locked(path))
    finally:
        os.kill(child, signal.SIGKILL)
    assert rows(path).count("after") == 2


@pytest.mark.skipif(shutil.which("unshare") is None, reason="there is no unshare(1)")
def test_processes_of_other_pid_namespaces_stand_in_the_same_line(start: Start, path: Path) -> None:
    prefix = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    if subprocess.run([*prefix, "true"], capture_output=True).returncode:
        pytest.skip("no PID namespace can be made here")
    namespaced, waiting = start(prefix=prefix), start()
    assert namespaced.does("execute('BEGIN IMMEDIATE'); execute('UPDATE t SET x = x')") == "done"
    waiting.writes("INSERT INTO t VALUES (1)")
    until(lambda: HEAD in locked(path))
    impatient = oxlite.connect(path, timeout=0)
    with pytest.raises(oxlite.LockedError) as caught:
        impatient.execute("INSERT INTO t VALUES (2)")
    assert caught.value.holder is not None
    impatient.close()
    os.kill(namespaced.process.pid, signal.SIGKILL)
    assert waiting.answer() == "done"
    assert rows(path) == [1]
