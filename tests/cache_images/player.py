"""A process that plays a workload on a cache and records it.

``python -m tests.cache_images.player TASK``, as JSON: where the cache is to be, where to copy what
is there before the recording, and where the log goes.
"""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from tests.cache_images.workloads import Play, Player
from tests.crash.recorder import Recorder


def main() -> None:
    """Play."""
    task = json.loads(sys.argv[1])
    folder, play = Path(task["folder"]), Play(task["workload"], task["seed"])
    recorder = Recorder()
    said: list[tuple[str, dict[str, Any]]] = []
    is_recording = False

    def say(what: str, **details: object) -> None:
        if is_recording:
            recorder.mark(what, **details)
        else:
            said.append((what, details))

    player = Player(folder, play, say)
    player.prepare()
    shutil.copytree(folder, task["base"])
    recorder.begin(Path(task["log"]), folder, 0)
    is_recording = True
    for what, details in said:
        recorder.mark(what, **details)
    player.play()


if __name__ == "__main__":
    main()
