"""The migrations of the table of tasks."""
