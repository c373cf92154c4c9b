"""The Python of the README and of docs/ runs as it stands there.

The blocks of a page run in their order, in one process and one empty folder, as a reader would
paste them. One that is no whole program says so in a comment before it: ``<!-- not run: why -->``.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(
    r"(?:^ *<!-- not run: (?P<reason>.+?) -->\n+)?^(?P<indent> *)```python\n(?P<code>.*?)^ *```$",
    flags=re.MULTILINE | re.DOTALL,
)


def blocks(page: Path) -> list[tuple[str, str | None]]:
    """The Python of a page, each block with the reason why it is not run, if there is one."""
    return [
        (re.sub(f"^{found['indent']}", "", found["code"], flags=re.MULTILINE), found["reason"])
        for found in _BLOCK.finditer(page.read_text())
    ]


PAGES = [
    page for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if blocks(page)
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_python_of_a_page_runs_as_pasted(page: Path, tmp_path: Path) -> None:
    program = tmp_path / "pasted.py"
    program.write_text("\n".join(code for code, reason in blocks(page) if reason is None))
    ended = subprocess.run(
        [sys.executable, program.name], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0, ended.stderr


def test_what_is_not_run_is_python_all_the_same() -> None:
    left_out = [(page, code) for page in PAGES for code, reason in blocks(page) if reason]
    assert left_out
    for page, code in left_out:
        compile(code, page.name, "exec")


def test_there_are_pages_to_run() -> None:
    assert ROOT / "README.md" in PAGES
    assert len(PAGES) >= 8
