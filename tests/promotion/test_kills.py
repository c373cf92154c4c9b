"""A promotion that is killed again and again, with writers beside it: nothing is lost."""

import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tests.promotion.conftest import Place, file_of

from oxlite import sqlite3

SCRIPT = """
    CREATE TABLE item (id INTEGER PRIMARY KEY, code INT UNIQUE, text TEXT);
    CREATE TABLE part (item INTEGER REFERENCES item (id) ON DELETE CASCADE, text TEXT);
    CREATE TABLE word (word TEXT PRIMARY KEY, count INT) WITHOUT ROWID;
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
    INSERT INTO item SELECT i, i, printf('%.*c', 200, 'x') FROM n;
    INSERT INTO part SELECT id, text FROM item;
    INSERT INTO word SELECT 'w' || id, id FROM item;
"""
KILLS = 5


def _writes(seed: random.Random) -> Iterator[str]:
    one, two = seed.randrange(1, 25_000), seed.randrange(1, 25_000)
    yield seed.choice([
        f"REPLACE INTO item VALUES ({one}, {two}, 'replaced')",
        f"UPDATE OR REPLACE item SET code = {two} WHERE id = {one}",
        f"DELETE FROM item WHERE id = {one}",
        f"INSERT INTO part SELECT id, 'more' FROM item WHERE id IN ({one}, {two})",
        f"DELETE FROM part WHERE rowid = {one}",
        f"UPDATE OR IGNORE word SET word = 'w{two}' WHERE word = 'w{one}'",
        f"INSERT INTO word VALUES ('w{one}', 1) ON CONFLICT DO UPDATE SET count = count + 1",
        f"DELETE FROM word WHERE word = 'w{one}'",
    ])  # fmt: skip


def _write(path: Path, number: int, is_over: threading.Event, refused: list[str]) -> None:
    seed = random.Random(number)
    with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        while not is_over.is_set():
            try:
                for sql in _writes(seed):
                    connection.execute(sql)
            except sqlite3.IntegrityError as error:
                if "has moved to" in str(error):
                    refused.append(str(error))
                    return
            time.sleep(0.002)


@contextmanager
def _writers(path: Path, number: int) -> Iterator[list[str]]:
    """Two that write until they are refused."""
    is_over = threading.Event()
    refused: list[str] = []
    threads = [
        threading.Thread(target=_write, args=(path, number + place, is_over, refused))
        for place in range(2)
    ]
    for thread in threads:
        thread.start()
    try:
        yield refused
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def _promoting(path: Path, place: Place, *words: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "oxlite.cli", "promote", str(path), place.url, *words]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def _ended(promoting: "subprocess.Popen[bytes]") -> None:
    _, said = promoting.communicate(timeout=120)
    assert promoting.returncode == 0, said.decode()


def _assert_same(path: Path, place: Place) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for table, columns in (("item", "id, code, text"), ("part", "item, text"),
                               ("word", "word, count")):  # fmt: skip
            here = connection.execute(f"SELECT {columns} FROM {table}").fetchall()
            assert sorted(here, key=repr) == sorted(
                place.rows(f"SELECT {columns} FROM {table}"), key=repr
            )
        names = connection.execute("SELECT name FROM sqlite_schema").fetchall()
    assert not [name for (name,) in names if name.startswith("oxlite_promotion_")]
    assert place.rows("SELECT 1 FROM pg_namespace WHERE nspname LIKE 'oxlite%'") == []
    assert place.rows("SELECT 1 FROM pg_attribute WHERE attname = 'oxlite_rowid'") == []


def test_it_is_killed_and_goes_on(place: Place, tmp_path: Path) -> None:
    number = random.randrange(2**32)
    print("seed", number)
    seed = random.Random(number)
    path = file_of(tmp_path, SCRIPT)
    with _writers(path, number) as refused:
        for _ in range(KILLS):
            with _promoting(path, place, "--cut-over") as promoting:
                time.sleep(seed.uniform(0.3, 0.9))
                promoting.kill()
            if refused:
                break
        # It may have been killed after all was done.
        with _promoting(path, place, "--cut-over") as promoting:
            _, said = promoting.communicate(timeout=120)
        assert promoting.returncode == 0 or b"was promoted already" in said, said.decode()
    assert len(refused) == 2
    _assert_same(path, place)


def test_what_serves_it_is_killed(place: Place, tmp_path: Path) -> None:
    number = random.randrange(2**32)
    print("seed", number)
    seed = random.Random(number)
    path = file_of(tmp_path, SCRIPT)
    with _writers(path, number) as refused:
        for _ in range(KILLS):
            with _promoting(path, place, "--cut-over") as promoting:
                time.sleep(seed.uniform(0.3, 0.9))
                place.rows(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE application_name = 'oxlite promote'"
                )
                promoting.communicate(timeout=120)
            if refused:
                break
        if promoting.returncode:
            with _promoting(path, place, "--cut-over") as promoting:
                _ended(promoting)
    assert len(refused) == 2
    _assert_same(path, place)
