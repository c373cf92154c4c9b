"""What the kernel counts of processes: how often their threads were woken, and how long they ran.

A thread that waits and goes on has made one voluntary context switch.

Invariant: looked at from outside, so that nobody is woken by being watched.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

SWITCHES = "voluntary_ctxt_switches:"


class Spent(NamedTuple):
    """What the threads of some processes have spent until now, by number of thread.

    Attributes:
        switches: voluntary context switches.
        running_ns: time on a processor.
    """

    switches: dict[str, int]
    running_ns: dict[str, int]

    def since(self, before: "Spent") -> tuple[int, int]:
        """The switches and the time since then, of all threads together."""
        return _grown(before.switches, self.switches), _grown(before.running_ns, self.running_ns)


def spent(pids: Iterable[int]) -> Spent:
    """What all threads of these processes have spent."""
    found = Spent({}, {})
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for line in (task / "status").read_text().splitlines():
                if line.startswith(SWITCHES):
                    found.switches[task.name] = int(line.split()[1])
            found.running_ns[task.name] = int((task / "schedstat").read_text().split()[0])
    return found


def _grown(before: dict[str, int], after: dict[str, int]) -> int:
    return sum(count - before.get(task, 0) for task, count in after.items())
