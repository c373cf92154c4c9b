"""The backups of a database: whether there is one, how old it is, and whether it is whole."""

import shlex
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from oxlite.operations.backups import backups_in, backups_of
from oxlite.operations.doctor.report import Finding, Illness
from oxlite.operations.doctor.subject import Subject

__all__ = ["CHECKS", "ILLNESSES"]

_NONE: Final = Illness(
    "backup-missing", "warning", "A disk that fails, or a DELETE too many, takes all there is."
)
_OLD: Final = Illness(
    "backup-old", "warning", "What was written since the last backup is lost with the file."
)
_CHANGED: Final = Illness(
    "backup-changed",
    "warning",
    "It was verified when it was made, and is not what it was then: it may not restore.",
)

_OLD_AFTER: Final = timedelta(days=2)
"""A backup each night, and one night that failed."""


def _check_backups(subject: Subject) -> Iterator[Finding]:
    """What their manifests say (docs/backup.md)."""
    directory = subject.backups
    if directory is None:
        return
    make = f"oxlite backup {subject.name} {shlex.quote(str(directory))}"
    found = backups_of(subject.place.path, directory)
    if not found:
        path = str(subject.place.path)
        others = {one.manifest.host for one in backups_in(directory) if one.manifest.source == path}
        hosts = ", ".join(sorted(one or "unknown" for one in others))
        of_others = f"; of that path there are backups from another host: {hosts}" if hosts else ""
        yield _NONE.found(f"There is no backup of it in {directory}{of_others}.", make)
        return
    for one in found:
        if not one.looks_whole:
            yield _CHANGED.found(
                f"{one.path} has another size than when it was verified, or begins differently.",
                make,
            )
    whole = [one for one in found if one.looks_whole]
    if not whole:
        yield _NONE.found(f"No backup of it in {directory} is whole.", make)
        return
    age = datetime.now(UTC) - whole[-1].manifest.created_at
    if age > _OLD_AFTER:
        yield _OLD.found(f"The last backup was made {age.days} days ago.", make)


CHECKS: Final = (_check_backups,)
ILLNESSES: Final = (_NONE, _OLD, _CHANGED)
