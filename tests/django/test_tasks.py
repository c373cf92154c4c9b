"""Django's tasks in a site's own database, and in a file of their own."""

import signal
import socket
import subprocess
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest
from tests.wait import until

if TYPE_CHECKING:
    from conftest import Site

if not find_spec("django.tasks") and not find_spec("django_tasks"):
    pytest.skip("Django before 6.0, without django-tasks", allow_module_level=True)

SETTINGS = """
INSTALLED_APPS += ["oxlite.django.tasks"]
TASKS = {
    "default": {
        "BACKEND": "oxlite.django.tasks.OxliteBackend",
        "QUEUES": ["default", "mails"],
        "OPTIONS": {},
    }
}
"""

TASKS = """
import asyncio, os, signal, time
from django.db import connection, transaction
from notes.models import Note
from oxlite.django.tasks import task

@task
def add(first, second):
    return first + second

@task
def note(text):
    Note.objects.create(text=text)

@task
def fail():
    raise ValueError("no <b>luck</b>")

@task(retries=2, retry_delay=0)
def fail_again():
    fail.func()

@task
async def later(text):
    await Note.objects.acreate(text=text)
    return [text, await Note.objects.acount()]

@task(takes_context=True)
def finish(context, text):
    with context.finish({"text": text}):
        Note.objects.create(text=text)

@task
async def slow_coroutine():
    await asyncio.sleep(0.5)
    await Note.objects.acreate(text="late")

@task(takes_context=True)
@transaction.atomic
def finish_inside(context, fails):
    with context.finish("by finish"):
        Note.objects.create(text=f"fails: {fails}")
    if fails:
        raise ValueError

@task(limit=1, takes_context=True)
def one_by_one(context):
    with context.finish():
        pass

@task(takes_context=True)
def lose(context):
    with connection.cursor() as cursor:
        cursor.execute("UPDATE oxlite_task SET attempt = attempt + 1")
    with context.finish():
        Note.objects.create(text="never")

@task(takes_context=True)
def describe(context):
    return [context.attempt, context.task_result.id, str(context.task_result.status)]

@task(takes_context=True)
def obey(context, seconds):
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        context.raise_if_cancelled()
        time.sleep(0.01)

@task
def sleep(seconds):
    time.sleep(seconds)
    return os.getpid()

@task
def chain(count):
    if count:
        chain.enqueue(count - 1)
    return count

@task
def exit():
    raise SystemExit(3)

@task
def unserializable():
    return object()

plain = len
"""

USE = """
import logging
logging.disable(logging.CRITICAL)
from oxlite.django.tasks import run_ready_tasks, start_worker
from oxlite.django.tasks.words import *
from notes import tasks
backend = task_backends["default"]
"""


@pytest.fixture
def tasks_site(site: "Site") -> "Site":
    """A site with tasks."""
    site.set(SETTINGS)
    site.write("notes/tasks.py", TASKS)
    return site


def lines(site: "Site", script: str) -> list[str]:
    return site.run(USE + script).splitlines()


def start_worker(site: "Site", *arguments: str) -> subprocess.Popen[str]:
    """Start the command, and wait until it runs tasks."""
    log = site.folder / "worker.log"
    with log.open("w") as file:
        process = site.start_manage("oxlite_worker", *arguments, terminal=file.fileno())
    until(lambda: "runs tasks of" in log.read_text())
    return process


def test_enqueue_is_part_of_the_transaction(tasks_site: "Site") -> None:
    assert lines(
        tasks_site,
        """
try:
    with transaction.atomic():
        Note.objects.create(text="never")
        tasks.add.enqueue(1, 2)
        raise ValueError
except ValueError:
    pass
print(len(run_ready_tasks()), Note.objects.count())
worker = start_worker()
with transaction.atomic():
    Note.objects.create(text="kept")
    result = tasks.add.enqueue(1, second=2)
    time.sleep(0.2)
    result.refresh()
    print(result.status, result.is_finished, result.args, result.kwargs)
    try:
        result.wait()
    except transaction.TransactionManagementError as error:
        print("wait after the end of it" in str(error))
print(result.wait(20), result.status, result.return_value, result.attempts)
with transaction.atomic():
    try:
        with transaction.atomic():
            tasks.note.enqueue("never")
            raise ValueError
    except ValueError:
        pass
    result = tasks.note.enqueue("by a task")
print(result.wait(20), list(Note.objects.values_list("text", flat=True).order_by("id")))
print(tasks.add.enqueue(1, 1).wait(20), worker.stop(5))
""",
    ) == [
        "0 0",
        "READY False [1] {'second': 2}",
        "True",
        "True SUCCESSFUL 3 1",
        "True ['kept', 'by a task']",
        "True True",
    ]


def test_a_file_of_its_own_waits_for_the_commit(tasks_site: "Site") -> None:
    tasks_site.set("TASKS['default']['OPTIONS'] = {'path': BASE_DIR / 'tasks.db'}")
    assert lines(
        tasks_site,
        """
enqueued = []
def hear(task_result, **_kwargs):
    enqueued.append(task_result.id)
task_enqueued.connect(hear)
try:
    with transaction.atomic():
        tasks.add.enqueue(1, 2)
        raise ValueError
except ValueError:
    pass
with transaction.atomic():
    first = tasks.add.enqueue(1, 2)
    try:
        first.refresh()
    except TaskResultDoesNotExist:
        print("not yet", enqueued, len(run_ready_tasks()))
    second = tasks.add.using(unique=True).enqueue(3, 4)
    third = tasks.add.using(unique=True).enqueue(3, 4)
first.refresh()
print(first.status, enqueued == [first.id, second.id])
fourth = tasks.add.using(unique=True).enqueue(3, 4)
print(fourth == backend.get_result(second.id), os.path.exists("tasks.db"))
print([each.return_value for each in run_ready_tasks()])
print(start_worker().stop(5))
""",
    ) == ["not yet [] 0", "READY True", "True True", "[3, 7]", "True"]


def test_of_what_is_unique_one_waits_for_the_commit(tasks_site: "Site") -> None:
    tasks_site.set("TASKS['default']['OPTIONS'] = {'path': BASE_DIR / 'tasks.db'}")
    assert lines(
        tasks_site,
        """
one = tasks.add.using(unique=True)
with transaction.atomic():
    first, second, other = one.enqueue(1, 2), one.enqueue(1, 2), one.enqueue(1, 3)
    print(first.id == second.id != other.id, second.args, str(second.status))
    try:
        with transaction.atomic():
            one.enqueue(5, 5)
            raise ValueError
    except ValueError:
        pass
    third = one.enqueue(5, 5)
for each in (first, second, other, third):
    each.refresh()
print([each.return_value for each in run_ready_tasks()])
with transaction.atomic():
    print(one.enqueue(1, 2).id != first.id)
print([each.return_value for each in run_ready_tasks()])
""",
    ) == ["True [1, 2] READY", "[3, 4, 10]", "True", "[3]"]


def test_what_keeps_one_task_from_being_written_keeps_no_other(tasks_site: "Site") -> None:
    tasks_site.set("TASKS['default']['OPTIONS'] = {'path': BASE_DIR / 'tasks.db'}")
    said = lines(
        tasks_site,
        """
from oxlite.tasks import Queue
logging.disable(logging.NOTSET)
logging.basicConfig(format="%(message)s", stream=sys.stdout, level=logging.WARNING)
logging.Formatter.formatException = lambda *_: ""
one = tasks.add.using(unique_key="one")
first = one.enqueue(0, 0)
first.cancel()
with transaction.atomic():
    mine = one.enqueue(1, 2)
    another = threading.Thread(target=lambda: print("by another", one.enqueue(3, 4).id))
    another.start()
    another.join()
    taken = tasks.add.enqueue(5, 6)
    with backend.place.queue.database.write() as writer:
        writer.execute("INSERT INTO oxlite_task (id, name) VALUES (?, 'a')", (int(taken.id),))
    transaction.on_commit(lambda: print("another hook"))
    last = tasks.add.enqueue(7, 8)
last.refresh()
print(mine.id, taken.id, last.id, last.status)
""",
    )
    assert [said[0], *said[3:]] == ["by another 3", "another hook", "2 4 5 READY"]
    assert said[1] == (
        "task 2 (notes.tasks.add) is not written: task 3 with the same unique key was faster to"
        " commit"
    )
    assert "Error calling enqueue() of notes.tasks.add in on_commit()" in said[2]
    assert "another one with the number 4" in said[2]


def test_signals_are_sent_and_errors_told(tasks_site: "Site") -> None:
    assert lines(
        tasks_site,
        """
import sys
def hear(name):
    def receiver(sender, task_result, **_kwargs):
        error = sys.exc_info()[1]
        print(name, sender.__name__, task_result.task.name, task_result.status,
              task_result.attempts, repr(error), len(task_result.errors),
              task_result.finished_at is not None)
    return receiver
receivers = [hear("enqueued"), hear("started"), hear("finished")]
task_enqueued.connect(receivers[0])
task_started.connect(receivers[1])
task_finished.connect(receivers[2])
tasks.add.enqueue(1, 2)
tasks.fail_again.enqueue()
run_ready_tasks()

def wrong(**_kwargs):
    raise RuntimeError("a receiver's")
task_started.connect(wrong)
tasks.finish.enqueue("done")
[result] = run_ready_tasks()
print(result.status, result.return_value)
""",
    ) == [
        "enqueued OxliteBackend add READY 0 None 0 False",
        "enqueued OxliteBackend fail_again READY 0 None 0 False",
        "started OxliteBackend add RUNNING 1 None 0 False",
        "finished OxliteBackend add SUCCESSFUL 1 None 0 True",
        "started OxliteBackend fail_again RUNNING 1 None 0 False",
        "started OxliteBackend fail_again RUNNING 2 None 1 False",
        "started OxliteBackend fail_again RUNNING 3 None 2 False",
        "finished OxliteBackend fail_again FAILED 3 ValueError('no <b>luck</b>') 3 True",
        "enqueued OxliteBackend finish READY 0 None 0 False",
        "started OxliteBackend finish RUNNING 1 None 0 False",
        "finished OxliteBackend finish SUCCESSFUL 1 None 0 True",
        "SUCCESSFUL {'text': 'done'}",
    ]


def test_receivers_are_told_what_is_committed(tasks_site: "Site") -> None:
    """They ask the database, by a connection of their own, and keep no worker from its tasks."""
    assert lines(
        tasks_site,
        """
import threading
heard, go_on = [], threading.Event()
def hear(task_result, **_kwargs):
    go_on.wait(60)
    heard.append((str(task_result.status), str(backend.get_result(task_result.id).status)))
task_finished.connect(hear)
worker = start_worker(threads=1)
for each in [tasks.add.enqueue(1, 2), tasks.fail.enqueue(), tasks.finish.enqueue("done")]:
    print(each.wait(60))
print(heard)
go_on.set()
print(worker.stop(60), *heard)
""",
    ) == [
        *["True"] * 3,
        "[]",
        "True ('SUCCESSFUL', 'SUCCESSFUL') ('FAILED', 'FAILED') ('SUCCESSFUL', 'SUCCESSFUL')",
    ]


def test_results(tasks_site: "Site") -> None:
    assert lines(
        tasks_site,
        """
import asyncio
result = tasks.fail.enqueue()
assert backend.get_result(result.id) == result == tasks.fail.get_result(result.id)
run_ready_tasks()
result.refresh()
print(result.status, result.errors[0].exception_class, "luck" in result.errors[0].traceback)
try:
    result.return_value
except ValueError as error:
    print(error)
for wrong in ("no", "-1", "9" * 30, "77", None):
    try:
        backend.get_result(wrong)
    except TaskResultDoesNotExist:
        print("none")
for name in ("unserializable", "exit"):
    getattr(tasks, name).enqueue()
print([(str(each.status), each.errors[0].exception_class.__name__) for each in run_ready_tasks()])

async def main():
    result = await tasks.add.aenqueue(1, 1)
    worker = await asyncio.to_thread(start_worker)
    print(await result.wait_async(20), result.return_value)
    print((await backend.aget_result(result.id)) == result)
    await asyncio.to_thread(worker.stop, 5)
asyncio.run(main())
waiting = tasks.add.enqueue(1, 2)
print(waiting.cancel(), waiting.cancel())
waiting.refresh()
print(waiting.status, waiting.errors[0].exception_class.__name__, waiting.attempts)
old = tasks.add.using(expires=0.01).enqueue(1, 2)
time.sleep(0.05)
print(run_ready_tasks())
old.refresh()
print(old.status, old.errors[0].exception_class.__name__)
worker = start_worker()
running = tasks.obey.enqueue(60)
while running.status != "RUNNING":
    running.refresh()
print(running.cancel(), running.wait(20), running.status, len(running.errors))
print(running.errors[0].exception_class.__name__)
print(running.attempts, len(running.worker_ids), worker.stop(5))
tasks.add.using(keep=0).enqueue(2, 3)
print([each.return_value for each in run_ready_tasks()])
""",
    ) == [
        "FAILED <class 'ValueError'> True",
        "Task failed",
        *["none"] * 5,
        "[('FAILED', 'TypeError'), ('FAILED', 'SystemExit')]",
        "True 2",
        "True",
        "True False",
        "FAILED TaskCancelled 0",
        "[]",
        "FAILED TaskExpired",
        "True True FAILED 1",
        "TaskCancelled",
        "1 1 True",
        "[5]",
    ]


@pytest.mark.parametrize("use_tz", [True, False])
def test_priorities_and_times(tasks_site: "Site", use_tz: bool) -> None:
    tasks_site.set(f"USE_TZ = {use_tz}\nTIME_ZONE = 'Asia/Tokyo'")
    assert lines(
        tasks_site,
        """
from datetime import datetime, timedelta
from django.conf import settings
from django.utils import timezone
low = tasks.add.using(priority=-5).enqueue(0, 1)
default = tasks.add.enqueue(0, 2)
high = tasks.add.using(priority=100, queue_name="mails").enqueue(0, 3)
past = tasks.add.using(run_after=timezone.now() - timedelta(hours=1)).enqueue(0, 4)
at = timezone.now() + timedelta(seconds=0.5)
soon = tasks.add.using(run_after=at).enqueue(0, 5)
print([each.return_value for each in run_ready_tasks()])
print(backend.get_result(soon.id) == soon, backend.get_result(soon.id).task.run_after == at)
print(timezone.is_aware(soon.enqueued_at) == settings.USE_TZ)
print(abs(soon.enqueued_at - timezone.now()) < timedelta(seconds=60))
time.sleep(0.6)
print([each.return_value for each in run_ready_tasks()])
for options in ({"priority": 101}, {"queue_name": "no"}, {"retries": -1}, {"time_limit": "x"}):
    try:
        tasks.add.using(**options)
    except InvalidTask as error:
        print("refused")
try:
    tasks.add.using(retriez=1)
except TypeError:
    print("refused")
for arguments in ((object(), 1), (1,), (1, 2, 3), (float("nan"), 1)):
    try:
        tasks.add.enqueue(*arguments)
    except (TypeError, ValueError) as error:
        print("refused")
""",
    ) == ["[3, 2, 4, 1]", "True True", "True", "True", "[5]", *["refused"] * 9]


DECLARED = """
from oxlite.django.tasks import task

@task
def plain():
    return 1

@task()
def called():
    return 2

@task(retries=1, retry_delay=0, priority=7, queue_name="mails", takes_context=True)
def twice(context):
    if context.attempt == 1:
        raise ValueError
    return context.attempt
"""


def test_a_task_is_declared_with_all_that_can_be_said_of_it(tasks_site: "Site") -> None:
    tasks_site.write("notes/declared.py", DECLARED)
    assert lines(
        tasks_site,
        """
from oxlite.django.tasks import OxliteTask, task
from notes import declared
if django.VERSION[:2] != (6, 0):
    assert django_task(retries=3)(declared.plain.func).retries == 3
for each in (declared.plain, declared.called, declared.twice):
    each.enqueue()
print([(each.attempts, str(each.status)) for each in run_ready_tasks(queue_names=["mails"])])
print([each.return_value for each in run_ready_tasks()], isinstance(declared.plain, OxliteTask))
print(declared.twice.priority, declared.twice.queue_name, declared.twice.retries)
for options in ({"retriez": 1}, {"retries": -1}):
    try:
        task(**options)(declared.plain.func)
    except (TypeError, InvalidTask) as error:
        print(isinstance(error, InvalidTask))
""",
    ) == [
        "[(1, 'READY'), (2, 'SUCCESSFUL')]",
        *("[1, 2] True", "7 mails 1", "False", "True"),
    ]


def test_coroutines_contexts_and_time_limits(tasks_site: "Site") -> None:
    assert lines(
        tasks_site,
        """
worker = start_worker(threads=3)
results = [tasks.later.enqueue("one"), tasks.finish.enqueue("two"), tasks.describe.enqueue()]
for each in results:
    each.wait(20)
print(results[0].return_value[0], results[1].return_value, results[2].return_value)
print(sorted(Note.objects.values_list("text", flat=True)))
twice = tasks.finish.enqueue("two")   # the text is unique
print(twice.wait(20), twice.status, twice.errors[0].exception_class.__name__)
slow = tasks.sleep.using(time_limit=0.2).enqueue(0.5)
print(slow.wait(20), slow.errors[0].exception_class.__name__)
worker.stop(5)
tasks.later.enqueue("three")
print([each.return_value[0] for each in run_ready_tasks()])
""",
    ) == [
        "one {'text': 'two'} [1, '3', 'RUNNING']",
        "['one', 'two']",
        "True FAILED IntegrityError",
        "True TimeLimitExceeded",
        "['three']",
    ]


@pytest.mark.parametrize("is_in_memory", [True, False])
def test_what_is_ready_runs_in_a_test(tasks_site: "Site", is_in_memory: bool) -> None:
    if not is_in_memory:
        tasks_site.set("DATABASES['default']['TEST'] = {'NAME': BASE_DIR / 'test.db'}")
    tasks_site.write(
        "notes/tests.py",
        """
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction
from django.test import TestCase, TransactionTestCase
from notes import tasks
from notes.models import Note
from oxlite.django.tasks import run_ready_tasks, start_worker
from oxlite.django.tasks.models import StoredTask

class Tests(TestCase):
    def test_one(self):
        tasks.note.enqueue("by a task")
        tasks.later.enqueue("by a coroutine")
        tasks.finish.enqueue("by finish")
        self.assertEqual(len(run_ready_tasks()), 3)
        self.assertEqual(Note.objects.count(), 3)
        self.assertEqual(run_ready_tasks(), [])

    def test_two(self):
        tasks.chain.enqueue(3)
        self.assertEqual([each.return_value for each in run_ready_tasks(at_most=2)], [3, 2])
        self.assertEqual([each.return_value for each in run_ready_tasks()], [1, 0])
        self.assertEqual(Note.objects.count(), 0)

class OtherTests(TransactionTestCase):
    def test_three(self):
        self.assertEqual(StoredTask.objects.count(), 0)
        with transaction.atomic():
            tasks.note.enqueue("committed")
        [result] = run_ready_tasks()
        self.assertEqual((result.status, Note.objects.count()), ("SUCCESSFUL", 1))

    def test_three_again(self):
        tasks.note.enqueue("never run")
        self.assertEqual(StoredTask.objects.count(), 1)

    def test_four(self):
        if connection.is_in_memory_db():
            with self.assertRaisesMessage(ImproperlyConfigured, "run_ready_tasks()"):
                start_worker()
""",
    )
    done = tasks_site.manage("test", "notes")
    assert done.returncode == 0, done.stderr
    assert "Ran 5 tests" in done.stderr
    assert "WARNING" not in done.stderr


IN_TESTS = """
@task
def note_twice(text):
    transaction.on_commit(lambda: print("never"))
    Note.objects.create(text=text)
    Note.objects.create(text=text)

@task
def note_durably(text):
    with transaction.atomic(durable=True):
        Note.objects.create(text=text)

@task(takes_context=True)
async def obey_later(context):
    context.raise_if_cancelled()
    return [context.is_cancelled(), await Note.objects.acount()]
"""


def test_tests_see_what_a_worker_would_do(tasks_site: "Site") -> None:
    tasks_site.write("notes/tasks.py", TASKS + IN_TESTS)
    tasks_site.write(
        "notes/tests.py",
        """
from django.test import SimpleTestCase, TestCase, TransactionTestCase
from notes import tasks
from notes.models import Note
from oxlite.django.tasks import run_ready_tasks
from oxlite.django.tasks.words import task_backends

class Tests(TestCase):
    def test_a_task_that_breaks_the_transaction(self):
        tasks.note_twice.enqueue("two")
        tasks.note_durably.enqueue("one")
        with self.captureOnCommitCallbacks() as callbacks:
            first, second = run_ready_tasks()
        self.assertEqual((first.status, second.status), ("FAILED", "SUCCESSFUL"))
        self.assertIn("IntegrityError", first.errors[0].traceback)
        self.assertEqual([each.text for each in Note.objects.all()], ["one"])
        self.assertEqual(callbacks, [])

    def test_a_coroutine_that_asks(self):
        Note.objects.create(text="one")
        result = tasks.obey_later.enqueue()
        [result] = run_ready_tasks()
        self.assertEqual(result.return_value, [False, 1])

class LaterTests(SimpleTestCase):
    def test_no_database(self):
        for use in (Note.objects.count, tasks.unserializable.enqueue, run_ready_tasks):
            with self.assertRaisesMessage(AssertionError, "Database queries to 'default'"):
                use()

class OtherTests(TransactionTestCase):
    def test_a_pause(self):
        with task_backends["default"].place.connection() as connection:
            connection.execute("INSERT INTO oxlite_task_pause VALUES ('default', 0)")
        tasks.add.enqueue(1, 2)
        self.assertEqual(run_ready_tasks(), [])

    def test_no_pause(self):
        tasks.add.enqueue(1, 2)
        self.assertEqual(len(run_ready_tasks()), 1)
""",
    )
    done = tasks_site.manage("test", "notes")
    assert done.returncode == 0, done.stderr
    assert "Ran 5 tests" in done.stderr


@pytest.mark.parametrize("is_in_a_file_of_its_own", [False, True])
def test_what_is_ready_does_not_run_beside_a_worker(
    tasks_site: "Site", is_in_a_file_of_its_own: bool
) -> None:
    if is_in_a_file_of_its_own:
        tasks_site.set("TASKS['default']['OPTIONS'] = {'path': BASE_DIR / 'tasks.db'}")
    lines(tasks_site, "start_worker(); time.sleep(0.3); os._exit(0)")  # its row stays
    assert lines(
        tasks_site,
        """
tasks.add.enqueue(1, 2)
print(len(run_ready_tasks()))
worker = start_worker(queue_names=["mails"])
while not backend.place.query("SELECT 1 FROM oxlite_task_worker"):
    pass
tasks.add.enqueue(1, 2)
def run():
    try:
        return len(run_ready_tasks())
    except RuntimeError as error:
        return "a worker that runs the tasks" in str(error)
print(run())
with transaction.atomic():
    print(run())
print(worker.stop(5), len(run_ready_tasks()))
""",
    ) == ["1", "True", *(("True", "True 1") if is_in_a_file_of_its_own else ("1", "True 0"))]


def test_what_was_taken_over_writes_nothing(tasks_site: "Site") -> None:
    assert lines(
        tasks_site,
        """
from django.db import connection
tasks.lose.enqueue()
[result] = run_ready_tasks()
print(result.status, Note.objects.count())
""",
    ) == ["RUNNING 0"]


def test_what_is_finished_inside_atomic_is_so_with_its_commit(tasks_site: "Site") -> None:
    assert lines(
        tasks_site,
        """
worker = start_worker()
for fails in (False, True):
    result = tasks.finish_inside.enqueue(fails)
    print(result.wait(20), result.status)
print(list(Note.objects.values_list("text", flat=True)), backend.get_result("1").return_value)
results = [tasks.one_by_one.enqueue() for _ in range(30)]
print({each.wait(20) for each in results}, worker.stop(5))
""",
    ) == ["True SUCCESSFUL", "True FAILED", "['fails: False'] by finish", "{True} True"]


LEFT_OPEN = """
from asgiref.sync import sync_to_async

def leave_it(text):
    transaction.atomic().__enter__()
    Note.objects.create(text=text)

@task
def leave(text, fails):
    leave_it(text)
    if fails:
        raise ValueError

@task
def begin(text):
    connection.cursor().execute("BEGIN")
    Note.objects.create(text=text)

@task
async def leave_later(text):
    await sync_to_async(leave_it)(text)
"""


def test_what_a_task_leaves_open_is_rolled_back_and_concerns_no_other(tasks_site: "Site") -> None:
    tasks_site.write("notes/tasks.py", TASKS + LEFT_OPEN)
    assert lines(
        tasks_site,
        """
def receiver(task_result, **_kwargs):
    if task_result.task.name == "add":
        tasks.leave_it("by a receiver")
task_finished.connect(receiver)
worker = start_worker(threads=1)
for number, result in enumerate((
    tasks.leave.enqueue("left", False), tasks.leave.enqueue("left", True),
    tasks.begin.enqueue("begun"), tasks.leave_later.enqueue("later"), tasks.add.enqueue(1, 2),
)):
    next_one = tasks.note.enqueue(f"next {number}")
    print(result.wait(20), result.status,
          *[each.traceback.splitlines()[-1] for each in result.errors])
    print(next_one.wait(20), next_one.status)
print(list(Note.objects.values_list("text", flat=True).order_by("text")), worker.stop(5))
""",
    ) == [
        *(f"True FAILED {LEFT}", "True SUCCESSFUL", "True FAILED ValueError", "True SUCCESSFUL"),
        *[f"True FAILED {LEFT}", "True SUCCESSFUL"] * 2,
        *("True SUCCESSFUL", "True SUCCESSFUL"),
        "['next 0', 'next 1', 'next 2', 'next 3', 'next 4'] True",
    ]


LEFT = (
    "django.db.transaction.TransactionManagementError: the task has left atomic() open on"
    " 'default': what it wrote there was rolled back"
)


HOOKED = """
from asgiref.sync import sync_to_async

@task(takes_context=True)
@transaction.atomic
def finish_hooked(context, fails):
    transaction.on_commit(fail.func)
    with context.finish("by finish"):
        Note.objects.create(text=f"fails: {fails}")
    if fails:
        raise ValueError

@task(takes_context=True)
async def finish_later(context):
    await sync_to_async(finish_hooked.func)(context, False)
"""


def test_what_is_finished_is_so_whatever_hooks_raise(tasks_site: "Site") -> None:
    tasks_site.write("notes/tasks.py", TASKS + HOOKED)
    assert lines(
        tasks_site,
        """
heard = []
def hear(task_result, **_kwargs):
    value = None if task_result.errors else task_result.return_value
    heard.append((int(task_result.id), str(task_result.status), value))
task_finished.connect(hear)
worker = start_worker(threads=1)
for result in (
    tasks.finish_hooked.enqueue(False), tasks.finish_hooked.using(keep=0).enqueue(None),
    tasks.finish_hooked.enqueue(True),
):
    try:
        result.wait(20)
    except TaskResultDoesNotExist:
        print("not kept")
    else:
        print(result.status)
Note.objects.all().delete()
print(tasks.finish_later.enqueue().wait(20), worker.stop(5))
print(*heard)
""",
    ) == [
        *("SUCCESSFUL", "not kept", "FAILED", "True True"),
        "(1, 'SUCCESSFUL', 'by finish') (2, 'SUCCESSFUL', 'by finish') (3, 'FAILED', None)"
        " (4, 'SUCCESSFUL', 'by finish')",
    ]


def finished_at_the_end(site: "Site", task: str) -> list[str]:
    """What becomes of a task that runs when its program ends; and the notes."""
    assert lines(
        site,
        f"""
worker = start_worker()
result = tasks.{task}
while result.status != "RUNNING":
    result.refresh()
print(result.id)
""",
    ) == ["1"]
    return lines(
        site,
        """
result = backend.get_result("1")
print(result.status, [each.traceback for each in result.errors])
print(list(Note.objects.values_list("text", flat=True)))
""",
    )


def test_at_the_end_of_the_program_what_runs_is_finished(tasks_site: "Site") -> None:
    assert finished_at_the_end(tasks_site, "sleep.enqueue(0.5)") == ["SUCCESSFUL []", "[]"]


@pytest.mark.skipif(
    (3, 12) <= sys.version_info < (3, 12, 2),
    reason="Python 3.12.0 and 3.12.1 begin no thread while a program ends (gh-113964)",
)
def test_at_the_end_of_the_program_a_coroutine_is_finished(tasks_site: "Site") -> None:
    found = finished_at_the_end(tasks_site, "slow_coroutine.enqueue()")
    assert found == ["SUCCESSFUL []", "['late']"]


RECUR = "TASKS['default']['OPTIONS']['recurring'] = %s"


def test_what_recurs_is_enqueued_by_a_worker(tasks_site: "Site") -> None:
    tasks_site.set(RECUR % {"notes.tasks.unserializable": "* * * * * *"})
    assert "no issues" in tasks_site.manage("check").stdout
    found = lines(
        tasks_site,
        """
worker = start_worker()
while True:
    rows = backend.place.query("SELECT name, arguments FROM oxlite_task WHERE status = 'failed'")
    if rows:
        break
print(rows[0][0], rows[0][1])
""",
    )
    assert found == ["notes.tasks.unserializable [[],{}]"]


def test_what_cannot_recur_is_refused_by_workers(tasks_site: "Site") -> None:
    tasks_site.set(RECUR % {"notes.tasks.gone": "* * * * *"})
    said = tasks_site.manage("oxlite_worker").stderr
    assert "TASKS['default']['OPTIONS']['recurring']['notes.tasks.gone']: ImportError" in said
    tasks_site.set("TASKS['default']['OPTIONS']['recurring'] = ['notes.tasks.fail']")
    assert "has cron lines by the names of tasks" in tasks_site.manage("check").stderr


WSGI = """
import django
django.setup()
from oxlite.django.tasks import start_worker
from notes.tasks import sleep

def application(environ, start_response):
    result = sleep.enqueue(0)
    result.wait(20)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(result.status).encode()]

start_worker()
"""


@pytest.mark.slow
def test_a_web_server_runs_tasks_too(tasks_site: "Site") -> None:
    pytest.importorskip("gunicorn")
    tasks_site.write("wsgi.py", WSGI)
    server = tasks_site.start(
        "import runpy; sys.argv = ['gunicorn', 'wsgi', '-w', '2', '-b', 'unix:web.sock'];"
        " runpy.run_module('gunicorn', run_name='__main__')"
    )
    path = tasks_site.folder / "web.sock"

    def is_serving() -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(path)) == 0

    until(is_serving)
    for _ in range(4):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            answer = b"".join(iter(lambda: client.recv(4096), b""))
        assert answer.endswith(b"SUCCESSFUL")
    server.terminate()
    assert server.wait(30) == 0


def test_names_that_are_no_tasks(tasks_site: "Site") -> None:
    assert lines(
        tasks_site,
        """
from django.db import connection
tasks.add.enqueue(1, 2)
run_ready_tasks()
for name in ("notes.tasks.missing", "nowhere.at_all", "os.system", "notes.tasks.plain"):
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO oxlite_task (name) VALUES (%s) RETURNING id", [name])
        [number] = cursor.fetchone()
    run_ready_tasks()
    with connection.cursor() as cursor:
        cursor.execute("SELECT status, errors FROM oxlite_task WHERE id = %s", [number])
        status, errors = cursor.fetchone()
    print(status, "UnknownTask" in errors)
    try:
        backend.get_result(str(number))
    except (ImportError, TypeError) as error:
        print(type(error).__name__)
""",
    ) == [
        *("scheduled True", "ImportError", "scheduled True", "ModuleNotFoundError"),
        *("scheduled True", "TypeError", "scheduled True", "TypeError"),
    ]


def test_rows_that_this_backend_would_not_enqueue(tasks_site: "Site") -> None:
    tasks_site.set("USE_TZ = False\nTIME_ZONE = 'America/New_York'")
    assert lines(
        tasks_site,
        """
def write(sql):
    with connection.cursor() as cursor:
        cursor.execute(sql)
result = tasks.describe.enqueue()
write("UPDATE oxlite_task SET queue = 'old', priority = 1000, enqueued_at = -62135596800")
found = backend.get_result(result.id)
print(found.task.queue_name, found.task.priority, found.task.func is tasks.describe.func)
print(found.task.limit, found.task.backend, found.enqueued_at, found.status)
write("UPDATE oxlite_task SET queue = 'default'")
[found] = run_ready_tasks()
print(found.status, found.return_value)
write("INSERT INTO oxlite_task (name, errors) VALUES ('notes.tasks.describe', '5')")
run_ready_tasks()
with connection.cursor() as cursor:
    cursor.execute("SELECT errors LIKE '%%AssertionError%%' FROM oxlite_task WHERE id = 2")
    print(cursor.fetchone())
""",
    ) == [
        "old 1000 True",
        "None default None READY",
        "SUCCESSFUL [1, '1', 'RUNNING']",
        "(0,)",
    ]


def test_a_task_of_another_backend_is_taken(tasks_site: "Site") -> None:
    tasks_site.set(
        """
TASKS["later"], TASKS["default"] = TASKS["default"], {
    "BACKEND": TASKS["default"]["BACKEND"].replace(
        "oxlite.django.tasks.OxliteBackend", IMMEDIATE)}
""".replace(
            "IMMEDIATE",
            repr(
                ("django.tasks" if find_spec("django.tasks") else "django_tasks")
                + ".backends.immediate.ImmediateBackend"
            ),
        )
    )
    tasks_site.write(
        "notes/tasks.py", TASKS.replace("retries=2, retry_delay=0", "").replace("limit=1, ", "")
    )
    assert lines(
        tasks_site,
        """
print(tasks.add.enqueue(1, 2).status)
result = tasks.add.using(backend="later").enqueue(1, 2)
print(result.status, run_ready_tasks("later")[0].return_value, result.task.backend)
result.refresh()
print(result.status)
""",
    ) == ["SUCCESSFUL", "READY 3 later", "SUCCESSFUL"]


def test_options_that_cannot_be(tasks_site: "Site") -> None:
    for options, expected in (
        ({"tries": 3}, "'tries'"),
        ({"path": "a.db", "database": "default"}, "both database and path"),
        ({"profile": "durable"}, "goes with path"),
    ):
        tasks_site.set(f"TASKS['default']['OPTIONS'] = {options!r}")
        assert expected in tasks_site.manage("check").stderr


def test_system_checks(tasks_site: "Site") -> None:
    assert "no issues" in tasks_site.manage("check").stdout
    for said, expected in (
        ("TASKS['other'] = TASKS['default']", "W003"),
        ("DATABASES['default']['NAME'] = ':memory:'", "W002"),
        ("DATABASES['default']['ENGINE'] = 'django.db.backends.sqlite3'", "E002"),
        (RECUR % {"notes.tasks.gone": "* * * * *"}, "E003"),
        (RECUR % {"notes.tasks.plain": "* * * * *"}, "E003"),
        (RECUR % {"notes.tasks.note": "* * * * *"}, "E003"),
        (RECUR % {"notes.tasks.fail": "* * * *"}, "E003"),
        (RECUR % {"notes.tasks.fail": 5}, "E003"),
        ("TASKS['default']['OPTIONS'] = {'database': 'none'}", "E001"),
    ):
        tasks_site.set(said)
        assert f"oxlite.tasks.{expected}" in tasks_site.manage("check").stderr
    tasks_site.set("INSTALLED_APPS.remove('oxlite.django.tasks')")
    assert "oxlite.tasks.W001" in lines(tasks_site, "for one in backend.check():\n  print(one.id)")


def test_another_engine_is_refused(tasks_site: "Site") -> None:
    tasks_site.set("DATABASES['default']['ENGINE'] = 'django.db.backends.sqlite3'")
    said = lines(
        tasks_site,
        """
from django.core.exceptions import ImproperlyConfigured
try:
    tasks.add.enqueue(1, 2)
except ImproperlyConfigured as error:
    print(error)
""",
    )
    assert "it takes 'oxlite.django.sqlite3'" in said[0]


def test_a_broken_transaction_takes_no_task(tasks_site: "Site") -> None:
    assert lines(
        tasks_site,
        """
from django.db import IntegrityError
Note.objects.create(text="one")
with transaction.atomic():
    try:
        Note.objects.create(text="one")
    except IntegrityError:
        pass
    try:
        tasks.add.enqueue(1, 2)
    except transaction.TransactionManagementError:
        print("refused")
    transaction.set_rollback(True)
with read_only():
    try:
        tasks.add.enqueue(1, 2)
    except OperationalError as error:
        print("read_only()" in str(error))
print(len(run_ready_tasks()))
""",
    ) == ["refused", "True", "0"]


def test_the_migration_makes_the_tables_where_tasks_are(tasks_site: "Site") -> None:
    tasks_site.set(
        "DATABASES['other'] = {**DATABASES['default'], 'NAME': BASE_DIR / 'other.db'}\n"
        "TASKS['default']['OPTIONS'] = {'database': 'other'}"
    )
    for alias in ("default", "other"):
        assert tasks_site.manage("migrate", "--database", alias, "--verbosity", "0").returncode == 0
    assert lines(
        tasks_site,
        """
for alias in ("default", "other"):
    print("oxlite_task" in connections[alias].introspection.table_names())
with transaction.atomic():
    with transaction.atomic(using="other"):
        tasks.add.enqueue(1, 2)
print([each.return_value for each in run_ready_tasks()])
""",
    ) == ["False", "True", "[3]"]
    done = tasks_site.manage("makemigrations", "--check", "--dry-run")
    assert done.returncode == 0, done.stdout


def test_tasks_are_not_dumped(tasks_site: "Site") -> None:
    tasks_site.set(
        "DATABASES['other'] = {**DATABASES['default'], 'NAME': BASE_DIR / 'other.db'}\n"
        "DATABASES['stock'] = {\n"
        "    'ENGINE': 'django.db.backends.sqlite3', 'NAME': BASE_DIR / 'stock.db'}"
    )
    for alias in ("default", "other", "stock"):
        assert tasks_site.manage("migrate", "--database", alias, "--verbosity", "0").returncode == 0
    lines(tasks_site, 'tasks.add.enqueue(1, 2); Note.objects.create(text="dumped")')
    for arguments in ((), ("--all",), ("--database", "other"), ("--database", "stock", "--all")):
        done = tasks_site.manage("dumpdata", *arguments)
        assert done.returncode == 0, done.stderr
        assert "oxlite_tasks" not in done.stdout
        assert ("dumped" in done.stdout) == ("--database" not in arguments)
    assert tasks_site.manage("dumpdata", "oxlite_tasks", "-o", "tasks.json").returncode == 0
    done = tasks_site.manage("makemigrations", "--check", "--dry-run")
    assert done.returncode == 0, done.stdout


def test_processes_are_as_many_as_is_said_while_code_is_developed(tasks_site: "Site") -> None:
    tasks_site.set("DEBUG = True")
    worker = start_worker(tasks_site, "--processes", "2", "--threads", "1")
    assert lines(
        tasks_site,
        """
results = [tasks.sleep.enqueue(0.5) for _ in range(2)]
print({each.wait(20) for each in results}, len({each.return_value for each in results}))
""",
    ) == ["{True} 2"]
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(30) == 0


def test_a_worker_waits_for_the_applications(tasks_site: "Site") -> None:
    done = tasks_site.script("-c", "from oxlite.django.tasks import start_worker; start_worker()")
    assert "AppRegistryNotReady" in done.stderr


def test_a_task_without_limit_where_options_have_one(tasks_site: "Site") -> None:
    tasks_site.set("TASKS['default']['OPTIONS'] = {'time_limit': 0.2, 'keep': 0}")
    assert lines(
        tasks_site,
        """
import math
tasks.sleep.enqueue(0.3)
result = tasks.sleep.using(time_limit=math.inf, keep=math.inf).enqueue(0.3)
run_ready_tasks()
print(backend.get_result(result.id).status, backend.get_result("1").status)
print(backend.place.query("SELECT time_limit, keep_seconds FROM oxlite_task ORDER BY id"))
try:
    tasks.sleep.using(retry_delay=math.inf)
except InvalidTask:
    print("refused")
""",
    ) == ["SUCCESSFUL FAILED", "[(0.2, 0.0), (None, None)]", "refused"]


def test_a_worker_of_processes_runs_ends_and_is_replaced(tasks_site: "Site") -> None:
    lines(tasks_site, "tasks.add.enqueue(0, 0)")
    worker = start_worker(tasks_site, "--processes", "2", "--threads", "1", "--no-reload")
    said = lines(
        tasks_site,
        """
first = [tasks.sleep.enqueue(0.2) for _ in range(4)]
for each in first:
    each.wait(20)
print(len({each.return_value for each in first}))
hanging = tasks.sleep.using(keep=None).enqueue(3)
while hanging.status != "RUNNING":
    hanging.refresh()
import sqlite3
with sqlite3.connect("app.db", timeout=20) as other:
    [(name, pid)] = other.execute(
        "SELECT name, pid FROM oxlite_task_worker WHERE name = ?", (hanging.worker_ids[0],))
os.kill(pid, signal.SIGKILL)
print(hanging.wait(30), hanging.status, hanging.attempts)
print(hanging.errors[0].exception_class.__name__)
""",
    )
    assert said == ["2", "True SUCCESSFUL 2", "WorkerLost"]
    slow = lines(
        tasks_site,
        """
result = tasks.sleep.enqueue(1)
while result.status != "RUNNING":
    result.refresh()
print(result.id)
""",
    )
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(30) == 0
    assert lines(tasks_site, f"print(backend.get_result({slow[0]!r}).status)") == ["SUCCESSFUL"]


@pytest.mark.slow
def test_a_worker_begins_again_when_code_changes(tasks_site: "Site") -> None:
    tasks_site.set("DEBUG = True")
    worker = start_worker(tasks_site)
    assert lines(tasks_site, "r = tasks.add.enqueue(2, 3); print(r.wait(20), r.return_value)") == [
        "True 5"
    ]
    path = tasks_site.folder / "notes" / "tasks.py"
    changed = path.read_text().replace("return first + second", "return first * second")

    def is_new() -> bool:
        # It looks at the clock of files once a second.
        path.write_text(changed)
        return lines(
            tasks_site, "r = tasks.add.enqueue(2, 3); print(r.wait(20), r.return_value)"
        ) == ["True 6"]

    until(is_new)
    worker.send_signal(signal.SIGTERM)
    worker.wait(30)


def test_arguments_of_the_command(tasks_site: "Site") -> None:
    for arguments, expected in (
        (["--backend", "none"], "doesn't exist"),
        (["--threads", "0"], "1 or more"),
        (["--grace", "-1"], "number of seconds"),
        (["--queues", "a,,b"], "commas"),
        (["--queues", "mails,no"], "has no 'no'; there are default, mails"),
        (["--reload", "--processes", "2"], "--reload is in one process"),
        (["--reload", "--memory", "500"], "--reload is in one process"),
    ):
        done = tasks_site.manage("oxlite_worker", *arguments)
        assert done.returncode != 0
        assert expected in done.stderr
    tasks_site.set("TASKS['default']['QUEUES'] = []")
    done = tasks_site.manage("oxlite_worker")
    assert done.returncode == 1
    assert "--queues" in done.stderr
    tasks_site.set("DATABASES['default']['NAME'] = ':memory:'")
    assert "is in memory" in tasks_site.manage("oxlite_worker").stderr


def test_it_is_said_what_is_missing(tasks_site: "Site") -> None:
    if sys.version_info >= (3, 12):
        pytest.skip("Django has its own")
    done = tasks_site.script(
        "-c",
        "import sys, importlib.util as util; find = util.find_spec\n"
        "util.find_spec = lambda name, *rest: None if 'tasks' in name and 'oxlite' not in name"
        " else find(name, *rest)\n"
        "import oxlite.django.tasks",
    )
    assert "pip install django-tasks" in done.stderr
