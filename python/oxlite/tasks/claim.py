"""A task as a worker has it, and what is to be written of it when its attempt has ended.

Invariant: an outcome concerns one attempt. Where that counts no more, it changes nothing.
"""

import json
import time
import traceback
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from oxlite.own_tables import text_of
from oxlite.tasks import store

__all__ = [
    "Claim",
    "Outcome",
    "again",
    "described",
    "failed",
    "handed_back",
    "successful",
]

_TRACEBACK_CHARACTERS_AT_MOST: Final = 16_384


class Claim(NamedTuple):
    """A task that this worker alone has.

    Attributes:
        id: Its number.
        queue: The name of its queue.
        name: By which the worker finds what is to be called.
        arguments: As JSON.
        attempt: How often it was claimed, this time included.
        worker: Who has claimed it.
        failures: How often it has ended by an error.
        crashes: How often its process has ended in the midst of it.
        retries: After so many failures one more is the last.
        priority: What is greater goes first.
        enqueued_at: Instants are seconds since 1970.
        attempted_at: When it was claimed.
        time_limit: For how many seconds it may run.
        keep_seconds: For how long it is kept after its end; for ever with ``None``.
        is_limited: Whether only so many of its kind run at the same time.
        errors: Those of earlier attempts, as JSON.
    """

    id: int
    queue: str
    name: str
    arguments: str
    attempt: int
    worker: str
    failures: int
    crashes: int
    retries: int
    priority: int
    enqueued_at: float
    attempted_at: float
    time_limit: float | None
    keep_seconds: float | None
    is_limited: bool
    errors: str | None

    @classmethod
    def of(cls, row: tuple[Any, ...]) -> "Claim":
        """The one of a row of ``store.CLAIM``."""
        return cls._make(text_of(one) if isinstance(one, bytes) else one for one in row)


class Outcome(NamedTuple):
    """A statement that says what has become of a claim; it returns a row if that still counts.

    Attributes:
        claim: The claim.
        status: What the task is then.
        sql: The statement.
        parameters: Its parameters.
        then: Called when it was written, if it counts; waits for nobody.
    """

    claim: Claim
    status: str
    sql: str
    parameters: tuple[Any, ...]
    then: Callable[[], None] | None = None


def successful(claim: Claim, result: str | None, now: float) -> Outcome:
    """It has returned, a result as JSON or nothing."""
    sql = store.SUCCEED
    parameters: tuple[Any, ...] = (claim.id, claim.attempt, result, now)
    if claim.keep_seconds == 0:
        sql, parameters = store.DELETE_FINISHED, parameters[:2]
    return Outcome(claim, store.SUCCESSFUL, sql, parameters)


def failed(claim: Claim, error: str | None, now: float, status: str = store.FAILED) -> Outcome:
    """It is not to run again. A failure is kept until it is discarded."""
    keep = None if status == store.FAILED else claim.keep_seconds
    parameters = (claim.id, claim.attempt, error, now, status, keep)
    return Outcome(claim, status, store.FAIL, parameters)


def again(claim: Claim, error: str, now: float, delay: float) -> Outcome:
    """It is to run again after so many seconds."""
    parameters = (claim.id, claim.attempt, error, now, now + max(0.0, delay))
    return Outcome(claim, store.SCHEDULED, store.RETRY_LATER, parameters)


def handed_back(claim: Claim) -> Outcome:
    """Others are to run it, as if it had not been claimed."""
    return Outcome(claim, store.READY, store.HAND_BACK, (claim.id, claim.attempt, time.time()))


def described(error: BaseException, claim: Claim | None, now: float) -> str:
    """An error, as JSON, for the row.

    Args:
        error: What was raised, or would have been.
        claim: Of which attempt; ``None`` where the row says it.
        now: What time it is.
    """
    kind = type(error)
    found: dict[str, Any] = {
        "class": f"{kind.__module__}.{kind.__qualname__}",
        "message": _said(error, lambda: str(error)),
        "traceback": _said(error, lambda: "".join(traceback.format_exception(error))),
        "at": now,
    }
    if claim is not None:
        found |= {"worker": claim.worker, "attempt": claim.attempt}
    # ASCII: a message may have surrogates, which no database takes.
    return json.dumps(found)


def _said(error: BaseException, say: Callable[[], str]) -> str:
    """What an error says of itself; it is the user's, and may do anything."""
    try:
        text = say()
    except BaseException as other:
        return f"({type(error).__name__} cannot be told: {type(other).__name__})"
    if len(text) <= _TRACEBACK_CHARACTERS_AT_MOST:
        return text
    half = _TRACEBACK_CHARACTERS_AT_MOST // 2
    return f"{text[:half]}\n…\n{text[-half:]}"
