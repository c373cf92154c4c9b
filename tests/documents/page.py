"""What a page of the documentation shows, in its order: files, sessions, Python, and the rest.

``tests/README.md`` says how a page is written. What stands here knows nothing of running.
"""

import re
import textwrap
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,})(?P<info>[^`]*)$")
_TITLE = re.compile(r'title="(?P<name>[^"]+?)(?P<added> \(at the end\))?"')
_NOTE = re.compile(r"<!-- *(?P<word>not run|output varies|fails): *(?P<reason>.+?) *-->", re.DOTALL)
_GIVEN = re.compile(r"<!-- *given: *(?P<info>[^\n]+)\n(?P<text>.*?)-->", re.DOTALL)
_PAGE_IS_SLOW = re.compile(r"^<!-- slow: (.+?) -->$", re.MULTILINE)


class MalformedError(Exception):
    """A page is not written as pages are."""


@dataclass(frozen=True)
class Command:
    """A line that is typed, and what is shown below it."""

    line: int
    typed: str
    shown: tuple[str, ...]

    @property
    def stays(self) -> bool:
        """Whether it is left running in the background."""
        typed = self.typed.rstrip()
        return typed.endswith("&") and not typed.endswith("&&")


@dataclass(frozen=True)
class Block:
    """One block of a page, with what the comments before it say of it."""

    page: Path
    line: int  # of the first line in it, as editors count
    language: str
    text: str
    title: str | None = None
    added: bool = False  # to the end of the file
    hidden: bool = False  # it stands in a comment, and says what the page presupposes
    not_run: str | None = None
    varies: str | None = None
    fails: str | None = None

    @property
    def place(self) -> str:
        """Where it is, as compilers say it."""
        return f"{named(self.page)}:{self.line}"

    @property
    def commands(self) -> list[Command]:
        """What is typed in a session.

        Raises:
            MalformedError: It begins with something else.
        """
        found: list[tuple[int, list[str], list[str]]] = []
        goes_on = False
        for number, line in enumerate(self.text.splitlines(), start=self.line):
            if goes_on:
                found[-1][1].append(line)
            elif line.startswith("$ "):
                found.append((number, [line.removeprefix("$ ")], []))
            elif found:
                found[-1][2].append(line)
            else:
                raise MalformedError(
                    f"{self.place}: a session begins with a line that is typed: $ …"
                )
            goes_on = (goes_on or line.startswith("$ ")) and line.endswith("\\")
        return [
            Command(number, "\n".join(typed), tuple(_without_blank_ends(shown)))
            for number, typed, shown in found
        ]


@dataclass(frozen=True)
class Page:
    """A page and its blocks."""

    path: Path
    text: str

    @cached_property
    def blocks(self) -> list[Block]:
        """All of them, those in comments too.

        Raises:
            MalformedError: A block has no end, or a comment says something of no block.
        """
        return list(_Reader(self.path, self.text).blocks())

    @property
    def sessions(self) -> list[Block]:
        """Those that are typed into a shell."""
        return [block for block in self.blocks if block.language == "console" and not block.not_run]

    @property
    def typed(self) -> str:
        """All that is typed, for whoever looks for a word in it."""
        return "\n".join(command.typed for block in self.sessions for command in block.commands)

    @property
    def makes_environments(self) -> bool:
        """Whether its reader makes a virtual environment, into which things are installed."""
        return "-m venv" in self.typed

    @property
    def slow(self) -> str | None:
        """Why it is not run by ``make test``, or None."""
        if self.makes_environments:
            return "it installs into a virtual environment"
        said = _PAGE_IS_SLOW.search(self.text)
        return said[1] if said else None

    @property
    def ports(self) -> list[int]:
        """The ports that its commands and files name, so that two pages do not use one at once."""
        return ports("\n".join(block.text for block in self.blocks if not block.not_run))


def ports(text: str) -> list[int]:
    """The ports that a text names, as servers and addresses do."""
    found = re.findall(r"(?::|\bport[ =]|\blisten )(\d{4,5})\b", text)
    return sorted({int(port) for port in found if 1024 <= int(port) <= 65535})


def named(path: Path) -> str:
    """The page as people call it."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name


def read(path: Path) -> Page:
    """The page that a file is."""
    return Page(path, path.read_text())


def pages() -> list[Page]:
    """The pages for users: the README, that of the examples, and docs/ but for its records."""
    docs = ROOT / "docs"
    inside = [
        path
        for path in sorted(docs.rglob("*.md"))
        if path.relative_to(docs).parts[0] not in {"evidence", "decisions"}
    ]
    return [read(path) for path in (ROOT / "README.md", ROOT / "examples" / "README.md", *inside)]


def _without_blank_ends(lines: list[str]) -> list[str]:
    return textwrap.dedent("\n".join(lines)).strip("\n").splitlines() if any(lines) else []


class _Reader:
    """Goes through a page line by line."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._lines = text.splitlines()
        self._number = 0  # of lines that are read
        self._notes: dict[str, str] = {}

    def blocks(self) -> "list[Block]":
        found = []
        while self._number < len(self._lines):
            line = self._lines[self._number]
            self._number += 1
            fence = _FENCE.match(line)
            if fence:
                found.append(self._fenced(fence))
            elif line.lstrip().startswith("<!--"):
                found += self._comment(line)
            elif line.strip():
                self._nothing_is_left_over()
        self._nothing_is_left_over()
        return found

    def _fenced(self, fence: re.Match[str]) -> Block:
        begins = self._number + 1
        lines = []
        while True:
            if self._number == len(self._lines):
                raise MalformedError(f"{named(self._path)}:{begins - 1}: this block has no end")
            line = self._lines[self._number]
            self._number += 1
            if line.strip() == fence["fence"]:
                break
            lines.append(line.removeprefix(fence["indent"]))
        return self._block(fence["info"].strip(), begins, lines)

    def _block(self, info: str, begins: int, lines: list[str], *, hidden: bool = False) -> Block:
        title = _TITLE.search(info)
        notes, self._notes = self._notes, {}
        return Block(
            self._path,
            begins,
            info.partition(" ")[0] if not info.startswith("title=") else "",
            "".join(f"{line}\n" for line in lines),
            title=title["name"] if title else None,
            added=bool(title and title["added"]),
            hidden=hidden,
            not_run=notes.get("not run"),
            varies=notes.get("output varies"),
            fails=notes.get("fails"),
        )

    def _comment(self, line: str) -> list[Block]:
        begins = self._number
        indent = line[: len(line) - len(line.lstrip())]
        lines = [line]
        while "-->" not in line:
            if self._number == len(self._lines):
                raise MalformedError(f"{named(self._path)}:{begins}: this comment has no end")
            line = self._lines[self._number]
            self._number += 1
            lines.append(line)
        text = "\n".join(line.removeprefix(indent) for line in lines)
        note = _NOTE.fullmatch(text.strip())
        if note:
            self._notes[note["word"]] = " ".join(note["reason"].split())
        given = _GIVEN.fullmatch(text.strip())
        if given:
            inside = given["text"].splitlines()
            return [self._block(given["info"].strip(), begins + 1, inside, hidden=True)]
        return []

    def _nothing_is_left_over(self) -> None:
        for word, reason in self._notes.items():
            place = f"{named(self._path)}:{self._number}"
            raise MalformedError(f"{place}: “{word}: {reason}” stands before no block")
