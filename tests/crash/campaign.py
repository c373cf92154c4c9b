"""Plays and judges in several processes until there is enough.

Each process has a player of its own, and a folder in which it opens images.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context, util
from pathlib import Path
from typing import NamedTuple

from tests.crash import trouble
from tests.crash.callers import Play
from tests.crash.judge import Judge, Tally
from tests.crash.recording import ROOT, Player
from tests.crash.verdict import Opener

VIOLATIONS = ROOT / "target" / "crash"


class Task(NamedTuple):
    """Something to play, and how many images beside the systematic ones to look at each time."""

    play: Play
    random_images: int


class _Bench(NamedTuple):
    """What a process of the pool has."""

    player: Player
    judge: Judge


_BENCH: list[_Bench] = []


def _begin(folder: Path) -> None:
    opener = Opener().__enter__()
    player = Player().__enter__()
    _BENCH.append(_Bench(player, Judge(opener, folder)))

    def end() -> None:
        player.__exit__(None, None, None)
        opener.__exit__(None, None, None)

    util.Finalize(None, end, exitpriority=1)


def _one(task: Task) -> Tally:
    (bench,) = _BENCH
    if task.play.trouble is not None:
        return trouble.judge(bench.player, bench.judge, task.play, task.random_images)
    recording = bench.player.record(task.play)
    tally = bench.judge.judge(recording, task.random_images)
    bench.judge.keep(recording, tally)
    return tally


def run(
    tasks: Iterator[Task],
    workers: int,
    is_enough: Callable[[Tally], bool],
    progress: Callable[[Tally], None],
) -> Tally:
    """Plays one after the other until there is enough, or no more."""
    tally = Tally()
    VIOLATIONS.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(workers, get_context("spawn"), _begin, (VIOLATIONS,)) as pool:
        running: set[Future[Tally]] = set()

        def more() -> None:
            task = None if is_enough(tally) else next(tasks, None)
            if task is not None:
                running.add(pool.submit(_one, task))

        for _ in range(workers + 1):
            more()
        while running:
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            running -= done
            for one in done:
                tally.add(one.result())
                more()
            progress(tally)
    return tally
