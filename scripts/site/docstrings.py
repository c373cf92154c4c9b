"""What griffe reads, as the reference needs it: an extension of griffe's.

Docstrings are written to be read as text, by ``help()`` and in editors. Some of their forms mean
something else in Markdown:

- an example of an interpreter's session (``>>>``) that stands outside of a section for examples,
  and what is indented after ``::``, become blocks of code;
- a list gets an empty line before it.

A package that offers a function of the name of one of its modules (``restore`` of
``oxlite.operations``) is taken to offer the function, as Python does.
"""

import re
import textwrap
from collections.abc import Callable
from typing import Any

from griffe import Alias, Extension, GriffeLoader, Module, Object

_SECTION = re.compile(r"^\w[\w ]*:$")
_SESSION = ">>> "


class Reference(Extension):
    """Puts fences around the code of docstrings, and functions before modules of their name."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:  # noqa: ANN401 (griffe's own)
        """Change the docstring of what griffe has read."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)

    def on_package(self, *, pkg: Module, loader: GriffeLoader, **kwargs: Any) -> None:  # noqa: ANN401
        """Change a package that is read."""
        loader.resolve_aliases(implicit=False, external=False)
        for module in [*_modules(pkg)]:
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


def _modules(module: Module) -> list[Module]:
    """A module and those in it."""
    within = [one for one in module.members.values() if isinstance(one, Module)]
    return [module, *(each for one in within for each in _modules(one))]
