"""A start that must write the log once more: after a sync that failed, or has an unknown end.

Until that has succeeded nothing of the log goes into the database, whoever closes it and however
the start fails; and the next start finds all as this one did.
"""

import errno
import hashlib
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.crash.trouble import KILL
from tests.faults.injector import SUPPORTED, build
from tests.faults.kinds import SHORT
from tests.pages import has_unknown_end, is_poisoned
from tests.process.actors import STOP, Actor, Start, is_stopped
from tests.wait import until

import oxlite

pytestmark = pytest.mark.skipif(not SUPPORTED, reason="calls are met on x86-64 Linux only")

KIB, MIB = 1 << 10, 1 << 20
LONGEST_WRITE_BYTES = (1 << 17) - 1
"""SQLite's unix VFS takes the length of a write modulo 131,072."""
RENEWING_SYNC = 3
"""After that of the log on joining, with which SQLite syncs its folder as well."""
NEVER = 1 << 40

_ARM = """
from tests.faults.injector import Injector
if "injector" not in globals(): injector = Injector()
def begin(call, number, is_persistent, effect, pragmas={}, timeout=5):
    '''Opens the database while a call fails; what it raised, how many failed, and were made.'''
    global connection
    injector.arm(call, number, is_persistent, effect)
    try:
        connection = oxlite.connect(sys.argv[1], isolation_level=None, timeout=timeout,
            durable_commit="shared", pragmas=pragmas)
        raised = ""
    except oxlite.sqlite3.DatabaseError as error:
        raised = f"{getattr(error, 'sqlite_errorname', '')}: {error}"
    finally:
        counts = {call: injector.count(call) for call in ("read", "write", "sync", "open", "stat")}
    say(repr((raised, injector.disarm(), counts)))
"""


class Begun(NamedTuple):
    """What became of a start."""

    raised: str
    struck: int
    counts: dict[str, int]
    """The calls of each kind."""


@pytest.fixture(scope="module", autouse=True)
def _library() -> None:
    build()


def newcomer(start: Start) -> Actor:
    """A process that may open the database."""
    actor = start("standard")
    assert actor.does("import oxlite") == "done"
    assert actor.does(f"exec({_ARM!r}, globals())") == "done"
    return actor


def begins(
    actor: Actor,
    call: str = "write",
    number: int = NEVER,
    is_persistent: bool = False,
    effect: int = errno.EIO,
    more: str = "",
) -> Begun:
    """Has it open the database, while a call fails."""
    actor.tell(f"begin({call!r}, {number}, {is_persistent}, {effect}{more})")
    told = Begun(*eval(actor.answer()))
    assert actor.answer() == "done"
    return told


def is_killed_at(actor: Actor, call: str, number: int) -> None:
    """Has it killed while it opens the database, where that call would be made."""
    actor.tell(f"begin({call!r}, {number}, False, {KILL})")
    until(lambda: actor.process.poll() is not None)


def leave_a_log(start: Start, path: Path, size: int, effect: int) -> None:
    """Leaves a log of that size whose last sync has failed, or has met its leader's death."""
    writer = newcomer(start)
    assert not begins(writer, more=", dict(wal_autocheckpoint=0)").raised
    assert writer.does("execute(\"INSERT INTO t VALUES ('begun')\")") == "done"
    fill = f"execute('INSERT INTO t VALUES (randomblob({min(size // 4, 8 * MIB)}))')"
    fill = f"while os.stat(sys.argv[1] + '-wal').st_size < {size}: {fill}"
    assert writer.does(fill) == "done"
    assert writer.does(f"injector.arm('sync', 1, False, {effect})") == "done"
    writer.writes("INSERT INTO t VALUES ('last')")
    if effect == KILL:
        until(lambda: writer.process.poll() is not None)
    else:
        assert writer.answer().startswith("CommitOutcomeUnknown")
        assert writer.does("connection.close()") == "done"
    assert log_of(path).stat().st_size >= size
    assert needs_renewal(path)


def log_of(path: Path) -> Path:
    return Path(f"{path}-wal")


def needs_renewal(path: Path) -> bool:
    """Whether the page still says so; it is looked at, and not locked."""
    return is_poisoned(path) or has_unknown_end(path)


def files_of(path: Path) -> tuple[str, str]:
    """What the database and its log hold."""

    def digest(name: Path) -> str:
        with name.open("rb") as file:
            return hashlib.file_digest(file, "blake2b").hexdigest()

    return digest(path), digest(log_of(path))


def is_whole(path: Path) -> bool:
    with closing(oxlite.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        found = connection.execute("SELECT x FROM t WHERE typeof(x) = 'text' ORDER BY rowid")
        texts = [x for (x,) in found]
        return texts == ["begun", "last"] * (len(texts) // 2) != []


def nobody(start: Start) -> None:
    """It is alone."""


def one_of_ours(start: Start) -> None:
    """Somebody has the file open and does nothing."""
    assert start("oxlite").does("execute('SELECT x FROM t')") == "done"


def the_standard_library(start: Start) -> None:
    """The same, with another SQLite."""
    idle = start("standard")
    assert idle.does("connection = standard.connect(sys.argv[1])") == "done"
    assert idle.does("execute('SELECT count(*) FROM t')") == "done"


BESIDE = [nobody, one_of_ours, the_standard_library]


@pytest.fixture(params=[errno.EIO, KILL], ids=["its sync failed", "its leader was killed"])
def end(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


@pytest.fixture(params=BESIDE, ids=lambda who: who.__name__.replace("_", " "))
def beside(request: pytest.FixtureRequest) -> Callable[[Start], None]:
    who: Callable[[Start], None] = request.param
    return who


@pytest.mark.parametrize(
    "size", [100 * KIB, 128 * KIB, 260 * KIB, 3 * MIB], ids=lambda size: f"{size // KIB} KiB"
)
def test_a_log_of_any_length_is_written_once_more(
    start: Start, path: Path, size: int, end: int, beside: Callable[[Start], None]
) -> None:
    beside(start)
    leave_a_log(start, path, size, end)
    size = log_of(path).stat().st_size
    fresh = newcomer(start)
    begun = begins(fresh)
    assert not begun.raised
    assert begun.counts["write"] >= size / LONGEST_WRITE_BYTES
    assert not needs_renewal(path)
    assert log_of(path).stat().st_size == 0
    assert fresh.does("execute('INSERT INTO t VALUES (1)')") == "done"
    assert is_whole(path)


def test_a_log_of_a_hundred_mebibytes_is_written_once_more(start: Start, path: Path) -> None:
    leave_a_log(start, path, 100 * MIB, KILL)
    before = files_of(path)
    fresh = newcomer(start)
    for call, number in (("write", 900), ("sync", RENEWING_SYNC)):
        begun = begins(fresh, call, number, False, errno.EIO)
        assert begun.struck == 1
        assert "written once more" in begun.raised
        assert files_of(path) == before
        assert needs_renewal(path)
    begun = begins(fresh)
    assert not begun.raised
    assert begun.counts["write"] >= 100 * MIB / LONGEST_WRITE_BYTES
    assert log_of(path).stat().st_size == 0
    assert is_whole(path)


SIZE = 400 * KIB
FAILING = [
    ("read", errno.EIO, False),
    ("read", errno.ESTALE, True),
    ("write", errno.EIO, False),
    ("write", errno.EIO, True),
    ("write", errno.ENOSPC, False),
    ("write", errno.ENOSPC, True),
    ("sync", errno.EIO, False),
    ("sync", errno.EIO, True),
    # The page of the group is there, and cannot be looked at: nobody goes on by himself.
    ("open", errno.EMFILE, False),
    ("open", errno.EACCES, True),
    ("stat", errno.EIO, False),
]
# Of calls of the status there are many that change nothing.
FAILING_ENDS = [
    (*fault, end)
    for fault in FAILING
    for end in (errno.EIO, KILL)
    if (fault[0], end) != ("stat", KILL)
]
FEWEST_IN_RENEWAL = {"read": SIZE // LONGEST_WRITE_BYTES, "write": SIZE // LONGEST_WRITE_BYTES}
FEWEST_IN_RENEWAL |= {"sync": 1, "open": 0, "stat": 0}
BESIDE_OTHERS = [
    ("write", 1, errno.ENOSPC),
    ("write", 2, errno.EIO),
    ("sync", 1, errno.EIO),
    ("sync", RENEWING_SYNC, errno.EIO),
]


@pytest.mark.parametrize(("call", "effect", "is_persistent", "end"), FAILING_ENDS)
def test_a_start_that_fails_leaves_all_as_it_was(
    start: Start, path: Path, call: str, effect: int, is_persistent: bool, end: int
) -> None:
    """At each step: what is on the way to the renewal and in it, and what comes after it."""
    leave_a_log(start, path, SIZE, end)
    before = files_of(path)
    begun = begins(newcomer(start), "sync", RENEWING_SYNC, False, errno.EIO)
    assert "written once more" in begun.raised
    assert files_of(path) == before
    before_its_end = begun.counts[call]
    fresh = newcomer(start)
    refused = not_renewed = 0
    for number in range(1, 10_000):
        before = files_of(path)
        begun = begins(fresh, call, number, is_persistent, effect)
        if not begun.struck:
            break
        if begun.raised:
            assert needs_renewal(path)
            assert number > before_its_end or files_of(path) == before
            refused += 1
            not_renewed += "written once more" in begun.raised
            continue
        if needs_renewal(path):
            # It could be opened for reading alone, and so it is.
            assert (call, files_of(path)) == ("open", before)
            assert "readonly" in fresh.does("execute('INSERT INTO t VALUES (1)')")
            assert fresh.does("connection.close()") == "done"
            assert files_of(path) == before
            continue
        # SQLite does without, as with the folder's sync. So there must be another log.
        assert fresh.does("connection.close()") == "done"
        assert is_whole(path)
        leave_a_log(start, path, SIZE, end)
    assert refused > not_renewed >= FEWEST_IN_RENEWAL[call]
    assert not begun.raised
    assert not needs_renewal(path)
    assert begun.counts["write"] >= SIZE / LONGEST_WRITE_BYTES
    assert fresh.does("execute('INSERT INTO t VALUES (1)')") == "done"
    assert fresh.does("connection.close()") == "done"
    assert is_whole(path)


@pytest.mark.parametrize(
    "beside", [one_of_ours, the_standard_library], ids=lambda who: who.__name__
)
def test_beside_somebody_a_start_that_fails_leaves_all_as_it_was_too(
    start: Start, path: Path, end: int, beside: Callable[[Start], None]
) -> None:
    beside(start)
    leave_a_log(start, path, SIZE, end)
    before = files_of(path)
    for call, number, effect in BESIDE_OTHERS:
        fresh = newcomer(start)
        begun = begins(fresh, call, number, True, effect)
        assert begun.struck
        assert begun.raised
        fresh.end()
        assert files_of(path) == before
        assert needs_renewal(path)
    begun = begins(newcomer(start))
    assert not begun.raised
    assert begun.counts["write"] >= SIZE / LONGEST_WRITE_BYTES
    assert is_whole(path)


@pytest.mark.parametrize("call", ["write", "sync"])
def test_a_start_that_is_killed_leaves_all_as_it_was(
    start: Start, path: Path, end: int, call: str
) -> None:
    leave_a_log(start, path, SIZE, end)
    before = files_of(path)
    calls = begins(newcomer(start), "sync", RENEWING_SYNC, False, errno.EIO).counts[call]
    for number in range(1, calls + 1):
        is_killed_at(newcomer(start), call, number)
        assert needs_renewal(path)
        assert files_of(path) == before
    begun = begins(newcomer(start))
    assert not begun.raised
    assert begun.counts["write"] >= SIZE / LONGEST_WRITE_BYTES
    assert is_whole(path)


@pytest.mark.parametrize("call", ["read", "write"])
@pytest.mark.parametrize("number", [1, 9, 12])
def test_an_interrupted_call_is_made_again(
    start: Start, path: Path, call: str, number: int
) -> None:
    leave_a_log(start, path, SIZE, errno.EIO)
    begun = begins(newcomer(start), call, number, False, errno.EINTR)
    assert (begun.raised, begun.struck) == ("", 1)
    assert not needs_renewal(path)
    assert is_whole(path)


@pytest.mark.parametrize("call", ["read", "write"])
def test_whatever_is_transferred_in_halves_is_transferred(
    start: Start, path: Path, call: str
) -> None:
    leave_a_log(start, path, SIZE, errno.EIO)
    begun = begins(newcomer(start), call, 1, True, SHORT)
    assert not begun.raised
    assert begun.struck == begun.counts[call] > 100
    assert is_whole(path)


def test_whoever_fails_before_he_joins_makes_no_checkpoint(start: Start, path: Path) -> None:
    """The connection that was asked for closes as the last one, when something else is wrong."""
    leave_a_log(start, path, SIZE, errno.EIO)
    before = files_of(path)
    begun = begins(newcomer(start), more=", dict(auto_vacuum='FULL')")
    assert "auto_vacuum" in begun.raised
    assert files_of(path) == before
    assert needs_renewal(path)
    assert not begins(newcomer(start)).raised
    assert is_whole(path)


def test_a_start_that_is_killed_in_its_first_sync_has_an_unknown_end(
    start: Start, path: Path
) -> None:
    """Where nothing was unknown before: what it may have been told, it has told nobody."""
    writer = newcomer(start)
    assert not begins(writer, more=", dict(wal_autocheckpoint=0)").raised
    assert writer.does("execute(\"INSERT INTO t VALUES ('begun'), ('last')\")") == "done"
    writer.kill()
    assert not needs_renewal(path)
    for number in (1, 2):
        is_killed_at(newcomer(start), "sync", number)
        assert needs_renewal(path)
    assert not begins(newcomer(start)).raised
    assert not needs_renewal(path)
    assert is_whole(path)


class Left(NamedTuple):
    """Members of a group, one of whose leaders was killed in a sync for all."""

    older: Actor
    younger: Actor


@pytest.fixture
def left(start: Start) -> Left:
    """What it has committed, nobody has synced; and who was there before it, and who came after."""
    older, leader = newcomer(start), newcomer(start)
    assert not begins(older).raised
    assert not begins(leader).raised
    assert leader.does("execute(\"INSERT INTO t VALUES ('begun')\")") == "done"
    assert leader.does(f"injector.arm('sync', 1, False, {KILL})") == "done"
    leader.writes("INSERT INTO t VALUES ('last')")
    until(lambda: leader.process.poll() is not None)
    younger = newcomer(start)
    assert not begins(younger).raised
    return Left(older, younger)


@pytest.mark.parametrize(
    "work", ["connection.checkpoint('passive')", "execute('PRAGMA wal_checkpoint')"]
)
def test_a_log_that_nobody_vouches_for_is_not_brought_into_the_database(
    left: Left, path: Path, work: str
) -> None:
    before = files_of(path)
    left.older.kill()
    assert left.younger.does(work).startswith("SyncFailedError: a process that synced")
    assert files_of(path) == before
    assert left.younger.does("connection.close()") == "done"
    assert files_of(path) == before
    assert needs_renewal(path)


def test_the_last_one_leaves_a_log_that_he_cannot_vouch_for(left: Left, path: Path) -> None:
    left.older.kill()
    assert left.younger.does("connection.close()") == "done"
    assert log_of(path).stat().st_size > 0
    assert needs_renewal(path)


def test_the_last_one_tells_of_a_sync_that_fails_when_he_closes(left: Left, path: Path) -> None:
    assert left.younger.does("connection.close()") == "done"
    assert left.older.does(f"injector.arm('sync', 1, False, {errno.EIO})") == "done"
    assert left.older.does("connection.close()") == "done"
    assert log_of(path).stat().st_size > 0
    assert needs_renewal(path)


def test_the_last_one_brings_a_log_that_is_on_the_disk_into_the_database(
    left: Left, start: Start, path: Path
) -> None:
    assert left.younger.does("connection.close()") == "done"
    assert left.older.does("connection.close()") == "done"
    assert not log_of(path).exists()
    assert oxlite.shared_commit_group(path) is None
    assert not begins(newcomer(start)).raised
    assert is_whole(path)


def test_who_waits_in_vain_for_a_renewal_does_not_go_on_alone(start: Start, path: Path) -> None:
    leave_a_log(start, path, SIZE, errno.EIO)
    first = newcomer(start)
    first.tell(f"begin('sync', {RENEWING_SYNC}, False, {STOP})")
    until(lambda: is_stopped(first))
    begun = begins(newcomer(start), more=", {}, 0.2")
    assert begun.raised.startswith("SQLITE_BUSY: database is locked: after a sync")
    first.signal(signal.SIGCONT)
    assert not Begun(*eval(first.answer())).raised
    assert first.answer() == "done"
    assert is_whole(path)


def test_a_program_that_writes_meanwhile_is_in_the_way_of_nobody_later(
    start: Start, path: Path, end: int
) -> None:
    """Who begins waits for it in vain, is told so, and the next one begins anew."""
    leave_a_log(start, path, SIZE, end)
    with closing(sqlite3.connect(path, isolation_level=None)) as outsider:
        outsider.execute("BEGIN IMMEDIATE")
        begun = begins(newcomer(start), more=", {}, 0.2")
        assert begun.raised.startswith("SQLITE_BUSY: database is locked: after a sync")
        with pytest.raises(oxlite.LockedError, match="another program writes the database"):
            oxlite.connect(path, durable_commit="shared", timeout=0.2)
        assert needs_renewal(path)
        outsider.execute("ROLLBACK")
        fresh = newcomer(start)
        assert not begins(fresh).raised
        assert fresh.does("execute('INSERT INTO t VALUES (1)')") == "done"
    assert not needs_renewal(path)
    assert is_whole(path)
