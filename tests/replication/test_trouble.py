"""What goes wrong around a replicator: it stays in control, says what it is, and goes on."""

import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from tests.operations.databases import filled
from tests.replication.conftest import S3, Run, Start, add
from tests.replication.test_run import begun_after, sent
from tests.wait import until

import oxlite
from oxlite.replication import is_claimed, replication_status
from oxlite.replication.claim import state_path
from oxlite.replication.generation import identity, notes_directory

# An application that ends when a file is there.
WAITS = "import pathlib, sys, time\nwhile not pathlib.Path(sys.argv[1]).exists(): time.sleep(0.05)"
KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret-of-the-test"}


HAS_NO_PATIENCE = """
import sys
from pathlib import Path
from oxlite.replication import Pace, Replicator, find_litestream, replicas_of
replicas = replicas_of([Path(sys.argv[1])], sys.argv[2])
sys.exit(Replicator(find_litestream(), replicas, pace=Pace(begins_within=0.0)).run(["true"]))
"""


def test_what_is_long_may_take_long_to_be_sent(tmp_path: Path, store: Path) -> None:
    database = filled(tmp_path / "long.db", 10)
    with closing(oxlite.connect(database)) as connection:
        connection.execute("CREATE TABLE long AS SELECT zeroblob(20000000)")
        connection.commit()
    words = [sys.executable, "-c", HAS_NO_PATIENCE, str(database), str(store)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_an_error_of_the_system_leaves_the_application_alone(
    database: Path, store: Path, start: Start, tmp_path: Path
) -> None:
    """Litestream cannot be begun again, for there are no more descriptors."""
    over = tmp_path / "over"
    application = (sys.executable, "-c", WAITS, over)
    replicator = start(database, "--to", store, "--", *application)
    number = replicator.process.pid
    before = resource.prlimit(number, resource.RLIMIT_NOFILE)
    few = sum(1 for _ in Path(f"/proc/{number}/fd").iterdir())
    resource.prlimit(number, resource.RLIMIT_NOFILE, (few, before[1]))
    os.kill(replicator.litestream(), signal.SIGKILL)
    replicator.until_said("nothing is replicated now: [Errno 24]")
    resource.prlimit(number, resource.RLIMIT_NOFILE, before)
    now = time.time()
    until(lambda: begun_after(database, now))
    over.touch()
    assert replicator.process.wait(60) == 0


def test_it_ends_at_a_signal_while_a_store_does_not_answer(database: Path, start: Start) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        port = silent.getsockname()[1]
        url = f"s3://bucket/app?endpoint=http://127.0.0.1:{port}&region=x&force-path-style=true"
        replicator = start(database, "--to", url, environment=KEYS, awaited=False)
        silent.settimeout(60)
        silent.accept()[0].close()
        began = time.monotonic()
        assert replicator.end() == 0
        assert time.monotonic() - began < 20


def test_it_ends_with_the_application_while_readers_are_waited_for(
    database: Path, store: Path, start: Start, tmp_path: Path
) -> None:
    over = tmp_path / "over"
    replicator = start(database, "--to", store, "--", sys.executable, "-c", WAITS, over)
    add(database, 7000)
    with closing(oxlite.connect(database, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM t").fetchone()
        shutil.rmtree(database.with_name(".app.db-litestream"))
        replicator.until_said("when nobody reads its WAL any more")
        over.touch()
        assert replicator.process.wait(60) == 0
    assert "the last was not sent" in replicator.said


def test_what_litestream_has_noted_outlives_a_store_that_is_away(
    database: Path, s3: S3, start: Start
) -> None:
    start(database, "--to", s3.url("away"), environment=KEYS)
    until(lambda: identity(notes_directory(database)) is not None)
    before = identity(notes_directory(database))
    s3.process.send_signal(signal.SIGSTOP)
    try:
        add(database, 7100)
        until(lambda: (replication_status(database).failing_seconds or 0) > 8)
    finally:
        s3.process.send_signal(signal.SIGCONT)
    now = time.time()
    until(lambda: begun_after(database, now))
    assert identity(notes_directory(database)) == before


def test_a_store_that_is_deleted_is_not_well(database: Path, store: Path, start: Start) -> None:
    replicator = start(database, "--to", store)
    shutil.rmtree(store)
    add(database, 7200)
    until(lambda: replication_status(database).health == "failing")
    assert "is gone" in (replication_status(database).failure or "")
    replicator.end()


def test_a_store_that_has_lost_some_is_not_well(
    database: Path, store: Path, start: Start, run: Run
) -> None:
    start(database, "--to", store)
    for number in range(7300, 7306):
        add(database, number)
        now = time.time()
        until(lambda now=now: begun_after(database, now))  # type: ignore[misc]
    files = sorted((store / "ltx" / "0").glob("*.ltx"))
    for path in files[-3:-1]:
        path.unlink()
    until(lambda: replication_status(database).health == "failing")
    assert "lacks some of what was sent" in (replication_status(database).failure or "")
    assert run("replicate", "verify", database, "--within", 2).returncode == 1


def test_a_claim_that_is_deleted_is_made_anew(
    database: Path, store: Path, start: Start, run: Run
) -> None:
    replicator = start(database, "--to", store)
    state_path(database).unlink()
    until(lambda: is_claimed(database))
    other = run("replicate", database, "--to", store.with_name("other"))
    assert other.returncode == 2
    assert "is replicated already" in other.stderr
    add(database, 7400)
    now = time.time()
    until(lambda: begun_after(database, now))
    replicator.end()
    assert sent(database, store, run)[-1] == 7400


def test_names_beyond_the_first_plane_are_replicated(
    tmp_path: Path, store: Path, start: Start, run: Run
) -> None:
    database = filled(tmp_path / "\U0001f41d 50% \u00fc.db", 10)
    replicator = start(database, "--to", store)
    replicator.end()
    assert sent(database, store, run)


def test_a_temporary_directory_that_is_too_deep_is_refused(
    database: Path, store: Path, start: Start, tmp_path: Path
) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    environment = {"TMPDIR": str(deep)}
    replicator = start(database, "--to", store, environment=environment, awaited=False)
    assert replicator.process.wait(60) == 2
    assert "set TMPDIR to a shorter one" in replicator.said


class Refuses(BaseHTTPRequestHandler):
    """A store that takes no credentials for the right ones."""

    def do_GET(self) -> None:
        said = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
        self.send_response(403)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)


def test_wrong_credentials_are_said_and_not_shown(tmp_path: Path, run: Run) -> None:
    with HTTPServer(("127.0.0.1", 0), Refuses) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_address[1]}"
        url = f"s3://bucket/app?endpoint={endpoint}&region=x&force-path-style=true"
        done = run("replicate", tmp_path / "new.db", "--to", url, environment=KEYS)
        server.shutdown()
    assert done.returncode == 2
    assert "AccessDenied" in done.stderr
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in done.stderr
    assert not (tmp_path / "new.db").exists()
