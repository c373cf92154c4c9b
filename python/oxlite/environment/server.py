"""What a PostgreSQL server says about itself, where one is measured beside SQLite.

Invariants: reading changes nothing; no path, host or user is in it.
"""

from typing import Any

__all__ = ["SERVER_SETTINGS", "server_report"]

SERVER_SETTINGS: tuple[str, ...] = (
    "autovacuum",
    "block_size",
    "checkpoint_completion_target",
    "checkpoint_timeout",
    "commit_delay",
    "data_checksums",
    "default_transaction_isolation",
    "effective_cache_size",
    "effective_io_concurrency",
    "fsync",
    "full_page_writes",
    "huge_pages",
    "io_method",
    "jit",
    "maintenance_work_mem",
    "max_connections",
    "max_parallel_workers_per_gather",
    "max_wal_size",
    "random_page_cost",
    "server_encoding",
    "shared_buffers",
    "synchronous_commit",
    "temp_buffers",
    "wal_buffers",
    "wal_compression",
    "wal_level",
    "wal_sync_method",
    "work_mem",
)
"""The settings on which durability and speed depend."""

_QUERY = "SELECT name, current_setting(name) FROM pg_settings ORDER BY name"


def server_report(connection: Any) -> dict[str, Any]:  # noqa: ANN401 - PEP 249's, of any driver
    """The server behind a connection, and the settings in force on it.

    Args:
        connection: an open connection to PostgreSQL, of any driver that follows PEP 249.

    Returns:
        A dictionary that JSON can hold::

            server           "PostgreSQL"
            server_version   as the server reports it
            settings         name to effective value, as SHOW writes it

    Raises:
        Exception: the driver's own error.
    """
    cursor = connection.cursor()
    try:
        cursor.execute("SHOW server_version")
        version = str(cursor.fetchone()[0])
        cursor.execute(_QUERY)
        found = {str(name): str(value) for name, value in cursor.fetchall()}
    finally:
        cursor.close()
    return {
        "server": "PostgreSQL",
        "server_version": version,
        "settings": {name: found[name] for name in SERVER_SETTINGS if name in found},
    }
