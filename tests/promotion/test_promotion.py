"""A file's schema and data in PostgreSQL: all of it, once, and the same on both sides."""

from contextlib import closing
from pathlib import Path

import pytest
from tests.promotion.conftest import Place, Promote

import oxlite
from oxlite import sqlite3
from oxlite.promotion import PromotionError, VerificationDiffers, abort

FOLLOWING = "what was written meanwhile"
"""What is told when all rows are there, and before they are compared."""


def of_ours(database: Path) -> list[str]:
    """What Oxlite has left in a file."""
    with closing(oxlite.connect(database)) as connection:
        return [
            name
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_schema WHERE name LIKE 'oxlite%' ORDER BY name"
            )
        ]


def test_all_of_it_arrives(promoted: Promote, place: Place, database: Path) -> None:
    done = promoted()
    assert done.rows == {"author": 299, "note": 299, "word": 300, "line": 300}
    assert done.pause_seconds is None
    assert done.notes == ()
    assert place.rows("SELECT name, active, born::text FROM author WHERE id = 7") == [
        ("author 7", True, "2000-01-31")
    ]
    assert place.rows("SELECT text FROM note WHERE id = 7") == [("\\N\t\n",)]
    assert place.rows("SELECT sum(a), count(b) FROM line") == [(45150, 0)]
    assert place.rows("INSERT INTO author (name) VALUES ('next') RETURNING id, active") == [
        (301, True)
    ]
    assert place.rows("INSERT INTO note (author_id, text) VALUES (1, '') RETURNING id") == [(300,)]
    with pytest.raises(Exception, match="note_author_id_fkey"):
        place.rows("INSERT INTO note (author_id, text) VALUES (1000, '')")
    assert place.rows("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'oxlite%'") == []
    assert of_ours(database) == []


def test_after_a_cut_over_the_file_refuses_writes(
    promoted: Promote, place: Place, database: Path
) -> None:
    done = promoted(cut_over=True)
    assert done.pause_seconds is not None
    with closing(sqlite3.connect(database)) as connection:
        for sql in ("INSERT INTO line VALUES (1, 2)", "UPDATE note SET text = ''"):
            with pytest.raises(sqlite3.IntegrityError, match="has moved to postgresql://postgres@"):
                connection.execute(sql)
        assert connection.execute("SELECT count(*) FROM note").fetchone() == (299,)
    with pytest.raises(PromotionError, match="was promoted already, to postgresql://postgres@"):
        promoted()
    assert abort(database, None)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("INSERT INTO line VALUES (1, 2)")
    assert of_ours(database) == []
    assert place.rows("SELECT count(*) FROM note") == [(299,)]


def test_abort_takes_back_what_was_begun(promoted: Promote, place: Place, database: Path) -> None:
    def interrupt(name: str, _done: int, _total: int) -> None:
        if name == FOLLOWING:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        promoted(tell=interrupt)
    assert "oxlite_promotion" in of_ours(database)
    assert place.rows("SELECT count(*) FROM note") == [(299,)]
    assert abort(database, place.url)
    assert of_ours(database) == []
    assert place.rows("SELECT relname FROM pg_class WHERE relname IN ('note', 'progress')") == []
    assert not abort(database, place.url)
    assert promoted().rows["note"] == 299


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("UPDATE author SET born = '2000-01-30' WHERE id = 7", "2000-01-31"),
        ("DELETE FROM word WHERE word = 'word 7'", "SQLite alone has (word 7 | 7)"),
        ("INSERT INTO line SELECT * FROM line WHERE a = 7", "PostgreSQL alone has (7 | NULL"),
    ],
)
def test_what_differs_is_found_and_named(
    promoted: Promote, place: Place, sql: str, said: str
) -> None:
    def spoil(name: str, _done: int, _total: int) -> None:
        if name == FOLLOWING:
            place.rows("DROP INDEX line_oxlite_rowid_idx")
            place.rows(sql)

    with pytest.raises(VerificationDiffers) as caught:
        promoted(tell=spoil)
    assert said in str(caught.value)
    assert "--abort" in str(caught.value)


def test_a_key_that_is_replaced_by_an_equal_one_is_carried_over(
    promoted: Promote, place: Place, database: Path
) -> None:
    """``a`` and ``A`` are one key to NOCASE, and two to PostgreSQL."""
    with closing(oxlite.connect(database)) as connection:
        connection.execute("CREATE TABLE loose (k TEXT PRIMARY KEY NOT NULL COLLATE NOCASE, v)")
        connection.execute("INSERT INTO loose VALUES ('a', 1), ('b', 1), ('c', 1)")
        connection.commit()

    def write(name: str, _done: int, _total: int) -> None:
        if name == FOLLOWING:
            with closing(sqlite3.connect(database, autocommit=True)) as connection:
                connection.execute("REPLACE INTO loose VALUES ('A', 2)")
                connection.execute("UPDATE loose SET k = 'B', v = 2 WHERE k = 'b'")

    assert promoted(tell=write).rows["loose"] == 3
    assert place.rows('SELECT k, v FROM loose ORDER BY k COLLATE "C"') == [
        ("A", 2),
        ("B", 2),
        ("c", 1),
    ]
