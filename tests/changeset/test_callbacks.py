"""What callbacks may do with the connection that calls them, and with its sessions."""

import gc

import pytest
from tests.changeset.tables import Database, content, recorded

import oxlite
from oxlite import changeset, sqlite3
from oxlite.changeset import Conflict


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
