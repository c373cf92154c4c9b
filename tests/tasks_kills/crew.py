"""Processes that are forked, killed, stopped, and judged by how they end.

The process that forks has no connection and no thread, so its children may have theirs. What a
supervisor forks becomes its child when the supervisor is killed.

Invariants: nothing waits without a limit; whoever ends otherwise than he may is an error, with what
he has complained of.
"""

import ctypes
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final, NoReturn

from tests.kill_campaigns import WrongError
from tests.tasks_kills.timeline import Timeline

from oxlite.bench.harness.bootstrap import die_with_parent

__all__ = ["Crew", "Member", "Role"]

_SUBREAPER: Final = 36
"""``PR_SET_CHILD_SUBREAPER``."""


class Role(Enum):
    """What a process does."""

    ENQUEUER = "enqueuer"
    WORKER = "worker"
    SUPERVISOR = "supervisor"
    SUPERVISED = "worker of a supervisor"
    JUDGE = "judge"


_ENDS_OF_THE_SUPERVISED: Final = (0, -signal.SIGKILL, -signal.SIGTERM)
"""Who is asked to end before he runs anything ends at once."""

_RUN_TASKS: Final = (Role.WORKER, Role.SUPERVISED)


@dataclass
class Member:
    """A process.

    Attributes:
        pid: Its number.
        role: What it does.
        parent: The supervisor of one that is supervised.
        is_ending: Whether it was asked to end.
        goes_on_at: When it is to go on, if it is stopped.
        slot: Its place among its kind.
    """

    pid: int
    role: Role
    parent: int = 0
    is_ending: bool = False
    goes_on_at: float | None = None
    slot: int = 0


class Crew:
    """See the module.

    Attributes:
        members: Those that live, as far as is known.
        timeline: What was done to them.
        poisoned: How many were killed by what they ran, of those that are seen.
        gave_up: How many supervisors have ended by themselves: one of theirs was killed before
            it was ready, and no other one was.
    """

    def __init__(self, folder: Path) -> None:
        self.members: dict[int, Member] = {}
        self.timeline = Timeline()
        self.poisoned = self.gave_up = 0
        self._folder = folder
        ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0)

    def fork(self, role: Role, work: Callable[[], object], slot: int = 0) -> int:
        """Have a child do some work, and end."""
        parent = os.getpid()
        sys.stdout.flush()
        # Whoever is asked to end before he can hear it hears it then.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        pid = os.fork()
        if not pid:
            self._live(parent, role, work)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        self.members[pid] = Member(pid, role, slot=slot)
        self._note_birth(pid, role)
        return pid

    def _note_birth(self, pid: int, role: Role) -> None:
        # A number may have been another one's.
        for instants in (self.timeline.births, self.timeline.ends):
            instants.pop(pid, None)
        if role in _RUN_TASKS:
            self.timeline.births[pid] = time.time()

    def _live(self, parent: int, role: Role, work: Callable[[], object]) -> NoReturn:
        code = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            die_with_parent()
            random.seed()
            descriptor = os.open(self._folder / "log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
            os.dup2(descriptor, 2)
            if role in (Role.ENQUEUER, Role.JUDGE):
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            if os.getppid() == parent:
                work()
            code = 0
        except BaseException:
            self._complaint(os.getpid()).write_text(traceback.format_exc())
        finally:
            os._exit(code)

    def _complaint(self, pid: int) -> Path:
        return self._folder / f"{pid}.complaint"

    def of(self, *roles: Role) -> list[Member]:
        """Those of some roles that are not asked to end."""
        return [each for each in self.members.values() if each.role in roles and not each.is_ending]

    @property
    def running_tasks(self) -> list[Member]:
        """Workers that are there to stay, the oldest first."""
        births = self.timeline.births
        return sorted(self.of(*_RUN_TASKS), key=lambda each: births.get(each.pid, 0.0))

    def kill(self, members: list[Member]) -> int:
        """Kill them, all at once, whatever they do; how many lived."""
        killed = 0
        for member in members:
            self.timeline.kills[member.pid] = self.timeline.ends[member.pid] = time.time()
            with suppress(ProcessLookupError):
                os.kill(member.pid, signal.SIGKILL)
                killed += 1
        for member in members:
            self._go_on(member, is_signalled=False)
            if member.role is Role.SUPERVISED:
                # Its supervisor, or who comes after that, sees its end.
                self.members.pop(member.pid, None)
                continue
            self.members.pop(member.pid, None)
            _, status = os.waitpid(member.pid, 0)
            code = os.waitstatus_to_exitcode(status)
            if code != -signal.SIGKILL and not (member.is_ending and code == 0):
                raise self._wrong(member.pid, code)
        return killed

    def stop(self, member: Member, seconds: float) -> None:
        """Stop one for a while."""
        if member.goes_on_at is None:
            member.goes_on_at = time.time() + seconds
            self.timeline.stops.append((member.pid, time.time(), float("inf")))
            with suppress(ProcessLookupError):
                os.kill(member.pid, signal.SIGSTOP)

    def let_go_on(self, *, everybody: bool = False) -> None:
        """Those go on whose time is up, or everybody."""
        now = time.time()
        for member in self.members.values():
            if member.goes_on_at is not None and (everybody or member.goes_on_at <= now):
                self._go_on(member)

    def _go_on(self, member: Member, *, is_signalled: bool = True) -> None:
        if member.goes_on_at is None:
            return
        member.goes_on_at = None
        if is_signalled:
            with suppress(ProcessLookupError):
                os.kill(member.pid, signal.SIGCONT)
        stops = self.timeline.stops
        for index in range(len(stops) - 1, -1, -1):
            if stops[index][0] == member.pid:
                stops[index] = (member.pid, stops[index][1], time.time())
                return

    def end(self, member: Member) -> None:
        """Ask one to end."""
        self._go_on(member)
        member.is_ending = True
        self.timeline.ends[member.pid] = time.time()
        if member.role is Role.SUPERVISOR:
            for other in self.members.values():
                if other.parent == member.pid:
                    other.is_ending = True
                    self.timeline.ends[other.pid] = time.time()
        os.kill(member.pid, signal.SIGTERM)

    def look(self) -> list[Member]:
        """See who has ended since, and whom supervisors have begun.

        Raises:
            WrongError: Somebody has ended otherwise than he may.
        """
        ended = []
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if not pid:
                break
            code = os.waitstatus_to_exitcode(status)
            member = self.members.pop(pid, None)
            self.timeline.ends.setdefault(pid, time.time())
            if member is None:
                # A supervisor that was killed has had it.
                if code not in _ENDS_OF_THE_SUPERVISED:
                    raise self._wrong(pid, code)
                continue
            if code == -signal.SIGKILL and member.role in _RUN_TASKS:
                self.poisoned += 1
            elif member.role is Role.SUPERVISED and code in _ENDS_OF_THE_SUPERVISED:
                pass
            elif member.role is Role.SUPERVISOR and code == 0 and not member.is_ending:
                self.gave_up += 1
            elif code != 0 or (member.role is Role.WORKER and not member.is_ending):
                raise self._wrong(pid, code)
            ended.append(member)
        for supervisor in self.of(Role.SUPERVISOR):
            self._look_for_children(supervisor.pid)
        for member in [each for each in self.members.values() if each.role is Role.SUPERVISED]:
            if not _lives(member.pid):
                del self.members[member.pid]
                self.timeline.ends.setdefault(member.pid, time.time())
                ended.append(member)
            elif member.parent not in self.members:
                # It finishes what it runs, and ends.
                member.is_ending = True
                self.timeline.ends.setdefault(member.pid, time.time())
        return ended

    def _look_for_children(self, pid: int) -> None:
        for child in _children_of(pid):
            if child not in self.members and _lives(child):
                self.members[child] = Member(child, Role.SUPERVISED, parent=pid)
                self._note_birth(child, Role.SUPERVISED)

    def _wrong(self, pid: int, code: int) -> WrongError:
        complaint = self._complaint(pid)
        why = complaint.read_text() if complaint.exists() else "for no reason given"
        return WrongError(f"process {pid} ended with {code}: {why}")

    def end_all(self) -> None:
        """Kill all that are left."""
        with suppress(WrongError):
            self.look()
        for member in list(self.members.values()):
            with suppress(ProcessLookupError):
                os.kill(member.pid, signal.SIGKILL)
        # A supervisor's are this process's by then.
        ends = time.monotonic() + 5.0
        while time.monotonic() < ends:
            try:
                if os.waitpid(-1, os.WNOHANG) == (0, 0):
                    for pid in _children_of(os.getpid()):
                        with suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)
                    time.sleep(0.01)
            except ChildProcessError:
                break
        self.members.clear()


def _children_of(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
