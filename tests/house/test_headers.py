"""Every source file opens by saying what it is for."""

import ast
from collections.abc import Callable
from pathlib import Path


def test_a_python_file_has_a_header(
    python_files: list[Path], parse: Callable[[Path], ast.Module]
) -> None:
    """A docstring: its purpose, its invariants."""
    assert len(python_files) > 300
    assert [file for file in python_files if not ast.get_docstring(parse(file))] == []


def test_a_rust_file_has_a_header(rust_files: list[Path]) -> None:
    """Comments with ``//!``: its purpose, its invariants."""
    assert len(rust_files) > 100
    without = [file for file in rust_files if not file.read_text().lstrip().startswith("//!")]
    assert without == []
