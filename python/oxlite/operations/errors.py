"""What can go wrong in looking after a database."""

__all__ = ["DatabaseInUse", "OperationsError", "VerificationFailed"]


class OperationsError(Exception):
    """What was asked for cannot be done; the message says why, and what to do."""


class VerificationFailed(OperationsError):  # noqa: N818 - what has happened, as in the standard library
    """A copy is damaged, or is not what it was."""


class DatabaseInUse(OperationsError):  # noqa: N818
    """Somebody has the database open; the message says who."""
