"""Records and judges in several processes until there are enough images."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path

from tests.cache_images.judge import Tally, judge, keep
from tests.cache_images.recording import ROOT, record
from tests.cache_images.verdict import Opener
from tests.cache_images.workloads import Play

VIOLATIONS: Path = ROOT / "target" / "cache-images"
RANDOM_IMAGES = 12
_SAVED = 2


def _begin() -> None:
    # A cache says so when it is emptied, which is what happens here.
    logging.disable()


def _one(play: Play) -> Tally:
    recording = record(play)
    with Opener() as opener:
        tally = judge(recording, opener, RANDOM_IMAGES)
    for violation in tally.violations[:_SAVED]:
        keep(VIOLATIONS, violation)
    return tally


def run(
    plays: Iterator[Play],
    workers: int,
    is_enough: Callable[[Tally], bool],
    progress: Callable[[Tally], None] = lambda tally: None,
) -> Tally:
    """Plays one after the other until there is enough."""
    tally = Tally()
    with ProcessPoolExecutor(workers, get_context("spawn"), _begin) as pool:
        running: set[Future[Tally]] = set()
        while running or not is_enough(tally):
            while len(running) <= workers and not is_enough(tally):
                running.add(pool.submit(_one, next(plays)))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for one in done:
                tally.add(one.result())
            progress(tally)
    return tally
