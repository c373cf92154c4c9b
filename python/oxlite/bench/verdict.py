"""Whether a bar is held by repeated measurements: in one sentence, without a pass mark of its own.

The median decides; that its interval reaches to the other side of the bar is said. One repeat
decides nothing.
"""

from typing import Protocol

from oxlite.bench.harness.statistics import Summary


class Limited(Protocol):
    """A bar."""

    @property
    def limit(self) -> float:
        """Where it lies."""
        ...

    def beyond(self, value: float) -> bool:
        """Whether ``value`` is on its wrong side."""
        ...


def judged(bar: Limited, found: Summary | None, repeats: int | None = None) -> str:
    """``held``, or ``missed by`` so much of the bar, or that it is not known.

    Args:
        bar: what is asked for.
        found: what was measured.
        repeats: how many repeats ``found`` is of, if it has not one value for each.
    """
    if found is None:
        return "not known"
    if (repeats or found.count) == 1:
        return "not known: one repeat"
    missed = bar.beyond(found.median)
    mixed = bar.beyond(found.interval.low) != bar.beyond(found.interval.high)
    verdict = f"missed by {abs(found.median / bar.limit - 1):.0%}" if missed else "held"
    return f"{verdict}, with the bar inside the interval" if mixed else verdict
