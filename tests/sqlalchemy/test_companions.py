"""The dialect as Flask-SQLAlchemy, SQLModel and Alembic use it."""

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

import oxlite
from oxlite.sqlalchemy import RoutingSession, create_reader_engine


def test_flask_sqlalchemy_with_readers_and_two_databases(tmp_path: Path) -> None:
    flask = pytest.importorskip("flask")
    extension = pytest.importorskip("flask_sqlalchemy")
    session_module = pytest.importorskip("flask_sqlalchemy.session")

    class Session(RoutingSession, session_module.Session):  # type: ignore[name-defined,misc]
        """Both."""

    app = flask.Flask(__name__)
    app.config["SQLALCHEMY_DATABASE_URI"] = f"sqlite+oxlite:///{tmp_path}/app.db"
    app.config["SQLALCHEMY_BINDS"] = {"log": f"sqlite+oxlite:///{tmp_path}/log.db"}
    db = extension.SQLAlchemy(app, session_options={"class_": Session})

    class User(db.Model):  # type: ignore[name-defined,misc]
        id: Mapped[int] = mapped_column(primary_key=True)
        name: Mapped[str]

    class Line(db.Model):  # type: ignore[name-defined,misc]
        __bind_key__ = "log"
        id: Mapped[int] = mapped_column(primary_key=True)
        text: Mapped[str]

    with app.app_context():
        db.create_all()
        reader = create_reader_engine(db.engine)
        db.session.add_all([User(name="ann"), Line(text="begun")])
        db.session.commit()
        assert db.session.scalars(sa.select(User.name)).all() == ["ann"]
        assert reader.pool.checkedout() == 1  # type: ignore[attr-defined]
        assert db.engine.pool.checkedout() == 0
        assert db.session.scalars(sa.select(Line.text)).all() == ["begun"]
        assert db.paginate(sa.select(User)).total == 1
        db.session.remove()
        for engine in db.engines.values():
            engine.dispose()


def flask_engine(tmp_path: Path, url: str) -> sa.Engine:
    """The engine that Flask-SQLAlchemy makes of a URL, for an application in a folder."""
    flask = pytest.importorskip("flask")
    extension = pytest.importorskip("flask_sqlalchemy")
    app = flask.Flask(__name__, instance_path=str(tmp_path / "instance"))
    app.config["SQLALCHEMY_DATABASE_URI"] = url
    db = extension.SQLAlchemy(app)
    with app.app_context():
        engine: sa.Engine = db.engine
        return engine


@pytest.mark.parametrize("driver", ["sqlite+oxlite", "sqlite+oxlite_async"])
@pytest.mark.parametrize(
    "database", ["app.db", "data/app.db", "file:app.db?uri=true", "file:app.db?mode=rwc&uri=true"]
)
def test_flask_sqlalchemy_with_a_relative_path_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver: str, database: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(sa.exc.ArgumentError) as caught:
        flask_engine(tmp_path, f"{driver}:///{database}")
    name = database.removeprefix("file:").partition("?")[0]
    assert f'f"{driver}:///{{app.instance_path}}/{name}"' in str(caught.value)
    assert f"would be {tmp_path / name}." in str(caught.value)
    assert not list(tmp_path.rglob("*.db*")), "nothing was made"


def test_flask_sqlalchemy_with_the_path_that_the_refusal_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stock = flask_engine(tmp_path, "sqlite:///app.db")
    with stock.begin() as connection:
        connection.execute(sa.text("CREATE TABLE note (text)"))
    stock.dispose()
    engine = flask_engine(tmp_path, f"sqlite+oxlite:///{tmp_path / 'instance'}/app.db")
    assert sa.inspect(engine).get_table_names() == ["note"]
    engine.dispose()


@pytest.mark.parametrize(
    "url",
    [
        "sqlite+oxlite://",
        "sqlite+oxlite:///:memory:",
        "sqlite+oxlite:///file::memory:?uri=true",
        "sqlite+oxlite:///file:shared?mode=memory&cache=shared&uri=true",
        "sqlite+oxlite:///file:/shared?vfs=memdb&uri=true",
    ],
)
def test_flask_sqlalchemy_with_a_database_in_memory(tmp_path: Path, url: str) -> None:
    engine = flask_engine(tmp_path, url)
    with engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT 1")) == 1
    engine.dispose()


def test_a_relative_path_is_taken_where_flask_sqlalchemy_does_not_make_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("flask_sqlalchemy")
    monkeypatch.chdir(tmp_path)
    engine = sa.create_engine("sqlite+oxlite:///app.db")
    engine.connect().close()
    engine.dispose()
    assert (tmp_path / "app.db").exists()


def test_sqlmodel(tmp_path: Path) -> None:
    sqlmodel = pytest.importorskip("sqlmodel")

    class Hero(sqlmodel.SQLModel, table=True):  # type: ignore[name-defined,misc,call-arg]
        id: int | None = sqlmodel.Field(default=None, primary_key=True)
        name: str

    engine = sqlmodel.create_engine(f"sqlite+oxlite:///{tmp_path}/app.db")
    sqlmodel.SQLModel.metadata.create_all(engine)
    with sqlmodel.Session(engine) as session:
        session.add(Hero(name="ann"))
        session.commit()
        assert session.exec(sqlmodel.select(Hero.name)).all() == ["ann"]
    engine.dispose()


SCRIPT = '''
"""first"""
import sqlalchemy as sa
from alembic import op
revision, down_revision = "1", None
def upgrade():
    op.create_table("t", sa.Column("id", sa.Integer, primary_key=True), sa.Column("x", sa.Text))
    op.execute("INSERT INTO t (x) VALUES ('kept')")
    with op.batch_alter_table("t") as batch:
        batch.add_column(sa.Column("y", sa.Integer))
    if FAIL:
        raise RuntimeError("in the middle")
def downgrade():
    op.drop_table("t")
'''

ENVIRONMENT = """
from alembic import context
from sqlalchemy import create_engine
from sqlalchemy.dialects import registry
registry.register("sqlite.oxlite", "oxlite.sqlalchemy.dialect", "SQLiteDialect_oxlite")
engine = create_engine(context.config.get_main_option("sqlalchemy.url"))
with engine.connect() as connection:
    context.configure(connection=connection)
    with context.begin_transaction():
        context.run_migrations()
engine.dispose()
"""


REVISION = '''
"""one"""
import sqlalchemy as sa
from alembic import op
revision, down_revision = "NUMBER", DOWN
def upgrade():
    op.create_table("tNUMBER", sa.Column("id", sa.Integer, primary_key=True))
    BODY
'''

BLOCK = """
    with op.get_context().autocommit_block():
        op.execute("SELECT 1")
    op.create_table("behind", sa.Column("id", sa.Integer, primary_key=True))
"""

FAILS = "raise RuntimeError('in the middle')"


def upgrade(folder: Path, options: str, **revisions: str) -> set[str]:
    """Have Alembic upgrade to the newest revision; the tables that are there afterwards."""
    command = pytest.importorskip("alembic.command")
    config_module = pytest.importorskip("alembic.config")
    versions = folder / "migrations" / "versions"
    versions.mkdir(parents=True)
    environment = ENVIRONMENT.replace("connection=connection", f"connection=connection{options}")
    (folder / "migrations" / "env.py").write_text(environment)
    for name, script in revisions.items():
        (versions / f"{name}.py").write_text(script)
    config: Any = config_module.Config()
    config.set_main_option("script_location", str(folder / "migrations"))
    config.set_main_option("path_separator", "os")
    config.set_main_option("sqlalchemy.url", f"sqlite+oxlite:///{folder}/app.db")
    try:
        command.upgrade(config, "head")
    except RuntimeError as error:
        if str(error) != "in the middle":
            raise
    connection = oxlite.connect(folder / "app.db")
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    connection.close()
    return {name for (name,) in tables}


@pytest.mark.parametrize("fails", [False, True])
def test_a_revision_happens_as_a_whole_or_not_at_all(tmp_path: Path, fails: bool) -> None:
    tables = upgrade(tmp_path, "", first=SCRIPT.replace("FAIL", str(fails)))
    assert ("t" in tables) != fails, "DDL is part of the transaction that was rolled back"
    if not fails:
        connection = oxlite.connect(tmp_path / "app.db")
        assert connection.execute("SELECT * FROM t").fetchall() == [(1, "kept", None)]
        connection.close()


@pytest.mark.parametrize(
    ("options", "body", "left"),
    [
        ("", "", {"t1"}),
        (", transaction_per_migration=True", "", {"t1"}),
        (", transactional_ddl=True", "", set()),
        (", transactional_ddl=True, transaction_per_migration=True", "", {"t1"}),
        ("", BLOCK, {"t1", "t2"}),
        (", transactional_ddl=True", BLOCK, {"t1", "t2"}),
    ],
)
def test_what_an_upgrade_leaves_whose_second_revision_fails(
    tmp_path: Path, options: str, body: str, left: set[str]
) -> None:
    """As the guide's table has it."""
    first = REVISION.replace("NUMBER", "1").replace("DOWN", "None").replace("BODY", "")
    second = REVISION.replace("NUMBER", "2").replace("DOWN", "'1'")
    second = second.replace("BODY", f"{body}\n    {FAILS}")
    tables = upgrade(tmp_path, options, first=first, second=second)
    assert tables - {"alembic_version"} == left
