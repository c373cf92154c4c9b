"""SQLAlchemy's test machinery as a plugin, with our dialect: ``pytest -p dialect_plugin``.

Source: https://github.com/sqlalchemy/sqlalchemy/blob/main/README.dialects.rst
"""

import pytest
import register_dialect  # noqa: F401 - that it is known

# Before the machinery is imported, or its assertions say less when they fail.
pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403 - hooks, by their names
