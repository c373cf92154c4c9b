"""An application of a changeset that is interrupted has changed nothing."""

import pytest
from tests.changeset.tables import MANY, content, make, recorded

import oxlite
from oxlite import sqlite3
from oxlite.changeset import Conflict


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
