"""Options in URLs and ``connect_args``: what they do, and what is refused."""

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, OperationalError

import oxlite
from oxlite.sqlalchemy.isolation import LEVELS
from oxlite.sqlalchemy.options import check_arguments

MakeEngine = Callable[..., sa.Engine]


def pragma(engine: sa.Engine, name: str) -> object:
    with engine.connect() as connection:
        return connection.exec_driver_sql(f"PRAGMA {name}").scalar()


def raw(engine: sa.Engine) -> oxlite.Connection:
    with engine.connect() as connection:
        found = connection.connection.dbapi_connection
        assert isinstance(found, oxlite.Connection)
        return found


def test_the_driver_applies_the_profile(make_engine: MakeEngine) -> None:
    engine = make_engine()
    assert pragma(engine, "journal_mode") == "wal"
    assert pragma(engine, "foreign_keys") == 1
    assert raw(engine).profile == "web"
    assert pragma(make_engine("?profile=durable"), "synchronous") == 2
    assert raw(make_engine("?profile=stock")).profile == "stock"


def test_options_in_a_url_are_read_by_their_types(make_engine: MakeEngine) -> None:
    engine = make_engine(
        "?timeout=1.5&busy=fair&statement_timeout=2&cached_statements=9&detect_types=3"
        "&check_same_thread=false&durable_commit=each&journal=keep&allow_no_locking=no"
        "&pragma.cache_size=-4000&pragma.temp_store=FILE"
    )
    connection = raw(engine)
    assert (connection.timeout, connection.busy) == (1.5, "fair")
    assert pragma(engine, "cache_size") == -4000
    assert pragma(engine, "temp_store") == 1


def test_the_same_options_as_connect_args(make_engine: MakeEngine) -> None:
    class Connection(oxlite.Connection):
        pass

    engine = make_engine(
        "?timeout=9",
        connect_args={
            "timeout": 1,
            "busy": None,
            "pragmas": {"cache_size": -4000},
            "factory": Connection,
            "extensions": None,
            "busy_handler": lambda asked: False,
            "statement_timeout": 2.5,
            "cached_statements": 7,
        },
    )
    assert isinstance(raw(engine), Connection)
    assert raw(engine).timeout == 1, "connect_args go before the URL"
    assert pragma(engine, "cache_size") == -4000


def test_a_file_uri(file: Path) -> None:
    engine = sa.create_engine(f"sqlite+oxlite:///file:{file}?mode=ro&cache=private&uri=true")
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM note").scalar() == 2
    with pytest.raises(OperationalError, match="readonly"), engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM note")
    engine.dispose()


def test_a_database_in_memory_shared_by_the_connections_of_an_engine() -> None:
    engine = sa.create_engine("sqlite+oxlite:///file:/shared?vfs=memdb&uri=true")
    with engine.begin() as one:
        one.exec_driver_sql("CREATE TABLE t (x)")
    with engine.connect() as one, engine.connect() as two:
        assert one.connection.dbapi_connection is not two.connection.dbapi_connection
        assert two.exec_driver_sql("SELECT count(*) FROM t").scalar() == 0
    engine.dispose()


def test_a_relative_path_stays_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    engine = sa.create_engine("sqlite+oxlite:///relative.db")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    with engine.connect() as connection:
        connection.exec_driver_sql("SELECT 1")
    assert (tmp_path / "relative.db").exists()
    engine.dispose()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("tiemout=5", "unknown option 'tiemout' in the URL; did you mean timeout?"),
        ("profil=web", "did you mean profile?"),
        ("xyzzy=1", "unknown option 'xyzzy' in the URL; there are: allow_no_locking"),
        ("timeout=soon", "timeout=soon in the URL: a number of seconds is wanted"),
        ("cached_statements=1.5", "a whole number of statements is wanted"),
        ("check_same_thread=maybe", "true or false is wanted"),
        ("uri=perhaps", "true or false is wanted"),
        ("timeout=1&timeout=2", "timeout stands 2 times in the URL"),
        ("pool_size=3", "pool_size does not belong in the URL: it is an argument of create_engin"),
        ("echo=true", "echo does not belong in the URL: it is an argument of create_engine"),
        ("sqlite_read_only=true", "it is an execution option"),
        ("readers=4", "it is an argument of oxlite.sqlalchemy.create_engines"),
        ("autocommit=true", "write isolation_level=AUTOCOMMIT"),
        ("transaction_mode=IMMEDIATE", "write isolation_level: SERIALIZABLE begins IMMEDIATE"),
        ("mode=ro", "mode is a parameter of SQLite's URIs, which are read from the URL with uri=t"),
        ("pragmas=cache_size", "pragmas cannot be written in the URL: write pragma.NAME=VALUE"),
        ("factory=x", "factory cannot be written in the URL: it belongs in connect_args"),
        ("busy_handler=x", "busy_handler cannot be written in the URL"),
        ("uri=true&moed=ro", "did you mean mode?"),
    ],
)
def test_what_is_no_option_of_a_url_is_refused_by_name(
    tmp_path: Path, query: str, message: str
) -> None:
    with pytest.raises(ArgumentError) as caught:
        sa.create_engine(f"sqlite+oxlite:///{tmp_path}/x.db?{query}")
    assert message in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tiemout": 5}, "unknown option 'tiemout' in connect_args; did you mean timeout?"),
        ({"timeout": "5"}, "connect_args: timeout must be a number of seconds, not '5' (str)"),
        ({"timeout": True}, "timeout must be a number of seconds, not True (bool)"),
        ({"timeout": None}, "timeout must be a number of seconds"),
        (
            {"profile": 1},
            "profile must be 'stock', 'web', 'durable', 'cache' or 'untrusted', not 1 (int)",
        ),
        ({"uri": 1}, "uri must be true or false"),
        ({"pragmas": ["x"]}, "pragmas must be a mapping"),
        ({"busy_handler": 5}, "busy_handler must be a function"),
        ({"factory": 5}, "factory must be a subclass of oxlite.Connection"),
        ({"extensions": "spellfix"}, "extensions must be a list"),
        ({"pool_size": 5}, "pool_size does not belong in connect_args: it is an argument of"),
        ({"autocommit": False}, "write isolation_level=AUTOCOMMIT"),
        ({"mode": "ro"}, "which are read from a URL with uri=true only"),
        ({"profile": "wbe"}, "wbe"),
        ({"pragmas": {"cahce_size": 1}}, "cahce_size"),
    ],
)
def test_what_is_no_option_of_connect_args_is_refused_by_name(
    tmp_path: Path, arguments: dict[str, object], message: str
) -> None:
    engine = sa.create_engine(f"sqlite+oxlite:///{tmp_path}/x.db", connect_args=arguments)
    with pytest.raises(ArgumentError) as caught:
        engine.connect()
    assert message in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_every_option_is_described() -> None:
    page = (Path(__file__).parents[2] / "docs" / "sqlalchemy.md").read_text()
    missing = {
        name
        for name in inspect.signature(oxlite.connect).parameters
        if name not in {"database", "autocommit"} and f"| `{name}`" not in page
    }
    assert not missing
    assert not {level for level in LEVELS if f"| `{level}`" not in page}


def test_every_option_of_the_driver_can_be_given(make_engine: MakeEngine) -> None:
    parameters = inspect.signature(oxlite.connect).parameters.values()
    given = {
        parameter.name: parameter.default
        for parameter in parameters
        if parameter.name not in {"database", "autocommit", "isolation_level"}
    }
    check_arguments(given)


def test_a_url_with_a_host_is_refused() -> None:
    with pytest.raises(ArgumentError, match="A file has no host"):
        sa.create_engine("sqlite+oxlite://app.db/")


def test_a_connection_opened_by_somebody_else(file: Path) -> None:
    engine = sa.create_engine(
        "sqlite+oxlite://", creator=lambda: oxlite.connect(file, profile="durable")
    )
    with engine.begin() as connection:
        assert connection.get_isolation_level() == "READ COMMITTED"
        connection.exec_driver_sql("DELETE FROM note")
    assert pragma(engine, "synchronous") == 2
    engine.dispose()


def test_the_dialect_tells_versions(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        version = ".".join(map(str, connection.dialect.server_version_info or ()))
    assert version == oxlite.sqlite_version
    if hasattr(engine.dialect, "dbapi_version"):  # SQLAlchemy 2.1
        assert str(engine.dialect.dbapi_version).startswith(oxlite.__version__.split("-")[0])
