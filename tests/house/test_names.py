"""Modules are named after things: after what is in them, in nouns.

A name in *-ing* says that something is done, and not what is there.
"""

import re
from pathlib import Path

# Nouns that end so.
NOUNS = {"drawing", "recording", "setting", "string"}


def test_no_module_is_named_after_an_activity(tracked_files: list[Path], root: Path) -> None:
    names = [file.relative_to(root).as_posix() for file in tracked_files]
    modules = [
        name
        for name in names
        if name.endswith((".py", ".rs")) and not Path(name).name.startswith("test_")
    ]
    assert len(modules) > 300
    activities = [
        name
        for name in modules
        if re.search(r"ing\.(?:py|rs)$|ing/", name)
        and Path(name).stem.rpartition("_")[2] not in NOUNS
    ]
    assert activities == []
