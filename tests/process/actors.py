"""Processes that write to one database, stopped and killed at named steps.

A process is told what to do a line at a time, and says what came of it. It is stopped exactly at a
step by a callback of SQLite's that says where it is and then waits (`pause`). Which steps of the
queue others have come to is seen in the locks of the gate's file.
"""

import fcntl
import os
import select
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import oxlite

# Nothing takes that long, however busy the machine is; what does hangs.
DEADLINE = 40

# The effect of a fault that stops the process where it is: see `tests/faults/interposer`.
STOP = -3

# The three bytes of the gate's file: see `queue/gate.rs`.
HEAD, WAITING, HOLDER = range(3)

_ACTOR = """
import os, signal, sqlite3 as standard, sys, threading, time
# Whoever runs the tests in the background has it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
if sys.argv[2] in {"oxlite", "user"}:
    import fcntl, logging, socket, oxlite

def connect(**options):
    global connection
    connection = oxlite.connect(sys.argv[1], isolation_level=None, **{"timeout": 30} | options)

if sys.argv[2] == "oxlite":
    connect()

def become(user, group, others, umask):
    '''With everything imported: that user may not be able to read it.'''
    os.umask(umask)
    os.setgroups(others)
    os.setgid(group)
    os.setuid(user)

def say(text):
    os.write(1, text.encode() + b"\\n")

def pause(*_):
    '''Stops the process where it is: it waits for one more line.'''
    say("paused")
    sys.stdin.readline()
    return 1

def attempt(work):
    try:
        result = work()
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return "done"

def execute(*statements):
    for sql in statements:
        connection.execute(sql).fetchall()

say("ready")
while line := sys.stdin.readline():
    say(attempt(lambda: exec(line, globals())))
"""


class Actor:
    """A process that does what it is told."""

    def __init__(self, path: Path, driver: str, prefix: tuple[str, ...]) -> None:
        command = [*prefix, sys.executable, "-c", _ACTOR, str(path), driver]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._rest = b""
        assert self.answer() == "ready"

    def tell(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        """Waits for its next word."""
        assert self.process.stdout
        output = self.process.stdout.fileno()
        ends = time.monotonic() + DEADLINE
        while b"\n" not in self._rest:
            ready, _, _ = select.select([output], [], [], max(0, ends - time.monotonic()))
            assert ready, "it hangs"
            read = os.read(output, 4096)
            assert read, "it has ended"
            self._rest += read
        word, self._rest = self._rest.split(b"\n", 1)
        return word.decode()

    def has_answered(self) -> bool:
        """Whether it has said something, or has ended."""
        assert self.process.stdout
        return bool(select.select([self.process.stdout.fileno()], [], [], 0)[0]) or bool(self._rest)

    def does(self, line: str) -> str:
        self.tell(line)
        return self.answer()

    def writes(self, *statements: str) -> None:
        """Begins to execute statements."""
        self.tell(f"execute(*{statements!r})")

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self) -> None:
        self.kill()
        self.process.communicate()


Start = Callable[..., Actor]


def locked(path: Path) -> set[int]:
    """The bytes of the gate's file that somebody has locked."""
    descriptor = os.open(f"{path}-gate", os.O_RDWR | os.O_CLOEXEC)
    form = "hhqqi4x"
    found = set()
    for byte in (HEAD, WAITING, HOLDER):
        lock = struct.pack(form, fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
        lock = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, lock)
        if struct.unpack(form, lock)[0] != fcntl.F_UNLCK:
            found.add(byte)
    os.close(descriptor)
    return found


def is_stopped(actor: Actor) -> bool:
    """Whether a signal has stopped it."""
    state = Path(f"/proc/{actor.process.pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state == "T"


def rows(path: Path) -> list[object]:
    """What the table holds, after a look at the integrity of the database."""
    connection = oxlite.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    found = [x for (x,) in connection.execute("SELECT x FROM t")]
    connection.close()
    return found
