"""What one is shown: the query log, the checks, and the commands of ``manage.py``."""

import json
import shutil
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Site


def test_the_query_log_says_what_a_begin_has_waited_for(site: "Site") -> None:
    said = site.run("""
from django.test.utils import CaptureQueriesContext
begun, waiting = threading.Event(), threading.Event()

def hold():
    with transaction.atomic():
        Note.objects.create(text="a")
        begun.set()
        waiting.wait()
        time.sleep(0.3)
    connection.close()

thread = threading.Thread(target=hold)
connection.ensure_connection()
thread.start()
begun.wait()
with CaptureQueriesContext(connection) as captured:
    waiting.set()
    with transaction.atomic():
        Note.objects.count()
thread.join()
print(*(query["sql"] for query in captured.captured_queries), sep="\\n")
""")
    begin, select, commit = said.splitlines()
    assert begin.startswith("BEGIN IMMEDIATE /* waited 0.")
    assert begin.endswith(" s for the write lock */")
    assert "/*" not in select + commit


@pytest.mark.parametrize("write", ['Note.objects.create(text="b")', "atomic()"])
def test_the_query_log_names_who_has_the_lock(site: "Site", write: str) -> None:
    site.set('DATABASES["default"]["OPTIONS"]["timeout"] = 0.2')
    said = site.run(
        f"WRITE = {write!r}\n"
        + """
from django.test.utils import CaptureQueriesContext
other = oxlite.connect("app.db", isolation_level=None)
other.execute("BEGIN IMMEDIATE")

def atomic():
    with transaction.atomic():
        pass

with CaptureQueriesContext(connection) as captured:
    try:
        eval(WRITE)
    except OperationalError:
        pass
print(captured.captured_queries[-1]["sql"], str(os.getpid()) in captured[-1]["sql"])
"""
    )
    assert "/* database is locked" in said
    assert said.endswith("*/ True")


def test_a_good_site_has_nothing_to_be_told(site: "Site") -> None:
    done = site.manage("check", "--database", "default", "--fail-level", "INFO")
    assert done.returncode == 0, done.stderr
    assert "no issues" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("setting", "number", "says"),
    [
        (
            'DATABASES["default"].update(NAME=":memory:",'
            ' OPTIONS={"pragmas": {"mmap_size": 1_000_000}})',
            "W001",
            "mmap_size = 1000000 has no effect",
        ),
        (
            'DATABASES["default"]["OPTIONS"]["init_command"] = "PRAGMA synchronous = OFF;"',
            "W003",
            "init_command sets synchronous = 0",
        ),
        (
            'DATABASES["other"] = {"ENGINE": "django.db.backends.sqlite3",'
            ' "NAME": BASE_DIR / "notes" / ".." / "app.db"}',
            "W006",
            "'other' opens app.db by another SQLite",
        ),
        (
            'DATABASES["default"]["NAME"] = BASE_DIR / "missing" / "app.db"',
            "E001",
            "unable to open",
        ),
    ],
)
def test_a_check_says_what_will_hurt(site: "Site", setting: str, number: str, says: str) -> None:
    site.set(setting)
    done = site.manage("check", "--database", "default", "--fail-level", "WARNING")
    assert done.returncode == 1
    assert f"(oxlite.{number})" in done.stderr
    assert says in done.stderr


def test_a_check_names_foreign_keys_without_an_index(new_site: "Site") -> None:
    models = (new_site.folder / "notes" / "models.py").read_text(encoding="utf-8")
    new_site.write("notes/models.py", models.replace("null=True", "null=True, db_index=False"))
    new_site.migrate()
    done = new_site.manage("check", "--database", "default")
    assert "(oxlite.W004) default: the foreign key notes_note.author_id has no index" in done.stderr
    assert done.stderr.count("oxlite.W004") == 1


def test_a_check_says_that_processes_cannot_stand_in_line(site: "Site") -> None:
    gate = site.folder / "app.db-gate"
    gate.unlink(missing_ok=True)
    gate.mkdir()
    done = site.manage("check", "--database", "default")
    assert "(oxlite.W002) default: writers of other processes are not stood in line" in done.stderr
    assert "app.db-gate" in done.stderr


@pytest.mark.parametrize(
    ("machine", "says"),
    [
        ('file.write_text("1 0 0:1 / / rw - nfs4 server:/ rw\\n")', "(oxlite.W005)"),
        ('file.unlink(missing_ok=True); sys.modules["psutil"] = None', "no issues"),
    ],
)
def test_a_check_names_a_network_file_system_where_one_can_tell(
    site: "Site", machine: str, says: str
) -> None:
    # A network file system cannot be mounted in a test: the table of mounts is another file.
    said = site.run(f"""
from pathlib import Path
from django.core.management import call_command
from oxlite.environment import filesystem
file = filesystem._MOUNT_TABLE = Path("mounts")
{machine}
sys.stderr = sys.stdout
call_command("check", databases=["default"])
""")
    assert says in said


def test_a_check_waits_for_nobody_and_writes_nothing(site: "Site") -> None:
    said = site.run("""
from django.core.management import call_command
Note.objects.count()
other = oxlite.connect("app.db", isolation_level=None)
version = other.execute("PRAGMA data_version").fetchone()
call_command("check", databases=["default"], fail_level="INFO")
print(other.execute("PRAGMA data_version").fetchone() == version)
other.execute("BEGIN IMMEDIATE")
call_command("check", databases=["default"], fail_level="INFO")
other.execute("ROLLBACK")
with transaction.atomic():
    Note.objects.create(text="a")
    call_command("check", databases=["default"], fail_level="INFO")
print(Note.objects.count())
""")
    assert [line for line in said.splitlines() if not line.startswith("System")] == ["True", "1"]


def test_manage_oxlite_fills_in_the_database(site: "Site") -> None:
    pytest.importorskip("typer", reason="the extra oxlite[cli] is not installed")
    site.run('connection.cursor().execute("PRAGMA user_version = 4711")')
    done = site.manage("oxlite", "env", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["connection"]["pragmas"]["user_version"] == 4711
    assert site.manage("oxlite", "no-such-command").returncode != 0
    site.set('DATABASES["default"]["NAME"] = ":memory:"')
    refused = site.manage("oxlite", "env")
    assert refused.returncode == 1
    assert "names no file" in refused.stderr


@pytest.mark.parametrize("program", ["installed", "missing"])
def test_dbshell_runs_sql(site: "Site", program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if program == "missing":
        monkeypatch.setenv("PATH", str(site.folder))
    elif shutil.which("sqlite3") is None:
        pytest.skip("the program sqlite3 is not installed")
    site.run('Note.objects.create(text="by the shell")')
    done = site.manage("dbshell", "--", "SELECT text FROM notes_note")
    assert done.returncode == 0, done.stderr
    assert "by the shell" in done.stdout


def test_what_is_dumped_can_be_loaded(site: "Site") -> None:
    site.run("""
author = Author.objects.create(name="ä")
Note.objects.create(text="a", author=author)
""")
    dump = site.manage("dumpdata", "notes")
    assert dump.returncode == 0, dump.stderr
    assert site.manage("flush", "--noinput").returncode == 0
    assert site.run("print(Note.objects.count())") == "0"
    loaded = site.manage("loaddata", "--format", "json", "-", stdin=dump.stdout)
    assert loaded.returncode == 0, loaded.stderr
    assert site.run("print(Note.objects.get().text, Note.objects.get().author.name)") == "a ä"


def test_fixtures_with_a_dangling_key_are_refused(site: "Site") -> None:
    fixture = json.dumps(
        [{"model": "notes.note", "pk": 1, "fields": {"text": "a", "author": 99}}],
    )
    loaded = site.manage("loaddata", "--format", "json", "-", stdin=fixture)
    assert loaded.returncode == 1
    assert "IntegrityError" in loaded.stderr
    assert site.run("print(Note.objects.count())") == "0"


def test_a_database_is_turned_into_models(site: "Site") -> None:
    done = site.manage("inspectdb")
    assert done.returncode == 0, done.stderr
    assert "class NotesNote(models.Model):" in done.stdout
    assert "models.ForeignKey(NotesAuthor, models.DO_NOTHING" in done.stdout
    assert "text = models.CharField(unique=True, max_length=40)" in done.stdout
