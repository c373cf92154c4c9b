"""What about this machine a reader must know to judge a run, in sentences.

The full description is the environment report; this only looks for what makes
figures misleading: a directory that is not on a disk, a machine that is busy.
"""

from pathlib import Path

BUSY_PERCENT = 15.0
LOOK_SECONDS = 0.3


def notes(directory: Path) -> list[str]:
    """Warnings about measuring in ``directory``, now."""
    import psutil

    from oxlite.environment import machine_report

    found = []
    file_system = machine_report(directory)["file_system"]
    if file_system["volatile"]:
        found.append(
            f"{directory} is in memory ({file_system['type']}): nothing there waits for a disk; "
            f"--directory chooses another place."
        )
    busy_percent = psutil.cpu_percent(interval=LOOK_SECONDS)
    if busy_percent > BUSY_PERCENT:
        found.append(
            f"the machine was {busy_percent:.0f} % busy before the run began: expect noise."
        )
    return found
