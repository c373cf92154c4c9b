"""Opens an image as after a reboot, and says what it holds.

Invariant: nothing of one image is left when the next is opened.
"""

import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.crash.disk import Content
from tests.crash.ledger import NOT_THERE, Entry, Found, inconsistencies
from tests.faults.judge import scratch

from oxlite import sqlite3

DATABASE = "ledger.db"
COPY = "copy.db"
_STALE_INDEX = b"\xa5" * 32_768


def digest_of(content: Content) -> bytes:
    """Tells images apart."""
    digest = hashlib.blake2b(digest_size=8)
    for name in sorted(content):
        digest.update(f"{name} {len(content[name])} ".encode())
        digest.update(content[name])
    return digest.digest()


class Opener:
    """A folder in which one image after the other is opened."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="oxlite-crash-", dir=scratch()))
        self.final: list[Entry] = []
        """What the database held at the end, with which all is compared."""
        self.opened = 0

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Removes the files."""
        shutil.rmtree(self.folder)

    def learn(self, content: Content) -> list[str]:
        """Takes this for what the database held at the end; what is wrong with it."""
        self.final = []
        self._lay_out(content, False)
        wrong, entries, _ = self._look(DATABASE)
        self.final = entries
        self._clear()
        return wrong

    def find(self, content: Content, digest: bytes) -> tuple[Found, Found]:
        """What the database and its copy hold."""
        self.opened += 1
        # What a file of shared memory held, nobody may believe after a reboot.
        self._lay_out(content, digest[0] % 8 == 0)
        found = [self._find(name) if name in content else NOT_THERE for name in (DATABASE, COPY)]
        left = self._clear() - {DATABASE, COPY}
        if left and not any(one.wrong for one in found):
            wrong = f"left over: {', '.join(sorted(left))}"
            found[0] = found[0]._replace(wrong=(*found[0].wrong, wrong))
        return found[0], found[1]

    def _lay_out(self, content: Content, with_stale_index: bool) -> None:
        for name, found in content.items():
            self._write(name, found)
            if with_stale_index and name.endswith("-wal"):
                self._write(f"{name.removesuffix('-wal')}-shm", _STALE_INDEX)

    def _write(self, name: str, content: bytes) -> None:
        descriptor = os.open(self.folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(descriptor, content)
        finally:
            os.close(descriptor)

    def _clear(self) -> set[str]:
        """Removes all files; which there were, but for journals that were never begun.

        A journal without a header says nothing, and SQLite lets it lie.
        """
        names = set(os.listdir(self.folder))  # noqa: PTH208 - a hundred thousand times
        for name in list(names):
            path = self.folder / name
            if name.endswith("-journal") and path.read_bytes()[:1] in {b"", b"\0"}:
                names.remove(name)
            path.unlink()
        return names

    def _find(self, name: str) -> Found:
        wrong, entries, has_schema = self._look(name)
        final = self.final
        count = len(entries)
        if entries != final[:count]:
            pairs = zip(entries, final, strict=False)
            count = next((n for n, (one, other) in enumerate(pairs) if one != other), len(final))
        beyond = tuple((token, part) for _, _, token, part, _ in entries[count:])
        return Found(tuple(wrong), has_schema, count, beyond)

    def _look(self, name: str) -> tuple[list[str], list[Entry], bool]:
        entries: list[Entry] = []
        try:
            connection = sqlite3.connect(self.folder / name, isolation_level=None, timeout=0)
            try:
                execute = connection.execute
                execute("PRAGMA synchronous = OFF")
                check = execute("PRAGMA integrity_check(3)").fetchall()
                if check != [("ok",)]:
                    return [f"corrupt: {text}" for (text,) in check], entries, False
                if execute("PRAGMA foreign_key_check").fetchall():
                    return ["corrupt: a foreign key points nowhere"], entries, False
                if not execute("SELECT 1 FROM sqlite_schema WHERE name = 'slot'").fetchall():
                    return [], entries, False
                entries = execute("SELECT * FROM entry ORDER BY id").fetchall()
                callers = execute("SELECT id, entries FROM caller").fetchall()
                slots = execute("SELECT * FROM slot").fetchall()
                return inconsistencies(entries, callers, slots), entries, True
            finally:
                connection.close()
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", type(error).__name__)
            return [f"unreadable: {name}: {error}"], entries, False
