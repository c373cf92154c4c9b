"""Branch databases: for settings, and URLs of SQLAlchemy's.

>>> from oxlite import branch
>>> engine = create_engine(
...     f"sqlite+oxlite:///{branch.database('app-{branch}.db', debug=True)}"
... )
"""

from oxlite.operations.branches import current_branch, database

__all__ = ["current_branch", "database"]
