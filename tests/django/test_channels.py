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
