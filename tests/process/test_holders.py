"""Who holds the write lock is named by what is known; what is not known is said to be so."""

import os
import shutil
import signal
import sqlite3 as standard
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.process.actors import Actor, Start
from tests.wait import until

import oxlite

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the gate takes Linux")

NAMESPACE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")

# It keeps the number that it had, and sees those of the namespace that it came from.
WITHOUT_ITS_OWN_PROC = ("unshare", "--pid", "--fork", "--kill-child")

PAUSE_IN_A_STATEMENT = (
    "connection.create_function('pause', 0, pause); execute('INSERT INTO t SELECT pause()')"
)


@pytest.fixture(params=[NAMESPACE, WITHOUT_ITS_OWN_PROC], ids=["own /proc", "/proc of another"])
def namespace(request: pytest.FixtureRequest) -> tuple[str, ...]:
    prefix: tuple[str, ...] = request.param
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare(1)")
    if subprocess.run([*prefix, "true"], capture_output=True).returncode:
        pytest.skip("no PID namespace can be made here")
    return prefix


def refusal(path: Path, timeout: float = 0, **options: Any) -> oxlite.LockedError:  # noqa: ANN401
    """What somebody of this process is told who would write."""
    connection = oxlite.connect(path, isolation_level=None, timeout=timeout, **options)
    try:
        with pytest.raises(oxlite.LockedError) as caught:
            connection.execute("INSERT INTO t VALUES (2)")
    finally:
        connection.close()
    return caught.value


def named(path: Path, what: str, **options: Any) -> oxlite.LockedError:  # noqa: ANN401
    """The refusal that names whom one has to look for: a quarter of a second is for that."""
    for _ in range(15):
        error = refusal(path, 2.5, **options)
        if what in str(error):
            break
    assert what in str(error)
    return error


def told(actor: Actor) -> str:
    """What a process is told who would write, after a wait of a second."""
    assert actor.does("connect(timeout=5)") == "done"
    return actor.does("execute('INSERT INTO t VALUES (2)')")


def holds(actor: Actor) -> None:
    assert actor.does("execute('BEGIN IMMEDIATE', 'UPDATE t SET x = 7')") == "done"


@contextmanager
def stopped(actor: Actor) -> Iterator[int]:
    actor.signal(signal.SIGSTOP)
    until(lambda: os.waitid(os.P_PID, actor.process.pid, os.WSTOPPED | os.WNOWAIT | os.WNOHANG))
    try:
        yield actor.process.pid
    finally:
        actor.signal(signal.SIGCONT)


def test_a_process_of_another_namespace_is_none_of_this_one(
    start: Start, path: Path, namespace: tuple[str, ...]
) -> None:
    here, there = start(), start(prefix=namespace)
    holds(there)
    error = refusal(path)
    assert "held by process 1 of another PID namespace (container), thread" in str(error)
    assert error.holder is not None
    assert (error.holder["process_id"], error.holder["pid_namespace"]) == (1, "another")
    assert there.does("execute('COMMIT')") == "done"
    holds(here)
    said = told(there)
    assert f"held by process {here.process.pid} of another PID namespace" in said


def test_two_first_processes_of_two_namespaces_are_told_apart(
    start: Start, path: Path, namespace: tuple[str, ...]
) -> None:
    one, other = start(prefix=namespace), start(prefix=namespace)
    holds(one)
    said = told(other)
    assert "held by process 1 of another PID namespace" in said
    assert "this process" not in said


def test_a_namespace_that_is_not_told_is_unknown(start: Start, path: Path) -> None:
    holder = start()
    holds(holder)
    gate = path.with_name("app.db-gate")
    form, _, *rest = gate.read_bytes().split(b"\n")
    assert form == b"oxlite 2"
    gate.write_bytes(b"\n".join([form, b"0", *rest]))
    error = refusal(path)
    assert f"held by process {holder.process.pid} of an unknown PID namespace" in str(error)
    assert error.holder is not None
    assert error.holder["pid_namespace"] == "unknown"


def test_a_process_of_this_namespace_and_this_one_are_named(start: Start, path: Path) -> None:
    holder = start()
    holds(holder)
    error = refusal(path)
    assert f"held by process {holder.process.pid}, thread" in str(error)
    assert error.holder is not None
    assert error.holder["pid_namespace"] == "own"
    assert holder.does("connection.close()") == "done"
    # Any thread may end it: of one that is this thread's alone it is told at once.
    with closing(oxlite.connect(path, check_same_thread=False)) as own:
        own.execute("INSERT INTO t VALUES (3)")
        error = refusal(path)
        assert f"held by this process {os.getpid()}, thread" in str(error)
        assert error.holder is not None
        assert error.holder["pid_namespace"] == "own"


def test_a_stopped_process_is_named_by_its_note(start: Start, path: Path) -> None:
    holder = start()
    holds(holder)
    with stopped(holder) as number:
        error = refusal(path)
        assert f"held by process {number}, thread" in str(error)
        assert "UPDATE t SET x = 7" in str(error)


def test_a_stopped_process_that_left_no_note_is_seen_by_its_lock(start: Start, path: Path) -> None:
    holder = start()
    holder.tell(PAUSE_IN_A_STATEMENT)
    assert holder.answer() == "paused"
    with stopped(holder) as number:
        error = named(path, f"held by process {number} (")
        assert "stopped), which has told nothing of it" in str(error)
        assert error.holder is None
        # Who has not waited does not look for it either.
        assert "who holds it is not known" in str(refusal(path))
    holder.tell("")
    assert holder.answer() == "done"


def test_another_program_is_seen_by_its_lock(path: Path) -> None:
    program = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('BEGIN IMMEDIATE'); print(flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout
        other.stdout.readline()
        error = named(path, f"held by process {other.pid} (")
        assert "another SQLite" in str(error)


def test_a_rollback_journals_writer_is_seen_by_its_lock(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with closing(standard.connect(path)) as made:
        made.execute("CREATE TABLE t (x)")
    other = Actor(path, "other", ())
    try:
        open_ = "connection = standard.connect(sys.argv[1], isolation_level=None)"
        assert other.does(open_) == "done"
        assert other.does("execute('BEGIN IMMEDIATE')") == "done"
        named(path, f"held by process {other.process.pid} ", journal="keep")
    finally:
        other.end()


def test_who_cannot_be_seen_from_here_is_unknown(
    start: Start, path: Path, namespace: tuple[str, ...]
) -> None:
    here, there = start(), start(prefix=namespace)
    here.tell(PAUSE_IN_A_STATEMENT)
    assert here.answer() == "paused"
    said = told(there)
    if namespace == NAMESPACE:
        assert "who holds it is not known" in said
    else:
        # By the number that /proc knows it by there.
        assert f"held by process {here.process.pid} (" in said
    here.tell("")
    assert here.answer() == "done"


def test_a_commit_that_waits_for_readers_blames_no_writer(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with closing(standard.connect(path)) as made:
        made.execute("CREATE TABLE t (x)")
        made.execute("INSERT INTO t VALUES (1)")
        made.commit()
    options = {"journal": "keep", "isolation_level": None, "timeout": 0}
    with (
        closing(oxlite.connect(path, **options)) as writer,
        closing(oxlite.connect(path, **options)) as reader,
    ):
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO t VALUES (2)")
        reader.execute("BEGIN")
        reader.execute("SELECT x FROM t").fetchall()
        with pytest.raises(oxlite.LockedError) as caught:
            writer.execute("COMMIT")
        assert str(caught.value) == "database is locked"
        assert caught.value.holder is None


HOSTILE = "UPDATE t\n SET x = '\x1b]0;owned\x07\u202egnp.exe' -- \x9b\r\u2028"
SHOWN = "UPDATE t SET x = '\\x1b]0;owned\\x07\\u202egnp.exe' -- \\x9b"


def test_a_hostile_statement_is_told_without_what_a_terminal_obeys(
    start: Start, path: Path
) -> None:
    holder = start()
    assert holder.does(f"execute('BEGIN IMMEDIATE', {HOSTILE!r})") == "done"
    error = refusal(path)
    assert error.holder is not None
    assert error.holder["statement"] == SHOWN
    assert str(error).endswith(f"with: {SHOWN}")
    assert str(error).isprintable()
    assert holder.does("connection.close()") == "done"
    with closing(oxlite.connect(path)) as own:
        own.execute(HOSTILE)
        error = refusal(path)
        assert error.holder is not None
        assert error.holder["statement"] == SHOWN


def test_a_hostile_note_is_told_without_what_a_terminal_obeys(start: Start, path: Path) -> None:
    holder = start()
    holds(holder)
    gate = path.with_name("app.db-gate")
    head = b"\n".join(gate.read_bytes().split(b"\n")[:5])
    gate.write_bytes(head + b"\n\x1b[2J\nTrust me\x7f\0")
    error = refusal(path)
    assert error.holder is not None
    assert error.holder["statement"] == "\\x1b[2J Trust me\\x7f"


def test_a_hostile_command_line_is_told_without_what_a_terminal_obeys(
    path: Path,
) -> None:
    program = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('BEGIN IMMEDIATE'); print(flush=True); sys.stdin.read()"
    )
    command = ["\x1b[2J\n\u202e", "-c", program, str(path)]
    with subprocess.Popen(
        command, executable=sys.executable, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout
        other.stdout.readline()
        error = named(path, f"held by process {other.pid} (\\x1b[2J \\u202e -c")
        assert str(error).isprintable()
