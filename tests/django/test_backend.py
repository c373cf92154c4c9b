"""The backend in a site of its own, in a process of its own, on a real file."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("django", reason="the extra oxlite[django] is not installed")

PRELUDE = """
import os, sys
import django
from django.conf import settings
options = eval(sys.argv[2])
settings.configure(
    DATABASES={
        "default": {"ENGINE": "oxlite.django.sqlite3", "NAME": sys.argv[1], "OPTIONS": options}
    },
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes"], USE_TZ=True,
)
django.setup()
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.db import OperationalError, connection, transaction
import oxlite
from oxlite.django import read_only
call_command("migrate", verbosity=0)
"""


def run(path: Path, script: str, options: str = "{}") -> str:
    code = PRELUDE + script
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(path), options],
        capture_output=True,
        text=True,
        timeout=60,
        env={key: value for key, value in os.environ.items() if key != "DJANGO_SETTINGS_MODULE"},
    )
    return done.stdout.strip() if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def test_a_reader_that_writes_is_told_how(tmp_path: Path) -> None:
    said = run(
        tmp_path / "app.db",
        """
try:
    with read_only():
        Group.objects.create(name="a")
except OperationalError as error:
    print("read_only_exempt" in str(error), "transaction.atomic()" in str(error))
Group.objects.create(name="b")
print(*Group.objects.values_list("name", flat=True))
""",
    )
    assert said.split() == ["True", "True", "b"]


def test_the_lock_of_an_outsider_is_an_error_with_its_cause(tmp_path: Path) -> None:
    said = run(
        tmp_path / "app.db",
        """
other = oxlite.connect(sys.argv[1], isolation_level=None)
other.execute("BEGIN IMMEDIATE")
print(Group.objects.count())
try:
    with transaction.atomic():
        pass
except OperationalError as error:
    print(type(error.__cause__).__name__, error.__cause__.holder["process_id"] == os.getpid())
""",
        "{'timeout': 0.2}",
    )
    assert said.split() == ["0", "LockedError", "True"]


def test_a_forked_child_has_a_connection_of_its_own(tmp_path: Path) -> None:
    said = run(
        tmp_path / "app.db",
        """
Group.objects.create(name="a")
if os.fork() == 0:
    Group.objects.create(name="b")
    os._exit(0)
print(os.wait()[1], Group.objects.count())
""",
    )
    assert said == "0 2"


def test_a_connection_is_usable_when_it_is_open(tmp_path: Path) -> None:
    said = run(
        tmp_path / "app.db",
        """
print(connection.is_usable())
connection.close()
print(connection.is_usable())
connection.connect()
print(connection.is_usable())
connection.connection.close()
print(connection.is_usable())
""",
    )
    assert said.split() == ["True", "False", "True", "False"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("{'profil': 'web'}", "did you mean profile?"),
        ("{'isolation_level': None}", "write transaction_mode"),
        ("{'CONN_MAX_AGE': 3}", "beside OPTIONS"),
        ("{'synchronous': 'FULL'}", "is a pragma"),
        ("{'profile': 'wbe'}", "wbe"),
        ("{'TIMEOUT': 3}", "did you mean timeout?"),
        ("{'Transaction_Mode': 'DEFERRED'}", "did you mean transaction_mode?"),
        ("{'PASWORD': 'a'}", "did you mean PASSWORD?"),
        ("{1: 2}", "name is a string, not 1 (int)"),
        ("{'timeout': -1}", "must be a number of seconds, 0 or more, not -1"),
        ("{'timeout': float('nan')}", "must be a number of seconds, 0 or more, not nan"),
        ("{'factory': dict}", "must be a subclass of oxlite.Connection"),
    ],
)
def test_a_typo_is_refused(tmp_path: Path, options: str, says: str) -> None:
    said = run(tmp_path / "app.db", "", options)
    assert "ImproperlyConfigured" in said
    assert says in said
    assert not (tmp_path / "app.db").exists()
