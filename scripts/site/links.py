"""Links of pages, as the site has them.

In the repository a page links to files by relative paths, of which some leave ``docs/``. On the
site such a link leads to the page that shows the file, if there is one, and to the repository
otherwise. So a page reads well in both places, and nothing is written twice. README, which package
indexes show as well, names addresses of the site; on the site they are relative again.

Invariants: what stands in code is left as it is; a link to what is not in the tree is left as it
is too, so that MkDocs finds it.
"""

import posixpath
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path

REPOSITORY = "https://github.com/oxlite/oxlite"
SITE = "https://oxlite.github.io/oxlite/"

SHOWN: Mapping[str, str] = {
    "README.md": "project/readme.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CHANGELOG.md": "project/changelog.md",
    "COMPARE.md": "project/compare.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "DESIGN.md": "project/design.md",
    "SECURITY.md": "project/security.md",
}
"""What the site shows of the files outside docs/, and as which page."""

_CODE = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,}|~{3,}).*?^(?P=indent)(?P=fence)[ \t]*$"
    r"|(?P<ticks>`+)[^`].*?(?<!`)(?P=ticks)(?!`)"
    r"|<!--.*?-->",
    flags=re.MULTILINE | re.DOTALL,
)
_LINK = re.compile(r"(?P<before>\]\()(?P<target>[^)\s]+)(?P<after>[^)]*\))")
_REFERENCE = re.compile(
    r"^(?P<before> {0,3}\[[^\]^][^\]]*\]: +)(?P<target>\S+)(?P<after>.*)$", flags=re.MULTILINE
)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*:|//|#")


def slug(heading: str, separator: str = "-") -> str:
    """The name that a heading has in links, as GitHub makes it."""
    text = unicodedata.normalize("NFC", heading.lower())
    return re.sub(r"[^\w -]", "", text).strip().replace(" ", separator)


def for_site(markdown: str, source: str, root: Path) -> str:
    """The text of a page with the links that the site needs.

    Args:
        markdown: the text of the page.
        source: its file, as a path from the root of the repository.
        root: that root.
    """
    folder = posixpath.dirname(source)
    place = posixpath.dirname(page_of(source) or "")

    def led(target: str) -> str:
        if target.startswith(SITE):
            path, hash_, anchor = target.removeprefix(SITE).partition("#")
            return posixpath.relpath(_source_of(path, root), place or ".") + hash_ + anchor
        if _ADDRESS.match(target):
            return target
        name, hash_, anchor = target.partition("#")
        path = posixpath.normpath(posixpath.join(folder, name))
        page = page_of(path)
        if page is not None:
            return posixpath.relpath(page, place or ".") + hash_ + anchor
        there = root / path
        if path.startswith("..") or not there.exists():
            return target
        kind = "tree" if there.is_dir() else "blob"
        return f"{REPOSITORY}/{kind}/main/{path}".removesuffix("/.") + hash_ + anchor

    def replaced(text: str) -> str:
        for pattern in (_LINK, _REFERENCE):
            text = pattern.sub(
                lambda found: found["before"] + led(found["target"]) + found["after"], text
            )
        return text

    return "".join(part if is_code else replaced(part) for part, is_code in divided(markdown))


def page_of(path: str) -> str | None:
    """The page of the site that shows a file of the repository, as a path below ``docs``."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return SHOWN.get(path)


def _source_of(address: str, root: Path) -> str:
    """What the site makes an address of, as a path below ``docs``; a page ends with a slash."""
    if address and not address.endswith("/"):
        return address
    page = f"{address.rstrip('/')}.md"
    is_there = page in SHOWN.values() or (root / "docs" / page).exists()
    return page if is_there else f"{address}index.md"


def divided(markdown: str) -> list[tuple[str, bool]]:
    """The parts of a text in their order, each with whether it is code (or a comment)."""
    parts, end = [], 0
    for found in _CODE.finditer(markdown):
        parts += [(markdown[end : found.start()], False), (found[0], True)]
        end = found.end()
    return [*parts, (markdown[end:], False)]
