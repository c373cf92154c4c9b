"""A chat in Django: WebSockets, Channels and two processes, without Redis.

    uvicorn --app-dir examples/chat --workers 2 app:application

Whoever writes sends to the group of the room; each worker is woken for those of its own clients.
The last messages are rows of the site's database, so that who comes later sees them.
"""

import os
from pathlib import Path

import django
from django.conf import settings
from django.http import FileResponse, HttpRequest
from django.urls import path

HERE = Path(__file__).parent
FOLDER = Path(os.environ.get("CHAT_FOLDER", "."))
SHOWN_AT_MOST = 50
TEXT_LENGTH_AT_MOST = 500

settings.configure(
    ALLOWED_HOSTS=["127.0.0.1", "localhost"],
    DATABASES={"default": {"ENGINE": "oxlite.django.sqlite3", "NAME": FOLDER / "chat.db"}},
    CHANNEL_LAYERS={
        "default": {
            "BACKEND": "oxlite.django.channels.OxliteChannelLayer",
            "CONFIG": {"path": FOLDER / "cable.db"},
        }
    },
    ROOT_URLCONF=__name__,
    SECRET_KEY=os.environ.get("CHAT_SECRET_KEY", "for a chat on one's own machine"),
    USE_TZ=True,
)
django.setup()

from asgiref.sync import sync_to_async  # noqa: E402 - they want settings
from channels.generic.websocket import AsyncJsonWebsocketConsumer  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402
from django.core.asgi import get_asgi_application  # noqa: E402
from django.db import connection  # noqa: E402


def page(request: HttpRequest) -> FileResponse:
    """The page."""
    return FileResponse((HERE / "page.html").open("rb"), content_type="text/html")


@sync_to_async
def prepare() -> None:
    """Make the table, if it is not there."""
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE IF NOT EXISTS message"
            " (id INTEGER PRIMARY KEY, author TEXT NOT NULL, text TEXT NOT NULL)"
        )


@sync_to_async
def keep(author: str, text: str) -> int:
    """Write a message down; its number."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO message (author, text) VALUES (%s, %s)", [author, text])
        return int(cursor.lastrowid)


@sync_to_async
def after(number: int) -> list[dict[str, object]]:
    """The last messages after that number, in order."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, author, text FROM message WHERE id > %s ORDER BY id DESC LIMIT %s",
            [number, SHOWN_AT_MOST],
        )
        rows = cursor.fetchall()
    return [{"id": id, "author": author, "text": text} for id, author, text in reversed(rows)]


class Chat(AsyncJsonWebsocketConsumer):
    """One window."""

    groups = ("chat",)

    async def connect(self) -> None:
        """Greet it."""
        await prepare()
        await self.accept()

    async def receive_json(self, content: dict[str, object]) -> None:
        """Take what it says: a message, or up to where it has seen them."""
        if "seen" in content:
            seen = content["seen"]
            for message in await after(seen if isinstance(seen, int) else 0):
                await self.send_json(message)
            return
        author, text = (str(content.get(name, "")).strip() for name in ("author", "text"))
        if author and text:
            text = text[:TEXT_LENGTH_AT_MOST]
            message = {"id": await keep(author, text), "author": author, "text": text}
            await self.channel_layer.group_send("chat", {"type": "chat.message", "is": message})

    async def chat_message(self, event: dict[str, object]) -> None:
        """Tell it what somebody has said."""
        await self.send_json(event["is"])


urlpatterns = [path("", page)]
application = ProtocolTypeRouter(
    {
        "http": get_asgi_application(),
        "websocket": AllowedHostsOriginValidator(URLRouter([path("chat", Chat.as_asgi())])),
    }
)
