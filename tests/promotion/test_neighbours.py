"""What is there beside a promotion stays as it is; what moves meanwhile arrives."""

from contextlib import closing
from pathlib import Path

import pytest
from tests.promotion.conftest import Place, execute, file_of, once, promote_file

from oxlite import sqlite3
from oxlite.promotion import PromotionError, Settings

FOLLOWING = "what was written meanwhile"
CHECKS = (
    "SELECT conname, contype::text FROM pg_constraint"
    " WHERE conrelid = '{}'::regclass AND contype <> 'n' ORDER BY 1"
)


def test_checks_of_others_are_left_alone(tmp_path: Path, place: Place) -> None:
    place.rows("CREATE TABLE other (x int)")
    place.rows("INSERT INTO other VALUES (-1)")
    place.rows("ALTER TABLE other ADD CONSTRAINT pos CHECK (x > 0) NOT VALID")
    path = file_of(tmp_path, "CREATE TABLE t (id INTEGER PRIMARY KEY, a INT CHECK (a > 0))")
    assert promote_file(path, place).notes == ()
    assert place.rows(CHECKS.format("other")) == [("pos", "c")]
    assert place.rows(CHECKS.format("t")) == [("t_check", "c"), ("t_pkey", "p")]


def test_a_check_with_the_name_of_a_key_takes_none_away(tmp_path: Path, place: Place) -> None:
    path = file_of(
        tmp_path,
        """
        CREATE TABLE t (id INTEGER PRIMARY KEY, a INT, CONSTRAINT t_pkey CHECK (a > 0));
        INSERT INTO t VALUES (1, 1);
        """,
    )
    done = promote_file(
        path, place, tell=once(FOLLOWING, lambda: execute(path, "UPDATE t SET a=2"))
    )
    assert ["already exists" in note.text for note in done.notes] == [True]
    assert place.rows(CHECKS.format("t")) == [("t_pkey", "p")]


def test_a_unique_value_may_move_while_rows_are_copied(tmp_path: Path, place: Place) -> None:
    path = file_of(
        tmp_path,
        """
        CREATE TABLE a (id INTEGER PRIMARY KEY, email TEXT UNIQUE);
        CREATE UNIQUE INDEX lower_email ON a (lower(email));
        INSERT INTO a VALUES (1, 'x'), (2, 'y');
        CREATE TABLE b (id INTEGER PRIMARY KEY);
        """,
    )

    def move() -> None:  # as if row 1 had been read before, and row 2 after it
        place.rows("UPDATE a SET email = 'y' WHERE id = 1")
        execute(
            path, "UPDATE a SET email = 'z' WHERE id = 1", "UPDATE a SET email = 'x' WHERE id = 2"
        )

    assert promote_file(path, place, tell=once("b: indexes", move)).notes == ()
    assert place.rows("SELECT * FROM a ORDER BY id") == [(1, "z"), (2, "x")]
    assert place.rows(CHECKS.format("a")) == [("a_email_key", "u"), ("a_pkey", "p")]


def test_names_with_a_percent_sign_are_cut_over(tmp_path: Path, place: Place) -> None:
    path = file_of(tmp_path, 'CREATE TABLE "50%" (id INTEGER PRIMARY KEY, "%s" TEXT)')
    write = "INSERT INTO \"50%\" VALUES (1, '%d')"
    done = promote_file(
        path, place, cut_over=True, tell=once("cut-over", lambda: execute(path, write))
    )
    assert done.pause_seconds is not None
    assert place.rows('SELECT "%s" FROM "50%"') == [("%d",)]


def test_what_somebody_has_written_as_a_sequence_is_not_executed(
    tmp_path: Path, place: Place
) -> None:
    path = file_of(tmp_path, "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT)")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("INSERT INTO t VALUES (7)")
        connection.execute("UPDATE sqlite_sequence SET seq = '(SELECT 41)'")
    promote_file(path, place)
    assert place.rows("INSERT INTO t DEFAULT VALUES RETURNING id") == [(8,)]


def test_rows_that_were_set_aside_are_looked_at_before_the_next(
    tmp_path: Path, place: Place
) -> None:
    path = file_of(
        tmp_path, "CREATE TABLE t (id INTEGER PRIMARY KEY, d DATE); INSERT INTO t VALUES (1, 'x')"
    )
    assert promote_file(path, place, Settings(policy="set-aside")).set_aside == 1
    place.rows("DROP TABLE t")
    with pytest.raises(PromotionError, match="DROP SCHEMA oxlite_promotion CASCADE"):
        promote_file(path, place)
    place.rows("DROP SCHEMA oxlite_promotion CASCADE")
    assert promote_file(path, place, Settings(policy="null")).rows == {"t": 1}
