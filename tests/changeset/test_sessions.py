"""What a session records, what it tells, and where it may be used."""

import gc
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.changeset.tables import CHANGES, ROWS, SCHEMA, Database, content, make, only

import oxlite
from oxlite import changeset, sqlite3
from oxlite.changeset import Change


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
