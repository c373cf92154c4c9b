"""Kills senders and members of a group at random moments, beside members that stay.

Invariant: who stays is never killed, only stopped for a moment; so each of its members must have
heard all that any life has sent, from the first number to the last that was acknowledged.
"""

import asyncio
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.cable_kills.member import CAPACITY, GROUP
from tests.kill_campaigns import WrongError
from tests.wait import LIMIT_SECONDS

from oxlite.cable import Cable

STAYING = 2
MEMBERS = 5
EXPIRY_SECONDS = 5.0
STOPPED_AT_MOST_SECONDS = 0.5
PAUSE_AT_MOST_SECONDS = 0.2
ENDS_WITHIN_SECONDS = 60.0

Process = subprocess.Popen[str]


class Campaign:
    """See the module.

    Attributes:
        killed: How many of each kind.
        stopped: How often one that stays was stopped for a moment.
        messages: How many the lives have sent.
        delivered: How many messages the members that stay were given.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._path = folder / "cable.db"
        self._folder = folder / "sent"
        self._folder.mkdir()
        self._random = random.Random(seed)
        self._lives = 0
        self.killed = {"senders": 0, "processes with members": 0}
        self.stopped = self.messages = self.delivered = 0

    def run(self, kills: int, progress: Callable[["Campaign"], None] = lambda _: None) -> None:
        """Kill so many.

        Raises:
            WrongError: Something was lost, came twice, or came in another order.
        """
        staying = [self._member() for _ in range(STAYING)]
        senders = [self._sender() for _ in range(2)]
        members = [self._member() for _ in range(2)]
        everybody = [staying, senders, members]
        try:
            while sum(self.killed.values()) < kills:
                time.sleep(self._random.uniform(0, PAUSE_AT_MOST_SECONDS))
                self._strike(staying, senders, members)
                progress(self)
            for sender in senders:
                sender.communicate("", timeout=LIMIT_SECONDS)
                if sender.returncode:
                    raise WrongError("a sender has failed")
            asyncio.run(self._stop())
            for process in staying:
                self._judge(process)
        finally:
            for process in (each for some in everybody for each in some):
                process.kill()
                process.communicate()

    def _strike(
        self, staying: list[Process], senders: list[Process], members: list[Process]
    ) -> None:
        match self._random.randrange(8):
            case 0:
                process = self._random.choice(staying)
                process.send_signal(signal.SIGSTOP)
                time.sleep(self._random.uniform(0, STOPPED_AT_MOST_SECONDS))
                process.send_signal(signal.SIGCONT)
                self.stopped += 1
            case 1 | 2 | 3:
                self._kill(senders, self._sender)
                self.killed["senders"] += 1
            case _:
                self._kill(members, self._member)
                self.killed["processes with members"] += 1

    def _kill(self, processes: list[Process], begin: Callable[[], Process]) -> None:
        index = self._random.randrange(len(processes))
        if processes[index].poll() is not None:
            raise WrongError("a process has ended by itself")
        processes[index].kill()
        processes[index].communicate()
        processes[index] = begin()

    def _member(self) -> Process:
        process = self._started("member", str(MEMBERS), str(EXPIRY_SECONDS))
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise WrongError("a process with members does not begin")
        return process

    def _sender(self) -> Process:
        self._lives += 1
        return self._started("sender", str(self._lives), str(self._folder), str(EXPIRY_SECONDS))

    def _started(self, module: str, *arguments: str) -> Process:
        command = [sys.executable, "-m", f"tests.cable_kills.{module}", str(self._path), *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    async def _stop(self) -> None:
        cable = Cable(self._path, expiry=EXPIRY_SECONDS, capacity=CAPACITY)
        await cable.group_send(GROUP, {"stop": True})
        await cable.close()

    def _judge(self, process: Process) -> None:
        said, _ = process.communicate(timeout=ENDS_WITHIN_SECONDS)
        if process.returncode:
            raise WrongError("a process that stays has failed")
        sent = {life.name: int(life.read_text() or -1) for life in self._folder.iterdir()}
        self.messages = sum(number + 1 for number in sent.values())
        for heard in json.loads(said):
            for life, number in sent.items():
                first, latest = heard.get(life, (0, -1))
                # One more may have been sent than was acknowledged.
                if first != 0 or latest not in (number, number + 1):
                    raise WrongError(f"{number} of {life} was sent, {first} to {latest} heard")
                self.delivered += latest + 1
