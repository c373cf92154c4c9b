"""The two faces of a ``Database``, called alike: each case is a coroutine function, run on both.

On the face for threads a coroutine never suspends: what it awaits has been done by then, in the
thread that runs it. Who acts beside the case is a thread there, and a task on the face for asyncio.
"""

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, TypeVar

from tests.aio.loops import Run
from tests.wait import LIMIT_SECONDS, loop_until, until

import oxlite
import oxlite.aio
from oxlite import sqlite3

T = TypeVar("T")

Work = Coroutine[Any, Any, T]

Either: TypeAlias = Any
"""An object of one face or of the other, which have no type in common."""


class Face(ABC):
    """One of the faces.

    Attributes:
        database: The class.
        who: What borrows connections, as messages say it.
    """

    database: type
    who: str

    @abstractmethod
    def run(self, main: Callable[[], Work[T]]) -> T:
        """Run a case."""

    @abstractmethod
    async def open(self, *arguments: Either, **options: Either) -> Either:
        """An open database, its methods awaited."""

    @abstractmethod
    def start(self, work: Work[Any], name: str | None = None) -> Either:
        """Have something done beside the case; ``await actor.result()`` says what came of it."""

    @abstractmethod
    def event(self) -> Either:
        """What one sets, and others wait for."""

    @abstractmethod
    async def sleep(self, seconds: float) -> None:
        """Let others go on."""

    @abstractmethod
    async def until(self, condition: Callable[[], object]) -> None:
        """Let others go on until something is so."""

    @asynccontextmanager
    async def opened(self, *arguments: Either, **options: Either) -> AsyncIterator[Any]:
        """A database that is closed at the end."""
        db = await self.open(*arguments, **options)
        async with db:
            yield db


class OnTasks(Face):
    """``oxlite.aio.Database``, on a loop of some kind."""

    database = oxlite.aio.Database
    who = "task"

    def __init__(self, run: Run[Any]) -> None:
        self._run = run

    def run(self, main: Callable[[], Work[T]]) -> T:
        return self._run(main)  # type: ignore[no-any-return]

    async def open(self, *arguments: Either, **options: Either) -> Either:
        return await oxlite.aio.Database(*arguments, **options)

    def start(self, work: Work[Any], name: str | None = None) -> Either:
        return _Task(asyncio.create_task(work, name=name))

    def event(self) -> Either:
        return asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def until(self, condition: Callable[[], object]) -> None:
        await loop_until(condition)


class _Task:
    def __init__(self, task: "asyncio.Task[Any]") -> None:
        self._task = task

    async def result(self) -> Either:
        return await self._task


class OnThreads(Face):
    """``oxlite.Database``."""

    database = oxlite.Database
    who = "thread"

    def run(self, main: Callable[[], Work[T]]) -> T:
        return _done(main())

    async def open(self, *arguments: Either, **options: Either) -> Either:
        return _Database(oxlite.Database(*arguments, **options))

    def start(self, work: Work[Any], name: str | None = None) -> Either:
        return _Thread(work, name)

    def event(self) -> Either:
        return _Event()

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    async def until(self, condition: Callable[[], object]) -> None:
        until(condition)


def _done(work: Work[T]) -> T:
    """What a coroutine comes to that never suspends."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    work.close()
    raise AssertionError("a case has awaited what is none of the face's")


class _Thread:
    def __init__(self, work: Work[Any], name: str | None) -> None:
        self._work = work
        self._value: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._value = _done(self._work)
        except BaseException as error:
            self._error = error

    async def result(self) -> Either:
        self._thread.join(LIMIT_SECONDS)
        assert not self._thread.is_alive()
        if self._error is not None:
            raise self._error
        return self._value


class _Event(threading.Event):
    async def wait(self) -> None:  # type: ignore[override]
        assert super().wait(LIMIT_SECONDS)


class _Awaited:
    """An object of the blocking face: its methods are awaited, its attributes are its own."""

    def __init__(self, inside: Either) -> None:
        object.__setattr__(self, "_inside", inside)

    def __getattr__(self, name: str) -> Either:
        value = getattr(self._inside, name)
        if not callable(value):
            return value

        async def call(*arguments: Either, **options: Either) -> Either:
            answer = value(*arguments, **options)
            return _Awaited(answer) if isinstance(answer, sqlite3.Cursor) else answer

        return call

    def __setattr__(self, name: str, value: Either) -> None:
        setattr(self._inside, name, value)


class _Connection(_Awaited):
    async def execute_fetchall(self, *arguments: Either) -> Either:
        return self._inside.execute(*arguments).fetchall()

    async def run_sync(self, function: Callable[..., Any], *arguments: Either) -> Either:
        return function(self._inside, *arguments)


class _Stream:
    def __init__(self, rows: Iterator[Any]) -> None:
        self._rows = rows

    def __aiter__(self) -> "_Stream":
        return self

    async def __anext__(self) -> Either:
        try:
            return next(self._rows)
        except StopIteration:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self._rows.close()  # type: ignore[attr-defined]


class _Database(_Awaited):
    def stats(self) -> Either:
        return self._inside.stats()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Any]:
        with self._inside.read() as connection:
            yield _Connection(connection)

    @asynccontextmanager
    async def write(self) -> AsyncIterator[Any]:
        with self._inside.write() as connection:
            yield _Connection(connection)

    def stream(self, *arguments: Either, **options: Either) -> Either:
        return _Stream(self._inside.stream(*arguments, **options))

    def listen(self, *channels: str, **options: Either) -> Either:
        return _Stream(self._inside.listen(*channels, **options))

    async def notify(self, *arguments: Either, connection: Either = None) -> Either:
        inside = getattr(connection, "_inside", connection)
        return self._inside.notify(*arguments, connection=inside)

    async def __aenter__(self) -> "_Database":
        self._inside.__enter__()
        return self

    async def __aexit__(self, *error: Either) -> None:
        self._inside.__exit__(*error)


THREADS = "threads"
