"""The site of ``web`` that has pools: answers say what they do, and sessions use their pools."""

import http.client
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from oxlite.bench import UsageError
from oxlite.bench.harness import installed
from oxlite.bench.harness.cells import cell, cells
from oxlite.bench.harness.databases import Database
from oxlite.bench.harness.run import Listener
from oxlite.bench.lab import Request, perform
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.web import generator, ladder, mixes, server, verify, workload
from oxlite.bench.workloads.web.parameters import WebParameters
from oxlite.bench.workloads.web.server import Account, read_account

pytestmark = pytest.mark.slow

KINDS = ("shared", "isolated")
NEEDED = (*workload.NEEDED, *installed.POOLED_NEEDED)


def _absent() -> str | None:
    for name in NEEDED:
        if importlib.util.find_spec(name) is None:
            return f"{name} is not installed"
    return None


def _without_generator() -> str | None:
    try:
        generator.find("oha")
    except UsageError as error:
        return str(error)
    return _absent()


needs_site = pytest.mark.skipif(_absent() is not None, reason=_absent() or "all is there")
serves = pytest.mark.skipif(
    _without_generator() is not None, reason=_without_generator() or "all is there"
)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small blog, as Django has made it."""
    path = tmp_path_factory.mktemp("blog") / "blog.db"
    code = (
        "import django; django.setup();"
        "from django.core.management import call_command;"
        "call_command('migrate', verbosity=0); call_command('seed_blog', users=10, posts=60)"
    )
    environment = ladder.environment(Scenario("stdlib", settings="defaults"), path)
    subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        timeout=60,
        check=True,
        env={**os.environ, **environment},
    )
    return path


@pytest.fixture
def database(template: Path, tmp_path: Path) -> Database:
    """A copy of it."""
    path = tmp_path / "blog.db"
    shutil.copy(template, path)
    return Database(_scenario("shared"), path, tmp_path)


def _scenario(settings: str, busy: str = "gate", **more: str) -> Scenario:
    return Scenario("oxlite", busy=busy, settings=settings, connections="kept", **more)


@contextmanager
def _pools(kind: str, path: Path, busy: str = "gate") -> Iterator[Any]:
    from oxlite.bench.workloads.web.pooled.pools import pools_of

    pools = pools_of(ladder.pooled_environment(_scenario(kind, busy), path, 5))
    try:
        yield pools
    finally:
        pools.dispose()


class _Client:
    """Somebody who asks the site, without a server, and keeps the account that one would."""

    def __init__(self, pools: Any) -> None:  # noqa: ANN401 - loaded where its packages are
        from oxlite.bench.workloads.web.pooled.application import application

        self._client = application(pools).test_client()
        self._log = ""

    def get(self, address: str) -> tuple[int, str]:
        answer = self._client.get(address)
        return answer.status_code, answer.text

    def post(self, address: str) -> int:
        answer = self._client.post(address)
        names = ("Blog-Endpoint", "Blog-Changed", "Blog-Failure")
        words = [answer.headers.get(name, server.ABSENT) for name in names]
        self._log += "\t".join(["POST", str(answer.status_code), *words]) + "\n"
        return int(answer.status_code)

    def account(self) -> Account:
        return read_account(self._log)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401
    """Say what the next request of a mix is to be."""
    from oxlite.bench.workloads.web.pooled import application

    def ask(endpoint: str) -> None:
        monkeypatch.setattr(application, "pick_endpoint", lambda mix: endpoint)

    return ask


@needs_site
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("endpoint", mixes.ENDPOINTS)
def test_every_endpoint_changes_what_it_says(
    kind: str,
    endpoint: str,
    database: Database,
    asked: Any,  # noqa: ANN401
) -> None:
    before = verify.count_rows(database)
    seen = "SELECT count(last_seen_at) FROM blog_user"
    with _pools(kind, database.path) as pools:
        client = _Client(pools)
        asked(endpoint)
        statuses = {client.post("/benchmark/balanced") for _ in range(3)}
    assert statuses == {302 if endpoint in mixes.ENDPOINTS[:4] else 200}
    account = client.account()
    assert account.endpoints == {endpoint: 3}
    assert not account.failures
    changes = {
        "post_create": {"posts": 3},
        "comment_create": {"comments": 3},
        "comment_destroy": {"comments": -3},
    }
    if endpoint == "post_destroy":
        assert account.changes["posts"] == -3
        assert account.changes["comments"] <= -3 * 5, "each has at least five"
    else:
        assert dict(account.changes) == changes.get(endpoint, {})
    verify.check_rows(before, verify.count_rows(database), account, 0)
    assert 1 <= database.rows(seen)[0][0] <= 3
    verify.check_file(database.path, ladder.journal_mode(_scenario(kind)))


@needs_site
@pytest.mark.parametrize("kind", KINDS)
def test_one_insert_and_nothing_else(kind: str, database: Database) -> None:
    before = verify.count_rows(database)
    with _pools(kind, database.path) as pools:
        client = _Client(pools)
        assert client.post("/benchmark/single_insert") == 201
    account = client.account()
    assert account.endpoints == {"single_insert": 1}
    assert dict(account.changes) == {"comments": 1}
    verify.check_rows(before, verify.count_rows(database), account, 0)
    assert database.rows("SELECT count(last_seen_at) FROM blog_user") == [(0,)]


@needs_site
def test_the_pages(database: Database) -> None:
    [(name, about)] = database.rows("SELECT screen_name, about FROM blog_user WHERE id = 1")
    [(title,)] = database.rows("SELECT title FROM blog_post WHERE id = 1")
    with _pools("isolated", database.path) as pools:
        client = _Client(pools)
        status, page = client.get("/")
        assert (status, page.count('<a href="/posts/')) == (200, 60)
        assert title in client.get("/posts/1/")[1]
        status, page = client.get(f"/users/{name}/")
        assert status == 200
        assert about in page
        assert client.get("/posts/99999/")[0] == 404
        assert client.get("/users/nobody/")[0] == 404
        assert client.post("/benchmark/no_such_mix") == 404
    assert client.account().failures == {"status 404": 1}


@needs_site
def test_what_fails_is_counted_and_leaves_nothing_behind(database: Database, asked: Any) -> None:  # noqa: ANN401
    before = verify.count_rows(database)
    with _pools("isolated", database.path) as pools:
        with pools.engines[0].begin() as connection:
            connection.exec_driver_sql(
                "CREATE TRIGGER no_comments BEFORE INSERT ON blog_comment "
                "BEGIN SELECT RAISE(ABORT, 'none are\ttaken …'); END"
            )
        client = _Client(pools)
        asked("comment_create")
        assert client.post("/benchmark/balanced") == 500
        asked("post_create")
        assert client.post("/benchmark/balanced") == 302
        assert [engine.pool.checkedout() for engine in pools.engines] == [0, 0]
    account = client.account()
    assert account.failures == {"IntegrityError: none are taken \\u2026": 1}
    assert account.endpoints == {"post_create": 1}
    verify.check_rows(before, verify.count_rows(database), account, 0)


def _statements(pools: Any) -> list[list[str]]:  # noqa: ANN401
    """What each engine is told from now on."""
    from sqlalchemy import event

    found: list[list[str]] = [[] for _ in pools.engines]
    for engine, told in zip(pools.engines, found, strict=True):

        def hear(_: object, cursor: object, text: str, *more: object, told: Any = told) -> None:  # noqa: ANN401
            told.append(text.split()[0])

        event.listen(engine, "before_cursor_execute", hear)
    return found


@needs_site
def test_isolated_sessions_read_pages_on_the_readers(database: Database, asked: Any) -> None:  # noqa: ANN401
    with _pools("isolated", database.path) as pools:
        assert [engine.pool.size() for engine in pools.engines] == [1, 4]
        writer, reader = _statements(pools)
        client = _Client(pools)
        for endpoint in mixes.ENDPOINTS:
            asked(endpoint)
            is_page = endpoint in mixes.ENDPOINTS[4:]
            client.post("/benchmark/balanced")
            # The visit is on the writer, whatever comes after it.
            assert writer[:4] == ["SELECT", "SELECT", "SELECT", "UPDATE"]
            assert (len(writer) == 4) is is_page
            assert bool(reader) is is_page
            assert set(reader) <= {"SELECT"}
            writer.clear()
            reader.clear()
        client.post("/benchmark/single_insert")
    assert (writer, reader) == (["INSERT"], [])


@needs_site
@pytest.mark.parametrize("busy", ["gate", "fair", "backoff"])
def test_a_shared_pool_is_one_engine(busy: str, database: Database) -> None:
    with _pools("shared", database.path, busy) as pools:
        [engine] = pools.engines
        assert engine.pool.size() == 5
        assert engine.url.query == ({} if busy == "gate" else {"busy": busy})
        told = _statements(pools)
        client = _Client(pools)
        for _ in range(20):
            assert client.post("/benchmark/balanced") < 400
    assert not client.account().failures
    assert {"SELECT", "UPDATE"} <= set(told[0])


@needs_site
def test_pools_that_there_are_not(tmp_path: Path) -> None:
    from oxlite.bench.workloads.web.pooled.pools import pools_of

    environment = ladder.pooled_environment(_scenario("shared"), tmp_path / "blog.db", 5)
    with pytest.raises(ValueError, match="POOLED_POOLS is shared or isolated, not 'open'"):
        pools_of({**environment, "POOLED_POOLS": "open"})


@needs_site
@pytest.mark.parametrize("kind", KINDS)
def test_more_threads_than_connections_fail_nothing(kind: str, database: Database) -> None:
    """On a real server, asked by twice as many as it has connections."""
    before = verify.count_rows(database)
    parameters = WebParameters(workers=1, threads=2, pool=2)
    environment = ladder.pooled_environment(_scenario(kind), database.path, parameters.pool)

    def ask(port: int) -> int:
        connection = http.client.HTTPConnection(server.LOOPBACK, port, timeout=60)
        try:
            connection.request("POST", "/benchmark/write_heavy")
            return connection.getresponse().status
        finally:
            connection.close()

    with server.served(environment, parameters, database.directory, pooled=True) as site:
        with ThreadPoolExecutor(8) as clients:
            statuses = list(clients.map(ask, [site.port] * 80))
        account = site.finish()
    assert max(statuses) < 400
    assert not account.failures
    assert account.statuses.total() == account.endpoints.total() == 80
    verify.check_rows(before, verify.count_rows(database), account, 0)
    verify.check_file(database.path, "wal")


@serves
def test_its_rows_do_their_work(tmp_path: Path, listener: Listener) -> None:
    given = {"clients": (8,), "duration_seconds": 0.5, "users": 10, "posts": 60}
    chosen = [
        "settings=shared,busy=gate,mix=balanced",
        "settings=isolated,busy=gate,mix=balanced",
        "settings=isolated,busy=fair,mix=single_insert",
    ]
    result = perform(Request("web", given, chosen, repeats=1, directory=tmp_path), listener)
    assert not result.failed(), [row.failure for row in result.rows]
    rows = {row.label: row for row in result.rows if row.scenario.driver == "oxlite"}
    assert set(rows) == {
        "oxlite gate shared kept balanced 8 clients",
        "oxlite gate isolated kept balanced 8 clients",
        "oxlite fair isolated kept single_insert 8 clients",
    }
    for row in rows.values():
        [sample] = row.samples
        assert sample.asked > 0
        assert not sample.errors
        assert sample.detail["versions"].keys() >= {"driver", "sqlite", "flask", "sqlalchemy"}
        assert sample.detail["threads"] == 16
        assert row.environment is not None
        assert row.environment["connection"]["pragmas"]["journal_mode"] == "wal"
    assert not list(tmp_path.iterdir())


def test_where_its_packages_are_missing_its_rows_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "POOLED_NEEDED", ("sqlite3", "no_such_module"))
    for kind in KINDS:
        reason = cell(_scenario(kind)).reason
        assert reason == (
            "the site with pools needs no_such_module; run `pip install no_such_module`"
        )
    assert cell(_scenario("engine")).reason is None


def test_they_are_in_the_full_selection_and_not_in_the_quick_one() -> None:
    grids = workload.WORKLOAD.grids(WebParameters())
    for selection, expected in (
        (workload.WORKLOAD.selection, {(kind, "gate", "kept", "balanced") for kind in KINDS}),
        (workload.WORKLOAD.quick_selection, set()),
    ):
        found = [one.scenario for one in cells(grids, selection, workload.WORKLOAD.baselines)]
        axes = ("settings", "busy", "connections", "mix")
        pooled = [one for one in found if ladder.is_pooled(one)]
        assert {tuple(one[axis] for axis in axes) for one in pooled} == expected


@pytest.mark.parametrize(
    ("given", "threads"), [({}, 16), ({"pool": 10}, 30), ({"threads": 64}, 64)]
)
def test_there_are_more_threads_than_connections(given: dict[str, int], threads: int) -> None:
    parameters = WebParameters(**given)  # type: ignore[arg-type]
    assert server.threads_of(parameters, pooled=True) == threads > parameters.pool
    assert server.threads_of(parameters, pooled=False) == parameters.threads


def test_work_without_a_pool_of_another_size_is_what_it_was() -> None:
    def named(parameters: WebParameters) -> set[str]:
        work = workload.WORKLOAD.work(parameters)
        assert isinstance(work, list)
        return {name for name, _ in work}

    assert "pool" not in named(WebParameters())
    assert "pool" in named(WebParameters(pool=8))
