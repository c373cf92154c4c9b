"""A process that plays chapters with faults.

``python -m tests.faults.child PROGRESS_FILE`` reads a task a line from its standard input, as JSON,
and answers each with a line. The point it is at stands in the progress file, for the day it
crashes. A point that takes too long ends the process, with the stack on the error output.
"""

import faulthandler
import json
import logging
import os
import sys
from collections import Counter
from typing import Any

from tests.faults.chapters import CHAPTERS
from tests.faults.injector import Injector
from tests.faults.judge import Judge, Verdict
from tests.faults.kinds import FAULTS
from tests.faults.mistakes import MISTAKES

_SECONDS = 30
NEVER = 1 << 40


class Player:
    """Keeps the chapter that was played last: learning one takes longer than playing it."""

    def __init__(self, progress: int) -> None:
        self.injector = Injector()
        self.progress = progress
        self.judge: Judge | None = None

    def judge_of(self, name: str) -> Judge:
        """The judge of a chapter."""
        if self.judge is None or self.judge.chapter.name != name:
            if self.judge is not None:
                self.judge.__exit__(None, None, None)
            chapter = CHAPTERS.get(name) or MISTAKES[name][0]
            self.judge = Judge(chapter, self.injector).__enter__()
            if not chapter.is_first:
                self.judge.learn()
        return self.judge

    def count(self, task: dict[str, Any]) -> dict[str, int]:
        """How many calls of each kind a chapter makes."""
        judge = self.judge_of(task["chapter"])
        if judge.chapter.is_first:
            judge.judge_first(FAULTS["malloc"], NEVER, False)
        else:
            judge.judge(FAULTS["malloc"], NEVER, False)
        return {fault.call: self.injector.count(fault.call) for fault in FAULTS.values()}

    def play(self, task: dict[str, Any]) -> dict[str, Any]:
        """Plays points of one chapter and kind until there are no more."""
        judge = self.judge_of(task["chapter"])
        fault, is_persistent = FAULTS[task["fault"]], task["is_persistent"]
        answer: dict[str, Any] = {"points": 0, "is_over": False, "findings": [], "declared": []}
        outcomes: Counter[str] = Counter()
        for point in range(task["first"], task["last"]):
            os.pwrite(self.progress, f"{point:20d}".encode(), 0)
            faulthandler.dump_traceback_later(_SECONDS, exit=True)
            verdict: Verdict = (judge.judge_first if judge.chapter.is_first else judge.judge)(
                fault, point, is_persistent
            )
            faulthandler.cancel_dump_traceback_later()
            if not verdict.struck:
                answer["is_over"] = True
                # Nothing has failed, so nothing may be wrong.
                answer["findings"] += [(point, what) for what in verdict.wrong]
                break
            answer["points"] += 1
            outcomes[verdict.outcome] += 1
            answer["findings"] += [(point, what) for what in verdict.wrong]
            answer["declared"] += verdict.declared
        return answer | {"outcomes": outcomes}


def main() -> None:
    """Answers until its input ends."""
    faulthandler.enable()
    # That a checkpoint has failed is told, as it should be, and of no use here.
    logging.getLogger("oxlite").setLevel(logging.CRITICAL)
    player = Player(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT))
    for line in sys.stdin:
        task = json.loads(line)
        answer = player.count(task) if task["what"] == "count" else player.play(task)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
