"""What begins replication on a server: a unit of systemd, the entry point of a container."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from oxlite.replication.errors import ReplicationError
from oxlite.replication.replica import refuse_path
from oxlite.replication.store import store_of

__all__ = ["STOP_SECONDS", "entry_point", "systemd_unit"]

STOP_SECONDS: Final = 150
"""After which a stop is a kill: 60 s for the application to end (gunicorn gives its requests 30),
40 s to send the last, 40 s for Litestream's own end (``Pace.ends_within``), and 10 s to spare."""


def systemd_unit(
    databases: Sequence[Path],
    to: str,
    *,
    command: Sequence[str] = (),
    user: str | None = None,
    credentials: Path | None = None,
) -> str:
    """A unit that replicates, beside an application or as its parent.

    Args:
        databases: Their files.
        to: As for ``replicas_of``.
        command: The application; without one it is beside another unit.
        user: Who runs it; by default root does.
        credentials: A file for ``--credentials``, which only root need be able to read: systemd
            hands it on.

    Raises:
        ReplicationError: ``to`` is no place, Litestream cannot open a database of such a path, or a
            line of the unit would have a line break in it, or go on in the next one.
    """
    given = ["--credentials", "${CREDENTIALS_DIRECTORY}/replica"] if credentials else []
    words = _words(databases, to, given, command)
    lines = [
        "[Unit]",
        f"Description={'Application and replication' if command else 'Replication'} of"
        f" {_as_it_is(', '.join(path.name for path in databases))}",
        "Wants=network-online.target",
        "After=network-online.target",
        "",
        "[Service]",
        "Type=exec",
        *([f"User={_as_it_is(user)}"] if user else []),
        *(
            [f"LoadCredential=replica:{_as_it_is(str(credentials.absolute()))}"]
            if credentials
            else []
        ),
        f"WorkingDirectory={_as_it_is(str(Path.cwd()))}",
        f"ExecStart={' '.join(map(_systemd_quoted, words))}",
        "# The application ends first; then what it has committed last is sent, up to 80 s long.",
        "KillMode=mixed",
        f"TimeoutStopSec={STOP_SECONDS}",
        "# If the store does not answer it does not begin, and is tried again.",
        "Restart=on-failure",
        "RestartSec=5",
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    ]
    if any("\n" in line or "\0" in line for line in lines):
        raise ReplicationError("a word of a unit has no line break in it")
    if any(line.endswith("\\") for line in lines):
        raise ReplicationError("a name at the end of a unit's line has no backslash at its end")
    return "\n".join(lines) + "\n"


def entry_point(databases: Sequence[Path], to: str) -> str:
    """A script for a container's ``ENTRYPOINT``: its arguments are the application.

    Raises:
        ReplicationError: ``to`` is no place, or Litestream cannot open a database of such a path.
    """
    words = _words(databases, to, [], ())
    words[0] = "oxlite"  # where the image has it
    return (
        "#!/bin/sh\n"
        "# Credentials come by the environment: docs/replication.md lists their names.\n"
        f'exec {shlex.join(words)} -- "$@"\n'
    )


def _words(
    databases: Sequence[Path], to: str, more: Sequence[str], command: Sequence[str]
) -> list[str]:
    if not databases:
        raise ReplicationError("there is nothing to replicate: name a database")
    store_of(to)
    for path in databases:
        refuse_path(path.absolute())
    program = Path(sys.executable).with_name("oxlite")
    words = [str(program), "replicate", *(str(path.absolute()) for path in databases)]
    words += ["--to", to, *more]
    return [*words, "--", *command] if command else words


def _as_it_is(text: str) -> str:
    """A value of a unit in which systemd reads no specifier: ``%n`` is a file's name here."""
    return text.replace("%", "%%")


def _systemd_quoted(word: str) -> str:
    """A word as a unit has it (https://www.freedesktop.org/software/systemd/man/systemd.service.html).

    Of what systemd would read in it only the directory of credentials is meant.
    """
    if word.startswith("${CREDENTIALS_DIRECTORY}/"):
        return word
    text = word.replace("\\", "\\\\").replace('"', r"\"").replace("$", "$$")
    text = _as_it_is(text)
    is_plain = text and not any(character in text for character in " \t'\";\\")
    return text if is_plain else f'"{text}"'
