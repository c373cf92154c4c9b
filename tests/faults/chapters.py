"""A representative session with the driver, in chapters.

Each chapter begins with files that were made without faults, and is played from there thousands
of times, so each is short. A step commits at most once, and yields what it has found: that must be
equal in every play. The connections a chapter opens are left to be closed by who plays it, except
where closing is the point.
"""

import datetime
import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from tests.faults.stage import Chapter, Stage, Steps

from oxlite import changeset, sqlite3

SCHEMA = """
    CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL, data BLOB);
    CREATE INDEX item_by_name ON item(name);
    CREATE TABLE tag(item INTEGER REFERENCES item, word TEXT, PRIMARY KEY(item, word))
        WITHOUT ROWID;
"""
COUNT = "SELECT count(*), sum(id), max(name) FROM item"


def nothing(stage: Stage) -> None:
    """No file at all."""


def some_items(stage: Stage, name: str = "main.db", rows: int = 60) -> None:
    """A database with a rollback journal."""
    connection = stage.connect(name)
    connection.executescript(SCHEMA)
    _fill(connection, rows)


def some_items_wal(stage: Stage) -> None:
    """A database with a write-ahead log."""
    connection = stage.connect_profile("main.db")
    connection.executescript(SCHEMA)
    _fill(connection, 60)


def _fill(connection: sqlite3.Connection, rows: int) -> None:
    rows_of_items = [(n, f"item {n}", n / 4, bytes([n % 256]) * 60) for n in range(rows)]
    connection.executemany("INSERT INTO item VALUES (?, ?, ?, ?)", rows_of_items)
    connection.executemany(
        "INSERT INTO tag VALUES (?, ?)", [(n, "word") for n in range(0, rows, 3)]
    )
    connection.commit()


def refused(kind: type[Exception], message: str, call: Callable[[], object]) -> str:
    """Makes a call that is refused in every play; any other error goes its way."""
    try:
        call()
    except kind as error:
        if message not in str(error):
            raise
        return message
    return "not refused"


def first_connection(stage: Stage) -> Steps:
    # Whatever goes wrong with the first connection, it and the next one have our locks: POSIX ones
    # would go when anybody closes the file.
    try:
        _lock(stage, "first.db")
    finally:
        _lock(stage, "second.db")
    yield "done"


def _lock(stage: Stage, name: str) -> None:
    connection = stage.connect(name)
    connection.execute("BEGIN IMMEDIATE")
    inode = (stage.folder / name).stat().st_ino
    locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    kinds = {lock[1] for lock in locks if lock[-3].endswith(f":{inode}")}
    assert kinds == {"OFDLCK"}, f"locks of other kinds: {kinds}"
    connection.rollback()


def a_new_database(stage: Stage) -> Steps:
    connection = stage.connect("main.db")
    yield connection.in_transaction
    connection.execute("CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT)")
    yield connection.in_transaction
    cursor = connection.execute("INSERT INTO item(name) VALUES ('one')")
    yield cursor.lastrowid, cursor.rowcount, connection.in_transaction
    connection.commit()
    yield connection.execute("SELECT * FROM item").fetchall()
    connection.close()
    yield "closed"


def a_new_database_with_a_profile(stage: Stage) -> Steps:
    connection = stage.connect_profile("main.db")
    yield connection.settings
    connection.execute("CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT)")
    yield connection.in_transaction
    cursor = connection.execute("INSERT INTO item(name) VALUES ('one')")
    yield cursor.lastrowid, cursor.rowcount, connection.in_transaction
    connection.commit()
    yield connection.execute("SELECT * FROM item").fetchall()
    connection.close()
    yield "closed"


def transactions(stage: Stage) -> Steps:
    yield from _transactions(stage.connect("main.db"))


def transactions_in_the_log(stage: Stage) -> Steps:
    connection = stage.connect_profile("main.db", busy="fair")
    yield from _transactions(connection)
    # What it tells is whether a lock was in its way.
    yield len(connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone())
    yield len(connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone())
    with connection:
        connection.execute("UPDATE item SET price = 1")
    yield connection.execute("SELECT sum(price) FROM item").fetchall()
    connection.close()
    yield "closed"


def _transactions(connection: sqlite3.Connection) -> Steps:
    yield connection.execute(COUNT).fetchall()
    with connection:
        connection.execute("INSERT INTO item(name) VALUES ('sixty')")
    yield connection.execute(COUNT).fetchall()
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE item SET price = price + 1 WHERE id < 20")
    connection.execute("SAVEPOINT inner")
    connection.execute("DELETE FROM tag")
    connection.execute("DELETE FROM item WHERE id > 10")
    yield connection.execute(COUNT).fetchall()
    connection.execute("ROLLBACK TO inner")
    yield connection.execute(COUNT).fetchall()
    connection.execute("RELEASE inner")
    connection.commit()
    yield connection.execute("SELECT total(price) FROM item").fetchall()
    connection.execute("DELETE FROM tag")
    connection.rollback()
    yield connection.execute(COUNT).fetchall()
    cursor = connection.executemany(
        "INSERT INTO tag VALUES (?, ?)", ((n, "more") for n in range(9))
    )
    yield cursor.rowcount
    connection.commit()
    yield connection.execute("SELECT count(*) FROM tag").fetchall()
    yield refused(
        sqlite3.IntegrityError,
        "NOT NULL",
        lambda: connection.execute("INSERT INTO item(name) VALUES (NULL)"),
    )
    connection.rollback()


def durable_commits(stage: Stage) -> Steps:
    connection = stage.connect_profile("main.db", profile="durable")
    for number in range(3):
        connection.execute("INSERT INTO item(name) VALUES (?)", (f"durable {number}",))
        connection.commit()
        yield connection.execute(COUNT).fetchall()
    connection.close()
    yield "closed"


def journal_modes(stage: Stage) -> Steps:
    connection = stage.connect("main.db")
    for mode in ("truncate", "persist", "memory", "wal", "delete"):
        yield connection.execute(f"PRAGMA journal_mode = {mode}").fetchall()
        connection.execute("INSERT INTO item(name) VALUES (?)", (mode,))
        connection.commit()
        yield connection.execute(COUNT).fetchall()


def values(stage: Stage) -> Steps:
    connection = stage.connect("main.db")
    rows = [
        (None, 0, -1, 1 << 62, 2.5, True),
        ("", "text", "Ü", "€uro", "\U0001f642", "x" * 5000),
        (b"", b"blob", bytearray(b"array"), memoryview(b"view"), b"\0" * 5000, "nul\0nul"),
    ]
    for row in rows:
        yield connection.execute("SELECT ?, ?, ?, ?, ?, ?", row).fetchall()
    named = {"a": 1, "b": "two", "c": datetime.date(2026, 1, 2).isoformat()}
    yield connection.execute("SELECT :a, @b, $c", named).fetchone()
    connection.text_factory = bytes
    yield connection.execute("SELECT 'bytes', CAST(x'ff' AS TEXT)").fetchone()
    connection.text_factory = str
    connection.row_factory = sqlite3.Row
    row = connection.execute("SELECT 1 AS one, 'zwei' AS zwei").fetchone()
    yield row["one"], row["ZWEI"], row.keys(), tuple(row)
    cursor = connection.cursor()
    cursor.execute("SELECT id, name FROM item LIMIT 12")
    yield [tuple(row) for row in cursor.fetchmany(5)], cursor.description
    yield [tuple(row) for row in cursor]
    connection.execute("UPDATE item SET data = ?, name = ? WHERE id = 5", (b"d" * 9000, "n" * 3000))
    connection.commit()
    yield tuple(
        connection.execute("SELECT data, name, typeof(price) FROM item WHERE id = 5").fetchone()
    )


def converted_values(stage: Stage) -> Steps:
    connection = stage.connect(
        "main.db",
        detect_types=sqlite3.PARSE_DECLTYPES | sqlite3.PARSE_COLNAMES,
        cached_statements=2,
    )
    connection.create_function("reversed", 1, lambda text: text[::-1])
    yield connection.execute('SELECT 5 AS "n [number]", name FROM item LIMIT 2').fetchall()
    yield connection.execute("SELECT reversed(name) FROM item WHERE id = 3").fetchall()
    yield refused(sqlite3.OperationalError, "syntax error", lambda: connection.execute("SELEC 1"))
    yield refused(
        sqlite3.OperationalError, "no such table", lambda: connection.execute("SELECT * FROM no")
    )
    yield refused(
        sqlite3.ProgrammingError, "Incorrect number", lambda: connection.execute("SELECT ?")
    )


class Sum:
    """An aggregate and a window function."""

    def __init__(self) -> None:
        self.total = 0

    def step(self, value: int) -> None:
        self.total += value

    def inverse(self, value: int) -> None:
        self.total -= value

    def value(self) -> str:
        return f"total {self.total}"

    finalize = value


def functions(stage: Stage) -> Steps:
    connection = stage.connect("main.db")
    connection.create_function("twice", 1, lambda value: value * 2, deterministic=True)
    connection.create_function("big", 0, lambda: b"b" * 3000)
    yield connection.execute(
        "SELECT twice(4), twice('ab'), twice(?), length(big())", (1.5,)
    ).fetchall()
    connection.create_aggregate("total_of", 1, Sum)
    yield connection.execute("SELECT total_of(id) FROM item GROUP BY id % 3").fetchall()
    connection.create_window_function("running", 1, Sum)
    yield connection.execute(
        "SELECT running(id) OVER (ORDER BY id ROWS 2 PRECEDING) FROM item WHERE id < 6"
    ).fetchall()
    connection.create_collation("backwards", lambda a, b: (a < b) - (a > b))
    yield connection.execute(
        "SELECT name FROM item ORDER BY name COLLATE backwards LIMIT 3"
    ).fetchall()
    seen: list[object] = []
    connection.set_trace_callback(seen.append)
    connection.set_authorizer(lambda *_: sqlite3.SQLITE_OK)
    connection.set_progress_handler(lambda: 0, 50)
    connection.set_update_hook(lambda *change: seen.append(change))
    connection.set_commit_hook(lambda: seen.append("commit"))
    connection.set_rollback_hook(lambda: seen.append("rollback"))
    connection.execute("UPDATE item SET price = twice(price) WHERE id IN (1, 2)")
    connection.commit()
    connection.execute("DELETE FROM item WHERE id = 9")
    connection.rollback()
    yield list(seen)


def built_in_functions(stage: Stage) -> Steps:
    connection = stage.connect(":memory:")
    for expression in (
        "group_concat(value, ', '), sum(value), avg(value) FROM list",
        "json_object('a', json_array(1, 'x'), 'b', json('{\"c\": [true]}')) FROM list LIMIT 1",
        "json_extract('{\"a\": {\"b\": [1, 2, 3]}}', '$.a.b[1]') FROM list LIMIT 1",
        "printf('%08.3f|%-9s|%q|%Q', 3.25, 'left', 'it''s', NULL) FROM list LIMIT 1",
        "replace(hex(zeroblob(900)), '0', 'ab') FROM list LIMIT 1",
        "strftime('%Y-%j', '2026-11-21', '+3 days'), julianday('2026-01-01') FROM list LIMIT 1",
        "value, sqrt(value), round(sin(value), 6), upper('straße'), value LIKE '1%' FROM list",
        "quote(x'00ff'), substr('abcdef', -3), instr('abc', 'c'), unicode('€') FROM list LIMIT 1",
        "value, lag(value) OVER w, ntile(3) OVER w FROM list WINDOW w AS (ORDER BY -value)",
    ):  # fmt: skip
        yield connection.execute(
            "WITH RECURSIVE list(value) AS"
            " (VALUES (1) UNION ALL SELECT value + 1 FROM list WHERE value < 12)"
            f" SELECT {expression}"
        ).fetchall()


def large_queries(stage: Stage) -> Steps:
    connection = stage.connect("main.db")
    connection.execute("PRAGMA cache_size = 4")
    connection.execute("PRAGMA temp_store = FILE")
    connection.execute("PRAGMA temp.cache_size = 4")
    yield connection.execute(
        "SELECT DISTINCT price, name FROM item ORDER BY data, name DESC"
    ).fetchall()
    yield connection.execute(
        "SELECT count(*) FROM item a JOIN item b ON a.price = b.price"
        " LEFT JOIN tag ON tag.item = a.id"
    ).fetchall()
    yield connection.execute(
        "SELECT name FROM item UNION SELECT word FROM tag EXCEPT SELECT 'x'"
    ).fetchall()
    connection.execute("CREATE TEMP TABLE copy AS SELECT * FROM item")
    connection.execute("UPDATE temp.copy SET data = zeroblob(400)")
    yield connection.execute("SELECT sum(length(data)) FROM copy WHERE name > 'item 3'").fetchall()
    connection.commit()
    connection.execute("BEGIN")
    connection.execute("UPDATE item SET data = zeroblob(900)")
    yield connection.execute("SELECT sum(length(data)) FROM item").fetchall()
    connection.rollback()
    yield connection.execute("SELECT sum(length(data)) FROM item").fetchall()


def changes_of_the_schema(stage: Stage) -> Steps:
    connection, other = stage.connect("main.db"), stage.connect("main.db")
    query = "SELECT * FROM item WHERE id < 3"
    yield connection.execute(query).fetchall()
    yield other.execute(query).fetchall()
    connection.execute("ALTER TABLE item ADD COLUMN extra TEXT DEFAULT 'new'")
    yield connection.execute(query).fetchall()
    yield other.execute(query).fetchall()
    other.execute("ALTER TABLE item RENAME COLUMN extra TO further")
    yield [column[0] for column in connection.execute(query).description]
    connection.execute("ALTER TABLE item DROP COLUMN further")
    yield other.execute(query).fetchall()
    connection.execute("CREATE VIEW cheap AS SELECT name FROM item WHERE price < 2")
    yield other.execute("SELECT count(*) FROM cheap").fetchall()
    connection.execute("DROP TABLE tag")
    yield refused(
        sqlite3.OperationalError, "no such table", lambda: other.execute("SELECT * FROM tag")
    )


def triggers_and_constraints(stage: Stage) -> Steps:
    connection = stage.connect("main.db")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.executescript(
        "BEGIN;"
        "CREATE TABLE log(what TEXT, name TEXT GENERATED ALWAYS AS (upper(what)) STORED);"
        "CREATE TRIGGER logged AFTER UPDATE ON item BEGIN"
        " INSERT INTO log(what) VALUES (old.name || ' ' || new.price); END;"
        "CREATE UNIQUE INDEX tagged ON tag(word, item) WHERE item > 3;"
        "COMMIT"
    )
    yield connection.total_changes
    found = connection.execute(
        "UPDATE item SET price = 7 WHERE id < 4 RETURNING id, price"
    ).fetchall()
    connection.commit()
    yield found, connection.execute("SELECT * FROM log").fetchall()
    yield refused(
        sqlite3.IntegrityError,
        "FOREIGN KEY",
        lambda: connection.execute("INSERT INTO tag VALUES (999, 'none')"),
    )
    connection.rollback()
    connection.execute(
        "INSERT INTO item(id, name) VALUES (3, 'x')"
        " ON CONFLICT(id) DO UPDATE SET name = 'again ' || name"
    )
    connection.execute("INSERT OR IGNORE INTO item(id, name) VALUES (3, 'y')")
    connection.execute("REPLACE INTO item(id, name) VALUES (1, 'replaced')")
    connection.commit()
    yield connection.execute("SELECT id, name FROM item WHERE id < 4").fetchall()


def blobs(stage: Stage) -> Steps:
    connection = stage.connect("main.db")
    connection.execute("UPDATE item SET data = zeroblob(6000) WHERE id = 7")
    connection.commit()
    with connection.blobopen("item", "data", 7) as blob:
        blob.write(b"begin")
        blob.seek(4990)
        blob.write(b"far away")
        blob[10:14] = b"four"
        blob[20] = 255
        yield blob[0:24], blob.tell(), len(blob)
    connection.commit()
    with connection.blobopen("item", "data", 7, readonly=True) as blob:
        blob.seek(4990)
        yield blob.read(8), blob.read(0)
    yield refused(
        sqlite3.OperationalError, "no such rowid", lambda: connection.blobopen("item", "data", 777)
    )


class GivenUp(sqlite3.OperationalError):
    """A backup would wait for ever for a lock that is never granted."""

    sqlite_errorname = "SQLITE_BUSY"


def backups(stage: Stage) -> Steps:
    source, target, memory = (
        stage.connect("main.db"),
        stage.connect("copy.db"),
        stage.connect(":memory:"),
    )
    seen: list[tuple[int, int, int]] = []

    def progress(code: int, remaining: int, total: int) -> None:
        seen.append((code, remaining, total))
        if len(seen) > 30:
            raise GivenUp

    source.backup(target, pages=3, progress=progress, sleep=0)
    yield [told for told in seen if told[0] in (sqlite3.SQLITE_OK, sqlite3.SQLITE_DONE)]
    yield target.execute(COUNT).fetchall()
    source.backup(memory, progress=progress, sleep=0)
    yield memory.execute(COUNT).fetchall()
    memory.execute("DELETE FROM item WHERE id > 5")
    memory.commit()
    memory.backup(target, progress=progress, sleep=0)
    yield target.execute(COUNT).fetchall()


def serialized_databases(stage: Stage) -> Steps:
    connection = stage.connect("main.db")
    data = connection.serialize()
    yield len(data), hashlib.sha256(data).hexdigest()
    memory = stage.connect(":memory:")
    memory.deserialize(data)
    yield memory.execute(COUNT).fetchall()
    memory.execute("INSERT INTO item(name, data) VALUES ('grown', zeroblob(30000))")
    memory.commit()
    yield memory.execute(COUNT).fetchall()
    yield len(memory.serialize())


def sessions(stage: Stage) -> Steps:
    connection = stage.connect("main.db")
    with connection.create_session(tables=["item", "tag"]) as session:
        connection.execute("INSERT INTO item(id, name) VALUES (100, 'hundred')")
        connection.execute("UPDATE item SET price = 0.5, name = 'changed' WHERE id IN (3, 4)")
        connection.execute("DELETE FROM tag WHERE item = 6")
        done, patch = session.changeset(), session.patchset()
        connection.rollback()
    yield [repr(change) for change in changeset.read(done)]
    yield len(patch), changeset.invert(changeset.invert(done)) == done
    yield len(changeset.concat(done, changeset.invert(done)))
    target = stage.connect("target.db")
    conflicts: list[object] = []

    def decide(conflict: changeset.Conflict) -> str:
        conflicts.append((conflict.kind, conflict.row))
        return "replace" if conflict.kind == "data" else "omit"

    target.execute("UPDATE item SET name = 'other' WHERE id = 4")
    target.apply_changeset(done, on_conflict=decide)
    target.commit()
    yield conflicts, target.execute("SELECT * FROM item WHERE id IN (3, 4, 100)").fetchall()
    target.apply_changeset(patch, on_conflict="omit", filter=lambda table: table == "item")
    target.rollback()
    connection.execute("ATTACH ? AS target", (stage.path("target.db"),))
    with connection.create_session() as session:
        session.diff("item", from_name="target")
        yield session.is_empty, len(session.changeset())


def dumps(stage: Stage) -> Steps:
    connection = stage.connect("main.db")
    lines = list(connection.iterdump())
    yield lines
    memory = stage.connect(":memory:")
    memory.executescript("\n".join(lines))
    yield memory.execute(COUNT).fetchall()


def attached_databases(stage: Stage) -> Steps:
    connection = stage.connect("main.db")
    connection.execute("ATTACH ? AS other", (stage.path("other.db"),))
    yield connection.execute("SELECT count(*) FROM other.item").fetchall()
    connection.execute("INSERT INTO main.item(name) VALUES ('in both')")
    connection.execute("INSERT INTO other.item(name) VALUES ('in both')")
    connection.commit()
    yield connection.execute(
        "SELECT max(id) FROM main.item UNION ALL SELECT max(id) FROM other.item"
    ).fetchall()
    connection.execute("DELETE FROM main.item WHERE id < 20")
    connection.execute("DELETE FROM other.item WHERE id < 20")
    connection.rollback()
    yield connection.execute("SELECT min(id) FROM main.item").fetchall()
    connection.execute("DETACH other")
    yield connection.execute("PRAGMA database_list").fetchone()[1]


def maintenance(stage: Stage) -> Steps:
    connection = stage.connect("main.db", isolation_level=None)
    connection.execute("DELETE FROM item WHERE id % 2")
    yield connection.execute(COUNT).fetchall()
    connection.execute("ANALYZE")
    yield connection.execute("SELECT tbl, idx FROM sqlite_stat1 ORDER BY 1, 2").fetchall()
    connection.execute("REINDEX")
    yield connection.execute("PRAGMA optimize").fetchall()
    connection.execute("VACUUM")
    yield connection.execute("PRAGMA freelist_count").fetchall()
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("VACUUM")
    yield connection.execute("PRAGMA auto_vacuum").fetchall()
    connection.execute("DELETE FROM item WHERE id > 20")
    yield connection.execute("PRAGMA incremental_vacuum(2)").fetchall()
    yield connection.execute("PRAGMA integrity_check").fetchall()


def a_copy_by_vacuum(stage: Stage) -> Steps:
    connection = stage.connect("main.db", isolation_level=None)
    connection.execute("VACUUM INTO ?", (stage.path("copy.db"),))
    yield connection.execute(COUNT).fetchall()


def virtual_tables(stage: Stage) -> Steps:
    connection = stage.connect("main.db", isolation_level=None)
    connection.execute("CREATE VIRTUAL TABLE text5 USING fts5(title, body)")
    yield connection.in_transaction
    connection.execute("BEGIN")
    connection.execute(
        "INSERT INTO text5 VALUES ('first', 'the quick brown fox'), ('second', 'the dog')"
    )
    yield connection.execute(
        "SELECT title, snippet(text5, 1, '<', '>', '…', 3), bm25(text5) < 0"
        " FROM text5('quick OR do*')"
    ).fetchall()
    connection.execute("CREATE VIRTUAL TABLE text4 USING fts4(body)")
    connection.execute("INSERT INTO text4 SELECT body FROM text5")
    yield connection.execute(
        "SELECT docid, offsets(text4) FROM text4 WHERE body MATCH 'fox'"
    ).fetchall()
    connection.execute("CREATE VIRTUAL TABLE box USING rtree(id, x0, x1, y0, y1)")
    connection.execute("INSERT INTO box SELECT id, id, id + 1, -id, id FROM item WHERE id < 5")
    connection.commit()
    yield connection.execute("SELECT id FROM box WHERE x0 > 1 AND y1 < 4").fetchall()
    yield connection.execute(
        "SELECT key, value, type FROM json_each('[1, \"b\", null]')"
    ).fetchall()
    yield connection.execute(
        "SELECT name FROM dbstat WHERE name LIKE 'item%' GROUP BY name"
    ).fetchall()
    yield connection.execute("SELECT name FROM pragma_table_info('item')").fetchall()


def two_connections(stage: Stage) -> Steps:
    reader, writer = stage.connect("main.db"), stage.connect("main.db")
    cursor = reader.execute("SELECT id FROM item ORDER BY id")
    yield cursor.fetchone()
    writer.execute("INSERT INTO item(name) VALUES ('w')")
    yield refused(sqlite3.OperationalError, "locked", writer.commit)
    yield cursor.fetchall()[-1]
    writer.commit()
    yield reader.execute(COUNT).fetchall()
    writer.execute("DELETE FROM tag")
    yield refused(sqlite3.OperationalError, "locked", lambda: reader.execute("BEGIN IMMEDIATE"))
    writer.rollback()
    yield reader.execute("SELECT count(*) FROM tag").fetchall()


def two_connections_in_the_log(stage: Stage) -> Steps:
    reader, writer = stage.connect_profile("main.db"), stage.connect_profile("main.db")
    reader.execute("BEGIN DEFERRED")
    yield reader.execute(COUNT).fetchall()
    writer.execute("INSERT INTO item(name, data) VALUES ('w', zeroblob(9000))")
    writer.commit()
    yield reader.execute(COUNT).fetchall(), writer.execute(COUNT).fetchall()
    yield refused(sqlite3.OperationalError, "locked", lambda: reader.execute("DELETE FROM tag"))
    reader.rollback()
    yield reader.execute(COUNT).fetchall()
    reader.close()
    writer.execute("PRAGMA wal_autocheckpoint = 2")
    writer.execute("UPDATE item SET data = x'00'")
    writer.commit()
    yield writer.execute(COUNT).fetchall()


def writers_in_line(stage: Stage) -> Steps:
    holder = stage.connect_profile("main.db")
    waiting = stage.connect_profile("main.db", timeout=0)
    holder.execute("BEGIN IMMEDIATE")
    holder.execute("DELETE FROM tag")
    yield refused(sqlite3.OperationalError, "locked", lambda: waiting.execute("DELETE FROM item"))
    holder.commit()
    yield holder.in_transaction
    waiting.execute("UPDATE item SET name = 'w'")
    waiting.commit()
    yield holder.execute(COUNT).fetchall()
    holder.execute("INSERT INTO item(name) VALUES ('x')")
    holder.commit()
    yield waiting.execute(COUNT).fetchall()


def a_hot_journal_is_there(stage: Stage) -> None:
    """A database in the middle of a transaction whose process has died."""
    some_items(stage, "before.db")
    connection = stage.connect("before.db")
    connection.execute("PRAGMA cache_size = 2")
    connection.execute("UPDATE item SET name = 'half', data = zeroblob(900)")
    for suffix in ("", "-journal"):
        shutil.copyfile(stage.path(f"before.db{suffix}"), stage.path(f"main.db{suffix}"))
    connection.rollback()


def recovery(stage: Stage) -> Steps:
    connection = stage.connect("main.db")
    yield connection.execute("SELECT * FROM item").fetchall()
    connection.execute("UPDATE item SET name = 'after'")
    connection.commit()
    yield connection.execute(COUNT).fetchall()


def a_log_is_left(stage: Stage) -> None:
    """A database whose process has died with committed transactions in the log."""
    some_items_wal(stage)
    connection = stage.connect_profile("main.db")
    connection.execute("UPDATE item SET name = 'committed', data = zeroblob(300)")
    connection.commit()
    for suffix in ("", "-wal"):
        shutil.copyfile(stage.path(f"main.db{suffix}"), stage.path(f"left.db{suffix}"))


def recovery_of_a_log(stage: Stage) -> Steps:
    connection = stage.connect_profile("left.db")
    yield connection.execute("SELECT * FROM item").fetchall()
    connection.execute("UPDATE item SET name = 'after'")
    connection.commit()
    yield connection.execute(COUNT).fetchall()
    connection.close()
    yield "closed"


def a_long_log(stage: Stage) -> None:
    """A database whose process has died with a log that calls for a checkpoint before long."""
    some_items_wal(stage)
    connection = stage.connect_profile("main.db", pragmas={"wal_autocheckpoint": 0})
    # A page and its header are a frame.
    while Path(stage.path("main.db-wal")).stat().st_size < 990 * (4096 + 24):
        connection.executescript("UPDATE item SET name = 'long' WHERE id = 1")
    for suffix in ("", "-wal"):
        shutil.copyfile(stage.path(f"main.db{suffix}"), stage.path(f"long.db{suffix}"))


def checkpoints(stage: Stage) -> Steps:
    connection = stage.connect_profile("long.db", isolation_level=None)
    for number in range(14):
        connection.execute("UPDATE item SET name = ? WHERE id = 2", (str(number),))
        yield connection.execute("SELECT name FROM item WHERE id = 2").fetchall()
    # How far it comes depends on what has failed, which is no commit.
    yield len(connection.checkpoint("truncate", timeout=0))
    connection.execute("DELETE FROM tag")
    yield connection.execute(COUNT).fetchall()


def a_mapped_database(stage: Stage) -> Steps:
    connection = stage.connect("main.db", pragmas={"mmap_size": 1 << 24, "synchronous": "FULL"})
    for number in range(3):
        connection.execute("INSERT INTO item(name, data) VALUES ('mapped', zeroblob(20000))")
        connection.commit()
        yield number, connection.execute("SELECT sum(length(data)) FROM item").fetchall()
    connection.execute("DELETE FROM item WHERE name = 'mapped'")
    connection.execute("INSERT INTO item(name) VALUES ('last')")
    connection.commit()
    yield connection.execute(COUNT).fetchall()
    connection.execute("PRAGMA mmap_size = 0")
    yield connection.execute(COUNT).fetchall()


def ways_of_opening(stage: Stage) -> Steps:
    (stage.folder / "link").symlink_to("main.db")
    link = stage.connect("link")
    yield link.execute(COUNT).fetchall()
    link.execute("DELETE FROM tag")
    link.commit()
    yield link.execute("SELECT count(*) FROM tag").fetchall()
    relative = sqlite3.connect(os.path.relpath(stage.path("main.db")), timeout=0.002)
    yield relative.execute(COUNT).fetchall()
    relative.close()
    uri = f"file:{stage.path('main.db')}"
    for mode in ("?mode=ro", "?mode=rw", "?immutable=1"):
        connection = sqlite3.connect(uri + mode, uri=True, timeout=0.002)
        yield connection.execute(COUNT).fetchall()
        connection.close()
    connection = stage.connect_profile("main.db", journal="keep", pragmas={"cache_size": 40})
    yield connection.execute(COUNT).fetchall(), connection.profile
    shared = sqlite3.connect("file:shared?mode=memory&cache=shared", uri=True, timeout=0.002)
    shared.execute("CREATE TABLE a(b)")
    second = sqlite3.connect("file:shared?mode=memory&cache=shared", uri=True, timeout=0.002)
    yield second.execute("SELECT * FROM a").fetchall()
    second.close()
    shared.close()
    yield refused(
        sqlite3.OperationalError,
        "unable to open",
        lambda: sqlite3.connect(f"file:{stage.path('none.db')}?mode=rw", uri=True),
    )


def _two_files(stage: Stage) -> None:
    some_items(stage)
    some_items(stage, "other.db")


def _main_and_target(stage: Stage) -> None:
    some_items(stage)
    some_items(stage, "target.db")


def _many_items(stage: Stage) -> None:
    some_items(stage, rows=150)


CHAPTERS = {
    chapter.name: chapter
    for chapter in [
        Chapter(first_connection, nothing, is_first=True),
        Chapter(a_new_database, nothing),
        Chapter(a_new_database_with_a_profile, nothing),
        Chapter(transactions, some_items),
        Chapter(transactions_in_the_log, some_items_wal),
        Chapter(durable_commits, some_items_wal),
        Chapter(journal_modes, some_items),
        Chapter(values, some_items),
        Chapter(converted_values, some_items),
        Chapter(functions, some_items),
        Chapter(built_in_functions, nothing),
        Chapter(large_queries, _many_items),
        Chapter(changes_of_the_schema, some_items),
        Chapter(triggers_and_constraints, some_items),
        Chapter(blobs, some_items),
        Chapter(backups, some_items),
        Chapter(serialized_databases, some_items),
        Chapter(sessions, _main_and_target),
        Chapter(dumps, some_items),
        Chapter(attached_databases, _two_files),
        Chapter(maintenance, some_items),
        Chapter(a_copy_by_vacuum, some_items),
        Chapter(virtual_tables, some_items),
        Chapter(two_connections, some_items),
        Chapter(two_connections_in_the_log, some_items_wal),
        Chapter(writers_in_line, some_items_wal),
        Chapter(recovery, a_hot_journal_is_there),
        Chapter(recovery_of_a_log, a_log_is_left),
        Chapter(checkpoints, a_long_log),
        Chapter(a_mapped_database, some_items),
        Chapter(ways_of_opening, some_items),
    ]
}
