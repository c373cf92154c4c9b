"""Rounds: processes use two caches together and are killed again and again; then all is looked at.

This process has no cache, so its forks may have theirs. Whom a kill meets follows from the seed as
far as that can be: anybody, all at once, one in the midst of a write, or one that computes a value
for which others wait.

Invariant: nothing waits without a limit, and no child outlives this process.
"""

import itertools
import os
import random
import shutil
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn

from tests.cache_kills.board import SLOTS, Adding, Board, Doing, Slot
from tests.cache_kills.judge import Bounds, judge
from tests.cache_kills.values import COUNTERS
from tests.cache_kills.worker import Worker
from tests.kill_campaigns import WrongError

from oxlite.bench.harness.bootstrap import die_with_parent

__all__ = ["HANGS_AFTER_SECONDS", "WAITS_AT_MOST_SECONDS", "Campaign", "Tally"]

HANGS_AFTER_SECONDS: Final = 20.0
"""Who does nothing for so long hangs."""

WAITS_AT_MOST_SECONDS: Final = 5.0
"""So long a ``get_or_set`` may take, though one after the other is killed who computes."""

_LOOK_SECONDS: Final = 0.0002
_LOOK_FOR_HOLDER_SECONDS: Final = 0.03
_LOOK_FOR_WRITER_SECONDS: Final = 0.05
_LOOK_SHORTLY_SECONDS: Final = 0.00001
_CALL_SECONDS: Final = 0.0001
_WRITES: Final = (
    *[Doing.INCR] * 3,
    Doing.ADD,
    Doing.SET,
    Doing.DELETE,
    Doing.TOUCH,
    Doing.LIMITED_SET,
)
_ROUNDS_OF_A_CACHE: Final = 12
_PAUSES_SECONDS: Final = (0.003, 0.01, 0.03)
_KILLS_OF_A_ROUND: Final = (8, 50)


@dataclass
class Tally:
    """What was done."""

    killed: Counter[Doing] = field(default_factory=Counter)
    """By what they were doing."""
    holders: int = 0
    """Those that computed a value for all when they were killed."""
    all_at_once: int = 0
    rounds: int = 0
    caches: int = 0
    increments: int = 0
    operations: int = 0
    unanswered: int = 0
    """Steps that were begun and not acknowledged, and are there."""
    longest_seconds: float = 0.0
    """The longest ``get_or_set``."""

    @property
    def kills(self) -> int:
        """How many processes were killed."""
        return self.killed.total()


class Campaign:
    """Kills, round by round.

    Args:
        folder: Where the caches are.
        seed: Of what is drawn.

    Attributes:
        tally: What was done.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.tally = Tally()
        self._folder = folder
        self._place = folder / "0"
        self._source = random.Random(seed)
        self._board = Board()
        self._bounds = Bounds()
        self._lives = 0
        self._children: dict[int, int] = {}
        """The process in each slot."""
        self._beats: dict[int, tuple[int, float]] = {}

    def run(self, kills: int, progress: Callable[[Tally], None] = lambda tally: None) -> None:
        """Go on until so many have been killed.

        Raises:
            WrongError: Something is missing or was never there, or somebody fails or hangs.
        """
        try:
            for number in itertools.count():
                if number % _ROUNDS_OF_A_CACHE == 0:
                    self._begin_anew(number // _ROUNDS_OF_A_CACHE)
                self._round()
                progress(self.tally)
                if self.tally.kills >= kills:
                    return
        finally:
            for pid in self._children.values():
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)

    def _begin_anew(self, number: int) -> None:
        """A folder without files: those who open them meet each other, and are killed meanwhile."""
        if self.tally.caches:
            shutil.rmtree(self._place)
        self._place = self._folder / str(number)
        self._place.mkdir()
        self._board.clear()
        self._bounds = Bounds()
        self.tally.caches += 1

    def _round(self) -> None:
        source, tally = self._source, self.tally
        longest_pause = source.choice(_PAUSES_SECONDS)
        until = tally.kills + source.randint(*_KILLS_OF_A_ROUND)
        while tally.kills < until and not self._board.is_at_its_end():
            for number in range(SLOTS):
                if number not in self._children:
                    self._start(number)
            time.sleep(source.uniform(0, longest_pause))
            self._look()
            match source.randrange(12):
                case 0:
                    tally.all_at_once += 1
                    self._kill(list(self._children))
                case 1 | 2 | 3:
                    self._kill([self._holder()])
                case 4 | 5 | 6 | 7 | 8 | 9:
                    self._kill([self._writing(source.choice(_WRITES))])
                case _:
                    self._kill([source.choice(list(self._children))])
        if source.random() < 0.5:
            self._stop()
        self._kill(list(self._children))
        self._judge()

    def _holder(self) -> int:
        """Somebody who computes what others wait for; anybody if there is none for some time."""
        ends = time.monotonic() + _LOOK_FOR_HOLDER_SECONDS
        while time.monotonic() < ends:
            for number in self._children:
                if self._board.slots[number].computing:
                    return number
            time.sleep(_LOOK_SECONDS)
        return self._source.choice(list(self._children))

    def _writing(self, what: Doing) -> int:
        """Somebody who is in the midst of that call; anybody if nobody is soon."""
        ends = time.monotonic() + _LOOK_FOR_WRITER_SECONDS
        slots = [(number, self._board.slots[number]) for number in self._children]
        while time.monotonic() < ends:
            for number, slot in slots:
                if slot.doing == what:
                    # Anywhere between its beginning and what comes after it.
                    until = time.monotonic() + self._source.uniform(0, _CALL_SECONDS)
                    while time.monotonic() < until:
                        pass
                    return number
            # A loop without it would take a processor from those it looks at.
            time.sleep(_LOOK_SHORTLY_SECONDS)
        return self._source.choice(list(self._children))

    def _start(self, number: int) -> None:
        self._lives += 1
        slot = self._board.slots[number]
        slot.life, slot.doing = self._lives, Doing.NOTHING
        self._beats[number] = slot.beats, time.monotonic()
        self._children[number] = self._forked(
            lambda: Worker(self._place, self._board, number).work()
        )

    def _look(self) -> None:
        """See that nobody has ended by himself, or hangs, or computes beside another."""
        now = time.monotonic()
        alive = {self._board.slots[number].life for number in self._children}
        for number, pid in list(self._children.items()):
            slot = self._board.slots[number]
            gone, status = os.waitpid(pid, os.WNOHANG)
            if gone:
                del self._children[number]
                raise WrongError(self._complaint(pid, os.waitstatus_to_exitcode(status)))
            beats, since = self._beats[number]
            if slot.beats != beats:
                self._beats[number] = slot.beats, now
            elif now - since > HANGS_AFTER_SECONDS:
                raise WrongError(f"{slot.life} hangs in {Doing(slot.doing).name}")
            self._see_overlap(slot, alive)

    @staticmethod
    def _see_overlap(slot: Slot, alive: set[int]) -> None:
        if slot.overlap in alive:
            raise WrongError(f"{slot.life} computes what {slot.overlap} computes")
        slot.overlap = 0

    def _kill(self, numbers: list[int]) -> None:
        # All have the signal before any of them is waited for.
        for number in numbers:
            os.kill(self._children[number], signal.SIGKILL)
        for number in numbers:
            pid = self._children.pop(number)
            _, status = os.waitpid(pid, 0)
            if (code := os.waitstatus_to_exitcode(status)) != -signal.SIGKILL:
                raise WrongError(self._complaint(pid, code))
            slot = self._board.slots[number]
            self.tally.killed[Doing(slot.doing)] += 1
            self.tally.holders += slot.computing != 0
            self._settle(slot)

    def _settle(self, slot: Slot) -> None:
        """Note what a process that is no more has said, so that another can have its slot."""
        slot.computing = 0
        for index in range(len(COUNTERS)):
            counters = slot.counters
            self._bounds.least[index] += counters.acknowledged[index]
            self._bounds.most[index] += counters.begun[index]
            self.tally.increments += counters.acknowledged[index]
            counters.begun[index] = counters.acknowledged[index] = 0
        for number, how in enumerate(slot.adding):
            if how:
                self._bounds.adding[number].append((slot.life, Adding(how)))
                slot.adding[number] = Adding.NOT_TRIED
        self.tally.longest_seconds = max(self.tally.longest_seconds, slot.longest / 1e6)
        if slot.longest > WAITS_AT_MOST_SECONDS * 1e6:
            raise WrongError(f"get_or_set has taken {slot.longest / 1e6:.1f} s")

    def _stop(self) -> None:
        """Have all come to their end by themselves."""
        self._board.common[Board.STOP] = 1
        ends = time.monotonic() + HANGS_AFTER_SECONDS
        while self._children:
            if time.monotonic() > ends:
                doing = [Doing(self._board.slots[n].doing).name for n in self._children]
                raise WrongError(f"these do not end: {doing}")
            for number, pid in list(self._children.items()):
                gone, status = os.waitpid(pid, os.WNOHANG)
                if gone:
                    del self._children[number]
                    if code := os.waitstatus_to_exitcode(status):
                        raise WrongError(self._complaint(pid, code))
                    self._settle(self._board.slots[number])
            time.sleep(_LOOK_SECONDS)

    def _judge(self) -> None:
        board, bounds = self._board, self._bounds
        pid = self._forked(lambda: judge(self._place, board, bounds))
        ends = time.monotonic() + HANGS_AFTER_SECONDS
        while not (gone := os.waitpid(pid, os.WNOHANG))[0]:
            if time.monotonic() > ends:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                raise WrongError("nobody can look at the caches any more")
            time.sleep(_LOOK_SECONDS)
        if code := os.waitstatus_to_exitcode(gone[1]):
            raise WrongError(self._complaint(pid, code))
        for index, total in enumerate(board.found):
            self.tally.unanswered += total - bounds.least[index]
            bounds.least[index] = bounds.most[index] = total
        bounds.adding = Bounds().adding
        board.begin_round(board.common[Board.ROUND] + 1)
        self.tally.operations = sum(slot.beats for slot in board.slots)
        self.tally.rounds += 1

    def _forked(self, work: Callable[[], object]) -> int:
        parent = os.getpid()
        pid = os.fork()
        if not pid:
            self._in_the_child(parent, work)
        return pid

    def _in_the_child(self, parent: int, work: Callable[[], object]) -> NoReturn:
        code = 1
        try:
            die_with_parent()
            if os.getppid() == parent:
                work()
            code = 0
        except BaseException:
            (self._folder / f"{os.getpid()}.complaint").write_text(traceback.format_exc())
        finally:
            os._exit(code)

    def _complaint(self, pid: int, code: int) -> str:
        complaint = self._folder / f"{pid}.complaint"
        why = complaint.read_text() if complaint.exists() else "for no reason given"
        return f"a process ended with {code}: {why}"
