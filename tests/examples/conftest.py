"""What tests of the examples share."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.browser import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture
def browser() -> Iterator["Browser"]:
    with chromium() as browser:
        yield browser
