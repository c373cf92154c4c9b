"""Adapters: ``register_adapter``, ``adapt``, ``PrepareProtocol``, ``__conform__``.

Whatever the standard library's module does as well is done to both, and must come to the same.
"""

import sqlite3 as stdlib
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from oxlite import sqlite3

# A module, an object or an argument of any kind: what is compared, or wrong on purpose.
Untyped = Any

MODULES = [stdlib, sqlite3]


@pytest.fixture(autouse=True)
def _registries_as_before() -> Iterator[None]:
    kept = [(module, dict(module.adapters)) for module in MODULES]
    yield
    for module, adapters in kept:
        module.adapters.clear()
        module.adapters.update(adapters)


class Point:
    def __init__(self, x: int, y: int) -> None:
        self.x, self.y = x, y


class Conforming(Point):
    """Conforms to the protocol of both modules, and to nothing else."""

    def __conform__(self, protocol: object) -> str | None:
        """Adapt to binding alone."""
        if protocol in (stdlib.PrepareProtocol, sqlite3.PrepareProtocol):
            return f"{self.x};{self.y}"
        return None


class Raising:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __conform__(self, protocol: object) -> object:
        """Raise what was asked for."""
        raise self.error


class Text(str):
    __slots__ = ()


class Number(int):
    pass


class Answering:
    """A protocol that adapts by itself."""

    def __init__(self, answer: Callable[[Any], object]) -> None:
        self.answer = answer

    def __adapt__(self, adapted: object) -> object:
        """Answer as asked for."""
        return self.answer(adapted)


def bound(module: ModuleType, value: object) -> object:
    """What SQLite is given for a value: its row, or the class and text of the error."""
    connection = module.connect(":memory:")
    try:
        return connection.execute("SELECT a, typeof(a) FROM (SELECT ? AS a)", (value,)).fetchone()
    except Exception as error:
        return type(error).__name__, str(error)
    finally:
        connection.close()


def same(act: Callable[[Any], object]) -> object:
    """What both modules answer to ``act``."""
    outcomes = []
    for module in MODULES:
        try:
            outcomes.append(act(module))
        except Exception as error:
            outcomes.append((type(error).__name__, str(error)))
    assert outcomes[0] == outcomes[1]
    return outcomes[1]


def test_what_is_registered_is_bound() -> None:
    def act(module: Untyped) -> object:
        module.register_adapter(Point, lambda point: f"{point.x},{point.y}")
        return bound(module, Point(1, 2))

    assert same(act) == ("1,2", "text")


@pytest.mark.parametrize(
    ("adapted", "stored"),
    [
        (None, (None, "null")),
        (True, (1, "integer")),
        (1.5, (1.5, "real")),
        ("x", ("x", "text")),
        (b"x", (b"x", "blob")),
        (bytearray(b"x"), (b"x", "blob")),
        (memoryview(b"x"), (b"x", "blob")),
        (Text("x"), ("x", "text")),
        (Number(7), (7, "integer")),
    ],
)
def test_an_adapter_may_answer_whatever_sqlite_stores(adapted: object, stored: object) -> None:
    def act(module: Untyped) -> object:
        module.register_adapter(Point, lambda point: adapted)
        return bound(module, Point(1, 2))

    assert same(act) == stored


@pytest.mark.parametrize("answer", [1j, [], Point(1, 2), object])
def test_an_adapter_that_answers_something_else(answer: object) -> None:
    """What it answers is not adapted again."""

    def act(module: Untyped) -> object:
        module.register_adapter(Point, lambda point: answer)
        found = bound(module, Point(1, 2))
        return found[0], "not supported" in found[1]  # type: ignore[index]

    assert same(act)[1]  # type: ignore[index]


@pytest.mark.parametrize("error", [ZeroDivisionError("a"), TypeError("b"), KeyError("c")])
def test_an_adapter_that_raises(error: Exception) -> None:
    def act(module: Untyped) -> object:
        def adapter(point: Point) -> object:
            raise error

        module.register_adapter(Point, adapter)
        return bound(module, Point(1, 2))

    assert same(act) == (type(error).__name__, str(error))


def test_an_object_may_conform() -> None:
    assert same(lambda module: bound(module, Conforming(3, 4))) == ("3;4", "text")


def test_the_registry_goes_before_conforming() -> None:
    def act(module: Untyped) -> object:
        module.register_adapter(Conforming, lambda point: "registered")
        return bound(module, Conforming(3, 4))

    assert same(act) == ("registered", "text")


@pytest.mark.parametrize("error", [TypeError("no"), ValueError("bad"), KeyError("k")])
def test_an_object_that_raises_when_it_is_to_conform(error: Exception) -> None:
    """A ``TypeError`` means: no. Every other goes to the caller."""
    assert same(lambda module: bound(module, Raising(error)))


def test_subclasses_have_adapters_of_their_own() -> None:
    class Child(Point):
        pass

    def act(module: Untyped) -> object:
        module.register_adapter(Point, lambda point: "parent")
        return bound(module, Point(1, 2)), bound(module, Child(1, 2))[0]  # type: ignore[index]

    assert same(act) == (("parent", "text"), "ProgrammingError")


@pytest.mark.parametrize("value", [Text("x"), Number(7)])
def test_subclasses_of_what_sqlite_stores(value: object) -> None:
    def act(module: Untyped) -> object:
        before = bound(module, value)
        module.register_adapter(type(value), lambda value: "adapted")
        return before, bound(module, value)

    assert same(act)[1] == ("adapted", "text")  # type: ignore[index]


@pytest.mark.parametrize("mapping", [True, False])
def test_parameters_of_a_mapping_and_of_many_sets(mapping: bool) -> None:
    def act(module: Untyped) -> object:
        module.register_adapter(Point, lambda point: point.x)
        connection = module.connect(":memory:")
        connection.execute("CREATE TABLE t(a)")
        if mapping:
            sets = [{"a": Point(i, 0)} for i in range(5)]
            connection.executemany("INSERT INTO t VALUES (:a)", sets)
        else:
            connection.executemany("INSERT INTO t VALUES (?)", [(Point(i, 0),) for i in range(5)])
        rows = connection.execute("SELECT a FROM t").fetchall()
        connection.close()
        return rows

    assert same(act) == [(i,) for i in range(5)]


_BASE_TYPES = """
import sqlite3 as stdlib, sys
from oxlite import sqlite3

kind, value = eval(sys.argv[1])

def bound(module, value):
    connection = module.connect(":memory:")
    rows = connection.execute("SELECT ?", (value,)).fetchall()
    rows += connection.execute("SELECT :a", {"a": value}).fetchall()
    connection.execute("CREATE TABLE t(a)")
    connection.executemany("INSERT INTO t VALUES (?)", [(value,), [value]])
    rows += connection.execute("SELECT a FROM t").fetchall()
    connection.close()
    return rows

outcomes = []
for module in (stdlib, sqlite3):
    bound(module, value)
    module.register_adapter(kind, lambda value: "adapted")
    outcomes.append(bound(module, value))
    del module.adapters[kind, module.PrepareProtocol]
    outcomes.append(bound(module, value))
assert outcomes[0] == outcomes[2] == [("adapted",)] * 4, outcomes
assert outcomes[1] == outcomes[3] != outcomes[0], outcomes
"""


@pytest.mark.parametrize(
    "kind",
    ["int, 1", "float, 1.5", "str, 'x'", "bytes, b'x'", "bytearray, bytearray(b'x')", "bool, True",
     "type(None), None", "memoryview, memoryview(b'x')"],
)  # fmt: skip
def test_the_types_that_sqlite_has_can_be_adapted(child: Callable[..., str], kind: str) -> None:
    """In a process of its own: a module never forgets that such a type was once adapted."""
    child(_BASE_TYPES, f"({kind})")


def test_an_adapter_runs_with_the_connection_unlocked(
    connection: sqlite3.Connection, in_thread: Callable[..., Any]
) -> None:
    """It may use the connection, and wait for another thread that does."""
    shared = sqlite3.connect(":memory:", check_same_thread=False)
    shared.execute("CREATE TABLE t(a)")

    def adapter(point: Point) -> object:
        shared.execute("INSERT INTO t VALUES ('adapter')")
        return in_thread(lambda: shared.execute("SELECT count(*) FROM t").fetchone()[0])

    sqlite3.register_adapter(Point, adapter)
    assert shared.execute("SELECT ?", (Point(1, 2),)).fetchone() == (1,)
    shared.executemany("INSERT INTO t VALUES (?)", [(Point(1, 2),), (Point(1, 2),)])
    rows = shared.execute("SELECT a FROM t").fetchall()
    shared.close()
    assert rows == [("adapter",), ("adapter",), (2,), ("adapter",), (4,)]


@pytest.mark.parametrize(
    "act",
    [
        lambda module: module.adapt(1),
        lambda module: module.adapt("x", module.PrepareProtocol),
        lambda module: module.adapt(Point(1, 2)),
        lambda module: module.adapt(Point(1, 2), module.PrepareProtocol, "alternative"),
        lambda module: module.adapt(Point(1, 2), module.PrepareProtocol, None),
        lambda module: module.adapt(Point(1, 2), None),
        lambda module: module.adapt(Point(1, 2), int),
        lambda module: module.adapt(Conforming(1, 2)),
        lambda module: module.adapt(Conforming(1, 2), int, "alternative"),
        lambda module: module.adapt(Raising(TypeError("no")), module.PrepareProtocol, "instead"),
        lambda module: module.adapt(Raising(ValueError("bad")), module.PrepareProtocol, "instead"),
        lambda module: module.adapt(5, Answering(lambda adapted: adapted * 2)),
        lambda module: module.adapt(5, Answering(lambda adapted: None), "instead"),
        lambda module: module.adapt(5, Answering(lambda adapted: adapted.nothing), "instead"),
        lambda module: module.adapt(5, Answering(lambda adapted: adapted + ""), "instead"),
        lambda module: type(module.PrepareProtocol()).__name__,
        lambda module: type(module.PrepareProtocol(1, 2, three=3)).__name__,
    ],
)
def test_adapt(act: Callable[[Any], object]) -> None:
    same(act)


def test_adapt_takes_the_registered_first() -> None:
    def act(module: Untyped) -> object:
        protocol = Answering(lambda adapted: "by the protocol")
        module.adapters[Point, protocol] = lambda point: "by the registry"
        return module.adapt(Point(1, 2), protocol), module.adapt(Number(1), protocol)

    assert same(act) == ("by the registry", "by the protocol")


@pytest.mark.parametrize(
    "act",
    [
        lambda module: module.register_adapter(Point),
        lambda module: module.register_adapter(),
        lambda module: module.adapt(),
        lambda module: module.register_adapter(type=Point, adapter=str),
    ],
)
def test_wrong_arguments(act: Callable[[Any], object]) -> None:
    for module in MODULES:
        with pytest.raises(TypeError):
            act(module)


def test_the_registry_is_the_modules_own() -> None:
    sqlite3.register_adapter(Point, str)
    assert sqlite3.adapters[Point, sqlite3.PrepareProtocol] is str
    assert (Point, stdlib.PrepareProtocol) not in stdlib.adapters
    del sqlite3.adapters[Point, sqlite3.PrepareProtocol]
    assert bound(sqlite3, Point(1, 2))[0] == "ProgrammingError"  # type: ignore[index]
