"""What the site does beside MkDocs: a hook of ``mkdocs.yml``.

- Files at the root (README, CHANGELOG, …) are pages, without a copy in the tree.
- Lists have the columns that Python-Markdown wants (``lists``).
- Links that leave ``docs/`` lead to such a page or to the repository (``links``).
- A comment ``<!-- site: name … -->`` becomes a chart or a table (``charts``, ``constants``).
- Headings have the anchors that GitHub gives them.
- In the navigation, ``"*folder": folder`` stands for every page of a folder, under its title.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from scripts.site import charts, constants, links, lists

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

_CHARTS_CSS = "assets/charts.css"
_DIRECTIVE = re.compile(r"^<!-- site: (?P<name>[a-z]+)(?P<arguments>[^>]*) -->$", re.MULTILINE)
_MADE: Mapping[str, Callable[[str], str]] = {
    "chart": charts.figure,
    "constants": lambda _: constants.tables(),
}
"""What a comment ``<!-- site: name … -->`` becomes, which the repository does not show."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set what YAML cannot say."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = links.slug
    config.extra_css.insert(0, _CHARTS_CSS)
    config.nav = _filled(config.nav or [])
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in ``docs/``."""
    for name, page in links.SHOWN.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / name)))
    files.append(File.generated(config, _CHARTS_CSS, content=charts.style()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Make a page of the repository one of the site."""
    outside = {shown: name for name, shown in links.SHOWN.items()}
    source = outside.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    text = lists.for_site(links.for_site(markdown, source, ROOT))
    return _DIRECTIVE.sub(lambda found: _MADE[found["name"]](found["arguments"]), text)


def _filled(entries: list[Any]) -> list[Any]:
    """A part of the navigation, with the pages of the folders that it names."""
    found: list[Any] = []
    for entry in entries:
        if not isinstance(entry, dict):
            found.append(entry)
            continue
        for title, value in entry.items():
            if str(title).startswith("*"):
                found += [
                    {_title(path): path.relative_to(DOCS).as_posix()}
                    for path in sorted((DOCS / value).glob("*.md"))
                ]
            else:
                found.append({title: _filled(value) if isinstance(value, list) else value})
    return found


def _title(path: Path) -> str:
    """What a page is called: its heading, or its name."""
    heading = re.match(r"# (.+)$", path.read_text(), flags=re.MULTILINE)
    return heading[1].replace("`", "") if heading else path.stem
