"""The engine by its two names, by the URL of its database, and beside other backends."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Site

ENGINES = ["oxlite.django.sqlite3", "oxlite.django"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_site_works_by_either_name_of_the_engine(new_site: "Site", engine: str) -> None:
    new_site.set(f'DATABASES["default"]["ENGINE"] = {engine!r}')
    new_site.migrate()
    said = new_site.run("""
with transaction.atomic():
    Note.objects.create(text="a")
with read_only():
    try:
        Note.objects.create(text="b")
    except OperationalError:
        print("refused")
print(type(connections["default"]).__module__, connection.vendor, Note.objects.get().text)
""")
    assert said.splitlines() == ["refused", "oxlite.django.sqlite3.base sqlite a"]
    done = new_site.manage("check", "--database", "default", "--fail-level", "INFO")
    assert done.returncode == 0, done.stderr


def test_the_two_names_are_one_backend_in_one_site(site: "Site") -> None:
    site.set('DATABASES["other"] = {**DATABASES["default"], "ENGINE": "oxlite.django"}')
    said = site.run("""
print(type(connections["other"]) is type(connections["default"]))
with transaction.atomic():
    Note.objects.create(text="a")
print(Note.objects.using("other").get().text)
""")
    assert said.split() == ["True", "a"]
    done = site.manage("check", "--database", "default", "--database", "other")
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout + done.stderr


URLS = {
    "an argument": 'dj_database_url.config(engine="oxlite.django.sqlite3", conn_max_age=600)',
    "a scheme": 'dj_database_url.register("sqlite", "oxlite.django.sqlite3") and'
    " dj_database_url.config(conn_max_age=600)",
}


@pytest.mark.parametrize("form", URLS)
def test_a_site_is_configured_by_the_url_of_its_database(
    new_site: "Site", form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("dj_database_url", reason="dj-database-url is not installed")
    query = "timeout=7&profile=durable&transaction_mode=DEFERRED"
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{new_site.database}?{query}")
    new_site.set(f"import dj_database_url\nDATABASES = {{'default': {URLS[form]}}}")
    new_site.migrate()
    said = new_site.run("""
Note.objects.create(text="a")
settings = connection.settings_dict
print(settings["ENGINE"], settings["CONN_MAX_AGE"], connection.transaction_mode)
print(connection.connection.profile, connection.connection.timeout, settings["NAME"])
""")
    assert said.splitlines() == [
        "oxlite.django.sqlite3 600 DEFERRED",
        f"durable 7.0 {new_site.database}",
    ]


def test_a_check_names_another_sqlite_by_whatever_engine_it_comes(site: "Site") -> None:
    site.write("measured/base.py", "from django.db.backends.sqlite3.base import DatabaseWrapper\n")
    site.write("measured/__init__.py", "")
    site.set('DATABASES["other"] = {**DATABASES["default"], "ENGINE": "measured"}')
    site.set('DATABASES["broken"] = {**DATABASES["default"], "ENGINE": "no.such.engine"}')
    done = site.manage("check", "--database", "default", "--fail-level", "WARNING")
    assert done.returncode == 1
    assert "(oxlite.W006) default: the database 'other' opens app.db by another" in done.stderr
    assert done.stderr.count("oxlite.W006") == 1


def test_read_only_says_which_engine_it_needs(site: "Site") -> None:
    site.set('DATABASES["default"]["ENGINE"] = "django.db.backends.sqlite3"')
    said = site.run("""
try:
    with read_only():
        pass
except Exception as error:
    print(type(error).__name__, error)
""")
    assert said.startswith(
        "ImproperlyConfigured read_only() needs the ENGINE 'oxlite.django.sqlite3'"
    )
    assert "'django.db.backends.sqlite3'" in said
