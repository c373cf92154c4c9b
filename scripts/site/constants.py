"""SQLite's numbers, as tables of the reference: two hundred names without a docstring each."""

from oxlite import sqlite3
from oxlite.sqlite3 import constants

_GROUPS = {
    "Limits, for `getlimit` and `setlimit`": ("LIMIT_",),
    "Switches, for `getconfig` and `setconfig`": ("DBCONFIG_",),
    "Answers to a conflict and its kinds, for changesets": ("CHANGESET_",),
    "Actions and answers of an authorizer": (
        *("CREATE_", "DROP_", "ALTER_TABLE", "ANALYZE", "ATTACH", "DELETE", "DENY", "DETACH"),
        *("FUNCTION", "IGNORE", "INSERT", "PRAGMA", "READ", "RECURSIVE", "REINDEX", "SAVEPOINT"),
        *("SELECT", "TRANSACTION", "UPDATE"),
    ),
}
"""What the names in each begin with (with ``_``), or are; the others are result codes."""


def tables() -> str:
    """Every number with its name, in Markdown."""
    rest = list(constants.__all__)
    made = []
    for title, kinds in _GROUPS.items():
        names = [name for name in rest if _is_of(name.removeprefix("SQLITE_"), kinds)]
        rest = [name for name in rest if name not in names]
        made.append(_table(title, names))
    return "\n".join([_table("Result codes", rest), *made])


def _is_of(name: str, kinds: tuple[str, ...]) -> bool:
    return any(name.startswith(kind) if kind.endswith("_") else name == kind for kind in kinds)


def _table(title: str, names: list[str]) -> str:
    lines = [
        f'| <a id="oxlite.sqlite3.{name}"></a>`{name}` | {getattr(sqlite3, name)} |'
        for name in sorted(names)
    ]
    return "\n".join([f"## {title}\n", "| name | value |", "| --- | ---: |", *lines, ""])
