"""Healthy databases of many programs, each made by that program or by its schema.

A function is given a path and makes one; what it leaves running ends with the stack.
"""

import asyncio
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import sqlalchemy
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship
from tests.wait import until

import oxlite
from oxlite import cable, cache, tasks

Make = Callable[[Path, ExitStack], None]

HEALTHY: list[Make] = []


def healthy(make: Make) -> Make:
    HEALTHY.append(make)
    return make


def run(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(script)


@healthy
def of_the_standard_library(path: Path, _stack: ExitStack) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE stocks(date text, trans text, symbol text, qty real)")
        connection.executemany(
            "INSERT INTO stocks VALUES ('2006-01-05', ?, 'RHAT', 100)", [("BUY",)] * 5000
        )


@healthy
def without_tables(path: Path, _stack: ExitStack) -> None:
    run(path, "PRAGMA journal_mode = wal; PRAGMA user_version = 7")


@healthy
def with_tables_and_no_rows(path: Path, _stack: ExitStack) -> None:
    run(path, "CREATE TABLE a(x); CREATE TABLE b(x REFERENCES a); DROP TABLE b")


DJANGO = """
import django, sys
from django.conf import settings
settings.configure(
    DATABASES={"default": {"ENGINE": sys.argv[2], "NAME": sys.argv[1]}},
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions",
                    "django.contrib.admin", "django.contrib.messages", "django.contrib.sites"],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
from django.core.management import call_command
call_command("migrate", verbosity=0)
from django.contrib.auth.models import Group, User
ann = User.objects.create_user("ann", password=None)
ann.groups.add(Group.objects.create(name="writers"))
"""


def _django(path: Path, engine: str) -> None:
    subprocess.run([sys.executable, "-c", DJANGO, str(path), engine], check=True, timeout=60)


@healthy
def of_django(path: Path, _stack: ExitStack) -> None:
    _django(path, "django.db.backends.sqlite3")


@healthy
def of_django_on_oxlite(path: Path, _stack: ExitStack) -> None:
    _django(path, "oxlite.django.sqlite3")


@healthy
def of_sqlalchemy(path: Path, _stack: ExitStack) -> None:
    class Base(DeclarativeBase):
        pass

    class User(Base):
        __tablename__ = "user_account"
        id: Mapped[int] = mapped_column(primary_key=True)
        name: Mapped[str] = mapped_column(sqlalchemy.String(30), index=True, unique=True)
        addresses: Mapped[list["Address"]] = relationship(back_populates="user")

    class Address(Base):
        __tablename__ = "address"
        id: Mapped[int] = mapped_column(primary_key=True)
        email: Mapped[str]
        user_id: Mapped[int] = mapped_column(sqlalchemy.ForeignKey("user_account.id"))
        user: Mapped[User] = relationship(back_populates="addresses")

    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    Base.metadata.create_all(engine)
    with sqlalchemy.orm.Session(engine) as session, session.begin():
        session.add(User(name="ann", addresses=[Address(email="ann@example.org")]))
    engine.dispose()


@healthy
def of_the_shells_dump(path: Path, _stack: ExitStack) -> None:
    source = path.with_name("source.db")
    run(source, "CREATE TABLE t(a INTEGER PRIMARY KEY, b); INSERT INTO t(b) VALUES (1), ('x');"
                " CREATE INDEX i ON t(b); CREATE VIEW v AS SELECT b FROM t")  # fmt: skip
    shell = shutil.which("sqlite3")
    if shell is None:
        with closing(sqlite3.connect(source)) as connection:
            dump = "\n".join(connection.iterdump())
        run(path, dump)
        return
    dump = subprocess.run([shell, source, ".dump"], check=True, capture_output=True).stdout.decode()
    subprocess.run([shell, path], input=dump.encode(), check=True)


# As Active Record 8 makes them.
@healthy
def of_rails(path: Path, _stack: ExitStack) -> None:
    run(
        path,
        """
        PRAGMA journal_mode = wal;
        CREATE TABLE "schema_migrations" ("version" varchar NOT NULL PRIMARY KEY);
        CREATE TABLE "ar_internal_metadata" ("key" varchar NOT NULL PRIMARY KEY, "value" varchar,
          "created_at" datetime(6) NOT NULL, "updated_at" datetime(6) NOT NULL);
        CREATE TABLE "articles" ("id" integer PRIMARY KEY AUTOINCREMENT NOT NULL, "title" varchar,
          "status" varchar DEFAULT 'draft' NOT NULL, "created_at" datetime(6) NOT NULL);
        CREATE TABLE "comments" ("id" integer PRIMARY KEY AUTOINCREMENT NOT NULL, "body" text,
          "article_id" integer NOT NULL, CONSTRAINT "fk_rails_3bf61a60d3"
          FOREIGN KEY ("article_id") REFERENCES "articles" ("id"));
        CREATE INDEX "index_comments_on_article_id" ON "comments" ("article_id");
        INSERT INTO schema_migrations VALUES ('20251122000000');
        INSERT INTO ar_internal_metadata VALUES ('environment', 'production', '2025-11-22',
        '2025-11-22'); INSERT INTO articles(title, created_at) VALUES ('Hello', '2025-11-22');
        INSERT INTO comments(body, article_id) VALUES ('World', 1);
        """,
    )


# Solid Queue's, with its partial and long indexes.
@healthy
def of_solid_queue(path: Path, _stack: ExitStack) -> None:
    run(
        path,
        """
        PRAGMA journal_mode = wal;
        CREATE TABLE "solid_queue_jobs" ("id" integer PRIMARY KEY AUTOINCREMENT NOT NULL,
          "queue_name" varchar NOT NULL, "class_name" varchar NOT NULL, "arguments" text,
          "priority" integer DEFAULT 0 NOT NULL, "active_job_id" varchar,
          "finished_at" datetime(6));
        CREATE INDEX "index_solid_queue_jobs_on_class_name" ON "solid_queue_jobs" ("class_name");
        CREATE INDEX "index_solid_queue_jobs_for_filtering"
          ON "solid_queue_jobs" ("queue_name", "finished_at");
        CREATE TABLE "solid_queue_ready_executions" (
          "id" integer PRIMARY KEY AUTOINCREMENT NOT NULL, "job_id" integer NOT NULL,
          "queue_name" varchar NOT NULL, "priority" integer DEFAULT 0,
          FOREIGN KEY ("job_id") REFERENCES "solid_queue_jobs" ("id") ON DELETE CASCADE);
        CREATE UNIQUE INDEX "index_solid_queue_ready_executions_on_job_id"
          ON "solid_queue_ready_executions" ("job_id");
        CREATE INDEX "index_solid_queue_poll_all"
          ON "solid_queue_ready_executions" ("priority", "job_id");
        INSERT INTO solid_queue_jobs(queue_name, class_name) VALUES ('default', 'Job');
        """,
    )


# Like places.sqlite, with its triggers that call functions which only Firefox has.
@healthy
def of_firefox(path: Path, _stack: ExitStack) -> None:
    run(
        path,
        """
        PRAGMA page_size = 32768; PRAGMA journal_mode = wal; PRAGMA user_version = 79;
        CREATE TABLE moz_origins(id INTEGER PRIMARY KEY, prefix TEXT NOT NULL, host TEXT NOT NULL,
          frecency INTEGER NOT NULL, UNIQUE (prefix, host));
        CREATE TABLE moz_places(id INTEGER PRIMARY KEY, url LONGVARCHAR, title LONGVARCHAR,
          rev_host LONGVARCHAR, visit_count INTEGER DEFAULT 0, hidden INTEGER DEFAULT 0 NOT NULL,
          typed INTEGER DEFAULT 0 NOT NULL, frecency INTEGER DEFAULT -1 NOT NULL,
          last_visit_date INTEGER, guid TEXT, foreign_count INTEGER DEFAULT 0 NOT NULL,
          url_hash INTEGER DEFAULT 0 NOT NULL, origin_id INTEGER REFERENCES moz_origins(id));
        CREATE TABLE moz_historyvisits(id INTEGER PRIMARY KEY, from_visit INTEGER,
          place_id INTEGER, visit_date INTEGER, visit_type INTEGER, session INTEGER);
        CREATE TABLE moz_bookmarks(id INTEGER PRIMARY KEY, type INTEGER, fk INTEGER DEFAULT NULL,
          parent INTEGER, position INTEGER, title LONGVARCHAR, guid TEXT);
        CREATE TABLE moz_meta(key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
        CREATE INDEX moz_places_url_hashindex ON moz_places(url_hash);
        CREATE INDEX moz_places_hostindex ON moz_places(rev_host);
        CREATE INDEX moz_places_visitcount ON moz_places(visit_count);
        CREATE INDEX moz_places_frecencyindex ON moz_places(frecency);
        CREATE INDEX moz_places_lastvisitdateindex ON moz_places(last_visit_date);
        CREATE UNIQUE INDEX moz_places_guid_uniqueindex ON moz_places(guid);
        CREATE INDEX moz_places_originidindex ON moz_places(origin_id);
        CREATE INDEX moz_historyvisits_placedateindex ON moz_historyvisits(place_id, visit_date);
        CREATE INDEX moz_historyvisits_dateindex ON moz_historyvisits(visit_date);
        CREATE INDEX moz_bookmarks_itemindex ON moz_bookmarks(fk, type);
        CREATE INDEX moz_bookmarks_parentindex ON moz_bookmarks(parent, position);
        CREATE TRIGGER moz_places_afterdelete AFTER DELETE ON moz_places FOR EACH ROW BEGIN
          INSERT OR IGNORE INTO moz_meta VALUES (get_prefix(OLD.url), hash(OLD.url)); END;
        INSERT INTO moz_origins VALUES (1, 'https://', 'example.org', 100);
        INSERT INTO moz_places(url, guid, url_hash, origin_id) VALUES ('https://example.org/', 'a',
        47, 1); INSERT INTO moz_historyvisits(place_id, visit_date) VALUES (1, 1763769600000000);
        ANALYZE;
        """,
    )


@healthy
def of_litestream(path: Path, _stack: ExitStack) -> None:
    run(
        path,
        """
        PRAGMA journal_mode = wal;
        CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT NOT NULL);
        CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER);
        CREATE TABLE _litestream_lock (id INTEGER);
        INSERT INTO _litestream_seq VALUES (1, 12345);
        INSERT INTO users VALUES (1, 'ann');
        """,
    )


@healthy
def with_full_text(path: Path, _stack: ExitStack) -> None:
    run(
        path,
        """
        CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT);
        CREATE VIRTUAL TABLE note_search USING fts5(text, content='note', content_rowid='id');
        CREATE VIRTUAL TABLE own USING fts5(text, prefix='2 3', tokenize='porter unicode61');
        CREATE VIRTUAL TABLE older USING fts4(text);
        CREATE TRIGGER note_after AFTER INSERT ON note BEGIN
          INSERT INTO note_search(rowid, text) VALUES (new.id, new.text); END;
        INSERT INTO note(text) VALUES ('one'), ('two'); INSERT INTO own VALUES ('three');
        INSERT INTO older VALUES ('four');
        """,
    )


@healthy
def with_a_tree_of_rectangles(path: Path, _stack: ExitStack) -> None:
    run(path, "CREATE VIRTUAL TABLE area USING rtree(id, left, right, low, high, +name);"
              "INSERT INTO area VALUES (1, 0, 10, 0, 10, 'here'), (2, 5, 6, 5, 6, 'there')"
    )  # fmt: skip


@healthy
def without_rowids(path: Path, _stack: ExitStack) -> None:
    run(path, "CREATE TABLE word(word TEXT, lang TEXT, n INT, PRIMARY KEY (word, lang))"
              " WITHOUT ROWID;"
              "CREATE TABLE used(word TEXT, lang TEXT, at INT, PRIMARY KEY (word, lang, at),"
              " FOREIGN KEY (word, lang) REFERENCES word) WITHOUT ROWID;"
              "INSERT INTO word VALUES ('a', 'en', 1); INSERT INTO used VALUES ('a', 'en', 5)"
    )  # fmt: skip


@healthy
def with_generated_columns(path: Path, _stack: ExitStack) -> None:
    run(path, "CREATE TABLE t(a INT, b INT AS (a * 2) VIRTUAL, c TEXT AS (upper(a)) STORED);"
              "CREATE INDEX by_c ON t(c, b); CREATE INDEX by_e ON t(a + b, lower(c));"
              "CREATE INDEX by_p ON t(a) WHERE a > 5; CREATE UNIQUE INDEX by_q ON t(a) WHERE a < 5;"
              "INSERT INTO t(a) VALUES (1), (2)")  # fmt: skip


@healthy
def with_strict_tables(path: Path, _stack: ExitStack) -> None:
    run(path, "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT NOT NULL, c ANY, CHECK (b <> ''))"
              " STRICT;"
              "INSERT INTO t VALUES (1, 'x', 1), (2, 'y', x'00')")  # fmt: skip


@healthy
def with_views_and_triggers(path: Path, _stack: ExitStack) -> None:
    run(
        path,
        """
        CREATE TABLE t(a INTEGER PRIMARY KEY, b UNIQUE, c COLLATE nocase);
        CREATE TABLE log(at DEFAULT CURRENT_TIMESTAMP, a INT);
        CREATE VIEW v AS SELECT a, b FROM t WHERE b > 0;
        CREATE TRIGGER added AFTER INSERT ON t BEGIN INSERT INTO log(a) VALUES (new.a); END;
        CREATE TRIGGER viewed INSTEAD OF INSERT ON v BEGIN INSERT INTO t(b) VALUES (new.b); END;
        CREATE INDEX one ON t(c); CREATE INDEX other ON t(c COLLATE binary);
        INSERT INTO v(b) VALUES (1), (2);
        """,
    )


@healthy
def in_utf_16(path: Path, _stack: ExitStack) -> None:
    run(path, "PRAGMA encoding = 'UTF-16be'; CREATE TABLE t(a TEXT); INSERT INTO t VALUES ('ä')")


@healthy
def with_large_pages(path: Path, _stack: ExitStack) -> None:
    run(path, "PRAGMA page_size = 8192; CREATE TABLE t(a); INSERT INTO t VALUES (1)")


@healthy
def with_auto_vacuum(path: Path, _stack: ExitStack) -> None:
    run(
        path,
        "PRAGMA auto_vacuum = incremental; CREATE TABLE t(a); INSERT INTO t VALUES"
        " (zeroblob(9000))",
    )


@healthy
def with_strange_names(path: Path, _stack: ExitStack) -> None:
    run(path, """CREATE TABLE "s ""x""; --"("a 'b" INTEGER PRIMARY KEY, "\x1b[31m" TEXT UNIQUE);
              CREATE TABLE "a.b"("rowid" TEXT, "oid" INT, "_rowid_" INT,
                                 [c d] REFERENCES "s ""x""; --");
              INSERT INTO "a.b" VALUES ('x', 2, 3, NULL)""")  # fmt: skip


@healthy
def with_many_rows_and_statistics(path: Path, _stack: ExitStack) -> None:
    run(path, "CREATE TABLE t(a INTEGER PRIMARY KEY, b INT); CREATE INDEX i ON t(b);"
              "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000)"
              " INSERT INTO t SELECT i, i % 7 FROM n; ANALYZE;"
              "DELETE FROM t WHERE a > 20000")  # fmt: skip


@healthy
def with_tasks(path: Path, _stack: ExitStack) -> None:
    with tasks.Queue(path) as queue:
        task = queue.task(name="add")(_add)
        for _ in range(20):
            task.enqueue(1, 2)


def _add(one: int, other: int) -> int:
    return one + other


@healthy
def of_a_cache(path: Path, _stack: ExitStack) -> None:
    with cache.Cache(path, size=1 << 20) as kept:
        for number in range(200):
            kept.set(f"key {number}", "x" * 100)


@healthy
def of_a_cable(path: Path, _stack: ExitStack) -> None:
    async def send() -> None:
        sender = cable.Cable(path)
        await sender.send("somewhere", {"hello": "world"})
        await sender.close()

    asyncio.run(send())


@healthy
def with_notifications(path: Path, _stack: ExitStack) -> None:
    with oxlite.Database(path) as database:
        database.execute("CREATE TABLE t(a)")
        database.notify("news", "hello")


@healthy
def with_a_journal_that_stays(path: Path, _stack: ExitStack) -> None:
    run(path, "PRAGMA journal_mode = persist; CREATE TABLE t(a); INSERT INTO t VALUES (1)")
    assert path.with_name("app.db-journal").exists()


@healthy
def in_use_by_litestream(path: Path, stack: ExitStack) -> None:
    program = Path(sys.executable).with_name("litestream")
    run(path, "PRAGMA journal_mode = wal; CREATE TABLE t(a); INSERT INTO t VALUES (1)")
    if not program.exists():
        return
    replica = path.with_name("replica")
    process = subprocess.Popen(
        [program, "replicate", path, f"file://{replica}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    stack.callback(process.wait)
    stack.callback(process.kill)
    until(lambda: list(replica.rglob("*.ltx")))


@healthy
def in_use(path: Path, stack: ExitStack) -> None:
    database = stack.enter_context(oxlite.Database(path))
    database.execute("CREATE TABLE t(a)")
    for number in range(20):
        database.execute("INSERT INTO t VALUES (?)", (number,))
    database.query("SELECT * FROM t")


@healthy
def in_use_without_a_wal(path: Path, stack: ExitStack) -> None:
    connection = stack.enter_context(closing(sqlite3.connect(path)))
    connection.execute("CREATE TABLE t(a)")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.commit()
