"""A file of a given size: the tables of a blog, and one with forty odd columns."""

import json
import random
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

__all__ = ["make"]

_ZOO: Final = {
    "of_integer": "INTEGER", "of_int": "INT", "of_bigint": "BIGINT", "of_smallint": "SMALLINT",
    "of_tinyint": "TINYINT UNSIGNED", "of_boolean": "BOOLEAN", "of_bool": "bool",
    "of_real": "REAL", "of_float": "FLOAT", "of_double": "DOUBLE PRECISION",
    "of_decimal": "DECIMAL(12,3)", "of_numeric": "NUMERIC", "of_money": "DEC(10, 2)",
    "of_text": "TEXT", "of_clob": "CLOB", "of_varchar": "VARCHAR(40)", "of_char": "CHAR(8)",
    "of_nvarchar": "NVARCHAR(20)", "of_short_varchar": "VARCHAR(3)", "of_blob": "BLOB",
    "of_binary": "BINARY(16)", "of_date": "DATE", "of_time": "TIME", "of_datetime": "DATETIME",
    "of_timestamp": "TIMESTAMP", "of_zoned": "TIMESTAMP WITH TIME ZONE", "of_epoch": "DATETIME",
    "of_milliseconds": "TIMESTAMP", "of_julian_day": "DATETIME", "of_json": "JSON",
    "of_jsonb": "JSONB", "of_uuid": "UUID", "of_uuid_bytes": "GUID", "of_nothing": "",
    "of_any": "ANY", "of_word": "THINGUMMY", "of_nulls": "TEXT", "of_escapes": "TEXT",
    "Of Space": "INTEGER", "of_unicode": "TEXT",
}  # fmt: skip
_SCHEMA: Final = f"""
    CREATE TABLE author (
        id INTEGER PRIMARY KEY AUTOINCREMENT, name VARCHAR(100) NOT NULL UNIQUE, joined DATETIME
    );
    CREATE TABLE post (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        author_id INTEGER NOT NULL REFERENCES author (id) ON DELETE CASCADE,
        title VARCHAR(200) NOT NULL, body TEXT NOT NULL, published BOOLEAN NOT NULL,
        created DATETIME NOT NULL
    );
    CREATE INDEX post_author ON post (author_id);
    CREATE TABLE comment (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        post_id INTEGER NOT NULL REFERENCES post (id) ON DELETE CASCADE,
        author_id INTEGER NOT NULL REFERENCES author (id), body TEXT NOT NULL,
        created DATETIME NOT NULL
    );
    CREATE INDEX comment_post ON comment (post_id);
    CREATE TABLE zoo (id INTEGER PRIMARY KEY, {", ".join(f'"{n}" {t}' for n, t in _ZOO.items())});
"""
_AUTHORS: Final = 10_000
_BODY: Final = "Some words that a person may have written, and a line's end.\n"


def make(path: Path, size_bytes: int) -> None:
    """Make it; about so large."""
    comments = size_bytes // 420
    posts = comments // 20
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")
        connection.executescript(_SCHEMA)
        draw = random.Random(1)
        connection.executemany(
            "INSERT INTO author VALUES (?, ?, ?)",
            ((n, f"author {n}", _moment(n)) for n in range(1, _AUTHORS + 1)),
        )
        connection.executemany(
            "INSERT INTO post VALUES (?, ?, ?, ?, ?, ?)",
            (
                (n, draw.randrange(1, _AUTHORS), f"Title {n}", _BODY * 16, n % 2, _moment(n))
                for n in range(1, posts + 1)
            ),
        )
        connection.executemany(
            "INSERT INTO comment VALUES (?, ?, ?, ?, ?)",
            (
                (n, draw.randrange(1, posts), draw.randrange(1, _AUTHORS), _BODY * 4, _moment(n))
                for n in range(1, comments + 1)
            ),
        )
        marks = ", ".join("?" for _ in range(len(_ZOO) + 1))
        connection.executemany(f"INSERT INTO zoo VALUES ({marks})", _zoo(draw, comments // 20))
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _moment(number: int) -> str:
    fraction = f".{number % 1_000_000:06d}" if number % 3 else ""
    day = f"20{number % 25:02d}-{number % 12 + 1:02d}-{number % 28 + 1:02d}"
    return f"{day} 10:00:{number % 60:02d}{fraction}"


def _zoo(draw: random.Random, rows: int) -> Iterator[tuple[Any, ...]]:
    for n in range(1, rows + 1):
        whole = draw.getrandbits(62) - (1 << 61)
        yield (
            n, whole, n, -whole, n % 100, n % 256, n % 2, (n + 1) % 2,
            n / 7, n * 0.1, float(n), n / 1000, str(n), n / 100,
            f"text {n}", "", f"v{n}", "abcdefgh", "ü" * (n % 20), f"longer {n}",
            bytes([n % 256, 0, 9, 10, 92]), n.to_bytes(16), f"2024-{n % 12 + 1:02d}-28",
            f"{n % 24:02d}:59", _moment(n), _moment(n + 1), f"2024-01-01T10:00:00+0{n % 10}:00",
            1_700_000_000 + n, 1_700_000_000_000 + n, 2_460_310.5 + n % 1000,
            json.dumps({"b": [1, 2.5, None], "a": f"é{n}"}), json.dumps([n, "x", True]),
            str(uuid.UUID(int=n * 7)), uuid.UUID(int=n).bytes, (n, n / 3, None)[n % 3],
            (n, f"mixed {n}")[n % 2], n, None, "\\N\t\\\n\r\x0b", n, "𝄞 ☃ é",
        )  # fmt: skip
