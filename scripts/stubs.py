#!/usr/bin/env python3
"""Write the docstrings of the built native module into its stub, where editors look for them."""

import ast
import inspect
import textwrap
import types
from pathlib import Path

from oxlite import _native

STUB = Path(__file__).parents[1] / "python" / "oxlite" / "_native.pyi"
WIDTH = 100

Documented = ast.ClassDef | ast.FunctionDef


def with_docstrings(text: str) -> str:
    """A stub in which what has a docstring says it: classes, functions, methods, attributes."""
    text = _with_attributes(text)
    lines = text.splitlines(keepends=True)
    for node, document in reversed(_documented(ast.parse(text).body, _native)):
        first = node.body[0]
        indent = " " * (node.col_offset + 4)
        said = f"{indent}{_quoted(document, indent)}\n"
        if _is_docstring(first):
            lines[first.lineno - 1 : first.end_lineno] = [said]
        elif isinstance(node, ast.ClassDef) and first.lineno > node.lineno:
            lines.insert(_first_line(first) - 1, said)
        else:
            row = first.lineno - 1
            lines[row] = f"{lines[row][: first.col_offset].rstrip()}\n"
            lines.insert(row + 1, said)
    return "".join(lines)


def _with_attributes(text: str) -> str:
    """A stub in which the attributes of classes that can be set have their docstrings below."""
    lines = text.splitlines(keepends=True)
    classes = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)]
    for node in reversed(classes):
        there = vars(getattr(_native, node.name, object))
        for one, after in reversed([*zip(node.body, [*node.body[1:], None], strict=True)]):
            if not isinstance(one, ast.AnnAssign) or not isinstance(one.target, ast.Name):
                continue
            thing = there.get(one.target.id)
            if isinstance(thing, types.GetSetDescriptorType) and thing.__doc__:
                if after is not None and _is_docstring(after):
                    del lines[after.lineno - 1 : after.end_lineno]
                indent = " " * one.col_offset
                lines.insert(one.lineno, f"{indent}{_quoted(thing.__doc__, indent)}\n")
    return "".join(lines)


def _documented(nodes: list[ast.stmt], where: object) -> list[tuple[Documented, str]]:
    """The nodes of a scope with a docstring, and it, in their order; of overloads the first."""
    found: list[tuple[Documented, str]] = []
    seen: set[str] = set()
    for node in nodes:
        if not isinstance(node, Documented) or node.name in seen:
            continue
        seen.add(node.name)
        thing = vars(where).get(node.name)
        # Of a static method written in C an older Python says what static methods are.
        thing = getattr(thing, "__func__", thing)
        document = getattr(thing, "__doc__", None)
        is_own = isinstance(document, str) and not node.name.startswith("__")
        if thing is not None and is_own and document.strip() and document != object.__doc__:
            found.append((node, document))
        if isinstance(node, ast.ClassDef) and thing is not None:
            found += _documented(node.body, thing)
    return found


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _first_line(node: ast.stmt) -> int:
    """With its decorators."""
    return min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])


def _quoted(document: str, indent: str) -> str:
    """A docstring as it stands in a source."""
    text = inspect.cleandoc(document)
    prefix = "r" if "\\" in text else ""
    if "\n" not in text and len(indent) + len(text) + 6 + len(prefix) <= WIDTH:
        return f'{prefix}"""{text}"""'
    # Prose is wrapped to the width of the stub; what is indented stays as it is.
    paragraphs = [
        part if any(line.startswith((" ", "-", "|", ">")) for line in part.splitlines())
        else textwrap.fill(" ".join(part.split()), WIDTH - len(indent) - 8, break_long_words=False)
        for part in text.split("\n\n")
    ]  # fmt: skip
    body = textwrap.indent("\n\n".join(paragraphs), indent, lambda line: bool(line.strip()))
    return f'{prefix}"""{body.lstrip()}\n{indent}"""'


if __name__ == "__main__":
    STUB.write_text(with_docstrings(STUB.read_text()))
