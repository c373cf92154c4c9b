"""Two plays of one case, and the first difference between them."""

import re
from dataclasses import dataclass

from tests.fuzz.intended import KNOWN
from tests.fuzz.observe import Observation


@dataclass(frozen=True)
class Play:
    """What became of a case on one driver."""

    observations: list[Observation]
    ending: str = "ended"
    """``ended``, or how its process died: ``crashed`` or ``hung``."""
    step: int = -1
    """In which step it died."""
    output: str = ""
    """What the dying process wrote."""


@dataclass(frozen=True)
class Difference:
    """The first difference that is not intended."""

    step: int
    what: str
    expected: str
    found: str

    @property
    def signature(self) -> str:
        """What similar differences have in common."""
        what = re.sub(r"^[ck]\d\.", "", self.what)
        return f"{what} | {_kind(self.expected)} | {_kind(self.found)}"


@dataclass
class Comparison:
    """What came of comparing two plays."""

    difference: Difference | None
    intended: list[str]
    """The names of intended differences met on the way."""
    compared: int
    """How many steps were compared."""
    diverged: bool = False
    """Whether the comparison ended at an intended difference."""


def _kind(text: str) -> str:
    """An observation without its particulars."""
    if text.startswith("! "):
        text = re.sub(r"'[^']*'|\"[^\"]*\"", "…", text)
        text = re.sub(r"\d+", "N", text)
        return text[:90]
    return re.split(r"[ :]", text, maxsplit=1)[0]


def compare(expected: Play, found: Play, steps: list[str]) -> Comparison:
    """Compares step by step, up to the first difference or to one after which states differ."""
    met: list[str] = []
    for number, (theirs, ours) in enumerate(
        zip(expected.observations, found.observations, strict=False)
    ):
        if theirs == ours:
            continue
        for what in sorted({*theirs, *ours}, key=lambda key: (key != "value", key)):
            left, right = theirs.get(what, "unchanged"), ours.get(what, "unchanged")
            if left == right:
                continue
            intended = next(
                (known for known in KNOWN if known.covers(steps, number, theirs, ours, what)), None
            )
            if intended is None:
                return Comparison(Difference(number, what, left, right), met, number)
            met.append(intended.name)
            if intended.diverges:
                return Comparison(None, met, number, diverged=True)
    compared = min(len(expected.observations), len(found.observations))
    difference = _deaths(expected, found)
    if difference is not None and (name := _known_death(expected.ending, found, steps)):
        return Comparison(None, [*met, name], compared)
    return Comparison(difference, met, compared)


def _deaths(expected: Play, found: Play) -> Difference | None:
    """A driver under test that dies is a difference, unless the reference died before it."""
    if found.ending == "ended":
        return None
    if expected.ending != "ended" and expected.step <= found.step:
        return None
    return Difference(found.step, "process", expected.ending, found.ending)


def death(play: Play, steps: list[str]) -> Difference | None:
    """A crash of the driver under test, whatever was seen before; None if it is known.

    A hang counts only where both did the same before: a backup waits for ever for a transaction.
    """
    if not play.ending.startswith("crashed") or _known_death("ended", play, steps):
        return None
    return Difference(play.step, "process", "ended", play.ending)


def _known_death(expected: str, found: Play, steps: list[str]) -> str | None:
    """The name of the known death."""
    theirs, ours = {"process": expected}, {"process": found.ending}
    for known in KNOWN:
        if known.what == "process" and known.covers(steps, found.step, theirs, ours, "process"):
            return known.name
    return None
