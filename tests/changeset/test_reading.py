"""What the changes of a changeset say."""

import copy
import pickle
import threading
from typing import Any

import pytest
from tests.changeset.tables import CHANGES, ROWS, Database, content, make, only, recorded

from oxlite import changeset, sqlite3
from oxlite.changeset import ABSENT, Change


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
