"""What is seen of every SQLite: who reads, who writes, the WAL, and who has it open."""

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.operations.databases import python
from tests.operations.top.conftest import Actor, Stage, looked, process_of

from oxlite.operations import OperationsError, look_for_holders
from oxlite.operations.top import Watch, watch

KINDS = pytest.mark.parametrize("kind", ["stranger", "own"])

INSERT = "c.execute('INSERT INTO t(filling) VALUES (zeroblob(9000))')"


def user(stage: Stage, kind: str) -> Actor:
    return stage.stranger() if kind == "stranger" else stage.own()


@KINDS
def test_commits_are_counted_exactly(stage: Stage, kind: str) -> None:
    writer = user(stage, kind)
    with Watch(stage.path) as watch:
        first = watch.look()
        assert first.commits_per_second is None
        for _ in range(7):
            writer.do(INSERT)
        then = watch.look()
        assert first.commits is not None
        assert then.commits == first.commits + 7
        assert then.commits_per_second is not None
        assert then.since_before_seconds is not None
        assert round(then.commits_per_second * then.since_before_seconds) == 7
        assert watch.look().commits_per_second == 0


@KINDS
def test_who_has_the_write_lock(stage: Stage, kind: str) -> None:
    writer = user(stage, kind)
    with Watch(stage.path) as watch:
        assert watch.look().writer is None
        writer.do("c.execute('BEGIN IMMEDIATE')")
        sample = watch.look()
        assert sample.writer is not None
        assert sample.writer.process_id == writer.process_id
        assert "python" in (sample.writer.command or "")
        assert "writes" in process_of(writer, sample).does
        later = watch.look()
        assert later.writer is not None
        assert later.writer.held_seconds > 0
        writer.do("c.execute('COMMIT')")
        assert watch.look().writer is None


def test_a_write_lock_that_was_let_go_meanwhile_is_another_one(stage: Stage) -> None:
    writer = stage.stranger()
    with Watch(stage.path) as watch:
        writer.do("c.execute('BEGIN IMMEDIATE')")
        watch.look()
        before = watch.look().writer
        writer.do(INSERT)
        writer.do("c.execute('COMMIT')")
        writer.do("c.execute('BEGIN IMMEDIATE')")
        after = watch.look().writer
        assert before is not None
        assert after is not None
        assert before.held_seconds > after.held_seconds == 0
        assert after.is_at_least


@KINDS
def test_a_snapshot_that_has_become_old(stage: Stage, kind: str) -> None:
    reader, writer = user(stage, kind), stage.stranger()
    reader.do("c.execute('BEGIN DEFERRED'); c.execute('SELECT count(*) FROM t').fetchall()")
    with Watch(stage.path) as watch:
        (found,) = watch.look().readers
        assert found.process_id == reader.process_id
        assert (found.frames_behind, found.is_at_least) == (0, False)
        writer.do(INSERT)
        (found,) = watch.look().readers
        assert found.frames_behind
        assert found.is_at_least  # it has become so since the look before
        (later,) = watch.look().readers
        assert later.age_seconds is not None
        assert found.age_seconds is not None
        assert later.age_seconds > found.age_seconds
        reader.do("c.execute('COMMIT')")
        assert watch.look().readers == ()


def test_a_snapshot_that_was_old_already(stage: Stage) -> None:
    reader, writer = stage.stranger(), stage.stranger()
    writer.do(INSERT)
    reader.do("c.execute('BEGIN'); c.execute('SELECT count(*) FROM t').fetchall()")
    for _ in range(3):
        writer.do(INSERT)
    with Watch(stage.path) as watch:
        watch.look()
        sample = watch.look()
        (found,) = sample.readers
        assert found.is_at_least
        assert found.read_mark
        assert found.age_seconds
        assert sample.wal is not None
        assert found.frames_behind is not None
        assert 0 < found.frames_behind < sample.wal.frames
        assert "reads" in process_of(reader, sample).does


def test_who_reads_the_database_alone_is_behind_what_was_not_checkpointed(stage: Stage) -> None:
    reader, writer = stage.stranger(), stage.stranger()
    writer.do(INSERT)
    writer.do("c.execute('PRAGMA wal_checkpoint')")
    reader.do("c.execute('BEGIN'); c.execute('SELECT count(*) FROM t').fetchall()")
    writer.do(INSERT)
    with Watch(stage.path) as watch:
        (found,) = watch.look().readers
        assert found.read_mark == 0
        assert found.frames_behind


def test_a_mark_that_is_kept_for_a_moment_is_no_reader(stage: Stage) -> None:
    reader = stage.own()
    with Watch(stage.path) as watch:
        for _ in range(5):
            reader.do("for _ in range(2000): c.execute('SELECT x FROM t WHERE x = 5').fetchall()")
            assert watch.look().readers == ()


def test_the_wal_and_how_often_it_was_begun_anew(stage: Stage) -> None:
    writer = stage.stranger()
    for _ in range(3):
        writer.do(INSERT)
    with Watch(stage.path) as watch:
        before = watch.look().wal
        assert before is not None
        assert before.frames > before.checkpointed_frames
        assert before.page_bytes == 4096
        assert before.size_bytes == stage.beside("-wal").stat().st_size
        writer.do("c.execute('PRAGMA wal_checkpoint')")
        then = watch.look().wal
        assert then is not None
        assert then.frames == then.checkpointed_frames == before.frames
        writer.do(INSERT)
        anew = watch.look().wal
        assert anew is not None
        assert before.begun_anew is not None
        assert anew.begun_anew == before.begun_anew + 1
        assert anew.frames < before.frames
        writer.do("c.execute('PRAGMA wal_checkpoint(TRUNCATE)')")
        emptied = watch.look().wal
        assert emptied is not None
        assert (emptied.size_bytes, emptied.begun_anew) == (0, None)


def test_processes_in_line(stage: Stage) -> None:
    holder, head, waiting = stage.own(), stage.own(), stage.own()
    with Watch(stage.path) as watch:
        assert watch.look().line.processes == 0
        holder.do("c.execute('BEGIN IMMEDIATE')")
        head.begin(INSERT)
        sample = looked(watch, lambda one: one.line.head_process_id == head.process_id)
        assert sample.line.processes == 1
        waiting.begin(INSERT)
        sample = looked(watch, lambda sample: sample.line.processes == 2)
        assert "in line" in process_of(waiting, sample).does
        assert "at the head" in process_of(head, sample).does
        assert sample.writer is not None
        assert sample.writer.process_id == holder.process_id
        holder.do("c.execute('COMMIT')")
        looked(watch, lambda sample: sample.line.processes == 0)


def test_an_index_that_is_made_anew_counts_anew(stage: Stage) -> None:
    writer = stage.stranger()
    for _ in range(5):
        writer.do(INSERT)
    with Watch(stage.path) as watch:
        watch.look()
        writer.do("c.close()")
        assert not stage.beside("-shm").exists()
        sample = watch.look()
        assert sample.wal is None
        assert sample.commits_per_second is None
        again = stage.stranger()
        again.do(INSERT)
        sample = watch.look()
        assert sample.commits == 1
        assert sample.commits_per_second is not None
        assert sample.commits_per_second > 0


def test_rollback_mode(stage: Stage) -> None:
    with closing(sqlite3.connect(stage.path)) as connection:
        connection.execute("PRAGMA journal_mode = delete")
    writer = stage.stranger()
    with Watch(stage.path) as watch:
        first = watch.look()
        assert (first.journal_mode, first.wal, first.readers) == ("rollback", None, ())
        assert any("rollback mode" in note for note in first.notes)
        for _ in range(3):
            writer.do(INSERT)
        assert first.commits is not None
        assert watch.look().commits == first.commits + 3
        writer.do("c.execute('BEGIN IMMEDIATE')")
        sample = watch.look()
        assert sample.writer is not None
        assert sample.writer.process_id == writer.process_id
        writer.do("c.execute('COMMIT')")
        writer.do("c.execute('PRAGMA journal_mode = wal')")
        writer.do(INSERT)
        sample = watch.look()
        assert sample.journal_mode == "wal"
        assert sample.wal is not None


def test_one_that_nobody_has_open(stage: Stage) -> None:
    with Watch(stage.path) as watch:
        sample = watch.look()
    assert (sample.journal_mode, sample.wal, sample.processes) == ("wal", None, ())
    assert any(note.startswith("Nobody has it open") for note in sample.notes)


def test_a_wal_that_was_left_behind(stage: Stage) -> None:
    writer = stage.stranger()
    writer.do(INSERT)
    writer.kill()
    stage.beside("-shm").unlink()
    with Watch(stage.path) as watch:
        assert any("was left behind" in note for note in watch.look().notes)


def test_an_index_without_a_byte(stage: Stage) -> None:
    writer = stage.stranger()
    writer.do(INSERT)
    writer.kill()
    with Watch(stage.path) as watch:
        assert watch.look().wal is not None
        os.truncate(stage.beside("-shm"), 0)
        sample = watch.look()
    assert sample.wal is None
    assert any("is empty" in note for note in sample.notes)


def test_an_index_that_is_half_written(stage: Stage) -> None:
    writer = stage.stranger()
    writer.do(INSERT)
    writer.kill()
    with stage.beside("-shm").open("r+b", buffering=0) as file, Watch(stage.path) as watch:
        before = watch.look()
        file.seek(60)
        content = file.read(2)
        file.seek(60)
        file.write(b"\xff\xff")
        sample = watch.look()
        assert sample.wal is None
        assert any("half written" in note for note in sample.notes)
        file.seek(60)
        file.write(content)
        # How much was committed since is not known: not all that there is.
        sample = watch.look()
        assert (sample.commits, sample.commits_per_second) == (before.commits, None)
        assert watch.look().commits_per_second == 0


@pytest.mark.parametrize("kind", ["link", "pipe", "directory"])
def test_what_is_no_index(stage: Stage, kind: str) -> None:
    place = stage.beside("-shm")
    if kind == "link":
        place.symlink_to(stage.path)
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        place.mkdir()
    with Watch(stage.path) as watch:
        sample = watch.look()
    assert any("is not a regular file" in note for note in sample.notes)


def test_an_exclusive_process_keeps_the_index_to_itself(stage: Stage) -> None:
    writer = stage.actor()
    writer.do("c = sqlite3.connect(path, isolation_level=None)")
    writer.do("c.execute('PRAGMA locking_mode = exclusive'); " + INSERT)
    with Watch(stage.path) as watch:
        sample = watch.look()
    assert sample.wal is None
    assert any("locking_mode = exclusive" in note for note in sample.notes)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda path: path.unlink(), "No such file"),
        (lambda path: (path.unlink(), path.mkdir()), "is a directory"),
        (lambda path: (path.unlink(), os.mkfifo(path)), "is not a regular file"),
        (lambda path: path.write_text("hello\n"), "is not a database, or an encrypted one"),
        (lambda path: path.write_bytes(bytes(range(256)) * 64), "an encrypted one"),
    ],
)
def test_what_cannot_be_watched(
    stage: Stage, make: Callable[[Path], object], expected: str
) -> None:
    make(stage.path)
    with pytest.raises(OperationsError, match=expected):
        Watch(stage.path)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 1e9])
def test_what_is_no_interval(stage: Stage, seconds: float) -> None:
    with pytest.raises(OperationsError, match="an interval is"):
        next(watch(stage.path, interval_seconds=seconds))


def test_an_empty_file_is_a_database_without_tables(stage: Stage) -> None:
    stage.path.write_bytes(b"")
    with Watch(stage.path) as watch:
        assert watch.look().size_bytes == 0


def test_a_file_that_is_deleted_while_it_is_watched(stage: Stage) -> None:
    writer = stage.stranger()
    with Watch(stage.path) as watch:
        watch.look()
        stage.path.unlink()
        with pytest.raises(OperationsError, match="was deleted or moved") as caught:
            watch.look()
    assert f"process {writer.process_id}" in str(caught.value)
    assert "still has it open" in str(caught.value)


def test_a_file_that_is_replaced_while_it_is_watched(stage: Stage) -> None:
    old = stage.stranger()
    with Watch(stage.path) as watch:
        watch.look()
        other = stage.path.with_name("other.db")
        with closing(sqlite3.connect(other)) as connection:
            connection.execute("CREATE TABLE t(x)")
        other.replace(stage.path)
        sample = watch.look()
        assert any("Another file has its name" in note for note in sample.notes)
        assert "deleted file" in process_of(old, sample).does


@pytest.mark.parametrize("is_open", [True, False])
def test_a_watch_takes_no_lock_of_its_own_process_away(stage: Stage, is_open: bool) -> None:
    """To close any descriptor of a file would: howtocorrupt.html, 2.2."""
    program = f"""
import sqlite3, sys
from pathlib import Path
from oxlite.operations.top import Watch
path = sys.argv[1]
def locks():
    return [
        (link.name, info) for link in Path("/proc/self/fd").iterdir()
        if link.is_symlink() and link.resolve().name.endswith("-shm")
        for info in [(Path("/proc/self/fdinfo") / link.name).read_text()]
    ]
if {is_open}:
    c = sqlite3.connect(path, isolation_level=None)
    c.execute("BEGIN IMMEDIATE")
for _ in range(3):
    with Watch(path) as one, Watch(path) as two:
        assert (one.look().writer is not None) is {is_open}
        two.look()
print(len(locks()), sum("POSIX" in info and " WRITE " in info for _, info in locks()))
"""
    other = stage.stranger()
    other.do(INSERT)
    descriptors, writing = map(int, python(program, stage.path).split())
    # One may stay open beside that of SQLite, for all watches.
    assert (descriptors, writing) == ((2, 1) if is_open else (0, 0))


def test_who_watches_is_no_user_and_writes_nothing(stage: Stage) -> None:
    writer = stage.stranger()
    writer.do(INSERT)
    directory = stage.path.parent
    before = sorted(file.name for file in directory.iterdir())
    content = stage.path.read_bytes(), stage.beside("-wal").read_bytes()
    with Watch(stage.path) as watch:
        watch.look()
        sample = watch.look()
        holders = look_for_holders(stage.path)
        assert holders is not None
        assert [one.process_id for one in holders] == [writer.process_id]
    assert sample.processes is not None
    assert [one.process_id for one in sample.processes] == [writer.process_id]
    assert sorted(file.name for file in directory.iterdir()) == before
    assert (stage.path.read_bytes(), stage.beside("-wal").read_bytes()) == content


def test_what_others_have_written_is_harmless(stage: Stage) -> None:
    path = stage.path.with_name("a\x1b[31m.db")
    stage.path.rename(path)
    actor = stage.actor("\x1b]0;title\x07", path=path)
    actor.do("c = sqlite3.connect(path); c.execute('SELECT 1 FROM t').fetchall()")
    with Watch(path) as watch:
        sample = watch.look()
    assert "\x1b" not in repr(json.loads(json.dumps(sample.as_dict())))
    assert "\\x1b]0;title\\x07" in (process_of(actor, sample).command or "")


def test_samples_one_after_the_other(stage: Stage) -> None:
    samples = list(watch(str(stage.path), interval_seconds=0.1, count=3))
    assert len(samples) == 3
    assert all(one.since_before_seconds is not None for one in samples)
