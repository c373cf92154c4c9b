"""What a connection says about itself, read from that very connection.

Two connections to one file may differ in every setting, so nothing here is
taken from the file, from the module or from what was asked for at opening.
Any driver will do: the standard library's, Oxlite's, apsw.

Invariants: every statement is a query without a side effect, is run to its
end and is closed, so neither a transaction nor a read lock stays behind; the
pragmas that scan the file run only when asked for.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

__all__ = ["CONFIGURATION_PRAGMAS", "SCANNING_PRAGMAS", "Queryable", "connection_report"]

CONFIGURATION_PRAGMAS: tuple[str, ...] = (
    "analysis_limit",
    "application_id",
    "auto_vacuum",
    "automatic_index",
    "busy_timeout",
    "cache_size",
    "cache_spill",
    "cell_size_check",
    "checkpoint_fullfsync",
    "data_version",
    "defer_foreign_keys",
    "encoding",
    "foreign_keys",
    "freelist_count",
    "fullfsync",
    "hard_heap_limit",
    "ignore_check_constraints",
    "integrity_check",
    "journal_mode",
    "journal_size_limit",
    "legacy_alter_table",
    "locking_mode",
    "max_page_count",
    "mmap_size",
    "page_count",
    "page_size",
    "query_only",
    "quick_check",
    "read_uncommitted",
    "recursive_triggers",
    "reverse_unordered_selects",
    "secure_delete",
    "soft_heap_limit",
    "synchronous",
    "temp_store",
    "threads",
    "trusted_schema",
    "user_version",
    "wal_autocheckpoint",
)
"""The pragmas that describe a connection's configuration and its database.

None of them changes anything when it is queried without an argument
(https://sqlite.org/pragma.html). ``optimize``, ``wal_checkpoint``,
``incremental_vacuum`` and ``shrink_memory`` do, and must never be added.
"""

SCANNING_PRAGMAS: frozenset[str] = frozenset({"integrity_check", "quick_check"})
"""Those that read the whole file; they answer with lines, ``ok`` if it is sound."""

_NOT_ASKED = "reads the whole file, so only when asked for"

# https://sqlite.org/threadsafe.html
_THREADSAFE_MODES = {"0": "single-thread", "1": "serialized", "2": "multi-thread"}


_Value = str | int | float | None
_Row = Any  # as the driver makes it: it has a first item


class Queryable(Protocol):
    """A connection whose ``execute`` returns the rows, or a cursor over them."""

    def execute(self, sql: str, /) -> Iterable[Any]:
        """Run one statement."""


def connection_report(connection: Queryable, *, check: bool = False) -> dict[str, Any]:
    """The library behind a connection and the settings in force on it.

    Args:
        connection: an open connection of any driver. Inside a transaction the
            values are those of that transaction; none is begun or ended.
        check: also run the pragmas that scan the whole file, which takes time
            in proportion to its size.

    Returns:
        A dictionary that JSON can hold::

            sqlite_version, sqlite_source_id   as the library reports them
            threadsafe_mode     "single-thread", "multi-thread", "serialized",
                                None if the library does not tell
            sqlcipher           True if the library is SQLCipher
            sqlcipher_version   its version, or None
            compile_options     all of them, sorted
            pragmas             name to effective value; None where SQLite
                                returned no row; a list of lines for a scan
            pragmas_not_read    name to the reason

    Raises:
        Exception: the driver's own error, where the database cannot be read
            (locked, corrupt, closed).
    """
    options = sorted(str(option) for option in _column(connection, "PRAGMA compile_options"))
    cipher_version = _scalar(connection, "PRAGMA cipher_version")
    skipped = () if check else sorted(SCANNING_PRAGMAS)
    return {
        "sqlite_version": _scalar(connection, "SELECT sqlite_version()"),
        "sqlite_source_id": _scalar(connection, "SELECT sqlite_source_id()"),
        "threadsafe_mode": _threadsafe_mode(options),
        "sqlcipher": cipher_version is not None,
        "sqlcipher_version": cipher_version,
        "compile_options": options,
        "pragmas": {
            name: _pragma(connection, name) for name in CONFIGURATION_PRAGMAS if name not in skipped
        },
        "pragmas_not_read": dict.fromkeys(skipped, _NOT_ASKED),
    }


def _pragma(connection: Queryable, name: str) -> _Value | list[_Value]:
    statement = f"PRAGMA {name}"
    if name in SCANNING_PRAGMAS:
        return _column(connection, statement)
    return _scalar(connection, statement)


def _threadsafe_mode(options: list[str]) -> str | None:
    for option in options:
        key, _, value = option.partition("=")
        if key == "THREADSAFE":
            return _THREADSAFE_MODES.get(value)
    return None


def _scalar(connection: Queryable, sql: str) -> _Value:
    values = _column(connection, sql)
    return values[0] if values else None


def _column(connection: Queryable, sql: str) -> list[_Value]:
    """The first column of every row, whatever row or text factory is in place."""
    target: Any = connection
    if hasattr(connection, "cursor"):
        target = connection.cursor()
        if hasattr(target, "row_factory"):
            target.row_factory = None
    rows = target.execute(sql)
    try:
        return [_plain(row) for row in rows]
    finally:
        for used in (rows, target):
            if used is not connection and hasattr(used, "close"):
                used.close()


def _plain(row: _Row) -> _Value:
    value: _Value | bytes = next(iter(row.values())) if isinstance(row, Mapping) else row[0]
    return value.decode(errors="replace") if isinstance(value, bytes) else value
