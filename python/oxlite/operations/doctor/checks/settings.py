"""What of the settings is kept in the file; an application's own are in the report."""

from collections.abc import Iterator
from typing import Final

import oxlite
from oxlite.operations.doctor.report import Finding, Illness
from oxlite.operations.doctor.subject import Inside

__all__ = ["CHECKS", "ILLNESSES"]

_JOURNAL: Final = Illness(
    "journal-mode",
    "hint",
    "Without a WAL, readers and the writer block one another, and a commit takes two syncs or"
    " more.",
)
_PAGE_SIZE: Final = Illness(
    "page-size",
    "hint",
    "SQLite's default is 4,096 since 2016. Smaller pages make deeper trees and more system calls,"
    " larger ones write more for each small change.",
)
_AUTO_VACUUM: Final = Illness(
    "auto-vacuum",
    "hint",
    "Each commit moves pages to the end of the file, which writes more and scatters tables.",
)
_ENCODING: Final = Illness(
    "text-encoding",
    "hint",
    "Text takes two bytes or more for each character, and is converted when it is read from"
    " Python. That cannot be changed later.",
)


def _check_journal_mode(inside: Inside) -> Iterator[Finding]:
    """Whether it is that of the profile: https://sqlite.org/wal.html; docs/profiles.md."""
    wanted = str(oxlite.profiles()[inside.profile].get("journal_mode", "")).lower()
    mode = inside.content.value("PRAGMA journal_mode")
    if wanted and mode != wanted:
        yield _JOURNAL.found(
            f"The journal mode is {mode}; an application that opens the file with the profile"
            f" {inside.profile} turns it to {wanted}.",
            f"PRAGMA journal_mode = {wanted};",
        )


def _check_page_size(inside: Inside) -> Iterator[Finding]:
    """Whether it is a usual one: https://sqlite.org/pgszchng2016.html."""
    size = inside.content.value("PRAGMA page_size")
    if not 4096 <= size <= 16384:
        mode = inside.content.value("PRAGMA journal_mode")
        yield _PAGE_SIZE.found(
            f"A page has {size:,} bytes.",
            f"PRAGMA journal_mode = delete; PRAGMA page_size = 4096; VACUUM;"
            f" PRAGMA journal_mode = {mode};",
        )


def _check_auto_vacuum(inside: Inside) -> Iterator[Finding]:
    """Whether pages are moved at each commit: https://sqlite.org/pragma.html#pragma_auto_vacuum."""
    if inside.content.value("PRAGMA auto_vacuum") == 1:
        yield _AUTO_VACUUM.found("auto_vacuum is FULL.", "PRAGMA auto_vacuum = incremental;")


def _check_encoding(inside: Inside) -> Iterator[Finding]:
    """Whether text is UTF-8: https://sqlite.org/pragma.html#pragma_encoding."""
    encoding = inside.content.value("PRAGMA encoding")
    if encoding != "UTF-8":
        yield _ENCODING.found(
            f"Text is stored as {encoding}.",
            f"sqlite3 {inside.name} .dump | sqlite3 {inside.beside('.utf8')}",
        )


CHECKS: Final = (_check_journal_mode, _check_page_size, _check_auto_vacuum, _check_encoding)

ILLNESSES: Final = (_JOURNAL, _PAGE_SIZE, _AUTO_VACUUM, _ENCODING)
