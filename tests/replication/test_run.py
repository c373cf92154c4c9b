"""Replicating: begun, looked after and ended, with real processes that are really killed."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest
from tests.operations.databases import numbers, writing
from tests.replication.conftest import S3, Run, Start, add
from tests.wait import until

import oxlite
from oxlite import operations, sqlite3
from oxlite.replication import is_claimed, read_state, replication_status
from oxlite.replication.claim import state_path
from oxlite.replication.generation import continues, wal_of

# An application that does not end when it is asked to.
IGNORES = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
time.sleep(99)
"""


def sent(database: Path, store: Path, run: Run) -> list[int]:
    """What the replica has, as it is restored."""
    copy = database.with_name("restored.db")
    copy.unlink(missing_ok=True)
    done = run("restore", "--from", store, copy)
    assert done.returncode == 0, done.stderr
    return numbers(copy)


def begun_after(database: Path, moment: float) -> bool:
    """Whether all that was committed before a moment is known to be in the store."""
    state = read_state(database)
    return state is not None and state.sent_at is not None and state.sent_at > moment


def is_alive(process_id: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def _end(database: Path) -> int:
    wal = wal_of(database)
    assert wal is not None
    return wal.bytes


def test_what_is_committed_is_in_the_store_and_proved(
    database: Path, store: Path, start: Start, run: Run
) -> None:
    replicator = start(database, "--to", store)
    add(database, 1001)
    done = run("replicate", "verify", database, "--json")
    assert done.returncode == 0, done.stderr
    proof = json.loads(done.stdout)
    assert proof["proved"]
    assert proof["rows"] >= 102
    assert proof["behind_seconds"] < 60
    done = run("replicate", "status", database, "--proved-days", "1")
    assert done.returncode == 0, done.stdout
    assert "A restore was proved" in done.stdout
    assert replicator.end() == 0
    assert continues(database, _end(database), is_kept=False)
    done = run("replicate", "status", database)
    assert done.returncode == 1
    assert "nobody does it now" in done.stdout
    assert continues(database, _end(database), is_kept=False)  # the next one need not send all anew


def test_what_the_application_commits_last_is_sent(
    database: Path, store: Path, start: Start, run: Run
) -> None:
    script = (
        "import oxlite, sys; c = oxlite.connect(sys.argv[1]);"
        " c.execute('INSERT INTO t VALUES (7777, NULL)'); c.commit(); sys.exit(7)"
    )
    replicator = start(
        database, "--to", store, "--", sys.executable, "-c", script, database, awaited=False
    )
    assert replicator.process.wait(60) == 7
    assert numbers(database)[-1] == 7777
    assert sent(database, store, run)[-1] == 7777


def test_a_missing_database_is_restored_and_goes_on(
    database: Path, store: Path, start: Start, run: Run
) -> None:
    start(database, "--to", store).end()
    for path in database.parent.glob("*app.db*"):
        if path.is_file():
            path.unlink()
    add_one = (
        "import oxlite, sys; c = oxlite.connect(sys.argv[1]);"
        " c.execute('INSERT INTO t VALUES (8888, NULL)'); c.commit()"
    )
    replicator = start(
        database, "--to", store, "--", sys.executable, "-c", add_one, database, awaited=False
    )
    assert replicator.process.wait(60) == 0
    assert "was missing: restored from" in replicator.said
    assert numbers(database) == [*range(1, 101), 8888]
    assert sent(database, store, run) == [*range(1, 101), 8888]


def test_where_there_is_no_replica_a_missing_database_is_made(
    tmp_path: Path, store: Path, start: Start
) -> None:
    start(tmp_path / "new.db", "--to", store).end()
    with closing(sqlite3.connect(tmp_path / "new.db")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize("is_store", [True, False])
def test_two_for_one_database_or_one_place_are_refused(
    database: Path, store: Path, tmp_path: Path, start: Start, run: Run, is_store: bool
) -> None:
    start(database, "--to", store)
    if is_store:
        other = tmp_path / "other.db"
        done = run("replicate", "run", other, "--to", f"file://{store}/")
        assert "another process replicates to" in done.stderr
    else:
        done = run("replicate", "run", database, "--to", tmp_path / "store" / "elsewhere")
        assert "is replicated already by process" in done.stderr
    assert done.returncode == 2


def test_litestream_is_begun_again(database: Path, store: Path, start: Start, run: Run) -> None:
    replicator = start(database, "--to", store)
    for times in (1, 2):
        os.kill(replicator.litestream(), signal.SIGKILL)
        replicator.until_said("Litestream has ended (-9)", times)
        now = time.time()
        add(database, 2000 + times)
        until(lambda now=now: begun_after(database, now))
    assert replicator.end() == 0
    assert sent(database, store, run)[-1] == 2002


def test_a_frozen_litestream_is_killed_and_begun_again(
    database: Path, store: Path, start: Start, run: Run
) -> None:
    replicator = start(database, "--to", store)
    frozen = replicator.litestream()
    os.kill(frozen, signal.SIGSTOP)
    now = time.time()
    add(database, 3000)
    until(lambda: replication_status(database).health == "failing")
    replicator.until_said("does not answer: killed")
    until(lambda: begun_after(database, now))
    assert not is_alive(frozen)
    assert replicator.end() == 0
    assert sent(database, store, run)[-1] == 3000


def test_a_replicator_that_is_killed_leaves_nobody_and_the_next_goes_on(
    database: Path, store: Path, start: Start, run: Run
) -> None:
    replicator = start(database, "--to", store)
    program = replicator.litestream()
    replicator.end(signal.SIGKILL)
    until(lambda: not is_alive(program))
    until(lambda: not is_claimed(database))
    assert run("replicate", "status", database).returncode == 1
    replicator = start(database, "--to", store)
    add(database, 4000)
    replicator.end()
    assert sent(database, store, run)[-1] == 4000


def test_an_application_that_ignores_signals_is_replicated_until_it_ends(
    database: Path, store: Path, start: Start
) -> None:
    replicator = start(database, "--to", store, "--", sys.executable, "-c", IGNORES)
    replicator.until_said("up")
    replicator.process.send_signal(signal.SIGTERM)
    now = time.time()
    add(database, 5000)
    until(lambda: begun_after(database, now))
    assert replicator.process.poll() is None
    replicator.process.send_signal(signal.SIGQUIT)  # is passed on as well
    assert replicator.process.wait(60) == 128 + signal.SIGQUIT


def test_a_second_ctrl_c_waits_for_no_store(
    database: Path, s3: S3, keys: Path, start: Start
) -> None:
    replicator = start(database, "--to", s3.url("hurried"), "--credentials", keys, slow=True)
    program = replicator.litestream()
    os.kill(program, signal.SIGSTOP)
    replicator.process.send_signal(signal.SIGINT)
    time.sleep(1)
    assert replicator.process.poll() is None
    replicator.process.send_signal(signal.SIGINT)
    assert replicator.process.wait(10) == 0
    assert "was not sent: there was no time for it" in replicator.said
    assert not is_alive(program)
    assert not is_claimed(database)


def test_an_application_that_cannot_be_begun_is_an_error(
    database: Path, store: Path, run: Run
) -> None:
    done = run("replicate", database, "--to", store, "--", "/no/such/program")
    assert done.returncode == 2
    assert "/no/such/program" in done.stderr
    assert not is_claimed(database)


def test_an_application_that_ends_at_once_ends_it(database: Path, store: Path, run: Run) -> None:
    done = run("replicate", database, "--to", store, "--", "false")
    assert done.returncode == 1
    assert (store / "ltx").is_dir()
    done = run("replicate", database, "--to", store, "--", "sh", "-c", "kill -9 $$")
    assert done.returncode == 137


def test_a_database_that_is_replaced_is_noticed(
    database: Path, store: Path, tmp_path: Path, start: Start, run: Run
) -> None:
    made = operations.backup(database, tmp_path / "old.db")
    replicator = start(database, "--to", store)
    add(database, 6000)
    assert run("restore", made.path, database).returncode == 2  # Litestream has it open
    # An outsider asks nobody.
    for suffix in ("-wal", "-shm"):
        Path(f"{database}{suffix}").unlink()
    made.path.rename(database)
    replicator.until_said("a database was replaced")
    now = time.time()
    add(database, 6001)
    until(lambda: begun_after(database, now))
    done = run("replicate", "verify", database)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sent(database, store, run) == [*range(1, 101), 6001]


def test_a_database_that_was_moved_away_and_back_is_proved(
    database: Path, store: Path, start: Start, run: Run
) -> None:
    """Litestream makes an empty file of its name meanwhile."""
    replicator = start(database, "--to", store)
    database.rename(database.with_name("moved.db"))
    replicator.until_said("is not replicated: ")
    for suffix in ("-wal", "-shm"):
        Path(f"{database}{suffix}").unlink(missing_ok=True)
    database.with_name("moved.db").rename(database)
    now = time.time()
    until(lambda: begun_after(database, now))
    replicator.end()
    assert sent(database, store, run) == list(range(1, 101))


@pytest.mark.parametrize("is_noted", [True, False])
def test_after_a_restore_of_an_older_state_the_new_one_is_proved(
    database: Path, store: Path, tmp_path: Path, start: Start, run: Run, is_noted: bool
) -> None:
    made = operations.backup(database, tmp_path / "old.db")
    add(database, 6000)
    start(database, "--to", store).end()
    assert run("restore", made.path, database).returncode == 0
    if not is_noted:
        for path in database.parent.glob(".app.db-litestream/ltx/0/*"):
            path.unlink()
    replicator = start(database, "--to", store)
    done = run("replicate", "verify", database)
    assert done.returncode == 0, done.stdout + done.stderr
    replicator.end()
    assert sent(database, store, run) == list(range(1, 101))


def test_vacuum_and_an_outsiders_journal_mode(
    database: Path, store: Path, start: Start, run: Run
) -> None:
    replicator = start(database, "--to", store)
    with closing(sqlite3.connect(database, isolation_level=None, timeout=0.2)) as outsider:
        outsider.execute("DELETE FROM t WHERE x > 10")
        outsider.execute("VACUUM")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            outsider.execute("PRAGMA journal_mode = DELETE")
    done = run("replicate", "verify", database)
    assert done.returncode == 0, done.stdout + done.stderr
    replicator.end()
    assert sent(database, store, run) == list(range(1, 11))
    with closing(sqlite3.connect(database, isolation_level=None)) as outsider:
        assert outsider.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
        outsider.execute("INSERT INTO t VALUES (11, NULL)")
    replicator = start(database, "--to", store)
    assert run("replicate", "verify", database).returncode == 0
    replicator.end()
    assert sent(database, store, run) == list(range(1, 12))


def test_another_place_gets_all_of_it(database: Path, store: Path, start: Start, run: Run) -> None:
    """What Litestream has noted of the first place leads to nothing in the second."""
    start(database, "--to", store).end()
    noted = sorted(database.parent.glob(".app.db-litestream/ltx/0/*.ltx"))
    noted[0].unlink()  # as it does itself after some minutes
    other = store.with_name("other")
    start(database, "--to", other).end()
    assert sent(database, other, run) == list(range(1, 101))


def test_a_place_that_was_emptied_gets_all_of_it(
    database: Path, store: Path, start: Start, run: Run
) -> None:
    start(database, "--to", store).end()
    (store / "ltx").rename(store / "gone")
    start(database, "--to", store).end()
    assert sent(database, store, run) == list(range(1, 101))


def test_a_place_that_another_has_gone_on_with_gets_all_of_it(
    database: Path, store: Path, tmp_path: Path, start: Start, run: Run
) -> None:
    """Two machines by turns: the numbers of their transactions are the same, and nothing else."""
    start(database, "--to", store).end()
    noted = database.with_name(".app.db-litestream")
    other = tmp_path / "other" / "app.db"
    other.parent.mkdir()
    replicator = start(other, "--to", store)
    for number in range(9000, 9003):
        add(other, number)
        time.sleep(1.1)
    replicator.end()
    # Here something has been committed too, and was noted, and not sent.
    replicator = start(database, "--to", store.with_name("none"))
    assert noted.is_dir()
    for number in range(7000, 7009):
        add(database, number)
        time.sleep(1.1)
    replicator.end()
    replicator = start(database, "--to", store, "--take-over")
    done = run("replicate", "verify", database)
    assert done.returncode == 0, done.stdout + done.stderr
    replicator.end()
    assert sent(database, store, run) == [*range(1, 101), *range(7000, 7009)]


def test_what_litestream_has_noted_and_is_gone_is_made_anew(
    database: Path, store: Path, start: Start, run: Run
) -> None:
    replicator = start(database, "--to", store)
    for path in database.parent.glob(".app.db-litestream/ltx/0/*"):
        path.unlink()
    add(database, 6500)
    replicator.until_said("is damaged: all is sent anew")
    now = time.time()
    until(lambda: begun_after(database, now))
    replicator.end()
    assert sent(database, store, run)[-1] == 6500


def test_notes_that_are_deleted_are_missed_at_once(
    database: Path, store: Path, start: Start, run: Run
) -> None:
    """Litestream would go on in a later WAL, and the replica would lack what lies between."""
    replicator = start(database, "--to", store)
    add(database, 6501)
    # At once, and not file by file: Litestream would complain of what it lacks, and that is mended
    # in another way.
    database.with_name(".app.db-litestream").rename(database.with_name("gone"))
    replicator.until_said("what that has noted is gone")
    now = time.time()
    add(database, 6502)
    until(lambda: begun_after(database, now))
    replicator.end()
    assert sent(database, store, run)[-2:] == [6501, 6502]


def test_what_was_to_be_sent_anew_is_by_the_next_one(
    database: Path, store: Path, start: Start, run: Run
) -> None:
    """Who is killed before it was may have noted what is not to be gone on with."""
    replicator = start(database, "--to", store)
    replicator.end()
    known = read_state(database)
    assert known is not None
    assert not known.sends_anew
    path = state_path(database)
    path.write_text(path.read_text().replace('"sends_anew": false', '"sends_anew": true'))
    before = max((store / "ltx" / "0").glob("*.ltx"))
    replicator = start(database, "--to", store)
    replicator.until_said("was to be sent anew, and is now")
    known = read_state(database)
    assert known is not None
    assert not known.sends_anew
    replicator.end()
    after = [path for path in (store / "ltx" / "0").glob("*.ltx") if path > before]
    whole = min((store / "ltx" / "0").glob("*.ltx")).stat().st_size
    assert min(after).stat().st_size > 0.9 * whole
    assert sent(database, store, run) == [*range(1, 101)]


def test_several_are_replicated_each_below_the_place(
    tmp_path: Path, store: Path, start: Start, run: Run
) -> None:
    from tests.operations.databases import filled

    names = ["a b.db", "$HOME.db", "%d.db", 'it\'s "q".db', "new\nline.db", "-rf", "ä.db"]
    directory = tmp_path / "many"
    directory.mkdir()
    every = [filled(directory / name, 10 + number) for number, name in enumerate(names)]
    (directory / "note.txt").write_text("no database")
    replicator = start(every[0], "--directory", directory, "--to", store)
    replicator.end()
    for number, path in enumerate(every):
        state = read_state(path)
        assert state is not None
        copy = tmp_path / f"copy-{number}.db"
        done = run("restore", "--from", state.url, copy)
        assert done.returncode == 0, done.stderr
        assert numbers(copy) == list(range(1, 11 + number))


def test_credentials_are_in_nothing_that_others_see(
    database: Path, s3: S3, keys: Path, start: Start, run: Run
) -> None:
    url = s3.url("secret")
    replicator = start(database, "--to", url, "--credentials", keys)
    process_ids = [replicator.process.pid, replicator.litestream()]
    arguments = b"".join(Path(f"/proc/{one}/cmdline").read_bytes() for one in process_ids)
    words = Path(f"/proc/{process_ids[1]}/cmdline").read_bytes().split(b"\0")
    written = Path(words[words.index(b"-config") + 1].decode())
    assert written.stat().st_mode & 0o077 == 0 or written.parent.stat().st_mode & 0o077 == 0
    seen = [arguments, written.read_bytes(), database.with_name("app.db-replica").read_bytes()]
    assert not any(b"verysecret" in one or b"AKIDtest" in one for one in seen)
    environment = {"AWS_ACCESS_KEY_ID": "AKIDtestidentity", "AWS_SECRET_ACCESS_KEY": "no"}
    done = run("replicate", "verify", database, "--credentials", keys)
    assert done.returncode == 0, done.stderr
    assert run("replicate", "verify", database, environment=environment).returncode == 0  # by moto
    assert replicator.end() == 0
    assert "verysecret" not in replicator.said


@pytest.mark.parametrize("bucket", ["missing", "bucket"])
def test_a_store_that_refuses_or_is_not_there_is_never_an_empty_one(
    tmp_path: Path, s3: S3, keys: Path, run: Run, bucket: str
) -> None:
    url = s3.url("nowhere", bucket)
    if bucket == "bucket":
        url = url.replace(str(s3.port), "1")  # nobody listens there
    script = (
        "import sys; from oxlite.replication import replica;"
        " replica.ANSWERS_WITHIN_SECONDS;"
        " from pathlib import Path;"
        " from oxlite.replication import *;"
        " held(find_litestream(credentials=read_credentials(Path(sys.argv[1]))),"
        " store_of(sys.argv[2]), seconds=3)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, keys, url], capture_output=True, text=True, timeout=60
    )
    assert "StoreUnreachable" in done.stderr
    assert "verysecret" not in done.stderr
    if bucket == "missing":
        done = run("replicate", tmp_path / "new.db", "--to", url, "--credentials", keys)
        assert done.returncode == 2
        assert not (tmp_path / "new.db").exists()


def test_a_foreign_replica_is_left_alone(
    database: Path, store: Path, tmp_path: Path, start: Start, run: Run
) -> None:
    from tests.operations.databases import filled

    start(database, "--to", store).end()
    other = filled(tmp_path / "other.db", 5)
    done = run("replicate", other, "--to", store)
    assert done.returncode == 2
    assert "holds a replica, last written at" in done.stderr
    replicator = start(other, "--to", store, "--take-over")
    assert run("replicate", "verify", other).returncode == 0
    replicator.end()
    assert sent(other, store, run) == list(range(1, 6))


def test_writers_and_litestream_keep_peace(
    database: Path, store: Path, start: Start, run: Run
) -> None:
    """The WAL stays small beside writers, and all that is acknowledged comes to the store."""
    replicator = start(database, "--to", store)
    largest = 0
    with writing(database) as writer:
        assert writer.stdout is not None
        for _ in range(3000):
            last = int(writer.stdout.readline())
            largest = max(largest, Path(f"{database}-wal").stat().st_size)
    assert replicator.end() == 0
    assert largest < 64 << 20
    found = sent(database, store, run)
    assert found == list(range(1, len(found) + 1))
    assert len(found) >= last, replicator.said


def test_a_crash_loop_is_slow_and_said(
    database: Path, store: Path, tmp_path: Path, start: Start
) -> None:
    """It has no memory: no program in Go can begin."""
    replicator = start(database, "--to", store)
    number = replicator.process.pid
    before = resource.prlimit(number, resource.RLIMIT_AS)
    resource.prlimit(number, resource.RLIMIT_AS, (400 << 20, before[1]))
    os.kill(replicator.litestream(), signal.SIGKILL)
    replicator.until_said("begun again in 0.4 s", 3)
    assert replicator.process.poll() is None
    until(lambda: replication_status(database).restarts > 1)
    assert replication_status(database).health == "failing"
    resource.prlimit(number, resource.RLIMIT_AS, before)
    replicator.until_said("is replicated again")


def test_what_is_deleted_of_the_temporary_directory_is_made_anew(
    database: Path, store: Path, start: Start, run: Run
) -> None:
    """As by who deletes what is old there."""
    replicator = start(database, "--to", store)
    state = read_state(database)
    assert state is not None
    shutil.rmtree(Path(state.socket).parent)
    os.kill(replicator.litestream(), signal.SIGKILL)
    now = time.time()
    add(database, 6600)
    until(lambda: begun_after(database, now))
    replicator.end()
    assert sent(database, store, run)[-1] == 6600


def test_a_long_name_is_refused(tmp_path: Path, run: Run) -> None:
    done = run("replicate", tmp_path / ("x" * 245), "--to", tmp_path / "store")
    assert done.returncode == 2
    assert "too long a name" in done.stderr


def test_nothing_is_left_of_a_directory_that_is_no_database(tmp_path: Path, run: Run) -> None:
    for arguments, says in (
        ((tmp_path, "--to", tmp_path / "s"), "is no file"),
        ((tmp_path / "no" / "a.db", "--to", tmp_path / "s"), "there is no directory"),
        (("--to", tmp_path / "s"), "nothing to replicate"),
        (("--directory", tmp_path, "--to", tmp_path / "s"), "nothing to replicate"),
        ((tmp_path / "a.db", "--to", tmp_path / "no" / "s"), "if it is on a volume, mount that"),
        ((tmp_path / "a.db", "--to", "ftp://a/b"), "Litestream knows no ftp://"),
        ((tmp_path / "a.db", "--to", "s3://a:b@c/d"), "takes no credentials"),
    ):
        done = run("replicate", "run", *arguments)
        assert done.returncode == 2
        assert says in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_wal_profile_is_kept(database: Path, store: Path, start: Start) -> None:
    start(database, "--to", store)
    with closing(oxlite.connect(database)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
