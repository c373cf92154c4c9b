"""Forks and every door of the package: see ``doors`` and ``test_doors``."""
