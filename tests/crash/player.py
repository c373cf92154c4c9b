"""A process that has children play workloads and records them.

``python -m tests.crash.player`` reads a task a line from its standard input, as JSON, and answers
each with a line: how its children ended. A child is made by a fork, before anything of the database
is opened: what is loaded need not be loaded again, and it may be killed.
"""

import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from tests.crash.callers import Play, Stage
from tests.crash.children import ended, in_a_child
from tests.crash.recorder import Recorder
from tests.crash.workloads import WORKLOADS, process, schema
from tests.faults.kinds import FAULTS

_PROCESSES = 3
CALLS = sorted({fault.call for fault in FAULTS.values()})


def play(recorder: Recorder, task: dict[str, Any]) -> None:
    """Makes the database, and records what is played on it."""
    stage = Stage(Path(task["folder"]), Play.of_json(task["play"]), recorder)
    workload = WORKLOADS.get(stage.play.workload)
    (workload.prepare if workload else schema)(stage)
    shutil.copytree(stage.folder, task["base"])
    recorder.begin(Path(task["log"]), stage.folder, task["sync_microseconds"])
    stage.say_what_is_there()
    trouble = stage.play.trouble

    def arm() -> None:
        if trouble is not None:
            recorder.injector.arm(
                trouble.call, trouble.first, trouble.is_persistent, trouble.effect
            )

    def disarm() -> None:
        recorder.injector.disarm()
        counts = {call: recorder.injector.count(call) for call in CALLS}
        recorder.mark("over", counts=counts)

    if workload is not None:
        arm()
        workload.play(stage)
        disarm()
        return

    def one(number: int) -> None:
        # Trouble is the first one's.
        if number == 0:
            arm()
        process(stage, number)
        disarm()

    children = [in_a_child(lambda number=number: one(number)) for number in range(_PROCESSES)]
    codes = [ended(child) for child in children]
    if any(codes[1:]) or codes[0] not in {0, -signal.SIGKILL}:
        raise AssertionError(f"the processes ended with {codes}")
    if codes[0]:
        os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Answers until its input ends."""
    recorder = Recorder()
    for line in sys.stdin:
        task = json.loads(line)
        code = ended(in_a_child(lambda task=task: play(recorder, task)))
        print(json.dumps(code), flush=True)


if __name__ == "__main__":
    main()
