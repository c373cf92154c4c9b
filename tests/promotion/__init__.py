"""The road to PostgreSQL, with a real one."""
