"""What `make site` refuses: a page in no menu, a link and an anchor that lead nowhere."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mkdocs", reason="the group 'site' is not installed")


def built(folder: Path, root: Path, index: str, other: str | None = None) -> tuple[int, str]:
    """A site of one page or two, of which the menu has the first, by the project's own rules."""
    (folder / "docs").mkdir()
    (folder / "docs" / "index.md").write_text(index)
    if other is not None:
        (folder / "docs" / "other.md").write_text(other)
    (folder / "mkdocs.yml").write_text(
        f"INHERIT: {root / 'mkdocs.yml'}\n"
        "docs_dir: docs\nsite_dir: site\ntheme: mkdocs\nhooks: []\nplugins: []\nextra_css: []\n"
        "nav: [index.md]\n"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--config-file", "mkdocs.yml"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return ended.returncode, ended.stderr


def test_a_whole_site_is_built(tmp_path: Path, root: Path) -> None:
    code, said = built(tmp_path, root, "# Title\n\n[here](#title)\n")
    assert code == 0, said


@pytest.mark.parametrize(
    ("index", "other", "complaint"),
    [
        ("# Title\n", "# Other\n", "not included in the"),
        ("# Title\n\n[x](nowhere.md)\n", None, "nowhere.md"),
        ("# Title\n\n[x](#nowhere)\n", None, "#nowhere"),
        ("# Title\n\n[x](/index.md)\n", None, "/index.md"),
    ],
    ids=["unlisted", "broken", "no anchor", "absolute"],
)
def test_what_is_wrong_is_an_error(
    tmp_path: Path, root: Path, index: str, other: str | None, complaint: str
) -> None:
    code, said = built(tmp_path, root, index, other)
    assert code == 1
    assert complaint in said
