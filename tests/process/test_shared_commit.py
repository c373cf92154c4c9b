"""Processes that share their syncs: leaders killed or stopped in one, and syncs that fail."""

import errno
import signal
from pathlib import Path

import pytest
from tests.crash.trouble import KILL
from tests.faults.injector import SUPPORTED, build
from tests.process.actors import STOP, Actor, Start, is_stopped
from tests.wait import until

import oxlite

pytestmark = pytest.mark.skipif(not SUPPORTED, reason="syncs are met on x86-64 Linux only")

_OPEN = """connection = oxlite.connect(
    sys.argv[1], isolation_level=None, timeout=30, durable_commit="shared"{more})"""
_BEGUN = "begun"
_INSERT = "INSERT INTO t VALUES ({0!r})"


@pytest.fixture(scope="module", autouse=True)
def _library() -> None:
    build()


class Join:
    """Starts processes that are in the group."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._has_begun = False

    def __call__(self, more: str = "") -> Actor:
        actor = self._start("standard")
        assert actor.does("import oxlite") == "done"
        assert actor.does(_one_line(_OPEN.format(more=more))) == "done"
        if not self._has_begun:
            # The first commit to a log syncs its header; then the shared sync is the first.
            self._has_begun = True
            assert actor.does(f"execute({_INSERT.format(_BEGUN)!r})") == "done"
        return actor


@pytest.fixture
def join(start: Start) -> Join:
    """Starts processes that are in the group of the database."""
    return Join(start)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def meets(actor: Actor, effect: int, number: int = 1) -> None:
    """Its n-th sync from now on fails so."""
    line = "from tests.faults.injector import Injector; injector = Injector();"
    assert actor.does(f"{line} injector.arm('sync', {number}, False, {effect})") == "done"


def writes(actor: Actor, what: str) -> None:
    actor.writes(_INSERT.format(what))


def statistics(actor: Actor) -> dict[str, object]:
    actor.tell("say(repr(connection.shared_commit_statistics()))")
    told: dict[str, object] = eval(actor.answer())
    assert actor.answer() == "done"
    return told


def rows(path: Path) -> set[object]:
    connection = oxlite.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    found = {x for (x,) in connection.execute("SELECT x FROM t")}
    connection.close()
    return found - {_BEGUN}


def test_processes_answer_one_another(join: Join, path: Path) -> None:
    actors = [join() for _ in range(4)]
    loop = "[execute(f'INSERT INTO t VALUES ({number})') for number in range(%d, %d)]"
    for number, actor in enumerate(actors):
        actor.tell(loop % (number * 100, number * 100 + 50))
    assert [actor.answer() for actor in actors] == ["done"] * 4
    told = [statistics(actor) for actor in actors]
    assert [one["commits"] for one in told] == [51, 50, 50, 50]
    assert all(one["commits_of_all"] == 201 for one in told)
    assert sum(int(str(one["answered_by_others"])) for one in told) <= 201
    assert len(rows(path)) == 200


def test_a_leader_killed_in_its_sync_holds_nobody_up(join: Join, path: Path) -> None:
    others = [join() for _ in range(2)]
    leader = join()
    meets(leader, KILL)
    writes(leader, "leader")
    until(lambda: leader.process.poll() is not None)
    for number, other in enumerate(others):
        writes(other, str(number))
    assert [other.answer() for other in others] == ["done"] * 2
    assert rows(path) == {"leader", "0", "1"}
    assert statistics(others[0])["leaders_lost"] == 1


def test_who_waits_for_a_leader_that_is_killed_goes_on(join: Join, path: Path) -> None:
    others = [join() for _ in range(3)]
    leader = join()
    meets(leader, STOP)
    writes(leader, "leader")
    until(lambda: is_stopped(leader))
    for number, other in enumerate(others):
        writes(other, str(number))
    leader.kill()
    assert [other.answer() for other in others] == ["done"] * 3
    assert rows(path) == {"leader", "0", "1", "2"}


def test_a_stopped_leader_is_stood_in_for(join: Join, path: Path) -> None:
    other, leader = join(), join()
    meets(leader, STOP)
    writes(leader, "leader")
    until(lambda: is_stopped(leader))
    for number in range(3):
        writes(other, str(number))
        assert other.answer() == "done"
    assert int(str(statistics(other)["syncs_beside"])) >= 1
    leader.signal(signal.SIGCONT)
    assert leader.answer() == "done"
    assert rows(path) == {"leader", "0", "1", "2"}


def test_who_came_later_does_not_vouch_for_what_a_dead_leader_may_have_seen(
    join: Join, path: Path
) -> None:
    elder, leader = join(), join()
    meets(leader, KILL)
    writes(leader, "leader")
    until(lambda: leader.process.poll() is not None)
    younger = join()
    writes(younger, "younger")
    # It waits for somebody who was there before, and then gives up for all; it has written nothing.
    assert younger.answer().startswith("SyncFailedError: a process that synced")
    writes(elder, "elder")
    assert elder.answer().startswith("SyncFailedError")


def test_who_came_between_two_dead_leaders_does_not_vouch_either(join: Join, path: Path) -> None:
    first, second = join(), join()
    meets(first, KILL)
    writes(first, "first")
    until(lambda: first.process.poll() is not None)
    between = join()
    meets(second, KILL)
    writes(second, "second")
    until(lambda: second.process.poll() is not None)
    # Older than the second one's sync, but not than the first one's.
    writes(between, "between")
    assert between.answer().startswith("SyncFailedError: a process that synced")


def test_one_who_was_there_before_vouches_for_all(join: Join, path: Path) -> None:
    elder, leader = join(), join()
    meets(leader, KILL)
    writes(leader, "leader")
    until(lambda: leader.process.poll() is not None)
    younger = join()
    writes(elder, "elder")
    assert elder.answer() == "done"
    writes(younger, "younger")
    assert younger.answer() == "done"
    assert rows(path) == {"leader", "elder", "younger"}


def test_a_failed_sync_stops_all_and_a_new_beginning_clears_it(join: Join, path: Path) -> None:
    other, unlucky = join(), join()
    writes(other, "before")
    assert other.answer() == "done"
    meets(unlucky, errno.EIO)
    writes(unlucky, "unlucky")
    assert unlucky.answer().startswith("CommitOutcomeUnknown: a sync of this database has failed")
    for actor in (unlucky, other):
        for sql in ("INSERT INTO t VALUES (1)", "BEGIN IMMEDIATE", "PRAGMA wal_checkpoint"):
            actor.writes(sql)
            assert actor.answer().startswith("SyncFailedError"), sql
        assert actor.does("connection.checkpoint('full')").startswith("SyncFailedError")
        assert actor.does("execute('SELECT x FROM t')") == "done"
        assert statistics(actor)["poisoned"]
    # Whoever comes now finds it so; and one who is closed leaves the log to be recovered from.
    late = join()
    writes(late, "late")
    assert late.answer().startswith("SyncFailedError")
    assert late.does("connection.close()") == "done"
    log = Path(f"{path}-wal")
    for actor in (unlucky, other):
        assert actor.does("connection.close()") == "done"
    assert log.stat().st_size > 0
    fresh = join()
    assert log.stat().st_size == 0
    writes(fresh, "after")
    assert fresh.answer() == "done"
    assert statistics(fresh)["poisoned"] is None
    assert rows(path) == {"before", "unlucky", "after"}


_TOGETHER = """
def together(count):
    outcomes = []
    def write(number):
        try:
            db.execute("INSERT INTO t VALUES (?)", (number,))
            outcomes.append("done")
        except oxlite.sqlite3.Error as error:
            outcomes.append(type(error).__name__)
    threads = [threading.Thread(target=write, args=(number,)) for number in range(count)]
    try:
        with db.write() as connection:
            connection.rollback()  # it keeps the writer, and has nothing to sync
            for thread in threads:
                thread.start()
            while db.stats().writer_waiting < count:
                time.sleep(0.001)
    except oxlite.sqlite3.ProgrammingError:
        pass
    for thread in threads:
        thread.join()
    say(" ".join(outcomes))
"""


def test_all_of_a_batch_are_told_that_its_sync_has_failed(start: Start) -> None:
    actor = start("standard")
    for line in (
        "import oxlite",
        f"exec({_TOGETHER!r}, globals())",
        "db = oxlite.Database(sys.argv[1], durable_commit='shared', timeout=30)",
        "db.execute(\"INSERT INTO t VALUES ('begun')\")",
    ):
        assert actor.does(line) == "done"
    assert actor.does("together(4)") == "done done done done"
    assert actor.answer() == "done"
    meets(actor, errno.EIO)
    assert actor.does("together(4)") == " ".join(["CommitOutcomeUnknown"] * 4)
    assert actor.answer() == "done"


@pytest.mark.parametrize(
    "commit", ["COMMIT", ";COMMIT", "; ; -- done\nEND", "\ufeffCOMMIT", " \vEND"]
)
def test_a_commit_is_answered_after_its_sync_however_it_is_written(join: Join, commit: str) -> None:
    unlucky = join()
    assert unlucky.does("execute('BEGIN', \"INSERT INTO t VALUES ('unlucky')\")") == "done"
    meets(unlucky, errno.EIO)
    assert unlucky.does(f"execute({commit!r})").startswith("CommitOutcomeUnknown")


def test_what_counts_as_a_read_and_commits_is_answered_after_its_sync(join: Join) -> None:
    unlucky = join()
    many = "WITH n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n WHERE k < 500) SELECT k FROM n"
    assert unlucky.does(f"execute('CREATE INDEX i ON t(x)', 'INSERT INTO t {many}')") == "done"
    meets(unlucky, errno.EIO)
    answer = unlucky.does("execute('PRAGMA optimize = 0x10002')")
    assert answer.startswith("CommitOutcomeUnknown"), answer


def test_an_open_transaction_is_not_committed_any_more(join: Join, path: Path) -> None:
    waiting, unlucky = join(), join()
    assert waiting.does("execute('BEGIN', 'SELECT x FROM t')") == "done"
    meets(unlucky, errno.EIO)
    writes(unlucky, "unlucky")
    assert unlucky.answer().startswith("CommitOutcomeUnknown")
    assert waiting.does("execute('COMMIT')").startswith("SyncFailedError")
    assert waiting.does("execute('ROLLBACK')") == "done"


def test_an_error_that_sqlite_keeps_to_itself_is_noticed(join: Join, path: Path) -> None:
    """Its own automatic checkpoint runs inside COMMIT, whose result is success all the same."""
    other, unlucky = join(), join(", pragmas=dict(wal_autocheckpoint=1)")
    meets(unlucky, errno.EIO)
    writes(unlucky, "unlucky")
    assert unlucky.answer().startswith("CommitOutcomeUnknown")
    assert unlucky.does("say(str(injector.struck()))") == "1"
    assert unlucky.answer() == "done"
    writes(other, "other")
    assert other.answer().startswith("SyncFailedError")


def test_who_is_not_in_the_group_sees_who_is(join: Join, path: Path) -> None:
    def seen() -> tuple[object, object, object, object]:
        group = oxlite.shared_commit_group(path)
        assert group is not None
        assert group["commits"] == group["commits_durable"]
        return group["members"], group["commits"], group["leaders_lost"], group["poisoned"]

    assert oxlite.shared_commit_group(path) is None
    actors = [join() for _ in range(4)]
    assert seen() == (4, 1, 0, None)
    assert actors[3].does("connection.close()") == "done"
    meets(actors[2], KILL)
    writes(actors[2], "leader")
    until(lambda: actors[2].process.poll() is not None)
    writes(actors[1], "follower")
    assert actors[1].answer() == "done"
    assert seen() == (2, 3, 1, None)
    for actor in actors[:2]:
        actor.kill()
    # Nobody was left to take the page along.
    assert seen() == (0, 3, 1, None)
    oxlite.connect(path, durable_commit="shared").close()
    assert oxlite.shared_commit_group(path) is None


def test_after_a_death_in_a_sync_the_log_is_written_once_more(
    join: Join, start: Start, path: Path
) -> None:
    """It is not known what the disk has of it, and nobody is left who could be told."""

    def begins_anew() -> tuple[Actor, int]:
        fresh = start("standard")
        assert fresh.does("import oxlite") == "done"
        meets(fresh, errno.EIO, number=1 << 40)
        assert fresh.does(_one_line(_OPEN.format(more=""))) == "done"
        fresh.tell("say(str(injector.count('write')))")
        count = int(fresh.answer())
        assert fresh.answer() == "done"
        return fresh, count

    first = join()
    writes(first, "first")
    assert first.answer() == "done"
    first.kill()
    second, without = begins_anew()
    writes(second, "second")
    assert second.answer() == "done"
    meets(second, KILL)
    writes(second, "third")
    until(lambda: second.process.poll() is not None)
    last, count = begins_anew()
    # The log is so short that it is written at once.
    assert count == without + 1
    writes(last, "last")
    assert last.answer() == "done"
    assert rows(path) == {"first", "second", "third", "last"}


def test_the_end_of_a_process_leaves_the_others_alone(join: Join, path: Path) -> None:
    staying = join()
    for number in range(3):
        leaving = join()
        writes(leaving, str(number))
        assert leaving.answer() == "done"
        leaving.tell("os._exit(0)" if number % 2 else "connection.close(); os._exit(0)")
        leaving.process.wait(timeout=40)
        writes(staying, f"staying {number}")
        assert staying.answer() == "done"
    assert len(rows(path)) == 6


def test_a_crowd_that_is_killed_keeps_what_was_answered(join: Join, path: Path) -> None:
    """Whatever was answered is there; nobody waits for those who are gone."""
    actors = [join() for _ in range(6)]
    loop = "[(execute(f'INSERT INTO t VALUES ({n})'), os.write(2, b'')) for n in range(%d, %d)]"
    for number, actor in enumerate(actors):
        actor.tell(loop % (number * 1000, number * 1000 + 200))
    for victim in actors[:3]:
        until(lambda: Path(f"{path}-wal").stat().st_size > 0)
        victim.kill()
    assert [actor.answer() for actor in actors[3:]] == ["done"] * 3
    found = rows(path)
    assert found >= {n for number in range(3, 6) for n in range(number * 1000, number * 1000 + 200)}
