"""Parameters: how they are written, what may carry them, which values they take."""

import array
import collections
import sqlite3 as standard_library
import sys
import types
from collections.abc import Callable, Iterator, Mapping

import pytest

from oxlite import sqlite3


class Sequence:
    """A sequence by protocol only."""

    def __init__(self, *items: object) -> None:
        self.items = items

    def __len__(self) -> int:
        """How many items there are."""
        return len(self.items)

    def __getitem__(self, index: int) -> object:
        """The item of that number."""
        return self.items[index]


class Defaulting(dict[str, object]):
    """A mapping that makes up what it does not hold."""

    def __missing__(self, name: str) -> object:
        """Make up a value."""
        return f"no {name}"


def one(connection: sqlite3.Connection, value: object) -> object:
    """What becomes of a value that is bound and read."""
    (found,) = connection.execute("SELECT ?", (value,)).fetchone()
    return found


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("?, ?", (1, 2)),
        ("?, ?", [1, 2]),
        ("?, ?", range(1, 3)),
        ("?, ?", array.array("i", [1, 2])),
        ("?, ?", collections.deque([1, 2])),
        ("?, ?", collections.namedtuple("Pair", "x y")(1, 2)),
        ("?, ?", Sequence(1, 2)),
        ("?, ?", b"\1\2"),
        ("?2 - 1, ?1 + 1", (1, 2)),
        ("?, ?1 + 1", (1,)),
        (":a, :b", {"a": 1, "b": 2}),
        (":a, @b", {"a": 1, "b": 2}),
        ("$a, :b", {"a": 1, "b": 2, "unused": 3}),
        (":a, :a + 1", {"a": 1}),
        (":a, :b", collections.OrderedDict(a=1, b=2)),
        (":a, :b", collections.UserDict(a=1, b=2)),
        (":a, :b", collections.ChainMap({"a": 1}, {"b": 2})),
        (":a, :b", types.MappingProxyType({"a": 1, "b": 2})),
        ("?1, ?2", {"1": 1, "2": 2}),
        (":é, :ñ", {"é": 1, "ñ": 2}),
    ],
)
def test_the_ways_to_give_two_values(
    connection: sqlite3.Connection, sql: str, parameters: object
) -> None:
    assert connection.execute(f"SELECT {sql}", parameters).fetchone() == (1, 2)


def test_a_string_is_a_sequence_of_characters(connection: sqlite3.Connection) -> None:
    assert connection.execute("SELECT ?, ?", "ab").fetchone() == ("a", "b")


def test_a_dictionary_may_make_up_values(connection: sqlite3.Connection) -> None:
    parameters = Defaulting(a=1)
    assert connection.execute("SELECT :a, :b", parameters).fetchone() == (1, "no b")
    assert connection.execute(
        "SELECT :a, :b", collections.defaultdict(lambda: 7, a=1)
    ).fetchone() == (1, 7)


def test_a_number_left_out_counts(connection: sqlite3.Connection) -> None:
    assert connection.execute("SELECT ?3", (1, 2, 3)).fetchone() == (3,)
    with pytest.raises(sqlite3.ProgrammingError, match="uses 3, and there are 1 supplied"):
        connection.execute("SELECT ?3", (3,))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ((), "uses 2, and there are 0 supplied"),
        ((1,), "uses 2, and there are 1 supplied"),
        ((1, 2, 3), "uses 2, and there are 3 supplied"),
        ([1], "uses 2, and there are 1 supplied"),
        (Sequence(1, 2, 3), "uses 2, and there are 3 supplied"),
        ("abc", "uses 2, and there are 3 supplied"),
        ({"a": 1}, "no name"),
        (5, "unsupported type"),
        ({1, 2}, "unsupported type"),
        (iter([1, 2]), "unsupported type"),
        (object(), "unsupported type"),
    ],
)
def test_parameters_that_do_not_fit(
    connection: sqlite3.Connection, parameters: object, message: str
) -> None:
    with pytest.raises(sqlite3.ProgrammingError, match=message):
        connection.execute("SELECT ?, ?", parameters)


def test_no_parameters_where_some_are_wanted(connection: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.ProgrammingError, match="uses 1, and there are 0 supplied"):
        connection.execute("SELECT ?")


@pytest.mark.parametrize("sql", ["SELECT 1", "CREATE TABLE t(a)", "", "-- nothing"])
def test_parameters_where_none_are_wanted(connection: sqlite3.Connection, sql: str) -> None:
    with pytest.raises(sqlite3.ProgrammingError, match="uses 0, and there are 1 supplied"):
        connection.execute(sql, (1,))


@pytest.mark.parametrize("prefix", [":", "@", "$"])
def test_a_name_without_a_value(connection: sqlite3.Connection, prefix: str) -> None:
    with pytest.raises(sqlite3.ProgrammingError, match=r"did not supply a value.*missing"):
        connection.execute(f"SELECT :a, {prefix}missing", {"a": 1})


def test_the_prefix_is_not_part_of_the_name(connection: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.ProgrammingError, match="did not supply a value"):
        connection.execute("SELECT :a", {":a": 1})


class FailingError(Exception):
    """An error of the user's own."""


class FailingLookupError(LookupError):
    """A user's own way to say that a name is not there."""


def raising(error: Exception) -> Callable[..., object]:
    def fail(*arguments: object) -> object:
        raise error

    return fail


@pytest.mark.parametrize(
    "parameters",
    [
        type("Items", (Sequence,), {"__getitem__": raising(FailingError())})(1),
        type("Length", (Sequence,), {"__len__": raising(FailingError())})(1),
        type("Missing", (dict,), {"__missing__": raising(FailingError())})(),
    ],
    ids=["item", "length", "missing"],
)
def test_what_the_users_own_object_raises_comes_through(
    connection: sqlite3.Connection, parameters: object
) -> None:
    placeholder = ":a" if isinstance(parameters, dict) else "?"
    with pytest.raises(FailingError):
        connection.execute(f"SELECT {placeholder}", parameters)
    assert one(connection, 1) == 1


def test_any_lookup_error_is_a_missing_value(connection: sqlite3.Connection) -> None:
    parameters = type("Missing", (dict,), {"__missing__": raising(FailingLookupError())})()
    with pytest.raises(sqlite3.ProgrammingError, match="did not supply a value"):
        connection.execute("SELECT :a", parameters)


def test_a_list_that_shrinks_while_it_is_read(connection: sqlite3.Connection) -> None:
    parameters: list[object] = []

    class Shrinking(Sequence):
        def __len__(self) -> int:
            parameters.clear()
            return 3

    with pytest.raises((IndexError, sqlite3.ProgrammingError)):
        connection.execute("SELECT ?, ?, ?", Shrinking())


def test_parameters_may_use_the_connection_they_are_for(connection: sqlite3.Connection) -> None:
    class Asking(Sequence):
        def __getitem__(self, index: int) -> object:
            (value,) = connection.execute("SELECT ?, ?", (index, 0)).fetchone()[:1]
            return value

    assert connection.execute("SELECT ?, ?", Asking(None, None)).fetchone() == (0, 1)


@pytest.mark.parametrize(
    "value",
    [
        None,
        0,
        -1,
        2**63 - 1,
        -(2**63),
        0.1,
        -0.0,
        float("inf"),
        float("-inf"),
        5e-324,
        sys.float_info.max,
        "",
        "é€𐍈",
        "a\0b\0",
        "\N{BYTE ORDER MARK}",
        "\uffff",
        b"",
        b"\0",
        bytes(range(256)),
    ],
    ids=ascii,
)
def test_a_value_comes_back_as_it_went(connection: sqlite3.Connection, value: object) -> None:
    found = one(connection, value)
    assert found == value
    assert type(found) is type(value)
    assert str(found) == str(value)  # tells -0.0 from 0.0


def test_not_a_number_becomes_null(connection: sqlite3.Connection) -> None:
    assert one(connection, float("nan")) is None


def test_an_empty_blob_is_no_null_and_no_text(connection: sqlite3.Connection) -> None:
    sql = "SELECT typeof(?1), ?1 IS NULL, length(?1)"
    assert connection.execute(sql, (b"",)).fetchone() == ("blob", 0, 0)
    assert connection.execute(sql, (bytearray(),)).fetchone() == ("blob", 0, 0)
    assert connection.execute(sql, (memoryview(b""),)).fetchone() == ("blob", 0, 0)
    assert connection.execute(sql, ("",)).fetchone() == ("text", 0, 0)


@pytest.mark.parametrize(
    ("value", "kind", "stored"),
    [
        (True, "integer", 1),
        (False, "integer", 0),
        (type("Int", (int,), {})(7), "integer", 7),
        (type("Float", (float,), {})(0.5), "real", 0.5),
        (type("Str", (str,), {})("x"), "text", "x"),
        (type("Bytes", (bytes,), {})(b"x"), "blob", b"x"),
        (type("Bytearray", (bytearray,), {})(b"x"), "blob", b"x"),
        (bytearray(b"ab"), "blob", b"ab"),
        (memoryview(b"ab"), "blob", b"ab"),
        (memoryview(bytearray(b"ab")), "blob", b"ab"),
        (memoryview(b"abcdef").cast("B", (2, 3)), "blob", b"abcdef"),
        (memoryview(array.array("H", [1, 2])), "blob", array.array("H", [1, 2]).tobytes()),
        (memoryview(array.array("d", [0.5])), "blob", array.array("d", [0.5]).tobytes()),
        (array.array("i", [3]), "blob", array.array("i", [3]).tobytes()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_subclasses_and_buffers(
    connection: sqlite3.Connection, value: object, kind: str, stored: object
) -> None:
    row = connection.execute("SELECT typeof(?1), ?1", (value,)).fetchone()
    assert row == (kind, stored)
    assert type(row[1]) in {int, float, str, bytes}


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**100])
def test_an_integer_beyond_64_bits_is_refused(connection: sqlite3.Connection, value: int) -> None:
    with pytest.raises(OverflowError, match="too large"):
        one(connection, value)


@pytest.mark.parametrize("value", ["\ud800", "a\udcff", "\udc00\ud800"], ids=ascii)
def test_an_unpaired_surrogate_is_refused(connection: sqlite3.Connection, value: str) -> None:
    with pytest.raises(UnicodeEncodeError):
        one(connection, value)
    with pytest.raises(UnicodeEncodeError):
        connection.execute(f"SELECT '{value}'")
    with pytest.raises((UnicodeEncodeError, sqlite3.ProgrammingError)):
        connection.execute("SELECT :a", {value: 1})


@pytest.mark.parametrize("step", [2, -1])
def test_a_buffer_with_gaps_is_refused(connection: sqlite3.Connection, step: int) -> None:
    with pytest.raises(BufferError, match="contiguous"):
        one(connection, memoryview(b"abcdef")[::step])
    assert one(connection, memoryview(b"abcdef")[2:4]) == b"cd"


def test_a_released_buffer_is_refused(connection: sqlite3.Connection) -> None:
    view = memoryview(b"abc")
    view.release()
    with pytest.raises(ValueError, match="released"):
        one(connection, view)


@pytest.mark.parametrize(
    "value",
    [object(), 1j, (1,), [1], {}, len, type],
    ids=lambda value: repr(value).partition(" at 0x")[0],
)
def test_an_unsupported_type_is_named_with_its_place(
    connection: sqlite3.Connection, value: object
) -> None:
    with pytest.raises(
        sqlite3.ProgrammingError,
        match=rf"binding parameter 2: type '{type(value).__name__}' is not supported",
    ):
        connection.execute("SELECT ?, ?", (1, value))
    with pytest.raises(sqlite3.ProgrammingError, match=r"type .* is not supported"):
        connection.execute("SELECT :name", {"name": value})


def test_large_values(connection: sqlite3.Connection) -> None:
    text, blob = "é" * 5_000_000, bytes(range(256)) * 40_000
    found_text, found_blob, length = connection.execute(
        "SELECT ?1, ?2, length(?1)", (text, blob)
    ).fetchone()
    assert found_text == text
    assert found_blob == blob
    assert length == 5_000_000


def test_a_value_beyond_the_limit_is_refused(connection: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.DataError, match="too big") as caught:
        one(connection, bytes(1_000_000_001))
    assert caught.value.sqlite_errorname == "SQLITE_TOOBIG"
    assert one(connection, 1) == 1


def test_as_many_parameters_as_sqlite_takes(connection: sqlite3.Connection) -> None:
    limit = connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)
    values = tuple(range(limit))
    marks = ",".join("?" * len(values))
    assert connection.execute(
        f"SELECT max(column1) FROM (VALUES ({'),('.join('?' * 500)}))", values[:500]
    ).fetchone() == (499,)
    assert connection.execute(f"SELECT {limit - 1} IN ({marks})", values).fetchone() == (1,)
    with pytest.raises(sqlite3.OperationalError, match="too many SQL variables"):
        connection.execute(f"SELECT 1 IN ({marks},?)", (*values, 1))


def test_nothing_of_an_earlier_execution_stays_bound(connection: sqlite3.Connection) -> None:
    """A kept statement, after a set that failed half way."""
    sql = "SELECT ?, ?, ?"
    assert connection.execute(sql, (1, "two", b"x" * 10_000)).fetchone()[1] == "two"
    with pytest.raises(sqlite3.ProgrammingError):
        connection.execute(sql, ("half", "way", object()))
    assert connection.execute(sql, (None, None, None)).fetchone() == (None, None, None)


def test_a_bound_buffer_may_change_afterwards(connection: sqlite3.Connection) -> None:
    """What was bound is a copy."""
    buffer = bytearray(b"aaaa")
    cursor = connection.execute("SELECT column1, ? FROM (VALUES (1), (2), (3))", (buffer,))
    assert cursor.fetchone() == (1, b"aaaa")
    buffer[:] = b"bbbb"
    buffer.extend(b"more")  # not locked by an exported view either
    assert cursor.fetchall() == [(2, b"aaaa"), (3, b"aaaa")]


def counted(value: object) -> int:
    return sys.getrefcount(value)


def test_no_reference_is_leaked(connection: sqlite3.Connection) -> None:
    values: list[object] = [10**10, "text of a parameter", b"blob of a parameter", 0.125, object()]
    names = {"a": values[0], "b": values[1], "c": values[2], "d": values[3], "e": values[4]}

    def sets() -> Iterator[list[object] | Mapping[str, object]]:
        yield values[:4]
        yield names

    def work() -> None:
        for _ in range(50):
            connection.execute("SELECT ?, ?, ?, ?", values[:4]).fetchall()
            connection.execute("SELECT :a, :b, :c, :d", names).fetchone()
            with pytest.raises(sqlite3.ProgrammingError):
                connection.execute("SELECT ?, ?, ?, ?, ?", values)
            with pytest.raises(sqlite3.ProgrammingError):
                connection.execute("SELECT :a, :e", names)
            with pytest.raises(sqlite3.OperationalError):
                connection.executemany("INSERT INTO missing VALUES (?)", sets())

    work()
    before = [counted(value) for value in [*values, values, names]]
    work()
    after = [counted(value) for value in [*values, values, names]]
    assert after == before


# Of `?1` with a sequence early releases of Python 3.12 warn.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("SELECT ?", (object(),)),
        ("SELECT ?1", (object(),)),
        ("SELECT ?3", (1, 2, object())),
        ("SELECT :a, :b", {"a": 1, "b": object()}),
    ],
)
def test_a_parameter_that_cannot_be_bound_is_told_by_its_number(
    sql: str, parameters: object
) -> None:
    def message(module: types.ModuleType) -> str:
        with pytest.raises(module.ProgrammingError) as raised:
            module.connect(":memory:").execute(sql, parameters)
        return str(raised.value)

    assert message(sqlite3) == message(standard_library)
