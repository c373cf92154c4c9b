"""A selection of all faults, and tests of what injects and judges them.

The complete run is ``make faults``. Which points are selected follows from the seed;
``OXLITE_FAULTS_POINTS`` says how many are played of each chapter.
"""

import os
import random
from collections.abc import Iterator

import pytest
from tests.faults.campaign import Child, DeathError, Findings, Series, all_series
from tests.faults.chapters import CHAPTERS
from tests.faults.injector import SUPPORTED, build
from tests.faults.kinds import FAULTS
from tests.faults.mistakes import MISTAKES

pytestmark = pytest.mark.skipif(not SUPPORTED, reason="faults are injected on x86-64 Linux only")

POINTS = int(os.environ.get("OXLITE_FAULTS_POINTS") or 40)
_PROCESSES = 12
"""Points of a chapter that needs a process for each."""


@pytest.fixture(scope="module")
def child() -> Iterator[Child]:
    """A process that plays."""
    build()
    player = Child()
    yield player
    player.close()


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_selection_of_points(child: Child, seed: int, chapter: str) -> None:
    generator = random.Random(f"{seed} {chapter}")
    counts = child.counts(chapter)
    # A kind of call that is rare has its turn as well as one that is not.
    possible = [
        series
        for series in all_series()
        if series.chapter == chapter and counts[FAULTS[series.fault].call]
    ]
    findings = Findings()
    for _ in range(_PROCESSES if CHAPTERS[chapter].is_first else POINTS):
        series = generator.choice(possible)
        point = 1 + generator.randrange(counts[FAULTS[series.fault].call])
        try:
            findings.add(series, child.play(series, point, point + 1))
        except DeathError as death:
            findings.add_death(series, death.point, death.how)
    assert not findings.wrong
    assert findings.points.total() > 0


@pytest.mark.parametrize(
    ("series", "points"),
    [
        # SQLite could not be initialised, and the connection was opened without our VFS.
        (Series("first connection", "malloc", False), range(1, 6)),
        # OFD locks could not be asked about, and the process never had any.
        (Series("first connection", "lock EIO", False), range(1, 2)),
        (Series("first connection", "lock EAGAIN", False), range(1, 2)),
        (Series("first connection", "open EMFILE", False), range(1, 2)),
        # What had failed was not told, and a page that could not be read was one of zeros.
        (Series("serialized databases", "malloc", True), range(1, 400)),
        (Series("serialized databases", "malloc", False), range(1, 1000)),
        (Series("serialized databases", "read EIO", False), range(1, 20)),
        (Series("serialized databases", "read ESTALE", True), range(1, 20)),
        (Series("serialized databases", "lock EIO", False), range(1, 40)),
    ],
    ids=lambda value: (
        None if isinstance(value, range) else " ".join(map(str, vars(value).values()))
    ),
)
def test_what_was_mended(child: Child, series: Series, points: range) -> None:
    findings = Findings()
    at_once = 1 if CHAPTERS[series.chapter].is_first else len(points)
    for first in points[::at_once]:
        findings.add(series, child.play(series, first, first + at_once))
    assert not findings.wrong
    assert findings.points.total() > 0


@pytest.mark.parametrize("chapter", MISTAKES)
def test_a_mistake_is_noticed(child: Child, chapter: str) -> None:
    series = Series(chapter, "malloc", False)
    findings = Findings()
    try:
        findings.add(series, child.play(series, 1, 1 + child.counts(chapter)["malloc"]))
    except DeathError as death:
        findings.add_death(series, death.point, death.how)
    _, expected = MISTAKES[chapter]
    assert any(expected in what for _, _, what in findings.wrong), findings.wrong


def test_every_kind_of_call_is_made(child: Child) -> None:
    made = {call for chapter in CHAPTERS for call, times in child.counts(chapter).items() if times}
    assert made == {fault.call for fault in FAULTS.values()}
