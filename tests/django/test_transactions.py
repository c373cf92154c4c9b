"""``retry()``, ``read_only()`` and ``ReadOnlyMiddleware``, in every order they meet."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Site

VIEWS = """
from django.db import transaction
from django.http import HttpResponse
from django.urls import path
from notes.models import Note
from oxlite.django import read_only_exempt

def count(request):
    return HttpResponse(Note.objects.count())

def write(request):
    Note.objects.create(text=f"{request.method} {Note.objects.count()}")
    return HttpResponse("written")

@read_only_exempt
def exempt(request):
    return write(request)

@transaction.non_atomic_requests
def without(request):
    return write(request)

urlpatterns = [
    path("count", count),
    path("write", write),
    path("exempt", exempt),
    path("without", without),
]
"""


def test_a_stale_snapshot_is_retried_and_no_other_error_is(site: "Site") -> None:
    site.set('DATABASES["default"]["OPTIONS"]["transaction_mode"] = "DEFERRED"')
    said = site.run("""
other = oxlite.connect("app.db", isolation_level=None)
runs = []

@retry
@transaction.atomic
def stale():
    runs.append(Note.objects.count())
    if len(runs) < 3:
        other.execute("INSERT INTO notes_note(text) VALUES (?)", (f"other {len(runs)}",))
    Note.objects.create(text="mine")
    return "answer"

print(stale(), runs)
runs.clear()

@retry(attempts=2)
@transaction.atomic
def always_stale():
    runs.append(Note.objects.count())
    other.execute("INSERT INTO notes_note(text) VALUES (?)", (f"again {time.monotonic_ns()}",))
    Note.objects.create(text="never")

try:
    always_stale()
except OperationalError as error:
    print(type(error.__cause__).__name__, len(runs), "iterator()" in str(error))
runs.clear()

@retry
@transaction.atomic
def broken():
    runs.append(1)
    Note.objects.create(text="mine")

try:
    broken()
except Exception as error:
    print(type(error).__name__, len(runs))
runs.clear()
try:
    with transaction.atomic():
        always_stale()
except OperationalError as error:
    print("nested", len(runs))
""")
    assert said.splitlines() == [
        "answer [0, 1, 2]",
        "StaleSnapshotError 2 False",
        "IntegrityError 1",
        "nested 1",
    ]


@pytest.mark.parametrize(
    "committed",
    [
        "an on_commit() hook",
        "an earlier atomic()",
        "a write outside",
        "a table",
        "another database",
    ],
)
def test_what_has_committed_something_is_not_run_again(site: "Site", committed: str) -> None:
    site.set("""
DATABASES["default"]["OPTIONS"]["transaction_mode"] = "DEFERRED"
DATABASES["other"] = {**DATABASES["default"], "NAME": BASE_DIR / "other.db"}
""")
    assert site.manage("migrate", "--database", "other").returncode == 0
    said = site.run(
        f"COMMITTED = {committed!r}\n"
        + """
other = oxlite.connect("app.db", isolation_level=None)
runs = []

def stale():
    with transaction.atomic():
        Note.objects.count()
        other.execute("INSERT INTO notes_author(name) VALUES ('other')")
        Note.objects.create(text=f"receipt {len(runs)}")

@retry
def pay():
    runs.append(1)
    if COMMITTED == "an on_commit() hook":
        with transaction.atomic():
            transaction.on_commit(stale)
            Note.objects.create(text=f"payment {len(runs)}")
        return
    if COMMITTED == "an earlier atomic()":
        with transaction.atomic():
            Note.objects.create(text=f"payment {len(runs)}")
    elif COMMITTED == "a table":  # no row is changed
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE payment_{len(runs)} (x)")
    elif COMMITTED == "a write outside":
        Note.objects.create(text=f"payment {len(runs)}")
    else:
        with transaction.atomic(using="other"):
            Note.objects.using("other").create(text=f"payment {len(runs)}")
    stale()

try:
    pay()
except OperationalError as error:
    print(type(error.__cause__).__name__, *error.__notes__, sep=": ")
print(*Note.objects.values_list("text", flat=True))
print(*Note.objects.using("other").values_list("text", flat=True))
"""
    )
    error, *payments = said.splitlines()
    assert error.startswith("StaleSnapshotError: a transaction of it was already committed")
    assert "it is not run again" in error
    assert "".join(payments) == ("" if committed == "a table" else "payment 1")


def test_what_was_only_read_or_taken_back_is_no_reason_not_to_run_again(site: "Site") -> None:
    site.set("""
DATABASES["default"]["OPTIONS"]["transaction_mode"] = "DEFERRED"
DATABASES["other"] = {**DATABASES["default"], "NAME": BASE_DIR / "other.db"}
""")
    assert site.manage("migrate", "--database", "other").returncode == 0
    said = site.run("""
other = oxlite.connect("app.db", isolation_level=None)
runs = []

@retry
def work():
    runs.append(1)
    Note.objects.using("other").count()  # which is opened by it
    with read_only():
        Note.objects.count()
    try:
        with transaction.atomic():
            Note.objects.create(text="taken back")
            raise ValueError
    except ValueError:
        pass
    with transaction.atomic():
        Note.objects.count()
        if len(runs) < 3:
            other.execute("INSERT INTO notes_author(name) VALUES ('other')")
        Note.objects.create(text="written")

work()
print(len(runs), *Note.objects.values_list("text", flat=True))
""")
    assert said == "3 written"


def test_a_decorated_function_only_reads_and_what_follows_writes(site: "Site") -> None:
    said = site.run("""
@read_only
def bare(write):
    Note.objects.create(text="no") if write else print(Note.objects.count())

@read_only(using="default")
def named(write):
    Note.objects.create(text="no") if write else print(Note.objects.count())

for function in (bare, named):
    function(False)
    try:
        function(True)
    except OperationalError as error:
        print("only reads" in str(error))
    Note.objects.create(text=function.__name__)
print(*Note.objects.values_list("text", flat=True))
""")
    assert said.split() == ["0", "True", "1", "True", "bare", "named"]


def test_read_only_inside_atomic_and_atomic_inside_read_only(site: "Site") -> None:
    said = site.run("""
with transaction.atomic():
    Note.objects.create(text="before")
    with read_only():
        print(Note.objects.count())
        with read_only():
            pass
        try:
            with transaction.atomic():
                Note.objects.create(text="no")
        except OperationalError:
            print("refused")
    Note.objects.create(text="after")
with read_only():
    with transaction.atomic():
        print(Note.objects.count())
    try:
        with transaction.atomic():
            Note.objects.create(text="no")
    except OperationalError:
        print("refused")
    print(Note.objects.count())
try:
    with transaction.atomic():
        try:
            with read_only():
                raise ValueError("a reader that fails")
        except ValueError:
            Note.objects.create(text="after it")
finally:
    print(*Note.objects.order_by("id").values_list("text", flat=True), sep=", ")
""")
    assert said.splitlines() == [
        "1", "refused", "2", "refused", "2", "before, after, after it",
    ]  # fmt: skip


def test_a_snapshot_stands_still_while_others_write_and_holds_up_nobody(site: "Site") -> None:
    said = site.run("""
other = oxlite.connect("app.db", isolation_level=None)
with read_only():
    print(Note.objects.count())
    other.execute("INSERT INTO notes_note(text) VALUES ('other')")
    print(Note.objects.count())
print(Note.objects.count())
""")
    assert said.split() == ["0", "0", "1"]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_get_only_reads_post_writes_and_an_exempt_view_does_both(
    site: "Site", *, asynchronous: bool
) -> None:
    site.write("urls.py", VIEWS)
    site.set('MIDDLEWARE = ["oxlite.django.middleware.ReadOnlyMiddleware"]')
    site.set('DATABASES["default"]["ATOMIC_REQUESTS"] = True')
    said = site.run(
        f"ASYNCHRONOUS = {asynchronous}\n"
        + """
import asyncio
from django.test import AsyncClient, Client
def ask(method, path):
    async def later():
        return await getattr(AsyncClient(), method)(path)
    try:
        answer = asyncio.run(later()) if ASYNCHRONOUS else getattr(Client(), method)(path)
    except OperationalError as error:
        return "refused" if "read_only_exempt" in str(error) else str(error)
    return answer.content.decode()

print(ask("get", "/count"))
print(ask("get", "/write"))
print(ask("get", "/exempt"))
print(ask("post", "/write"))
print(ask("get", "/without"))
print(ask("get", "/count"))
print(ask("head", "/write"))
Note.objects.create(text="outside")
print(Note.objects.count())
"""
    )
    assert said.splitlines() == [
        "0", "refused", "written", "written", "written", "3", "refused", "4",
    ]  # fmt: skip


def test_a_transaction_of_who_prepares_a_connection_is_not_the_views(site: "Site") -> None:
    site.write("urls.py", VIEWS)
    site.set("""
MIDDLEWARE = ["oxlite.django.middleware.ReadOnlyMiddleware"]
DATABASES["default"]["ATOMIC_REQUESTS"] = True
from django.db.backends.signals import connection_created
from django.dispatch import receiver
@receiver(connection_created)
def prepare(connection, **_):
    from django.db import transaction
    from notes.models import Note
    with transaction.atomic():
        Note.objects.create(text="prepared")
""")
    said = site.run("""
from django.test import Client
connection.close()
Note.objects.all().delete()
connection.close()
try:
    print(Client().get("/write").content.decode())
except OperationalError as error:
    print("read_only_exempt" in str(error), *Note.objects.values_list("text", flat=True))
""")
    assert said == "True prepared"


TESTS = """
from django.db import OperationalError, connection, transaction
from django.test import TestCase
from notes.models import Note

class Requests(TestCase):
    def test_requests(self):
        for _ in range(2):
            before = Note.objects.count()
            self.assertEqual(self.client.get("/count").content, str(before).encode())
            self.assertFalse(connection.only_reads)
            with self.assertRaisesMessage(OperationalError, "read_only_exempt"):
                self.client.get("/write")
            self.assertFalse(connection.only_reads)
            Note.objects.create(text=f"by the test {before}")
            self.assertEqual(self.client.get("/exempt").content, b"written")
            self.assertEqual(self.client.post("/write").content, b"written")
            self.assertEqual(self.client.get("/without").content, b"written")
            with transaction.atomic():
                with self.assertRaisesMessage(OperationalError, "read_only_exempt"):
                    self.client.get("/write")
                Note.objects.create(text=f"after it {before}")
            self.assertEqual(Note.objects.count(), before + 5)
"""


def test_requests_of_a_test_case_only_read_too(site: "Site") -> None:
    site.write("urls.py", VIEWS)
    site.write("notes/tests.py", TESTS)
    site.set('MIDDLEWARE = ["oxlite.django.middleware.ReadOnlyMiddleware"]')
    site.set('DATABASES["default"]["ATOMIC_REQUESTS"] = True')
    done = site.manage("test", "--noinput")
    assert done.returncode == 0, done.stderr
    assert "Ran 1 test" in done.stderr


def test_read_only_where_the_site_begins_its_transactions_itself(site: "Site") -> None:
    said = site.run("""
transaction.set_autocommit(False)
with read_only():
    try:
        Note.objects.create(text="no")
    except OperationalError:
        print("refused")
transaction.rollback()
Note.objects.create(text="a")
transaction.commit()
transaction.set_autocommit(True)
try:
    with read_only():
        raise KeyboardInterrupt
except KeyboardInterrupt:
    Note.objects.create(text="b")
print(Note.objects.count(), connection.only_reads)
""")
    assert said.splitlines() == ["refused", "2 False"]


def test_one_read_only_object_in_two_threads(site: "Site") -> None:
    said = site.run("""
shared = read_only()
entered, left, gone = threading.Event(), threading.Event(), threading.Event()

def write_afterwards():
    with transaction.atomic():
        with shared:
            entered.set()
            left.wait()
        gone.set()
        Note.objects.create(text="afterwards")
    connection.close()

def only_read():
    entered.wait()
    with read_only():
        with shared:
            left.set()
            gone.wait()
        try:
            Note.objects.create(text="no")
        except OperationalError:
            print("refused")
    connection.close()

threads = [threading.Thread(target=target) for target in (write_afterwards, only_read)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(*Note.objects.values_list("text", flat=True))
""")
    assert said.split() == ["refused", "afterwards"]


def test_read_only_refuses_what_runs_after_it(new_site: "Site") -> None:
    said = new_site.run("""
def generator():
    yield

async def asynchronous():
    yield

async def coroutine():
    pass

for function in (generator, asynchronous, coroutine):
    for decorate in (read_only, read_only()):
        try:
            decorate(function)
        except TypeError as error:
            print(function.__name__ in str(error) or "coroutine" in str(error))
""")
    assert said.split() == ["True"] * 6


@pytest.mark.parametrize(
    "options", ['{"pragmas": {"query_only": True}}', '{"init_command": "PRAGMA query_only = 1"}']
)
def test_a_site_that_only_reads_still_does_after_read_only(site: "Site", options: str) -> None:
    site.set(f'DATABASES["default"]["OPTIONS"] = {options}')
    site.set('DATABASES["default"]["OPTIONS"]["transaction_mode"] = "DEFERRED"')
    said = site.run("""
def write():
    try:
        Note.objects.create(text="no")
    except OperationalError as error:
        print("its OPTIONS set query_only" in str(error), "read_only()" in str(error))

write()
with read_only():
    write()
write()
with transaction.atomic():
    with read_only():
        Note.objects.count()
    write()
""")
    assert said.splitlines() == ["True False"] * 4


def test_read_only_is_ended_by_nothing_else(site: "Site") -> None:
    said = site.run("""
def refused(act):
    try:
        act()
    except (OperationalError, oxlite.sqlite3.OperationalError) as error:
        return "read_only" in str(error) or "readonly" in str(error)

empty = oxlite.sqlite3.connect(":memory:")
with read_only():
    driver = connection.connection
    print(refused(lambda: empty.backup(driver)), refused(lambda: driver.deserialize(b"")))
    for pragma in ("query_only = OFF", "locking_mode = EXCLUSIVE"):
        print(refused(lambda: connection.cursor().execute(f"PRAGMA {pragma}")))
connection.cursor().execute("PRAGMA query_only = ON")
with read_only():
    Note.objects.count()
print(refused(lambda: Note.objects.create(text="no")))
connection.cursor().execute("PRAGMA query_only = OFF")
Note.objects.create(text="yes")
""")
    assert said.split() == ["True"] * 5


@pytest.mark.parametrize("way", ["save", "atomic", "inside", "keys"])
def test_a_loop_that_writes_while_its_result_is_open_is_told_how(site: "Site", way: str) -> None:
    said = site.run(
        f"WAY = {way!r}\n"
        + """
from contextlib import nullcontext
Note.objects.bulk_create(Note(text=str(number)) for number in range(300))
other = oxlite.connect("app.db", isolation_level=None, timeout=0)
try:
    with transaction.atomic() if WAY == "inside" else nullcontext():
        notes = Note.objects.order_by("id")
        keys = notes.values_list("pk", flat=True)
        for key in list(keys) if WAY == "keys" else keys.iterator(chunk_size=10):
            if WAY != "inside":
                other.execute("INSERT INTO notes_author(name) VALUES ('other')")
            with transaction.atomic() if WAY == "atomic" else nullcontext():
                Note.objects.filter(pk=key).update(text=f"new {key}")
except OperationalError as error:
    print(type(error.__cause__).__name__, "iterator()" in str(error), "list of keys" in str(error))
del keys, notes
print(Note.objects.filter(text__startswith="new").count())
"""
    )
    if way in {"inside", "keys"}:
        assert said == "300"
    else:
        assert said.splitlines() == ["StaleSnapshotError True True", "0"]


NEVER_WRITES = {
    "pragmas": """
DATABASES["default"]["OPTIONS"] = {"pragmas": {"query_only": True}}
""",
    "pragmas and a mode": """
DATABASES["default"]["OPTIONS"] = {
    "pragmas": {"query_only": True}, "transaction_mode": "EXCLUSIVE"
}
""",
    "init_command": """
DATABASES["default"]["OPTIONS"] = {"init_command": "PRAGMA query_only = 1"}
""",
    "a receiver": """
from django.db.backends.signals import connection_created
from django.dispatch import receiver
@receiver(connection_created)
def prepare(connection, **_):
    if connection.alias == "default":
        connection.cursor().execute("PRAGMA query_only = 1")
""",
    "a URI": """
DATABASES["default"]["NAME"] = f"file:{BASE_DIR}/app.db?mode=ro"
""",
}


@pytest.mark.parametrize("holder", ["a thread", "a process"])
@pytest.mark.parametrize("way", NEVER_WRITES)
def test_an_alias_that_only_reads_waits_for_no_writer(site: "Site", way: str, holder: str) -> None:
    site.set('DATABASES["writer"] = {**DATABASES["default"]}')
    site.set(NEVER_WRITES[way])
    site.set('DATABASES["default"]["OPTIONS"]["timeout"] = 60')
    site.run('Note.objects.using("writer").create(text="before")')
    said = site.run(
        f"HOLDER = {holder!r}\n"
        + """
import subprocess
from django.test.utils import CaptureQueriesContext
held, finished = threading.Event(), threading.Event()

def hold():
    with transaction.atomic(using="writer"):
        Note.objects.using("writer").create(text="not committed")
        held.set()
        # Who waits for this lock waits until that, or his own minute.
        print("held", finished.wait(100), flush=True)
    connections.close_all()

OUTSIDER = (
    "import oxlite, sys; c = oxlite.connect('app.db', isolation_level=None);"
    "c.execute('BEGIN IMMEDIATE'); print('locked', flush=True); sys.stdin.read()"
)
if HOLDER == "a thread":
    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
else:
    process = subprocess.Popen(
        [sys.executable, "-c", OUTSIDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    process.stdout.readline()
with CaptureQueriesContext(connection) as captured:
    with transaction.atomic():
        with transaction.atomic():
            print(*Note.objects.select_for_update().values_list("text", flat=True))
    with transaction.atomic(durable=True):
        print(Note.objects.count())
    with read_only(), transaction.atomic():
        print(Note.objects.count())
if HOLDER == "a thread":
    finished.set()
    thread.join()
else:
    process.communicate()
print(*{query["sql"] for query in captured.captured_queries if "BEGIN" in query["sql"]})
"""
    )
    lines = said.splitlines()
    held = ["held True"] if holder == "a thread" else []
    begin = "BEGIN IMMEDIATE BEGIN DEFERRED" if way == "a URI" else "BEGIN DEFERRED"
    assert lines[:-1] == ["before", "1", "1", *held]
    assert set(lines[-1].split()) == set(begin.split())


@pytest.mark.parametrize("way", NEVER_WRITES)
def test_a_write_is_refused_in_any_transaction_of_an_alias_that_only_reads(
    site: "Site", way: str
) -> None:
    site.set('DATABASES["writer"] = {**DATABASES["default"]}')
    site.set(NEVER_WRITES[way])
    said = site.run("""
from contextlib import nullcontext
for context in (nullcontext, transaction.atomic, lambda: transaction.atomic(durable=True)):
    with context():
        Note.objects.count()
    try:
        with context():
            Note.objects.count()
            with transaction.atomic():
                Note.objects.create(text="no")
    except OperationalError as error:
        print(error.__cause__.sqlite_errorname, "attempt to write a readonly" in str(error))
    print(Note.objects.count(), connection.in_atomic_block, connection.connection.in_transaction)
""")
    assert said.splitlines() == ["SQLITE_READONLY True", "0 False False"] * 3


def test_what_an_alias_that_only_reads_has_ended_is_no_reason_not_to_run_again(
    site: "Site",
) -> None:
    site.set('DATABASES["default"]["OPTIONS"]["transaction_mode"] = "DEFERRED"')
    site.set('DATABASES["reader"] = {**DATABASES["default"]}')
    site.set('DATABASES["reader"]["OPTIONS"] = {"pragmas": {"query_only": True}}')
    said = site.run("""
other = oxlite.connect("app.db", isolation_level=None)
runs = []

@retry
def work():
    runs.append(1)
    with transaction.atomic(using="reader"):
        Note.objects.using("reader").count()
    with transaction.atomic():
        Note.objects.count()
        if len(runs) < 3:
            other.execute("INSERT INTO notes_author(name) VALUES ('other')")
        Note.objects.create(text="written")

work()
print(len(runs), Note.objects.get().text)
""")
    assert said == "3 written"


def test_a_notification_leaves_with_the_transaction_of_an_alias(site: "Site") -> None:
    said = site.run("""
db = oxlite.Database("app.db")
listener = db.listen("notes", timeout=30)
try:
    with transaction.atomic():
        db.notify("notes", "never", connection="default")
        raise ZeroDivisionError
except ZeroDivisionError:
    pass
with transaction.atomic():
    Note.objects.create(text="one")
    db.notify("notes", "one", connection="default")
print(next(listener).payload)
db.close()
""")
    assert said.splitlines()[-1] == "one"
