"""``oxlite.connect``: profiles that are in force, journal modes, and what is refused.

What is in force is read by plain pragmas, never from what the driver says of itself; that is then
held against it. How locks are waited for and which URIs are refused have files of their own:
``sqlite3/test_waiting.py`` and ``sqlite3/test_uri.py``.
"""

import inspect
import logging
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import oxlite
from oxlite import sqlite3

PRODUCTION = ["web", "durable", "cache"]
PROFILES = ["stock", *PRODUCTION]

# What PRAGMA reports for the word one sets.
REPORTED = {
    ("synchronous", "OFF"): 0,
    ("synchronous", "NORMAL"): 1,
    ("synchronous", "FULL"): 2,
    ("temp_store", "MEMORY"): 2,
    ("journal_mode", "WAL"): "wal",
    ("foreign_keys", "ON"): 1,
    ("trusted_schema", "OFF"): 0,
}

# What a profile promises, whatever the package says of itself.
PROMISED = {
    "journal_mode": "wal",
    "foreign_keys": 1,
    "mmap_size": 128 * 1024 * 1024,
    "journal_size_limit": 64 * 1024 * 1024,
    "temp_store": 2,
    "trusted_schema": 0,
}
SYNCHRONOUS = {"web": 1, "durable": 2, "cache": 0}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a test may make a database file; none is there yet."""
    return tmp_path / "test.db"


@pytest.fixture
def opened() -> Iterator[Callable[..., sqlite3.Connection]]:
    """``oxlite.connect``, closing what it opened after the test."""
    connections: list[sqlite3.Connection] = []

    def connect(*arguments: object, **options: object) -> sqlite3.Connection:
        connections.append(oxlite.connect(*arguments, **options))
        return connections[-1]

    yield connect
    for connection in connections:
        connection.close()


Opened = Callable[..., sqlite3.Connection]


@pytest.fixture
def existing(path: Path) -> Path:
    """A file with the table ``t(a)`` of one row, in a rollback journal mode."""
    connection = sqlite3.connect(path)
    connection.executescript("CREATE TABLE t(a); INSERT INTO t VALUES (1)")
    connection.close()
    return path


def pragma(connection: sqlite3.Connection, name: str) -> object:
    row = connection.execute(f"PRAGMA {name}").fetchone()
    return None if row is None else row[0]


def journal_mode_of(path: Path) -> object:
    """The journal mode that the file itself remembers, asked by a connection with no profile."""
    connection = sqlite3.connect(path)
    mode = pragma(connection, "journal_mode")
    connection.close()
    return mode


# Profiles


@pytest.mark.parametrize("profile", PRODUCTION)
def test_a_production_profile_is_in_force(opened: Opened, path: Path, profile: str) -> None:
    connection = opened(path, profile=profile)
    for name, value in {**PROMISED, "synchronous": SYNCHRONOUS[profile]}.items():
        assert (name, pragma(connection, name)) == (name, value)
    assert journal_mode_of(path) == "wal"


@pytest.mark.parametrize("profile", PRODUCTION)
def test_a_production_profile_is_in_force_on_an_existing_file(
    opened: Opened, existing: Path, profile: str
) -> None:
    connection = opened(existing, profile=profile)
    for name, value in {**PROMISED, "synchronous": SYNCHRONOUS[profile]}.items():
        assert (name, pragma(connection, name)) == (name, value)
    assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]
    assert journal_mode_of(existing) == "wal"


@pytest.mark.parametrize("profile", PROFILES)
def test_profiles_tells_what_is_in_force(opened: Opened, path: Path, profile: str) -> None:
    connection = opened(path, profile=profile)
    for name, value in oxlite.profiles()[profile].items():
        expected = REPORTED.get((name, value), value)
        assert (name, pragma(connection, name)) == (name, expected)


@pytest.mark.parametrize("profile", PROFILES)
def test_settings_tell_what_became_of_each_pragma(opened: Opened, path: Path, profile: str) -> None:
    connection = opened(path, profile=profile)
    assert connection.profile == profile
    assert connection.settings == tuple(
        (name, str(value), str(value), None) for name, value in oxlite.profiles()[profile].items()
    )


def test_there_are_five_profiles() -> None:
    # That of strangers' files makes none: tests/test_untrusted.py.
    assert sorted(oxlite.profiles()) == sorted([*PROFILES, "untrusted"])
    assert oxlite.profiles()["stock"] == {}
    oxlite.profiles()["web"]["journal_mode"] = "changed"
    assert oxlite.profiles()["web"]["journal_mode"] == "WAL"  # a copy


def test_stock_is_what_sqlite_does_by_itself(opened: Opened, path: Path, tmp_path: Path) -> None:
    connection = opened(path, profile="stock")
    plain = sqlite3.connect(tmp_path / "plain.db")
    for name in (*PROMISED, "synchronous", "cache_size", "busy_timeout", "page_size"):
        assert (name, pragma(connection, name)) == (name, pragma(plain, name))
    assert pragma(connection, "journal_mode") == "delete"
    assert pragma(connection, "synchronous") == 2
    assert pragma(connection, "busy_timeout") == 5000
    assert (connection.settings, plain.settings, plain.profile) == ((), (), "stock")
    plain.close()


def test_web_is_the_default_and_begins_immediate(opened: Opened, path: Path) -> None:
    connection = opened(path)
    assert connection.profile == "web"
    assert connection.isolation_level == "IMMEDIATE"


def test_the_drop_in_has_no_profile_unless_asked(path: Path) -> None:
    connection = sqlite3.connect(path, profile="durable")
    assert pragma(connection, "synchronous") == 2
    assert pragma(connection, "journal_mode") == "wal"
    assert connection.isolation_level == ""
    connection.close()


def test_the_positional_arguments_are_those_of_the_drop_in() -> None:
    ours = inspect.signature(oxlite.connect).parameters
    assert list(ours)[:8] == [
        "database",
        "timeout",
        "detect_types",
        "isolation_level",
        "check_same_thread",
        "factory",
        "cached_statements",
        "uri",
    ]
    assert all(
        parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in list(ours.values())[8:]
    )


def test_a_factory(opened: Opened) -> None:
    class Mine(sqlite3.Connection):
        pass

    connection = opened(":memory:", factory=Mine)
    assert type(connection) is Mine
    assert connection.profile == "web"
    assert type(opened(":memory:", factory=None)) is sqlite3.Connection
    plain = sqlite3.connect(":memory:", factory=None)
    assert type(plain) is sqlite3.Connection
    plain.close()


# What cannot apply


@pytest.mark.parametrize("profile", PRODUCTION)
@pytest.mark.parametrize("name", [":memory:", "", "file:x?mode=memory"])
def test_what_cannot_apply_without_a_file_is_skipped(
    opened: Opened, profile: str, name: str
) -> None:
    connection = opened(name, profile=profile, uri=True)
    skipped = {setting[0]: setting[3] for setting in connection.settings if setting[3]}
    assert set(skipped) <= {"journal_mode", "mmap_size", "journal_size_limit"}
    assert "journal_mode" in skipped
    assert set(skipped.values()) == {"the database is not in a file"}
    for name, _, effective, reason in connection.settings:
        if reason is None:
            value = oxlite.profiles()[profile][name]
            assert str(value) == effective
            assert pragma(connection, name) == REPORTED.get((name, value), value)
    assert pragma(connection, "foreign_keys") == 1


def test_what_cannot_apply_to_a_file_opened_for_reading_is_skipped(
    opened: Opened, existing: Path
) -> None:
    connection = opened(f"file:{existing}?mode=ro", uri=True)
    skipped = {setting[0]: setting[1:] for setting in connection.settings if setting[3]}
    assert skipped == {"journal_mode": ("WAL", "DELETE", "the database is read-only")}
    assert pragma(connection, "foreign_keys") == 1
    assert pragma(connection, "mmap_size") == PROMISED["mmap_size"]
    assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("INSERT INTO t VALUES (2)")
    connection.rollback()
    assert journal_mode_of(existing) == "delete"


def test_a_wal_file_opened_for_reading_skips_nothing(opened: Opened, path: Path) -> None:
    writer = opened(path)
    writer.execute("CREATE TABLE t(a)")
    reader = opened(f"file:{path}?mode=ro", uri=True)
    assert [setting for setting in reader.settings if setting[3]] == []
    assert reader.execute("SELECT * FROM t").fetchall() == []


# Pragmas of one's own


@pytest.mark.parametrize(
    ("name", "value", "reported"),
    [
        ("synchronous", "full", 2),
        ("synchronous", 3, 3),
        ("SYNCHRONOUS", "OFF", 0),
        ("foreign_keys", False, 0),
        ("foreign_keys", "no", 0),
        ("foreign_keys", 0, 0),
        ("cache_size", -64000, -64000),
        ("cache_size", 0, 0),
        ("mmap_size", 0, 0),
        ("journal_size_limit", -1, -1),
        ("temp_store", "FILE", 1),
        ("journal_mode", "TRUNCATE", "truncate"),
        ("journal_mode", "persist", "persist"),
        ("journal_mode", "MEMORY", "memory"),
        ("journal_mode", "OFF", "off"),
        ("locking_mode", "EXCLUSIVE", "exclusive"),
        ("auto_vacuum", "INCREMENTAL", 2),
        ("page_size", 8192, 8192),
        ("wal_autocheckpoint", 0, 0),
        ("secure_delete", "FAST", 2),
        ("recursive_triggers", True, 1),
        ("max_page_count", 5000, 5000),
        ("query_only", True, 1),
        ("trusted_schema", True, 1),
        ("analysis_limit", 400, 400),
        ("threads", 2, 2),
        ("cell_size_check", True, 1),
        ("automatic_index", False, 0),
        ("legacy_alter_table", "ON", 1),
        ("ignore_check_constraints", True, 1),
        ("reverse_unordered_selects", True, 1),
        ("read_uncommitted", True, 1),
        ("fullfsync", True, 1),
        ("checkpoint_fullfsync", True, 1),
    ],
)
@pytest.mark.parametrize("profile", ["web", "stock"])
def test_a_pragma_over_or_beside_the_profile(
    opened: Opened, path: Path, profile: str, name: str, value: object, reported: object
) -> None:
    connection = opened(path, profile=profile, pragmas={name: value})
    assert pragma(connection, name) == reported
    settings = {setting[0]: setting for setting in connection.settings}
    assert settings[name.lower()][3] is None
    for other, promised in oxlite.profiles()[profile].items():
        if other != name.lower():
            assert pragma(connection, other) == REPORTED.get((other, promised), promised)


def test_the_shape_of_a_new_file_is_chosen_before_its_journal_mode(
    opened: Opened, path: Path
) -> None:
    connection = opened(
        path, pragmas={"synchronous": "FULL", "page_size": 16384, "auto_vacuum": "FULL"}
    )
    connection.execute("CREATE TABLE t(a)")
    connection.close()
    check = sqlite3.connect(path)
    shape = [pragma(check, name) for name in ("page_size", "auto_vacuum", "journal_mode")]
    check.close()
    assert shape == [16384, 1, "wal"]


@pytest.mark.parametrize(
    ("name", "value", "advice"),
    [
        ("page_size", 8192, "before the first table"),
        ("auto_vacuum", "FULL", "before the first table"),
        ("max_page_count", 1, "already has more pages"),
        ("mmap_size", 2**50, "limit"),
        ("threads", 1000, "limit"),
    ],
)
@pytest.mark.parametrize("profile", ["web", "stock"])
def test_a_pragma_that_does_not_take_effect_is_named(
    existing: Path, profile: str, name: str, value: object, advice: str
) -> None:
    with pytest.raises(
        sqlite3.OperationalError,
        match=rf"PRAGMA {name} = {value} did not take effect: SQLite reports \w+; .*{advice}",
    ):
        oxlite.connect(existing, profile=profile, pragmas={name: value})
    check = sqlite3.connect(existing, timeout=0)  # and no lock is left behind
    check.execute("INSERT INTO t VALUES (2)")
    check.commit()
    check.close()


def test_an_opening_that_fails_does_not_convert_the_file_in_silence(
    existing: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The journal mode comes before the pragma that fails, and it is there to stay."""
    with (
        caplog.at_level(logging.DEBUG, "oxlite"),
        pytest.raises(sqlite3.OperationalError, match="mmap_size"),
    ):
        oxlite.connect(existing, pragmas={"mmap_size": 2**50})
    assert journal_mode_of(existing) == "delete" or len(caplog.records) == 1


def test_wal_that_does_not_take_effect_is_named(opened: Opened, path: Path) -> None:
    """A reader keeps out the exclusive lock that the change needs."""
    other = opened(path, profile="stock")
    other.execute("CREATE TABLE t(a)")
    other.execute("BEGIN")
    other.execute("SELECT * FROM t").fetchall()
    with pytest.raises(sqlite3.OperationalError, match=r"journal_mode") as caught:
        oxlite.connect(path, timeout=0)
    assert caught.value.sqlite_errorname == "SQLITE_BUSY"


@pytest.mark.parametrize(
    ("pragmas", "error", "message"),
    [
        ({"synchronos": 1}, ValueError, "unknown pragma 'synchronos'.*did you mean 'synchronous'"),
        ({"no_such_thing_at_all": 1}, ValueError, "unknown pragma 'no_such_thing_at_all'"),
        ({"busy_timeout": 1}, ValueError, "timeout"),
        ({"BUSY_TIMEOUT": 1}, ValueError, "timeout"),
        ({"user_version": 1}, ValueError, "unknown pragma"),
        ({"": 1}, ValueError, "unknown pragma"),
        ({"synchronous = OFF; --": 1}, ValueError, "unknown pragma"),
        ({"synchronous": "MAYBE"}, ValueError, "OFF, NORMAL, FULL, EXTRA"),
        ({"synchronous": 4}, ValueError, "synchronous"),
        ({"synchronous": "OFF; DROP TABLE t"}, ValueError, "synchronous"),
        ({"journal_mode": "WALL"}, ValueError, "journal_mode"),
        ({"foreign_keys": 2}, ValueError, "ON or OFF"),
        ({"foreign_keys": "maybe"}, ValueError, "ON or OFF"),
        ({"page_size": 100}, ValueError, "512"),
        ({"page_size": 1000}, ValueError, "power of two"),
        ({"cache_size": 2**31}, ValueError, "cache_size"),
        ({"cache_size": 2**70}, ValueError, "cache_size"),
        ({"wal_autocheckpoint": -1}, ValueError, "wal_autocheckpoint"),
        ({"synchronous": "OFF", "SYNCHRONOUS": "FULL"}, ValueError, "twice"),
        ({"mmap_size": "128"}, TypeError, "whole number"),
        ({"mmap_size": True}, TypeError, "whole number"),
        ({"mmap_size": 1.5}, TypeError, "mmap_size"),
        ({"mmap_size": None}, TypeError, "mmap_size"),
        ({"synchronous": b"OFF"}, TypeError, "synchronous"),
        ({1: 1}, TypeError, "names of pragmas"),
    ],
)
def test_a_pragma_that_cannot_be_meant_touches_no_file(
    path: Path, pragmas: dict[Any, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        oxlite.connect(path, pragmas=pragmas)
    with pytest.raises(error, match=message):
        sqlite3.connect(path, pragmas=pragmas)
    assert not path.exists()


def test_pragmas_may_be_any_mapping(opened: Opened) -> None:
    pragmas = types.MappingProxyType({"cache_size": -5000})
    assert pragma(opened(":memory:", pragmas=pragmas), "cache_size") == -5000


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"profile": "wbe"}, ValueError, "unknown profile 'wbe'.*did you mean 'web'"),
        ({"profile": "production"}, ValueError, "known are stock, web, durable, cache, untrusted"),
        ({"profile": ""}, ValueError, "unknown profile"),
        ({"profile": None}, TypeError, None),
        ({"profile": 1}, TypeError, None),
        ({"busy": "fare"}, ValueError, "unknown busy policy 'fare'.*did you mean 'fair'"),
        ({"busy": "never"}, ValueError, "none, backoff, fair"),
        ({"busy": 5}, TypeError, None),
        ({"journal": "kep"}, ValueError, "did you mean 'keep'"),
        ({"journal": "wal"}, ValueError, "unknown journal choice"),
        ({"journal": None}, TypeError, None),
        ({"pragmas": 5}, TypeError, None),
        ({"pragmas": ["cache_size"]}, (TypeError, ValueError), None),
        ({"timeout": float("nan")}, ValueError, "NaN"),
        ({"timeout": "5"}, TypeError, None),
        ({"timeout": None}, TypeError, None),
        ({"isolation_level": "immediately"}, ValueError, "isolation_level"),
        ({"isolation_level": 5}, TypeError, None),
        ({"cached_statements": "many"}, TypeError, None),
        ({"profil": "web"}, TypeError, "profil"),
    ],
)
def test_a_choice_that_cannot_be_meant_touches_no_file(
    path: Path, options: dict[str, Any], error: type[Exception], message: str | None
) -> None:
    with pytest.raises(error, match=message):
        oxlite.connect(path, **options)
    assert not path.exists()


@pytest.mark.parametrize("timeout", [0, -1, 1e-9, 1e300, float("inf"), float("-inf"), True])
def test_any_number_is_a_timeout(opened: Opened, timeout: float) -> None:
    assert opened(":memory:", timeout=timeout).execute("SELECT 1").fetchone() == (1,)


# The journal mode of an existing file


def test_turning_an_existing_file_to_wal_is_logged_once_with_the_way_back(
    opened: Opened, existing: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "oxlite"):
        first = opened(existing)
        opened(existing)
        first.close()
        opened(existing)
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("oxlite", logging.WARNING)
    message = record.getMessage()
    assert str(existing) in message
    assert "was DELETE and is now WAL" in message
    assert "PRAGMA journal_mode = DELETE" in message
    assert 'journal="keep"' in message


def test_the_way_back_works(opened: Opened, existing: Path) -> None:
    opened(existing).close()
    back = sqlite3.connect(existing)
    assert back.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
    back.close()
    assert journal_mode_of(existing) == "delete"


@pytest.mark.parametrize("content", ["none", "empty file", "wal"])
def test_what_need_not_be_turned_is_not_logged(
    opened: Opened, path: Path, caplog: pytest.LogCaptureFixture, content: str
) -> None:
    match content:
        case "empty file":
            path.touch()
        case "wal":
            connection = sqlite3.connect(path)
            connection.executescript("PRAGMA journal_mode = WAL; CREATE TABLE t(a)")
            connection.close()
    with caplog.at_level(logging.DEBUG, "oxlite"):
        opened(path).execute("CREATE TABLE IF NOT EXISTS t(a)")
        opened(":memory:")
        opened("")
    assert caplog.records == []


def test_an_explicit_journal_mode_is_logged_too(
    opened: Opened, existing: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "oxlite"):
        opened(existing, profile="stock", pragmas={"journal_mode": "WAL"})
    assert len(caplog.records) == 1


def test_leaving_wal_is_as_persistent_and_logged_too(
    opened: Opened, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    connection = opened(path)
    connection.execute("CREATE TABLE t(a)")
    connection.close()
    with caplog.at_level(logging.DEBUG, "oxlite"):
        opened(path, pragmas={"journal_mode": "DELETE"})
    (record,) = caplog.records
    assert "was WAL and is now DELETE" in record.getMessage()
    assert "PRAGMA journal_mode = WAL" in record.getMessage()


def test_a_mode_that_the_file_does_not_remember_is_not_logged(
    opened: Opened, existing: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "oxlite"):
        opened(existing, pragmas={"journal_mode": "TRUNCATE"})
    assert caplog.records == []


def test_keep_leaves_the_journal_mode_of_an_existing_file(
    opened: Opened, existing: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "oxlite"):
        connection = opened(existing, journal="keep")
    assert caplog.records == []
    assert pragma(connection, "journal_mode") == "delete"
    assert journal_mode_of(existing) == "delete"
    (skipped,) = [setting for setting in connection.settings if setting[3]]
    assert skipped == ("journal_mode", "WAL", "DELETE", 'journal="keep"')
    assert pragma(connection, "foreign_keys") == 1


# Switches


@pytest.mark.parametrize("profile", PRODUCTION)
def test_double_quoted_text_is_no_string_in_production(opened: Opened, profile: str) -> None:
    connection = opened(":memory:", profile=profile)
    connection.execute("CREATE TABLE t(a)")
    for sql in (
        'SELECT "no column"',
        'SELECT * FROM t WHERE a = "no column"',
        'CREATE INDEX i ON t("no column")',
        'CREATE TABLE u(a, CHECK (a <> "no column"))',
    ):
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            connection.execute(sql)
    assert connection.execute('SELECT "a" FROM t').fetchall() == []


def test_double_quoted_text_may_be_a_string_in_stock(opened: Opened) -> None:
    connection = opened(":memory:", profile="stock")
    assert connection.execute('SELECT "no column"').fetchone() == ("no column",)
    connection.execute("CREATE TABLE t(a)")
    connection.execute('CREATE INDEX i ON t("no column")')


@pytest.mark.parametrize("profile", PROFILES)
def test_extensions_cannot_be_loaded(opened: Opened, profile: str) -> None:
    connection = opened(":memory:", profile=profile)
    with pytest.raises(sqlite3.OperationalError, match="not authorized"):
        connection.execute("SELECT load_extension('no_such_extension')")


@pytest.mark.parametrize(
    ("profile", "trusted"), [("stock", True), *((p, False) for p in PRODUCTION)]
)
def test_the_schema_is_not_trusted_in_production(
    opened: Opened, profile: str, trusted: bool
) -> None:
    connection = opened(":memory:", profile=profile)
    connection.executescript(
        "CREATE TABLE t(a); CREATE VIEW v AS SELECT name FROM pragma_table_info('t')"
    )
    if trusted:
        assert connection.execute("SELECT * FROM v").fetchall() == [("a",)]
    else:
        with pytest.raises(sqlite3.OperationalError, match="unsafe use"):
            connection.execute("SELECT * FROM v")
    assert connection.execute("SELECT name FROM pragma_table_info('t')").fetchall() == [("a",)]


def test_foreign_keys_are_enforced(opened: Opened) -> None:
    for profile in PRODUCTION:
        connection = opened(":memory:", profile=profile)
        connection.executescript("CREATE TABLE t(i INTEGER PRIMARY KEY, f REFERENCES t(i))")
        with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
            connection.execute("INSERT INTO t VALUES (1, 9)")


# Files that are no databases


def test_a_file_that_is_no_database_is_named(path: Path) -> None:
    path.write_bytes(b"plain text, " * 400)
    with pytest.raises(sqlite3.DatabaseError, match="not a database") as caught:
        oxlite.connect(path)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == b"plain text, " * 400


def test_a_directory_and_a_missing_parent_are_named(tmp_path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError, match="is a directory"):
        oxlite.connect(tmp_path)
    with pytest.raises(sqlite3.OperationalError, match="does not exist"):
        oxlite.connect(tmp_path / "missing" / "x.db")


def test_a_failed_opening_leaves_nothing_open(path: Path) -> None:
    path.write_bytes(b"plain text, " * 400)
    for _ in range(3):
        with pytest.raises(sqlite3.DatabaseError):
            oxlite.connect(path)
    open_files = Path("/proc/self/fd")
    if open_files.exists():
        targets = [str(entry.readlink()) for entry in open_files.iterdir() if entry.is_symlink()]
        assert str(path) not in targets
