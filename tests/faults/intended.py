"""What SQLite itself does when a call fails, and what is therefore not called wrong."""

import re
from dataclasses import dataclass

from tests.faults.kinds import Fault


@dataclass(frozen=True)
class Declared:
    """Something that is known, and whose it is."""

    name: str
    faults: str
    """The faults after which it happens, as a pattern."""
    chapters: str
    what: str
    """How the judge puts it, as a pattern."""


DECLARED = [
    # sqlite3Prepare: where a name is not found, schemaIsValid() looks whether another connection
    # has changed the schema; if that cannot be read, it says nothing and the first error stands.
    Declared(
        "a changed schema that cannot be read has no new tables",
        "(read|lock|unlock|stat|control|open) .*",
        "changes of the schema",
        r"step \d+ raised SQLITE_ERROR: no such table: cheap",
    ),
    # sqlite3RunVacuum: a size that cannot be had counts as a size.
    Declared(
        "VACUUM INTO takes a file of unknown size for an existing one",
        "stat .*",
        "a copy by vacuum",
        "step 0 raised SQLITE_ERROR: output file already exists",
    ),
    # sqlite3session_diff() does not look whether sessionExprComparePK() has given it an expression;
    # without one the statement that it makes has a syntax error.
    Declared(
        "a session's diff calls one refused allocation a logic error",
        "malloc",
        "sessions",
        r"step \d+ raised SQLITE_ERROR: SQL logic error",
    ),
    # fts5SnippetFunction() overwrites the code of xInstCount(), and fts5CacheInstArray() counts as
    # done although it had no memory for the instances: the auxiliary functions see a match without
    # places. Nothing is written, and the next query is right.
    Declared(
        "FTS5 highlights nothing where one allocation was refused",
        "malloc",
        "virtual tables",
        r"step 1: \[\('first', 'the quick brown…', 0\)",
    ),
    # With the journal in memory, what could not be written back before the process let go of the
    # file can never be (https://sqlite.org/pragma.html#pragma_journal_mode).
    Declared(
        "a rollback journal in memory cannot be played back later",
        "(write|sync|truncate|lock|stat) .*",
        "journal modes",
        "a file cannot be read afterwards: AssertionError: integrity_check",
    ),
    # unixOpen: whatever keeps a file from being opened for writing has it opened for reading only.
    Declared(
        "a connection that is read-only takes no lock for writing",
        "open .*",
        "two connections",
        r"step \d+: 'not refused' instead of 'locked'",
    ),
]


def name_of(chapter: str, fault: Fault, what: str) -> str | None:
    """The name of what is known, if this is."""
    for known in DECLARED:
        if (
            re.fullmatch(known.faults, fault.name)
            and re.fullmatch(known.chapters, chapter)
            and re.match(known.what, what)
        ):
            return known.name
    return None
