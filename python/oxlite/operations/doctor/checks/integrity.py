"""Whether the file is sound, and whether its rows are what the schema says."""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from oxlite.operations.doctor.checks.file import NO_DATABASE
from oxlite.operations.doctor.report import Finding, Illness
from oxlite.operations.doctor.schema import ForeignKey, Table
from oxlite.operations.doctor.subject import Inside, Subject
from oxlite.operations.files import roll_back
from oxlite.operations.verification import OF_CONSTRAINT, quoted

__all__ = ["CANNOT_OPEN", "CHECKS", "ILLNESSES", "of_error"]

_HOT_JOURNAL: Final = Illness(
    "hot-journal",
    "warning",
    "A transaction was not finished. The database is half changed until the next program that may"
    " write opens it and rolls that back; without its journal it is corrupt.",
)
_CORRUPT: Final = Illness(
    "corrupt",
    "error",
    "Some of the data cannot be read or is not what was written, and each further write can damage"
    " more.",
)
_INDEX: Final = Illness(
    "index-corrupt",
    "error",
    "Queries that use the index miss rows, or find others. The table itself is whole.",
)
_FULL_TEXT: Final = Illness(
    "full-text-index-corrupt", "error", "Searches miss rows, or fail. The text itself is whole."
)
_SCHEMA: Final = Illness(
    "schema-unreadable",
    "error",
    "SQLite reads all of the schema before anything else, so every statement fails.",
)
_CONSTRAINT: Final = Illness(
    "constraint-violated",
    "warning",
    "The application and the query planner rely on what the schema promises: IS NULL does not find"
    " such a row. Updating it fails, and so does copying the table.",
)
_REFERENCE: Final = Illness(
    "foreign-key-violated",
    "error",
    "Rows refer to others that are not there. It comes of writing without PRAGMA foreign_keys ="
    " ON.",
)
_MISMATCH: Final = Illness(
    "foreign-key-mismatch",
    "error",
    "With foreign keys ON each write to either table fails: foreign key mismatch. The columns"
    " referred to must be the primary key or have a unique index.",
)
_NO_PARENT: Final = Illness(
    "foreign-key-parent-missing",
    "error",
    "With foreign keys ON each write to the table fails: no such table.",
)
_NEEDS_MORE: Final = Illness(
    "needs-application",
    "hint",
    "It has a function, collation or module that its application brings along, so not everything"
    " could be checked here.",
)
_NOT_FINISHED: Final = Illness("not-finished", "hint", "What was not looked at may be well or not.")
_LOCKED: Final = Illness(
    "locked", "warning", "Nobody can read it meanwhile, and it could not be examined."
)
CANNOT_OPEN: Final = Illness(
    "cannot-open", "error", "SQLite cannot open the file here, so it could not be examined."
)

_LINES_SHOWN: Final = 5
_ENTRY: Final = re.compile(
    r"(?:row \d+ (?:missing from|values differ from)|wrong # of entries in|non-unique entry in"
    r"|rowid not at end-of-record for row \d+ of) index (.+)"
)
_IN_FULL_TEXT: Final = re.compile(
    r"(?:malformed inverted|unable to validate the inverted) index for FTS\d table \w+\.([^:]+).*"
    r'|fts\d: checksum mismatch for table "(.+)"'
)
_NULL: Final = re.compile(r"NULL value in ([^.]+)\.(.+)")
_APPLICATION: Final = re.compile(
    r"no such (?:function|collation sequence|module|tokenizer)|unknown function|unsafe use"
)


def _check_pages(inside: Inside) -> Iterator[Finding]:
    """What SQLite's own scan says.

    Source: https://sqlite.org/pragma.html#pragma_integrity_check, and quick_check there.
    """
    name = "quick_check" if inside.content.is_quick else "integrity_check"
    pages = inside.content.value("PRAGMA page_count")
    with inside.content.told(name, pages):
        rows, error = inside.content.rows_before_error(f"PRAGMA {name}")
    for count in (_LINES_SHOWN, 1):
        if error is not None and not rows:
            # All is told at once, and nothing where a page cannot be read: ask for few.
            rows, _ = inside.content.rows_before_error(f"PRAGMA {name}({count})")
    said = [line for (row,) in rows for line in str(row).split("\n")]
    lines = [line for line in said if line != "ok" and not line.startswith("*** in database")]
    if error is not None and not lines:
        yield of_error(inside, error)
    of: dict[Illness, list[str]] = defaultdict(list)
    for line in lines:
        of[_kind(line)].append(line)
    for illness, found in of.items():
        yield illness.found(_some(found), _mend(inside, illness, found))


def _check_keys(inside: Inside) -> Iterator[Finding]:
    """Whether each foreign key can be enforced: https://sqlite.org/foreignkeys.html#fk_indexes."""
    for table in inside.schema.tables.values():
        for key in table.foreign_keys:
            columns = ", ".join(key.columns)
            if key.parent.lower() in inside.schema.others:
                continue
            parent = inside.schema.tables.get(key.parent.lower())
            if parent is None:
                named = ", ".join(map(quoted, key.parent_columns or ("id",)))
                yield _NO_PARENT.found(
                    f"{table.name}({columns}) refers to {key.parent}, which is not there.",
                    f"CREATE TABLE {quoted(key.parent)} ({named}, PRIMARY KEY ({named}));\n"
                    f"-- or make {quoted(table.name)} anew without it:"
                    " https://sqlite.org/lang_altertable.html#otheralter",
                )
            elif _is_mismatch(key, parent):
                # What the key refers to: without columns named, a primary key of as many.
                named = ", ".join(map(quoted, key.parent_columns or parent.columns[:1]))
                unique = quoted("_".join((parent.name, *key.parent_columns, "unique")))
                yield _MISMATCH.found(
                    f"{table.name}({columns}) refers to {parent.name}({_plain(key)}), which is no"
                    " unique key.",
                    f"CREATE UNIQUE INDEX {unique} ON {quoted(parent.name)} ({named});",
                )


def _check_references(inside: Inside) -> Iterator[Finding]:
    """Rows without a parent: https://sqlite.org/pragma.html#pragma_foreign_key_check."""
    tables = [table for table in inside.schema.tables.values() if table.foreign_keys]
    for place, table in enumerate(tables):
        inside.content.tell("foreign_key_check", place, len(tables))
        if any(
            key.parent.lower() not in inside.schema.tables
            or _is_mismatch(key, inside.schema.tables[key.parent.lower()])
            for key in table.foreign_keys
        ):
            continue  # what _check_keys has found; the pragma would fail
        counts = inside.content.rows(
            f"SELECT fkid, count(*) FROM pragma_foreign_key_check({_literal(table.name)})"
            " GROUP BY fkid"
        )
        listed = inside.content.rows(
            "SELECT DISTINCT id FROM pragma_foreign_key_list(?) ORDER BY id", table.name
        )
        keys = {number: key for (number,), key in zip(listed, table.foreign_keys, strict=True)}
        for number, count in counts:
            key = keys[number]
            parent = inside.schema.tables[key.parent.lower()]
            rows = "1 row" if count == 1 else f"{count:,} rows"
            yield _REFERENCE.found(
                f"{rows} of {table.name}({', '.join(key.columns)}) without one of {parent.name}.",
                _without_parent(table, key, parent),
            )


def of_error(subject: Subject, error: Exception) -> Finding:
    """What an error says that SQLite has answered with."""
    message = " ".join(str(error).split())
    name = str(getattr(error, "sqlite_errorname", ""))
    if name == "SQLITE_INTERRUPT" or type(error).__name__ == "StatementTimeout":
        return _NOT_FINISHED.found(
            f"A check took too long: {message}.", f"oxlite doctor --full {subject.name}"
        )
    if name == "SQLITE_TOOBIG":
        return _NOT_FINISHED.found(
            f"A value is too large to be looked at here: {message}.",
            "Check it in the application: PRAGMA integrity_check;",
        )
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        holders = [one for one in subject.holders or () if any(lock.is_write for lock in one.locks)]
        who = holders[0].label if holders else "somebody"
        return _LOCKED.found(
            f"It is locked by {who}.",
            f"kill {holders[0].process_id}  # or wait until its transaction ends"
            if holders
            else "Wait until its transaction ends.",
        )
    if name == "SQLITE_READONLY_ROLLBACK":
        # Somebody in the midst of a transaction has a journal too; SQLite sees by his lock.
        return _HOT_JOURNAL.found(
            f"{subject.place.path.name}-journal was left by a program that has ended in the midst"
            " of a transaction.",
            roll_back(subject.place.path),
        )
    if "unsafe use of" in message:
        return _SCHEMA.found(
            f"{message}.",
            "Make that table anew without the function. With trusted_schema = ON it can be read,"
            " but then the file runs it: not one that a stranger has made.",
        )
    if "malformed database schema" in message:
        found = re.search(r"malformed database schema \((.*?)\)", message)
        return _SCHEMA.found(
            f"{message}.",
            "-- in an SQL shell; a table that is deleted from the schema is lost, so copy the"
            " file first\n"
            "PRAGMA writable_schema = ON;\n"
            f"DELETE FROM sqlite_schema WHERE name = {_literal(found[1] if found else '…')};\n"
            "PRAGMA writable_schema = RESET;\nVACUUM;",
        )
    if _APPLICATION.search(message):
        return _NEEDS_MORE.found(
            f"{message}.", "Check it in the application, with all that it loads."
        )
    if name == "SQLITE_NOTADB":
        return NO_DATABASE.found(f"{message}.", "Restore the last verified backup.")
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_IOERR")):
        return _CORRUPT.found(f"{message}.", _recover(subject))
    return CANNOT_OPEN.found(
        f"{message}.",
        "Examine it as the user who runs the application, where the file can be written.",
    )


def _kind(line: str) -> Illness:
    if _ENTRY.fullmatch(line):
        return _INDEX
    if _IN_FULL_TEXT.match(line):
        return _FULL_TEXT
    if OF_CONSTRAINT.match(line):
        return _CONSTRAINT
    return _NEEDS_MORE if _APPLICATION.search(line) else _CORRUPT


def _mend(inside: Inside, illness: Illness, lines: list[str]) -> str:
    if illness is _INDEX:
        names = {found[1] for line in lines if (found := _ENTRY.fullmatch(line))}
        return "\n".join(f"REINDEX {quoted(name)};" for name in sorted(names))
    if illness is _FULL_TEXT:
        found_in = (_IN_FULL_TEXT.match(line) for line in lines)
        names = {quoted(found[1] or found[2]) for found in found_in if found}
        return "\n".join(
            f"INSERT INTO {name}({name}) VALUES ('rebuild');" for name in sorted(names)
        )
    if illness is _CONSTRAINT:
        nulls = {(found[1], found[2]) for line in lines if (found := _NULL.fullmatch(line))}
        others = sorted({line for line in lines if not _NULL.fullmatch(line)})
        return "\n".join(
            [
                f"UPDATE {quoted(table)} SET {quoted(column)} = 'your value'"
                f" WHERE typeof({quoted(column)}) = 'null';"  # IS NULL is taken for false there
                for table, column in sorted(nulls)
            ]
            + (["-- correct or delete the other rows by hand"] if others else [])
        )
    if illness is _NEEDS_MORE:
        return "Check it in the application, with all that it loads."
    return _recover(inside)


def _recover(subject: Subject) -> str:
    return (
        "Stop all programs that write, and restore the last verified backup. Without one, save what"
        " can be"
        f" read:\nsqlite3 {subject.name} .recover | sqlite3 {subject.beside('.recovered')}"
    )


def _some(lines: list[str]) -> str:
    more = len(lines) - _LINES_SHOWN
    shown = "; ".join(" ".join(line.split()) for line in lines[:_LINES_SHOWN])
    return f"{shown}; and {more:,} more." if more > 0 else f"{shown}."


def _is_mismatch(key: ForeignKey, parent: Table) -> bool:
    if not key.parent_columns:
        return len(parent.primary_key) != len(key.columns)
    return not parent.is_key(key.parent_columns)


def _plain(key: ForeignKey) -> str:
    return ", ".join(key.parent_columns) or "its primary key"


def _without_parent(table: Table, key: ForeignKey, parent: Table) -> str:
    child, above = quoted(table.name), quoted(parent.name)
    pairs = list(zip(key.columns, key.parent_columns or parent.primary_key, strict=True))
    given = " AND ".join(f"{child}.{quoted(column)} IS NOT NULL" for column, _ in pairs)
    same = " AND ".join(f"p.{quoted(other)} = {child}.{quoted(column)}" for column, other in pairs)
    return (
        "-- it deletes these rows; or give them a parent that is there\n"
        f"DELETE FROM {child} WHERE {given}"
        f" AND NOT EXISTS (SELECT 1 FROM {above} AS p WHERE {same});"
    )


def _literal(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


CHECKS: Final = (_check_pages, _check_keys, _check_references)

ILLNESSES: Final = (
    _HOT_JOURNAL, _CORRUPT, _INDEX, _FULL_TEXT, _SCHEMA, _CONSTRAINT, _REFERENCE, _MISMATCH,
    _NO_PARENT, _NEEDS_MORE, _NOT_FINISHED, _LOCKED, CANNOT_OPEN,
)  # fmt: skip
