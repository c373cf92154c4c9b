"""What the standard library's module does differently from version to version, against its own.

Each call is made on both modules, and must come to the same on the Python that runs this. What the
standard library crashes at is left out on the versions in which it does.
"""

import contextlib
import sqlite3 as stdlib
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from oxlite import sqlite3

Untyped = Any
SINCE_3_14 = sys.version_info >= (3, 14)
# Where mistakes of the standard library's are mended, some of which end the process.
IS_MENDED = sys.version_info >= (3, 15, 2) or (3, 14, 10) <= sys.version_info < (3, 15)


def outcome(module: Untyped, act: Callable[[Any], object]) -> tuple[object, list[str]]:
    """The result or the exception, and the warnings, in words without the module's name."""
    with (
        contextlib.closing(module.connect(":memory:")) as connection,
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        connection.execute("CREATE TABLE t(a INTEGER PRIMARY KEY, b)")
        connection.execute("INSERT INTO t VALUES (1, x'000102030405060708090a'), (2, 'b'), (3, 4)")
        try:
            result = act(connection)
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
        told = [f"{w.category.__name__}: {w.message}" for w in caught]
    words = str(result).replace(f"{module.__name__}.", "sqlite3.")
    return words, [text.replace("nameless", "nominal") for text in told]


def both(act: Callable[[Any], object]) -> None:
    assert outcome(sqlite3, act) == outcome(stdlib, act)


def changed(connection: Untyped, key: object, value: object) -> object:
    """What a blob holds after an assignment."""
    with connection.blobopen("t", "b", 1) as blob:
        blob[key] = value
        return blob[:]


def read(connection: Untyped, key: object) -> object:
    with connection.blobopen("t", "b", 1) as blob:
        return blob[key]


SLICES = [slice(*parts) for parts in ((5, 5), (8, -8), (1, 5, 2), (5, 6, 2), (0, 11), (3, 8, -1))]
BACKWARDS = [slice(*parts) for parts in ((9, 0, -2), (None, None, -1), (9, 8, -1), (9, 0, -1000))]


@pytest.mark.parametrize("key", SLICES + BACKWARDS * IS_MENDED)
def test_slices_of_a_blob(key: slice) -> None:
    both(lambda c: read(c, key))
    for value in (None, b"", b"1", b"12", b"12345678901", 3, "x", bytearray(b"12")):
        both(lambda c, value=value: changed(c, key, value))


@pytest.mark.skipif(SINCE_3_14, reason="refused since Python 3.14")
@pytest.mark.parametrize("key", BACKWARDS)
def test_slices_backwards_before_python_3_14(key: slice) -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t(b)")
        connection.execute("INSERT INTO t VALUES (x'000102030405060708090a')")
        assert read(connection, key) == bytes(range(11))[key]


NUMBERS = [0, 1, -1, -3, 2, 2**31, 2**32 - 1, 2**32, 2**70, -(2**70), 1.0, None, "x", True]


def number(given: object) -> bool:
    """Whether a number of rows is one whose error is worded by the standard library itself."""
    return SINCE_3_14 or (isinstance(given, int) and abs(given) < 2**31)


@pytest.mark.parametrize("given", [given for given in NUMBERS if number(given)])
def test_numbers_of_rows(given: object) -> None:
    query = "SELECT a FROM t ORDER BY a"

    def fetch(connection: Untyped) -> object:
        cursor = connection.execute(query)
        return cursor.fetchmany(given), cursor.fetchmany(), cursor.fetchall()

    def set_size(connection: Untyped) -> object:
        cursor = connection.execute(query)
        cursor.arraysize = given
        return cursor.arraysize, cursor.fetchmany(), cursor.fetchall()

    def keep_size(connection: Untyped) -> object:
        cursor = connection.cursor()
        cursor.arraysize = 2
        with contextlib.suppress(ValueError, OverflowError, TypeError):
            cursor.arraysize = given
        return cursor.arraysize

    for act in (fetch, set_size):
        both(act)
    if IS_MENDED or not SINCE_3_14:
        both(keep_size)


def test_no_rows_of_a_cursor_without_a_statement() -> None:
    both(lambda c: (c.cursor().fetchmany(), c.cursor().fetchmany(1000), c.cursor().fetchall()))


# 3.12.0 to 3.12.3 took a number for a name, and warned of it.
NUMBERED = ["?1, ?2"] * (not (3, 12) <= sys.version_info < (3, 12, 4))


@pytest.mark.parametrize("sql", [":a", ":a, ?, ?", "?, :b, ?", "?, ?", "@a", "$a", *NUMBERED])
@pytest.mark.parametrize("parameters", [(1,), [1], (1, 2), (1, 2, 3), {"a": 1}])
def test_names_for_sequences(sql: str, parameters: object) -> None:
    both(lambda c: c.execute(f"SELECT {sql}", parameters).fetchall())
    both(lambda c: c.cursor().execute(f"SELECT {sql}", parameters).fetchall())


@pytest.mark.parametrize("parameters", [(1,), [1], {"a": 1}])
def test_names_for_many_sequences(parameters: object) -> None:
    both(lambda c: c.executemany("DELETE FROM t WHERE a = :a", [parameters] * 2).rowcount)
    both(lambda c: c.execute("SELECT count(*) FROM t").fetchone())


# An older SQLite takes no more than 127.
COUNTS = [-100, -2, -1, 0, 1, 127, 1001, 32_768, *[1000] * (stdlib.sqlite_version_info >= (3, 48))]


@pytest.mark.parametrize("count", COUNTS)
def test_numbers_of_arguments(count: int) -> None:
    both(lambda c: c.create_function("f", count, lambda *_: 1))
    both(lambda c: c.create_function("f", count, None))
    both(lambda c: c.create_aggregate("f", count, list))
    if SINCE_3_14:  # before, the words are SQLite's, which differ from version to version
        both(lambda c: c.create_window_function("f", count, list))


@pytest.mark.skipif(not IS_MENDED, reason="ends the process, or is allowed")
@pytest.mark.parametrize(
    "name", ["isolation_level", "autocommit", "row_factory", "text_factory", "total_changes"]
)
def test_attributes_that_cannot_be_deleted(name: str) -> None:
    both(lambda c: delattr(c, name))


@pytest.mark.skipif(not IS_MENDED, reason="ends the process, or is allowed")
@pytest.mark.parametrize("name", ["arraysize", "row_factory"])
def test_attributes_of_a_cursor_that_cannot_be_deleted(name: str) -> None:
    both(lambda c: delattr(c.cursor(), name))


@pytest.mark.skipif(SINCE_3_14, reason="refused since Python 3.14")
def test_factories_can_be_deleted_before_python_3_14() -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.row_factory = sqlite3.Row
        connection.text_factory = bytes
        del connection.row_factory, connection.text_factory
        assert connection.execute("SELECT 'a'").fetchone() == ("a",)


def test_a_row_without_columns() -> None:
    for module in (sqlite3, stdlib) if IS_MENDED else (sqlite3,):
        row = module.Row(module.connect(":memory:").cursor(), ())
        assert row.keys() == []
        with pytest.raises(IndexError, match=r"^No item with key 'nothing'$"):
            row["nothing"]


POSITIONAL_ONLY = [
    lambda c: c.create_function("f"),
    lambda c: c.create_function(),
    lambda c: c.create_function("f", 0, func=len),
    lambda c: c.create_function(name="f", narg=0, func=len),
    lambda c: c.create_function("f", 0, len, deterministic=True),
    lambda c: c.create_function("f", 0, len, nothing=True),
    lambda c: c.create_aggregate("f", 0),
    lambda c: c.create_aggregate("f", 0, aggregate_class=list),
    lambda c: c.create_aggregate(name="f", n_arg=0, aggregate_class=list),
    lambda c: c.set_authorizer(),
    lambda c: c.set_authorizer(nothing=None),
    lambda c: c.set_authorizer(authorizer_callback=None),
    lambda c: c.set_progress_handler(),
    lambda c: c.set_progress_handler(None, n=1),
    lambda c: c.set_progress_handler(progress_handler=None, n=1),
    lambda c: c.set_trace_callback(),
    lambda c: c.set_trace_callback(trace_callback=None),
]


@pytest.mark.parametrize("act", POSITIONAL_ONLY)
def test_what_comes_by_name(act: Callable[[Any], object]) -> None:
    ours, theirs = (outcome(module, act) for module in (sqlite3, stdlib))
    if sys.version_info < (3, 15) and str(theirs[0]).startswith("TypeError: "):
        # In PyO3's words.
        assert str(ours[0]).startswith("TypeError: ")
        assert ours[1] == theirs[1]
    else:
        assert ours == theirs


@pytest.mark.parametrize("name", ["connect", "Connection"])
@pytest.mark.parametrize("count", [1, 2, 8, 9])
def test_what_comes_by_position(name: str, count: int) -> None:
    given = (":memory:", 5.0, 0, None, True, None, 128, False, 1)[:count]

    def opened(module: Untyped) -> str:
        arguments = [module.Connection if place == 5 else it for place, it in enumerate(given)]
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                getattr(module, name)(*arguments).close()
        except TypeError as error:
            return str(error).replace("most 8 arguments", "most 8 positional arguments")
        return str([str(warning.message) for warning in caught])

    assert opened(sqlite3) == opened(stdlib)


class Failing:
    """A callable, and a class of aggregates, that fails in the way of ``kind``."""

    def __init__(self, kind: str = "call") -> None:
        self.kind = kind

    def __call__(self, *_: object) -> object:
        return {"call": lambda: 1 // 0, "text": lambda: "\udc00", "big": lambda: 2**80}[self.kind]()

    def step(self, *_: object) -> object:
        return 1 // 0

    def finalize(self) -> object:
        return 1

    def __repr__(self) -> str:
        """Without an address, which is another one for each module."""
        return f"<failing {self.kind}>"


SHOWN = [
    lambda c: (c.create_function("f", -1, Failing()), c.execute("SELECT f(1)").fetchall()),
    lambda c: (c.create_function("f", -1, Failing("text")), c.execute("SELECT f()").fetchall()),
    lambda c: (c.create_function("f", -1, Failing("big")), c.execute("SELECT f()").fetchall()),
    lambda c: (c.create_aggregate("f", -1, Failing), c.execute("SELECT f(1)").fetchall()),
    lambda c: (c.set_authorizer(Failing()), c.execute("SELECT 1").fetchall()),
    lambda c: (c.set_progress_handler(Failing(), 1), c.execute("SELECT 1").fetchall()),
    lambda c: (c.set_trace_callback(Failing()), c.execute("SELECT 1").fetchall()),
]


@pytest.mark.parametrize("act", SHOWN)
def test_what_is_shown_of_an_exception(
    act: Callable[[Any], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Since Python 3.14 the message names the callback, and the hook is not given it."""
    shown: list[tuple[object, ...]] = []
    monkeypatch.setattr(
        sys,
        "unraisablehook",
        lambda u: shown.append((u.exc_type, str(u.exc_value), u.err_msg, repr(u.object))),
    )
    observed = []
    for module in (sqlite3, stdlib):
        module.enable_callback_tracebacks(True)
        try:
            result = outcome(module, act)
        finally:
            module.enable_callback_tracebacks(False)
        observed.append((result, list(shown)))
        shown.clear()
    assert observed[0][1]
    assert observed[0] == observed[1]


@pytest.mark.skipif(not SINCE_3_14, reason="Python has template strings since 3.14")
@pytest.mark.parametrize("method", ["execute", "executemany", "executescript"])
def test_a_template_string_is_no_sql(method: str) -> None:
    template = eval('t"SELECT {1}"')
    arguments = (template, []) if method == "executemany" else (template,)
    with (
        contextlib.closing(sqlite3.connect(":memory:")) as connection,
        pytest.raises(TypeError, match=r"must be str, not a template string: write \? in the SQL"),
    ):
        getattr(connection, method)(*arguments)
