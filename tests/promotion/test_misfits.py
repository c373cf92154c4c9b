"""What does not fit: each way to deal with it, be it there at first or written later."""

import json
from contextlib import closing
from pathlib import Path
from typing import get_args

import pytest
from tests.promotion.conftest import Place, execute, file_of, once, promote_file

from oxlite import sqlite3
from oxlite.promotion import DoesNotFit, Misfits, Settings, examine, read_overrides

FOLLOWING = "what was written meanwhile"

MISFITS = """
    CREATE TABLE t (
        id INTEGER PRIMARY KEY, whole INTEGER, day DATE, document JSON, price DECIMAL(5,2),
        short VARCHAR(3)
    );
    INSERT INTO t VALUES (1, 5, '2024-01-31', '{}', 1.25, 'abc'),
        (2, 'five', '2024-01-31', '{}', 1.25, 'abcd'),
        (3, 5, '2024-02-30', '{"a": NaN}', 1.255, 'abc');
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return file_of(tmp_path, MISFITS)


def tables(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        names = connection.execute("SELECT name FROM sqlite_schema ORDER BY name").fetchall()
    return [name for (name,) in names]


def test_stop_begins_nothing_and_says_where(path: Path, place: Place) -> None:
    with pytest.raises(DoesNotFit, match=r"1 values in t\.whole .* and 2 more columns"):
        promote_file(path, place)
    assert tables(path) == ["t"]
    assert place.rows("SELECT 1 FROM pg_class WHERE relname = 't'") == []
    plan = examine(path, place.url, Settings(), lambda _name, _done, _total: None)
    assert {note.column: note.examples[0].key for note in plan.misfits} == {
        "whole": (2,),
        "day": (3,),
        "document": (3,),
    }
    assert tables(path) == ["t"]


def test_widen_keeps_all_of_it(path: Path, place: Place) -> None:
    promote_file(path, place, Settings(policy="widen"))
    assert place.rows("SELECT id, whole, day, document, price::text, short FROM t ORDER BY id") == [
        (1, "5", "2024-01-31", "{}", "1.25", "abc"),
        (2, "five", "2024-01-31", "{}", "1.25", "abcd"),
        (3, "5", "2024-02-30", '{"a": NaN}', "1.255", "abc"),
    ]


def test_null_takes_them_away(path: Path, place: Place) -> None:
    promote_file(path, place, Settings(policy="null"))
    assert place.rows("SELECT whole, day::text, document, price::text FROM t ORDER BY id") == [
        (5, "2024-01-31", {}, "1.25"),
        (None, "2024-01-31", {}, "1.25"),
        (5, None, None, "1.255"),
    ]


def test_null_is_refused_where_none_may_be(tmp_path: Path, place: Place) -> None:
    path = file_of(
        tmp_path,
        "CREATE TABLE t (k INT PRIMARY KEY, v INT NOT NULL);"
        "INSERT INTO t VALUES ('a', 1), (2, 'b')",
    )
    with pytest.raises(DoesNotFit, match="may not become NULL, and 1 more columns"):
        promote_file(path, place, Settings(policy="null"))


def test_set_aside_keeps_the_rows(path: Path, place: Place) -> None:
    done = promote_file(path, place, Settings(policy="set-aside"))
    assert done.set_aside == 2
    assert place.rows("SELECT id FROM t") == [(1,)]
    kept = place.rows("SELECT table_name, key, row FROM oxlite_promotion.set_aside ORDER BY key")
    assert [(table, key) for table, key, _ in kept] == [("t", "[2]"), ("t", "[3]")]
    assert json.loads(kept[1][2])["day"] == "2024-02-30"


@pytest.mark.parametrize("key", ["TEXT", "BLOB"])
def test_what_is_set_aside_follows_what_is_written(key: str, tmp_path: Path, place: Place) -> None:
    path = file_of(
        tmp_path,
        f"CREATE TABLE t (k {key} PRIMARY KEY, v INT);"
        "INSERT INTO t VALUES (x'01', 'bad'), (x'02', 'bad'), (x'03', 3), ('a\"é', 'gone')",
    )
    late = once(
        FOLLOWING,
        lambda: execute(
            path,
            "UPDATE t SET v = 'worse' WHERE hex(k) = '01'",
            "UPDATE t SET v = 2 WHERE hex(k) = '02'",
            "UPDATE t SET v = 'bad' WHERE hex(k) = '03'",
            "DELETE FROM t WHERE v = 'gone'",
        ),
    )
    if key == "TEXT":
        execute(path, "UPDATE t SET k = CAST(k AS TEXT)")
    done = promote_file(path, place, Settings(policy="set-aside"), tell=late)
    assert done.set_aside == 2
    assert place.rows("SELECT v FROM t") == [(2,)]


def test_a_text_that_is_no_utf8_is_set_aside(tmp_path: Path, place: Place) -> None:
    path = file_of(
        tmp_path,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT, d JSON);"
        "INSERT INTO t VALUES (1, CAST(x'61ff' AS TEXT), NULL), (2, 'a', CAST(x'22ff22' AS TEXT)),"
        " (3, 'a', '1')",
    )
    for policy in ("stop", "widen"):
        with pytest.raises(DoesNotFit):
            promote_file(path, place, Settings(policy=policy))
    assert promote_file(path, place, Settings(policy="set-aside")).set_aside == 2
    ((row,),) = place.rows("SELECT row FROM oxlite_promotion.set_aside WHERE key = '[1]'")
    assert json.loads(row)["v"] == "61FF"


def test_a_key_that_is_no_utf8_is_in_the_way(tmp_path: Path, place: Place) -> None:
    path = file_of(
        tmp_path,
        "CREATE TABLE t (k TEXT PRIMARY KEY); INSERT INTO t VALUES (CAST(x'61ff' AS TEXT))",
    )
    with pytest.raises(DoesNotFit, match="are keys, and no UTF-8"):
        promote_file(path, place, Settings(policy="set-aside"))
    assert tables(path) == ["sqlite_autoindex_t_1", "t"]


@pytest.mark.parametrize("policy", get_args(Misfits))
def test_what_comes_later(policy: Misfits, tmp_path: Path, place: Place) -> None:
    path = file_of(
        tmp_path, "CREATE TABLE t (id INTEGER PRIMARY KEY, v INT); INSERT INTO t VALUES (1, 1)"
    )
    late = once(FOLLOWING, lambda: execute(path, "INSERT INTO t VALUES (2, 'late')"))
    settings = Settings(policy=policy)
    if policy in {"stop", "widen"}:
        with pytest.raises(DoesNotFit, match=r"row \[2\] of 't' has something in column 'v'"):
            promote_file(path, place, settings, tell=late)
        execute(path, "UPDATE t SET v = 2 WHERE id = 2")
        promote_file(path, place, settings)
        assert place.rows("SELECT v FROM t ORDER BY id") == [(1,), (2,)]
        return
    done = promote_file(path, place, settings, tell=late)
    expected = [(1,), (None,)] if policy == "null" else [(1,)]
    assert place.rows("SELECT v FROM t ORDER BY id") == expected
    assert done.set_aside == (policy == "set-aside")


def test_a_file_says_it_for_each_column(path: Path, place: Place, tmp_path: Path) -> None:
    overrides = tmp_path / "overrides.toml"
    overrides.write_text("""
        [tables.t.columns.whole]
        type = "text"
        [tables.t.columns.day]
        misfits = "null"
        [tables.t.columns.document]
        misfits = "widen"
        [tables.t.columns.price]
        type = "numeric(6,3)"
    """)
    promote_file(path, place, Settings(overrides=read_overrides(overrides)))
    assert place.rows("SELECT whole, day, document, price::text FROM t WHERE id = 3") == [
        ("5", None, '{"a": NaN}', "1.255")
    ]
