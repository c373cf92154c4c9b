"""What Litestream logs: passed on without credentials, and kept where it is an error.

Why a store takes nothing is in its log alone, and there twice a minute.
"""

import json
import logging
import re
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from oxlite.operations.files import litestream_directory
from oxlite.replication.litestream import Litestream

__all__ = ["Complaints", "is_of_damage"]

_log: Final = logging.getLogger("oxlite.replication")

_LEVELS: Final = {"ERROR": logging.ERROR, "WARN": logging.WARNING, "INFO": logging.DEBUG}


class Complaints:
    """The last error of each database, since something was sent. Any thread may use it.

    Args:
        litestream: Whose credentials are not to be seen.
    """

    def __init__(self, litestream: Litestream) -> None:
        self._litestream = litestream
        # By the names of files, as Litestream has them.
        self._latest: dict[str, str] = {}

    def pass_on(self, said: IO[bytes]) -> None:
        """Log what it says, until it ends."""
        with said:
            for line in said:
                text = line.decode(errors="replace").strip()
                level, name = logging.WARNING, ""
                with suppress(ValueError, AttributeError, TypeError):
                    document = json.loads(text)
                    level = _LEVELS.get(str(document.pop("level", "")), logging.DEBUG)
                    document.pop("time", None)
                    name = str(document.get("db", ""))
                    message = str(document.pop("msg", ""))
                    more = " ".join(f"{key}={value}" for key, value in document.items())
                    text = f"{message} {more}".strip()
                if text:
                    told = self._litestream.without_secrets(text)
                    if level >= logging.ERROR:
                        self._latest[name] = told
                    _log.log(level, "Litestream: %s", told)

    def explain(self, database: Path, failure: str) -> str:
        """A failure of a database, with the last error that was logged of it."""
        latest = self._latest.get(database.name)
        return f"{failure}: {latest}" if latest else failure

    def forget(self, database: Path) -> None:
        """Something was sent: what was logged before is over."""
        self._latest.pop(database.name, None)


def is_of_damage(database: Path, failure: str) -> bool:
    """Whether Litestream cannot read what it has noted beside a database; all else is its store's.

    Source: ``LTXError`` of Litestream 0.5.17.
    """
    notes = re.escape(str(litestream_directory(database)))
    pattern = (
        rf"(?<!-)\b(?:decode|verify) ltx file {notes}/"
        rf"|(?<!-)\bopen ltx file {notes}/\S+: .*no such file"
    )
    return re.search(pattern, failure) is not None
