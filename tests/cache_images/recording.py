"""Recordings: what a workload has done to the files of its cache.

What stands beside them is not recorded: ``-locks`` is empty, and ``-used`` is written through a
mapping and may hold anything.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.cache_images.workloads import Play
from tests.crash import log
from tests.crash.disk import Content, Disk, UnknowableError
from tests.crash.log import Event
from tests.faults.judge import scratch

ROOT = Path(__file__).resolve().parents[2]
_LOG_BYTES = 1 << 28
_NOT_RECORDED = ("-shm", "-gate", "-used", "-locks")
_SECONDS = 120


@dataclass
class Recording:
    """What was done, from what was there before to what was there at the end."""

    play: Play
    base: Content
    events: list[Event]
    final: Content


def record(play: Play) -> Recording:
    """Have something played.

    Raises:
        UnknowableError: Something was done to the files that was not recorded.
        subprocess.CalledProcessError: The workload has failed.
    """
    with tempfile.TemporaryDirectory(prefix="oxlite-cache-images-", dir=scratch()) as name:
        folder, base, path = (Path(name) / part for part in ("play", "base", "log"))
        folder.mkdir()
        log.create(path, _LOG_BYTES)
        task = {"folder": str(folder), "base": str(base), "log": str(path), **asdict(play)}
        subprocess.run(
            [sys.executable, "-m", "tests.cache_images.player", json.dumps(task)],
            cwd=ROOT,
            check=True,
            timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
        )
        recording = Recording(play, _files_of(base), log.read(path), _files_of(folder))
        shutil.rmtree(folder)
    disk = Disk(recording.base)
    for event in recording.events:
        disk.apply(event)
    if disk.current() != recording.final:
        raise UnknowableError("not all was recorded that was done to the cache")
    return recording


def _files_of(folder: Path) -> Content:
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if not path.name.endswith(_NOT_RECORDED)
    }
