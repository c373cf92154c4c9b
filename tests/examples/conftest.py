"""What tests of the examples share."""

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture
def browser() -> Iterator["Browser"]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    names = ("chromium", "chromium-browser", "google-chrome")
    system = next((path for name in names if (path := shutil.which(name))), None)
    with playwright.sync_playwright() as started:
        try:
            chromium = started.chromium.launch(executable_path=system, args=["--no-sandbox"])
        except playwright.Error as error:
            if "Executable doesn't exist" not in str(error):
                raise
            pytest.skip("no Chromium here: run `make browser`, or install one")
        yield chromium
        chromium.close()
