"""The project has one address, and one of its site, and what is behind them is there."""

import re
import tomllib
from pathlib import Path

import pytest
from scripts.site.links import SHOWN

REPOSITORY = "https://github.com/oxlite/oxlite"
SITE = "https://oxlite.github.io/oxlite/"
_OURS = re.compile(r"https://(?:github\.com/oxlite|oxlite\.github\.io)[^\s\"'`)>\],]*")
_SPECIAL = ("/issues", "/discussions", "/security/advisories/new", ".git")


@pytest.fixture(scope="module")
def urls(root: Path) -> dict[str, str]:
    """The addresses in the metadata of the package."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    found: dict[str, str] = project["urls"]
    return found


def test_the_metadata_has_what_an_index_shows(urls: dict[str, str]) -> None:
    assert urls == {
        "Homepage": SITE,
        "Documentation": SITE,
        "Source": REPOSITORY,
        "Changelog": f"{REPOSITORY}/blob/main/CHANGELOG.md",
        "Issues": f"{REPOSITORY}/issues",
        "Security": f"{REPOSITORY}/blob/main/SECURITY.md",
    }


def test_others_say_the_same(root: Path) -> None:
    site = (root / "mkdocs.yml").read_text()
    assert f"\nsite_url: {SITE}\n" in site
    assert f"\nrepo_url: {REPOSITORY}\n" in site
    package = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["package"]
    assert package["repository"] == REPOSITORY


def leads_somewhere(address: str, root: Path) -> bool:
    """Whether an address of ours is one of a page, of a file, or of what every repository has."""
    address = address.partition("#")[0].rstrip(".:;")
    if address.startswith(SITE):
        page = address.removeprefix(SITE).rstrip("/")
        shown = {place.removesuffix(".md"): name for name, place in SHOWN.items()}
        names = [shown.get(page, ""), f"docs/{page}.md", f"docs/{page}/index.md", f"docs/{page}"]
        return page == "" or any((root / name).is_file() for name in names if name)
    if address in {REPOSITORY, SITE.rstrip("/")}:
        return True
    rest = address.removeprefix(REPOSITORY)
    if rest == address:
        return False
    place = re.match(r"/(?:blob|tree|raw)/main/(.+)$", rest)
    return rest.startswith(_SPECIAL) or (place is not None and (root / place[1]).exists())


def test_every_address_of_ours_leads_somewhere(root: Path, tracked_files: list[Path]) -> None:
    """In pages, metadata, forms and programs; not in tests, nor in what was captured."""
    wrong = []
    for file in tracked_files:
        place = file.relative_to(root)
        if place.parts[0] == "tests" or "evidence" in place.parts or file.suffix == ".svg":
            continue
        if file.suffix not in {".md", ".toml", ".yml", ".py", ".rs", ".txt", ".sh", ".html"}:
            continue
        for address in _OURS.findall(file.read_text()):
            if not ("{" in address or leads_somewhere(address, root)):
                wrong.append(f"{place}: {address}")
    assert wrong == []


def test_the_readme_has_no_relative_link(root: Path) -> None:
    """The package index shows it, and knows no other file of the repository."""
    text = re.sub(r"^```.*?^```", "", (root / "README.md").read_text(), flags=re.M | re.S)
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    assert targets
    assert [target for target in targets if not target.startswith("https://")] == []


def test_an_address_that_leads_nowhere_is_noticed(root: Path) -> None:
    assert leads_somewhere(f"{SITE}wal/#readers", root)
    assert leads_somewhere(f"{SITE}project/security/", root)
    assert leads_somewhere(f"{REPOSITORY}/blob/main/README.md", root)
    assert not leads_somewhere(f"{SITE}no-such-page/", root)
    assert not leads_somewhere(f"{REPOSITORY}/blob/main/NOTHING.md", root)
    assert not leads_somewhere("https://github.com/oxlite/another", root)
