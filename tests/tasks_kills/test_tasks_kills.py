"""A selection of the kills, and a look at what says how soon others went on.

The long run is ``make tasks-kills``.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.tasks_kills.timeline import Timeline

KILLS = 60
TASKS = 3_000


@pytest.mark.skipif(sys.platform != "linux", reason="its locks are Linux's")
def test_no_task_is_lost_or_done_twice_whoever_is_killed(tmp_path: Path, seed: int) -> None:
    # It waits for all children of its process, which are none of pytest's.
    arguments = [str(tmp_path), str(seed), str(KILLS), str(TASKS)]
    command = [sys.executable, "-m", "tests.tasks_kills.campaign", *arguments]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert "| killed: worker | 0 |" not in ended.stdout
    assert "| killed: enqueuer |" in ended.stdout


def test_a_recovery_is_witnessed_by_who_was_there_all_the_while() -> None:
    timeline = Timeline(births={1: 0.0, 2: 0.0}, kills={1: 10.0}, ends={1: 10.0})
    assert timeline.recovery(1, 10.5) == (0.5, True, True)
    timeline.stops.append((3, 10.2, 10.3))
    assert timeline.recovery(1, 10.5) == (0.5, True, False)
    timeline.stops.append((2, 9.0, 10.1))
    assert timeline.recovery(1, 10.5) == (0.5, False, False)
    timeline.stops.clear()
    timeline.ends[2] = 10.4
    assert timeline.recovery(1, 10.5) == (0.5, False, False)
    timeline.births[3] = 9.9
    assert timeline.recovery(1, 10.5) == (0.5, False, False)
