"""The examination: look from outside, look inside, sort what was found.

Invariants: nothing is written, and nothing that is not there is made (see ``content``); whatever
    the
file is, there is a report or an ``OperationsError``; no wait is without an end.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

import oxlite
from oxlite import harmless, sqlite3
from oxlite.operations.doctor.checks import INSIDE, OUTSIDE
from oxlite.operations.doctor.checks.file import UNREADABLE
from oxlite.operations.doctor.checks.integrity import CANNOT_OPEN, of_error
from oxlite.operations.doctor.content import Content, can_be_hot, opened, would_leave_strange_files
from oxlite.operations.doctor.place import Place, look
from oxlite.operations.doctor.report import SEVERITIES, Finding, Report
from oxlite.operations.doctor.subject import Inside, Subject
from oxlite.operations.errors import OperationsError
from oxlite.operations.holders import Holder, look_for_holders

__all__ = ["examine"]

# A transaction may well do nothing for a part of a second, while its application thinks.
_READER_STAYS_SECONDS: Final = 0.3
_WRITER_STAYS_SECONDS: Final = 1.0

_FACTS: Final = (
    "page_size", "page_count", "freelist_count", "journal_mode", "auto_vacuum", "encoding",
    "application_id", "user_version",
)  # fmt: skip

_DOORS: Final = {
    "oxlite.connect, Database, SQLAlchemy, Django": None,
    "oxlite.sqlite3": "stock",
}
"""By door, the profile that it opens a file with; None for the one that is asked for."""

_SHOWN: Final = (
    "journal_mode", "synchronous", "foreign_keys", "mmap_size", "journal_size_limit", "cache_size",
    "temp_store", "trusted_schema", "wal_autocheckpoint",
)  # fmt: skip


def examine(
    path: Path | str,
    *,
    profile: str = "web",
    quick: bool = True,
    progress: Callable[[str, int, int], None] | None = None,
    backups: Path | str | None = None,
) -> Report:
    """Look whether a database is well. It is read only, and as one reads the file of a stranger.

    Args:
        path: An existing file.
        profile: The profile of the application that uses it: ``stock``, ``web``, ``durable``,
            ``cache``, ``untrusted``.
        quick: Whether to stop each check after ten seconds, and leave out what compares indexes
            with their tables. Without it ``integrity_check`` reads all of the file and keeps a
            snapshot meanwhile, so that the WAL of a busy database grows.
        progress: Called with the name of a check, how far it has come, and of how much; that is 0
            where it is not known.
        backups: The directory of its backups: whether there is one, how old, and whole.

    Returns:
        The report. Its ``is_well`` is what the exit code of ``oxlite doctor`` says.

    Raises:
        OperationsError: There is no such file, it may not be read, or the profile is unknown.
    """
    if profile not in oxlite.profiles():
        known = ", ".join(oxlite.profiles())
        raise OperationsError(f"there is no profile {profile!r}: name one of {known}")
    place = look(path)
    holders = look_for_holders(place.path)
    directory = None if backups is None else Path(backups)
    if directory is not None and not directory.is_dir():
        raise OperationsError(f"there is no directory {directory}")
    subject = Subject(place, profile, holders, *_later(place, holders), directory)
    findings = [finding for check in OUTSIDE for finding in check(subject)]
    notes = list(_notes(subject))
    facts: dict[str, Any] = _facts(place)
    doors: tuple[Mapping[str, Any], ...] = ()
    if any(finding.code in UNREADABLE for finding in findings):
        notes.append("The content was not examined.")
    elif would_leave_strange_files(place):
        findings.append(
            CANNOT_OPEN.found(
                f"It is in WAL mode and belongs to user {place.status.st_uid}, who could not"
                " write a WAL that you make.",
                f"sudo -u '#{place.status.st_uid}' oxlite doctor {subject.name}",
            )
        )
        notes.append("The content was not examined.")
    else:
        try:
            with opened(place, is_quick=quick, progress=progress) as content:
                facts |= {name: content.value(f"PRAGMA {name}") for name in _FACTS}
                inside = Inside(**vars(subject), content=content)
                findings += _found_inside(inside)
                facts["statistics"] = _has_statistics(content)
            doors = tuple(_doors(place, profile))
        except sqlite3.Error as error:
            found = of_error(subject, error)
            # What was seen from outside is why.
            is_explained = any(finding.severity != "hint" for finding in findings)
            if not (is_explained and found.code == "cannot-open"):
                findings.append(found)
            notes.append(f"The content was not examined: {harmless(' '.join(str(error).split()))}")
    return Report(
        path=harmless(str(place.path)),
        profile=profile,
        is_quick=quick,
        facts=facts,
        doors=doors,
        processes=tuple(holder.as_dict() for holder in holders or ()),
        findings=tuple(_sorted(findings)),
        notes=tuple(notes),
    )


def _later(
    place: Place, holders: tuple[Holder, ...] | None
) -> tuple[Place | None, tuple[Holder, ...] | None]:
    """The same a moment later, where somebody reads or writes now."""
    seen = [holder.as_dict() for holder in holders or ()]
    if any(one["writes"] for one in seen):
        time.sleep(_WRITER_STAYS_SECONDS)
    elif any(one["reads"] for one in seen):
        time.sleep(_READER_STAYS_SECONDS)
    else:
        return None, None
    try:
        return look(place.path), look_for_holders(place.path, with_libraries=False)
    except OperationsError:  # it was deleted meanwhile
        return None, None


def _found_inside(inside: Inside) -> Iterator[Finding]:
    for check in INSIDE:
        inside.content.begin()
        try:
            yield from check(inside)
        except sqlite3.Error as error:
            yield of_error(inside, error)


def _facts(place: Place) -> dict[str, Any]:
    return {
        "size_bytes": place.status.st_size,
        "wal_bytes": place.size("-wal"),
        "file_system": place.file_system["type"],
        "free_bytes": place.free_bytes,
        "oxlite": oxlite.__version__,
        "sqlite_version": oxlite.sqlite_version,
    }


def _has_statistics(content: Content) -> bool:
    return bool(content.value("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_stat1'"))


def _doors(place: Place, profile: str) -> Iterator[Mapping[str, Any]]:
    """With which pragmas each door would open the file, and how they differ from the profile's."""
    # As oxlite.environment does: read-only wherever a connection that writes would do something.
    header = place.header
    is_still = header is not None and header.is_wal and "-wal" not in place.sidecars
    uri = f"{place.path.as_uri()}?mode={'rw' if is_still else 'ro'}"
    promised = oxlite.profiles()[profile]
    wanted = {name: str(promised[name]) for name in _SHOWN if name in promised}
    for door, own in _DOORS.items():
        connection = oxlite.connect(
            uri, uri=True, timeout=1.0, profile=cast(Any, own or profile), journal="keep"
        )
        try:
            pragmas = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _SHOWN}
        finally:
            connection.close()
        differs = [
            name for name, value in wanted.items() if not _is_the_same(pragmas.get(name), value)
        ]
        yield {"door": door, "profile": own or profile, "pragmas": pragmas, "differs": differs}


_WORDS: Final = {
    "off": "0", "on": "1", "normal": "1", "full": "2", "extra": "3", "memory": "2",
}  # fmt: skip


def _is_the_same(effective: object, wanted: str) -> bool:
    given = wanted.lower()
    return str(effective).lower() in {given, _WORDS.get(given, given)}


def _notes(subject: Subject) -> Iterator[str]:
    if subject.holders is None:
        yield "Who has the database open cannot be seen on this system: there is no /proc."
    elif os.geteuid() != 0:
        yield "Processes of other users are not seen: root sees all that have the database open."
    if can_be_hot(subject.place) or not os.access(subject.place.path, os.W_OK):
        yield "CHECK constraints were not checked: SQLite forgets those of a file it may not write."
    if not subject.place.bytes:
        yield "The header was not read: nothing could read it without harm to this process's locks."


def _sorted(findings: Iterable[Finding]) -> list[Finding]:
    unique = dict.fromkeys(findings)
    return sorted(unique, key=lambda one: (SEVERITIES.index(one.severity), one.code, one.what))
