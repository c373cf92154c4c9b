"""No file of the project names a path of a machine it was written on."""

import re
import tempfile
from pathlib import Path

import pytest

# What begins there; not the middle of a longer path, an address or a word.
_BEGINS = rb"(?<![\w.~/:-])"
_SOMEBODYS = re.compile(
    _BEGINS
    + rb"(?:/(?:root|work|workspaces?|checkouts?|repos?|builds?)"  # of one user, of one machine
    + rb"|/(?:home|Users|tmp|var/tmp|private/tmp|var/folders)/[\w.+-]+"  # of one of its users
    + rb"|[A-Za-z]:[/\\]+Users[/\\]+[\w.+-]+)[/\\]+[\w.+-]"
)


def paths_of_a_machine(content: bytes, of_this_one: list[bytes]) -> list[bytes]:
    """What of a text only somebody's machine has, with what is around it."""
    found = [match.start() for match in _SOMEBODYS.finditer(content)]
    found += [at for path in of_this_one if (at := content.find(path)) >= 0]
    return [content[max(0, at - 40) : at + 60] for at in found]


def test_no_machine_is_named(tracked_files: list[Path], root: Path) -> None:
    of_this_one = [
        str(path).encode()
        for path in (root, Path.home(), Path(tempfile.gettempdir()))
        if len(path.parts) > 2  # the folders that every machine has are no secret
    ]
    named = {}
    for file in tracked_files:
        content = file.read_bytes()
        is_text = b"\0" not in content
        if is_text and (found := paths_of_a_machine(content, of_this_one)):
            named[file] = found
    assert named == {}


@pytest.mark.parametrize(
    ("parts", "is_of_a_machine"),
    [
        (("", "root", "x"), True),
        (("", "home", "ada", "site", "app.db"), True),
        (("", "Users", "ada", "app.db"), True),
        (("", "work", "tree"), True),
        (("", "tmp", "session-5", "log"), True),
        (("C:", "Users", "ada", "app.db"), True),
        (("", "tmp", "app.db"), False),
        (("", "dev", "shm", "x"), False),
        (("docs", "work", "x"), False),
        (("https:", "", "example.org", "home", "x", "y"), False),
    ],
)
def test_the_rule_knows_one(parts: tuple[str, ...], is_of_a_machine: bool) -> None:
    assert bool(paths_of_a_machine("/".join(parts).encode(), [])) is is_of_a_machine
