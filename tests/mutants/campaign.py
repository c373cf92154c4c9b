"""Every mutant against the tests of its own area.

Invariants:
- Without a mutant the tests of an area pass first; otherwise none of its mutants is tried.
- A test that has found a mutant passes again, by itself, without it; else it has found something
  else, and the mutant is tried once more.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from tests.mutants.copy_of_tree import CopyOfTree
from tests.mutants.declared import Area, Mutant
from tests.mutants.place import Place
from tests.mutants.suite import CONTROL_AT_MOST, Found, run, run_one

_TRIES = 3


class Result(NamedTuple):
    """What came of one mutant.

    Attributes:
        by: The test that found it; ``None`` if none did.
        how: How the run ended, where no test has said that it failed.
        seconds: How long that took.
    """

    mutant: Mutant
    by: str | None
    how: str
    seconds: float


class Campaign:
    """A run of mutants.

    Attributes:
        results: What came of those that were tried.
        unsound: The areas whose tests fail without a mutant, and which test does.
    """

    def __init__(self, copy: CopyOfTree, places: Sequence[Place]) -> None:
        self._copy = copy
        self._places = {place.mutant: place for place in places}
        self.results: list[Result] = []
        self.unsound: dict[str, str] = {}

    def try_area(
        self, area: Area, mutants: Sequence[Mutant], tell: Callable[[str], object]
    ) -> None:
        """Try mutants of an area."""
        control = self._control(area)
        if control.by is not None:
            self.unsound[area.name] = control.by
            tell(f"{area.name}: fails without a mutant: {control.by}\n{control.output[-3000:]}")
            return
        tell(f"{area.name}: passes without a mutant, {control.seconds:.0f} s")
        for mutant in mutants:
            result = self._try_mutant(area, mutant, control.seconds)
            self.results.append(result)
            how = f" ({result.how})" if result.how else ""
            what = f"found by {result.by}{how}" if result.by else "NOT FOUND"
            tell(f"  {mutant.number:3} {mutant.name}: {what}, {result.seconds:.0f} s")

    def _control(self, area: Area) -> Found:
        """The area without a mutant; a machine that is busy has a second chance."""
        found = run(area, self._copy, 0, CONTROL_AT_MOST)
        return found if found.by is None else run(area, self._copy, 0, CONTROL_AT_MOST)

    def _try_mutant(self, area: Area, mutant: Mutant, expected: float) -> Result:
        place = self._places[mutant]
        seconds = 0.0
        for _ in range(_TRIES):
            with self._copy.mistaken(place) as number:
                found = run(area, self._copy, number, expected)
            seconds += found.seconds
            if found.by is None or run_one(found.by, area, self._copy):
                return Result(mutant, found.by, found.how, seconds)
        # Its tests fail by themselves, so nothing is known of it.
        return Result(mutant, None, "", seconds)
