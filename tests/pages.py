"""The pages that processes share their syncs by, as tests find them and take them away.

A page stays where nobody was left who could take it along: its processes were killed, or a sync has
failed. Whoever removes such a database removes it as well, or the next file that is given the same
inode finds it.
"""

import os
from pathlib import Path


def page_of(path: Path) -> Path:
    """The page that the processes of a database share."""
    status = path.stat()
    return Path(f"/dev/shm/oxlite-{os.geteuid()}-{status.st_dev:x}-{status.st_ino:x}")


def remove_page_of(path: Path) -> None:
    """Removes it, if there is one."""
    if path.exists():
        page_of(path).unlink(missing_ok=True)


def has_unknown_end(path: Path) -> bool:
    """Whether the page says that a sync was begun and has not ended."""
    try:
        page = page_of(path).read_bytes()
    except FileNotFoundError:
        return False
    begun, ended, beginning = (_word(page, number) for number in (6, 7, 9))
    return begun != ended or beginning != 0


def is_poisoned(path: Path) -> bool:
    """Whether the page says that a sync has failed."""
    return _word(page_of(path).read_bytes(), 5) != 0


def _word(page: bytes, number: int) -> int:
    """One of its words, by the numbers in `shared_commit/member.rs`."""
    return int.from_bytes(page[number * 64 : number * 64 + 8], "little")
