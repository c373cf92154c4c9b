"""What can be mended without a thought: what hurts neither the data nor whoever uses it.

That is two things. Statistics are what the planner may ignore. A checkpoint copies into the
database what is committed already, as each program does that closes it; it is made only while
nobody else has the database open. All else changes the schema, deletes rows, keeps writers
waiting, or is about another program, and is left to a person, who finds it in ``mend`` of each
finding.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from oxlite import sqlite3
from oxlite.operations.doctor.report import Finding, Report
from oxlite.operations.errors import OperationsError
from oxlite.operations.holders import look_for_holders

__all__ = ["mend"]

_TIMEOUT_SECONDS: Final = 5.0


def mend(path: Path | str, report: Report) -> tuple[Finding, ...]:
    """Mend what is safe to mend.

    Args:
        path: The file that was examined.
        report: What was found.

    Returns:
        The findings that were mended. Examine it again for what is left.

    Raises:
        OperationsError: The file is gone, or something could not be mended.
    """
    wanted = [one for one in report.findings if one.is_safe and one.code in _CURES]
    if not wanted:
        return ()
    if any(one.severity == "error" for one in report.findings):
        raise OperationsError(
            f"{path}: nothing is mended while there are errors; mend those first, on a copy"
        )
    try:
        resolved = Path(path).resolve(strict=True)
        connection = sqlite3.connect(
            f"{resolved.as_uri()}?mode=rw",
            uri=True,
            timeout=_TIMEOUT_SECONDS,
            isolation_level=None,
            busy="gate",
        )
    except (OSError, sqlite3.Error) as error:
        raise OperationsError(f"{path}: {error}") from error
    try:
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_TRUSTED_SCHEMA, False)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)
        for cure in dict.fromkeys(_CURES[finding.code] for finding in wanted):
            cure(connection, resolved)
    except sqlite3.Error as error:
        raise OperationsError(f"{path}: {error}") from error
    finally:
        connection.close()
    return tuple(wanted)


def _analyze(connection: sqlite3.Connection, _path: Path) -> None:
    connection.execute("PRAGMA analysis_limit = 1000")
    connection.execute("ANALYZE")


def _checkpoint(connection: sqlite3.Connection, path: Path) -> None:
    holders = look_for_holders(path, with_libraries=False)
    # The one that is open here is this process.
    others = [one for one in holders or () if one.process_id != _own_id()]
    if holders is None or others:
        raise OperationsError(
            f"{path}: somebody has opened it meanwhile, so the WAL is left to him"
        )
    connection.execute("SELECT 1 FROM sqlite_schema").fetchone()
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise OperationsError(f"{path}: somebody reads the WAL, so it could not be emptied")


def _own_id() -> int:
    """The number by which ``/proc`` knows this process."""
    return int(Path("/proc/self").resolve().name)


_CURES: Final[dict[str, Callable[[sqlite3.Connection, Path], None]]] = {
    "statistics-missing": _analyze,
    "statistics-stale": _analyze,
    "wal-large": _checkpoint,
    "wal-left-behind": _checkpoint,
}
