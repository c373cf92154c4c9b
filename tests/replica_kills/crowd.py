"""Processes that are found and killed, whoever has begun them: a word in their environment tells.

Invariant: who has that word is ours; nobody else is ever sent a signal.
"""

import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path

from tests.kill_campaigns import WrongError

__all__ = ["Crowd"]

_NAME = "OXLITE_REPLICA_KILLS"
_GONE_WITHIN_SECONDS = 30.0


class Crowd:
    """All who were begun with one word.

    Args:
        word: Which.
    """

    def __init__(self, word: str) -> None:
        self._mark = f"{_NAME}={word}".encode()
        self.environment = {**os.environ, _NAME: word}

    def members(self) -> dict[int, str]:
        """Their numbers, and what each is: ``"litestream"``, ``"replicator"`` or ``"writer"``."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal():
                continue
            with suppress(OSError):
                if self._mark in (entry / "environ").read_bytes().split(b"\0"):
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                    found[int(entry.name)] = _what(words)
        return found

    def kill(self, what: str) -> int:
        """Kill all of one kind; how many."""
        count = 0
        for process_id, kind in self.members().items():
            if kind == what:
                _kill(process_id)
                count += 1
        return count

    def kill_all(self, choice: random.Random, pause_seconds: float) -> list[str]:
        """Kill them in any order, until none is left; who was killed."""
        killed: dict[int, str] = {}
        ends = time.monotonic() + _GONE_WITHIN_SECONDS
        while there := self.members():
            order = list(there)
            choice.shuffle(order)
            for process_id in order:
                if _kill(process_id):
                    killed[process_id] = there[process_id]
                if pause_seconds:
                    time.sleep(choice.random() * pause_seconds)
            if time.monotonic() > ends:
                raise WrongError(f"they do not go: {there}")
        return list(killed.values())


def _what(words: list[bytes]) -> str:
    if words[0].endswith(b"litestream"):
        return "litestream" if b"replicate" in words[1:2] else "litestream that looks"
    return (
        "writer" if b"tests.replica_kills.writers" in words and b"--" not in words else "replicator"
    )


def _kill(process_id: int) -> bool:
    try:
        os.kill(process_id, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
