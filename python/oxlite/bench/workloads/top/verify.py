"""Whether the work was done, everybody was seen, and nothing was left behind."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from oxlite.bench.errors import VerificationError
from oxlite.bench.harness.channel import Message
from oxlite.bench.harness.databases import rows_of_file
from oxlite.bench.workloads.top import work
from oxlite.bench.workloads.top.figures import Outcome


def check_work(path: Path, found: Sequence[Outcome], load: str) -> None:
    """Check the database, and what was read of it, once nobody works any more.

    Args:
        path: its file.
        found: what each of the workers did.
        load: what they were to do.

    Raises:
        VerificationError: it is damaged, it has not what was written, or something else was read.
    """
    [(changed,)] = rows_of_file(path, work.CHANGED)
    written = sum(one.operations_done() for one in found) if load == work.WRITE else 0
    if changed != written and not any(one.has_unknown() for one in found):
        raise VerificationError(f"{changed} changes are there, and {written} were acknowledged")
    if load == work.READ:
        for one in found:
            if one.last is None or one.last[1] != work.text(one.last[0]):
                raise VerificationError(f"a process read {one.last}")


def check_seen(looks: Iterable[Message], found: Sequence[Outcome]) -> None:
    """Check that each look has heard each of the workers.

    Raises:
        VerificationError: it has not.
    """
    for look in looks:
        unseen = {one.process_id for one in found} - set(look["telling"])
        if unseen:
            raise VerificationError(f"{len(unseen)} of {len(found)} processes were not seen")


def check_left(path: Path) -> None:
    """Check that nothing of a watch is left beside the database.

    Raises:
        VerificationError: there is.
    """
    left = path.with_name(f"{path.name}-activity")
    if left.exists():
        raise VerificationError(f"{left.name} was left behind")
