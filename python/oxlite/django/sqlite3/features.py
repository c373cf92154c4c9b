"""What SQLite can do: Django's own list, where it asks for the version, asked of ours."""

from django.db.backends.sqlite3.features import DatabaseFeatures as StockDatabaseFeatures

__all__ = ["DatabaseFeatures"]


class DatabaseFeatures(StockDatabaseFeatures):
    """The features of the SQLite inside Oxlite, 3.54 or later.

    Django's class looks at the version of the standard library's SQLite; the answers here are those
    for a version that is later than all it asks for.
    """

    can_alter_table_drop_column = True
    supports_aggregate_order_by_clause = True
    can_return_columns_from_insert = True
    can_return_rows_from_bulk_insert = True
