"""The examples on both: filled on SQLite, promoted, used on PostgreSQL; configuration is all."""

import importlib.util
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from tests.examples.test_notes import FORMS, Client, drive, serve
from tests.promotion.conftest import Place

from oxlite import sqlite3
from oxlite.promotion import Promoted, Settings, promote, sample

POSTGRESQL = "django.db.backends.postgresql"


def moved(database: Path, place: Place, settings: Settings) -> Promoted:
    return promote(
        database,
        place.url,
        settings,
        cut_over=True,
        tell=lambda _name, _done, _total: None,
        report=lambda _plan: None,
    )


@pytest.mark.parametrize("form", FORMS)
def test_notes(form: str, place: Place, tmp_path: Path) -> None:
    for module in FORMS[form][0]:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    database = tmp_path / "notes.db"
    with serve(form, f"sqlite+oxlite:///{database}", tmp_path) as port:
        client = Client(port)
        for number in range(1, 31):
            status, _ = client.ask("POST", "/notes", {"text": f"note {number} \N{SNOWMAN}"})
            assert status == 201
        for _ in range(3):
            assert client.ask("POST", "/notes/1/star")[0] == 200
        before = client.ask("GET", "/notes")
    assert moved(database, place, Settings()).rows == {"note": 30}

    url = place.url.replace("postgresql://", "postgresql+psycopg://")
    with serve(form, url, tmp_path) as port:
        client = Client(port)
        assert client.ask("GET", "/notes") == before
        assert client.ask("POST", "/notes", {"text": "the next"})[1]["id"] == 31
        answers, given, stars = drive(port)
        assert client.ask("GET", "/notes/999999")[0] == 404
        assert client.ask("POST", "/notes", {"text": ""})[0] in {400, 422}
    assert answers.keys() == {"good"}
    assert stars == 3 + given > 3


@pytest.fixture
def blog(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a blog that has moved to PostgreSQL, where migrations made the tables."""
    from tests.examples import test_blog as example

    for command in (["migrate"], ["seed_blog", "--users", "20", "--posts", "100"]):
        done = example.manage(*command, engine="oxlite.django.sqlite3", folder=tmp_path)
        assert done.returncode == 0, done.stderr
    name, _, host = place.url.removeprefix("postgresql://postgres@/").partition("?host=")
    for variable, value in {"BLOG_DATABASE": name, "PGHOST": host, "PGUSER": "postgres"}.items():
        monkeypatch.setenv(variable, value)
    done = example.manage("migrate", engine=POSTGRESQL, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = moved(tmp_path / "blog.db", place, Settings(is_existing=True)).rows
    assert (rows["blog_user"], rows["blog_post"]) == (20, 100)
    return tmp_path


def counted(place: Place) -> Counter[str]:
    ((posts, comments),) = place.rows(
        "SELECT (SELECT count(*) FROM blog_post), (SELECT count(*) FROM blog_comment)"
    )
    return Counter(posts=posts, comments=comments)


@pytest.mark.slow
def test_the_blog(blog: Path, place: Place) -> None:
    from tests.examples import test_blog as example

    with example.served("gunicorn", blog, POSTGRESQL) as port:
        example.use(port)
        before = counted(place)
        answers, changes = example.drive(port, "balanced")
    print(f"gunicorn on PostgreSQL: {dict(answers)}, {dict(changes)}")
    assert answers["good"]
    after = counted(place)
    for name in before:
        assert after[name] == before[name] + changes[name]


@pytest.mark.slow
@pytest.mark.skipif(
    not (importlib.util.find_spec("django.tasks") or importlib.util.find_spec("django_tasks")),
    reason="neither Django's tasks nor django-tasks are installed",
)
def test_the_blogs_tasks_stay_in_a_file(blog: Path, place: Place) -> None:
    from tests.examples import test_blog as example

    example.send_a_mail(POSTGRESQL, blog)
    with closing(sqlite3.connect(blog / "tasks.db")) as connection:
        assert connection.execute("SELECT count(*) FROM oxlite_task").fetchone() == (1,)
    assert place.rows("SELECT body FROM blog_comment WHERE body = 'Well said'")


@pytest.mark.slow
def test_a_sample_of_the_blog_is_a_blog(
    blog: Path, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.examples import test_blog as example

    (tmp_path / "developer").mkdir()
    database = tmp_path / "developer" / "blog.db"
    done = sample(place.url, database)
    assert (done.rows["blog_user"], done.rows["blog_post"]) == (20, 100)
    monkeypatch.delenv("BLOG_DATABASE")
    checked = example.manage(
        *("migrate", "--check"), engine="oxlite.django.sqlite3", folder=database.parent
    )
    assert checked.returncode == 0, checked.stderr
    with example.served("gunicorn", database.parent) as port:
        example.use(port)
