"""A small Django site in a folder of its own, which runs in processes of its own."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.examples.conftest import browser  # noqa: F401 - the same one

pytest.importorskip("django", reason="the extra oxlite[django] is not installed")

SETTINGS = """
import json, os
from pathlib import Path
BASE_DIR = Path(__file__).parent
SECRET_KEY = "a"
DEBUG = False
USE_TZ = True
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["oxlite.django", "notes"]
MIDDLEWARE = []
DATABASES = {
    "default": {
        "ENGINE": "oxlite.django.sqlite3", "NAME": BASE_DIR / "app.db", "OPTIONS": {}, "TEST": {}
    }
}
"""

MODELS = """
from django.db import models

class Author(models.Model):
    name = models.CharField(max_length=40)

class Note(models.Model):
    text = models.CharField(max_length=40, unique=True)
    author = models.ForeignKey(Author, models.CASCADE, null=True)
"""

SET_UP = """
import os, signal, sys, threading, time
import django
django.setup()
from django.db import OperationalError, connection, connections, transaction
import oxlite
from oxlite.django import read_only, read_only_exempt, retry
from notes.models import Author, Note
"""


class Site:
    """A site with the models ``Author`` and ``Note``.

    Attributes:
        folder: Where it is.
        database: The file of its database.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = folder / "app.db"
        self.started: list[subprocess.Popen[str]] = []
        self.write("settings.py", SETTINGS)
        self.write("urls.py", "urlpatterns = []\n")
        self.write("notes/__init__.py", "")
        self.write("notes/models.py", MODELS)
        self.write("notes/migrations/__init__.py", "")

    def write(self, name: str, text: str) -> None:
        """Write a module."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def set(self, text: str) -> None:
        """Add statements to the settings."""
        with (self.folder / "settings.py").open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")

    def migrate(self) -> None:
        """Make the migrations and the tables."""
        for command in (["makemigrations", "notes"], ["migrate"]):
            done = self.manage(*command, "--verbosity", "0")
            assert done.returncode == 0, done.stderr

    def manage(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command of Django's."""
        return self.script("-m", "django", *arguments, stdin=stdin)

    def script(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run Python."""
        return subprocess.run(
            [sys.executable, "-W", "ignore", *arguments],
            capture_output=True,
            text=True,
            timeout=100,
            cwd=self.folder,
            env=self._environment(),
            input=stdin,
        )

    def run(self, script: str) -> str:
        """What a script prints that runs in the site; it must end well."""
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", SET_UP + script],
            capture_output=True,
            text=True,
            timeout=100,
            cwd=self.folder,
            env=self._environment(),
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def start(self, script: str) -> subprocess.Popen[str]:
        """Start a script that runs in the site, with pipes to it; it is ended with the test."""
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", SET_UP + script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self._environment(),
        )
        self.started.append(process)
        return process

    def start_manage(self, *arguments: str, terminal: int) -> subprocess.Popen[str]:
        """Start a command of Django's at a terminal; it is ended with the test."""
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "django", *arguments],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            text=True,
            cwd=self.folder,
            env=self._environment(),
        )
        self.started.append(process)
        return process

    def _environment(self) -> dict[str, str]:
        paths = [str(self.folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "DJANGO_SETTINGS_MODULE": "settings",
        }

    def close(self) -> None:
        """End what was started."""
        for process in self.started:
            process.kill()
            process.communicate()


@pytest.fixture
def new_site(tmp_path: Path) -> Iterator[Site]:
    """A site without migrations and without a database."""
    site = Site(tmp_path / "site")
    yield site
    site.close()


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a site with its tables, of which each test has a copy."""
    site = Site(tmp_path_factory.mktemp("migrated") / "site")
    site.migrate()
    return site.folder


@pytest.fixture
def site(new_site: Site, migrated: Path) -> Site:
    """A site with its tables."""
    shutil.copytree(migrated, new_site.folder, dirs_exist_ok=True)
    return new_site
