"""Changes that do not fit what they are applied to."""

from typing import Any

import pytest
from tests.changeset.tables import ROWS, Database, content, make, recorded

from oxlite import sqlite3
from oxlite.changeset import Conflict

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
