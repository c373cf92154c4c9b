"""Two databases of the same content: one in which is written, one to which it is applied."""

import pytest
from tests.changeset.tables import ROWS, Database, make


@pytest.fixture
def source() -> Database:
    return make(ROWS)


@pytest.fixture
def target() -> Database:
    return make(ROWS)
