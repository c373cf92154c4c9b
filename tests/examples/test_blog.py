"""The blog, served by Gunicorn and by uvicorn over HTTP on the loopback, with 16 clients."""

import http.client
import importlib.util
import os
import re
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from tests.wait import until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "django_blog"
MODULE = "oxlite.bench.workloads.web.blog"
CLIENTS = 16
SECONDS = 3.0

SERVERS = {
    "gunicorn": [
        *("gunicorn", "--workers", "3", "--threads", "4", f"{MODULE}.wsgi", "--bind"),
        "127.0.0.1:{port}",
    ],
    "uvicorn": [
        *("uvicorn", "--workers", "2", "--log-level", "warning", "--lifespan", "off"),
        *(f"{MODULE}.asgi:application", "--port", "{port}"),
    ],
}

for needed in ("django", "gunicorn", "uvicorn"):
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed", allow_module_level=True)


def manage(*arguments: str, engine: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run the example's manage.py on a database in ``folder``."""
    return subprocess.run(
        [sys.executable, str(EXAMPLE / "manage.py"), *arguments],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        cwd=folder,
        env=environment(engine, folder),
    )


def environment(engine: str, folder: Path) -> dict[str, str]:
    """The variables with which the blog runs in ``folder``, or on the database that is named."""
    database = os.environ.get("BLOG_DATABASE", str(folder / "blog.db"))
    named = {"BLOG_ENGINE": engine, "BLOG_DATABASE": database}
    # A source tree on PYTHONPATH may be named from where the tests began.
    paths = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    return {**os.environ, **named, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, paths))}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with a small blog."""
    for command in (["migrate"], ["seed_blog", "--users", "20", "--posts", "100"]):
        done = manage(*command, engine="oxlite.django.sqlite3", folder=tmp_path)
        assert done.returncode == 0, done.stderr
    return tmp_path


@contextmanager
def served(server: str, folder: Path, engine: str = "oxlite.django.sqlite3") -> Iterator[int]:
    """The blog on a server; its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    log = folder / "log"
    command = [part.format(port=port) for part in SERVERS[server]]
    with log.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=folder,
            env=environment(engine, folder) | {"PYTHONWARNINGS": "ignore"},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        ends = time.monotonic() + 60
        while True:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < ends, log.read_text()
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(30)
    assert "Traceback" not in log.read_text(), log.read_text()


def ask(
    port: int, method: str, path: str, form: dict[str, str] | None = None, cookie: str = ""
) -> tuple[int, http.client.HTTPMessage, str]:
    """Send one request on a connection of its own: status, headers, and what was answered."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": cookie}
        connection.request(method, path, urlencode(form) if form else None, headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()


def drive(port: int, mix: str) -> tuple[Counter[str], Counter[str]]:
    """Have the clients ask; how each was answered, and by how many rows tables have grown."""
    answers: Counter[str] = Counter()
    changes: Counter[str] = Counter()
    lock = threading.Lock()
    ends = time.monotonic() + SECONDS

    def work() -> None:
        while time.monotonic() < ends:
            try:
                status, headers, _ = ask(port, "POST", f"/benchmark/{mix}")
                kind = "good" if status < 400 else headers.get("Blog-Failure", f"status {status}")
            except OSError as error:
                kind, headers = type(error).__name__, http.client.HTTPMessage()
            with lock:
                answers[kind] += 1
                for table, change in re.findall(r"(\w+)([+-]\d+)", headers.get("Blog-Changed", "")):
                    changes[table] += int(change)

    threads = [threading.Thread(target=work) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers, changes


def rows(folder: Path) -> Counter[str]:
    """How many posts and comments there are, in a file that is sound."""
    with closing(sqlite3.connect(folder / "blog.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return Counter(
            {
                name: connection.execute(f"SELECT count(*) FROM blog_{name[:-1]}").fetchone()[0]
                for name in ("posts", "comments")
            }
        )


@pytest.mark.parametrize(
    ("server", "atomic_requests"), [("gunicorn", "0"), ("gunicorn", "1"), ("uvicorn", "0")]
)
def test_no_request_fails_and_every_answer_is_true(
    server: str, atomic_requests: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLOG_ATOMIC_REQUESTS", atomic_requests)
    before = rows(folder)
    with served(server, folder) as port:
        answers, changes = drive(port, "balanced")
    print(f"{server}: {dict(answers)}, {dict(changes)}")
    assert answers.keys() == {"good"}
    after = rows(folder)
    for name in before:
        assert after[name] == before[name] + changes[name]


def test_the_same_site_on_djangos_own_backend(folder: Path) -> None:
    """For comparison: what comes of it is printed, and not judged; but every answer is true."""
    (folder / "blog.db").unlink()
    engine = "django.db.backends.sqlite3"
    for command in (["migrate"], ["seed_blog", "--users", "20", "--posts", "100"]):
        assert manage(*command, engine=engine, folder=folder).returncode == 0
    before = rows(folder)
    with served("gunicorn", folder, engine) as port:
        answers, changes = drive(port, "balanced")
    print(f"Django's own: {dict(answers)}, {dict(changes)}")
    after = rows(folder)
    for name in before:
        assert after[name] == before[name] + changes[name]


def use(port: int) -> None:
    """Do what people do with a blog of 100 posts, and read each answer."""
    status, headers, page = ask(port, "GET", "/")
    assert status == 200
    assert page.count('class="title"') == 100
    cookie = headers["Set-Cookie"].partition(";")[0]
    found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    assert found is not None
    signed = {"csrfmiddlewaretoken": found[1]}

    new = {**signed, "title": "What is new", "body": "One <b>word</b>."}
    status, headers, _ = ask(port, "POST", "/posts/", new, cookie)
    assert (status, headers["Blog-Changed"]) == (302, "posts+1")
    post = headers["Location"]
    status, _, page = ask(port, "POST", "/posts/", new, cookie)
    assert status == 422
    assert "already exists" in page
    assert ask(port, "POST", "/posts/", {**signed, "title": "No words"}, cookie)[0] == 422

    remark = {**signed, "body": "Well said."}
    status, headers, _ = ask(port, "POST", f"{post}comments/", remark, cookie)
    assert (status, headers["Blog-Changed"]) == (302, "comments+1")
    _, _, page = ask(port, "GET", post)
    assert "One &lt;b&gt;word&lt;/b&gt;." in page
    assert "Well said." in page
    author = re.search(r'href="(/users/[^"]+)"', page)
    assert author is not None
    assert "Latest comments" in ask(port, "GET", author[1])[2]
    assert ask(port, "GET", f"/users/{quote('Amina Adeyemi')}/")[0] == 200

    comment = headers["Location"].rpartition("-")[2]
    status, headers, _ = ask(port, "POST", f"/comments/{comment}/destroy/", signed, cookie)
    assert (status, headers["Blog-Changed"]) == (302, "comments-1")
    ask(port, "POST", f"{post}comments/", remark, cookie)
    status, headers, _ = ask(port, "POST", f"{post}destroy/", signed, cookie)
    assert (status, headers["Blog-Changed"]) == (302, "posts-1 comments-1")

    assert ask(port, "GET", post)[0] == 404
    assert ask(port, "POST", "/posts/", new)[0] == 403, "without the form's signature"
    assert ask(port, "GET", "/benchmark/balanced")[0] == 405
    assert ask(port, "POST", "/benchmark/unbalanced")[0] == 404


def test_people_can_read_write_and_destroy(folder: Path) -> None:
    with served("gunicorn", folder) as port:
        use(port)


def test_each_visit_is_noted(folder: Path) -> None:
    def latest() -> str:
        with closing(sqlite3.connect(folder / "blog.db")) as connection:
            seen: str = connection.execute("SELECT max(last_seen_at) FROM blog_user").fetchone()[0]
            return seen or ""

    with served("gunicorn", folder) as port:
        for path in ("/", "/posts/1/"):
            before = latest()
            assert ask(port, "GET", path)[0] == 200
            assert latest() > before


def test_the_seeded_blog_is_the_same_again(tmp_path: Path) -> None:
    contents = []
    for name in ("one", "other"):
        place = tmp_path / name
        place.mkdir()
        for command in (["migrate"], ["seed_blog", "--users", "100", "--posts", "30"]):
            done = manage(*command, engine="oxlite.django.sqlite3", folder=place)
            assert done.returncode == 0, done.stderr
        with closing(sqlite3.connect(place / "blog.db")) as connection:
            contents.append(
                connection.execute(
                    "SELECT title, body, user_id, (SELECT group_concat(user_id || body)"
                    " FROM blog_comment WHERE post_id = blog_post.id) FROM blog_post ORDER BY id"
                ).fetchall()
            )
            fewest, most = connection.execute(
                "SELECT min(n), max(n) FROM"
                " (SELECT count(*) AS n FROM blog_comment GROUP BY post_id)"
            ).fetchone()
            assert 5 <= fewest < most <= 15
            assert connection.execute("SELECT count(*) FROM blog_user").fetchone() == (100,)
    assert contents[0] == contents[1]
    again = manage("seed_blog", engine="oxlite.django.sqlite3", folder=tmp_path / "one")
    assert again.returncode
    assert "seed_blog is for an empty one" in again.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [("{", "BLOG_OPTIONS is no JSON"), ("[]", "BLOG_OPTIONS must be a JSON object")],
)
def test_options_that_are_none_are_refused(
    options: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BLOG_OPTIONS", options)
    done = manage("check", engine="oxlite.django.sqlite3", folder=tmp_path)
    assert done.returncode
    assert message in done.stderr


def test_keys_and_titles_have_indexes(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "blog.db")) as connection:
        indexed = {
            (table, column)
            for (table,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table'"
            ).fetchall()
            for _, index, *_ in connection.execute(f"PRAGMA index_list({table})").fetchall()
            for _, _, column in connection.execute(f"PRAGMA index_info({index})").fetchall()
        }
    assert indexed >= {
        ("blog_user", "screen_name"),
        ("blog_post", "title"),
        ("blog_post", "user_id"),
        ("blog_comment", "user_id"),
        ("blog_comment", "post_id"),
    }


@pytest.mark.skipif(
    not (importlib.util.find_spec("django.tasks") or importlib.util.find_spec("django_tasks")),
    reason="neither Django's tasks nor django-tasks are installed",
)
def test_authors_are_told_of_comments(folder: Path) -> None:
    """The comment and the task that sends its mail are one transaction; a worker sends it."""
    send_a_mail("oxlite.django.sqlite3", folder)


def send_a_mail(engine: str, folder: Path) -> None:
    """Comment on a post, and have a worker run until its author is told."""
    variables = {
        **environment(engine, folder),
        "BLOG_MAILS": str(folder / "mails"),
    }
    comment = """
from django.test import Client
answer = Client(headers={"host": "localhost"}).post("/posts/7/comments/", {"body": "Well said"})
assert answer.status_code == 302, answer.content
"""
    for command in (["migrate"], ["shell", "--command", comment]):
        done = subprocess.run(
            [sys.executable, str(EXAMPLE / "manage.py"), *command],
            cwd=folder, env=variables, capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    worker = subprocess.Popen(
        [sys.executable, str(EXAMPLE / "manage.py"), "oxlite_worker"], cwd=folder, env=variables
    )
    try:
        mails = folder / "mails"
        until(
            lambda: (
                mails.is_dir() and any("Well said" in one.read_text() for one in mails.iterdir())
            )
        )
        worker.terminate()
        assert worker.wait(60) == 0
    finally:
        worker.kill()
        worker.wait()
