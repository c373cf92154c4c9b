"""Changes reach another database, in a transaction as any write does."""

import threading
from pathlib import Path
from typing import Any

import pytest
from tests.changeset.tables import CHANGES, ROWS, SCHEMA, Database, content, make, only, recorded

from oxlite import changeset, sqlite3
from oxlite.changeset import ABSENT


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


def test_a_session_records_what_is_applied(source: Database, target: Database) -> None:
    changes = recorded(source, CHANGES)
    with target.create_session() as session:
        target.apply_changeset(changes)
        assert set(changeset.read(session.changeset())) == set(changeset.read(changes))
