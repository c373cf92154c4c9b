"""Tables of Oxlite's in a database of the user's: found, made, and used in whatever is open there.

Invariants:
- Whoever finds them takes no lock. Who makes them does so in the transaction that is open, or in
  one of its own.
- A statement returns tuples, whatever the connection makes of rows for others.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from oxlite._native import Announcement
from oxlite.sqlite3 import Connection, OperationalError

if TYPE_CHECKING:
    from oxlite import Database, aio

__all__ = ["OwnTables", "in_transaction", "rows_of", "text_of"]


class OwnTables:
    """See the module.

    Args:
        prefix: How the names of the tables begin.
        names: Tables, indexes and triggers; where one of them is missing all are made.
        make: Makes those that are missing, in the transaction that is open.
        what: What is written into them, for an error: "a message or a group".

    Attributes:
        find: A query; ``is_found`` understands its rows.
    """

    def __init__(
        self,
        prefix: str,
        names: Iterable[str],
        make: Callable[[Connection], None],
        what: str,
    ) -> None:
        self._prefix = prefix
        self._make = make
        self._what = what
        listed = sorted(names)
        quoted = ", ".join(f"'{name}'" for name in listed)
        self.find = f"SELECT count(*) FROM sqlite_schema WHERE name IN ({quoted})"
        self._count = len(listed)

    def is_missing(self, error: Exception) -> bool:
        """Whether an error says that the tables are not there yet."""
        return "no such table: " in str(error) and self._prefix in str(error)

    def is_found(self, rows: list[Any]) -> bool:
        """Whether they are there, as ``find`` has it."""
        return bool(rows == [(self._count,)])

    def prepare(self, connection: Connection) -> None:
        """Make them, if they are not there.

        Raises:
            oxlite.sqlite3.Error: They cannot be made.
        """
        if self.is_found(rows_of(connection, self.find)):
            return
        with in_transaction(connection):
            self._make(connection)

    def execute(
        self,
        connection: Connection,
        sql: str,
        parameters: tuple[Any, ...],
        announcement: Announcement | None = None,
    ) -> list[Any]:
        """Execute a statement in the transaction that is open; with the tables, if need be.

        Args:
            connection: Whose transaction it is.
            sql: The statement.
            parameters: Its parameters.
            announcement: What is signalled when that commits: what the first column names.

        Returns:
            All rows.

        Raises:
            oxlite.sqlite3.OperationalError: Among others where the transaction only reads.
        """
        try:
            try:
                rows = rows_of(connection, sql, parameters)
            except OperationalError as error:
                if not self.is_missing(error):
                    raise
                self.prepare(connection)
                rows = rows_of(connection, sql, parameters)
        except OperationalError as error:
            if getattr(error, "sqlite_errorname", "").startswith("SQLITE_READONLY"):
                error.args = (
                    f"{self._what} cannot be written in a transaction that only reads, such as"
                    " that of read_only(): do it after its end, or in one that may write",
                )
            raise
        if announcement is not None:
            announcement.follow(connection, [text_of(row[0]) for row in rows])
        return rows

    def look(self, read: Callable[[], list[Any]]) -> list[Any]:
        """What a function reads; nothing where there are no tables: who only looks makes none."""
        try:
            return read()
        except OperationalError as error:
            if not self.is_missing(error):
                raise
            return []

    async def alook(self, read: Awaitable[list[Any]]) -> list[Any]:
        """The same, for event loops."""
        try:
            return await read
        except OperationalError as error:
            if not self.is_missing(error):
                raise
            return []

    # A transaction of its own, by a Database.

    def query(self, database: "Database", sql: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
        """Read, with the tables if need be."""
        try:
            return database.query(sql, parameters)
        except OperationalError as error:
            if not self.is_missing(error):
                raise
        self._prepare_in(database)
        return database.query(sql, parameters)

    def write(
        self,
        database: "Database",
        sql: str,
        parameters: tuple[Any, ...],
        announcement: Announcement | None = None,
    ) -> list[Any]:
        """Have a statement committed, with the tables if need be; the rows that it returns."""
        try:
            result = database._write(sql, parameters, announcement)
        except OperationalError as error:
            if not self.is_missing(error):
                raise
            self._prepare_in(database)
            result = database._write(sql, parameters, announcement)
        if result is not None:
            return result.rows
        # Instrumentation sees each of its statements: it does not share a commit.
        with database.write() as writer:
            return self.execute(writer, sql, parameters, announcement)

    def _prepare_in(self, database: "Database") -> None:
        with database.write() as writer:
            self.prepare(writer)

    # The same for event loops.

    async def aquery(
        self, database: "aio.Database", sql: str, parameters: tuple[Any, ...] = ()
    ) -> list[Any]:
        """As ``query``."""
        try:
            return await database.query(sql, parameters)
        except OperationalError as error:
            if not self.is_missing(error):
                raise
        await self.aprepare(database)
        return await database.query(sql, parameters)

    async def awrite(
        self,
        database: "aio.Database",
        sql: str,
        parameters: tuple[Any, ...],
        announcement: Announcement | None = None,
    ) -> list[Any]:
        """As ``write``."""
        try:
            result = await database._write(sql, parameters, False, announcement)
        except OperationalError as error:
            if not self.is_missing(error):
                raise
            await self.aprepare(database)  # somebody has dropped them
            result = await database._write(sql, parameters, False, announcement)
        if result is not None:
            return result.rows
        async with database.write() as writer:
            return await writer.run_sync(self.execute, sql, parameters, announcement)

    async def aprepare(self, database: "aio.Database") -> None:
        """Make the tables, if they are not there: whoever finds them waits for no lock."""
        if not self.is_found(await database.query(self.find)):
            async with database.write() as writer:
                await writer.run_sync(self.prepare)


@contextmanager
def in_transaction(connection: Connection) -> Iterator[None]:
    """A block that is part of the transaction that is open, or one of its own."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def rows_of(connection: Connection, sql: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
    """All rows of a statement, as tuples."""
    cursor = connection.cursor()
    cursor.row_factory = None
    return cursor.execute(sql, parameters).fetchall()


def text_of(name: str | bytes) -> str:
    """Text of a connection that may make bytes of it."""
    return name.decode(errors="replace") if isinstance(name, bytes) else name
