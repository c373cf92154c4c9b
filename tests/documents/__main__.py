"""Plays pages as the tests do, and says how long each step takes: for whoever writes one.

``python -m tests.documents docs/wal.md`` plays a page; ``--not-run`` lists what is not
run, and why.
"""

import argparse
import tempfile
import time
from pathlib import Path

from tests.documents import environment, languages
from tests.documents.page import Page, pages, read
from tests.documents.session import Session


def not_run() -> list[str]:
    """Every block that is not run, or not looked at in full, with its reason."""
    found = []
    for page in pages():
        for block in page.blocks:
            language = block.language or "text"
            reason = block.not_run or languages.check(page, block)
            if reason:
                found.append(f"{block.place}: {language}: {reason}")
    return found


def play(page: Page) -> None:
    """Plays a page, and prints how long each block has taken."""
    with tempfile.TemporaryDirectory(prefix="oxlite-page-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        wheel = environment.built_wheel(folder / "wheel") if page.makes_environments else None
        given = environment.variables(page, folder, wheel)
        limit_seconds = 300 if page.slow else 60
        with Session(page, folder / "page", given, limit_seconds) as session:
            for block in page.blocks:
                languages.check(page, block)
                begins = time.monotonic()
                session.play(block)
                first = block.text.partition("\n")[0]
                print(f"{time.monotonic() - begins:6.1f} s  {block.place}: {first}", flush=True)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.documents", description=__doc__)
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE")
    parser.add_argument("--not-run", action="store_true", help="list what is not run, and why")
    chosen = parser.parse_args()
    if chosen.not_run:
        print("\n".join(not_run()))
    for path in chosen.pages:
        play(read(path.resolve()))


if __name__ == "__main__":
    main()
