"""Readers in other processes that overlap without a gap, and one that stays: what the log comes to.

Who reads is told to begin and to end, so that there is always one with a snapshot.
"""

import itertools
import time
from pathlib import Path

import pytest
from tests.process.actors import DEADLINE, Actor, Start
from tests.wait import until

FRAME = 4096 + 24
LIMIT = 2 << 20

_WRITER = f"""
import logging
# The database stays small, so that a read is short.
REPLACE = "REPLACE INTO t (rowid, x) VALUES (abs(random()) % 100, zeroblob(3000))"
told = []
class Keep(logging.Handler):
    def emit(self, record):
        told.append(record.getMessage())
logging.getLogger("oxlite").addHandler(Keep())

def open_to_write(**options):
    connect(pragmas={{"journal_size_limit": {LIMIT}}}, **options)
    global write
    def write():
        connection.execute(REPLACE)

def open_for_threads():
    global connection, write
    connection = oxlite.Database(
        sys.argv[1], timeout=30, pragmas={{"journal_size_limit": {LIMIT}}})
    def write():
        connection.execute(REPLACE)

def statistics():
    if isinstance(connection, oxlite.Database):
        found = connection.stats()
        return found.wal_frames, found.checkpoint_waits
    found = connection.wal_statistics()
    return found["frames"], found["checkpoint_waits"]

def write_until_it_is_begun_anew():
    '''Beyond its limit; what it then holds is told.'''
    frames = 0
    while True:
        write()
        before, (frames, waits) = frames, statistics()
        if frames < before and before * {FRAME} > {LIMIT}:
            return say(f"begun anew with {{waits}} waits")

def write_until_told():
    while not told:
        write()
    say(repr((statistics()[1], told[0])))
"""

_READER = """
def open_to_read(how):
    global connection
    if how == "the standard library":
        connection = standard.connect(sys.argv[1], isolation_level=None)
    elif how == "the standard library, read-only":
        connection = standard.connect(f"file:{sys.argv[1]}?mode=ro", uri=True, isolation_level=None)
    elif how == "read-only":
        import oxlite
        connection = oxlite.connect(f"file:{sys.argv[1]}?mode=ro", uri=True, isolation_level=None)
    else:
        import oxlite
        connection = oxlite.connect(sys.argv[1], isolation_level=None)

def begin():
    execute("BEGIN", "SELECT 1 FROM t LIMIT 1")

def end():
    execute("COMMIT")
"""

READERS = ["ours", "read-only", "the standard library", "the standard library, read-only"]
WRITERS = {
    "a connection": "open_to_write()",
    "shared commits": 'open_to_write(durable_commit="shared")',
    "a database": "open_for_threads()",
    "SQLite's own waits": 'open_to_write(busy="backoff")',
}


def writer(start: Start, how: str) -> Actor:
    """A process that will write."""
    actor = start("user")
    assert actor.does(f"exec({_WRITER!r}, globals())") == "done"
    assert actor.does(WRITERS[how]) == "done"
    assert actor.does("write()") == "done"
    return actor


def reader(start: Start, how: str) -> Actor:
    """A process that has a snapshot."""
    actor = start("standard")
    assert actor.does(f"exec({_READER!r}, globals())") == "done"
    assert actor.does(f"open_to_read({how!r})") == "done"
    assert actor.does("begin()") == "done"
    return actor


@pytest.mark.parametrize(
    ("write", "read"),
    [*[("a connection", read) for read in READERS[1:]], *[(write, "ours") for write in WRITERS]],
)
def test_the_log_is_begun_anew_beside_readers_with_no_gap_between_them(
    start: Start, path: Path, write: str, read: str
) -> None:
    writers = [writer(start, write) for _ in range(2)]
    readers = [reader(start, read) for _ in range(2)]
    for actor in writers:
        actor.tell("write_until_it_is_begun_anew()")
    is_over = False
    ends = time.monotonic() + DEADLINE
    for number in itertools.count():
        # Neither goes before it has been there for longer than the end of a checkpoint waits.
        time.sleep(0.01)
        assert readers[number % 2].does("end()") == "done"
        assert readers[number % 2].does("begin()") == "done"
        is_over = is_over or any(actor.has_answered() for actor in writers)
        if is_over:
            break
        assert time.monotonic() < ends
    told = [actor.answer() for actor in writers if actor.has_answered()]
    assert any(word.startswith("begun anew with ") for word in told)


@pytest.mark.parametrize("read", READERS)
def test_nobody_is_kept_from_writing_for_one_who_stays(start: Start, path: Path, read: str) -> None:
    staying = reader(start, read)
    writers = [writer(start, "a connection") for _ in range(3)]
    for actor in writers:
        actor.tell("write_until_told()")
    for actor in writers:
        waits, told = eval(actor.answer())
        assert waits == 0
        assert "cannot be begun anew while it is read" in told
        assert actor.answer() == "done"
    assert staying.does("end()") == "done"
    # Who writes next makes it short.
    writers[0].tell("write_until_it_is_begun_anew()")
    assert writers[0].answer().startswith("begun anew")
    until(lambda: Path(f"{path}-wal").stat().st_size <= LIMIT + 1000 * FRAME)
