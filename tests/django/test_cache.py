"""Django's cache on Oxlite: what its own tests do not ask for."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("django", reason="the extra oxlite[django] is not installed")

_SETTINGS = """
import sys
import django
from django.conf import settings
settings.configure(
    SECRET_KEY="secret",
    INSTALLED_APPS=["oxlite.django", "django.contrib.sessions"],
    DATABASES={"default": {"ENGINE": "oxlite.django.sqlite3", "NAME": sys.argv[1] + "/app.db"}},
    CACHES={
        "default": {
            "BACKEND": "oxlite.django.cache.OxliteCache",
            "LOCATION": sys.argv[1] + "/cache.db",
            "OPTIONS": {"size": 8 << 20},
        },
        "memory": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    },
    SESSION_ENGINE="django.contrib.sessions.backends.cache",
    ROOT_URLCONF="__main__",
    ALLOWED_HOSTS=["*"],
)
django.setup()
from django.core.cache import cache, caches
urlpatterns = []
"""


def run(folder: Path, script: str) -> str:
    command = [sys.executable, "-W", "ignore", "-c", _SETTINGS + script, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_its_file_is_shown_by_manage(tmp_path: Path) -> None:
    script = """
cache.set_many({f"k{n}": n for n in range(7)})
from django.core.management import call_command
call_command("oxlite", "cache", "stats", "--json")
call_command("oxlite", "cache", "clear")
assert cache.get("k1") is None
try:
    call_command("oxlite", "--cache", "memory", "cache", "stats")
except Exception as error:
    print(type(error).__name__, error)
"""
    said = run(tmp_path, script)
    assert '"entries": 7' in said
    assert "CommandError settings.CACHES['memory'] is no oxlite.django.cache.OxliteCache" in said


def test_a_site_goes_on_without_its_file(tmp_path: Path) -> None:
    script = """
import os
os.mkdir(sys.argv[1] + "/cache.db")  # no file can be there
assert cache.get("k", "miss") == "miss"
cache.set("k", 1)
assert cache.get_or_set("k", lambda: 5) == 5
assert not cache.add("l", 1)
assert cache.get_many(["k"]) == {}
from django.contrib.sessions.backends.cache import SessionStore
"""
    run(tmp_path, script)


def test_pages_sessions_and_another_key(tmp_path: Path) -> None:
    script = """
from django.http import HttpResponse
from django.test import Client, override_settings
from django.urls import path
from django.views.decorators.cache import cache_page
asked = []
def view(request):
    asked.append(1)
    request.session["n"] = request.session.get("n", 0) + 1
    return HttpResponse(str(request.session["n"]))
def page(request):
    asked.append(1)
    return HttpResponse("page")
urlpatterns += [path("view", view), path("page", cache_page(60)(page))]
middleware = ["django.contrib.sessions.middleware.SessionMiddleware"]
with override_settings(MIDDLEWARE=middleware):
    client = Client()
    assert [client.get("/view").content for _ in range(3)] == [b"1", b"2", b"3"]
    assert [client.get("/page").content for _ in range(3)] == [b"page"] * 3
    assert len(asked) == 4
cache.set("k", {"a": (1, 2)})
with override_settings(SECRET_KEY="other"):
    from django.core.cache import CacheHandler
    assert CacheHandler()["default"].get("k", "miss") == "miss"
with override_settings(SECRET_KEY="new", SECRET_KEY_FALLBACKS=["secret"]):
    assert CacheHandler()["default"].get("k") == {"a": (1, 2)}
"""
    run(tmp_path, script)


def test_the_methods_for_event_loops_use_no_thread_of_pythons(tmp_path: Path) -> None:
    script = """
import asyncio, threading
async def main():
    await cache.aset("k", 1)
    assert await cache.aget("k") == 1
    assert await cache.aincr("k") == 2
    assert await cache.adecr("k") == 1
    assert await cache.aadd("k", 1) is False
    assert await cache.aset_many({"a": 1, "b": 2}) == []
    assert await cache.aget_many(["a", "b", "c"]) == {"a": 1, "b": 2}
    assert await cache.atouch("a", 10)
    assert await cache.ahas_key("a")
    await cache.adelete_many(["a"])
    assert not await cache.adelete("a")
    async def compute():
        return "computed"
    assert await cache.aget_or_set("c", compute) == "computed"
    with_threads = {thread.name for thread in threading.enumerate() if "asyncio" in thread.name}
    for n in range(100):
        await asyncio.gather(*(cache.aget("k") for _ in range(20)))
    after = {thread.name for thread in threading.enumerate() if "asyncio" in thread.name}
    assert after == with_threads, after
    await cache.aclear()
    assert await cache.aget("k") is None
asyncio.run(main())
assert cache.get("k") is None
"""
    run(tmp_path, script)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"LOCATION": ""}, "needs LOCATION"),
        ({"OPTIONS": {"sizes": 1}}, "has no option 'sizes'"),
        ({"OPTIONS": {"size": 1}}, "size is at least 1,048,576 bytes"),
        ({"OPTIONS": {"timeout": 1}}, "has no option 'timeout'"),
    ],
)
def test_wrong_settings_are_told(tmp_path: Path, options: dict[str, object], message: str) -> None:
    script = f"""
settings.CACHES["default"] |= {options!r}
from django.core.cache import CacheHandler
try:
    CacheHandler(settings.CACHES)["default"]
except Exception as error:
    print(type(error).__name__, error)
"""
    said = run(tmp_path, script)
    assert said.startswith("ImproperlyConfigured")
    assert message in said
