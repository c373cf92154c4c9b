"""What griffe reads, as the reference needs it: an extension of griffe's.

Docstrings are written to be read as text, by ``help()`` and in editors. Some of their forms mean
something else in Markdown:

- an example of an interpreter's session (``>>>``) that stands outside of a section for examples,
  and what is indented after ``::``, become blocks of code;
- a list gets an empty line before it.

Of a module's docstring users see what comes before its map and its invariants, which are for who
changes it. Private constants among defaults, and private aliases of types, are shown as what they
stand for.

A package that offers a function of the name of one of its modules (``restore`` of
``oxlite.operations``) is taken to offer the function, as Python does.
"""

import ast
import re
import textwrap
from collections.abc import Callable
from typing import Any

from griffe import (
    Alias,
    Attribute,
    Class,
    Expr,
    Extension,
    Function,
    GriffeLoader,
    Module,
    Object,
    get_expression,
)

_SECTION = re.compile(r"^\w[\w ]*:$")
_PRIVATE = re.compile(r"(?<![\w.])_[A-Z]\w*")
_SESSION = ">>> "
_FOR_THOSE_WHO_CHANGE_IT = re.compile(r"\n\s*\n(?=::\n|Invariants?:)")


class Reference(Extension):
    """Puts fences around the code of docstrings, and functions before modules of their name."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:  # noqa: ANN401 (griffe's own)
        """Change the docstring of what griffe has read."""
        if obj.docstring is not None:
            text = obj.docstring.value
            if isinstance(obj, Module):
                text = _FOR_THOSE_WHO_CHANGE_IT.split(text)[0]
            obj.docstring.value = fenced(text)

    def on_package(self, *, pkg: Module, loader: GriffeLoader, **kwargs: Any) -> None:  # noqa: ANN401
        """Change a package that is read."""
        loader.resolve_aliases(implicit=False, external=False)
        for module in _modules(pkg):
            _spell_out(module, module)
            for name in [str(one) for one in module.exports or ()]:
                there, said = module.members.get(name), module.imports.get(name, "")
                if isinstance(there, Module) and said not in {"", there.path}:
                    meant = module.modules_collection[said]
                    module.members[name] = Alias(name, meant, parent=module)


def fenced(docstring: str) -> str:
    """A docstring with its code in fences.

    Args:
        docstring: the text, without the indentation of its quotes.
    """
    lines = docstring.splitlines()
    made: list[str] = []
    at, is_in_section = 0, False
    while at < len(lines):
        line = lines[at]
        if _SECTION.match(line):
            is_in_section = True
        elif line and not line.startswith(" "):
            is_in_section = False
        if line.startswith(_SESSION) and not is_in_section:
            end = _end_of(lines, at, lambda one: bool(one.strip()))
            made += ["```pycon", *lines[at:end], "```"]
            at = end
        elif line.rstrip().endswith("::") and not is_in_section:
            text = line.rstrip().removesuffix("::").rstrip()
            made += [f"{text}:"] if text else []
            end = _end_of(lines, at + 1, lambda one: not one.strip() or one.startswith(" "))
            code = textwrap.dedent("\n".join(lines[at + 1 : end])).strip("\n")
            made += ["", "```text", *code.splitlines(), "```", ""]
            at = end
        else:
            begins_list = line.startswith("- ") and made and made[-1][:1].strip()
            if begins_list and not made[-1].startswith("- "):
                made.append("")
            made.append(line)
            at += 1
    return "\n".join(made)


def _end_of(lines: list[str], begin: int, belongs: Callable[[str], bool]) -> int:
    end = begin
    while end < len(lines) and belongs(lines[end]):
        end += 1
    return end


def _spell_out(within: Module | Class, module: Module) -> None:
    """Put what private names stand for in the place of the names."""
    for member in within.members.values():
        if isinstance(member, Class):
            _spell_out(member, module)
        elif isinstance(member, Function):
            for parameter in member.parameters:
                parameter.default = _spelt_out(parameter.default, module)
                parameter.annotation = _spelt_out(parameter.annotation, module)
            member.returns = _spelt_out(member.returns, module)
        elif isinstance(member, Attribute) and not member.is_private:
            member.annotation = _spelt_out(member.annotation, module)


def _spelt_out(expression: str | Expr | None, module: Module) -> str | Expr | None:
    found = text = str(expression)
    for _ in range(3):  # an alias may be of another one
        found = _PRIVATE.sub(lambda name: _value_of(name[0], module), found)
    if expression is None or found == text:
        return expression
    return get_expression(ast.parse(found, mode="eval").body, parent=module)


def _value_of(name: str, module: Module) -> str:
    there = module.members.get(name)
    value = str(there.value) if isinstance(there, Attribute) and there.value else ""
    is_variable = value.startswith(("TypeVar(", "ParamSpec("))
    return value if value and not is_variable else name


def _modules(module: Module) -> list[Module]:
    """A module and those in it."""
    within = [one for one in module.members.values() if isinstance(one, Module)]
    return [module, *(each for one in within for each in _modules(one))]
