"""The other builds of the extension module, for the ``build`` axis.

A build is the same driver and the same SQLite version compiled with other
flags, in ``builds/<name>/`` beside this package. They are made for development
only and never part of a released wheel, so each may be absent: then the cells
that need it are listed with the reason.

Invariant: this module and ``harness/bootstrap.py`` agree on the path; the
latter cannot import this one, because it runs before anything of Oxlite.
"""

import sysconfig
from pathlib import Path

NOT_BUILT = "not built; run `make builds`"


def path(build: str) -> Path:
    """Where the extension module of ``build`` is, if it was built."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    return Path(__file__).parents[1] / "builds" / build / f"_native{suffix}"


def missing(build: str) -> str | None:
    """Why ``build`` cannot be loaded here, or ``None`` if it can."""
    if build in {"own", "tuned"} or path(build).is_file():
        return None
    return NOT_BUILT
