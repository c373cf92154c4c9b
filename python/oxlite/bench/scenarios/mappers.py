"""The object-relational mappers of the ``mapper`` axis, and whether they are installed."""

from collections.abc import Mapping
from importlib import util

TITLES: Mapping[str, str] = {"sqlalchemy": "SQLAlchemy", "django": "Django"}
"""Their names in a sentence, by the name of their module, which is also that on the axis."""


def missing(mapper: str) -> str | None:
    """Why ``mapper`` is not available here, or ``None`` if it is."""
    if util.find_spec(mapper) is not None:
        return None
    return f"{TITLES[mapper]} is not installed; run `pip install {mapper}`"
