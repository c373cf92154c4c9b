"""A child may use every door, whatever its parent has imported, uses or is in the middle of.

``gunicorn --preload`` and ``multiprocessing`` fork parents that have imported the application and
opened nothing. Each scenario runs in processes of its own; a child that hangs is killed by its
alarm, and told of.
"""

import json
import os
import platform
import signal
import socket
import sqlite3 as standard
import subprocess
import sys
import textwrap
import time
import urllib.error
import urllib.request
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.forks import doors, matrix

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in {"x86_64", "aarch64"},
    reason="elsewhere a child must not open a file that its parent has open",
)

ROOT = Path(__file__).parents[2]

# Before it was mended, one process in four had a child that hung.
FIRST_TIMES = 8

# Newer Pythons warn of forks beside threads, which is what some of these are about.
PYTHON = [sys.executable, "-W", "ignore::DeprecationWarning"]


def run(arguments: list[str], timeout: float = 110) -> str:
    """What a process says, which must end by itself with nothing on its standard error."""
    done = subprocess.run(
        [*PYTHON, *arguments], capture_output=True, text=True, timeout=timeout, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with an empty table."""
    path = tmp_path / "app.db"
    doors.make(str(path))
    return path


def rows(path: Path) -> int:
    """How many rows were written, in a file that is whole."""
    connection = standard.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    (number,) = connection.execute("SELECT count(*) FROM t").fetchone()
    connection.close()
    return int(number)


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(["--packages"], id="fork, packages"),
        pytest.param([], id="fork", marks=pytest.mark.slow),
        pytest.param(["--multiprocessing"], id="multiprocessing", marks=pytest.mark.slow),
    ],
)
def test_modules_that_a_parent_has_only_imported_harm_no_door(
    tmp_path: Path, way: list[str]
) -> None:
    said = json.loads(run(["-m", "tests.forks.matrix", str(tmp_path), *way]))
    assert said["wrong"] == {}
    assert {"oxlite", "oxlite.aio", "oxlite.sqlite3"} <= set(said["modules"])
    assert len(said["doors"]) >= 5
    for file in tmp_path.glob("*.db"):
        assert rows(file) == len(said["doors"])


PRELUDE = """
import asyncio, os, signal, sys, threading, time
from pathlib import Path
from tests.forks import doors, matrix
path, folder = sys.argv[1], Path(sys.argv[2])
signal.alarm(100)
if "Django" in doors.DOORS:
    doors.configure_django(path)
"""


@pytest.fixture
def parent(path: Path, tmp_path: Path) -> "Parent":
    """Runs a script that finds a database in ``path``, and ``doors``."""
    return Parent(path, tmp_path)


class Parent:
    """A process that forks."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.path = path
        self.folder = folder

    def run(self, script: str) -> str:
        """What it says; it must end by itself, without a word on its standard error."""
        script = PRELUDE + textwrap.dedent(script)
        return run(["-c", script, str(self.path), str(self.folder)])


@pytest.mark.parametrize("door", doors.DOORS)
def test_a_fork_while_another_thread_uses_a_door(parent: Parent, path: Path, door: str) -> None:
    # Its locks are taken at any moment, and its worker threads are at anything.
    output = parent.run(
        f"""
        stop, uses = threading.Event(), []

        def use():
            while not stop.is_set():
                doors.DOORS[{door!r}](path)
                uses.append(1)

        user = threading.Thread(target=use)
        user.start()
        while not uses:
            time.sleep(0.001)
        children = 0
        for _ in range(2):
            wrong = doors.use_all(path, folder)
            assert not wrong, "".join(f"{{name}}: {{what}}" for name, what in wrong.items())
            children += len(doors.DOORS)
        stop.set()
        user.join()
        print(len(uses) + children)
        """
    )
    assert rows(path) == int(output)


@pytest.mark.parametrize("door", ["connect", "drop-in", "Database"])
def test_a_fork_while_another_thread_uses_a_door_for_the_first_time(
    parent: Parent, path: Path, door: str
) -> None:
    """It has imported all, and used nothing; it forks whenever the thread lets the GIL go."""
    count = 0
    for number in range(FIRST_TIMES):
        output = parent.run(
            f"""
            import oxlite
            sys.setswitchinterval(1e-5)
            use = doors.DOORS[{door!r}]
            user = threading.Thread(target=use, args=(path,))
            begun = []
            user.start()
            while user.is_alive() and len(begun) < 20:
                told = folder / f"{number}-{{len(begun)}}"
                begun.append((doors.begin(lambda: use(path), told), told))
            user.join()
            wrong = [what for what in (doors.end(*child) for child in begun) if what]
            assert not wrong, wrong
            print(1 + len(begun))
            """
        )
        count += int(output)
    assert rows(path) == count


def test_a_fork_of_a_fork(parent: Parent, path: Path) -> None:
    output = parent.run(
        """
        import importlib
        for name in matrix.modules():
            importlib.import_module(name)

        def generation(depth):
            # The grandchildren before this one has used anything, and after it has.
            if depth:
                told = folder / f"{os.getpid()}-before"
                wrong = doors.end(doors.begin(lambda: generation(depth - 1), told), told)
                assert not wrong, wrong
            wrong = doors.use_all(path, folder)
            assert not wrong, wrong
            for door in doors.DOORS.values():
                door(path)
            if depth:
                told = folder / f"{os.getpid()}-after"
                wrong = doors.end(doors.begin(lambda: generation(0), told), told)
                assert not wrong, wrong

        generation(2)
        # One that has others before and after it; each goes through all doors, as does its child.
        print((5 * 2) * len(doors.DOORS))
        """
    )
    assert rows(path) == int(output)


@pytest.mark.parametrize("uses", [False, True], ids=["imported", "used"])
def test_a_parent_with_a_running_loop(parent: Parent, path: Path, uses: bool) -> None:
    output = parent.run(
        f"""
        import oxlite.aio

        async def main():
            count = 0
            db = oxlite.aio.Database(path, timeout=30)
            if {uses}:
                await db.execute(doors.INSERT)
                count += 1
            wrong = doors.use_all(path, folder)
            assert not wrong, wrong
            # And one that was made, and perhaps used, before the fork.
            async def use():
                await db.execute(doors.INSERT)
                assert await db.query_one(doors.SELECT) == (1,)
            told = folder / "database"
            wrong = doors.end(doors.begin(lambda: asyncio.run(use()), told), told)
            assert not wrong, wrong
            await use()
            await db.close()
            return count + 2 + len(doors.DOORS)

        print(asyncio.run(main()))
        """
    )
    assert rows(path) == int(output)


def test_a_connection_made_before_a_fork_and_opened_after_it_says_so(parent: Parent) -> None:
    parent.run(
        """
        import oxlite.aio
        connection = oxlite.aio.connect(path)

        def work():
            async def main():
                try:
                    await connection
                except oxlite.sqlite3.ProgrammingError as error:
                    assert "before a fork" in str(error), error
                else:
                    raise AssertionError("it has opened")
            asyncio.run(main())

        told = folder / "told"
        wrong = doors.end(doors.begin(work, told), told)
        assert not wrong, wrong
        """
    )


def test_a_fork_that_comes_to_no_end_keeps_nobody_waiting(parent: Parent, path: Path) -> None:
    # What other code has called before a fork may wait for ever, or its thread be stopped.
    parent.run(
        """
        entered = threading.Event()

        def hang():
            entered.set()
            time.sleep(60)

        os.register_at_fork(before=hang)  # called after those that are registered later
        import oxlite.aio
        forker = threading.Thread(target=os.fork, daemon=True)
        forker.start()
        assert entered.wait(30)
        doors.use_aio_database(path)
        doors.use_aio_connect(path)
        assert forker.is_alive()
        os._exit(0)
        """
    )
    assert rows(path) == 2


APPLICATION = """
import os, traceback
import oxlite.aio  # and nothing is used before a request comes
from tests.forks import doors

def application(environ, start_response):
    name, path = environ["QUERY_STRING"].replace("%20", " "), os.environ["DATABASE"]
    try:
        if name == "parent":
            said = f"{os.getppid()} {os.environ.get('PRELOADED_IN', '')}"
        else:
            doors.DOORS[name](path)
            said = "well"
    except BaseException:
        said = traceback.format_exc()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [said.encode()]

os.environ["PRELOADED_IN"] = str(os.getpid())
"""


@pytest.mark.skipif(find_spec("gunicorn") is None, reason="gunicorn is not installed")
def test_gunicorn_with_preload(path: Path, tmp_path: Path) -> None:
    (tmp_path / "application.py").write_text(APPLICATION)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [
            *PYTHON,
            *("-m", "gunicorn", "--preload", "--workers", "2", "--timeout", "20"),
            *("--bind", f"127.0.0.1:{port}", "--chdir", str(tmp_path), "application"),
        ],
        env={**os.environ, "DATABASE": str(path), "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )

    def ask(name: str) -> str:
        url = f"http://127.0.0.1:{port}/?{name.replace(' ', '%20')}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            return str(answer.read().decode())

    try:
        for _ in range(600):
            try:
                parent = ask("parent")
                break
            except (urllib.error.URLError, ConnectionError):
                assert server.poll() is None, server.communicate()[1]
                time.sleep(0.05)
        # It was loaded where the workers were forked.
        assert parent == f"{server.pid} {server.pid}"
        for name in doors.DOORS:
            assert ask(name) == "well", name
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            said = server.communicate(timeout=40)[1]
        except subprocess.TimeoutExpired:
            server.kill()
            said = server.communicate()[1]
    assert "WORKER TIMEOUT" not in said, said
    assert rows(path) == len(doors.DOORS)


def test_all_modules_are_known() -> None:
    known = matrix.modules()
    assert {"oxlite", "oxlite._native", "oxlite.aio", "oxlite.aio.database"} <= set(known)
    assert not [name for name in known if name.startswith(("oxlite.bench", "oxlite.cli"))]
