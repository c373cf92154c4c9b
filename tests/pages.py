"""The pages that processes share, as tests find them and take them away.

A page stays where nobody was left who could take it along: its processes were killed, or a shared
sync has failed. Whoever removes such a database removes it as well, or the next file that is given
the same inode finds it.
"""

import os
import re
from contextlib import suppress
from pathlib import Path

_WATCHER = re.compile(r"^lock:.* 255 255$", re.MULTILINE)


def page_of(path: Path) -> Path:
    """The page that the processes of a database share."""
    status = path.stat()
    return Path(f"/dev/shm/oxlite-{os.geteuid()}-{status.st_dev:x}-{status.st_ino:x}")


def signals_page_of(path: Path) -> Path:
    """The page by which the processes of a database wake those who listen."""
    page = page_of(path)
    return page.with_name(page.name.replace("oxlite-", "oxlite-signals1-", 1))


def is_watcher(pid: int, page: Path) -> bool:
    """Whether a process watches the files for all who listen: it has the page's last byte."""
    with suppress(FileNotFoundError, ProcessLookupError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                if descriptor.readlink() == page and _WATCHER.search(
                    Path(f"/proc/{pid}/fdinfo/{descriptor.name}").read_text()
                ):
                    return True
    return False


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
