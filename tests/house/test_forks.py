"""Whatever is done at a fork is listed in one place: ARCHITECTURE.md, "At a fork"."""

import re
from pathlib import Path

SOURCES = ("crates/*/src/**/*.rs", "python/oxlite/**/*.py")
REGISTERS = re.compile(r"\b(?:register_at_fork|pthread_atfork)\(")
LOOKS = re.compile(r"\bfork(?:::|_)generation\(\)")
MADE_BY_PYO3 = re.compile(r"\b(?:PyOnceLock|GILOnceCell)\b|\bintern!")


def listed(root: Path) -> tuple[set[str], set[str]]:
    """The owners in the two tables: those that are registered, and those that look."""
    page = (root / "ARCHITECTURE.md").read_text()
    section = page.partition("### At a fork\n")[2].partition("\n## ")[0]
    first, _, second = section.partition("looks at the generation")
    owner = re.compile(r"^\| `([^`]+)` \|", re.MULTILINE)
    return set(owner.findall(first)), set(owner.findall(second))


def owning(root: Path, pattern: re.Pattern[str]) -> set[str]:
    """The files in which it stands, comments left out."""
    return {
        file.relative_to(root).as_posix()
        for glob in SOURCES
        for file in root.glob(glob)
        if "/bench/" not in file.as_posix()
        and pattern.search(re.sub(r"(?m)//.*|^\s*#.*", "", file.read_text()))
    }


def test_what_is_registered_is_listed(root: Path) -> None:
    registered, _ = listed(root)
    assert len(registered) > 4
    assert owning(root, REGISTERS) == registered


def test_who_looks_at_the_generation_is_listed(root: Path) -> None:
    registered, looking = listed(root)
    assert len(looking) > 10
    assert owning(root, LOOKS) - registered == looking


def test_nothing_is_left_half_made_to_a_child(root: Path) -> None:
    """PyO3's cells let the GIL go while they are filled: `gil_once` says what that does."""
    assert owning(root, MADE_BY_PYO3) == set()
