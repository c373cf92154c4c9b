"""What a migration with Alembic could lose by enforced foreign keys is refused, not lost."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.ext.asyncio import create_async_engine

from oxlite import sqlite3

pytest.importorskip("alembic", reason="Alembic is not installed")

from alembic.migration import MigrationContext
from alembic.operations import Operations

Migration = Callable[[Operations], None]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with two parents."""
    path = tmp_path / "app.db"
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE parent (id INTEGER PRIMARY KEY, name VARCHAR(10));"
        "INSERT INTO parent VALUES (1, 'a'), (2, 'b');"
    )
    connection.close()
    return path


@pytest.fixture(params=["blocking", "asyncio"])
def migrate(request: pytest.FixtureRequest, path: Path) -> Callable[..., None]:
    """Runs a migration as Alembic does, in a transaction that DDL has begun."""

    def run(connection: sa.Connection, migration: Migration) -> None:
        context = MigrationContext.configure(connection, opts={"render_as_batch": True})
        with context.begin_transaction(_per_migration=True):  # as run_migrations() does
            connection.exec_driver_sql("CREATE TABLE IF NOT EXISTS version (number)")
            migration(Operations(context))

    def migrate(migration: Migration, query: str = "") -> None:
        engine = sa.create_engine(f"sqlite+oxlite:///{path}{query}")
        try:
            with engine.connect() as connection:
                run(connection, migration)
        finally:
            engine.dispose()

    def migrate_on_a_loop(migration: Migration, query: str = "") -> None:
        async def main() -> None:
            engine = create_async_engine(f"sqlite+oxlite:///{path}{query}")
            try:
                async with engine.connect() as connection:
                    await connection.run_sync(run, migration)
            finally:
                await engine.dispose()

        asyncio.run(main())

    return migrate if request.param == "blocking" else migrate_on_a_loop


def lengthen(op: Operations) -> None:
    """Change the parent's table, which is copied for that."""
    with op.batch_alter_table("parent") as batch:
        batch.alter_column("name", type_=sa.String(50))


def run(path: Path, *statements: str) -> list[Any]:
    """Run statements with the driver alone; the rows of the last one."""
    connection = sqlite3.connect(path)
    for statement in statements:
        rows = connection.execute(statement).fetchall()
    connection.commit()
    connection.close()
    return rows


def length(path: Path) -> str:
    ((declared,),) = run(path, "SELECT type FROM pragma_table_info('parent') WHERE name = 'name'")
    return str(declared)


@pytest.mark.parametrize("action", ["CASCADE", "SET NULL", "SET DEFAULT"])
@pytest.mark.parametrize("name", ["child", 'a "child"'])
def test_rows_of_others_are_not_lost(
    migrate: Callable[..., None], path: Path, action: str, name: str
) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    child = f"(id INTEGER PRIMARY KEY, parent INTEGER REFERENCES Parent ON DELETE {action})"
    run(path, f"CREATE TABLE {quoted} {child}", f"INSERT INTO {quoted} VALUES (1, 1), (2, NULL)")
    with pytest.raises(exc.IntegrityError) as raised:
        migrate(lengthen)
    message = str(raised.value)
    assert f"rows of {name} (parent: ON DELETE {action}) would be deleted" in message
    assert "?pragma.foreign_keys=off" in message
    assert run(path, f"SELECT * FROM {quoted}") == [(1, 1), (2, None)]
    assert run(path, "SELECT * FROM parent") == [(1, "a"), (2, "b")]
    assert length(path) == "VARCHAR(10)"
    # As the message says.
    migrate(lengthen, "?pragma.foreign_keys=off")
    assert length(path) == "VARCHAR(50)"
    assert run(path, f"SELECT * FROM {quoted}") == [(1, 1), (2, None)]
    assert run(path, "PRAGMA foreign_key_check") == []


@pytest.mark.parametrize("action", ["", "ON DELETE NO ACTION", "ON DELETE RESTRICT"])
def test_what_sqlite_refuses_itself_is_explained(
    migrate: Callable[..., None], path: Path, action: str
) -> None:
    run(
        path,
        f"CREATE TABLE child (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES parent {action})",
        "INSERT INTO child VALUES (1, 1), (2, NULL)",
    )
    with pytest.raises(exc.IntegrityError) as raised:
        migrate(lengthen)
    message = str(raised.value)
    assert "FOREIGN KEY constraint failed: DROP TABLE parent deletes its rows first" in message
    assert f"rows of child (parent: {action or 'ON DELETE NO ACTION'}) refer to them" in message
    assert "Nothing was dropped: open the engine of your migrations" in message
    assert "?pragma.foreign_keys=off" in message
    assert "by an earlier revision or an autocommit_block(), stays" in message
    assert length(path) == "VARCHAR(10)"
    # As the message says.
    migrate(lengthen, "?pragma.foreign_keys=off")
    assert length(path) == "VARCHAR(50)"
    assert run(path, "PRAGMA foreign_key_check") == []


@pytest.mark.parametrize("deferred", ["DEFERRABLE INITIALLY DEFERRED", "by a pragma"])
def test_a_commit_that_sqlite_refuses_is_explained(
    migrate: Callable[..., None], path: Path, deferred: str
) -> None:
    by_pragma = deferred == "by a pragma"
    run(
        path,
        f"CREATE TABLE child (parent INTEGER REFERENCES parent {'' if by_pragma else deferred})",
        "INSERT INTO child VALUES (1)",
    )

    def migration(op: Operations) -> None:
        if by_pragma:
            op.execute("PRAGMA defer_foreign_keys = ON")
        lengthen(op)

    with pytest.raises(exc.IntegrityError) as raised:
        migrate(migration)
    message = str(raised.value)
    assert "FOREIGN KEY constraint failed: DROP TABLE parent has deleted its rows first" in message
    assert "deferred foreign keys of child (parent: ON DELETE NO ACTION) refer to them" in message
    assert "?pragma.foreign_keys=off" in message
    assert length(path) == "VARCHAR(10)"


def test_a_reference_that_is_missing_indeed_is_not_explained_by_the_copy(
    migrate: Callable[..., None], path: Path
) -> None:
    run(
        path,
        "CREATE TABLE child (parent INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED)",
        "INSERT INTO child VALUES (1)",
    )

    def migration(op: Operations) -> None:
        lengthen(op)
        op.execute("INSERT INTO child VALUES (77)")

    with pytest.raises(exc.IntegrityError) as raised:
        migrate(migration)
    assert "DROP TABLE" not in str(raised.value)


def test_another_statement_that_is_refused_is_not_explained_by_the_copy(
    migrate: Callable[..., None], path: Path
) -> None:
    run(
        path,
        "CREATE TABLE child (parent INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED)",
        "INSERT INTO child VALUES (1)",
        "CREATE TABLE strict_child (parent INTEGER REFERENCES parent)",
    )

    def migration(op: Operations) -> None:
        lengthen(op)
        op.execute("INSERT INTO strict_child VALUES (77)")

    with pytest.raises(exc.IntegrityError) as raised:
        migrate(migration)
    assert str(raised.value).startswith("(oxlite.sqlite3.IntegrityError) FOREIGN KEY constraint")
    assert "DROP TABLE" not in str(raised.value)


def test_a_copy_that_refers_to_its_original(migrate: Callable[..., None], path: Path) -> None:
    def migration(op: Operations) -> None:
        above = "above INTEGER REFERENCES parent ON DELETE CASCADE"
        op.execute(f"CREATE TABLE _alembic_tmp_parent (id INTEGER PRIMARY KEY, {above})")
        op.execute("INSERT INTO _alembic_tmp_parent VALUES (1, NULL), (2, 1)")
        op.execute("drop table if exists main . [parent]")

    with pytest.raises(exc.IntegrityError, match="rows of _alembic_tmp_parent"):
        migrate(migration)
    assert run(path, "SELECT id FROM parent") == [(1,), (2,)]


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE child (parent INTEGER REFERENCES parent ON DELETE CASCADE)"],
        [
            "CREATE TABLE child (parent INTEGER REFERENCES parent ON DELETE CASCADE)",
            "INSERT INTO child VALUES (NULL)",
        ],
        [
            "CREATE TABLE other (id INTEGER PRIMARY KEY)",
            "CREATE TABLE child (other INTEGER REFERENCES other ON DELETE CASCADE)",
            "INSERT INTO child VALUES (1)",
        ],
    ],
    ids=["no rows", "no references", "another table's"],
)
def test_where_nothing_can_be_lost_it_goes_on(
    migrate: Callable[..., None], path: Path, statements: list[str]
) -> None:
    run(path, *statements)
    migrate(lengthen)
    assert length(path) == "VARCHAR(50)"


def test_a_table_without_a_copy_is_dropped_as_ever(
    migrate: Callable[..., None], path: Path
) -> None:
    run(
        path,
        "CREATE TABLE child (parent INTEGER REFERENCES parent ON DELETE CASCADE)",
        "INSERT INTO child VALUES (1)",
    )
    migrate(lambda op: op.drop_table("parent"))
    assert run(path, "SELECT * FROM child") == []


def test_a_pragma_that_would_be_ignored_is_refused(
    migrate: Callable[..., None], path: Path
) -> None:
    def run_late(op: Operations, pragma: str) -> None:
        op.execute("UPDATE parent SET name = 'changed'")
        op.execute(pragma)

    for pragma in ("PRAGMA foreign_keys=OFF", "/* */ pragma main.foreign_keys ( '0' )"):
        with pytest.raises(exc.ProgrammingError) as raised:
            migrate(partial(run_late, pragma=pragma))
        message = str(raised.value)
        assert "PRAGMA foreign_keys = OFF inside a transaction: SQLite would ignore it" in message
        assert "autocommit_block()" in message
        assert "?pragma.foreign_keys=off" in message
    with pytest.raises(exc.ProgrammingError, match="foreign_keys = ON inside a transaction"):
        migrate(partial(run_late, pragma="PRAGMA foreign_keys = yes"), "?pragma.foreign_keys=off")
    assert run(path, "SELECT name FROM parent") == [("a",), ("b",)]


def test_a_pragma_that_changes_nothing_is_let_through(migrate: Callable[..., None]) -> None:
    migrate(lambda op: op.execute("PRAGMA foreign_keys = ON"))
    migrate(lambda op: op.execute("PRAGMA foreign_keys = 0"), "?pragma.foreign_keys=off")
    migrate(lambda op: op.execute("PRAGMA foreign_keys"))


def test_a_pragma_in_an_autocommit_block_is_in_force(
    migrate: Callable[..., None], path: Path
) -> None:
    run(
        path,
        "CREATE TABLE child (parent INTEGER REFERENCES parent ON DELETE CASCADE)",
        "INSERT INTO child VALUES (1)",
    )

    def migration(op: Operations) -> None:
        with op.get_context().autocommit_block():
            op.execute("PRAGMA foreign_keys = OFF")
        lengthen(op)
        with op.get_context().autocommit_block():
            op.execute("PRAGMA foreign_keys = ON")

    migrate(migration)
    assert length(path) == "VARCHAR(50)"
    assert run(path, "SELECT * FROM child") == [(1,)]


def test_before_the_first_statement_of_a_transaction_it_is_in_force(path: Path) -> None:
    engine = sa.create_engine(f"sqlite+oxlite:///{path}")
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA foreign_keys = OFF")
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 0
    engine.dispose()
