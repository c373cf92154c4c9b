"""Bad input and faults: what cannot be opened, locks of outsiders, processes that are killed."""

import signal
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Site

OUTSIDER = """
import sqlite3
other = sqlite3.connect("app.db", isolation_level=None)
other.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""

MIGRATION = """
import os, signal
from django.db import migrations, models

def fail(apps, schema_editor):
    apps.get_model("notes", "Note").objects.create(text="half", stars=1)
    FAILS

class Migration(migrations.Migration):
    dependencies = [("notes", "0001_initial")]
    operations = [
        migrations.AddField("Note", "stars", models.IntegerField(default=0)),
        migrations.CreateModel("Later", [("id", models.BigAutoField(primary_key=True))]),
        migrations.RunPython(fail),
    ]
"""


def tables(site: "Site") -> set[str]:
    with closing(sqlite3.connect(site.database)) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return {name for (name,) in database.execute("SELECT name FROM sqlite_master")}


def test_a_path_that_cannot_be_written_is_an_error_that_names_it(new_site: "Site") -> None:
    new_site.set('DATABASES["default"]["NAME"] = BASE_DIR / "missing" / "app.db"')
    said = new_site.run("""
try:
    Note.objects.count()
except OperationalError as error:
    print(error)
""")
    assert "unable to open database file" in said
    assert str(new_site.folder / "missing") in said


def test_a_file_that_cannot_be_written_is_read_and_said_to_be_read_only(site: "Site") -> None:
    site.set('DATABASES["default"]["NAME"] = f"file:{BASE_DIR}/app.db?mode=ro"')
    said = site.run("""
print(Note.objects.count())
try:
    Note.objects.create(text="a")
except OperationalError as error:
    print(error)
""")
    count, error = said.splitlines()
    assert count == "0"
    assert "readonly" in error
    assert "read_only()" not in error  # it is the file, not the transaction


def test_the_lock_of_an_outside_process_ends_in_an_error_that_says_who_has_it(
    site: "Site",
) -> None:
    outsider = site.start(OUTSIDER)
    assert outsider.stdout is not None
    assert outsider.stdout.readline() == "locked\n"
    site.set('DATABASES["default"]["OPTIONS"]["timeout"] = 0.2')
    said = site.run("""
print(Note.objects.count())
for write in (lambda: Note.objects.create(text="a"), lambda: transaction.atomic().__enter__()):
    try:
        write()
    except OperationalError as error:
        print(type(error.__cause__).__name__, error)
    connection.close()
""")
    count, *errors = said.splitlines()
    assert count == "0"
    assert len(errors) == 2
    for error in errors:
        assert error.startswith("LockedError database is locked")
        assert "held by process " in error or "who holds it is not known" in error


def test_who_is_killed_in_a_write_neither_holds_up_the_others_nor_loses_what_was_answered(
    site: "Site",
) -> None:
    writer = """
number = 0
while True:
    with transaction.atomic():
        Note.objects.create(text=f"{os.getpid()} {number}")
        Author.objects.create(name="in the middle")
    print(f"{os.getpid()} {number}", flush=True)
    number += 1
"""
    victim, survivor = site.start(writer), site.start(writer)
    assert victim.stdout is not None
    assert survivor.stdout is not None
    answered = [victim.stdout.readline().strip() for _ in range(20)]
    victim.send_signal(signal.SIGKILL)
    assert victim.wait(30) == -signal.SIGKILL
    answered += [line.strip() for line in victim.stdout if line.endswith("\n")]
    since = [survivor.stdout.readline().strip() for _ in range(200)]
    survivor.kill()
    survivor.wait(30)
    said = site.run("""
print(*Note.objects.values_list("text", flat=True), sep="\\n")
Note.objects.create(text="last")
""")
    assert set(answered) | set(since) <= set(said.splitlines())
    assert "notes_note" in tables(site)


def test_who_is_killed_with_the_write_lock_in_its_hands_gives_it_back(site: "Site") -> None:
    victim = site.start("""
with transaction.atomic():
    Note.objects.create(text="half")
    print("written", flush=True)
    sys.stdin.read()
""")
    waiting = site.start("""
Author.objects.count()
print("waits", flush=True)
Note.objects.create(text="whole")
print(*Note.objects.values_list("text", flat=True), flush=True)
""")
    assert victim.stdout is not None
    assert waiting.stdout is not None
    assert victim.stdout.readline() == "written\n"
    assert waiting.stdout.readline() == "waits\n"
    victim.send_signal(signal.SIGKILL)
    assert victim.wait(30) == -signal.SIGKILL
    assert waiting.stdout.readline() == "whole\n"


@pytest.mark.parametrize(
    "fails", ["raise ValueError('no further')", "os.kill(os.getpid(), signal.SIGKILL)"]
)
def test_a_migration_that_is_interrupted_is_rolled_back_and_can_be_run_again(
    site: "Site", fails: str
) -> None:
    before = tables(site)
    site.run('Note.objects.create(text="kept")')
    site.write("notes/migrations/0002_more.py", MIGRATION.replace("FAILS", fails))
    assert site.manage("migrate").returncode in {1, -signal.SIGKILL}
    assert tables(site) == before
    with closing(sqlite3.connect(site.database)) as database:
        assert database.execute("SELECT text FROM notes_note").fetchall() == [("kept",)]
        columns = {row[1] for row in database.execute("PRAGMA table_info(notes_note)")}
    assert "stars" not in columns
    site.write("notes/migrations/0002_more.py", MIGRATION.replace("FAILS", "pass"))
    assert site.manage("migrate").returncode == 0
    assert tables(site) == before | {"notes_later"}


def test_a_typo_in_the_settings_stops_manage_before_a_file_is_made(new_site: "Site") -> None:
    new_site.set('DATABASES["default"]["OPTIONS"] = {"time_out": 3}')
    done = new_site.manage("migrate")
    assert done.returncode == 1
    assert "unknown option 'time_out'; did you mean timeout?" in done.stderr
    assert not new_site.database.exists()


@pytest.mark.parametrize(
    "fails",
    [
        "cursor.execute(FOREVER)",
        "cursor.executemany(ROLLBACK, [('second',), ('first',)])",
        "cursor.execute(FOREVER + ' RETURNING id').fetchall()",
        "list(Note.objects.raw(FOREVER + ' RETURNING id, text'))",
    ],
)
@pytest.mark.parametrize("nested", [False, True])
def test_nothing_is_kept_of_a_transaction_that_sqlite_has_ended_itself(
    site: "Site", fails: str, *, nested: bool
) -> None:
    site.set('DATABASES["default"]["OPTIONS"]["statement_timeout"] = 0.2')
    said = site.run(
        f"FAILS, NESTED = {fails!r}, {nested}\n"
        + """
from contextlib import nullcontext
from django.db import Error
FOREVER = (
    "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers)"
    " INSERT INTO notes_note(text) SELECT 'n' || n FROM numbers"
)
ROLLBACK = "INSERT OR ROLLBACK INTO notes_note(text) VALUES (%s)"
with transaction.atomic():
    Note.objects.create(text="first")
    try:
        with transaction.atomic() if NESTED else nullcontext():
            with connection.cursor() as cursor:
                eval(FAILS)
    except Error as error:
        print(connection.connection.in_transaction)
    try:
        Note.objects.create(text="second")
    except transaction.TransactionManagementError:
        print("refused")
print(Note.objects.count())
with transaction.atomic():
    Note.objects.create(text="third")
    try:
        with transaction.atomic():
            Note.objects.create(text="third")
    except Error:
        Note.objects.create(text="fourth")
print(*Note.objects.order_by("id").values_list("text", flat=True))
"""
    )
    assert said.splitlines() == ["False", "refused", "0", "third fourth"]
