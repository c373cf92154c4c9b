"""Loadable extensions: ``extensions=[…]``, ``enable_load_extension``, ``load_extension``.

The extensions are real: compiled here, by the C compiler that has compiled the package, without a
header of SQLite's, so that they do not depend on where one is. One comes from PyPI.
"""

import contextlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import oxlite
from oxlite import sqlite3

# A module, an object or an argument of any kind: what is compared, or wrong on purpose.
Untyped = Any

# Where the routines stand in the table that SQLite hands to an extension never changes
# (sqlite3ext.h).
_SOURCE = r"""
#include <stddef.h>
typedef void (*any_routine)(void);
typedef int (*create_function)(void *, const char *, int, int, void *,
    void (*)(void *, int, void **), void *, void *);
typedef void (*result_int)(void *, int);
typedef char *(*mprintf_routine)(const char *, ...);

enum { CREATE_FUNCTION = %(create_function)d, RESULT_INT = %(result_int)d, MPRINTF = %(mprintf)d };
static any_routine const *routines;

static void answer(void *context, int count, void **values) {
    (void)count; (void)values;
    ((result_int)routines[RESULT_INT])(context, %(number)d);
}

int %(entry)s(void *database, char **message, any_routine const *api) {
    routines = api;
    if (%(fails)d) {
        *message = ((mprintf_routine)api[MPRINTF])("%%s", "no good today");
        return 1;
    }
    return ((create_function)api[CREATE_FUNCTION])(
        database, "%(function)s", 0, 1, NULL, answer, NULL, NULL);
}
"""
_PLACES = {"create_function": 45, "mprintf": 69, "result_int": 82}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compiles an extension ``name`` with one function that answers a number."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")

    def compile_(
        name: str,
        function: str = "answer",
        number: int = 42,
        entry: str = "sqlite3_extension_init",
        fails: bool = False,
    ) -> Path:
        folder = tmp_path_factory.mktemp("extension")
        source = folder / "source.c"
        values = {**_PLACES, "function": function, "number": number, "entry": entry}
        source.write_text(_SOURCE % {**values, "fails": fails})
        library = folder / f"{name}.so"
        command = [compiler, "-shared", "-fPIC", "-o", str(library), str(source)]
        subprocess.run(command, check=True, capture_output=True)
        return library

    return compile_


@pytest.fixture(scope="module")
def library(compiled: Callable[..., Path]) -> Path:
    """An extension with the function ``answer()``, which is 42."""
    return compiled("answering")


def answer(connection: sqlite3.Connection, function: str = "answer") -> object:
    return connection.execute(f"SELECT {function}()").fetchone()[0]


@pytest.fixture
def refusing() -> Callable[[sqlite3.Connection, Path], None]:
    """Fails if the connection can load a library, in either way."""

    def check(connection: sqlite3.Connection, library: Path) -> None:
        with pytest.raises(sqlite3.OperationalError, match="not authorized"):
            connection.load_extension(str(library))
        with pytest.raises(sqlite3.OperationalError, match="not authorized"):
            connection.execute("SELECT load_extension(?)", (str(library),))

    return check


def test_loaded_when_opened(
    library: Path, opened: Callable[..., sqlite3.Connection], refusing: Callable[..., None]
) -> None:
    connection = opened(":memory:", extensions=[library])
    assert answer(connection) == 42
    refusing(connection, library)


@pytest.mark.parametrize("connect", [oxlite.connect, sqlite3.connect])
@pytest.mark.parametrize("kind", ["path", "text", "no suffix", "iterator", "tuple"])
def test_ways_to_name_one(library: Path, connect: Callable[..., Any], kind: str) -> None:
    extensions = {
        "path": [library],
        "text": [str(library)],
        "no suffix": [str(library.with_suffix(""))],
        "iterator": iter([library]),
        "tuple": (library,),
    }[kind]
    with contextlib.closing(connect(":memory:", extensions=extensions)) as connection:
        assert answer(connection) == 42


def test_several(compiled: Callable[..., Path], opened: Callable[..., sqlite3.Connection]) -> None:
    libraries = [compiled(f"number_{i}", f"number_{i}", i) for i in range(3)]
    connection = opened(":memory:", extensions=libraries)
    assert [answer(connection, f"number_{i}") for i in range(3)] == [0, 1, 2]


def test_every_connection_for_itself(
    library: Path, opened: Callable[..., sqlite3.Connection]
) -> None:
    one, two = opened(":memory:", extensions=[library]), opened(":memory:", extensions=[])
    assert answer(one) == 42
    with pytest.raises(sqlite3.OperationalError, match="no such function"):
        answer(two)
    assert answer(opened(":memory:", extensions=[library])) == 42


@pytest.mark.parametrize("autocommit", [True, False])
def test_with_autocommit_and_a_file(
    library: Path, path: Path, opened: Callable[..., sqlite3.Connection], autocommit: bool
) -> None:
    connection = opened(path, extensions=[library], autocommit=autocommit)
    assert answer(connection) == 42
    assert connection.in_transaction is not autocommit


def test_an_entry_point_by_the_librarys_name(
    compiled: Callable[..., Path], opened: Callable[..., sqlite3.Connection]
) -> None:
    """SQLite guesses it: letters only, after ``lib``."""
    library = compiled("libanswer_2", entry="sqlite3_answer_init")
    assert answer(opened(":memory:", extensions=[library])) == 42


def test_an_entry_point_of_ones_own(
    compiled: Callable[..., Path], connection: sqlite3.Connection
) -> None:
    library = compiled("odd", entry="begin_here")
    connection.enable_load_extension(True)
    with pytest.raises(sqlite3.OperationalError, match="undefined symbol"):
        connection.load_extension(str(library))
    connection.load_extension(str(library), entrypoint="begin_here")
    assert answer(connection) == 42


def test_enable_and_load(
    library: Path, connection: sqlite3.Connection, refusing: Callable[..., None]
) -> None:
    refusing(connection, library)
    connection.enable_load_extension(True)
    connection.load_extension(str(library))
    assert answer(connection) == 42
    connection.enable_load_extension(False)
    refusing(connection, library)


def test_the_sql_function_of_that_name(library: Path, connection: sqlite3.Connection) -> None:
    connection.enable_load_extension(True)
    assert connection.execute("SELECT load_extension(?)", (str(library),)).fetchone() == (None,)
    assert answer(connection) == 42


def test_one_that_fails(
    compiled: Callable[..., Path], library: Path, path: Path, connection: sqlite3.Connection
) -> None:
    failing = compiled("failing", fails=True)
    with pytest.raises(sqlite3.OperationalError) as caught:
        oxlite.connect(path, extensions=[library, failing])
    assert str(failing) in str(caught.value)
    assert "no good today" in str(caught.value)
    connection.enable_load_extension(True)
    with pytest.raises(sqlite3.OperationalError, match="no good today"):
        connection.load_extension(str(failing))
    with pytest.raises(sqlite3.OperationalError, match="no such function"):
        answer(connection)


@pytest.mark.parametrize(
    "name",
    [
        "not_there",
        "./not_there.so",
        "json",
        "os.path",
        "not_there.at.all",
        "",
        "ä",
        "a b",
        "__main__",
    ],
)
def test_one_that_cannot_be_found(name: str) -> None:
    """Neither a module without a ``loadable_path`` nor a library: the message has the name."""
    with pytest.raises(sqlite3.OperationalError) as caught:
        oxlite.connect(":memory:", extensions=[name])
    assert f"the extension '{name}' could not be loaded" in str(caught.value)


def test_a_file_that_is_no_library(tmp_path: Path) -> None:
    file = tmp_path / "text.so"
    file.write_text("no library")
    with pytest.raises(sqlite3.OperationalError, match=r"text\.so"):
        oxlite.connect(":memory:", extensions=[file])


@pytest.mark.parametrize("extensions", ["name", 5, [5], [None], [b"x\xff"], object()])
def test_arguments_of_the_wrong_type(path: Path, extensions: Untyped) -> None:
    with pytest.raises(TypeError):
        oxlite.connect(path, extensions=extensions)
    assert not path.exists()


def test_an_embedded_null(path: Path, connection: sqlite3.Connection) -> None:
    with pytest.raises(ValueError, match="embedded null"):
        oxlite.connect(path, extensions=["a\0b"])
    with pytest.raises(ValueError, match="embedded null"):
        connection.load_extension("a", entrypoint="b\0")
    assert not path.exists()


def test_an_iterable_that_raises(path: Path) -> None:
    def extensions() -> Iterator[str]:
        yield from ()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        oxlite.connect(path, extensions=extensions())
    assert not path.exists()


@pytest.fixture
def package(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, str], None]:
    """Makes a Python package that can be imported during the test."""
    monkeypatch.syspath_prepend(tmp_path)

    def make(name: str, source: str) -> None:
        folder = tmp_path.joinpath(*name.split("."))
        folder.mkdir(parents=True)
        for parent in [folder, *folder.parents][: name.count(".") + 1]:
            parent.joinpath("__init__.py").touch()
        folder.joinpath("__init__.py").write_text(f"LIBRARY = {str(library)!r}\n{source}\n")
        parts = name.split(".")
        for i in range(len(parts)):
            monkeypatch.delitem(sys.modules, ".".join(parts[: i + 1]), raising=False)

    return make


_LOADABLE = "def loadable_path(): return LIBRARY"


@pytest.mark.parametrize("name", ["some_extension", "some.inner.extension"])
def test_a_python_package(
    package: Callable[..., None], opened: Callable[..., sqlite3.Connection], name: str
) -> None:
    package(name, _LOADABLE)
    assert answer(opened(":memory:", extensions=[name])) == 42


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("raise ZeroDivisionError", ZeroDivisionError),
        ("def loadable_path(): raise ZeroDivisionError", ZeroDivisionError),
        ("def loadable_path(): return 5", TypeError),
        ("loadable_path = 5", TypeError),
        ("def loadable_path(): return 'not_there'", sqlite3.OperationalError),
        ("", sqlite3.OperationalError),
    ],
)
def test_a_python_package_that_is_wrong(
    package: Callable[..., None], path: Path, source: str, error: type[Exception]
) -> None:
    package("wrong_extension", source)
    with pytest.raises(error):
        oxlite.connect(path, extensions=["wrong_extension"])


def test_loading_is_audited(child: Callable[..., str], library: Path) -> None:
    printed = child(
        """
from oxlite import sqlite3
import sys
seen = []
sys.addaudithook(lambda event, args: seen.append((event, args)) if event[:8] == "sqlite3." else 0)
connection = sqlite3.connect(":memory:")
connection.enable_load_extension(True)
connection.load_extension(sys.argv[1])
connection.enable_load_extension(False)
for event, args in seen:
    print(event, *["connection" if arg is connection else arg for arg in args])
connection.close()
""",
        library,
    )
    assert printed.splitlines() == [
        "sqlite3.connect :memory:",
        "sqlite3.connect/handle connection",
        "sqlite3.enable_load_extension connection True",
        f"sqlite3.load_extension connection {library}",
        "sqlite3.enable_load_extension connection False",
    ]


def test_in_another_thread(
    library: Path, connection: sqlite3.Connection, in_thread: Callable[..., Any]
) -> None:
    for act in (
        lambda: connection.enable_load_extension(True),
        lambda: connection.load_extension(str(library)),
    ):
        with pytest.raises(sqlite3.ProgrammingError, match="created in a thread"):
            in_thread(act)


def test_of_a_closed_connection(library: Path, connection: sqlite3.Connection) -> None:
    connection.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        connection.enable_load_extension(True)
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        connection.load_extension(str(library))


def test_a_switch_may_be_any_truth_value(connection: sqlite3.Connection) -> None:
    """As in the standard library."""
    connection.enable_load_extension(1)  # type: ignore[arg-type]
    connection.enable_load_extension(0)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["sqlite-vec", "sqlite_vek", "SQLite-Vec"])
def test_a_name_that_is_near_to_a_package_of_an_extension(
    opened: Callable[..., sqlite3.Connection], name: str
) -> None:
    pytest.importorskip("sqlite_vec")
    with pytest.raises(sqlite3.OperationalError) as caught:
        opened(":memory:", extensions=[name])
    assert f"the extension '{name}' could not be loaded" in str(caught.value)
    assert str(caught.value).endswith("did you mean extensions=['sqlite_vec']?")


def test_no_package_is_imported_for_a_hint(
    opened: Callable[..., sqlite3.Connection], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spatial_tools.py").write_text("raise SystemExit('imported')\n")
    (tmp_path / "spatial_index.py").write_text("def loadable_path(): ...\nraise SystemExit(1)\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(sqlite3.OperationalError, match=r"mean extensions=\['spatial_index'\]\?$"):
        opened(":memory:", extensions=["spatial-indexx"])
    with pytest.raises(sqlite3.OperationalError) as caught:
        opened(":memory:", extensions=["spatial-tools"])
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["nothing_like_it_anywhere", "./sqlite-vec", "/nowhere/sqlite_vek"]
)
def test_a_name_that_is_near_to_nothing_has_no_hint(
    opened: Callable[..., sqlite3.Connection], name: str
) -> None:
    with pytest.raises(sqlite3.OperationalError) as caught:
        opened(":memory:", extensions=[name])
    assert "did you mean" not in str(caught.value)


def test_a_real_one_from_pypi(opened: Callable[..., sqlite3.Connection]) -> None:
    sqlite_vec = pytest.importorskip("sqlite_vec")
    vectors = [(i, sqlite_vec.serialize_float32([i, 0, i])) for i in range(50)]
    nearest = (
        "SELECT rowid FROM v WHERE e MATCH ? ORDER BY distance LIMIT 3",
        (sqlite_vec.serialize_float32([7.2, 0, 7.2]),),
    )
    connections = [opened(":memory:", extensions=["sqlite_vec"]), opened(":memory:")]
    connections[1].enable_load_extension(True)
    sqlite_vec.load(connections[1])
    for connection in connections:
        connection.execute("CREATE VIRTUAL TABLE v USING vec0(e float[3])")
        connection.executemany("INSERT INTO v(rowid, e) VALUES (?, ?)", vectors)
        assert connection.execute(*nearest).fetchall() == [(7,), (8,), (6,)]
