"""What is written down of a step: its value or error, and what it changed on every object.

Everything is turned to text that is the same in every process: no addresses, no thread
identities, no names of temporary folders, no module name of the driver.
"""

import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

Observation = dict[str, str]

CONNECTION_STATE = ("in_transaction", "total_changes", "isolation_level")
CURSOR_STATE = ("description", "rowcount", "lastrowid", "arraysize")

_LONGEST = 400


class Observer:
    """Describes the objects of one driver."""

    def __init__(self, driver: ModuleType, directory: str) -> None:
        self.driver = driver
        self.directory = directory
        self.seen: dict[str, str] = {}

    def text(self, text: str) -> str:
        """The text without what differs between processes or in the driver's name."""
        text = text.replace(self.directory, "DIR")
        text = re.sub(r"\b(oxlite\.)?_?(sqlite3|native)\.(?=[A-Z])", "sqlite3.", text)
        text = re.sub(r"0x[0-9a-f]{6,}", "0xN", text)
        text = re.sub(r"vtab:[0-9A-F]+", "vtab:N", text)
        text = re.sub(r"thread id \d+", "thread id N", text)
        text = text.encode("ascii", "backslashreplace").decode()
        if len(text) > _LONGEST:
            return f"{text[:_LONGEST]}… {len(text)} {sum(text.encode()) % 65521}"
        return text

    def value(self, value: Any, depth: int = 0) -> str:  # noqa: ANN401
        """A value with its type."""
        kind = type(value)
        if value is None or kind in (bool, int, float, str, bytes):
            try:
                return self.text(f"{kind.__name__} {value!r}")
            except ValueError:  # an integer of too many digits
                return f"{kind.__name__} of {value.bit_length()} bits"
        if isinstance(value, self.driver.Row):
            return f"{kind.__name__} {value.keys()!r} {self.value(tuple(value), depth + 1)}"
        if kind in (list, tuple) and depth < 4:
            parts = ", ".join(self.value(item, depth + 1) for item in value[:40])
            return self.text(f"{kind.__name__} of {len(value)}: [{parts}]")
        if kind is dict and depth < 4:
            pairs = (f"{self.value(k, 3)}: {self.value(v, depth + 1)}" for k, v in value.items())
            return self.text(f"dict {{{', '.join(pairs)}}}")
        if isinstance(value, BaseException):
            return self.error(value)
        if isinstance(value, str | int | float | bytes):
            return self.text(f"{kind.__name__} {value!r}")
        return kind.__name__

    def error(self, error: BaseException) -> str:
        """An error with its class, SQLite's code and its text."""
        code = getattr(error, "sqlite_errorname", None)
        try:
            message = str(error)
        except Exception:
            message = "unprintable"
        cause = error.__cause__
        because = f" from {type(cause).__name__}" if cause is not None else ""
        return self.text(f"{type(error).__name__} {code} {message}{because}")

    def attribute(self, owner: object, name: str) -> str:
        """An attribute's value, or the error of reading it."""
        try:
            return self.value(getattr(owner, name))
        except Exception as error:
            return self.error(error)

    def changes(self, namespace: dict[str, Any]) -> Observation:
        """What differs from the time before in any connection or cursor that has a name."""
        now: Observation = {}
        for name, value in list(namespace.items()):
            if name[0] not in "ck" or not name[1:].isdigit():
                continue
            if isinstance(value, self.driver.Connection):
                attributes: tuple[str, ...] = CONNECTION_STATE
            elif isinstance(value, self.driver.Cursor):
                attributes = CURSOR_STATE
            else:
                continue
            for attribute in attributes:
                now[f"{name}.{attribute}"] = self.attribute(value, attribute)
        changed = {key: text for key, text in now.items() if self.seen.get(key) != text}
        self.seen = now
        return changed


def played(step: Callable[[], Any], observer: Observer) -> str:
    """Runs a step; its value or its error as text."""
    try:
        return observer.value(step())
    except BaseException as error:
        return "! " + observer.error(error)
