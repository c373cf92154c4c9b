"""Names that the standard library's module has on some versions of Python only.

Each is there on the versions that have it, with the same warning.
"""

import sys
import warnings

from oxlite import _native

__all__ = ["attribute", "enable_shared_cache"]

_VERSION = "2.6.0"


def enable_shared_cache(do_enable: bool) -> None:
    """Let connections opened from now on share one page cache for each database, or not."""
    warnings.warn(
        "enable_shared_cache is deprecated and will be removed in Python 3.12. SQLite discourages "
        "the shared cache; where it must be, open the database with uri=True and cache=shared.",
        DeprecationWarning,
        stacklevel=2,
    )
    _native.enable_shared_cache(do_enable)


def attribute(name: str) -> object:
    """Return the attribute ``name`` of the module, with a warning where there is one.

    Raises:
        AttributeError: This version of Python does not have it.
    """
    version = sys.version_info[:2]
    if name in {"version", "version_info"} and version < (3, 14):
        if version >= (3, 12):
            _warn(f"{name} is deprecated and will be removed in Python 3.14")
        return _VERSION if name == "version" else tuple(map(int, _VERSION.split(".")))
    if name == "OptimizedUnicode" and version < (3, 12):
        _warn("OptimizedUnicode is deprecated and will be removed in Python 3.12; it is str")
        return str
    if name == "SQLITE_KEYWORDS" and version >= (3, 15):
        return getattr(_native, name)
    if name == "enable_shared_cache" and version < (3, 12):
        return enable_shared_cache
    raise AttributeError(f"module 'oxlite.sqlite3' has no attribute {name!r}")


def _warn(text: str) -> None:
    """Warn at the line that asks the module for the name."""
    warnings.warn(text, DeprecationWarning, stacklevel=4)
