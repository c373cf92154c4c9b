"""What one sees while a run lasts: a moving bar on a terminal, lines elsewhere."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.progress import TimeRemainingColumn as Remaining

from oxlite import harmless
from oxlite.bench.harness.run import Listener


class Lines:
    """One plain line for each cell measured, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def planned(
        self, labels: Sequence[str], warm_ups: int, repeats: int, parts: Sequence[str] = ()
    ) -> None:
        """See the protocol."""
        warming = f"{warm_ups} warm-up round, " if warm_ups else ""
        each = f" of {len(parts)} parts" if parts else ""
        self._say(f"{len(labels)} scenarios, {warming}{repeats} measured rounds{each}")

    def begun(self, round_name: str, label: str) -> None:
        """See the protocol."""

    def ended(self, round_name: str, label: str, outcome: str) -> None:
        """See the protocol."""
        self._say(f"{round_name}  {label}  {outcome}")

    def stopped_early(self, repeats: int, wanted: int) -> None:
        """See the protocol."""
        self._say(f"stopped by the time budget after {repeats} of {wanted} rounds")

    def _say(self, text: str) -> None:
        self._console.print(harmless(text), markup=False, highlight=False, soft_wrap=True)


class Bar:
    """A progress bar with the scenario at work and the last outcome."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("starting", total=None, outcome="")

    def planned(
        self, labels: Sequence[str], warm_ups: int, repeats: int, parts: Sequence[str] = ()
    ) -> None:
        """See the protocol."""
        self._progress.update(self._task, total=len(parts or labels) * (warm_ups + repeats))

    def begun(self, round_name: str, label: str) -> None:
        """See the protocol."""
        self._progress.update(self._task, description=f"{round_name}  {label}")

    def ended(self, round_name: str, label: str, outcome: str) -> None:
        """See the protocol."""
        self._progress.update(self._task, advance=1, outcome=harmless(outcome))

    def stopped_early(self, repeats: int, wanted: int) -> None:
        """See the protocol."""
        self._progress.update(self._task, description=f"time budget: {repeats} of {wanted} rounds")


@contextmanager
def watching(console: Console) -> Iterator[Listener]:
    """The listener that suits ``console``."""
    if not console.is_terminal:
        yield Lines(console)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        Remaining(),
        TextColumn("{task.fields[outcome]}", style="dim", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield Bar(progress)


class SeriesLines:
    """What one sees while several workloads run one after the other."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def workload(
        self, place: int, count: int, name: str, spent_seconds: float, planned_seconds: float | None
    ) -> None:
        """See the protocol."""
        of_all = "" if planned_seconds is None else f" of some {planned_seconds:.0f} s"
        self._say(f"{place} of {count}: {name}, after {spent_seconds:.0f} s{of_all}")

    def kept(self, name: str, path: Path) -> None:
        """See the protocol."""
        self._say(f"  {name} was finished before: {path} (--again measures it anew)")

    def trouble(self, name: str, why: str) -> None:
        """See the protocol."""
        self._say(f"  {name}: {why}")

    def listening(self) -> AbstractContextManager[Listener]:
        """See the protocol."""
        return watching(self._console)

    def _say(self, text: str) -> None:
        self._console.print(harmless(text), markup=False, highlight=False, soft_wrap=True)
