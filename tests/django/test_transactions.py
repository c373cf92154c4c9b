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
    print(type(error.__cause__).__name__, len(runs))
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
        "StaleSnapshotError 2",
        "IntegrityError 1",
        "nested 1",
    ]


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
