"""The module against the standard library's: names, constants, warnings, auditing, signatures."""

import contextlib
import gc
import importlib
import inspect
import sqlite3 as stdlib
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from oxlite import sqlite3

# A module, an object or an argument of any kind: what is compared, or wrong on purpose.
Untyped = Any

MODULES = [stdlib, sqlite3]

# Names of the standard library's module that are no part of what it promises.
NO_PROMISE = {"collections", "dbapi2", "datetime", "time", "connect_doc"}


def public(module: Untyped) -> set[str]:
    return {name for name in dir(module) if not name.startswith("_")}


def test_every_name_is_there() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        missing = {name for name in public(stdlib) - NO_PROMISE if not hasattr(sqlite3, name)}
    assert missing == set()


@pytest.mark.skipif(sys.version_info < (3, 15), reason="there since Python 3.15")
def test_the_keywords() -> None:
    assert {"SELECT", "REINDEX", "WITHOUT"} <= set(sqlite3.SQLITE_KEYWORDS)
    assert set(stdlib.SQLITE_KEYWORDS) <= set(sqlite3.SQLITE_KEYWORDS)
    assert "SQLITE_KEYWORDS" in sqlite3.__all__


NUMBERS = {n for n in dir(stdlib) if n.startswith("SQLITE_")} - {"SQLITE_KEYWORDS"}


@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_a_constant_has_the_same_value(name: str) -> None:
    assert getattr(sqlite3, name) == getattr(stdlib, name)
    assert name in sqlite3.__all__


@pytest.mark.parametrize(
    "name",
    ["apilevel", "paramstyle", "PARSE_DECLTYPES", "PARSE_COLNAMES", "Date", "Time", "Timestamp",
     "Binary"],
)  # fmt: skip
def test_other_constants(name: str) -> None:
    assert getattr(sqlite3, name) == getattr(stdlib, name)


def test_the_names_that_a_star_imports() -> None:
    names: dict[str, object] = {}
    exec("from oxlite.sqlite3 import *", names)
    assert set(sqlite3.__all__) <= names.keys()
    assert len(sqlite3.__all__) == len(set(sqlite3.__all__))
    for name in sqlite3.__all__:
        assert names[name] is getattr(sqlite3, name)


def test_dbapi2() -> None:
    module = importlib.import_module("oxlite.sqlite3.dbapi2")
    assert module is sqlite3.dbapi2
    assert set(module.__all__) == set(sqlite3.__all__)
    assert all(getattr(module, name) is getattr(sqlite3, name) for name in module.__all__)


def warned(act: Callable[[], object]) -> tuple[object, list[tuple[str, str]]]:
    """The outcome, and the classes and files of the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            outcome = act()
        except Exception as error:
            outcome = type(error).__name__
    return outcome, [(warning.category.__name__, warning.filename) for warning in caught]


@pytest.mark.parametrize(
    "name", ["version", "version_info", "OptimizedUnicode", "enable_shared_cache", "nothing"]
)
def test_names_that_some_versions_have(name: str) -> None:
    theirs = warned(lambda: getattr(stdlib, name))
    ours = warned(lambda: getattr(sqlite3, name))
    if name == "enable_shared_cache":
        assert callable(ours[0]) == callable(theirs[0])
        ours, theirs = ("", ours[1]), ("", theirs[1])
    assert ours == theirs
    theirs = warned(lambda: hasattr(stdlib.dbapi2, name))
    ours = warned(lambda: hasattr(sqlite3.dbapi2, name))
    assert ours[0] or not theirs[0]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="gone since Python 3.12")
def test_the_shared_cache() -> None:
    enable: Any = sqlite3.enable_shared_cache
    outcome, caught = warned(lambda: enable(False))
    assert (outcome, caught) == (None, [("DeprecationWarning", __file__)])


_EXACT = [
    lambda m: m.connect(":memory:").close(),
    lambda m: m.connect(":memory:", 5.0).close(),
    lambda m: m.connect(":memory:", 5.0, 0, "", True, m.Connection, 128, False).close(),
    lambda m: m.Connection(":memory:", 5.0).close(),
    lambda m: m.connect(":memory:", timeout=5.0, factory=m.Connection).close(),
    lambda m: _with(m, lambda c: c.create_function("f", 1, str)),
    lambda m: _with(m, lambda c: c.create_function(name="f", narg=1, func=str)),
    lambda m: _with(m, lambda c: c.create_function("f", 1, func=str)),
    lambda m: _with(m, lambda c: c.create_aggregate("f", 1, aggregate_class=None)),
    lambda m: _with(m, lambda c: c.set_authorizer(None)),
    lambda m: _with(m, lambda c: c.set_authorizer(authorizer_callback=None)),
    lambda m: _with(m, lambda c: c.set_progress_handler(None, n=1)),
    lambda m: _with(m, lambda c: c.set_progress_handler(progress_handler=None, n=1)),
    lambda m: _with(m, lambda c: c.set_trace_callback(trace_callback=None)),
    lambda m: _with(m, lambda c: c.execute("SELECT :a, ?", (1, 2)).fetchall()),
    lambda m: _with(m, lambda c: c.execute("SELECT ?, ?", (1, 2)).fetchall()),
    lambda m: _with(m, lambda c: c.execute("SELECT :a, :b", {"a": 1, "b": 2}).fetchall()),
    lambda m: _with(m, lambda c: c.executemany("DELETE FROM t WHERE a = :a", [(1,)]).rowcount),
]  # fmt: skip


def _with(module: Untyped, act: Callable[[Any], object]) -> object:
    with contextlib.closing(module.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t(a)")
        return act(connection)


@pytest.mark.parametrize("act", _EXACT)
def test_what_is_deprecated(act: Callable[[Any], object]) -> None:
    """On the same versions, in the same words (but one that CPython has changed), at one line.

    Since Python 3.14 and 3.15 some of it is refused.
    """
    observed = []
    for module in MODULES:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                outcome = act(module)
            except (TypeError, stdlib.ProgrammingError, sqlite3.ProgrammingError) as error:
                outcome = type(error).__name__, str(error)
        texts = [
            (w.category, str(w.message).replace("nameless", "nominal"), w.filename, w.lineno)
            for w in caught
        ]
        observed.append((outcome, texts))
    assert observed[1] == observed[0]


@pytest.mark.parametrize("with_a_cursor", [True, False])
def test_a_connection_that_is_not_closed(with_a_cursor: bool) -> None:
    """Warned of since Python 3.13."""
    counts = []
    for module in MODULES:

        def act(module: Untyped = module) -> None:
            connection = module.connect(":memory:")
            cursor = connection.execute("SELECT 1") if with_a_cursor else None
            del connection, cursor
            gc.collect()

        counts.append([category for category, _ in warned(act)[1]])
    assert counts[0] == counts[1] == ["ResourceWarning"] * (sys.version_info >= (3, 13))


@pytest.mark.parametrize(
    "act",
    [
        lambda c: c.close(),
        lambda c: c.__init__(":memory:"),
    ],
)
def test_a_connection_that_is_closed_is_not_warned_of(act: Callable[[Any], object]) -> None:
    def run() -> None:
        connection = sqlite3.connect(":memory:")
        act(connection)
        connection.close()

    assert warned(run)[1] == []


_AUDITED = """
import sys
module = __import__(sys.argv[1], fromlist=["connect"])
seen = []

def hook(event, arguments):
    if event.startswith("sqlite3."):
        seen.append((event, [type(argument).__name__ for argument in arguments]))
        if event == forbidden:
            raise PermissionError(event)

forbidden = None
sys.addaudithook(hook)
class Connection(module.Connection):
    pass
module.connect(":memory:").close()
Connection(database=":memory:").close()
module.connect(b":memory:", factory=Connection).close()
try:
    module.connect("/nowhere/at/all")
except module.OperationalError:
    pass
connection = module.connect(":memory:")
connection.__init__(":memory:")
connection.close()
for forbidden in ("sqlite3.connect", "sqlite3.connect/handle"):
    try:
        module.connect(":memory:")
    except PermissionError as error:
        seen.append(str(error))
for line in seen:
    print(line)
"""


def test_auditing(child: Callable[..., str]) -> None:
    theirs, ours = (
        child("import warnings; warnings.simplefilter('ignore')\n" + _AUDITED, name)
        for name in ("sqlite3", "oxlite.sqlite3")
    )
    assert ours == theirs
    assert ours.count("sqlite3.connect/handle") >= 6


@pytest.mark.parametrize(
    "statement",
    ["", ";", " ", "SELECT 1", "SELECT 1;", "SELECT 1; ", "SELECT ';",
     "SELECT ';';", "/* ; */", "/* ; */;", "/* ;", "CREATE TRIGGER a BEFORE INSERT ON b BEGIN;",
     "CREATE TRIGGER a AFTER INSERT ON b BEGIN SELECT 1; END;", "CREATE TEMP TRIGGER a BEGIN;END",
     "EXPLAIN CREATE TRIGGER a BEGIN;", "SELECT \"a;", "SELECT [a;]", "SELECT [a;];", "é;", "\n;\n",
     "CREATE TABLE trigger(a);", "end;", ";;", "SELECT `;", "--", "--\n;"],
)  # fmt: skip
def test_complete_statement(statement: str) -> None:
    assert sqlite3.complete_statement(statement) is stdlib.complete_statement(statement)
    assert sqlite3.complete_statement(statement=statement) is stdlib.complete_statement(
        statement=statement
    )


@pytest.mark.parametrize("statement", [None, b";", 5, "a\0;", "\ud800;"])
def test_complete_statement_of_something_else(statement: Untyped) -> None:
    for module in MODULES:
        with pytest.raises((TypeError, ValueError)) as caught:
            module.complete_statement(statement)
        assert caught.type in (TypeError, ValueError, UnicodeEncodeError)


@pytest.mark.parametrize(
    "sql",
    ["SELECT 1", "", "  -- nothing", "SELECT 1; SELECT 2", "SELECT", "SELECT * FROM nothing",
     "SELECT 1\0", "SELECT ?", "INSERT INTO t VALUES (1)", "SELECT 1;", 5, None, b"SELECT 1"],
)  # fmt: skip
def test_calling_a_connection(sql: Untyped) -> None:
    outcomes = []
    for module in MODULES:
        with contextlib.closing(module.connect(":memory:")) as connection:
            connection.execute("CREATE TABLE t(a)")
            try:
                statement = connection(sql)
                outcomes.append(None if statement is None else type(statement).__name__)
            except Exception as error:
                outcomes.append(type(error).__name__)
            assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)
            assert not connection.in_transaction
    assert outcomes[1] == outcomes[0]


def test_calling_a_closed_connection(connection: sqlite3.Connection) -> None:
    statement = connection("SELECT 1")
    connection.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        connection("SELECT 1")
    del statement


@pytest.mark.parametrize("arguments", [(), ("SELECT 1", 2)])
def test_calling_a_connection_with_wrong_arguments(
    connection: Untyped, arguments: tuple[object, ...]
) -> None:
    with pytest.raises(TypeError):
        connection(*arguments)
    with pytest.raises(TypeError):
        connection(sql="SELECT 1")


@pytest.mark.parametrize(
    "act",
    [
        lambda c: c.create_function("f", 1, str, deterministic=1),
        lambda c: c.create_function("f", 1, str, deterministic=None),
        lambda c: c.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
    ],
)
def test_a_switch_may_be_any_truth_value(
    connection: sqlite3.Connection, act: Callable[[Any], object]
) -> None:
    act(connection)


@pytest.mark.parametrize("kind", ["Connection", "Cursor", "Row", "Blob"])
def test_every_attribute_is_there(kind: str) -> None:
    theirs, ours = (public(getattr(module, kind)) for module in MODULES)
    known_builds = {"enable_load_extension", "load_extension"}
    assert theirs - ours <= known_builds


@pytest.mark.parametrize("name", ["execute", "executemany", "fetchmany", "backup", "blobopen"])
def test_signatures_can_be_shown(name: str) -> None:
    kind = sqlite3.Cursor if name == "fetchmany" else sqlite3.Connection
    assert inspect.signature(getattr(kind, name)).parameters


@pytest.mark.parametrize("count", [999, 1001, 50_000])
@pytest.mark.parametrize(
    "expression",
    [
        lambda n: "SELECT " + "+".join(["1"] * n),
        lambda n: "SELECT " + "(" * n + "1" + ")" * n,
        lambda n: "SELECT " + "NOT " * n + "1",
        lambda n: "SELECT " + "abs(" * n + "1" + ")" * n,
        lambda n: "SELECT " + "(SELECT " * n + "1" + ")" * n,
        lambda n: "SELECT " + "CASE WHEN 0 THEN 0 ELSE " * n + "1" + " END" * n,
        lambda n: " UNION ALL ".join(["SELECT 1"] * n),
        lambda n: "VALUES " + ",".join(["(1)"] * n),
        lambda n: "SELECT 1 IN (" + ",".join(["1"] * n) + ")",
        lambda n: "SELECT " + ",".join(["1"] * n),
    ],
)
def test_expressions_of_any_size(
    connection: sqlite3.Connection,
    in_thread: Callable[..., Any],
    expression: Callable[[int], str],
    count: int,
) -> None:
    """Rows or an error: never the end of the stack, not on that of a thread either."""

    def run() -> int:
        with contextlib.closing(sqlite3.connect(":memory:")) as connection:
            try:
                return len(connection.execute(expression(count)).fetchall())
            except sqlite3.OperationalError:
                return 0

    assert in_thread(run) == run()


@pytest.mark.parametrize(
    ("sql", "count", "answer"),
    [
        ("SELECT 1 IN ({})", 32_766, (1,)),
        ("SELECT 1 IN ({})", 250_000, (1,)),
        ("SELECT 1 IN ({})", 500_001, "too many SQL variables"),
        ("SELECT ?500000", 500_000, (1,)),
        ("SELECT ?500001", 500_001, "variable number must be between ?1 and ?500000"),
        ("SELECT ?0", 1, "variable number must be between ?1 and ?500000"),
        ("SELECT ?99999999999999999999", 1, "variable number must be between ?1 and ?500000"),
    ],
)
def test_as_many_parameters_as_sqlite_takes(
    connection: sqlite3.Connection, sql: str, count: int, answer: object
) -> None:
    sql, parameters = sql.format(",".join("?" * count)), [1] * count
    if isinstance(answer, tuple):
        assert connection.execute(sql, parameters).fetchone() == answer
        if count > 32_766:
            return  # SQLite compares each name with all before it
        names = [f"name_{i}" for i in range(count)]
        sql = "SELECT 1 IN (:" + ",:".join(names) + ")"
        assert connection.execute(sql, dict.fromkeys(names, 1)).fetchone() == answer
    else:
        with pytest.raises(sqlite3.OperationalError) as caught:
            connection.execute(sql, parameters)
        assert str(caught.value) == answer
