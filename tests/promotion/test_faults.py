"""What goes wrong on either side: said with what to do, and the same command goes on after it."""

import random
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from tests.promotion.conftest import Place, Promote, execute, once, promote_file

from oxlite import sqlite3
from oxlite.promotion import PromotionError, Settings, VerificationDiffers, abort, promotion

FOLLOWING = "what was written meanwhile"


def of_ours(database: Path) -> list[str]:
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT name FROM sqlite_schema WHERE name LIKE 'oxlite%'")
        return [name for (name,) in rows]


def of_theirs(place: Place) -> list[str]:
    rows = place.rows("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace")
    return [name for (name,) in rows]


def name_of(place: Place) -> str:
    with psycopg.connect(place.url) as connection:
        return connection.info.dbname


STAGES = ["note", "note: indexes", FOLLOWING, "note: verified", "cut-over"]


@pytest.mark.parametrize("at", STAGES)
def test_a_connection_that_is_lost(
    at: str, promoted: Promote, place: Place, database: Path
) -> None:
    execute(database, "PRAGMA journal_mode = WAL")

    def lose() -> None:
        place.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'oxlite promote'"
        )
        execute(
            database, "UPDATE note SET text = 'new' WHERE id = 7", "DELETE FROM line WHERE a = 9"
        )

    with pytest.raises(PromotionError, match=r"was lost .* run the same command again"):
        promoted(cut_over=True, tell=once(at, lose))
    done = promoted(cut_over=True)
    assert done.rows["note"] == 299
    assert place.rows("SELECT text FROM note WHERE id = 7") == [("new",)]
    assert place.rows("SELECT count(*) FROM line") == [(299,)]


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_an_encoding_that_is_not_utf8(encoding: str, place: Place, database: Path) -> None:
    name = name_of(place)
    other = f"other_{name}"
    place.rows(f"CREATE DATABASE {other} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(PromotionError, match=f"has the encoding {encoding}"):
        promote_file(database, Place(place.url.replace(name, other, 1)))
    assert of_ours(database) == []


@pytest.mark.parametrize(
    ("grants", "said"),
    [
        ("GRANT USAGE ON SCHEMA public TO {role}", "permission denied for schema public"),
        ("GRANT CREATE ON SCHEMA public TO {role}", "permission denied for database"),
    ],
)
def test_rights_that_are_missing(grants: str, said: str, place: Place, database: Path) -> None:
    role = f"role_{name_of(place)}"
    place.rows(f"CREATE ROLE {role} LOGIN; {grants.format(role=role)}")
    there = Place(place.url.replace("postgres@", f"{role}@", 1))
    with pytest.raises(PromotionError, match=f"{said}.*: grant it, or use the owner"):
        promote_file(database, there)
    assert of_ours(database) == []
    assert of_theirs(place) == []


def test_what_postgresql_refuses_has_not_begun(place: Place, database: Path) -> None:
    execute(database, "CREATE TABLE odd (ctid INT)")
    with pytest.raises(PromotionError, match='"ctid" conflicts with a system column'):
        promote_file(database, place)
    with pytest.raises(PromotionError, match='schema "nowhere" does not exist'):
        promote_file(database, place, Settings(schema="nowhere"))
    assert of_ours(database) == []
    assert of_theirs(place) == []


def test_no_password_is_told(database: Path) -> None:
    password = quote("se cret@:/")
    for url in (
        f"postgresql://me:{password}@127.0.0.1:1/app",
        f"postgres+psycopg://me:{password}@127.0.0.1/app",
        f"postgresql://me:{password}@127.0.0.1:1/app?unknown=1",
    ):
        with pytest.raises(PromotionError) as caught:
            promote_file(database, Place(url))
        assert password not in str(caught.value)
        assert "se cret" not in str(caught.value)


MIGRATIONS = {
    "a column more": ["ALTER TABLE note ADD more TEXT", "UPDATE note SET more = 'x'"],
    "a column less": ["ALTER TABLE note DROP text"],
    "another name": ["ALTER TABLE note RENAME COLUMN text TO words"],
    "a table more": ["CREATE TABLE other (x)", "INSERT INTO other VALUES (1)"],
    "a table less": ["DROP TABLE line"],
    "a unique index more": ["CREATE UNIQUE INDEX more ON note (id, text)"],
    "a table that is made anew": [
        "CREATE TABLE new (a, b TEXT)",
        "INSERT INTO new SELECT * FROM line",
        "DROP TABLE line",
        "ALTER TABLE new RENAME TO line",
        "INSERT INTO line VALUES (1000, 'x')",
    ],
    "the same table made anew": ["DROP TABLE line", "CREATE TABLE line (a, b TEXT)"],
}


@pytest.mark.parametrize("what", MIGRATIONS)
def test_a_migration_is_refused(what: str, promoted: Promote, place: Place, database: Path) -> None:
    migrate = once("cut-over", lambda: execute(database, *MIGRATIONS[what]))
    with pytest.raises(PromotionError, match=r"since the promotion began.*: --abort, and begin"):
        promoted(cut_over=True, tell=migrate)
    with pytest.raises(PromotionError, match=r"since the promotion began.*: --abort, and begin"):
        promoted(cut_over=True)
    execute(database, "INSERT INTO author (name) VALUES ('writes go on')")
    assert abort(database, place.url)
    assert of_ours(database) == []
    assert of_theirs(place) == []


def test_vacuum_after_the_comparison(promoted: Promote, place: Place, database: Path) -> None:
    """It may give other numbers to rows that have no key, and then others would be deleted."""
    execute(database, "DELETE FROM line WHERE a = 1")

    def vacuum() -> None:
        execute(
            database, "VACUUM", "DELETE FROM line WHERE a = 2", "INSERT INTO line VALUES (9, 9)"
        )

    with pytest.raises(PromotionError, match="was vacuumed"):
        promoted(cut_over=True, tell=once("cut-over", vacuum))
    with pytest.raises(VerificationDiffers, match="'line' is not the same"):
        promoted(cut_over=True)
    assert abort(database, place.url)
    promoted(cut_over=True)
    assert place.rows("SELECT min(a) FROM line") == [(3,)]


def test_an_index_whose_entries_are_too_long(promoted: Promote, database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        text = random.Random(1).randbytes(9000).hex()
        connection.execute("INSERT INTO line VALUES (1, ?)", (text,))
        connection.execute("CREATE INDEX too_long ON line (b)")
        connection.commit()
    (note,) = promoted().notes
    assert "index row" in note.text


def test_two_at_once(promoted: Promote, database: Path) -> None:
    said: list[str] = []

    def another() -> None:
        with pytest.raises(PromotionError) as caught:
            promoted()
        said.append(str(caught.value))

    assert promoted(tell=once(FOLLOWING, another)).rows["note"] == 299
    assert "another oxlite promote is at work" in said[0]


def test_another_file_finds_the_place_taken(
    promoted: Promote, place: Place, tmp_path: Path
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        promoted(tell=once(FOLLOWING, interrupt))
    other = tmp_path / "other.db"
    execute(other, "CREATE TABLE t (x)")
    for command in (lambda: promote_file(other, place), lambda: abort(other, place.url)):
        with pytest.raises(PromotionError, match="holds a promotion of another file"):
            command()
    assert of_ours(other) == []


ENDS: list[tuple[object, str, bool]] = [
    (promotion.definition, "validate_constraints", False),
    (promotion.definition, "drop_row_numbers", True),
    (promotion.noted, "forget", False),
]


@pytest.mark.parametrize("cut_over", [False, True])
@pytest.mark.parametrize(("module", "name", "is_after"), ENDS)
def test_what_is_interrupted_at_its_end_is_ended_by_the_same_command(
    module: object, name: str, is_after: bool, cut_over: bool, promoted: Promote,
    place: Place, database: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    work: Callable[..., object] = getattr(module, name)

    def interrupted(*arguments: object) -> None:
        if is_after:
            work(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            promoted(cut_over=cut_over)
    assert promoted(cut_over=cut_over).rows["line"] == 300
    assert place.rows("SELECT 1 FROM pg_namespace WHERE nspname LIKE 'oxlite%'") == []
    assert place.rows("SELECT 1 FROM pg_attribute WHERE attname = 'oxlite_rowid'") == []
    assert place.rows("SELECT 1 FROM pg_constraint WHERE NOT convalidated") == []
    if not cut_over:
        assert of_ours(database) == []


def test_a_server_that_cannot_be_reached(database: Path, tmp_path: Path) -> None:
    with pytest.raises(PromotionError, match="cannot be reached"):
        promote_file(database, Place(f"postgresql://me@/app?host={tmp_path}"))
