"""The built site: complete, and without anything from elsewhere."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


def test_it_is_built_without_a_warning(site: Path) -> None:
    assert (site / "index.html").is_file()
