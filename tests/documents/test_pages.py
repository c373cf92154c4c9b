"""All code on the pages for users runs as it stands there.

``tests/README.md`` says by which rules.
"""

import codeop
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.documents import environment, languages
from tests.documents.__main__ import not_run
from tests.documents.page import Page, named, pages
from tests.documents.session import Session

PAGES = pages()


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment.built_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def folder() -> Iterator[Path]:
    """A directory that others may enter, as nginx's workers do; pytest's own are private."""
    with tempfile.TemporaryDirectory(prefix="oxlite-page-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        yield Path(name)


def play(page: Page, folder: Path, wheel: Path | None, limit_seconds: float) -> None:
    lacking = environment.lacking(page)
    if lacking:
        pytest.skip(lacking)
    given = environment.variables(page, folder, wheel)
    with Session(page, folder / "page", given, limit_seconds) as session:
        for block in page.blocks:
            session.play(block)


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.blocks and not page.slow],
    ids=lambda page: named(page.path),
)
def test_a_page_does_what_it_says(page: Page, folder: Path) -> None:
    play(page, folder, None, limit_seconds=60)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.slow], ids=lambda page: named(page.path)
)
def test_a_long_page_does_what_it_says(
    page: Page, folder: Path, request: pytest.FixtureRequest
) -> None:
    wheel = request.getfixturevalue("wheel") if page.makes_environments else None
    play(page, folder, wheel, limit_seconds=300)
    if wheel is not None:
        assert not environment.strangers(folder, wheel), "another Oxlite was installed"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: named(page.path))
def test_every_block_is_what_its_language_says(page: Page) -> None:
    for block in page.blocks:
        languages.check(page, block)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: named(page.path))
def test_what_has_no_language_says_why_it_is_not_run(page: Page) -> None:
    """A block is a file, is typed, is pasted, is what that Python prints, or says what it is."""
    blocks = page.blocks
    unsaid = [
        block.place
        for before, block in zip([None, *blocks], blocks, strict=False)
        if block.language in {"", "text"}
        and not (block.title or block.not_run)
        and not (block.language == "text" and before is not None and before.language == "python")
    ]
    assert not unsaid


def test_the_shell_of_an_old_python_takes_what_the_first_pages_show() -> None:
    """Before Python 3.13 it reads line by line, and wants an empty line after what is indented."""
    first = [
        page
        for page in PAGES
        if named(page.path).startswith(("README", "docs/index", "docs/start/"))
    ]
    pasted = [b for page in first for b in page.blocks if b.language == "python" and not b.title]
    assert len(pasted) > 5
    for block in pasted:
        compiler = codeop.CommandCompiler()
        typed: list[str] = []
        for line in [*block.text.splitlines(), ""]:
            typed.append(line)
            if compiler("\n".join(typed), block.place, "single") is not None:
                typed.clear()
        assert not typed, f"{block.place}: the shell waits for more"


def test_what_is_not_run_says_why_and_is_listed() -> None:
    listed = not_run()
    print("\n".join(listed))
    assert listed
    assert not [line for line in listed if len(line.rsplit(": ", 1)[1].split()) < 2]


def test_there_are_pages_to_run() -> None:
    names = {named(page.path) for page in PAGES if page.blocks}
    assert {"README.md", "docs/cli.md", "docs/database.md", "examples/README.md"} <= names
    assert len(names) >= 25
