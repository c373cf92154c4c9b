"""Threads, the event loop and forks: each has its connection, and writers stand in line."""

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Site


def test_eight_threads_write_in_transactions_and_without_and_none_fails(site: "Site") -> None:
    site.set('DATABASES["default"]["OPTIONS"]["timeout"] = 60')
    said = site.run("""
errors = []
barrier = threading.Barrier(8)

def write(thread):
    try:
        barrier.wait()
        for number in range(50):
            if (thread + number) % 2:
                with transaction.atomic():
                    before = Author.objects.count()
                    Note.objects.create(text=f"{thread} {number}")
                    Author.objects.create(name=str(before))
            else:
                Note.objects.create(text=f"{thread} {number}")
    except Exception as error:
        errors.append(error)
    finally:
        connections.close_all()

threads = [threading.Thread(target=write, args=(thread,)) for thread in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(errors, Note.objects.count(), Author.objects.count())
print(sorted(map(int, Author.objects.values_list("name", flat=True))) == list(range(200)))
""")
    assert said.splitlines() == ["[] 400 200", "True"]


@pytest.mark.parametrize("write", ['Note.objects.create(text="b")', "atomic()"])
def test_a_writer_waits_in_line_for_another_thread(site: "Site", write: str) -> None:
    said = site.run(
        f"WRITE = {write!r}\n"
        + """
def atomic():
    with transaction.atomic():
        Note.objects.create(text="b")

begun, waiting = threading.Event(), threading.Event()

def wait():
    connection.ensure_connection()
    begun.wait()
    waiting.set()
    eval(WRITE)
    print(connection.connection.queue_statistics()["thread_waits"])
    connection.close()

thread = threading.Thread(target=wait)
thread.start()
with transaction.atomic():
    Note.objects.create(text="a")
    begun.set()
    waiting.wait()
    time.sleep(0.3)
thread.join()
print(*Note.objects.order_by("id").values_list("text", flat=True))
"""
    )
    waited, texts = said.splitlines()
    assert int(waited) >= 1
    assert texts == "a b"


def test_the_orm_in_an_event_loop(site: "Site") -> None:
    said = site.run("""
import asyncio

async def main():
    first = await Note.objects.acreate(text="first")
    await asyncio.gather(*(Note.objects.acreate(text=str(number)) for number in range(50)))
    print((await Note.objects.aget(text="7")).text, await Note.objects.acount())
    await asyncio.gather(*(Note.objects.filter(text=str(n)).adelete() for n in range(25)))
    print(sum([1 async for note in Note.objects.all()]), await Note.objects.aexists())
    try:
        Note.objects.count()
    except Exception as error:
        print(type(error).__name__)

asyncio.run(main())
""")
    assert said.splitlines() == ["7 51", "26 True", "SynchronousOnlyOperation"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_children_and_their_parent_go_on_writing_after_a_fork(site: "Site") -> None:
    said = site.run("""
Note.objects.create(text="before")
children = []
for child in range(3):
    process_id = os.fork()
    if process_id == 0:
        code = 1
        try:
            for number in range(20):
                with transaction.atomic():
                    Note.objects.create(text=f"{child} {number}")
            connections.close_all()
            code = 0
        finally:
            os._exit(code)
    children.append(process_id)
for number in range(20):
    Note.objects.create(text=f"parent {number}")
print([os.waitpid(child, 0)[1] for child in children], Note.objects.count())
""")
    assert said == "[0, 0, 0] 81"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_forked_inside_a_transaction_is_not_in_it(site: "Site") -> None:
    said = site.run("""
with transaction.atomic():
    Note.objects.create(text="parent")
    process_id = os.fork()
    if process_id == 0:
        code = 1
        try:
            Note.objects.create(text="child")
        except Exception as error:
            print(type(error).__name__, "inside transaction.atomic()" in str(error), flush=True)
            print("connections.close_all()" in str(error), "TEST" in str(error), flush=True)
            code = 0
        finally:
            os._exit(code)
    print(os.waitpid(process_id, 0)[1], flush=True)
print(*Note.objects.values_list("text", flat=True))
""")
    assert said.splitlines() == ["ProgrammingError True", "True False", "0", "parent"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_forked_inside_a_transaction_that_closes_has_a_connection_of_its_own(
    site: "Site",
) -> None:
    said = site.run("""
Note.objects.create(text="before")
with transaction.atomic(), transaction.atomic():
    Note.objects.create(text="parent")
    process_id = os.fork()
    if process_id == 0:
        connections.close_all()
        print(*Note.objects.values_list("text", flat=True), connection.in_atomic_block, flush=True)
        with read_only():
            print(Note.objects.count(), flush=True)
        connections.close_all()
    else:
        print(os.waitpid(process_id, 0)[1], flush=True)
if process_id == 0:
    # It has left the blocks of its parent, which has not committed yet.
    print(Note.objects.count(), flush=True)
    os._exit(0)
print(*Note.objects.values_list("text", flat=True))
""")
    assert said.splitlines() == ["before False", "1", "1", "0", "before parent"]


FORKING_TESTS = """
import os
from django.db import connections
from django.test import TestCase, TransactionTestCase
from notes.models import Note

class Base:
    def test_a_child(self):
        Note.objects.create(text="parent")
        reading, writing = os.pipe()
        process_id = os.fork()
        if process_id == 0:
            try:
                Note.objects.create(text="child")
                said = "written"
            except Exception as error:
                said = f"{type(error).__name__}: {error}"
            os.write(writing, said.encode())
            os._exit(0)
        os.close(writing)
        with open(reading) as answer:
            print(f"{type(self).__name__} {answer.read()}", flush=True)
        os.waitpid(process_id, 0)
        print(Note.objects.count(), flush=True)

class InTestCase(Base, TestCase): pass
class InTransactionTestCase(Base, TransactionTestCase): pass
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("where", ["file", "memory"])
def test_a_child_of_a_test_is_told_what_to_do(site: "Site", where: str) -> None:
    if where == "file":
        site.set('DATABASES["default"]["TEST"]["NAME"] = str(BASE_DIR / "test.db")')
    site.write("notes/tests.py", FORKING_TESTS)
    done = site.manage("test", "--noinput")
    assert done.returncode == 0, done.stderr
    in_test_case, first, in_transaction_test_case, second = [
        line for line in done.stdout.splitlines() if line.startswith("In") or line.isdigit()
    ]
    assert in_test_case.startswith("InTestCase ProgrammingError: This connection was opened before")
    assert "use TransactionTestCase" in in_test_case
    assert ("['default']['TEST']['NAME']" in in_test_case) == (where == "memory")
    if where == "file":
        assert in_transaction_test_case == "InTransactionTestCase written"
        assert (first, second) == ("1", "2")
    else:
        assert "use TransactionTestCase" not in in_transaction_test_case
        assert "['default']['TEST']['NAME']" in in_transaction_test_case
        assert (first, second) == ("1", "1")
