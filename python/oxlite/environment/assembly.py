"""The whole report: of a connection, or of a database by its path.

How :func:`inspect_database` opens a file, and why. The report should show what
an application gets and leave no trace. The settings are the same on a
connection that may write and on one that may not, so that choice is free:

* A ``-wal`` or ``-journal`` beside the database: opened read-only. A writing
  connection that is the last to close would move the WAL into the database
  file, and one that finds an interrupted transaction would roll it back.
* Otherwise there is nothing to move or to roll back, and it is opened for
  writing: a read-only connection would leave ``-wal`` and ``-shm`` files beside
  a WAL database, which it may create but not remove.

Invariants: a missing file is not created; the journal mode stays
(``journal="keep"``); the bytes of the database stay.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from oxlite.environment.connection import SCANNING_PRAGMAS, Queryable, connection_report
from oxlite.environment.errors import ReportError
from oxlite.environment.filesystem import printable
from oxlite.environment.fsync import measure_fsync
from oxlite.environment.machine import machine_report

__all__ = ["SCHEMA", "checks_passed", "inspect_database", "report"]

SCHEMA = "oxlite.environment/1"
"""The value of ``schema`` in a report: its form, and the version of that form."""


_WAYS_TO_WAIT = {"fair": "every millisecond", "gate": "writers stand in line"}
"""What the waits of Oxlite's own do."""


def report(
    connection: Queryable,
    directory: Path | str,
    *,
    driver: str,
    check: bool = False,
    fsync: bool = True,
    describe: Callable[[Any], dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """The environment report of a measured connection.

    Args:
        connection: an open connection of any driver. If it has ``profile`` and
            ``settings``, as Oxlite's have, they are included.
        directory: where its database is.
        driver: the driver's name and version, as a reader should see it.
        check: also run the pragmas that scan the whole file.
        fsync: also measure what a sync costs in the directory.
        describe: what to say of the connection, unless ``connection_report``:
            ``server_report`` of one to PostgreSQL.

    Returns:
        A dictionary that JSON can hold::

            schema       "oxlite.environment/1"
            driver
            connection   see connection_report, server_report
            profile      name, and settings: name, requested, effective and
                         skipped (the reason, or None) of each; or None
            machine      see machine_report
            fsync        see measure_fsync

    Raises:
        ReportError: psutil is not installed.
        Exception: the driver's own error, where the database cannot be read.
    """
    return {
        "schema": SCHEMA,
        "driver": driver,
        "connection": (
            connection_report(connection, check=check) if describe is None else describe(connection)
        ),
        "profile": _profile(connection),
        "machine": machine_report(directory),
        "fsync": measure_fsync(directory) if fsync else {"measured": False, "reason": "not asked"},
    }


def inspect_database(
    database: Path | str | None = None,
    *,
    profile: str | None = None,
    check: bool = False,
    fsync: bool = True,
) -> dict[str, Any]:
    """The environment report of a database as Oxlite opens it.

    Args:
        database: an existing database file; None for a database in memory,
            reported with the current directory's file system.
        profile: the profile to apply; by default what ``oxlite.connect``
            applies to a file (``web``), and ``stock`` without one.
        check: also run the pragmas that scan the whole file.
        fsync: also measure what a sync costs in the database's directory.

    Returns:
        What :func:`report` returns, and

        ``database``: its ``name`` (no path), ``access`` ("read-write",
        "read-only", "memory") and ``notes``, a list of sentences on what the
        report does not show as it stands;

        ``shared_commit``: which processes of this user share the syncs of its
        commits now (``oxlite.shared_commit_group``); None if none do.

    Raises:
        ReportError: there is no such file, it is not a database that can be
            read, the profile is unknown, or psutil is not installed.
    """
    path = None if database is None else _existing_file(Path(database))
    access = "memory" if path is None else _access(path)
    import oxlite
    from oxlite import sqlite3

    shared_commit = None if path is None else _shared_commit(path)
    try:
        connection = oxlite.connect(
            ":memory:" if path is None else _uri(path, access),
            uri=path is not None,
            profile=cast(Any, profile or ("stock" if path is None else "web")),
            journal="keep",
        )
    except (ValueError, TypeError) as error:
        raise ReportError(str(error)) from error
    except sqlite3.Error as error:
        raise _unreadable(database, error) from error
    try:
        made = report(
            connection,
            Path.cwd() if path is None else path.parent,
            driver=f"oxlite {oxlite.__version__}",
            check=check,
            fsync=fsync,
        )
    except sqlite3.Error as error:
        raise _unreadable(database, error) from error
    finally:
        connection.close()
    made["database"] = {
        "name": ":memory:" if path is None else printable(path.name),
        "access": access,
        "notes": [*_notes(made, access), *_notes_of_shared_commit(shared_commit)],
    }
    made["shared_commit"] = shared_commit
    return made


def checks_passed(report: Mapping[str, Any]) -> bool | None:
    """Whether the scans of a report found the database sound; None if none ran."""
    pragmas = report["connection"]["pragmas"]
    results = [pragmas[name] for name in SCANNING_PRAGMAS if name in pragmas]
    return all(lines == ["ok"] for lines in results) if results else None


def _profile(connection: object) -> dict[str, Any] | None:
    name = getattr(connection, "profile", None)
    if not isinstance(name, str):
        return None
    fields = ("name", "requested", "effective", "skipped")
    settings = getattr(connection, "settings", None) or ()
    return {
        "name": name,
        "busy": getattr(connection, "busy", None),
        "timeout_seconds": getattr(connection, "timeout", None),
        "settings": [dict(zip(fields, setting, strict=True)) for setting in settings],
    }


def _existing_file(path: Path) -> Path:
    """The resolved path: SQLite names the files beside a database after its link's target."""
    try:
        resolved = path.resolve(strict=True)
        is_file = resolved.is_file()
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ReportError(f"{path}: {reason}") from error
    if resolved.is_dir():
        raise ReportError(f"{path}: Is a directory")
    if not is_file:
        raise ReportError(f"{path}: not a regular file")
    return resolved


def _shared_commit(path: Path) -> dict[str, Any] | None:
    import oxlite

    try:
        group = oxlite.shared_commit_group(path)
    except OSError as error:
        raise ReportError(f"{path}: {error.strerror or error}") from error
    return None if group is None else {**group}


def _access(path: Path) -> str:
    beside = (path.with_name(path.name + suffix) for suffix in ("-wal", "-journal"))
    return "read-only" if any(file.exists() for file in beside) else "read-write"


def _uri(path: Path, access: str) -> str:
    # Neither mode creates a file.
    return f"{path.as_uri()}?mode={'ro' if access == 'read-only' else 'rw'}"


def _unreadable(database: Path | str | None, error: Exception) -> ReportError:
    message = " ".join(str(error).split())
    if database is not None and str(database) not in message:
        message = f"{database}: {message}"
    if str(getattr(error, "sqlite_errorname", "")).startswith("SQLITE_READONLY"):
        message += (
            " (a crash left it to be recovered, which a report must not do:"
            " open it once with the application that owns it)"
        )
    return ReportError(message)


def _notes(made: Mapping[str, Any], access: str) -> list[str]:
    notes = []
    profile, pragmas = made["profile"], made["connection"]["pragmas"]
    if access == "memory":
        notes.append("No database was named: this is one in memory.")
    if access == "read-only":
        notes.append(
            "Opened read-only, because a -wal or -journal file is beside it;"
            " a writing connection has the same settings."
        )
    for setting in profile["settings"] if profile else ():
        if setting["name"] == "journal_mode" and setting["skipped"] and access != "memory":
            notes.append(
                f"The journal mode was left at {pragmas['journal_mode']}; an application that opens"
                f" this file with the profile {profile['name']} turns it to"
                f" {setting['requested']}, for good."
            )
    if profile and profile["busy"] in _WAYS_TO_WAIT:
        notes.append(
            "busy_timeout reads 0 because locks are waited for by Oxlite's own handler:"
            f" {_WAYS_TO_WAIT[profile['busy']]}, for up to {profile['timeout_seconds']:g} s."
        )
    return notes


def _notes_of_shared_commit(group: Mapping[str, Any] | None) -> list[str]:
    if group is None or group["poisoned"] is None:
        return []
    return [
        f"Nothing is committed by the processes that share their syncs: {group['poisoned']}."
        " Look at the disk, then stop all processes that use the database; the first one to open"
        ' it again with durable_commit="shared" checks it.'
    ]
