"""What processes of Oxlite tell while somebody watches, and what is joined with what is seen."""

import json
import subprocess

import pytest
from tests.operations.databases import python
from tests.operations.top.conftest import Actor, Stage, looked, process_of
from tests.operations.top.test_prometheus import parsed
from tests.wait import until

from oxlite.operations.top import Sample, Watch, as_prometheus

INSERT = "c.execute('INSERT INTO t(filling) VALUES (zeroblob(9000))')"

SLOW = "SELECT count(*) FROM t AS one, t AS two WHERE one.x + two.x > 5"


def telling(stage: Stage, watch: Watch) -> Actor:
    """A process that has begun to tell; it does so when it uses the database."""
    actor = stage.own()

    def tells() -> bool:
        actor.do(INSERT)
        return process_of(actor, watch.look()).tells

    until(tells)
    return actor


def test_what_is_counted_and_what_it_comes_to_in_a_second(stage: Stage) -> None:
    with Watch(stage.path) as watch:
        actor = telling(stage, watch)

        def counts(sample: Sample) -> bool:
            actor.do(INSERT)
            return (process_of(actor, sample).per_second or {}).get("commits", 0) > 0

        # It tells ten times a second, while it does something.
        sample = looked(watch, counts)
        now = process_of(actor, sample)
        assert now.per_second is not None
        assert "waiting" not in now.per_second
        assert "wal_frames" not in now.per_second
        assert sample.counters["commits"] == now.counters["commits"]
        assert sample.rate("commits") == now.per_second["commits"]
        assert "wal_frames" not in sample.counters
        assert sample.line.threads == 0


def test_a_rate_lives_until_the_next_telling_is_due(stage: Stage) -> None:
    """Whoever is busy tells ten times a second: a look between two of them has not met nothing."""
    with Watch(stage.path) as watch:
        actor = telling(stage, watch)

        def goes_on() -> bool:
            actor.do(INSERT)
            first = process_of(actor, watch.look())
            if not (first.per_second or {}).get("commits"):
                return False
            again = process_of(actor, watch.look())
            if (first.counters, first.per_second) == (again.counters, again.per_second):
                return True
            # Else it has been slow: what was told is old by now, and counts as nothing.
            assert again.told_ago_seconds is not None
            assert again.told_ago_seconds > 0.2
            return False

        until(goes_on)
        until(lambda: not any((process_of(actor, watch.look()).per_second or {}).values()))


def test_who_does_nothing_has_rates_of_zero(stage: Stage) -> None:
    with Watch(stage.path) as watch:
        actor = telling(stage, watch)
        watch.look()
        now = process_of(actor, watch.look())
        assert now.per_second is not None
        assert set(now.per_second.values()) == {0.0}
        assert now.told_ago_seconds is not None
        assert now.told_ago_seconds >= 0


def test_the_slowest_statements(stage: Stage) -> None:
    with Watch(stage.path) as watch:
        actor = telling(stage, watch)
        actor.do(f"c.execute('''{SLOW} /* \\x1b[31m */''').fetchall()")

        def tells_it(sample: Sample) -> bool:
            actor.do(INSERT)
            return any(SLOW in one.sql for one in sample.statements)

        sample = looked(watch, tells_it)
    # On a busy machine another one may have been slower.
    (slow,) = (one for one in sample.statements if SLOW in one.sql)
    assert "\x1b" not in slow.sql
    assert slow.process_id == actor.process_id
    assert slow.longest_seconds > 0
    # What is kept in files has none.
    text = as_prometheus(sample)
    assert "SELECT" not in text
    series = parsed(text)["oxlite_process_commits_total"]
    assert [label for label, _ in series] == [
        f'database="{sample.path}",process_id="{actor.process_id}",pid_namespace="own"'
    ]


def test_what_the_write_lock_is_held_for(stage: Stage) -> None:
    with Watch(stage.path) as watch:
        actor = stage.own()
        actor.do("c.execute('BEGIN IMMEDIATE')")
        actor.do("import time; time.sleep(0.05)")
        actor.do("c.execute('UPDATE t SET filling = NULL WHERE x = 7')")
        sample = looked(watch, lambda one: one.writer and one.writer.sql)
        assert sample.writer is not None
        assert sample.writer.process_id == actor.process_id
        assert not sample.writer.is_at_least
        assert sample.writer.held_seconds > 0
        assert sample.writer.thread_id
        assert "UPDATE t SET filling = NULL" in (sample.writer.sql or "")
        actor.do("c.execute('ROLLBACK')")
        looked(watch, lambda one: one.writer is None)


def test_with_what_a_snapshot_is_read(stage: Stage) -> None:
    writer = stage.stranger()
    with Watch(stage.path) as watch:
        actor = telling(stage, watch)
        actor.do("r = oxlite.connect(path, isolation_level=None)")
        actor.do("rows = r.execute('SELECT x FROM t'); rows.fetchone()")
        writer.do(INSERT)

        def tells_it(sample: Sample) -> bool:
            actor.do("c.execute('SELECT 1 FROM t WHERE x = 1').fetchall()")
            return any(one.sql for one in sample.readers)

        sample = looked(watch, tells_it)
        (reader,) = (one for one in sample.readers if one.sql)
        assert reader.process_id == actor.process_id
        assert reader.sql == "SELECT x FROM t"
        assert reader.thread_id
        assert not reader.is_at_least
        assert reader.age_seconds is not None
        assert reader.age_seconds >= 0.1
        assert reader.frames_behind
        # It ends that, and uses the database no more: nobody hears of it, but it is seen.
        actor.do("rows.close(); r.close()")
        looked(watch, lambda one: one.readers == ())


def test_threads_in_line(stage: Stage) -> None:
    holder = stage.stranger()
    with Watch(stage.path) as watch:
        actor = telling(stage, watch)
        holder.do("c.execute('BEGIN IMMEDIATE')")
        actor.do(
            "go = lambda: oxlite.connect(path, timeout=60, isolation_level=None)"
            ".execute('INSERT INTO t(filling) VALUES (1)')"
        )
        actor.do("threads = [threading.Thread(target=go) for _ in range(3)]")
        actor.do("[one.start() for one in threads]")
        sample = looked(watch, lambda one: (one.line.threads or 0) >= 2)
        assert process_of(actor, sample).counters["waiting"] >= 2
        holder.do("c.execute('ROLLBACK')")
        actor.do("[one.join() for one in threads]")


def test_nothing_stays_beside_the_database(stage: Stage) -> None:
    place = stage.beside("-activity")
    with Watch(stage.path) as one:
        with Watch(stage.path) as two:
            two.look()
        assert place.exists()
        telling(stage, one)
    assert not place.exists()


def test_where_nobody_can_be_asked_there_is_what_is_seen(stage: Stage) -> None:
    stage.beside("-activity").symlink_to(stage.path)
    actor = stage.own()
    with Watch(stage.path) as watch:
        sample = watch.look()
    assert any("are not asked what they do" in note for note in sample.notes)
    assert not process_of(actor, sample).tells


def test_a_sample_with_all_of_it_is_json(stage: Stage) -> None:
    with Watch(stage.path) as watch:
        telling(stage, watch)
        sample = watch.look()
    document = json.loads(json.dumps(sample.as_dict()))
    assert document["counters"]["commits"] == sample.counters["commits"]


def test_an_application_may_watch_its_own_database(stage: Stage) -> None:
    program = """
import sys, time, oxlite
from oxlite.operations.top import Watch
with oxlite.connect(sys.argv[1], isolation_level=None) as c, Watch(sys.argv[1]) as watch:
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        c.execute("INSERT INTO t(filling) VALUES (1)")
        (process,) = watch.look().processes
        if process.tells:
            break
    print(process.tells)
"""
    assert python(program, stage.path).split() == ["True"]
    assert not stage.beside("-activity").exists()


@pytest.mark.parametrize("count", [1, 2])
def test_processes_of_containers_have_the_numbers_that_they_have_here(
    stage: Stage, count: int
) -> None:
    contained = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    if subprocess.run([*contained, "true"], capture_output=True).returncode:
        pytest.skip("no PID namespace can be made here")
    with Watch(stage.path) as watch:
        actors = [stage.own(*contained) for _ in range(count)]

        def tell(sample: Sample) -> bool:
            for actor in actors:
                actor.do(INSERT)
            telling = [one for one in sample.processes or () if one.tells]
            return len(telling) == count and all(one.counters["commits"] for one in telling)

        sample = looked(watch, tell)
    assert sample.processes is not None
    if count == 1:
        (process,) = sample.processes
        assert process.pid_namespace == "own"
        assert process.process_id > 1
        assert "python" in (process.command or "")
    else:  # both are number 1 there
        assert [one.tells for one in sample.processes] == [False, False, True, True]
        told = [(one.process_id, one.pid_namespace) for one in sample.processes if one.tells]
        assert told == [(1, "another")] * 2
        commits = [one.counters["commits"] for one in sample.processes if one.tells]
        assert sample.counters["commits"] == sum(commits)
        labels = [label for label, _ in parsed(as_prometheus(sample))["oxlite_process_turns_total"]]
        assert len(labels) == 1
