"""Deletes steps from a case while what it shows remains."""

from collections.abc import Callable

from tests.fuzz.generator import Case


def without(case: Case, start: int, end: int) -> Case:
    """The case without some of its steps."""
    return Case(
        case.steps[:start] + case.steps[end:], case.moves[:start] + case.moves[end:], case.seed
    )


def minimised(case: Case, still_shows: Callable[[Case], bool]) -> Case:
    """The case with no step that can be deleted: halves first, then ever smaller pieces."""
    size = max(len(case.steps) // 2, 1)
    while True:
        smaller = _without_pieces(case, size, still_shows)
        is_smaller = len(smaller.steps) < len(case.steps)
        case = smaller
        if size == 1 and not is_smaller:
            return case
        size = max(size // 2, 1)


def _without_pieces(case: Case, size: int, still_shows: Callable[[Case], bool]) -> Case:
    """The case without the pieces of this size that can be deleted, from the end."""
    end = len(case.steps)
    while end > 0:
        start = max(end - size, 0)
        candidate = without(case, start, end)
        if candidate.steps and still_shows(candidate):
            case = candidate
        end = start
    return case
