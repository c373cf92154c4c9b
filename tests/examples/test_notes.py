"""The two examples, served over HTTP on the loopback, with 32 clients that read and write."""

import http.client
import importlib.util
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLIENTS = 32
SECONDS = 3.0

FORMS = {
    "flask": (
        ["flask", "sqlalchemy"],
        ["flask", "--app", str(ROOT / "examples/flask_notes/app.py"), "run", "--port"],
        "sqlite",
    ),
    "fastapi": (
        ["fastapi", "uvicorn", "sqlalchemy", "aiosqlite"],
        [
            *("uvicorn", "--app-dir", str(ROOT / "examples/fastapi_notes")),
            *("--log-level", "warning", "app:app", "--port"),
        ],
        "sqlite+aiosqlite",
    ),
}


class Client:
    """One client: a connection for each request."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.answers: Counter[str] = Counter()
        self.stars = 0

    def ask(self, method: str, path: str, content: object = None) -> tuple[int, dict[str, object]]:
        """Send one request; its status, and what was answered."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        body = None if content is None else json.dumps(content)
        connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text) if answer.status < 300 else {}

    def work(self, ends: float) -> None:
        """Read and write until then, and count the answers."""
        turn = 0
        while time.monotonic() < ends:
            turn += 1
            try:
                if turn % 4 == 0:
                    status, _ = self.ask("POST", "/notes", {"text": f"note {turn}"})
                elif turn % 4 == 1:
                    status, _ = self.ask("POST", "/notes/1/star")
                    self.stars += status == 200
                elif turn % 4 == 2:
                    status, _ = self.ask("GET", "/notes/1")
                else:
                    status, _ = self.ask("GET", "/notes")
                self.answers["good" if status < 300 else f"status {status}"] += 1
            except OSError as error:
                self.answers[type(error).__name__] += 1


@contextmanager
def serve(form: str, url: str, folder: Path) -> Iterator[int]:
    """Serve an example on a database; its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / "log"
    environment = {**os.environ, "NOTES_URL": url, "PYTHONWARNINGS": "ignore"}
    # The dialect is found by its entry point; a checkout on PYTHONPATH has none.
    (folder / "sitecustomize.py").write_text(
        "from sqlalchemy.dialects import registry\n"
        "registry.register('sqlite.oxlite', 'oxlite.sqlalchemy.dialect', 'SQLiteDialect_oxlite')\n"
    )
    paths = [str(folder), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    environment["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, paths))
    with log.open("w") as file:
        server = subprocess.Popen(
            [sys.executable, "-m", *FORMS[form][1], str(port)],
            cwd=folder,
            env=environment,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        ends = time.monotonic() + 60
        while True:
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < ends, log.read_text()
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield port
    finally:
        server.terminate()
        server.wait(30)
    assert "Traceback" not in log.read_text() or not url.startswith("sqlite+oxlite")


def drive(port: int) -> tuple[Counter[str], int, int]:
    """Have the clients work; all answers, the stars given, the stars there are."""
    first = Client(port)
    assert first.ask("POST", "/notes", {"text": "the first"})[0] == 201
    clients = [Client(port) for _ in range(CLIENTS)]
    ends = time.monotonic() + SECONDS
    threads = [threading.Thread(target=client.work, args=(ends,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    answers = sum((client.answers for client in clients), Counter[str]())
    stars = first.ask("GET", "/notes/1")[1]["stars"]
    assert isinstance(stars, int)
    return answers, sum(client.stars for client in clients), stars


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    """One of the examples, if what it needs is there."""
    for module in FORMS[request.param][0]:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    return str(request.param)


def test_no_request_fails_and_no_star_is_lost(form: str, tmp_path: Path) -> None:
    with serve(form, f"sqlite+oxlite:///{tmp_path}/notes.db", tmp_path) as port:
        answers, given, stars = drive(port)
        client = Client(port)
        assert client.ask("GET", "/notes/999999")[0] == 404
        assert client.ask("POST", "/notes", {"text": ""})[0] in {400, 422}
        assert client.ask("POST", "/notes", {"words": "x"})[0] in {400, 422}
    print(f"{form} on oxlite: {dict(answers)}, {given} stars given, {stars} there")
    assert answers.keys() == {"good"}
    assert stars == given > 0


def test_the_same_application_on_the_other_driver(form: str, tmp_path: Path) -> None:
    """For comparison: what comes of it is printed, and not judged."""
    url = f"{FORMS[form][2]}:///{tmp_path}/notes.db"
    with serve(form, url, tmp_path) as port:
        answers, given, stars = drive(port)
    print(f"{form} on {FORMS[form][2]}: {dict(answers)}, {given} stars given, {stars} there")
    assert answers
