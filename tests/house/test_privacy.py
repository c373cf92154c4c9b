"""No file of the project names a path of a machine it was written on."""

import re
from pathlib import Path

# A path that begins there; not the middle of a longer one, an address or a word.
_MACHINE_PATH = re.compile(rb"(?<![\w.~/:-])/(?:root|work)/")


def test_no_machine_is_named(tracked_files: list[Path]) -> None:
    named = {}
    for file in tracked_files:
        content = file.read_bytes()
        is_text = b"\0" not in content
        if is_text and (found := _MACHINE_PATH.search(content)):
            named[file] = content[max(0, found.start() - 40) : found.end() + 20]
    assert named == {}
