"""Makes ``sqlite3`` mean Oxlite in this interpreter and in those that it starts.

Python imports a module of this name at its start, if the folder is on PYTHONPATH.

Invariant: the standard library's driver cannot be reached. All its names are blocked before Oxlite
is imported, so whatever goes wrong here ends in an ImportError, not in a test of the wrong driver.
"""

import importlib
import os
import sys
from typing import Any

NAMES = {
    "_sqlite3": "oxlite._native",
    "sqlite3": "oxlite.sqlite3",
    "sqlite3.dbapi2": "oxlite.sqlite3.dbapi2",
    "sqlite3.dump": "oxlite.sqlite3.dump",
}

_modules: dict[str, Any] = sys.modules  # None in it blocks a name
_modules.update(dict.fromkeys(NAMES))
for _name, _ours in NAMES.items():
    try:
        _modules[_name] = importlib.import_module(_ours)
    except Exception:
        continue  # suite.py imports it again and reports why it cannot be

# What suite.py counts by: each child whose program names sqlite3 must end up here.
_log = os.environ.get("OXLITE_SUBSTITUTED")
if _log and _modules["sqlite3"] is not None and "sqlite3" in " ".join(sys.orig_argv):
    with open(_log, "a") as _file:  # noqa: PTH123 - pathlib would slow every child down
        _file.write(f"{os.getpid()}\n")
