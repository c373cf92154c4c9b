"""Odd names, keys and constraints: what PostgreSQL has of them, and what is said to be lost."""

from pathlib import Path

import pytest
from tests.promotion.conftest import Place, execute, file_of, once, promote_file

from oxlite.promotion import Overrides, PromotionError, Settings

FOLLOWING = "what was written meanwhile"


def test_names_that_have_to_be_quoted(tmp_path: Path, place: Place) -> None:
    path = file_of(
        tmp_path,
        """
        CREATE TABLE "user" (
            "order" INTEGER PRIMARY KEY, "a""b" TEXT DEFAULT 'x''y', "é ü" INT, "%s" TEXT,
            "{c}" TEXT, ":x" REAL, "?" BLOB, "'" TEXT, "CamelCase" TEXT, [brackets ] TEXT, `😀` JSON
        );
        CREATE TABLE "sel;ect--" ("x" INT REFERENCES "user" ("order"), "%s" TEXT, UNIQUE ("x"));
        CREATE TABLE "%s" ("{c}" TEXT PRIMARY KEY);
        CREATE TABLE "Table" (id INTEGER PRIMARY KEY);
        CREATE INDEX "%index" ON "user" ("%s", [brackets ] DESC);
        INSERT INTO "user" ("%s", "{c}", "😀") VALUES ('%s', '{c}', '{}');
        INSERT INTO "sel;ect--" VALUES (1, '%d');
        INSERT INTO "%s" VALUES ('a');
        """,
    )
    write = ('UPDATE "user" SET "{c}" = \'{t}\'', 'UPDATE "%s" SET "{c}" = \'b\'',
             'UPDATE "sel;ect--" SET "%s" = \'\'')  # fmt: skip
    done = promote_file(path, place, tell=once(FOLLOWING, lambda: execute(path, *write)))
    assert done.notes == ()
    assert place.rows('SELECT "order", "a""b", "{c}", "😀" FROM "user"') == [(1, "x'y", "{t}", {})]
    assert place.rows("SELECT indexname FROM pg_indexes WHERE tablename = 'user'") == [
        ("user_pkey",),
        ("%index",),
    ]


def test_names_in_other_letters_are_the_same_names(tmp_path: Path, place: Place) -> None:
    path = file_of(
        tmp_path,
        """
        CREATE TABLE Artist (
            ArtistId INTEGER PRIMARY KEY, Name TEXT, Price REAL CHECK (PRICE > 0), [odd name] TEXT,
            Loud TEXT GENERATED ALWAYS AS (upper(NAME)) STORED,
            Third REAL AS (CAST(price AS REAL) / 3) VIRTUAL,
            CHECK (length("ODD NAME") < 5 AND `name` <> 'Name'), UNIQUE (name)
        );
        CREATE TABLE album (id INTEGER PRIMARY KEY, Aid INT REFERENCES ARTIST (ARTISTID));
        CREATE INDEX album_aid ON album (aid DESC);
        CREATE INDEX artist_name ON artist (lower(name)) WHERE price > 1;
        INSERT INTO Artist (Name, Price) VALUES ('a', 0.1);
        INSERT INTO album VALUES (1, 1);
        """,
    )
    assert promote_file(path, place).notes == ()
    assert place.rows('SELECT "Loud", "Third" FROM "Artist"') == [("A", 0.1 / 3)]
    for broken in (
        """INSERT INTO "Artist" ("Price") VALUES (0)""",
        """INSERT INTO "Artist" ("odd name", "Name") VALUES ('too long', 'b')""",
        """INSERT INTO "Artist" ("Name") VALUES ('a')""",
        """INSERT INTO album ("Aid") VALUES (7)""",
    ):
        with pytest.raises(Exception, match="violates"):
            place.rows(broken)
    definitions = [text for (text,) in place.rows("SELECT indexdef FROM pg_indexes")]
    assert any('"Aid" DESC' in text for text in definitions)
    assert any("""(lower("Name")) WHERE ("Price" >""" in text for text in definitions)


def test_columns_that_hide_the_rowid(tmp_path: Path, place: Place) -> None:
    path = file_of(
        tmp_path,
        """
        CREATE TABLE a (rowid TEXT, b); INSERT INTO a VALUES ('x', 1), ('x', 2), ('x', 1);
        CREATE TABLE b (rowid TEXT PRIMARY KEY, b) WITHOUT ROWID; INSERT INTO b VALUES ('x', 1);
        CREATE TABLE c (oid INT, _rowid_ TEXT); INSERT INTO c VALUES (7, 'x');
        CREATE TABLE d (rowid INTEGER PRIMARY KEY); INSERT INTO d VALUES (5);
        CREATE TABLE e (number INT); INSERT INTO e VALUES (1), (1);
        """,
    )
    write = ("UPDATE a SET b = 3 WHERE b = 2", "INSERT INTO a VALUES ('y', 1)",
             "UPDATE b SET rowid = 'y'", "UPDATE c SET oid = 8", "UPDATE d SET rowid = 6",
             "INSERT INTO e VALUES (2)")  # fmt: skip
    promote_file(path, place, tell=once(FOLLOWING, lambda: execute(path, *write)))
    assert place.rows("SELECT * FROM a ORDER BY 1, 2") == [("x", 1), ("x", 1), ("x", 3), ("y", 1)]
    assert place.rows("SELECT * FROM b") == [("y", 1)]
    assert place.rows("SELECT oid FROM c") == [(8,)]
    assert place.rows("SELECT rowid FROM d") == [(6,)]
    assert place.rows("SELECT number FROM e ORDER BY 1") == [(1,), (1,), (2,)]
    execute(path, "CREATE TABLE f (rowid, oid, _rowid_)")
    with pytest.raises(PromotionError, match="rows of 'f' cannot be told apart"):
        promote_file(path, place, Settings(schema="other"))


@pytest.mark.parametrize("width", [1, 200, 450])
def test_many_columns(width: int, tmp_path: Path, place: Place) -> None:
    kinds = ("INT", "TEXT", "REAL", "DATETIME", "")
    names = ", ".join(f"c{place_} {kinds[place_ % 5]}" for place_ in range(width))
    path = file_of(
        tmp_path,
        f"CREATE TABLE wide (id INTEGER PRIMARY KEY, {names}); CREATE TABLE bare ({names});"
        f"INSERT INTO wide (c0) VALUES (7), ('bad'); INSERT INTO bare (c0) VALUES (7);",
    )
    write = once(FOLLOWING, lambda: execute(path, "UPDATE wide SET c0 = 8 WHERE c0 = 7"))
    done = promote_file(path, place, Settings(policy="set-aside"), tell=write)
    assert done.set_aside == 1
    assert place.rows("SELECT id, c0 FROM wide") == [(1, 8)]
    assert place.rows("SELECT c0 FROM bare") == [(7,)]


def test_keys_of_all_kinds(tmp_path: Path, place: Place) -> None:
    path = file_of(
        tmp_path,
        """
        CREATE TABLE a (k REAL, t TEXT, PRIMARY KEY (k, t)) WITHOUT ROWID;
        INSERT INTO a VALUES (9e999, 'x'), (1e22, 'a'), (-9e999, ''), (1e308, 'b');
        CREATE TABLE b (k BLOB PRIMARY KEY, v) WITHOUT ROWID;
        INSERT INTO b VALUES (x'00ff', 1), (x'', 1);
        CREATE TABLE c (k TEXT, l INT, v INT, PRIMARY KEY (k, l));
        INSERT INTO c VALUES (NULL, 1, 1), (NULL, 1, 1), ('a', NULL, 2), ('a', 1, 3);
        CREATE TABLE d (k TEXT PRIMARY KEY, v) STRICT;
        """.replace("v) STRICT", "v INT) STRICT")
        + "INSERT INTO d VALUES ('a\"\n\\', 1), ('😀', 2);"
        "CREATE TABLE e (id INTEGER PRIMARY KEY); CREATE TABLE f (k DATE PRIMARY KEY, v INT);"
        "INSERT INTO f VALUES ('2024-01-31', 1)",
    )
    write = (
        "DELETE FROM a WHERE t = 'a'", "UPDATE a SET t = 'zz' WHERE t = 'x'",
        "UPDATE b SET k = x'01' WHERE k = x''", "UPDATE c SET v = 9 WHERE l = 1",
        "UPDATE d SET v = 3 WHERE v = 1", "DELETE FROM f", "INSERT INTO f VALUES ('2024-02-01', 2)",
    )  # fmt: skip
    promote_file(path, place, tell=once(FOLLOWING, lambda: execute(path, *write)))
    infinite = float("inf")
    assert place.rows("SELECT * FROM a ORDER BY k") == [
        (-infinite, ""),
        (1e308, "b"),
        (infinite, "zz"),
    ]
    assert place.rows("SELECT v FROM c ORDER BY v") == [(2,), (9,), (9,), (9,)]
    assert place.rows("SELECT count(*) FROM e") == [(0,)]


def test_foreign_keys_that_do_not_hold_are_said(tmp_path: Path, place: Place) -> None:
    path = file_of(
        tmp_path,
        """
        CREATE TABLE p (
            id INTEGER PRIMARY KEY, up INT REFERENCES p, c INT REFERENCES c, u TEXT UNIQUE
        );
        CREATE TABLE c (
            id INTEGER PRIMARY KEY, p INT REFERENCES p, q INT REFERENCES nowhere (x),
            u TEXT REFERENCES p (u) ON DELETE CASCADE, s INT REFERENCES skipped
        );
        CREATE TABLE skipped (id INTEGER PRIMARY KEY);
        INSERT INTO p VALUES (1, 1, 1, 'a'), (2, 1, NULL, 'b');
        INSERT INTO c VALUES (1, 99, 1, 'a', 1);
        """,
    )
    settings = Settings(overrides=Overrides(skipped=frozenset({"skipped"})))
    texts = " ".join(note.text for note in promote_file(path, place, settings).notes)
    assert "c_p_fkey3 is held for new rows alone" in texts
    assert "nowhere is not there" in texts
    assert "skipped is not there" in texts
    place.rows("UPDATE p SET c = NULL; DELETE FROM p WHERE u = 'b'")
    with pytest.raises(Exception, match="violates foreign key"):
        place.rows("INSERT INTO p VALUES (3, 77, NULL, 'c')")


def test_defaults_checks_and_what_is_lost(tmp_path: Path, place: Place) -> None:
    path = file_of(
        tmp_path,
        """
        CREATE TABLE t (
            id INTEGER PRIMARY KEY, a INT DEFAULT -5 CHECK (typeof(a) = 'integer'),
            b TEXT DEFAULT "quoted" CHECK (b <> ')'), c BOOLEAN DEFAULT 1 CHECK (c IN (0, 1)),
            d JSON DEFAULT '{}' CHECK (json_valid(d)), e BLOB DEFAULT x'0102',
            f DATETIME DEFAULT CURRENT_TIMESTAMP, g TEXT DEFAULT (hex(randomblob(4))),
            h REAL DEFAULT 1.5e3, i INT GENERATED ALWAYS AS (a * 2) VIRTUAL,
            j TEXT AS (printf('%d', a)) STORED, CONSTRAINT later CHECK (a < 10 OR b GLOB 'x*')
        );
        CREATE UNIQUE INDEX t_b ON t (b COLLATE NOCASE);
        CREATE VIEW v AS SELECT 1; CREATE TRIGGER r AFTER INSERT ON t BEGIN SELECT 1; END;
        INSERT INTO t DEFAULT VALUES;
        """,
    )
    texts = [note.text for note in promote_file(path, place).notes]
    for lost in ("typeof(a)", "GLOB", "NOCASE", "randomblob", "printf"):
        assert sum(lost in text for text in texts) == 1, lost
    assert len(texts) == 5
    assert place.rows("INSERT INTO t (id) VALUES (9) RETURNING a, b, c, d, e, h, i") == [
        (-5, "quoted", True, {}, b"\x01\x02", 1500.0, -10)
    ]
    assert place.rows("SELECT j FROM t WHERE id = 1") == [("-5",)]


@pytest.mark.parametrize("name", ["", "é" * 32])
def test_names_that_postgresql_has_not(name: str, tmp_path: Path, place: Place) -> None:
    path = file_of(tmp_path, f'CREATE TABLE t (id INTEGER PRIMARY KEY, "{name}" TEXT)')
    with pytest.raises(PromotionError, match="rename it first"):
        promote_file(path, place)


def test_a_check_that_means_more_here_is_dropped_there(tmp_path: Path, place: Place) -> None:
    """LIKE ignores the case on SQLite alone; what is written meanwhile may hold it only here."""
    path = file_of(
        tmp_path,
        """
        CREATE TABLE shop (id INTEGER PRIMARY KEY, name TEXT CHECK (name LIKE 'A%'),
                           size INTEGER CONSTRAINT sizes CHECK (size > 0));
        INSERT INTO shop VALUES (1, 'Ab', 1);
        """,
    )
    write = "INSERT INTO shop VALUES (2, 'ab', 2)"
    done = promote_file(path, place, tell=once(FOLLOWING, lambda: execute(path, write)))
    assert done.rows == {"shop": 2}
    assert ["shop_check means something else there" in note.text for note in done.notes] == [True]
    held = "SELECT conname, convalidated FROM pg_constraint WHERE conrelid = 'shop'::regclass"
    assert place.rows(held + " AND contype = 'c'") == [("sizes", True)]
