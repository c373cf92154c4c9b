"""Lists of pages, as Python-Markdown wants them.

In the repository what belongs to an item stands below its text, two or three columns in, and a list
may follow a paragraph at once (CommonMark). Python-Markdown wants four columns, and an empty line.
"""

import re
from dataclasses import dataclass, field

_ITEM = re.compile(r"(?P<indent> *)(?P<marker>[-*+]|(?P<number>\d{1,9})[.)])(?P<space> +)(?=\S)")
_FENCE = re.compile(r" *(?P<fence>`{3,}|~{3,})")
_COLUMNS = 4


def for_site(markdown: str) -> str:
    """The text of a page with its lists as the site needs them."""
    page = _Page()
    for line in markdown.splitlines():
        page.read(line)
    return "\n".join(page.lines) + ("\n" if markdown.endswith("\n") else "")


@dataclass
class _Page:
    lines: list[str] = field(default_factory=list)
    # Where the text of each item that is open begins, the outermost first.
    _items: list[int] = field(default_factory=list)
    _fence: str = ""
    _shift: int = 0
    """By how much what is in the fence goes to the right."""

    def read(self, line: str) -> None:
        if self._fence:
            self._read_code(line)
        elif not line.strip():
            self.lines.append("")
        else:
            self._read_text(line)

    def _read_code(self, line: str) -> None:
        indent = _indent_of(line)
        self.lines.append(" " * (indent + self._shift) + line[indent:] if line.strip() else "")
        found = _FENCE.match(line)
        if found and found["fence"].startswith(self._fence) and not line[found.end() :].strip():
            self._fence = ""

    def _read_text(self, line: str) -> None:
        indent, goes_on = _indent_of(line), bool(self.lines and self.lines[-1].strip())
        item = _ITEM.match(line)
        if item and goes_on and not self._may_interrupt(item):
            item = None
        if item or not goes_on:
            while self._items and indent < self._items[-1]:
                self._items.pop()
        depth, within = len(self._items), self._items[-1] if self._items else 0
        if indent - within >= _COLUMNS:  # code
            item = None
        begins_list = item is not None and goes_on and depth == 0 and not self._ends_in_list()
        if begins_list:
            self.lines.append("")
        # What goes on with less than its columns stays where it is: it belongs to the text above.
        extra = max(0, indent - within)
        where = _COLUMNS * depth + (0 if item else extra)
        self.lines.append(" " * where + line[indent:])
        if item is not None:
            self._items.append(item.end())
        elif found := _FENCE.match(line):
            self._fence, self._shift = found["fence"], where - indent

    def _may_interrupt(self, item: re.Match[str]) -> bool:
        """Whether it begins an item though the line before it is no empty one."""
        is_sibling = any(len(item["indent"]) < column for column in self._items)
        return is_sibling or item["number"] in {None, "1"}

    def _ends_in_list(self) -> bool:
        """Whether the paragraph above is an item, or goes on in one."""
        for line in reversed(self.lines):
            if not line.strip():
                return False
            if _ITEM.match(line):
                return True
        return False


def _indent_of(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
