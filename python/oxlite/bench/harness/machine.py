"""What about this machine a reader must know to judge a run, in sentences.

The full description is the environment report; this only looks for what makes
figures misleading: a directory that is not on a disk, a machine that is busy.
"""

import os
from pathlib import Path

IN_MEMORY = frozenset({"tmpfs", "ramfs"})
BUSY_PERCENT = 15.0
LOOK_SECONDS = 0.3


def file_system(directory: Path) -> str | None:
    """The type of the file system ``directory`` is on, if it can be told."""
    import psutil

    target = directory.resolve()
    best: tuple[int, str] | None = None
    for partition in psutil.disk_partitions(all=True):
        mount = Path(partition.mountpoint)
        # Of two mounts on one place the later one hides the earlier.
        if target.is_relative_to(mount) and (best is None or len(mount.parts) >= best[0]):
            best = (len(mount.parts), partition.fstype)
    return None if best is None else best[1]


def notes(directory: Path) -> list[str]:
    """Warnings about measuring in ``directory``, now."""
    import psutil

    found = []
    kind = file_system(directory)
    if kind in IN_MEMORY:
        found.append(
            f"{directory} is in memory ({kind}): nothing there waits for a disk. "
            f"Choose another place with --directory."
        )
    busy_percent = psutil.cpu_percent(interval=LOOK_SECONDS)
    if busy_percent > BUSY_PERCENT:
        found.append(
            f"the machine was {busy_percent:.0f} % busy before the run began "
            f"({os.cpu_count()} processors): expect noise."
        )
    return found
