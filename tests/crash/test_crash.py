"""A selection of crashes, and tests of the laboratory itself.

The complete run is ``make crash``. What is selected follows from the seed.
"""

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.crash import controls, kept, trouble
from tests.crash.callers import Play
from tests.crash.controls import CONTROLS, Control
from tests.crash.judge import Judge, Tally
from tests.crash.recording import Player
from tests.crash.verdict import Opener
from tests.crash.workloads import LONG, PROCESSES, SHORT, profiles_of
from tests.faults.injector import SUPPORTED, build

from oxlite import _native

pytestmark = pytest.mark.skipif(not SUPPORTED, reason="files are recorded on x86-64 Linux only")

_EVERY = 5
"""Of the points of a recording, one in so many is looked at."""
_FAULTS = 30
_KILLINGS = 6
_RECORDED = {"pwrite64", "ftruncate64", "fdatasync", "unlink", "linkat"}
_RECORDED |= {"mmap64", "mremap", "open", "open64"}
_NOT_OF_FILES = {"write", "writev", "mkdir", "rmdir", "opendir"}
"""Messages; and the folders of a VFS that locks by means of them, which nobody uses."""


@pytest.fixture(scope="module")
def player() -> Iterator[Player]:
    """A process that plays."""
    build()
    with Player() as player:
        yield player


@pytest.fixture
def judge() -> Iterator[Judge]:
    """Judges images."""
    with Opener() as opener:
        yield Judge(opener)


def told(tally: Tally) -> list[str]:
    """What is wrong, and how to come by it."""
    return [f"{one.play} at {one.point}, {one.image.shape}: {one.what}" for one in tally.violations]


@pytest.mark.parametrize(
    ("workload", "profile"),
    [(name, profile) for name in [*LONG, PROCESSES] for profile in profiles_of(name)],
)
def test_power_cuts(player: Player, judge: Judge, seed: int, workload: str, profile: str) -> None:
    recording = player.record(Play(workload, profile, seed))
    tally = judge.judge(recording, 2, lambda number: (number + seed) % _EVERY == 0)
    assert not told(tally)
    assert tally.distinct > 100


@pytest.mark.parametrize("workload", SHORT)
def test_faults_and_killings(player: Player, judge: Judge, seed: int, workload: str) -> None:
    possible = [play for play in trouble.plays(player, seed) if play.workload == workload]
    tally = Tally()
    for play in random.Random(f"{seed} {workload}").sample(possible, _FAULTS):
        tally.add(trouble.judge(player, judge, play, 1))
    assert not told(tally)
    assert tally.points.total() == _FAULTS


def test_one_of_several_processes_is_killed(player: Player, judge: Judge, seed: int) -> None:
    tally = Tally()
    for play in trouble.killings_among(player, seed, _KILLINGS):
        tally.add(trouble.judge(player, judge, play, 1))
    assert not told(tally)
    assert tally.points.total() == 3 * _KILLINGS


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name)
def test_what_is_wrong_is_found_out(player: Player, judge: Judge, control: Control) -> None:
    tally = controls.judge(player, judge, control, 2)
    kinds = {kind for _, _, kind in tally.wrong}
    assert control.kinds & kinds, tally.wrong


def test_a_violation_is_kept_to_be_looked_at_again(player: Player, tmp_path: Path) -> None:
    recording = player.record(next(c.play for c in CONTROLS if c.name == "synchronous OFF"))
    with Opener() as opener:
        judge = Judge(opener, tmp_path)
        tally = judge.judge(recording, 0, is_enough=lambda tally: bool(tally.wrong))
        judge.keep(recording, tally)
    shown = kept.show(next(tmp_path.iterdir()))
    assert shown[-1] == f"wrong: {tally.violations[0].what}"
    assert any("ledger.db-wal" in line for line in shown)


def test_all_that_changes_files_is_recorded() -> None:
    """What the module imports tells: a call that is not known here might go by unseen."""
    command = ["nm", "--dynamic", "--undefined-only", _native.__file__]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    names = {line.split()[-1].partition("@")[0] for line in listing.splitlines()}
    words = ("write", "trunc", "sync", "unlink", "link", "rename", "alloc", "sendfile", "copy")
    words += ("mmap", "mremap", "open", "mkdir", "rmdir", "splice", "creat", "aio", "uring")
    libc = {name for name in names if "_" not in name}
    memory = {"malloc", "calloc", "realloc", "memalign", "dlopen", "readlink"}
    found = {name for name in libc if any(word in name for word in words)} - memory
    assert found <= _RECORDED | _NOT_OF_FILES
