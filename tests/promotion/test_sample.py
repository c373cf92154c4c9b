"""The way back: a sample of PostgreSQL's rows in a file, in which all foreign keys hold."""

import json
from contextlib import closing
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.promotion.conftest import Place, Promote
from typer.testing import CliRunner

import oxlite
from oxlite import sqlite3
from oxlite.bench.harness.postgresql import PostgresServer
from oxlite.promotion import Promoted, PromotionError, Settings, promote, sample

TYPES = """
    CREATE TYPE mood AS ENUM ('sad', 'happy');
    CREATE TABLE kinds (
        id uuid PRIMARY KEY, truth boolean NOT NULL DEFAULT true, whole bigint DEFAULT -1,
        half double precision, price numeric(10,2) DEFAULT 0.5, exact numeric, long numeric(30,10),
        word varchar(20) DEFAULT 'it''s', letters text, day date, at time, moment timestamp,
        instant timestamptz DEFAULT now(), span interval, data jsonb DEFAULT '{}', raw bytea,
        host inet, feeling mood, numbers integer[], ids uuid[],
        CONSTRAINT dear CHECK (price >= 0 AND word IN ('a', 'it''s')),
        CONSTRAINT starts CHECK (letters ~ '^x')
    );
    INSERT INTO kinds VALUES (
        '12345678901234567890123456789012', true, 9223372036854775807, 0.1, 12345678.90, 1e-7,
        12345678901234567890.1234567891, 'a', E'x\\n\\\\N', '2000-02-29', '23:59:59.5',
        '2000-01-31 12:00:00', '2000-01-31 12:00:00+02', '1 day 00:00:00.000001', '1',
        '\\x00ff', '10.0.0.1', 'happy', '{1,NULL}', '{12345678-9012-3456-7890-123456789012}'
    ), (
        '00000000-0000-0000-0000-0000000000ff', false, NULL, 'NaN', 0, 5, 1, 'it''s', NULL,
        '0044-03-15 BC', NULL, 'infinity', NULL, NULL, '"1"', '', '10.0.0.0/8', NULL, '{}', NULL
    );
"""


def rows(database: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(sql).fetchall()


@pytest.fixture
def other(server: PostgresServer) -> Place:
    made = server.database("other")
    return Place(f"postgresql://postgres@/{made.name}?host={made.parent}")


def promoted_again(database: Path, place: Place) -> Promoted:
    return promote(
        database,
        place.url,
        Settings(),
        cut_over=False,
        tell=lambda _name, _done, _total: None,
        report=lambda _plan: None,
    )


def types_of(place: Place) -> dict[str, str]:
    return dict(
        place.rows(
            "SELECT c.relname || '.' || a.attname, format_type(a.atttypid, a.atttypmod)"
            " FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid AND c.relkind = 'r'"
            " WHERE c.relnamespace = 'public'::regnamespace AND a.attnum > 0 AND NOT attisdropped"
        )
    )


def test_there_and_back_and_there_again(
    promoted: Promote, place: Place, other: Place, tmp_path: Path
) -> None:
    promoted()
    back = tmp_path / "back.db"
    done = sample(place.url, back)
    assert done.rows == {"author": 299, "note": 299, "word": 300, "line": 300}
    assert done.notes == ()
    again = promoted_again(back, other)
    assert again.rows == done.rows
    assert types_of(place) == types_of(other)
    for table in done.rows:
        everything = f"SELECT * FROM {table} ORDER BY 1"
        assert place.rows(everything) == other.rows(everything)
    insert = "INSERT INTO author (name) VALUES ('next') RETURNING active"
    assert place.rows(insert) == other.rows(insert)
    with pytest.raises(Exception, match="note_author_id_fkey"):
        other.rows("INSERT INTO note (author_id, text) VALUES (1000, '')")


def test_values_are_written_as_the_mappers_write_them(
    place: Place, other: Place, tmp_path: Path
) -> None:
    place.rows(TYPES)
    back = tmp_path / "back.db"
    done = sample(place.url, back)
    one, unusual = rows(back, "SELECT * FROM kinds ORDER BY id DESC")
    assert one == (
        "12345678901234567890123456789012", 1, 2**63 - 1, 0.1, 12345678.9, 1e-07,
        "12345678901234567890.1234567891", "a", "x\n\\N", "2000-02-29", "23:59:59.500000",
        "2000-01-31 12:00:00.000000", "2000-01-31 10:00:00.000000", 86_400_000_001, "1",
        b"\x00\xff", "10.0.0.1", "happy", "[1,null]", '["12345678901234567890123456789012"]',
    )  # fmt: skip
    assert unusual[3] == "NaN"
    assert (unusual[9], unusual[11], unusual[16]) == ("0044-03-15 BC", "infinity", "10.0.0.0/8")
    assert {(note.kind, note.column) for note in done.notes} == {("changed", "long"), ("lost", "")}
    assert any("letters ~" in note.text for note in done.notes)
    with closing(sqlite3.connect(back)) as connection:
        connection.execute("INSERT INTO kinds (id) VALUES ('a')")
        found = connection.execute(
            "SELECT truth, whole, price, word, data, length(instant) FROM kinds WHERE id = 'a'"
        ).fetchone()
        assert found == (1, -1, 0.5, "it's", "{}", 19)
        with pytest.raises(sqlite3.IntegrityError, match="dear"):
            connection.execute("INSERT INTO kinds (id, price) VALUES ('b', -1)")

    place.rows("DELETE FROM kinds WHERE NOT truth")
    once_more = tmp_path / "once more.db"
    sample(place.url, once_more)
    promoted_again(once_more, other)
    there, here = types_of(other), types_of(place)
    assert {column: kind for column, kind in there.items() if kind != here[column]} == {
        "kinds.long": "text", "kinds.host": "text", "kinds.feeling": "text",
        "kinds.numbers": "text", "kinds.ids": "text",
    }  # fmt: skip
    same = "SELECT id, truth, whole, half, price, exact, long::text, word, letters, day, at,"
    same += " moment, instant, span, data, raw FROM kinds"
    assert other.rows(same) == place.rows(same)


def test_sqlalchemy_reads_it(place: Place, tmp_path: Path) -> None:
    sa = pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    place.rows(TYPES)
    back = tmp_path / "back.db"
    sample(place.url, back)
    of = sa.types
    kinds = sa.table(
        "kinds",
        *(
            sa.column(name, kind)
            for name, kind in {
                "id": of.Uuid(), "truth": of.Boolean(), "price": of.Numeric(10, 2),
                "day": of.Date(), "at": of.Time(), "moment": of.DateTime(), "data": of.JSON(),
                "raw": of.LargeBinary(), "ids": of.ARRAY(of.Uuid()),
            }.items()
        ),
    )  # fmt: skip
    engine = sa.create_engine(f"sqlite+oxlite:///{back}")
    with engine.connect() as connection:
        found = connection.execute(sa.select(kinds).where(kinds.c.truth)).one()
    engine.dispose()
    name = UUID("12345678901234567890123456789012")
    assert tuple(found) == (
        name, True, Decimal("12345678.90"), date(2000, 2, 29), time(23, 59, 59, 500_000),
        datetime(2000, 1, 31, 12), 1, b"\x00\xff", [name],
    )  # fmt: skip


def test_what_rows_refer_to_comes_with_them(place: Place, tmp_path: Path) -> None:
    place.rows("""
        CREATE TABLE team (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, head bigint);
        CREATE TABLE member (
            id integer PRIMARY KEY, team_id integer NOT NULL REFERENCES team (id),
            before integer REFERENCES member (id)
        );
        ALTER TABLE team ADD FOREIGN KEY (head) REFERENCES member (id)
            DEFERRABLE INITIALLY DEFERRED;
        CREATE TABLE pair (a text, b numeric, "of 100%" text, PRIMARY KEY (a, b));
        CREATE TABLE word (
            id serial PRIMARY KEY, x text, y numeric,
            FOREIGN KEY (x, y) REFERENCES pair ON DELETE CASCADE
        );
        CREATE INDEX ON word (x, y DESC);
        CREATE TABLE apart (id bigint PRIMARY KEY);
        BEGIN;
        INSERT INTO team (head) SELECT 3001 - n FROM generate_series(1, 3000) n;
        INSERT INTO member SELECT n, 3001 - n, NULL
            FROM generate_series(1, 3000) n;
        UPDATE member SET before = CASE WHEN id > 1000 THEN id - 1000 END;
        INSERT INTO pair SELECT 'p' || n, n / 10.0, '' FROM generate_series(1, 100) n;
        INSERT INTO word (x, y) SELECT 'p' || n, n / 10.0 FROM generate_series(1, 100) n;
        INSERT INTO word (x, y) VALUES (NULL, 1);
        INSERT INTO apart SELECT generate_series(1, 100);
        COMMIT;
    """)
    back = tmp_path / "back.db"
    done = sample(place.url, back, rows=5, tables=["member", "word"])
    assert "apart" not in done.rows
    assert rows(back, "PRAGMA foreign_key_check") == []
    assert rows(back, "SELECT id FROM word") == [(97,), (98,), (99,), (100,), (101,)]
    assert rows(back, "SELECT * FROM pair ORDER BY b")[0] == ("p97", 9.7, "")
    members = {number for (number,) in rows(back, "SELECT id FROM member")}
    assert set(range(2996, 3001)) <= members
    # 3000 is in team 1, whose head is 3000; and comes after 2000, who comes after 1000.
    assert {1000, 2000, 3000} <= members
    assert done.rows["member"] == len(members) < 40
    assert rows(back, "SELECT sql LIKE '%DEFERRABLE%' FROM sqlite_schema WHERE name = 'team'") == [
        (1,)
    ]
    assert rows(back, "SELECT desc FROM pragma_index_xinfo('word_x_y_idx') WHERE key") == [
        (0,), (1,),
    ]  # fmt: skip
    with closing(oxlite.connect(back)) as connection:
        connection.execute("INSERT INTO word (x) VALUES (NULL)")
        assert connection.execute("SELECT max(id) FROM word").fetchone() == (102,)


def test_a_key_that_rows_break_is_left_out(place: Place, tmp_path: Path) -> None:
    place.rows("""
        CREATE TABLE a (id bigint PRIMARY KEY);
        CREATE TABLE b (id bigint PRIMARY KEY, a bigint);
        INSERT INTO b VALUES (1, 7);
        ALTER TABLE b ADD FOREIGN KEY (a) REFERENCES a NOT VALID;
    """)
    done = sample(place.url, tmp_path / "back.db")
    assert done.rows == {"a": 0, "b": 1}
    assert [note.table for note in done.notes] == ["b"]
    assert "rows break it" in done.notes[0].text


def test_a_sample_takes_no_files_place(place: Place, tmp_path: Path) -> None:
    place.rows('CREATE TABLE "A" (x int); CREATE TABLE a (x int)')
    (tmp_path / "there.db").write_bytes(b"mine")
    (tmp_path / "left.db-journal").write_bytes(b"mine")
    for name, options, said in (
        ("there.db", {}, "there.db exists"),
        ("left.db", {}, "left.db-journal exists"),
        ("new.db", {}, "'A' and 'a'"),
        ("new.db", {"schema": "none"}, "no schema 'none'"),
        ("new.db", {"rows": 0}, "at least one row"),
    ):
        with pytest.raises(PromotionError, match=said):
            sample(place.url, tmp_path / name, **options)  # type: ignore[arg-type]
    place.rows('DROP TABLE "A"')
    with pytest.raises(PromotionError, match="no table 'b'"):
        sample(place.url, tmp_path / "new.db", tables=["a", "b"])

    def interrupt(_name: str, _done: int, _total: int) -> None:
        raise KeyboardInterrupt

    place.rows("INSERT INTO a VALUES (1)")
    with pytest.raises(KeyboardInterrupt):
        sample(place.url, tmp_path / "new.db", tell=interrupt)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["left.db-journal", "there.db"]


def test_the_command_says_what_it_has_done(promoted: Promote, place: Place, tmp_path: Path) -> None:
    from oxlite.cli.app import app

    promoted()
    place.rows("CREATE INDEX lower_word ON word (lower(word))")
    command = [
        "sample",
        place.url,
        str(tmp_path / "dev.db"),
        "--rows",
        "10",
        "--tables",
        "note, word",
    ]
    done = CliRunner().invoke(app, [*command, "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["rows"] == {"author": 10, "note": 10, "word": 10}
    assert [note["table"] for note in said["notes"]] == ["word"]
    assert rows(tmp_path / "dev.db", "SELECT max(id), min(author_id) FROM note") == [(299, 290)]
    command[2] = str(tmp_path / "other.db")
    done = CliRunner().invoke(app, command)
    assert "3 tables, 30 rows" in done.stdout
    assert "lost: word: CREATE INDEX lower_word" in done.output


def test_all_is_of_one_moment(place: Place, tmp_path: Path) -> None:
    place.rows("CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (a int REFERENCES a)")
    place.rows("INSERT INTO a VALUES (1)")

    def write(_name: str, _done: int, _total: int) -> None:
        place.rows("INSERT INTO a VALUES (2) ON CONFLICT DO NOTHING; INSERT INTO b VALUES (2)")

    done = sample(place.url, tmp_path / "new.db", tell=write)
    assert done.rows == {"a": 1, "b": 0}
