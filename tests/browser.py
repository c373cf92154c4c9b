"""The Chromium in which tests open pages: the system's, or that of playwright."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@contextmanager
def chromium() -> Iterator["Browser"]:
    """One that runs meanwhile; the test is skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome")
    system = next((path for name in names if (path := shutil.which(name))), None)
    with playwright.sync_playwright() as started:
        try:
            # In a container there is nothing a sandbox could be made of; the pages are ours.
            browser = started.chromium.launch(executable_path=system, args=["--no-sandbox"])
        except playwright.Error as error:
            if "Executable doesn't exist" not in str(error):
                raise
            pytest.skip("no Chromium here: run `make browser`, or install one")
        yield browser
        browser.close()
