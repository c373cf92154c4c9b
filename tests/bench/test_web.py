"""The workload web: a real server and real clients do the work, and three accounts of it agree."""

import importlib.util
import json
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from array import array
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest

from oxlite.bench import UsageError, VerificationError, WorkerError
from oxlite.bench.drivers.catalogue import DRIVERS
from oxlite.bench.harness.databases import Database
from oxlite.bench.harness.model import Plan, Result, Row, Sample
from oxlite.bench.harness.run import Listener
from oxlite.bench.harness.statistics import latencies
from oxlite.bench.lab import Request, perform
from oxlite.bench.report import facts
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.web import figures, generator, ladder, server, verify, workload
from oxlite.bench.workloads.web.claims import PUBLISHED, PublishedTable
from oxlite.bench.workloads.web.figures import FAILED_PERCENT, P99, RATE, REQUEST
from oxlite.bench.workloads.web.generator import Load
from oxlite.bench.workloads.web.parameters import WebParameters
from oxlite.bench.workloads.web.server import Account, read_account

pytestmark = pytest.mark.slow

TINY = {
    "clients": (4,),
    "threads": 2,
    "duration_seconds": 0.5,
    "users": 10,
    "posts": 60,
}
PATIENCE_SECONDS = 60.0
OURS = "driver=oxlite,busy=gate,connections=request,mix=balanced"
TABLES = workload.WORKLOAD.tables


def _absent() -> str | None:
    for name in workload.NEEDED:
        if importlib.util.find_spec(name) is None:
            return f"{name} is not installed"
    try:
        generator.find("oha")
    except UsageError as error:
        return str(error)
    return None


serves = pytest.mark.skipif(_absent() is not None, reason=_absent() or "all is there")


@serves
def test_every_row_does_its_work(tmp_path: Path, listener: Listener) -> None:
    own = "driver=stdlib,mix=balanced"
    fair = "driver=oxlite,settings=rollback,busy=fair,mix=balanced"
    request = Request("web", TINY, [own, fair, OURS], repeats=1, directory=tmp_path)
    result = perform(request, listener)
    assert not result.failed(), [row.failure for row in result.rows]
    assert [row.label for row in result.rows] == [
        *(f"stdlib backoff {name} request balanced 4 clients" for name, _ in ladder.STEPS),
        "stdlib backoff wal kept balanced 4 clients",
        "oxlite fair rollback request balanced 4 clients",
        "oxlite gate engine request balanced 4 clients",
    ]
    modes = dict.fromkeys(("defaults", "immediate", "timeout", "rollback"), "delete")
    for row in result.rows:
        [sample] = row.samples
        assert sample.asked > 0
        versions = DRIVERS.get(row.scenario.driver).versions()
        assert versions.items() <= sample.detail["versions"].items()
        assert sample.detail["versions"]["django"]
        assert sample.asked == sum(sample.detail["statuses"].values())
        assert sum(sample.errors.values()) == sample.asked - row.latencies[REQUEST].count
        assert row.environment is not None
        pragmas = row.environment["connection"]["pragmas"]
        assert pragmas["journal_mode"] == modes.get(row.scenario.get("settings") or "", "wal")
    assert not result.rows[-1].errors()
    timeouts = [
        row.environment["connection"]["pragmas"]["busy_timeout"]
        for row in result.rows
        if row.environment is not None
    ]
    assert timeouts[:4] == [5000, 5000, 20_000, 20_000]
    main, pools, *others = TABLES
    assert not pools.drawings(result), "none of these has pools"
    for table in (main, *others):
        assert table.drawings(result)
    assert not list(tmp_path.iterdir())


@serves
@pytest.mark.parametrize(
    ("settings", "busy", "mix", "atomic"),
    [
        ("engine", "fair", "write_heavy", "requests"),
        ("engine", "backoff", "write_heavy", "views"),
        ("engine", "gate", "single_insert", "views"),
        ("rollback", "held", "single_insert", "views"),
    ],
)
def test_the_ways_of_waiting_and_what_is_asked(
    settings: str,
    busy: str,
    mix: str,
    atomic: str,
    tmp_path: Path,
    listener: Listener,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a directory that is named from where the lab works."""
    monkeypatch.chdir(tmp_path)
    chosen = f"driver=oxlite,settings={settings},busy={busy},connections=request,mix={mix}"
    given = {**TINY, "atomic": atomic}
    result = perform(Request("web", given, [chosen], repeats=1, directory=Path()), listener)
    assert not result.failed(), [row.failure for row in result.rows]
    row = result.rows[-1]
    assert row.label == f"oxlite {busy} {settings} request {mix} 4 clients"
    [sample] = row.samples
    assert sample.asked > 0
    if mix == "single_insert":
        assert sample.detail["changes"] == {"comments": sample.asked}


@serves
def test_a_row_whose_site_does_not_start_fails_and_the_rest_goes_on(
    tmp_path: Path, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ladder, "OURS", "oxlite.no_such_backend")
    result = perform(Request("web", TINY, [OURS], repeats=1, directory=tmp_path), listener)
    *others, row = result.rows
    assert "oxlite.no_such_backend" in str(row.failure)
    assert others
    assert all(other.failure is None and other.samples for other in others)
    [*_, line] = TABLES[-1].drawings(result)[0].lines
    assert line.cells[-1] == "not known"


def test_a_server_that_does_not_start_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if importlib.util.find_spec("gunicorn") is None:
        pytest.skip("gunicorn is not installed")
    monkeypatch.setattr(server, "MODULE", "no_such_site")
    with (
        pytest.raises(WorkerError, match=r"the server has ended: .*no_such_site"),
        server.served({}, WebParameters(), tmp_path),
    ):
        pass


@serves
def test_postgresql_serves_the_same_blog(listener: Listener) -> None:
    if reason := DRIVERS.get("postgresql").missing():
        pytest.skip(reason)
    # Any account may enter it: root's PostgreSQL runs as another one.
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    asked = ["driver=postgresql,connections=request,mix=balanced", OURS]
    result = perform(Request("web", TINY, asked, repeats=1, directory=place), listener)
    assert not result.failed(), [row.failure for row in result.rows]
    [row] = [row for row in result.rows if row.scenario.driver == "postgresql"]
    assert row.label == "postgresql request balanced 4 clients"
    [sample] = row.samples
    assert sample.detail["statuses"].get("200") or sample.detail["statuses"].get(200)
    assert sample.detail["versions"]["postgresql"]
    assert row.environment is not None
    assert row.environment["connection"]["server"] == "PostgreSQL"
    assert not list(place.iterdir())
    place.rmdir()


@serves
def test_a_server_without_pages_is_refused(tmp_path: Path) -> None:
    """The file has no tables."""
    scenario = Scenario("stdlib", settings="defaults")
    environment = ladder.environment(scenario, tmp_path / "empty.db")
    with (
        pytest.raises(WorkerError, match="the server answers 500 to GET /"),
        server.served(environment, WebParameters(), tmp_path),
    ):
        pass


def test_a_missing_generator_is_said_before_anything_is_measured(
    tmp_path: Path, listener: Listener
) -> None:
    request = Request("web", {"generator": "no-such-program"}, quick=True, directory=tmp_path)
    with pytest.raises(UsageError, match=r"'no-such-program' is not installed; run `cargo install"):
        perform(request, listener)
    assert not list(tmp_path.iterdir())


def test_another_program_is_no_generator(tmp_path: Path, listener: Listener) -> None:
    request = Request("web", {"generator": "true"}, quick=True, directory=tmp_path)
    with pytest.raises(UsageError, match="/true is not oha, the load generator"):
        perform(request, listener)
    assert not list(tmp_path.iterdir())


def test_what_the_site_needs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload, "NEEDED", ("sqlite3", "no_such_module"))
    with pytest.raises(UsageError, match="run `pip install no_such_module`"):
        workload.require_installed()


@serves
def test_a_generator_that_fails_fails_its_row(tmp_path: Path, listener: Listener) -> None:
    failing = tmp_path / "failing-oha"
    failing.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && exec {generator.find("oha")} "$1"\nexit 1'
    )
    failing.chmod(0o755)
    given = {**TINY, "generator": str(failing)}
    result = perform(Request("web", given, [OURS], repeats=7, directory=tmp_path), listener)
    for row in result.rows:
        assert row.failure == "the load generator ended with exit code 1"
    # What has failed is not tried again, nor said to have been.
    assert len(result.orders) == result.repeats <= 1
    assert "of 7 repeats" in facts.head(result, workload.WORKLOAD)[2]


@serves
def test_the_command_says_how_to_repeat_it(bench: Any, tmp_path: Path) -> None:  # noqa: ANN401
    file = tmp_path / "result.json"
    ended = bench(
        "web", "--clients", "2", "--duration", "0.3", "--users", "5", "--posts", "20",
        "--workers", "1", "--threads", "2", "--repeats", "1",
        "--scenario", OURS, "--directory", tmp_path, "--json", file,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "repeat with: oxlite bench web --clients 2 --workers 1 --threads 2" in ended.stdout
    assert "than immediate" in ended.stdout
    rows = json.loads(file.read_text())["rows"]
    assert [row["failure"] for row in rows] == [None] * 3


def _all_below(lab: psutil.Process) -> list[psutil.Process]:
    """The processes of the lab once a server serves and a generator asks."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = lab.children(recursive=True)
        names = []
        for process in found:
            try:
                names.append(" ".join(process.cmdline()))
            except psutil.NoSuchProcess:
                continue
        # The master and two workers, which may have the name they give themselves.
        serving = [name for name in names if "gunicorn" in name or "oxlite-bench-web" in name]
        if len(serving) >= 3 and any("--disable-keepalive" in name for name in names):
            return found
        time.sleep(0.02)
    raise AssertionError("the server and the generator did not start")


@serves
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_server_and_generator_end_with_the_lab(
    start: Callable[..., "subprocess.Popen[str]"], tmp_path: Path, number: signal.Signals
) -> None:
    lab = start("web", "--clients", "4", "--duration", "600", "--users", "5", "--posts", "20",
                "--scenario", OURS, "--directory", str(tmp_path))  # fmt: skip
    found = _all_below(psutil.Process(lab.pid))
    lab.send_signal(number)
    lab.communicate(timeout=PATIENCE_SECONDS)
    _, alive = psutil.wait_procs(found, timeout=PATIENCE_SECONDS)
    assert not alive
    if number == signal.SIGINT:
        assert lab.returncode == 128 + number
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"clients": ()}, "--clients must be at least one number"),
        ({"clients": (0,)}, "--clients"),
        ({"workers": 0}, "--workers"),
        ({"threads": 0}, "--threads"),
        ({"pool": 1}, "--pool"),
        ({"duration_seconds": 0.0}, "--duration"),
        ({"rate": -1}, "--rate"),
        ({"users": 0}, "--users"),
        ({"posts": 0}, "--posts"),
        ({"atomic": "pages"}, "unknown value of --atomic 'pages'"),
    ],
)
def test_what_is_out_of_range_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        WebParameters(**given)


def test_each_step_keeps_what_those_before_it_have_set() -> None:
    def options(settings: str, busy: str = "backoff", driver: str = "stdlib") -> dict[str, object]:
        return ladder.options(Scenario(driver, settings=settings, busy=busy), Path("blog.db"))

    assert options("defaults") == {}
    assert options("immediate") == {"transaction_mode": "IMMEDIATE"}
    assert options("timeout") == {"transaction_mode": "IMMEDIATE", "timeout": 20}
    wal = options("wal")
    assert "journal_mode=WAL" in str(wal.pop("init_command"))
    assert wal == options("timeout")
    assert options("engine", "gate", "oxlite") == {}
    assert options("engine", "fair", "oxlite") == {"busy": "fair"}
    assert options("rollback", "fair", "oxlite") == {"profile": "stock", "busy": "fair"}
    for atomic, value in (("views", "0"), ("requests", "1")):
        found = ladder.environment(Scenario("stdlib", settings="wal"), Path("blog.db"), atomic)
        assert found["BLOG_ATOMIC_REQUESTS"] == value
        assert found["BLOG_DATABASE"] == "blog.db"
    for connections, value in (("request", "0"), ("kept", "1")):
        scenario = Scenario("stdlib", settings="wal", connections=connections)
        found = ladder.environment(scenario, Path("blog.db"))
        assert found["BLOG_KEEPS_CONNECTIONS"] == value
    found = ladder.environment(Scenario("postgresql"), Path("/sockets/blog_1"))
    assert found["BLOG_ENGINE"] == "django.db.backends.postgresql"
    assert found["BLOG_DATABASE"] == "blog_1"
    assert json.loads(found["BLOG_OPTIONS"]) == {"host": "/sockets", "user": "postgres"}


LOG = (
    "GET\t200\t-\t-\t-\n"
    "POST\t302\tpost_create\tposts+1\t-\n"
    "POST\t302\tpost_destroy\tposts-1 comments-12\t-\n"
    "POST\t200\tpost_show\t-\t-\n"
    "POST\t500\tpost_show\t-\tOperationalError: database is locked\n"
    "POST\t404\t-\t-\t-\n"
)


def test_the_servers_account() -> None:
    account = read_account(LOG)
    assert account.statuses == {302: 2, 200: 1, 500: 1, 404: 1}
    assert account.endpoints == {"post_create": 1, "post_destroy": 1, "post_show": 1}
    assert account.failures == {"OperationalError: database is locked": 1, "status 404": 1}
    assert dict(account.changes) == {"posts": 0, "comments": -12}
    for line in ("POST\t200\n", "POST\tx\t-\t-\t-\n", "POST\t200\tpost_show\tposts\t-\n"):
        with pytest.raises(VerificationError, match="the server's log has a line"):
            read_account(line)


def _written(path: Path, rows: list[tuple[int, float, float]]) -> None:
    """A database as oha writes it."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE oha (status INTEGER, end REAL, duration REAL)")
        connection.executemany("INSERT INTO oha VALUES (?, ?, ?)", rows)


def _summary(statuses: dict[str, int], errors: dict[str, int] | None = None) -> str:
    return json.dumps({"statusCodeDistribution": statuses, "errorDistribution": errors or {}})


class _Slow(BaseHTTPRequestHandler):
    """Answers one request after the other, each after a while."""

    def do_POST(self) -> None:
        time.sleep(0.05)
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


@serves
@pytest.mark.parametrize("rate", [0, 200])
def test_with_a_rate_who_has_to_wait_to_be_sent_waits_longer(tmp_path: Path, rate: int) -> None:
    with HTTPServer(("127.0.0.1", 0), _Slow) as slow:
        serving = threading.Thread(target=slow.serve_forever)
        serving.start()
        try:
            url = f"http://127.0.0.1:{slow.server_port}/"
            began = time.monotonic()
            load = generator.run(generator.find("oha"), url, 1, 1.0, tmp_path, rate=rate)
            seconds = time.monotonic() - began
        finally:
            slow.shutdown()
            serving.join()
    assert load.done > 1
    # One client that waits for each answer cannot have waited longer than there was time.
    assert (sum(load.latencies_ns) / 1e9 > seconds) is bool(rate)


def test_what_the_clients_saw(tmp_path: Path) -> None:
    path = tmp_path / "requests.db"
    _written(path, [(200, 0.5, 0.25), (302, 1.5, 0.5), (500, 0.75, 0.125)])
    statuses = {"200": 1, "302": 1, "500": 1}
    summary = tmp_path / "summary.json"

    def read(text: str) -> Load:
        summary.write_text(text)
        return generator.read(path, summary, 1.0)

    load = read(_summary(statuses, {"connection reset": 2}))
    assert load.done == 1, "the other was answered after the time"
    assert sorted(load.latencies_ns) == [250_000_000, 500_000_000]
    assert list(load.failed_ns) == [125_000_000]
    assert load.unanswered == {"connection reset": 2}
    with pytest.raises(VerificationError, match="oha has counted 4 answers, and written 3"):
        read(_summary({**statuses, "200": 2}))
    for text in ("", "[]", "{}", _summary({"good": 1})):
        with pytest.raises(VerificationError, match="oha has written something unknown"):
            read(text)
    summary.unlink()
    with pytest.raises(VerificationError, match="oha has written something unknown"):
        generator.read(path, summary, 1.0)


def _load(statuses: dict[int, int], unanswered: int = 0) -> Load:
    errors = Counter({"timed out": unanswered}) if unanswered else Counter[str]()
    good = sum(count for status, count in statuses.items() if status < 400)
    failed = sum(statuses.values()) - good
    ns = 1_000_000
    return Load(Counter(statuses), errors, good, array("Q", [ns] * good), array("Q", [ns] * failed))


def test_figures_count_what_failed() -> None:
    load = _load({200: 1000, 500: 900}, unanswered=100)
    account = Account(failures=Counter({"OperationalError: database is locked": 900}))
    sample = figures.sample(load, account, 2.0)
    assert sample.figures[RATE.name] == 500.0
    assert sample.figures[FAILED_PERCENT.name] == 50.0
    assert sample.figures[P99.name] == 1.0
    assert sample.asked == 2000
    assert sample.errors == {"OperationalError: database is locked": 900, "timed out": 100}
    few = figures.sample(_load({200: 999}), Account(), 2.0)
    assert P99.name not in few.figures, "fewer than ten lie beyond it"


def test_accounts_that_differ_are_found() -> None:
    account = read_account(LOG)
    verify.check_accounts(_load(dict(account.statuses)), account)
    more = {**account.statuses, 200: 3}
    with pytest.raises(VerificationError, match="saw 3 answers of status 200, and the server gave"):
        verify.check_accounts(_load(more, unanswered=1), account)
    verify.check_accounts(_load(more, unanswered=2), account)
    with pytest.raises(VerificationError, match="no client had any answer"):
        verify.check_accounts(_load({}), Account())


def test_rows_that_nobody_answered_for_are_found(tmp_path: Path) -> None:
    path = tmp_path / "blog.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE blog_user (id INTEGER PRIMARY KEY)")
        connection.execute("CREATE TABLE blog_post (id INTEGER PRIMARY KEY)")
        connection.execute(
            "CREATE TABLE blog_comment (post_id INTEGER REFERENCES blog_post DEFERRABLE)"
        )
        connection.execute("INSERT INTO blog_post VALUES (1), (2)")
    before = {"users": 0, "posts": 1, "comments": 0}
    after = verify.count_rows(Database(Scenario("stdlib"), path, tmp_path))
    account = Account(changes=Counter({"posts": 1}))
    verify.check_rows(before, after, account, 0)
    verify.check_rows(before, after, Account(), 1)
    with pytest.raises(VerificationError, match="there are 2 posts, and by what was answered"):
        verify.check_rows(before, after, Account(), 0)
    verify.check_file(path, "delete")
    with pytest.raises(VerificationError, match="the journal mode is 'delete', not 'wal'"):
        verify.check_file(path, "wal")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO blog_comment VALUES (9)")
    with pytest.raises(VerificationError, match="1 rows name others"):
        verify.check_file(path, "delete")


def _row(
    settings: str, clients: int, rate: float, p99_ms: float, errors: int = 0
) -> tuple[Row, Sample]:
    ours = settings == "engine"
    scenario = Scenario(
        "oxlite" if ours else "stdlib",
        busy="gate" if ours else "backoff",
        settings=settings,
        connections="request",
        mix="balanced",
        clients=str(clients),
        build="tuned" if ours else "own",
    )
    failed = {"OperationalError: database is locked": errors} if errors else {}
    values = {RATE.name: rate, P99.name: p99_ms, FAILED_PERCENT.name: float(errors)}
    sample = Sample(values, 100, failed)
    return Row(scenario, [sample, sample]), sample


def _verdicts(rows: list[Row]) -> dict[str, str]:
    result = Result("web", {}, Plan(), 2, [], rows, [], "", "", "", 1.0)
    [drawing] = TABLES[-1].drawings(result)
    return {line.name.removeprefix("balanced "): line.cells[-1] for line in drawing.lines}


def test_claims_are_judged() -> None:
    base, _ = _row("immediate", 32, 100.0, 50.0, errors=3)
    full, _ = _row("engine", 16, 100.0, 5.0)
    ours, sample = _row("engine", 32, 100.0, 10.0)
    assert _verdicts([base, full, ours]) == {
        "16 clients: failed requests": "held",
        "32 clients: failed requests": "held",
        "32 clients: times the requests/s": "held",
        "32 clients: times shorter p99": "held",
        "32 clients: times the requests/s at 16": "held",
    }
    sample.figures |= {RATE.name: 80.0, P99.name: 12.5}
    sample.errors = {"OperationalError: database is locked": 1}
    assert _verdicts([base, full, ours]) == {
        "16 clients: failed requests": "held",
        "32 clients: failed requests": "missed",
        "32 clients: times the requests/s": "missed by 20%",
        "32 clients: times shorter p99": "missed by 20%",
        "32 clients: times the requests/s at 16": "missed by 11%",
    }


def test_the_mix_of_another_application_is_not_judged() -> None:
    rows = [_row(settings, 16, 1.0, 1.0)[0] for settings in ("defaults", "immediate", "engine")]
    for row in rows:
        row.scenario = row.scenario.but(mix="single_insert")
    result = Result("web", {}, Plan(), 2, [], rows, [], "", "", "", 1.0)
    assert not TABLES[-1].drawings(result)
    assert not PublishedTable().drawings(result)


def test_a_tail_of_short_repeats_is_that_of_all_together() -> None:
    base, other = _row("immediate", 32, 100.0, 0.0)
    ours, sample = _row("engine", 32, 100.0, 0.0)
    for row, one, ns in ((base, other, 60_000_000), (ours, sample, 10_000_000)):
        del one.figures[P99.name]
        row.latencies = {REQUEST: latencies([ns] * 1000)}
    assert _verdicts([base, ours])["32 clients: times shorter p99"] == "held"
    ours.latencies = {REQUEST: latencies([10_000_000] * 999)}
    assert _verdicts([base, ours])["32 clients: times shorter p99"] == "not known"


def test_isolated_pools_are_compared_with_a_shared_one() -> None:
    rows = []
    for settings, clients, rate in (
        ("shared", 4, 100.0),
        ("isolated", 4, 150.0),
        ("shared", 16, 100.0),
        ("isolated", 16, 50.0),
    ):
        row, _ = _row("engine", clients, rate, 1.0)
        row.scenario = row.scenario.but(settings=settings, connections="kept")
        rows.append(row)
    result = Result("web", {}, Plan(), 2, [], rows, [], "", "", "", 1.0)
    [published] = [one for one in PUBLISHED if "isolated pools" in one.claim]
    found = published.measured(result, workload.WORKLOAD.metric)
    assert [one.row for one in found] == [rows[1].label, rows[3].label]
    assert [one.times.median for one in found if not isinstance(one.times, float)] == [1.5, 0.5]
    main, pools, *_ = TABLES
    [drawing] = pools.drawings(result)
    assert [line.cells[0][:4] for line in drawing.lines] == ["1.50", "0.50"]
    assert {line.cells[1] for line in main.drawings(result)[0].lines} == {"\N{EN DASH}"}


def test_failures_stand_beside_the_published_ones() -> None:
    rows = [_row("defaults", 8, 1.0, 1.0, errors=61)[0], _row("defaults", 64, 1.0, 1.0)[0]]
    result = Result("web", {}, Plan(), 1, [], rows, [], "", "", "", 1.0)
    [drawing] = PublishedTable().drawings(result)
    assert [(line.name, list(line.cells)) for line in drawing.lines] == [
        ("defaults, balanced 8 clients", ["78 %", "61.0 %"])
    ]


def test_the_lab_does_not_load_what_the_sites_are_made_of() -> None:
    code = (
        "import sys, oxlite.bench.lab, oxlite.bench.workloads.web.server as s; "
        "loaded = {'django', 'flask', 'gunicorn', 'sqlalchemy'} & sys.modules.keys(); "
        "assert not loaded, loaded; print(s.MODULE)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr.decode()


def test_the_mixes_are_those_of_the_axis() -> None:
    if importlib.util.find_spec("django") is None:
        pytest.skip("django is not installed")
    code = (
        "import django; django.setup();"
        "from oxlite.bench.workloads.web.blog.benchmark import ENDPOINTS;"
        "from oxlite.bench.workloads.web.mixes import MIXES, SINGLE_INSERT, ENDPOINTS as names;"
        "from oxlite.bench.workloads.web.workload import MIX;"
        "assert (*MIXES, SINGLE_INSERT) == MIX.values;"
        "assert all(abs(sum(each) - 1) < 1e-9 for each in MIXES.values());"
        "assert tuple(ENDPOINTS) == names;"
        "assert all(len(each) == len(names) == 7 for each in MIXES.values())"
    )
    environment = ladder.environment(Scenario("stdlib", settings="defaults"), Path("blog.db"))
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        timeout=60,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr.decode()
