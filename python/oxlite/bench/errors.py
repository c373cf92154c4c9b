"""The errors of the lab.

::

    Exception
    └── LabError                 whatever the lab reports in one line
        ├── UsageError           an option, name or file the user gave is wrong
        ├── UnwrittenError       a file that the finished run was to be written to
        ├── WorkerError          a worker process died, hung or failed
        ├── VerificationError    the work done is not the work asked for
        ├── MalformedRecordError a result file that is not one
        └── FutureRecordError    a result file written by a newer lab
    KeyboardInterrupt
    └── Interrupted              a signal ended the run (carries its number)

A ``WorkerError`` or ``VerificationError`` fails one row and the run goes on;
the others end the run. Every message is one line, for a terminal.
"""

import math
import signal
from collections.abc import Iterable


class LabError(Exception):
    """The base of every error the lab raises on purpose; its message is one line."""


class UsageError(LabError):
    """What the user asked for cannot be done as asked."""


class WorkerError(LabError):
    """A worker process died, did not answer in time, or reported a failure."""


class VerificationError(LabError):
    """A count, digest, setting or table is not what the workload requires."""


class MalformedRecordError(LabError):
    """A result file is not JSON, or not of the shape of a result."""


class FutureRecordError(LabError):
    """A result file has a later schema version than this lab can read."""


class Interrupted(KeyboardInterrupt):
    """A signal asked the run to end.

    Attributes:
        signal_number: the signal, as in :mod:`signal`.
    """

    def __init__(self, signal_number: int = signal.SIGINT) -> None:
        super().__init__(f"interrupted by {signal.Signals(signal_number).name}")
        self.signal_number = signal_number


def require_at_least(option: str, value: float, minimum: float) -> None:
    """Refuse a parameter that is too small, infinite or not a number.

    Raises:
        UsageError: it is; the message names ``option``.
    """
    if not value >= minimum:
        raise UsageError(f"{option} must be at least {minimum:g}, not {value}")
    if value == math.inf:
        raise UsageError(f"{option} must be finite, not {value}")


def require_between(option: str, value: float, minimum: float, maximum: float) -> None:
    """Refuse a parameter that is too small, too large or not a number.

    Raises:
        UsageError: it is; the message names ``option``.
    """
    require_at_least(option, value, minimum)
    if value > maximum:
        raise UsageError(f"{option} must be at most {maximum:,}, not {value}")


def unknown(kind: str, given: str, known: Iterable[str]) -> UsageError:
    """The error for a name nobody knows, with the nearest known one suggested.

    Args:
        kind: what the name should have been, in the singular ("driver").
        given: what the user wrote.
        known: the names that exist.
    """
    import difflib  # here, because every worker loads this module and none needs it

    names = sorted(known)
    # A word of another length was hardly meant.
    alike = [name for name in names if abs(len(name) - len(given)) <= max(1, len(given) // 3)]
    near = difflib.get_close_matches(given, alike, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return UsageError(f"unknown {kind} {given!r}: {hint}known: {', '.join(names)}")
