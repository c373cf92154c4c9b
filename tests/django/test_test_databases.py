"""``manage.py test``: test databases in files and in memory, and their clones."""

from typing import TYPE_CHECKING

import pytest

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from conftest import Site

TESTS = """
import os, threading
from django.db import connection, transaction
from django.test import TestCase, TransactionTestCase
from notes.models import Note

class Base:
    def test_a_write(self):
        Note.objects.create(text="one")
        with transaction.atomic():
            Note.objects.create(text="two")
        self.assertEqual(Note.objects.count(), 2)

    def test_it_is_empty(self):
        self.assertEqual(Note.objects.count(), 0)
        self.assertEqual(connection.vendor, "sqlite")
        # Whole lines: where Python does not buffer, print() writes each word by itself.
        os.write(1, f"\\nPROCESS {os.getpid()} {connection.settings_dict['NAME']}\\n".encode())

class One(Base, TestCase): pass
class Two(Base, TestCase): pass
class Three(Base, TransactionTestCase): pass
class Four(Base, TransactionTestCase):
    def test_a_thread_sees_what_is_written(self):
        Note.objects.create(text="one")
        seen = []
        def look():
            seen.append(Note.objects.count())
            connection.close()
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        self.assertEqual(seen, [1])
"""

# Django has its own way to start processes: manage.py.
MANAGE = """
import multiprocessing, sys
from django.core.management import execute_from_command_line

if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv.pop(1))
    execute_from_command_line(sys.argv)
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("where", ["file", "memory"])
def test_tests_run_in_parallel(site: "Site", method: str, where: str) -> None:
    if where == "file":
        site.set('DATABASES["default"]["TEST"]["NAME"] = str(BASE_DIR / "test.db")')
    site.write("notes/tests.py", TESTS)
    site.write("manage.py", MANAGE)
    for again in ([], ["--keepdb"], ["--keepdb"], []):
        done = site.script("manage.py", method, "test", "--parallel", "2", "--noinput", *again)
        assert done.returncode == 0, done.stderr
        assert "Ran 9 tests" in done.stderr
        assert "Found 9 test(s)" in done.stderr + done.stdout
        processes = {
            tuple(line.split()[1:3])
            for line in done.stdout.splitlines()
            if line.startswith("PROCESS")
        }
        names = {name for _, name in processes}
        assert names
        # Never the template itself.
        assert all("_1" in name or "_2" in name for name in names), sorted(map(str, processes))
        if again:
            continue  # what was asked for: they are kept
        left = {path.name for path in site.folder.iterdir()} - {
            "__pycache__", "app.db", "app.db-gate", "manage.py", "notes", "settings.py", "urls.py",
        }  # fmt: skip
        assert left == set()


@pytest.mark.parametrize("command", ["", "PRAGMA synchronous = OFF"])
@pytest.mark.parametrize("where", ["file", "memory"])
def test_tests_run_in_one_process(site: "Site", where: str, command: str) -> None:
    site.set(f'DATABASES["default"]["OPTIONS"]["init_command"] = {command!r}')
    if where == "file":
        site.set('DATABASES["default"]["TEST"]["NAME"] = str(BASE_DIR / "test.db")')
    site.write("notes/tests.py", TESTS)
    done = site.manage("test", "--noinput")
    assert done.returncode == 0, done.stderr
    assert "Ran 9 tests" in done.stderr
    assert ("init_command sets synchronous = 0" in done.stderr) == bool(command)
    assert not [path for path in site.folder.iterdir() if path.name.startswith("test")]


@pytest.mark.parametrize("arguments", [[], ["--parallel", "2"]])
@pytest.mark.parametrize("where", ["file", "memory"])
def test_a_mirror_is_the_database_that_it_mirrors(
    site: "Site", where: str, arguments: list[str]
) -> None:
    if where == "file":
        site.set('DATABASES["default"]["TEST"]["NAME"] = str(BASE_DIR / "test.db")')
    site.set("""
DATABASES["a_replica"] = {**DATABASES["default"], "TEST": {"MIRROR": "default"}}
""")
    site.write(
        "notes/tests.py",
        """
from django.test import TransactionTestCase
from notes.models import Note

class Base:
    databases = {"default", "a_replica"}
    def test_a_write_is_seen(self):
        Note.objects.create(text="one")
        self.assertEqual(Note.objects.using("a_replica").count(), 1)

class One(Base, TransactionTestCase): pass
class Two(Base, TransactionTestCase): pass
""",
    )
    done = site.manage("test", "--noinput", *arguments)
    assert done.returncode == 0, done.stderr
    assert "Ran 2 tests" in done.stderr
