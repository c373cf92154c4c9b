"""What the tests of the live view share: a database, and processes that use it as they are told."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.operations.databases import filled
from tests.wait import until

from oxlite.operations.top import Process, Sample, Watch

ACTOR = """
import os, sqlite3, sys, threading
import oxlite
path = sys.argv[-1]
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""


class Actor:
    """A process that runs lines of Python, one after the other."""

    def __init__(self, path: Path, *arguments: str, within: tuple[str, ...] = ()) -> None:
        self.process = subprocess.Popen(
            # Its command line is looked at, so the program is no part of it.
            [*within, sys.executable, "-c", "exec(eval(input()))", *arguments, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.begin(repr(ACTOR))

    @property
    def process_id(self) -> int:
        return self.process.pid

    def do(self, line: str) -> None:
        """Return when it has done that."""
        self.begin(line)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "done\n"

    def begin(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@dataclass
class Stage:
    """A database, and who uses it."""

    path: Path
    stack: ExitStack

    def actor(
        self, *arguments: str, path: Path | None = None, within: tuple[str, ...] = ()
    ) -> Actor:
        actor = Actor(path or self.path, *arguments, within=within)
        self.stack.callback(actor.kill)
        return actor

    def stranger(self) -> Actor:
        """One with a connection of the standard library's SQLite."""
        actor = self.actor()
        actor.do("c = sqlite3.connect(path, isolation_level=None, timeout=60)")
        actor.do("c.execute('SELECT count(*) FROM t').fetchall()")
        return actor

    def own(self, *within: str) -> Actor:
        """One with a connection of Oxlite's, started by a program before it."""
        actor = self.actor(within=within)
        actor.do("c = oxlite.connect(path, isolation_level=None, timeout=60)")
        actor.do("c.execute('SELECT count(*) FROM t').fetchall()")
        return actor

    def beside(self, suffix: str) -> Path:
        return self.path.with_name(self.path.name + suffix)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    directory = tmp_path / "stage"
    directory.mkdir()
    with ExitStack() as stack:
        yield Stage(filled(directory / "app.db"), stack)


def process_of(actor: Actor, sample: Sample) -> Process:
    assert sample.processes is not None
    (found,) = (one for one in sample.processes if one.process_id == actor.process_id)
    return found


def looked(watch: Watch, condition: Callable[[Sample], object]) -> Sample:
    """The first sample of which something is so."""
    latest = watch.look()

    def is_so() -> object:
        nonlocal latest
        latest = watch.look()
        return condition(latest)

    until(is_so)
    return latest
