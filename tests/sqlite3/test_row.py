"""``Row``: by position, by slice, by name in any case; equality, hash, iteration."""

import collections.abc
import copy
import gc
import pickle
import sqlite3 as stdlib
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from oxlite import sqlite3

# A module, an object or an argument of any kind: what is compared, or wrong on purpose.
Untyped = Any


@pytest.fixture
def rows(connection: sqlite3.Connection) -> sqlite3.Connection:
    """A connection whose rows are ``Row``."""
    connection.row_factory = sqlite3.Row
    return connection


@pytest.fixture
def row(rows: sqlite3.Connection) -> sqlite3.Row:
    """The row ``a=1, B=2, "c d"=3``."""
    return rows.execute('SELECT 1 AS a, 2 AS B, 3 AS "c d"').fetchone()


def test_items_by_position(row: sqlite3.Row) -> None:
    assert type(row) is sqlite3.Row
    assert (row[0], row[1], row[2], row[-1], row[-3]) == (1, 2, 3, 3, 1)
    assert (row[True], row[1:], row[::-1], row[5:]) == (2, (2, 3), (3, 2, 1), ())


def test_items_by_name_in_any_case(row: sqlite3.Row) -> None:
    assert (row["a"], row["A"], row["b"], row["B"], row["C D"]) == (1, 1, 2, 2, 3)


def test_letters_outside_ascii_have_one_case(rows: sqlite3.Connection) -> None:
    row = rows.execute('SELECT 1 AS "Ä", 2 AS "ä"').fetchone()
    assert (row["Ä"], row["ä"]) == (1, 2)


def test_the_first_of_two_columns_of_one_name(rows: sqlite3.Connection) -> None:
    row = rows.execute("SELECT 1 AS a, 2 AS A, 3 AS b").fetchone()
    assert row["a"] == 1
    assert row.keys() == ["a", "A", "b"]


@pytest.mark.parametrize("key", ["x", "", "a ", "a\0", "c", 3, -4, 2**100, -(2**100)])
def test_an_item_that_is_not_there(row: sqlite3.Row, key: object) -> None:
    with pytest.raises(IndexError):
        row[key]


@pytest.mark.parametrize("key", [1.5, None, b"a", (0,), object()])
def test_a_key_of_the_wrong_type(row: sqlite3.Row, key: object) -> None:
    with pytest.raises(IndexError, match="int or string"):
        row[key]


def test_a_key_with_an_index(row: sqlite3.Row) -> None:
    class Index:
        def __index__(self) -> int:
            return 1

    assert row[Index()] == 2


def test_it_is_a_sequence(row: sqlite3.Row) -> None:
    assert isinstance(row, collections.abc.Sequence)
    assert len(row) == 3
    assert list(row) == [1, 2, 3]
    assert tuple(reversed(row)) == (3, 2, 1)
    assert 2 in row
    assert 9 not in row
    first, *others = row
    assert (first, others) == (1, [2, 3])
    match row:
        case [one, _, _]:
            assert one == 1
        case _:
            pytest.fail("it did not match as a sequence")


def test_it_is_true_whatever_it_holds(rows: sqlite3.Connection) -> None:
    assert rows.execute("SELECT NULL").fetchone()


def test_it_becomes_a_dictionary_or_a_tuple(row: sqlite3.Row) -> None:
    assert dict(row) == {"a": 1, "B": 2, "c d": 3}
    assert tuple(row) == (1, 2, 3)
    assert row.keys() == ["a", "B", "c d"]


def test_equality_and_hash_take_values_and_names_into_account(rows: sqlite3.Connection) -> None:
    def fetch(sql: str) -> sqlite3.Row:
        return rows.execute(sql).fetchone()

    one = fetch("SELECT 1 AS a, 2 AS b")
    same = fetch("SELECT 1 AS a, 2 AS b WHERE 1")
    other_value = fetch("SELECT 1 AS a, 3 AS b")
    other_name = fetch("SELECT 1 AS a, 2 AS c")
    assert one == same
    assert (one != same) is False
    assert hash(one) == hash(same)
    assert one != other_value
    assert one != other_name
    assert one != (1, 2)
    assert one != "text"
    assert len({one, same, other_value, other_name}) == 3


def test_rows_have_no_order(row: sqlite3.Row) -> None:
    with pytest.raises(TypeError):
        assert row < row
    with pytest.raises(TypeError):
        assert row >= row


def test_it_cannot_be_changed(row: sqlite3.Row) -> None:
    with pytest.raises(TypeError):
        row[0] = 5
    with pytest.raises(TypeError):
        del row[0]
    with pytest.raises(AttributeError):
        row.a = 5


def test_it_can_be_made_of_any_tuple(connection: sqlite3.Connection) -> None:
    cursor = connection.execute("SELECT 1 AS a, 2 AS b")
    made = sqlite3.Row(cursor, (5, 6))
    assert (made["a"], made["b"]) == (5, 6)
    short = sqlite3.Row(cursor, (5,))
    assert len(short) == 1
    with pytest.raises(IndexError):
        short["b"]
    bare = sqlite3.Row(connection.cursor(), (5,))
    assert bare[0] == 5
    with pytest.raises(IndexError):
        bare["a"]


@pytest.mark.parametrize("arguments", [(), (None, (1,)), ((1,),), (object(), (1,))])
def test_it_cannot_be_made_without_a_cursor(arguments: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        sqlite3.Row(*arguments)


@pytest.mark.parametrize("data", [[1], None, "a", 1])
def test_it_cannot_be_made_of_anything_but_a_tuple(
    connection: sqlite3.Connection, data: object
) -> None:
    with pytest.raises(TypeError):
        sqlite3.Row(connection.cursor(), data)


def test_a_subclass(connection: sqlite3.Connection) -> None:
    class Mine(sqlite3.Row):
        @property
        def double(self) -> int:
            return self["a"] * 2

    connection.row_factory = Mine
    row = connection.execute("SELECT 21 AS a").fetchone()
    assert type(row) is Mine
    assert row.double == 42


def test_it_keeps_its_names_when_the_cursor_goes_on(rows: sqlite3.Connection) -> None:
    cursor = rows.execute("SELECT 1 AS a")
    row = cursor.fetchone()
    cursor.execute("SELECT 1 AS other, 2")
    rows.execute("CREATE TABLE t(x)")
    del cursor
    assert row["a"] == 1


def test_it_outlives_the_connection(connection: sqlite3.Connection) -> None:
    own = sqlite3.connect(":memory:")
    own.row_factory = sqlite3.Row
    row = own.execute("SELECT 'text' AS a").fetchone()
    own.close()
    assert row["A"] == "text"


def test_it_is_not_copied_by_pickling(row: sqlite3.Row) -> None:
    with pytest.raises(TypeError):
        pickle.dumps(row)
    with pytest.raises(TypeError):
        copy.copy(row)


def test_a_cycle_through_a_row_is_collected(connection: sqlite3.Connection) -> None:
    class Value:
        row: object

    def make() -> weakref.ref[Value]:
        value = Value()
        value.row = sqlite3.Row(connection.cursor(), (value,))
        return weakref.ref(value)

    reference = make()
    gc.collect()
    assert reference() is None


class Text(str):
    __slots__ = ()


class Number(int):
    pass


def both_rows(sql: str) -> list[Any]:
    """The row of the same query by both modules."""
    found = []
    for module in (stdlib, sqlite3):
        connection: Any = module.connect(":memory:")
        connection.row_factory = module.Row
        found.append(connection.execute(sql).fetchone())
        connection.close()
    return found


def outcome(act: Callable[[Any], object], row: Untyped) -> object:
    try:
        return act(row)
    except Exception as error:
        return type(error).__name__


NAMES = 'SELECT 1 AS a, 2 AS A, 3 AS "b c", 4 AS "É", 5 AS "é", 6 AS "", 7 AS "a_Z", 8 AS "x\0y"'


@pytest.mark.parametrize(
    "key",
    [0, 1, -1, -7, -8, 7, 8, True, False, Number(2), Number(-2), 2**63 - 1, -(2**63), 2**63, 2**100,
     1.0, None, b"a", ("a",), object, "a", "A", "B C", "b c", "É", "é", "", "A_z", "x", Text("a"),
     Text("B C"), Text("nothing"), "a ", "ª",
     slice(None), slice(1, 3), slice(None, None, -1), slice(-2, None), slice(9, 1), slice(0, 9, 3),
     slice(True, Number(3)), slice(None, None, 0), slice("a", None), slice(2**70)],
    ids=repr,
)  # fmt: skip
def test_any_key_as_the_standard_library(key: Untyped) -> None:
    theirs, ours = both_rows(NAMES.replace(', 8 AS "x\0y"', ""))
    assert outcome(lambda row: row[key], ours) == outcome(lambda row: row[key], theirs)


def test_a_name_with_letters_outside_ascii_has_one_case() -> None:
    theirs, ours = both_rows('SELECT 1 AS "É_a"')
    assert outcome(lambda row: row["É_A"], ours) == outcome(lambda row: row["É_A"], theirs)


def test_a_key_that_is_no_utf8() -> None:
    theirs, ours = both_rows("SELECT 1 AS a")
    assert outcome(lambda row: row["\ud800"], ours) == outcome(lambda row: row["\ud800"], theirs)


@pytest.mark.parametrize(
    "act",
    [
        list, tuple, len, bool, dict, set, lambda row: list(reversed(row)), lambda row: 3 in row,
        lambda row: "a" in row, lambda row: row.keys(), lambda row: [*row], lambda row: {**row},
        lambda row: row == row, lambda row: row != row, lambda row: row == tuple(row),
        lambda row: tuple(row) == row, lambda row: row < row, lambda row: row.__add__((1,)),
        lambda row: row * 2, lambda row: hash(row) == hash(row), lambda row: row.__setitem__(0, 1),
        lambda row: row.__delitem__(0), lambda row: row[0] % row[1], lambda row: sum(row),
        lambda row: row.count, lambda row: row.index, lambda row: iter(row) is iter(row),
        lambda row: __import__("operator").length_hint(row), lambda row: max(row),
        lambda row: row.__getitem__(), lambda row: row.nothing, lambda row: row.keys(1),
        lambda row: type(row)(), lambda row: type(row)(1, ()), lambda row: type(row)(row, ()),
    ],
)  # fmt: skip
def test_anything_as_the_standard_library(act: Callable[[Any], object]) -> None:
    theirs, ours = both_rows("SELECT 1 AS a, 2 AS b, 3 AS c")
    assert outcome(act, ours) == outcome(act, theirs)


@pytest.mark.parametrize("width", [1, 2, 100, 2000])
def test_wide_rows(rows: sqlite3.Connection, width: int) -> None:
    columns = ", ".join(f"{i} AS Column_{i}" for i in range(width))
    row = rows.execute(f"SELECT {columns}").fetchone()
    for i in range(width):
        assert row[i] == row[i - width] == row[f"Column_{i}"] == row[f"COLUMN_{i}".lower()] == i
    assert row.keys() == [f"Column_{i}" for i in range(width)]


def test_a_name_made_at_run_time(rows: sqlite3.Connection) -> None:
    """It is not the interned string of the description, and yet the same name."""
    row = rows.execute("SELECT 1 AS some_name, 2 AS other").fetchone()
    assert row["".join(["some", "_name"])] == 1
    assert row["".join(["OTH", "ER"])] == 2


def test_the_rows_of_one_statement_keep_their_names(rows: sqlite3.Connection) -> None:
    """Also when the cursor has gone on, and when the statement has other columns by now."""
    rows.execute("CREATE TABLE t(a, b)")
    rows.execute("INSERT INTO t VALUES (1, 2)")
    cursor = rows.execute("SELECT * FROM t")
    row = cursor.fetchone()
    rows.execute("ALTER TABLE t RENAME COLUMN a TO c")
    rows.execute("ALTER TABLE t ADD COLUMN d DEFAULT 4")
    changed = cursor.execute("SELECT * FROM t").fetchone()
    assert (row.keys(), changed.keys()) == (["a", "b"], ["c", "b", "d"])
    assert (row["a"], row["b"], changed["c"], changed["d"]) == (1, 2, 1, 4)
