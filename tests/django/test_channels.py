"""Django Channels' layer on a site's own database."""

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("channels")

if TYPE_CHECKING:
    from conftest import Site

LAYER = """
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "oxlite.django.channels.OxliteChannelLayer",
        "CONFIG": {"database": "default"},
    }
}
"""


def test_what_is_sent_in_atomic_leaves_with_its_commit(site: "Site") -> None:
    site.set(LAYER)
    said = site.run("""
import asyncio, threading
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction
layer = get_channel_layer()
send, receive = async_to_sync(layer.send), async_to_sync(layer.receive)
heard = []

def send_and_fail():
    with transaction.atomic():
        Note.objects.create(text="never")
        send("orders", {"text": "never"})
        raise ValueError

try:
    send_and_fail()
except ValueError:
    pass
with transaction.atomic():
    Note.objects.create(text="kept")
    send("orders", {"text": "kept"})
    receiver = threading.Thread(target=lambda: heard.append(receive("orders")))
    receiver.start()
    receiver.join(0.5)
    print("inside", heard)
receiver.join(30)
print("after", heard)

async def later():
    # The context of the transaction lives on; the transaction does not.
    await layer.send("orders", {"text": "later"})

kept = []
async def keep():
    import contextvars
    kept.append(contextvars.copy_context())

with transaction.atomic():
    async_to_sync(keep)()
with transaction.atomic():
    Note.objects.create(text="another")
kept[0].run(asyncio.run, later())
print("later", receive("orders"))
async_to_sync(layer.close)()
""")
    assert said.splitlines() == [
        "inside []",
        "after [{'text': 'kept'}]",
        "later {'text': 'later'}",
    ]


def test_a_path_or_a_database_is_asked_for(site: "Site") -> None:
    site.set(LAYER.replace('{"database": "default"}', "{}"))
    said = site.run("""
from channels.layers import get_channel_layer
from django.core.exceptions import ImproperlyConfigured
try:
    get_channel_layer()
except ImproperlyConfigured as error:
    print(error)
""")
    assert "BASE_DIR / 'cable.db'" in said


def test_nothing_inside_a_transaction_waits_for_its_end(site: "Site") -> None:
    site.set(LAYER.replace('"default"}', '"default", "channel_capacity": {"http.*": 5}}'))
    said = site.run("""
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
layer = get_channel_layer()
begun = time.monotonic()
with transaction.atomic():
    async_to_sync(layer.group_send)("room", {"type": "to nobody"})
    async_to_sync(layer.group_add)("room", "jobs")
    async_to_sync(layer.group_add)("room", "others")
    async_to_sync(layer.group_discard)("room", "others")
    async_to_sync(layer.group_send)("room", {"type": "to jobs"})
print(async_to_sync(layer.receive)("jobs"))
with transaction.atomic():
    try:
        async_to_sync(layer.receive)("jobs")
    except oxlite.sqlite3.ProgrammingError as error:
        print("inside a transaction" in str(error))
    async_to_sync(layer.flush)()
transaction.set_autocommit(False)
Note.objects.create(text="never")
async_to_sync(layer.send)("jobs", {"type": "never"})
transaction.rollback()
Note.objects.create(text="kept")
async_to_sync(layer.send)("jobs", {"type": "kept"})
transaction.commit()
transaction.set_autocommit(True)
print(async_to_sync(layer.receive)("jobs"))
with read_only():
    try:
        async_to_sync(layer.send)("jobs", {})
    except OperationalError as error:
        print("django")
    except oxlite.sqlite3.OperationalError as error:
        print("read_only()" in str(error))
print(time.monotonic() - begun < 4)
async_to_sync(layer.close)()
""")
    assert said.splitlines() == [
        "{'type': 'to jobs'}",
        "True",
        "{'type': 'kept'}",
        "True",
        "True",
    ]


def test_the_file_is_that_of_the_database_when_it_is_used(site: "Site") -> None:
    site.set(LAYER + "DATABASES['default']['TEST'] = {'NAME': BASE_DIR / 'test.db'}\n")
    said = site.run("""
import os, sqlite3
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.test.utils import setup_databases, setup_test_environment, teardown_databases
layer = get_channel_layer()
setup_test_environment()
old = setup_databases(0, False)
async_to_sync(layer.send)("jobs", {"to": "the test"})
print(async_to_sync(layer.receive)("jobs"))
async_to_sync(layer.send)("jobs", {"to": "nobody"})
async_to_sync(layer.close)()
teardown_databases(old, 0)
async_to_sync(layer.send)("jobs", {"to": "the site"})
print(async_to_sync(layer.receive)("jobs"))
async_to_sync(layer.close)()
""")
    assert said.splitlines() == ["{'to': 'the test'}", "{'to': 'the site'}"]


def test_a_database_in_memory_is_refused(site: "Site") -> None:
    site.set(LAYER)
    said = site.run("""
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.core.exceptions import ImproperlyConfigured
from django.test.utils import setup_databases, setup_test_environment, teardown_databases
setup_test_environment()
old = setup_databases(0, False)
try:
    async_to_sync(get_channel_layer().send)("jobs", {})
except ImproperlyConfigured as error:
    print(error)
teardown_databases(old, 0)
print(sorted(each for each in os.listdir() if "memory" in each))
""")
    assert "which is in memory" in said
    assert "'TEST'" in said
    assert said.splitlines()[-1] == "[]"


def test_what_cannot_be_is_said_when_the_layer_is_made(site: "Site") -> None:
    for options, expected in (
        ({"path": ":memory:"}, "a cable is a file"),
        ({"path": "cable.db", "capacity": "5"}, "capacity is a whole number"),
        ({"path": "cable.db", "expiry": "60"}, "expiry is a number of seconds"),
    ):
        site.set(LAYER.replace('{"database": "default"}', repr(options)))
        said = site.run("""
from channels.layers import get_channel_layer
from django.core.exceptions import ImproperlyConfigured
try:
    get_channel_layer()
except ImproperlyConfigured as error:
    print(error)
""")
        assert expected in said


def test_a_new_channel_has_a_name_that_the_layer_takes(site: "Site") -> None:
    site.set(LAYER)
    said = site.run("""
import asyncio
from channels.layers import get_channel_layer
layer = get_channel_layer()
for prefix in ("x" * 33, "x" * 34, "a!b", "a b", 5):
    try:
        name = asyncio.run(layer.new_channel(prefix))
        asyncio.run(layer.send(name, {}))
        print("sent")
    except TypeError as error:
        print("refused")
asyncio.run(layer.close())
""")
    assert said.splitlines() == ["sent", *["refused"] * 4]


def test_a_task_that_outlives_a_transaction_is_part_of_none(site: "Site") -> None:
    site.set(LAYER)
    said = site.run("""
import asyncio, contextvars
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
layer = get_channel_layer()
kept = []

async def keep():
    kept.append(contextvars.copy_context())

async def later():
    await layer.send("orders", {"text": "later"})

transaction.set_autocommit(False)
async_to_sync(keep)()
Note.objects.create(text="kept")
transaction.commit()
list(Note.objects.all())
kept.pop().run(asyncio.run, later())
transaction.rollback()
async_to_sync(keep)()
transaction.rollback()
kept.pop().run(asyncio.run, later())
transaction.set_autocommit(True)
print(async_to_sync(layer.receive)("orders"), async_to_sync(layer.receive)("orders"))
async_to_sync(layer.close)()
""")
    assert said == "{'text': 'later'} {'text': 'later'}"


def test_no_thread_is_left_of_a_layer_that_is_forgotten(site: "Site") -> None:
    site.set(LAYER)
    said = site.run("""
import asyncio, gc, threading
from oxlite.django.channels import OxliteChannelLayer

async def use():
    layer = OxliteChannelLayer("cable.db", channel_capacity={"jobs.*": 5})
    await layer.send("jobs", {})
    await layer.receive("jobs")

asyncio.run(use())
gc.collect()
ends = time.monotonic() + 30
while any(each.name.startswith("oxlite cable") for each in threading.enumerate()):
    assert time.monotonic() < ends
    time.sleep(0.01)
print("none")
""")
    assert said == "none"
