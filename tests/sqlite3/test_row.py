"""``Row``: by position, by slice, by name in any case; equality, hash, iteration."""

import collections.abc
import copy
import gc
import pickle
import weakref

import pytest

from oxlite import sqlite3


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
