"""Whether three accounts agree: what the clients saw, what the server says, what is in the file.

A client without an answer does not know whether its request was done, and the server's log may
lack it; so each such request allows for a difference of one.
"""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from oxlite.bench.errors import VerificationError
from oxlite.bench.workloads.web.generator import Load
from oxlite.bench.workloads.web.server import Account

TABLES = {"users": "blog_user", "posts": "blog_post", "comments": "blog_comment"}
"""The tables, by the names that answers have for them."""

DANGLING = "PRAGMA foreign_key_check"


def count_rows(path: Path) -> dict[str, int]:
    """How many rows each table of the blog has."""
    with closing(sqlite3.connect(path)) as connection:
        return {
            name: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for name, table in TABLES.items()
        }


def check_accounts(load: Load, account: Account) -> None:
    """Compare what the clients saw with what the server says.

    Raises:
        VerificationError: they differ.
    """
    allowed = load.unanswered.total()
    for status in load.statuses.keys() | account.statuses.keys():
        seen, said = load.statuses[status], account.statuses[status]
        if abs(seen - said) > allowed:
            raise VerificationError(
                f"the clients saw {seen} answers of status {status}, and the server gave {said}"
            )
    if not load.statuses.total():
        raise VerificationError("no client had any answer")


def check_file(
    path: Path, before: Mapping[str, int], account: Account, journal_mode: str, unanswered: int
) -> None:
    """Compare the file with what the server says.

    Args:
        path: the database, which nobody uses any more.
        before: the rows of each table in the beginning.
        account: the server's.
        journal_mode: that of the row.
        unanswered: requests of which it is not known whether they were done.

    Raises:
        VerificationError: they differ, or the file is damaged.
    """
    with closing(sqlite3.connect(path)) as connection:
        integrity = connection.execute("PRAGMA integrity_check").fetchone()[0]
        dangling = connection.execute(DANGLING).fetchall()
        effective = connection.execute("PRAGMA journal_mode").fetchone()[0]
    if integrity != "ok":
        raise VerificationError(f"the database is damaged: {integrity}")
    if dangling:
        raise VerificationError(f"{len(dangling)} rows name others that are not there")
    if effective != journal_mode:
        raise VerificationError(f"the journal mode is {effective!r}, not {journal_mode!r}")
    after = count_rows(path)
    for name, rows in after.items():
        expected = before[name] + account.changes[name]
        # A post takes its comments along, so their number is not known after one that is in doubt.
        if abs(rows - expected) > unanswered and not (unanswered and name == "comments"):
            raise VerificationError(
                f"there are {rows:,} {name}, and by what was answered there should be {expected:,}"
            )
