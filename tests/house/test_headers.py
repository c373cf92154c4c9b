"""Every source file opens by saying what it is for."""

import ast
from collections.abc import Callable
from pathlib import Path

Parse = Callable[[Path], ast.Module]


def test_a_python_file_has_a_header(python_file: Path, parse: Parse) -> None:
    docstring = ast.get_docstring(parse(python_file))
    assert docstring, "begin the file with a docstring: its purpose, its invariants"


def test_a_rust_file_has_a_header(rust_file: Path) -> None:
    first = next((line for line in rust_file.read_text().splitlines() if line.strip()), "")
    assert first.startswith("//!"), "begin the file with //!: its purpose, its invariants"
