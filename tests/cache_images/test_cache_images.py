"""A selection of the images, and a look at what judges them.

The long run is ``make cache-images``. What is selected follows from the seed.
"""

import pytest
from tests.cache_images.history import History, made
from tests.cache_images.judge import judge
from tests.cache_images.recording import record
from tests.cache_images.verdict import Opener
from tests.cache_images.workloads import WORKLOADS, Play
from tests.faults.injector import SUPPORTED, build

_MOMENTS = {"new": 6, "few": 6, "many": 3, "evicting": 1.5}
"""So many of a recording are looked at, about; some are none, since nothing was written."""

_KEY, _OTHER = "key", "other"
_LENGTHS = (20, 200)


@pytest.mark.skipif(not SUPPORTED, reason="files are recorded on x86-64 Linux only")
@pytest.mark.parametrize("workload", WORKLOADS)
def test_what_is_read_after_a_power_cut_was_set(seed: int, workload: str) -> None:
    build()
    recording = record(Play(workload, seed))
    with Opener() as opener:
        tally = judge(recording, opener, 4, _MOMENTS[workload] / len(recording.events))
    assert not [f"{one.point}, {one.image.shape}: {one.what}" for one in tally.violations]
    assert tally.distinct


def sets(key: str, number: int, *, is_short: bool = False) -> dict[str, object]:
    said = {"what": "sets", "key": key, "number": number, "lengths": _LENGTHS}
    return {**said, "is_short": is_short}


def test_what_was_set_is_told_from_what_never_was() -> None:
    history = History(1)
    history.hear(sets(_KEY, 1))
    history.hear(sets(_OTHER, 2))
    history.hear({"what": "counts", "key": _KEY, "value": 5})
    assert history.wrong(_KEY, made(1, _KEY, 1, _LENGTHS)) == history.wrong(_KEY, 5) == ""
    assert "that of 'other'" in history.wrong(_KEY, made(1, _OTHER, 2, _LENGTHS))
    assert "nobody's" in history.wrong(_KEY, made(1, _KEY, 2, _LENGTHS))
    assert "nobody's" in history.wrong(_KEY, 6)


def test_what_has_expired_does_not_come_back() -> None:
    history = History(1)
    history.hear(sets(_KEY, 1, is_short=True))
    assert history.wrong(_KEY, made(1, _KEY, 1, _LENGTHS)).startswith("expired")
    history.hear({"what": "touches", "key": _KEY})
    assert history.wrong(_KEY, made(1, _KEY, 1, _LENGTHS)) == ""
