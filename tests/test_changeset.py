"""Sessions, and the changesets they record: applied, read, inverted, concatenated.

Whatever may hang or abort the interpreter runs in a process of its own.
"""

import copy
import gc
import itertools
import pickle
import random
import re
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import oxlite
from oxlite import changeset, sqlite3
from oxlite.changeset import ABSENT, Change, Conflict

SCHEMA = """
    CREATE TABLE t(id INTEGER PRIMARY KEY, a, b UNIQUE);
    CREATE TABLE w(x TEXT, y, z, PRIMARY KEY(z, x)) WITHOUT ROWID;
"""
ROWS = "INSERT INTO t VALUES (1, 'one', 10), (2, 'two', 20)"


class Database(sqlite3.Connection):
    """A connection that can be part of any cycle."""


def make(script: str = "", **options: object) -> Database:
    """A database in memory with the tables ``t`` and ``w``."""
    connection = Database(":memory:", **{"isolation_level": None, **options})
    connection.executescript(SCHEMA + script)
    return connection


def recorded(connection: sqlite3.Connection, script: str) -> bytes:
    """The changeset of what a script does."""
    with connection.create_session() as session:
        connection.executescript(script)
        return session.changeset()


def content(connection: sqlite3.Connection, table: str = "t") -> list[Any]:
    return connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()


def only(changes: Iterator[Change]) -> Change:
    (change,) = changes
    return change


@pytest.fixture
def source() -> Database:
    return make(ROWS)


@pytest.fixture
def target() -> Database:
    return make(ROWS)


CHANGES = """
    INSERT INTO t VALUES (3, 3.5, NULL), (4, x'00ff', 40);
    UPDATE t SET a = 'uno' WHERE id = 1;
    DELETE FROM t WHERE id = 2;
    INSERT INTO w VALUES ('k', 1, 2);
"""


def test_changes_reach_another_database_and_can_be_undone(
    source: Database, target: Database
) -> None:
    changes = recorded(source, CHANGES)
    assert type(changes) is bytes
    target.apply_changeset(changes)
    assert content(target) == content(source)
    assert content(target, "w") == content(source, "w") == [("k", 1, 2)]
    target.apply_changeset(changeset.invert(changes))
    assert content(target) == [(1, "one", 10), (2, "two", 20)]
    assert content(target, "w") == []


def test_a_patchset_does_the_same_without_old_values(source: Database, target: Database) -> None:
    with source.create_session() as session:
        source.executescript(CHANGES)
        patchset, changes = session.patchset(), session.changeset()
    assert len(patchset) < len(changes)
    target.execute("UPDATE t SET a = 'other'")  # no conflict: the patchset does not know
    target.apply_changeset(patchset)
    assert content(target) == content(source)
    with pytest.raises(sqlite3.InterfaceError, match="lacks the old values"):
        changeset.invert(patchset)
    with pytest.raises(sqlite3.InterfaceError, match="two of a kind"):
        changeset.concat(patchset, changes)


def test_two_changesets_become_one(source: Database, target: Database) -> None:
    first = recorded(source, "INSERT INTO t VALUES (3, 3, 3); UPDATE t SET a = 'x' WHERE id = 1")
    second = recorded(source, "DELETE FROM t WHERE id = 3; UPDATE t SET a = 'y' WHERE id = 1")
    both = changeset.concat(first, second)
    assert only(changeset.read(both)).new == (ABSENT, "y", ABSENT)
    target.apply_changeset(both)
    assert content(target) == content(source)
    assert changeset.concat(b"", b"") == b""


# Reading


def test_what_a_change_says(source: Database) -> None:
    with source.create_session() as session:
        source.execute("INSERT INTO t VALUES (3, 2.5, NULL)")
        source.execute("UPDATE t SET a = NULL WHERE id = 1")
        source.execute("DELETE FROM t WHERE id = 2")
        changes = {change.key: change for change in changeset.read(session.changeset())}
        patches = {change.key: change for change in changeset.read(session.patchset())}
    nothing = (ABSENT, ABSENT, ABSENT)
    told = [
        (change.operation, change.table, change.is_indirect, change.primary_key)
        for _, change in sorted(changes.items())
    ]
    in_key = (True, False, False)
    assert told == [(word, "t", False, in_key) for word in ("update", "delete", "insert")]
    assert (changes[1,].old, changes[1,].new) == ((1, "one", ABSENT), (ABSENT, None, ABSENT))
    assert (changes[2,].old, changes[2,].new) == ((2, "two", 20), nothing)
    assert (changes[3,].old, changes[3,].new) == (nothing, (3, 2.5, None))
    assert (patches[1,].old, patches[1,].new) == ((1, ABSENT, ABSENT), (ABSENT, None, ABSENT))
    assert (patches[2,].old, patches[2,].new) == ((2, ABSENT, ABSENT), nothing)


def test_a_key_of_several_columns(source: Database) -> None:
    change = only(changeset.read(recorded(source, "INSERT INTO w VALUES ('x', 'y', 'z')")))
    assert (change.primary_key, change.key) == ((True, False, True), ("x", "z"))


def test_changes_by_triggers_are_indirect(source: Database) -> None:
    source.execute(
        "CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO w VALUES (new.id, 2, 3); END"
    )
    with source.create_session() as session:
        source.execute("INSERT INTO t VALUES (5, 5, 5)")
        assert session.indirect is False
        session.indirect = True
        assert session.indirect is True
        source.execute("INSERT INTO t VALUES (6, 6, 6)")
        changes = list(changeset.read(session.changeset()))
    marks = {(change.table, change.key): change.is_indirect for change in changes}
    assert marks["t", (5,)] is False
    assert marks["t", (6,)] is True
    assert all(mark for (table, _), mark in marks.items() if table == "w")


def test_how_a_change_looks(source: Database) -> None:
    script = "UPDATE t SET a = NULL WHERE id = 1; DELETE FROM t WHERE id = 2"
    assert sorted(map(repr, changeset.read(recorded(source, script)))) == [
        "<Change delete in 't': (2, 'two', 20)>",
        "<Change update in 't': (1, 'one', ABSENT) -> (ABSENT, None, ABSENT)>",
    ]
    with source.create_session() as session:
        session.indirect = True
        source.execute("INSERT INTO t VALUES (7, x'00', 1.5)")
        shown = repr(only(changeset.read(session.changeset())))
    assert shown == "<Change insert in 't': (7, b'\\x00', 1.5), indirect>"


def test_changes_are_compared_by_what_they_say(source: Database) -> None:
    changes = recorded(source, CHANGES)
    first, second = list(changeset.read(changes)), list(changeset.read(changes))
    assert first == second
    assert len(set(first + second)) == len(first)
    assert first[0] != first[1]
    assert first[0] != "a change"


def test_changes_can_be_matched(source: Database) -> None:
    match only(changeset.read(recorded(source, "UPDATE t SET a = 5 WHERE id = 1"))):
        case Change("update", "t", old=(key, _, _), new=(_, value, _)):
            assert (key, value) == (1, 5)
        case other:
            pytest.fail(repr(other))


def test_what_is_absent_is_one_object_and_not_null() -> None:
    assert repr(ABSENT) == "ABSENT"
    assert pickle.loads(pickle.dumps(ABSENT)) is ABSENT
    assert copy.deepcopy(ABSENT) is ABSENT
    assert isinstance(ABSENT, changeset.Absent)
    with pytest.raises(TypeError):
        changeset.Absent()  # type: ignore[call-arg, unused-ignore]
    with pytest.raises(sqlite3.ProgrammingError, match="Absent' is not supported"):
        make().execute("SELECT ?", (ABSENT,))


def test_text_that_is_not_utf8_is_read_and_applied_without_loss(target: Database) -> None:
    source = make(ROWS)
    changes = recorded(
        source,
        "UPDATE t SET a = CAST(x'ff41' AS TEXT) WHERE id = 1; UPDATE t SET a = 'a\U0001f980' "
        "WHERE id = 2",
    )
    new = {change.key: change.new[1] for change in changeset.read(changes)}
    assert new == {(1,): "\udcffA", (2,): "a\U0001f980"}
    target.apply_changeset(changes)
    assert target.execute("SELECT hex(a) FROM t WHERE id = 1").fetchone() == ("FF41",)
    seen: list[Any] = []
    target.execute("UPDATE t SET a = CAST(x'fe' AS TEXT)")
    target.apply_changeset(changes, on_conflict=lambda conflict: seen.append(conflict) or "omit")
    assert {conflict.row[1] for conflict in seen} == {"\udcfe"}


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_bytes_will_do(source: Database, target: Database, kind: object) -> None:
    changes = kind(recorded(source, CHANGES))
    assert len(list(changeset.read(changes))) == 5
    assert changeset.invert(changeset.invert(changes)) == bytes(changes)
    target.apply_changeset(changes)
    assert content(target) == content(source)


@pytest.mark.parametrize("wrong", ["text", None, 1, [b""]])
def test_what_is_no_bytes_is_refused(target: Database, wrong: object) -> None:
    for call in (
        changeset.read,
        changeset.invert,
        lambda given: changeset.concat(b"", given),
        target.apply_changeset,
    ):
        with pytest.raises(TypeError, match="bytes-like"):
            call(wrong)


def test_reading_is_lazy_and_needs_no_connection(source: Database) -> None:
    changes = recorded(source, CHANGES)
    source.close()
    reading = changeset.read(changes[:-1])
    assert iter(reading) is reading
    seen = [next(reading) for _ in range(4)]
    assert [change.table for change in seen] == ["t"] * 4
    with pytest.raises(sqlite3.DatabaseError):
        list(reading)
    assert list(reading) == []
    assert list(changeset.read(b"")) == []


def test_a_reading_is_shared_by_threads() -> None:
    source = make()
    count = 3000
    rows = f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})"
    reading = changeset.read(recorded(source, f"INSERT INTO t {rows} SELECT i, i, i FROM n"))
    seen: list[Any] = []
    threads = [
        threading.Thread(target=lambda: seen.extend(change.key for change in reading))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == [(key,) for key in range(1, count + 1)]


# Hostile bytes


def is_corrupt(error: sqlite3.DatabaseError) -> bool:
    return error.sqlite_errorcode == sqlite3.SQLITE_CORRUPT and "malformed" in str(error)


@pytest.mark.parametrize(
    "wrong", [b"x", b"T", b"T\0", b"T\x01\0t\0", b"T\x01\x01t", b"\x12\0", b"PT", b"T" * 100]
)
def test_malformed_bytes(target: Database, wrong: bytes) -> None:
    asked: list[str] = []
    for call in (
        lambda: list(changeset.read(wrong)),
        lambda: changeset.invert(wrong),
        lambda: changeset.concat(b"", wrong),
        lambda: target.apply_changeset(wrong, filter=asked.append, on_conflict="omit"),
    ):
        with pytest.raises(sqlite3.DatabaseError) as caught:
            call()
        assert type(caught.value) is sqlite3.DatabaseError
        assert is_corrupt(caught.value)
        assert caught.value.sqlite_errorname == "SQLITE_CORRUPT"
    assert asked == []
    assert not target.in_transaction


@pytest.mark.parametrize("seed", range(4))
def test_hostile_bytes_do_no_harm(seed: int) -> None:
    chance = random.Random(seed)
    source = make(ROWS)
    with source.create_session() as session:
        source.executescript(CHANGES)
        seeds = [session.changeset(), session.patchset()]
    target = make(ROWS, isolation_level="")
    applied = 0
    for _ in range(1500):
        hostile = bytearray(chance.choice(seeds))
        for _ in range(chance.choice((1, 1, 2, 5))):
            at = chance.randrange(len(hostile))
            match chance.randrange(4):
                case 0:
                    hostile[at] = chance.randrange(256)
                case 1:
                    hostile[at] ^= 1 << chance.randrange(8)
                case 2:
                    del hostile[at : at + chance.randrange(1, 5)]
                    hostile += b"\0"
                case 3:
                    hostile[at:at] = hostile[: chance.randrange(8)]
        try:
            for change in changeset.read(hostile):
                assert repr(change)
                assert isinstance(hash(change), int)
                assert len(change.key) == sum(change.primary_key)
            changeset.concat(hostile, hostile)
        except sqlite3.Error:
            pass
        try:
            target.apply_changeset(hostile, on_conflict=lambda conflict: repr(conflict) and "omit")
            applied += 1
        except sqlite3.Error:
            assert not target.in_transaction, bytes(hostile)
        target.rollback()
    assert 0 < applied < 1500, f"seed {seed}"
    assert target.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert content(target) == [(1, "one", 10), (2, "two", 20)]


# Conflicts

DATA = (ROWS, "UPDATE t SET a = 'new', b = 99 WHERE id = 1", "UPDATE t SET a = 'theirs'")
DATA_ON_DELETE = (ROWS, "DELETE FROM t WHERE id = 1", "UPDATE t SET a = 'theirs'")
NOT_FOUND = (ROWS, "UPDATE t SET a = 'new' WHERE id = 1", "DELETE FROM t WHERE id = 1")
PRESENT = ("", "INSERT INTO t VALUES (1, 'new', 5)", "INSERT INTO t VALUES (1, 'theirs', 6)")
CONSTRAINT = ("", "INSERT INTO t VALUES (1, 'new', 5)", "INSERT INTO t VALUES (2, 'theirs', 5)")
THEIRS = [(1, "theirs", 10), (2, "theirs", 20)]

CASES: list[tuple[str, tuple[str, str, str], dict[str, list[Any] | None]]] = [
    # kind, (both, recorded, in the target), the target afterwards by action; None: an error
    ("data", DATA, {"omit": THEIRS, "replace": [(1, "new", 99), (2, "theirs", 20)], "abort": None}),
    ("data", DATA_ON_DELETE, {"omit": THEIRS, "replace": [(2, "theirs", 20)], "abort": None}),
    ("not_found", NOT_FOUND, {"omit": [(2, "two", 20)], "replace": None, "abort": None}),
    (
        "conflict",
        PRESENT,
        {"omit": [(1, "theirs", 6)], "replace": [(1, "new", 5)], "abort": None},
    ),
    ("constraint", CONSTRAINT, {"omit": [(2, "theirs", 5)], "replace": None, "abort": None}),
]
NUMBERS = {
    "omit": sqlite3.SQLITE_CHANGESET_OMIT,
    "replace": sqlite3.SQLITE_CHANGESET_REPLACE,
    "abort": sqlite3.SQLITE_CHANGESET_ABORT,
}


@pytest.mark.parametrize(
    ("kind", "scripts", "action", "expected"),
    [
        (kind, scripts, action, expected)
        for kind, scripts, outcomes in CASES
        for action, expected in outcomes.items()
    ],
)
@pytest.mark.parametrize("how", ["word", "number", "callable", "callable of a number"])
def test_each_conflict_with_each_answer(
    kind: str, scripts: tuple[str, str, str], action: object, expected: list[Any] | None, how: str
) -> None:
    both, script, theirs = scripts
    source, target = make(both), make(both)
    target.executescript(theirs)
    before = content(target)
    # Beside the change that meets a conflict one that does not.
    changes = recorded(source, f"INSERT INTO w VALUES ('too', 1, 1); {script}")
    asked: list[Conflict] = []
    answer = NUMBERS[action] if "number" in how else action
    constant = answer

    def decide(conflict: Conflict) -> object:
        asked.append(conflict)
        return answer

    on_conflict: Any = decide if "callable" in how else constant
    if expected is None:
        with pytest.raises(sqlite3.Error) as caught:
            target.apply_changeset(changes, on_conflict=on_conflict)
        if action == "abort" or how in ("word", "number"):
            assert type(caught.value) is sqlite3.OperationalError
            assert caught.value.sqlite_errorcode == sqlite3.SQLITE_ABORT
            assert "primary key (1)" in str(caught.value)
            assert "nothing has been applied" in str(caught.value)
        else:
            assert "no row to replace" in str(caught.value)
        assert content(target) == before
        assert content(target, "w") == []
    else:
        target.apply_changeset(changes, on_conflict=on_conflict)
        assert content(target) == expected
        assert content(target, "w") == [("too", 1, 1)]
    assert not target.in_transaction
    if asked:
        (conflict,) = asked
        assert (conflict.kind, conflict.violations) == (kind, None)
        assert conflict.change is not None
        assert conflict.change.key == (1,)
        assert conflict.row == (before[0] if kind in ("data", "conflict") else None)
        # It may be kept, and is still the same when all is over.
        assert repr(conflict).startswith(f"<Conflict {kind}: <Change ")


def test_without_an_answer_a_conflict_aborts(source: Database, target: Database) -> None:
    changes = recorded(source, "UPDATE t SET a = 'new'")
    target.execute("UPDATE t SET a = 'theirs' WHERE id = 2")
    with pytest.raises(sqlite3.OperationalError) as caught:
        target.apply_changeset(changes)
    assert str(caught.value) == (
        "cannot update t with the primary key (2): the row has other values than the change "
        "expects; nothing has been applied (see on_conflict)"
    )
    assert content(target) == [(1, "one", 10), (2, "theirs", 20)]


@pytest.mark.parametrize("outer", [False, True])
def test_violated_foreign_keys(outer: bool) -> None:
    schema = """
        PRAGMA foreign_keys = ON;
        CREATE TABLE parent(id INTEGER PRIMARY KEY);
        CREATE TABLE child(id INTEGER PRIMARY KEY, parent REFERENCES parent);
    """
    source, target = make(schema), make(schema)
    source.execute("INSERT INTO parent VALUES (1), (2)")
    changes = recorded(source, "INSERT INTO child VALUES (5, 1), (6, 2)")
    if outer:
        target.execute("BEGIN")
    for answer in (None, "abort", "replace"):
        with pytest.raises(
            sqlite3.IntegrityError, match=r"FOREIGN KEY.*nothing has been"
        ) as caught:
            target.apply_changeset(changes, on_conflict=answer)
        assert caught.value.sqlite_errorcode == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY
        assert content(target, "child") == []
        assert target.in_transaction is outer
    asked: list[Conflict] = []
    target.apply_changeset(changes, on_conflict=lambda conflict: asked.append(conflict) or "omit")
    target.commit()
    (conflict,) = asked
    assert (conflict.kind, conflict.change, conflict.row) == ("foreign_key", None, None)
    assert conflict.violations == 1  # SQLite counts no further
    assert repr(conflict) == "<Conflict foreign_key>"
    assert content(target, "child") == [(5, 1), (6, 2)]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (None, TypeError),
        (True, TypeError),  # 1 is SQLITE_CHANGESET_REPLACE, which nobody means by True
        (b"omit", TypeError),
        (1.0, TypeError),
        ("OMIT", ValueError),
        ("", ValueError),
        (3, ValueError),
        (-1, ValueError),
        (2**100, ValueError),
    ],
)
def test_an_answer_that_means_nothing(
    source: Database, target: Database, answer: object, error: type[Exception]
) -> None:
    changes = recorded(source, "INSERT INTO w VALUES (1, 1, 1); UPDATE t SET a = 'new'")
    target.execute("UPDATE t SET a = 'theirs' WHERE id = 2")
    with pytest.raises(error, match="'omit', 'replace' or 'abort'"):
        target.apply_changeset(changes, on_conflict=lambda conflict: answer)
    if answer is not None:
        with pytest.raises(error, match="'omit', 'replace' or 'abort'"):
            target.apply_changeset(b"", on_conflict=answer)
    assert content(target, "w") == []
    assert not target.in_transaction


class Unexpected(BaseException):
    """What nobody catches by accident."""


@pytest.mark.parametrize("isolation_level", [None, "", "IMMEDIATE"])
@pytest.mark.parametrize("raised", [KeyError("mine"), Unexpected("mine"), sqlite3.Error("mine")])
def test_an_exception_is_raised_as_itself(
    source: Database, raised: BaseException, isolation_level: str | None
) -> None:
    target = make(ROWS, isolation_level=isolation_level)
    changes = recorded(source, "INSERT INTO w VALUES (1, 1, 1); UPDATE t SET a = 'new'")
    target.execute("UPDATE t SET a = 'theirs' WHERE id = 2")
    target.commit()

    def fail(_: object) -> object:
        raise raised

    for callbacks in ({"filter": fail}, {"on_conflict": fail}):
        with pytest.raises(type(raised)) as caught:
            target.apply_changeset(changes, **callbacks)
        assert caught.value is raised
        assert not target.in_transaction
        assert content(target) == [(1, "one", 10), (2, "theirs", 20)]
        assert content(target, "w") == []


def test_the_filter_chooses_tables(source: Database, target: Database) -> None:
    changes = recorded(source, CHANGES + "; INSERT INTO t VALUES (9, 9, 9)")
    asked: list[str] = []

    def wants(table: str) -> object:
        asked.append(table)
        assert target.execute("SELECT 1").fetchone() == (1,)
        return table == "w"

    target.apply_changeset(changes, filter=wants)
    assert sorted(asked) == ["t", "w"]
    assert content(target, "w") == [("k", 1, 2)]
    assert content(target) == [(1, "one", 10), (2, "two", 20)]
    target.apply_changeset(changes, filter=lambda table: [])
    with pytest.raises(TypeError, match="callable"):
        target.apply_changeset(changes, filter="w")  # type: ignore[arg-type]


def test_the_filter_is_asked_with_the_connection_unlocked(source: Database) -> None:
    """So it may wait for a thread that uses the connection."""
    target = make(ROWS, check_same_thread=False)

    def wants(table: str) -> bool:
        counts: list[Any] = []
        thread = threading.Thread(target=lambda: counts.append(content(target)))
        thread.start()
        thread.join(30)
        return len(counts) == 1

    target.apply_changeset(recorded(source, CHANGES), filter=wants)
    assert content(target) == content(source)


# Transactions


def test_applying_begins_a_transaction_as_a_data_modification_does(source: Database) -> None:
    changes = recorded(source, CHANGES)
    target = make(ROWS, isolation_level="")
    target.apply_changeset(changes)
    assert target.in_transaction
    target.rollback()
    assert len(content(target)) == 2
    with target:
        target.apply_changeset(changes)
    assert not target.in_transaction
    assert content(target) == content(source)
    with pytest.raises(sqlite3.OperationalError, match="nothing has been applied"):
        target.apply_changeset(changes)
    assert not target.in_transaction  # the one it had begun is gone
    target.execute("DELETE FROM w")
    with pytest.raises(sqlite3.OperationalError, match="nothing has been applied"):
        target.apply_changeset(changes)
    assert target.in_transaction  # this one was there before
    assert content(target, "w") == []


@pytest.mark.parametrize("autocommit", [True, False])
def test_applying_with_autocommit(source: Database, autocommit: bool) -> None:
    target = make(isolation_level="", autocommit=autocommit)
    target.executescript(ROWS)
    target.commit()
    target.apply_changeset(recorded(source, CHANGES))
    assert target.in_transaction is not autocommit
    target.rollback()
    assert (content(target) == content(source)) is autocommit


def test_a_locked_file_is_waited_for_and_nothing_is_applied(
    source: Database, tmp_path: Path
) -> None:
    path = tmp_path / "test.db"
    other = sqlite3.connect(path, isolation_level=None)
    other.executescript(SCHEMA + ROWS)
    target = sqlite3.connect(path, timeout=0)
    other.execute("BEGIN IMMEDIATE")
    changes = recorded(source, CHANGES)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        target.apply_changeset(changes)
    assert not target.in_transaction
    other.execute("ROLLBACK")
    with target:
        target.apply_changeset(changes)
    assert content(other) == content(source)
    target.close()
    other.close()


MANY = (
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {})"
    " INSERT INTO t SELECT i, i, i FROM n"
)


@pytest.mark.parametrize("outer", [False, True])
@pytest.mark.parametrize("unread", [False, True], ids=["", "with an unread query"])
@pytest.mark.parametrize("then", ["omit", "replace", "abort", "raise"])
def test_an_interruption_leaves_nothing_applied(outer: bool, unread: bool, then: str) -> None:
    """SQLite's own ``ROLLBACK TO`` is itself interrupted while a query is unread."""
    changes = recorded(make(), MANY.format(50))
    target = make("INSERT INTO t VALUES (10, 'theirs', -10)")
    if outer:
        target.execute("BEGIN")
        target.execute("INSERT INTO t VALUES (100, 'mine', 100)")
    cursor = target.execute("VALUES (1), (2), (3)")
    if unread:
        cursor.fetchone()
    else:
        cursor.fetchall()

    def interrupt(conflict: Conflict) -> object:
        target.interrupt()
        if then == "raise":
            raise KeyError
        return then

    error = KeyError if then == "raise" else sqlite3.OperationalError
    with pytest.raises(error):
        target.apply_changeset(changes, on_conflict=interrupt)
    assert target.in_transaction is outer
    cursor.close()
    assert len(content(target)) == 1 + outer
    with pytest.raises(sqlite3.OperationalError, match="no such savepoint"):
        target.execute("RELEASE changeset_apply")
    # Later ones are not interrupted.
    target.apply_changeset(changes, on_conflict="omit")


@pytest.mark.parametrize("unread", [False, True])
def test_a_progress_handler_cannot_stop_the_undoing(unread: bool) -> None:
    changes = recorded(make(), MANY.format(50))
    target = make("INSERT INTO t VALUES (10, 'theirs', -10)")
    cursor = target.execute("VALUES (1), (2), (3)")
    if unread:
        cursor.fetchone()
    stops: list[int] = []
    target.set_progress_handler(lambda: bool(stops), 1)

    def stop(conflict: Conflict) -> object:
        stops.append(1)
        return "abort"

    with pytest.raises(sqlite3.OperationalError):
        target.apply_changeset(changes, on_conflict=stop)
    target.set_progress_handler(None, 1)
    cursor.close()
    assert content(target) == [(10, "theirs", -10)]
    assert not target.in_transaction


def test_a_statement_timeout_holds_for_an_application() -> None:
    changes = recorded(make(), MANY.format(50_000))
    target = make(statement_timeout=0.001)
    with pytest.raises(oxlite.StatementTimeout):
        target.apply_changeset(changes)
    assert not target.in_transaction
    target.statement_timeout = None
    assert content(target) == []
    target.apply_changeset(changes)


# What callbacks may do


def test_on_conflict_may_use_the_connection_but_not_close_it(
    source: Database, target: Database
) -> None:
    changes = recorded(source, "INSERT INTO t VALUES (7, 'new', 7), (8, 'new', 8)")
    target.executescript(
        "CREATE TABLE lost(id, a); INSERT INTO t VALUES (7, 'theirs', 70), (8, 'theirs', 80)"
    )
    sessions: list[oxlite.Session] = []

    def decide(conflict: Conflict) -> object:
        with pytest.raises(sqlite3.InterfaceError, match="inside a callback"):
            target.close()
        assert conflict.row is not None
        target.execute("INSERT INTO lost VALUES (?, ?)", conflict.row[:2])
        session = target.create_session()
        target.apply_changeset(b"")
        with pytest.raises(KeyError):
            target.apply_changeset(changes, on_conflict=lambda conflict: {}["x"])
        sessions.append(session)
        sessions.append(target.create_session())
        sessions.pop().close()
        del session
        if len(sessions) == 2:
            sessions.clear()
        gc.collect()
        return "replace"

    target.apply_changeset(changes, on_conflict=decide)
    assert content(target, "lost") == [(7, "theirs"), (8, "theirs")]
    assert content(target) == content(source)
    sessions.clear()
    target.set_preupdate_hook(print)  # no session is left


@pytest.mark.parametrize("end", ["ROLLBACK", "COMMIT", "DROP TABLE t"])
def test_on_conflict_that_pulls_the_rug(source: Database, target: Database, end: str) -> None:
    changes = recorded(source, "UPDATE t SET a = 'a new text of some length'")
    target.execute("UPDATE t SET a = 'theirs'")

    def decide(conflict: Conflict) -> object:
        target.execute(end)
        return "omit"

    with pytest.raises(sqlite3.OperationalError):
        target.apply_changeset(changes, on_conflict=decide)
    assert not target.in_transaction
    assert [row[1] for row in content(target)] == ["theirs", "theirs"]


def test_a_session_records_what_is_applied(source: Database, target: Database) -> None:
    changes = recorded(source, CHANGES)
    with target.create_session() as session:
        target.apply_changeset(changes)
        assert set(changeset.read(session.changeset())) == set(changeset.read(changes))


@pytest.mark.parametrize("callback", ["set_update_hook", "set_trace_callback", "set_commit_hook"])
def test_other_callbacks_cannot_use_sessions_but_close_them(
    source: Database, callback: str
) -> None:
    session = source.create_session()
    errors: list[str] = []

    def call(*_: object) -> None:
        for act in (session.changeset, session.attach, lambda: session.is_empty):
            try:
                act()
            except sqlite3.ProgrammingError as error:
                errors.append(str(error))
        session.close()

    getattr(source, callback)(call)
    source.execute("UPDATE t SET a = 'x'")
    assert "A callback of this kind cannot use the connection that calls it." in errors
    with pytest.raises(sqlite3.ProgrammingError):
        session.changeset()


def test_a_collation_called_while_a_session_reads_cannot_use_the_connection(
    source: Database,
) -> None:
    """Using the session once more would pull its tables away from under it."""
    errors: list[str] = []
    is_reading = False

    def compare(left: str, right: str) -> int:
        if is_reading:
            for use in (lambda: source.execute("SELECT 1"), lambda: session.attach("t")):
                try:
                    use()
                except sqlite3.ProgrammingError as error:
                    errors.append(str(error))
            session.close()
        return (left > right) - (left < right)

    source.create_collation("mine", compare)
    source.executescript("CREATE TABLE c(k TEXT COLLATE mine PRIMARY KEY, v) WITHOUT ROWID")
    session = source.create_session()
    source.execute("INSERT INTO c VALUES ('a', 1), ('b', 2), ('c', 3)")
    is_reading = True
    changes = session.changeset()
    is_reading = False
    assert {change.key for change in changeset.read(changes)} == {("a",), ("b",), ("c",)}
    refusal = "A callback of this kind cannot use the connection that calls it."
    assert set(errors) == {refusal}
    with pytest.raises(sqlite3.ProgrammingError, match="closed session"):
        session.changeset()


# Sessions


def test_tables_named(source: Database) -> None:
    source.execute("CREATE TABLE other(id PRIMARY KEY)")

    def tables(session: oxlite.Session) -> set[str]:
        return {change.table for change in changeset.read(session.changeset())}

    sessions = {
        "all": source.create_session(),
        "t": source.create_session(tables=["t"]),
        "some": source.create_session(tables=(name for name in ("w", "later", "plain"))),
        "none": source.create_session(tables=[]),
    }
    source.executescript(
        """
        CREATE TABLE later(id PRIMARY KEY);
        CREATE TABLE plain(a);
        INSERT INTO t VALUES (5, 5, 5); INSERT INTO w VALUES (5, 5, 5);
        INSERT INTO other VALUES (5); INSERT INTO later VALUES (5); INSERT INTO plain VALUES (5);
        """
    )
    assert {name: tables(session) for name, session in sessions.items()} == {
        "all": {"t", "w", "other", "later"},
        "t": {"t"},
        "some": {"w", "later"},
        "none": set(),
    }
    sessions["none"].attach("other")
    sessions["t"].attach()
    source.executescript("INSERT INTO other VALUES (6); INSERT INTO w VALUES (6, 6, 6)")
    assert tables(sessions["none"]) == {"other"}
    assert tables(sessions["t"]) == {"t", "w", "other"}


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"tables": "t"}, TypeError),
        ({"tables": 5}, TypeError),
        ({"tables": [None]}, TypeError),
        ({"tables": ["t\0"]}, ValueError),
        ({"name": "a\0b"}, ValueError),
        ({"name": None}, TypeError),
        ({"name": "nowhere"}, sqlite3.OperationalError),
        ({"tables": ({}["x"] for _ in "x")}, KeyError),
    ],
)
def test_arguments_that_mean_nothing(
    source: Database, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        source.create_session(**options)
    source.set_preupdate_hook(None)
    source.set_preupdate_hook(print)  # no session was left behind


def test_switches_and_what_it_tells(source: Database) -> None:
    with source.create_session() as session:
        assert isinstance(session, oxlite.Session)
        assert session.enabled is True
        assert session.is_empty
        empty = session.memory_used_bytes
        session.enabled = 0  # type: ignore[assignment]
        assert session.enabled is False
        source.execute("INSERT INTO t VALUES (3, 3, 3)")
        assert session.is_empty
        session.enabled = True
        source.execute("INSERT INTO t VALUES (4, 4, 4)")
        assert not session.is_empty
        assert session.memory_used_bytes > empty
        assert [change.key for change in changeset.read(session.changeset())] == [(4,)]
        source.execute("DELETE FROM t WHERE id = 4")
        assert session.changeset() == b""
        assert not session.is_empty


def test_what_is_rolled_back_leaves_no_change() -> None:
    source = make(ROWS, isolation_level="")
    with source.create_session() as session:
        source.execute("UPDATE t SET a = 'x'")
        assert len(list(changeset.read(session.changeset()))) == 2
        source.rollback()
        assert session.changeset() == b""


def test_a_difference_between_databases(tmp_path: Path, source: Database) -> None:
    path = tmp_path / "old.db"
    old = sqlite3.connect(path)
    old.executescript(SCHEMA + ROWS)
    old.close()
    source.executescript(CHANGES)
    source.execute("ATTACH ? AS old", (str(path),))
    with source.create_session(tables=[]) as session:
        session.diff("t", from_name="old")
        session.diff("w", from_name="old")
        changes = session.changeset()
        with pytest.raises(sqlite3.OperationalError, match=r"no such table: nowhere\.t"):
            session.diff("t", from_name="nowhere")
        source.execute("CREATE TABLE here(id PRIMARY KEY, a)")
        with pytest.raises(sqlite3.OperationalError, match=r"no such table: old\.here"):
            session.diff("here", from_name="old")
    source.execute("DETACH old")
    old = sqlite3.connect(path)
    with old:
        old.apply_changeset(changes)
    assert content(old) == content(source)
    assert content(old, "w") == content(source, "w")
    old.close()


def test_a_session_of_an_attached_database(source: Database) -> None:
    source.execute("ATTACH ':memory:' AS other")
    source.execute("CREATE TABLE other.o(id PRIMARY KEY)")
    with source.create_session(name="other") as session:
        source.execute("INSERT INTO t VALUES (3, 3, 3)")
        assert session.is_empty
        source.execute("INSERT INTO o VALUES (3)")
        assert only(changeset.read(session.changeset())).table == "o"


USES: dict[str, Callable[[oxlite.Session], object]] = {
    "attach": lambda session: session.attach(),
    "attach a table": lambda session: session.attach("t"),
    "enabled": lambda session: session.enabled,
    "set enabled": lambda session: setattr(session, "enabled", True),
    "indirect": lambda session: session.indirect,
    "set indirect": lambda session: setattr(session, "indirect", True),
    "is_empty": lambda session: session.is_empty,
    "memory_used_bytes": lambda session: session.memory_used_bytes,
    "changeset": lambda session: session.changeset(),
    "patchset": lambda session: session.patchset(),
    "diff": lambda session: session.diff("t", from_name="main"),
    "__enter__": lambda session: session.__enter__(),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_what_is_closed_says_so(source: Database, use: Callable[[Any], object]) -> None:
    session, other = source.create_session(), source.create_session()
    for _ in range(2):
        session.close()
    with pytest.raises(sqlite3.ProgrammingError, match=r"^Cannot operate on a closed session\.$"):
        use(session)
    source.close()
    with pytest.raises(sqlite3.ProgrammingError, match=r"^Cannot operate on a closed database\.$"):
        use(other)
    other.close()


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_a_session_belongs_to_its_connections_thread(
    source: Database, use: Callable[[Any], object]
) -> None:
    session = source.create_session()
    errors: list[str] = []

    def elsewhere() -> None:
        for act in (lambda: use(session), session.close, source.create_session):
            try:
                act()
            except sqlite3.ProgrammingError as error:
                errors.append(str(error))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert len(errors) == 3
    assert all("same thread" in error for error in errors)
    source.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        source.create_session()
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        source.apply_changeset(b"")


def test_a_block_that_closes_its_connection(source: Database) -> None:
    with source.create_session() as session:
        source.close()
    session.close()


def test_a_session_of_a_connection_that_was_opened_anew(source: Database) -> None:
    session = source.create_session()
    source.__init__(":memory:")  # type: ignore[misc]
    with pytest.raises(sqlite3.InterfaceError, match="another connection"):
        session.changeset()
    del session
    source.set_preupdate_hook(print)


def test_a_session_keeps_its_connection_open() -> None:
    session = make(ROWS).create_session()
    gc.collect()
    assert session.changeset() == b""
    assert weakref.ref(session)() is session


def test_it_cannot_be_made_by_hand() -> None:
    with pytest.raises(TypeError):
        oxlite.Session()  # type: ignore[call-arg, unused-ignore]
    assert (oxlite.Session.__module__, Change.__module__) == ("oxlite", "oxlite.changeset")
    assert not hasattr(sqlite3, "Session")


# Collecting


@pytest.mark.parametrize("how", ["attribute", "factory", "callback"])
def test_cycles_are_collected(how: str) -> None:
    def cycle() -> tuple[weakref.ref[Any], weakref.ref[Any]]:
        connection = make()
        session = connection.create_session()
        match how:
            case "attribute":
                connection.session = session  # type: ignore[attr-defined]
            case "factory":
                connection.row_factory = lambda *_: session
            case "callback":
                connection.set_update_hook(lambda *_: session)
        return weakref.ref(connection), weakref.ref(session)

    references = cycle()
    gc.collect()
    assert [reference() for reference in references] == [None, None]


@pytest.mark.parametrize("order", list(itertools.permutations(["close", "session", "connection"])))
def test_everything_goes_in_any_order(tmp_path: Path, order: tuple[str, ...]) -> None:
    path = tmp_path / "test.db"
    things: dict[str, Any] = {"connection": sqlite3.connect(path)}
    things["connection"].executescript(SCHEMA + ROWS)
    close = things["connection"].close
    things["session"] = things["connection"].create_session()
    things["connection"].execute("UPDATE t SET a = 'x'")
    for what in order:
        if what == "close":
            close()
            del close
        else:
            del things[what]
        gc.collect()
    check = sqlite3.connect(path, timeout=0, isolation_level=None)
    check.execute("DROP TABLE t")  # fails while anything still writes
    check.close()


def in_child(source: str, seconds: int = 60) -> None:
    limit = f"import faulthandler; faulthandler.dump_traceback_later({seconds}, exit=True)\n"
    done = subprocess.run(
        [sys.executable, "-c", limit + source],
        capture_output=True,
        text=True,
        timeout=seconds + 30,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_threads_share_a_connection_with_sessions() -> None:
    """Recording, reading, applying, closing and dropping, all at once."""
    in_child(
        """
import random, threading
from oxlite import changeset, sqlite3

connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
connection.executescript("CREATE TABLE t(id INTEGER PRIMARY KEY, a, b)")
shared, errors = [], []

def work(seed):
    chance = random.Random(seed)
    for step in range(150):
        try:
            match chance.randrange(7):
                case 0:
                    shared.append(connection.create_session())
                case 1 if shared:
                    list(changeset.read(chance.choice(shared).changeset()))
                case 2 if shared:
                    chance.choice(shared).close()
                case 3 if shared:
                    shared.pop()
                case 4 if shared:
                    changes = chance.choice(shared).patchset()
                    connection.apply_changeset(
                        changes,
                        filter=lambda table: True,
                        on_conflict=lambda conflict: chance.choice(["omit", "abort"]),
                    )
                case _:
                    connection.execute(
                        "INSERT OR REPLACE INTO t VALUES (?, ?, ?)",
                        (chance.randrange(50), seed, "x" * chance.randrange(100)),
                    )
        except IndexError:
            pass
        except sqlite3.ProgrammingError as error:
            assert "closed session" in str(error), error
        except sqlite3.OperationalError as error:
            assert "nothing has been applied" in str(error), error
        except BaseException as error:
            errors.append(error)
            raise

threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not errors, errors
shared.clear()
connection.set_preupdate_hook(lambda *_: None)
connection.close()
"""
    )


def test_a_session_is_dropped_in_any_thread_while_its_connection_is_in_use() -> None:
    in_child(
        """
import gc, threading
from oxlite import sqlite3

connection = sqlite3.connect(":memory:", isolation_level=None)
connection.executescript("CREATE TABLE t(id INTEGER PRIMARY KEY, a)")
stop = threading.Event()
handed = []

def drop():
    while not stop.is_set():
        if handed:
            handed.pop()
        gc.collect(0)

threads = [threading.Thread(target=drop) for _ in range(3)]
for thread in threads:
    thread.start()
for number in range(300):
    session = connection.create_session()
    connection.executemany("INSERT INTO t VALUES (?, ?)", [(None, n) for n in range(20)])
    assert not session.is_empty
    handed.append(session)
    session = [session]
    session.append(session)  # a cycle that some thread's collector finds
    del session
    connection.execute("DELETE FROM t")
stop.set()
for thread in threads:
    thread.join()
handed.clear()
gc.collect()
connection.set_preupdate_hook(lambda *_: None)
"""
    )


def test_the_interpreter_ends_with_sessions_open() -> None:
    in_child(
        """
from oxlite import changeset, sqlite3
connection = sqlite3.connect(":memory:")
connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY)")
session = connection.create_session()
connection.execute("INSERT INTO t VALUES (1)")
reading = changeset.read(session.changeset())
connection.row_factory = lambda *_: (session, reading)

class Late:
    def __del__(self, session=session):
        assert session.changeset()

late = Late()
"""
    )


def test_other_threads_go_on_while_a_changeset_is_recorded_and_applied() -> None:
    """With a switch interval of an hour they do only if the GIL is let go."""
    in_child(
        """
import sys, threading
from oxlite import sqlite3

def make():
    connection = sqlite3.connect(":memory:")
    connection.executescript("CREATE TABLE t(id INTEGER PRIMARY KEY)")
    return connection

source, target = make(), make()
steps, done = [], threading.Event()

def count():
    while not done.wait(0.001):
        steps.append(1)

session = source.create_session()
source.execute(
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)"
    " INSERT INTO t SELECT i FROM n"
)
sys.setswitchinterval(3600)
thread = threading.Thread(target=count)
thread.start()
counts = [len(steps)]
changes = session.changeset()
counts.append(len(steps))
target.apply_changeset(changes)
counts.append(len(steps))
done.set()
thread.join()
assert counts[0] < counts[1] < counts[2], counts
"""
    )


def test_nothing_is_leaked(source: Database, target: Database) -> None:
    def work() -> int:
        for number in range(100):
            changes = recorded(source, f"UPDATE t SET a = 'text {number}' WHERE id = 1")
            target.apply_changeset(changes, on_conflict=lambda conflict: "replace")
            list(changeset.read(changes))
            with pytest.raises(KeyError):
                target.apply_changeset(
                    changeset.invert(recorded(source, "DELETE FROM t WHERE id = 2")),
                    on_conflict=lambda conflict: {}["x"],
                )
            source.execute("INSERT INTO t VALUES (2, 'two', 20)")
        gc.collect()
        return len(gc.get_objects())

    work()
    before = work()
    assert work() - before < 50


# The page


def test_the_examples_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[1] / "docs" / "sessions.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(examples) == 3
    for example in examples:
        exec(compile(example, "docs/sessions.md", "exec"), {})
        printed = capsys.readouterr().out
        assert printed
        for promised in re.findall(r"^print\(.*\)\s+# (.*)$", example, flags=re.MULTILINE):
            assert printed.splitlines()[-1] == promised
