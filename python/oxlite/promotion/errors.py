"""What can go wrong on the way to PostgreSQL."""

from oxlite.operations import OperationsError

__all__ = ["DoesNotFit", "PromotionError", "VerificationDiffers"]


class PromotionError(OperationsError):
    """It cannot be done, or not be gone on with; the message says why, and what to do."""


class DoesNotFit(PromotionError):  # noqa: N818 - what has happened, as in the standard library
    """Some values have no place in the columns that they go to."""


class VerificationDiffers(PromotionError):  # noqa: N818
    """PostgreSQL has not what the file has."""
