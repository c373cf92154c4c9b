"""No file of the project names a path of a machine it was written on."""

import re
from pathlib import Path

# A path that begins there; not the middle of a longer one, an address or a word.
_MACHINE_PATH = re.compile(rb"(?<![\w.~/:-])/(?:root|work)/")


def test_no_machine_is_named(tracked_file: Path) -> None:
    content = tracked_file.read_bytes()
    if b"\0" in content:
        return  # not text
    found = _MACHINE_PATH.search(content)
    assert found is None, f"near {content[max(0, found.start() - 40) : found.end() + 20]!r}"
