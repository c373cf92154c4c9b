"""Whether three accounts agree: of the clients, of the server, and of the database.

A client without an answer does not know whether its request was done, and the server's log may
lack it; so each such request allows for a difference of one.
"""

from collections.abc import Mapping
from pathlib import Path

from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.databases import Database, rows_of_file
from oxlite.bench.workloads.web.generator import Load
from oxlite.bench.workloads.web.server import Account

TABLES = {"users": "blog_user", "posts": "blog_post", "comments": "blog_comment"}
"""The tables, by the names that answers have for them."""


def count_rows(database: Database) -> dict[str, int]:
    """How many rows each table of the blog has.

    Raises:
        VerificationError: the file is damaged.
    """
    counts = (f"SELECT '{name}', count(*) FROM {table}" for name, table in TABLES.items())
    return dict(database.rows(" UNION ALL ".join(counts)))


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


def check_rows(
    before: Mapping[str, int], after: Mapping[str, int], account: Account, unanswered: int
) -> None:
    """Compare the tables with what the server says.

    Args:
        before: how many rows each table had in the beginning, and
        after: when nobody uses it any more.
        account: the server's.
        unanswered: requests of which it is not known whether they were done.

    Raises:
        VerificationError: they differ.
    """
    for name, rows in after.items():
        expected = before[name] + account.changes[name]
        # A post takes its comments along, so their number is not known after one that is in doubt.
        if abs(rows - expected) > unanswered and not (unanswered and name == "comments"):
            raise VerificationError(
                f"there are {rows:,} {name}, and by what was answered there should be {expected:,}"
            )


def check_file(path: Path, journal_mode: str) -> None:
    """See that a file, which nobody uses any more, is as its row says and as its tables do.

    Raises:
        VerificationError: it is not.
    """
    dangling = rows_of_file(path, "PRAGMA foreign_key_check")
    [(effective,)] = rows_of_file(path, "PRAGMA journal_mode")
    if dangling:
        raise VerificationError(f"{len(dangling)} rows name others that are not there")
    if effective != journal_mode:
        raise VerificationError(f"the journal mode is {effective!r}, not {journal_mode!r}")
