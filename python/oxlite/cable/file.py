"""The file of a cable: which one it is now, and opening it.

Invariants:
- Whoever opens it, in an event loop or in the courier's thread, checks and prepares the same.
- That it was deleted or replaced is said once, whoever finds it.
"""

import logging
import os
import threading
from typing import Any, Final

from oxlite import Database, aio
from oxlite.cable import store
from oxlite.connection import ProfileName

__all__ = ["CableFile", "Identity"]

_log = logging.getLogger("oxlite.cable")

Identity = tuple[int, int] | None

_COURIER_WAITS_SECONDS: Final = 0.5
"""How long the courier waits for a lock before it looks after others, and tries again."""


class CableFile:
    """See the module.

    Attributes:
        path: Its name, absolute.
    """

    def __init__(self, path: str, profile: ProfileName) -> None:
        self.path = path
        self._profile = profile
        self._lock = threading.Lock()
        self._known: Identity = None

    def identity(self) -> Identity:
        """Which file the name leads to."""
        try:
            status = os.stat(self.path)  # noqa: PTH116 - at each message, and half as fast by Path
        except OSError:
            return None
        return status.st_dev, status.st_ino

    async def opened(self) -> tuple[aio.Database, Identity]:
        """Open it for event loops.

        Raises:
            ValueError: It holds other tables, which the profile could damage.
            oxlite.sqlite3.Error: It cannot be opened.
        """
        database = aio.Database(self.path, profile=self._profile)
        try:
            # Before the first write: what is not known to be open yet announces nothing.
            await database.open()
            self._check(await database.query(store.OTHER_TABLES))
            await store.TABLES.aprepare(database)
        except BaseException:
            await database.close()
            raise
        return database, self._noted()

    def opened_for_courier(self) -> tuple[Database, Identity]:
        """Open it for the courier's thread. Raises as ``opened``."""
        database = Database(
            self.path, profile=self._profile, timeout=_COURIER_WAITS_SECONDS, readers=1
        )
        try:
            self._check(database.query(store.OTHER_TABLES))
            if not store.TABLES.is_found(database.query(store.TABLES.find)):
                with database.write() as connection:
                    store.TABLES.prepare(connection)
        except BaseException:
            database.close()
            raise
        return database, self._noted()

    def _check(self, others: list[Any]) -> None:
        if others and self._profile == "cache":
            raise ValueError(
                f"{self.path} holds other tables, and with profile='cache' a power cut could"
                " damage them: give the cable a file of its own, or profile='web'"
            )

    def _noted(self) -> Identity:
        identity = self.identity()
        with self._lock:
            known, self._known = self._known, identity
        if known not in (None, identity):
            _log.warning(
                "%s was deleted or replaced: what waited there is lost, and of its groups those"
                " channels are left that processes add anew",
                self.path,
            )
        return identity
