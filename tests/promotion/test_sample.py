"""The way back: a sample of PostgreSQL's rows in a file, in which all foreign keys hold."""

import json
import subprocess
import sys
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
        moment = kinds.c.moment == datetime(2000, 1, 31, 12)
        assert connection.execute(sa.select(kinds).where(moment)).one() == found
    engine.dispose()
    name = UUID("12345678901234567890123456789012")
    assert tuple(found) == (
        name, True, Decimal("12345678.90"), date(2000, 2, 29), time(23, 59, 59, 500_000),
        datetime(2000, 1, 31, 12), 1, b"\x00\xff", [name],
    )  # fmt: skip


READ_BY_DJANGO = """
import json, sys, uuid
import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "oxlite.django.sqlite3", "NAME": sys.argv[1]}},
    USE_TZ=True, INSTALLED_APPS=[],
)
django.setup()
from django.db import models
from oxlite.django.fields import ArrayField

class Kinds(models.Model):
    id = models.UUIDField(primary_key=True)
    truth = models.BooleanField()
    price = models.DecimalField(max_digits=10, decimal_places=2)
    day = models.DateField()
    at = models.TimeField()
    instant = models.DateTimeField()
    span = models.DurationField()
    data = models.JSONField()
    raw = models.BinaryField()
    host = models.GenericIPAddressField()
    numbers = ArrayField(models.IntegerField())
    ids = ArrayField(models.UUIDField())
    class Meta:
        app_label = "kinds"
        db_table = "kinds"

one = Kinds.objects.get(truth=True)
assert one == Kinds.objects.get(ids__contains=one.ids, numbers__contains=[1])
assert one == Kinds.objects.get(pk=one.pk, instant=one.instant, span=one.span, day=one.day)
print(list(Kinds.objects.filter(truth=True).values_list().get()))
"""


def test_django_reads_it(place: Place, tmp_path: Path) -> None:
    pytest.importorskip("django", reason="Django is not installed")
    place.rows(TYPES)
    place.rows("CREATE TABLE django_migrations (id bigint PRIMARY KEY)")
    back = tmp_path / "back.db"
    sample(place.url, back)
    done = subprocess.run(
        [sys.executable, "-c", READ_BY_DJANGO, str(back)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == (
        "[UUID('12345678-9012-3456-7890-123456789012'), True, Decimal('12345678.90'),"
        " datetime.date(2000, 2, 29), datetime.time(23, 59, 59, 500000),"
        " datetime.datetime(2000, 1, 31, 10, 0, tzinfo=datetime.timezone.utc),"
        " datetime.timedelta(days=1, microseconds=1), 1, b'\\x00\\xff', '10.0.0.1', [1, None],"
        " [UUID('12345678-9012-3456-7890-123456789012')]]"
    )


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


def test_keys_of_all_kinds_are_followed(place: Place, tmp_path: Path) -> None:
    kinds = {
        "c": ("color", "red"), "u": ("uuid", "12345678-9012-3456-7890-123456789012"),
        "b": ("bytea", r"\x005cff"), "t": ("timestamp", "2000-01-31 12:00:00.5"),
        "z": ("timestamptz", "2000-01-31 12:00:00+02"), "d": ("date", "2000-01-31"),
        "n": ("numeric", "123456789012345678901234567890.5"), "f": ("float8", "0.1"),
        "r": ("real", "0.1"), "h": ("char(5)", "ab"), "w": ("varchar(9)", "a\\b%s"),
        "i": ("inet", "10.0.0.0/8"), "v": ("interval", "1 day 2 hours"), "y": ("boolean", "true"),
        "m": ("time", "10:00"), "s": ("smallint", "-7"), "{} %s": ("bit(3)", "101"),
    }  # fmt: skip
    place.rows("CREATE TYPE color AS ENUM ('red', 'green')")
    place.rows("CREATE TABLE other (id int PRIMARY KEY)")
    columns = ", ".join(f'"{name}" {kind} UNIQUE' for name, (kind, _) in kinds.items())
    place.rows(f"CREATE TABLE named (id bigint PRIMARY KEY, {columns})")
    values = ", ".join(f"'{value}'" for _, value in kinds.values())
    place.rows(f"INSERT INTO named VALUES (1, {values}); INSERT INTO named VALUES (2)")
    columns = ", ".join(
        f'"{name}" {"bigint" if kind == "smallint" else kind} REFERENCES named ("{name}")'
        for name, (kind, _) in kinds.items()
    )
    place.rows(f"CREATE TABLE ours (id int PRIMARY KEY, {columns})")
    for number, (name, (_, value)) in enumerate(kinds.items()):
        place.rows(f"""INSERT INTO ours (id, "{name}") VALUES ({number}, '{value}')""")
    back = tmp_path / "back.db"
    done = sample(place.url, back, rows=len(kinds), tables=["ours"])
    assert done.rows == {"named": 1, "ours": len(kinds)}
    assert rows(back, "PRAGMA foreign_key_check") == []
    assert len(rows(back, "PRAGMA foreign_key_list(ours)")) == len(kinds)
    for name in kinds:
        quoted = f'"{name}"'
        joined = f"SELECT 1 FROM ours JOIN named ON ours.{quoted} = named.{quoted}"
        assert rows(back, joined) == [(1,)], name
    assert {note.column for note in done.notes} == {"n"}


def test_defaults_and_checks_are_taken_over_or_listed(place: Place, tmp_path: Path) -> None:
    place.rows("""
        CREATE DOMAIN few AS integer CHECK (VALUE < 10);
        CREATE TABLE given (
            id bigint GENERATED ALWAYS AS IDENTITY, key int PRIMARY KEY,
            a int DEFAULT 5, b numeric(5,2) DEFAULT -1.25, c text DEFAULT 'it''s: ::text',
            d boolean DEFAULT false, e timestamptz DEFAULT CURRENT_TIMESTAMP,
            f date DEFAULT CURRENT_DATE, g jsonb DEFAULT '[]', h varchar(9) DEFAULT NULL,
            i uuid DEFAULT gen_random_uuid(), j interval DEFAULT '1 day', k few DEFAULT 3,
            l timestamp DEFAULT '2000-01-31', m int GENERATED ALWAYS AS (a + 1) STORED,
            CONSTRAINT of_numbers CHECK (a > 0 AND b BETWEEN -2 AND 2.5 OR NOT d),
            CONSTRAINT of_texts CHECK (length(c) > 1 AND h NOT IN ('x', 'y(')),
            CONSTRAINT of_days CHECK (f > DATE '1999-01-31'),
            CONSTRAINT division CHECK (a / 2 > 0),
            CONSTRAINT quoted CHECK (c <> 'x::text'),
            CONSTRAINT likes CHECK (c LIKE 'it%'),
            CONSTRAINT calls CHECK (char_length(c) > 1),
            CONSTRAINT sees CHECK (g @> '[]'),
            CONSTRAINT moments CHECK (e <= now())
        );
        INSERT INTO given (key) VALUES (1);
    """)
    back = tmp_path / "back.db"
    done = sample(place.url, back)
    with closing(sqlite3.connect(back)) as connection:
        connection.execute("INSERT INTO given (id, key) VALUES (2, 2)")
        found = connection.execute(
            "SELECT a, b, c, d, length(e), length(f), g, h, i, j, k, l FROM given WHERE key = 2"
        ).fetchone()
        assert found == (
            5, -1.25, "it's: ::text", 0, 19, 10, "[]", None, None, None, 3, None,
        )  # fmt: skip
        for column, value in (("a", -1), ("c", "'x'"), ("h", "'y('"), ("f", "'1999-01-01'")):
            with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
                connection.execute(
                    f"INSERT INTO given (id, key, d, {column}) VALUES (3, 3, 1, {value})"
                )
    assert {note.column for note in done.notes} == {"", "id", "i", "j", "k", "l", "m"}
    assert sorted(note.text.split()[0] for note in done.notes if not note.column) == ["CHECK"] * 6


def test_a_check_that_sqlite_reads_otherwise_is_left_out(place: Place, tmp_path: Path) -> None:
    place.rows("""
        CREATE TABLE a (
            t char(5) CONSTRAINT blanks CHECK (t = 'ab   '), n int CONSTRAINT small CHECK (n < 5)
        );
        INSERT INTO a VALUES ('ab', 1);
    """)
    done = sample(place.url, tmp_path / "back.db")
    assert done.rows == {"a": 1}
    (note,) = done.notes
    assert "SQLite understands it otherwise" in note.text
    with closing(sqlite3.connect(tmp_path / "back.db")) as connection:
        connection.execute("INSERT INTO a VALUES ('x', 4)")
        with pytest.raises(sqlite3.IntegrityError, match="small"):
            connection.execute("INSERT INTO a VALUES ('x', 5)")


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
