"""What the steps of a case may use: odd values, odd containers, callbacks that misbehave.

This file is also read as text: the child executes it with ``sqlite3`` replaced by the driver under
test, and a printed script carries the definitions it needs. So every definition stands at the top
level and leans only on others of this file.
"""

# Values name modules that no definition here does.
# ruff: noqa: ANN401, D105, F401

import array
import collections
import collections.abc
import contextlib
import copy
import datetime
import decimal
import enum
import fractions
import gc
import operator
import pathlib
import pickle
import sqlite3
import sys
import tempfile
import threading
import uuid
import weakref
from typing import Any

import numpy

log: list[Any] = []
directory = tempfile.mkdtemp()


def path(name: str) -> str:
    """Where a database of this case lies."""
    return directory + "/" + name


def note(*what: Any) -> None:
    """Writes down that a callback was called, and with what."""
    if len(log) < 200:
        log.append(what)


def shape(value: Any) -> str:
    return type(value).__name__


class Str(str):
    """A string, but not exactly."""


class Int(int):
    """An integer, but not exactly."""


class Float(float):
    """A float, but not exactly."""


class Bytes(bytes):
    """Bytes, but not exactly."""


def buffered(base: type) -> type:
    """A class that also exports a buffer: since Python 3.12 one written in Python may."""
    return type("Buffered", (base,), {"__buffer__": lambda self, flags: memoryview(b"buffer")})


class Tuple(tuple[Any, ...]):
    """A tuple, but not exactly."""


class List(list[Any]):
    """A list, but not exactly."""


class Dict(dict[str, Any]):
    """A dictionary, but not exactly."""


class Missing(dict[str, Any]):
    """A dictionary that has every key."""

    def __missing__(self, key: str) -> Any:
        return "missing " + key


class Sequence:
    """A sequence by its behaviour only."""

    def __init__(self, *items: Any) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.items[index]


class Mapping:
    """A mapping by its behaviour only, without a length."""

    def __init__(self, **items: Any) -> None:
        self.items = items

    def __getitem__(self, key: str) -> Any:
        return self.items[key]


class Registered(collections.abc.Mapping[str, Any]):
    """A mapping by its base class."""

    def __init__(self, **items: Any) -> None:
        self.contents = items

    def __getitem__(self, key: str) -> Any:
        return self.contents[key]

    def __iter__(self) -> Any:
        return iter(self.contents)

    def __len__(self) -> int:
        return len(self.contents)


class Liar:
    """A sequence whose length is not its length."""

    def __init__(self, length: Any, *items: Any) -> None:
        self.length = length
        self.items = items

    def __len__(self) -> Any:
        if isinstance(self.length, Exception):
            raise self.length
        return self.length

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]


class LyingTuple(tuple[Any, ...]):
    """A tuple that says something else than it holds."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: Any) -> Any:
        return "lie"

    def __iter__(self) -> Any:
        return iter(("lie",))


class LyingList(list[Any]):
    """A list that says something else than it holds."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: Any) -> Any:
        return "lie"


class LyingDict(dict[str, Any]):
    """A dictionary that says something else than it holds."""

    def __getitem__(self, key: str) -> Any:
        return "lie"


class Index:
    """Convertible to an integer, but none."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __index__(self) -> int:
        return self.number


class Truth:
    """True, false, or undecided."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __bool__(self) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Conforming:
    """Adapts itself."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __conform__(self, protocol: Any) -> Any:
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


class Point:
    """Something only an adapter can store."""

    def __init__(self, x: Any) -> None:
        self.x = x


class Asking:
    """A parameter set that runs code when asked for its value."""

    def __init__(self, ask: Any) -> None:
        self.ask = ask

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> Any:
        return self.ask()


class Dying:
    """Runs code when it goes."""

    def __init__(self, last_words: Any) -> None:
        self.last_words = last_words

    def __del__(self) -> None:
        try:
            self.last_words()
        except Exception as error:
            note("died with", type(error).__name__)


def items(*values: Any) -> Any:
    """A generator."""
    yield from values


def failing(*values: Any) -> Any:
    """A generator that raises at its end."""
    yield from values
    raise LookupError("out of values")


def doing(action: Any, *values: Any) -> Any:
    """A generator that does something before each value."""
    for value in values:
        action()
        yield value


def raising(error: Any) -> Any:
    """A callback that raises."""

    def call(*arguments: Any) -> Any:
        raise error

    return call


def noting(answer: Any) -> Any:
    """A callback that notes its arguments and returns an answer."""

    def call(*arguments: Any) -> Any:
        note(*arguments)
        return answer

    return call


def counting(answer: Any) -> Any:
    """A callback that notes only that it was called."""

    def call(*arguments: Any) -> Any:
        note("called", len(arguments))
        return answer

    return call


def at_call(number: int, action: Any, otherwise: Any = None) -> Any:
    """A callback that acts at one of its calls only."""
    calls = []

    def call(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == number:
            return action(*arguments)
        return otherwise

    return call


def patience(times: int) -> Any:
    """A progress callback that gives up after so many calls, where SQLite would try for ever."""
    return at_call(times, raising(TimeoutError("given up")))


def acting(action: Any, answer: Any) -> Any:
    """A callback that does something, notes what became of it, and returns an answer."""
    calls: list[int] = []

    def call(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) > 500:  # as the progress of a backup it would be called for ever
            raise TimeoutError("given up")
        try:
            note("acted", shape(action()))
        except Exception as error:
            note("failed", type(error).__name__, str(error))
        return answer

    return call


class Summing:
    """A good aggregate, window function included."""

    def __init__(self) -> None:
        self.total: Any = 0

    def step(self, *values: Any) -> None:
        self.total += sum(1 if value is None else len(str(value)) for value in values)

    def inverse(self, *values: Any) -> None:
        self.total -= sum(1 if value is None else len(str(value)) for value in values)

    def value(self) -> Any:
        return self.total

    def finalize(self) -> Any:
        return self.total


class BadInit(Summing):
    """An aggregate that cannot be made."""

    def __init__(self) -> None:
        raise ZeroDivisionError("init")


class BadStep(Summing):
    """An aggregate whose step fails."""

    def step(self, *values: Any) -> None:
        raise ZeroDivisionError("step")


class BadLaterStep(Summing):
    """An aggregate whose second step fails."""

    def step(self, *values: Any) -> None:
        if self.total:
            raise ValueError("second step")
        self.total = 1


class BadInverse(Summing):
    """A window function whose inverse fails."""

    def inverse(self, *values: Any) -> None:
        raise ZeroDivisionError("inverse")


class BadValue(Summing):
    """A window function whose value fails."""

    def value(self) -> Any:
        raise ZeroDivisionError("value")


class BadFinalize(Summing):
    """An aggregate whose end fails."""

    def finalize(self) -> Any:
        raise MemoryError("finalize")


class OddResult(Summing):
    """An aggregate whose result no SQL type can hold."""

    def value(self) -> Any:
        return [1]

    def finalize(self) -> Any:
        return {1}


class NoFinalize:
    """An aggregate without an end."""

    def step(self, *values: Any) -> None:
        pass


class NoStep:
    """An aggregate without steps."""

    def finalize(self) -> Any:
        return 1


class Noting(Summing):
    """An aggregate that notes every call."""

    def __init__(self) -> None:
        super().__init__()
        note("made")

    def step(self, *values: Any) -> None:
        note("step", *values)
        super().step(*values)

    def inverse(self, *values: Any) -> None:
        note("inverse", *values)
        super().inverse(*values)

    def value(self) -> Any:
        note("value")
        return super().value()

    def finalize(self) -> Any:
        note("finalize")
        return super().finalize()


def reverse(left: str, right: str) -> int:
    """A good collation."""
    return (left < right) - (left > right)


def as_dict(cursor: Any, row: Any) -> Any:
    """A row factory."""
    return {column[0]: value for column, value in zip(cursor.description, row, strict=False)}


def in_thread(action: Any) -> Any:
    """Does something in another thread; raises what it raised."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append((True, action()))
        except BaseException as error:
            outcome.append((False, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join()
    succeeded, value = outcome[0]
    if not succeeded:
        raise value
    return value


def nested(times: int, action: Any) -> Any:
    """Calls an action that many times deep."""
    return action() if times <= 0 else nested(times - 1, action)


class MyConnection(sqlite3.Connection):
    """A connection with cursors of its own kind."""

    def cursor(self, *arguments: Any) -> Any:
        return super().cursor(MyCursor)


class OddConnection(sqlite3.Connection):
    """A connection whose cursors are none."""

    def cursor(self, *arguments: Any) -> Any:
        return 5


class NotingConnection(sqlite3.Connection):
    """A connection that notes its commits."""

    def commit(self) -> None:
        note("commit")
        super().commit()

    def rollback(self) -> None:
        note("rollback")
        super().rollback()


class LazyConnection(sqlite3.Connection):
    """A connection that forgets to become one."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        pass


class MyCursor(sqlite3.Cursor):
    """A cursor, but not exactly."""

    def execute(self, *arguments: Any) -> Any:
        note("execute")
        return super().execute(*arguments)


class LazyCursor(sqlite3.Cursor):
    """A cursor that forgets to become one."""

    def __init__(self, *arguments: Any) -> None:
        pass


class MyRow(sqlite3.Row):
    """A row, but not exactly."""


def outcome_of(action: Any) -> Any:
    """What an action returns, or the class of what it raises."""
    try:
        return action()
    except Exception as error:
        return type(error).__name__, str(error)


USED = (
    array,
    collections,
    contextlib,
    copy,
    datetime,
    decimal,
    gc,
    operator,
    pickle,
    sys,
    weakref,
)
