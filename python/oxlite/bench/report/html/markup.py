"""Elements of HTML and SVG as text, escaped.

Invariant: a plain ``str`` is text and is escaped; only :class:`Markup`, which this module makes, is
taken as it is.
"""

import html
from collections.abc import Iterable


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def element(name: str, /, *content: str, **attributes: object) -> Markup:
    """``<name attributes>content</name>``.

    Args:
        name: of the element.
        content: text, which is escaped, or markup.
        attributes: by name; ``_`` stands for ``-``, a trailing one is dropped (``class_``), and one
            that is ``None`` is left out.
    """
    return Markup(f"<{name}{_attributes(attributes)}>{joined(content)}</{name}>")


def empty(name: str, /, **attributes: object) -> Markup:
    """An element that has no content: ``<name attributes/>``."""
    return Markup(f"<{name}{_attributes(attributes)}/>")


def joined(content: Iterable[str]) -> Markup:
    """Several pieces one after the other."""
    return Markup("".join(escaped(one) for one in content))


def escaped(text: str) -> Markup:
    """The text as markup."""
    return text if isinstance(text, Markup) else Markup(html.escape(text))


def _attributes(attributes: dict[str, object]) -> str:
    return "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
