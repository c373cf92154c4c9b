"""Rounds: some enqueue, some work, all are killed, stopped or ended; then all must have been done.

What is drawn follows from the seed: who enqueues and how, who works with how many threads, who is
killed, stopped for how long, or asked to end. A round lasts until as many have been killed and as
many tasks enqueued as is drawn. Then nobody enqueues any more, and nobody is begun anew but where
tasks have killed all others, so what waits must be done by those that are there.

``python -m tests.tasks_kills.campaign FOLDER SEED KILLS TASKS`` runs one, for a process that has
children of its own.

Invariant: nothing waits without a limit, and no child outlives this process.
"""

import json
import random
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

from tests.kill_campaigns import WrongError
from tests.tasks_kills.application import SCHEMA, path_of
from tests.tasks_kills.crew import Crew, Member, Role
from tests.tasks_kills.enqueuers import MODES, SAID, Orders, enqueue
from tests.tasks_kills.judge import Findings, judge
from tests.tasks_kills.tally import Tally, table
from tests.tasks_kills.workers import supervise, work

__all__ = ["Campaign"]

_SLOTS: Final = 4
_ROUNDS_OF_A_FILE: Final = 5
_KILLS_OF_A_ROUND: Final = (20, 120)
_TASKS_OF_A_ROUND: Final = (1_000, 9_000)
_PAUSES_SECONDS: Final = (0.02, 0.05, 0.1, 0.2)
_LONGEST_STOP_SECONDS: Final = 0.8
_LOOK_SECONDS: Final = 0.005
_REST_WITHIN_SECONDS: Final = 120.0
_ENDS_WITHIN_SECONDS: Final = 30.0
_WORKERS_AT_LEAST: Final = 2


class Campaign:
    """Kills, round by round.

    Args:
        folder: Where the files are.
        seed: Of what is drawn.
        ends: Whether workers are asked to end, too.

    Attributes:
        tally: What was done.
    """

    def __init__(self, folder: Path, seed: int, *, ends: bool = True) -> None:
        self.tally = Tally()
        self._base = folder
        self._folder = folder
        self._source = random.Random(seed)
        self._ends = ends
        self._lives = 0
        self._orders = Orders(_SLOTS)
        self._crew = Crew(folder)
        self._workers = self._supervisors = self._spared = 0

    def run(
        self, kills: int, tasks: int, progress: Callable[[Tally], None] = lambda tally: None
    ) -> None:
        """Go on until so many have been killed, and so many tasks were there.

        Raises:
            WrongError: Something is lost, done twice or stuck, or somebody fails or hangs.
        """
        try:
            while self.tally.kills < kills or self.tally.count("tasks") < tasks:
                if self.tally.rounds % _ROUNDS_OF_A_FILE == 0:
                    self._begin_file()
                self._round(kills, progress)
        finally:
            self._end_file()

    def _begin_file(self) -> None:
        """No table of tasks is there: those who make them meet each other, and are killed."""
        self._end_file()
        if self.tally.files:
            shutil.rmtree(self._folder)
        self.tally.begin_file()
        self._folder = self._base / str(self.tally.files)
        (self._folder / SAID).mkdir(parents=True)
        self._crew = Crew(self._folder)
        with closing(sqlite3.connect(path_of(self._folder))) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(SCHEMA)

    def _end_file(self) -> None:
        self._crew.end_all()
        self.tally.gave_up += self._crew.gave_up
        self._crew.gave_up = 0

    def _round(self, kills: int, progress: Callable[[Tally], None]) -> None:
        source, tally, orders = self._source, self.tally, self._orders
        began = time.time()
        longest_pause = source.choice(_PAUSES_SECONDS)
        until = tally.kills + source.randint(*_KILLS_OF_A_ROUND)
        orders.allowed = orders.enqueued + source.randint(*_TASKS_OF_A_ROUND)
        orders.is_over = False
        self._workers = source.choice((1, 2, 2, 3, 4))
        self._supervisors = source.choice((0, 1, 1))
        # By those that stay it is seen how soon they have what a killed one leaves.
        self._spared = source.choice((0, 2))
        self._workers += self._spared
        while tally.kills < min(until, kills) or orders.enqueued < orders.allowed:
            self._begin_missing()
            if tally.kills < until:
                self._sleep(source.uniform(0, longest_pause))
                self._disturb()
            else:
                self._sleep(longest_pause)
            progress(tally)
        self._come_to_rest()
        self._judge(began)
        if source.random() < 0.3:
            self._end_workers()

    def _sleep(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        while (left := ends - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_SECONDS))
            self._crew.let_go_on()
        self._crew.look()

    def _begin_missing(self) -> None:
        crew, source = self._crew, self._source
        slots = {member.slot for member in crew.members.values() if member.role is Role.ENQUEUER}
        for slot in range(_SLOTS):
            if slot not in slots:
                self._lives += 1
                mode = MODES[slot] if source.random() < 0.7 else source.choice(MODES)
                crew.fork(
                    Role.ENQUEUER,
                    partial(enqueue, self._folder, self._lives, mode, slot, self._orders),
                    slot,
                )
        for _ in range(self._workers - len(crew.of(Role.WORKER))):
            self._begin_worker()
        for _ in range(self._supervisors - len(crew.of(Role.SUPERVISOR))):
            crew.fork(Role.SUPERVISOR, partial(supervise, self._folder, source.randint(1, 8)))

    def _begin_worker(self) -> None:
        source = self._source
        runs = source.random() < 0.5
        self._crew.fork(Role.WORKER, partial(work, self._folder, source.randint(1, 8), runs=runs))

    def _disturb(self) -> None:
        crew, source = self._crew, self._source
        spared = crew.of(Role.WORKER)[: self._spared]
        members = [each for each in crew.members.values() if each not in spared]
        running_tasks = [each for each in crew.running_tasks if each not in spared]
        if not members:
            return
        match source.randrange(20):
            case 0:
                self.tally.all_at_once += 1
                self._kill(members)
            case 1 if running_tasks:
                # All that run tasks, and not those who enqueue.
                self._kill(running_tasks)
            case 2 | 3 if running_tasks:
                # Who sees to what recurs, if nobody is spared.
                self._kill(running_tasks[:1])
            case 4 if supervisors := crew.of(Role.SUPERVISOR):
                self._kill(supervisors)
            case 5 | 6 | 7 | 8 if enqueuers := crew.of(Role.ENQUEUER):
                self._kill([source.choice(enqueuers)])
            case 9 | 10:
                member = source.choice(members)
                crew.stop(member, source.uniform(0, _LONGEST_STOP_SECONDS))
                self.tally.stopped += 1
            case 11:
                self._kill([each for each in members if each.goes_on_at is not None])
            case 12 if self._ends and (enders := crew.of(Role.WORKER, Role.SUPERVISOR)):
                self._end(source.choice(enders))
            case _ if running_tasks:
                self._kill([source.choice(running_tasks)])

    def _kill(self, members: list[Member]) -> None:
        self.tally.killed_stopped += sum(each.goes_on_at is not None for each in members)
        self.tally.killed.update(member.role.value for member in members)
        self._crew.kill(members)

    def _end(self, member: Member) -> None:
        self.tally.ended += 1
        self._crew.end(member)

    def _come_to_rest(self) -> None:
        """Nobody enqueues, nobody is stopped, and some live."""
        crew = self._crew
        self._orders.is_over = True
        if self._source.random() < 0.3:
            self._kill([each for each in crew.members.values() if each.goes_on_at is not None])
        crew.let_go_on(everybody=True)
        self._await(lambda: not crew.of(Role.ENQUEUER), "those who enqueue do not end")
        self._begin_some()

    def _begin_some(self) -> None:
        for _ in range(_WORKERS_AT_LEAST - len(self._crew.of(Role.WORKER))):
            self._begin_worker()

    def _await(self, condition: Callable[[], bool], what: str, seconds: float = 0.0) -> None:
        ends = time.monotonic() + (seconds or _ENDS_WITHIN_SECONDS)
        while not condition():
            if time.monotonic() > ends:
                raise WrongError(f"{what}: {list(self._crew.members.values())}")
            self._sleep(_LOOK_SECONDS)

    def _judge(self, began: float) -> None:
        crew, report = self._crew, self._folder / "report"
        report.unlink(missing_ok=True)
        pid = crew.fork(Role.JUDGE, partial(judge, self._folder, crew.timeline, began, report))

        def has_ended() -> bool:
            if len(crew.of(Role.WORKER)) < _WORKERS_AT_LEAST:
                self._begin_some()  # what is poison has killed one
            return pid not in crew.members

        self._await(has_ended, "there is no rest", _REST_WITHIN_SECONDS)
        self.tally.note(Findings(**json.loads(report.read_text())))

    def _end_workers(self) -> None:
        """All end by themselves."""
        crew = self._crew
        if not self._ends:
            self._kill(crew.running_tasks)
            return
        for member in crew.of(Role.WORKER, Role.SUPERVISOR):
            self._end(member)
        self._await(lambda: not crew.members, "these do not end")


def main() -> int:
    """Run one; the exit code is 1 if anything is wrong."""
    folder, seed, kills, tasks = Path(sys.argv[1]), *map(int, sys.argv[2:])
    campaign = Campaign(folder, seed)
    try:
        campaign.run(kills, tasks)
    except WrongError as error:
        print(f"WRONG: {error}", file=sys.stderr)
        return 1
    finally:
        print(table(campaign.tally))
    return 0


if __name__ == "__main__":
    sys.exit(main())
