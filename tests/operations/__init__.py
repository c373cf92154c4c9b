"""``oxlite.operations``: looking after a database."""
