"""Which package was meant, where an extension was asked for by a name that there is not.

Asked only when a load has failed. Packages of extensions are found by the text of their module, so
that none is imported because somebody has mistyped another one's name.
"""

import difflib
import importlib.util
import pkgutil
from pathlib import Path

__all__ = ["near_package"]

_ALIKE = 0.75


def near_package(name: str) -> str | None:
    """The installed package of an SQLite extension whose name is near to one.

    Args:
        name: As it was asked for. What is installed as ``sqlite-vec`` is imported as
            ``sqlite_vec``; that one goes before any other.

    Returns:
        The name to write in place of it, if there is one.
    """
    if "/" in name or "\\" in name:
        return None  # a path
    wanted = name.replace("-", "_").replace(".", "_").lower()
    known = {module.name.lower(): module.name for module in pkgutil.iter_modules()}
    for near in difflib.get_close_matches(wanted, known, n=10, cutoff=_ALIKE):
        if known[near] != name and _has_loadable_path(known[near]):
            return known[near]
    return None


def _has_loadable_path(name: str) -> bool:
    """Whether a module has the function by which packages of extensions say where they are."""
    try:
        found = importlib.util.find_spec(name)
        if found is None or found.origin is None or not found.origin.endswith(".py"):
            return False
        return "loadable_path" in Path(found.origin).read_text(encoding="utf-8", errors="replace")
    except (ImportError, OSError, ValueError):
        return False
