"""Advice comes from what was measured, with its row and ratio; the rest is named as lacking."""

import importlib
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oxlite.bench import UsageError
from oxlite.bench.advice import QUESTIONS, Advice, Recommendation, recommend
from oxlite.bench.harness import cells
from oxlite.bench.harness.model import Plan, Result, Row, Sample
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.stored import read
from oxlite.bench.workloads.catalogue import WORKLOADS

Recorded = Callable[[str], Path]
HERE = Path()
OURS = Scenario("oxlite", journal="wal", pragmas="tuned", busy="backoff", build="tuned")


def row(scenario: Scenario, metric: str, *figures: float) -> Row:
    return Row(scenario, [Sample({metric: figure}) for figure in figures])


def result(workload: str, *rows: Row, **parameters: object) -> Result:
    return Result(workload, parameters, Plan(), 3, [], list(rows), [], "", "", "2026-01-01", 1.0)


def kv(ours: tuple[float, ...], theirs: tuple[float, ...], writes: float = 0.05) -> Result:
    stdlib = OURS.but(driver="stdlib", build="own")
    metric = "wall_seconds"
    return result("kv", row(OURS, metric, *ours), row(stdlib, metric, *theirs), write_ratio=writes)


def inserts(durable: float, tuned: float) -> Result:
    group = Scenario(
        "oxlite", pragmas="durable", busy="gate", build="tuned", style="group", threads="16"
    )
    metric = "inserts_per_second"
    return result(
        "inserts",
        row(group, metric, *[durable] * 3),
        row(group.but(pragmas="tuned"), metric, *[tuned] * 3),
    )


def test_the_default_stands_where_it_is_better() -> None:
    found = recommend([kv((1.0, 1.1, 1.2), (2.0, 2.2, 2.4))], directory=HERE, anyway=True)
    assert found.value("driver") == "oxlite"
    [advice] = found.advice
    assert "kv, oxlite wal tuned backoff: wall time, stdlib is 0.50 (0.50–0.50)" in advice.reason  # noqa: RUF001


def test_another_value_has_to_be_better_by_the_whole_interval() -> None:
    better = recommend([kv((2.0, 2.0, 2.0), (1.0, 1.9, 1.0))], directory=HERE, anyway=True)
    assert better.value("driver") == "stdlib"
    mixed = recommend([kv((2.0, 2.0, 2.0), (1.0, 2.1, 1.0))], directory=HERE, anyway=True)
    assert mixed.value("driver") == "oxlite"
    assert "no difference beyond the interval" in mixed.advice[0].reason
    odd = recommend([kv((2.0,) * 9, (*[1.0] * 8, 2.1))], directory=HERE, anyway=True)
    assert odd.value("driver") == "stdlib"


def test_few_repeats_decide_nothing() -> None:
    found = recommend([kv((1.0, 1.0), (2.0, 2.0))], directory=HERE, anyway=True)
    assert not found.advice
    assert "fewer than 3 repeats" in found.lacking["driver"]
    assert "oxlite bench kv --json kv.json" in found.lacking["driver"]


def test_what_is_not_measured_is_not_advised() -> None:
    found = recommend([kv((1.0,) * 3, (2.0,) * 3)], directory=HERE, anyway=True)
    assert found.lacking["busy"] == "not measured; run `oxlite bench gate --json gate.json`"
    assert set(found.lacking) == {question.setting for question in QUESTIONS} - {"driver"}
    assert found.forms()["SQLAlchemy"] == 'create_engine("sqlite+oxlite:///app.db")'
    assert "SQL" not in found.forms()


def test_the_mix_has_to_be_that_of_the_run() -> None:
    run = kv((1.0,) * 3, (2.0,) * 3, writes=0.05)
    assert recommend([run], writes=0.06, directory=HERE, anyway=True).value("driver") == "oxlite"
    found = recommend([run], writes=0.5, directory=HERE, anyway=True)
    assert found.value("driver") is None
    assert "run `oxlite bench kv --write-ratio 0.5" in found.lacking["driver"]
    with pytest.raises(UsageError, match="--writes"):
        recommend([run], writes=2, directory=HERE, anyway=True)


def test_safety_is_advised_where_it_is_cheap() -> None:
    cheap = recommend([inserts(100.0, 105.0)], directory=HERE, anyway=True)
    assert cheap.options() == {"profile": "durable"}
    assert cheap.forms()["SQL"] == "PRAGMA synchronous=FULL;"
    dear = recommend([inserts(100.0, 300.0)], directory=HERE, anyway=True)
    assert dear.options() == {"profile": "web"}
    assert "3.00 (3.00–3.00) times as good (what FULL costs" in dear.advice[0].reason  # noqa: RUF001
    assert dear.forms()["SQLAlchemy"] == 'create_engine("sqlite+oxlite:///app.db?profile=web")'


def test_safety_is_given_up_only_if_it_was_dear_in_every_repeat() -> None:
    mixed = inserts(100.0, 300.0)
    mixed.rows[1].samples[2].figures["inserts_per_second"] = 90.0
    assert recommend([mixed], directory=HERE, anyway=True).options() == {"profile": "durable"}


def test_it_says_what_was_reached_and_how_much_of_it_is_used() -> None:
    results = [inserts(durable=2000.0, tuned=2000.0)]
    found = recommend(results, directory=HERE, anyway=True)
    assert found.reached is not None
    assert found.reached.text().startswith("2,000 were reached with inserts, oxlite durable gate")
    used = recommend(results, writes_a_second=50.0, directory=HERE, anyway=True).reached
    assert used is not None
    assert used.text().endswith("The application's 50.0 are 2.50 % of that")
    assert recommend([kv((1.0,) * 3, (2.0,) * 3)], directory=HERE, anyway=True).reached is None
    few = inserts(durable=2000.0, tuned=2000.0)
    for one in few.rows:
        del one.samples[2:]
    assert recommend([few], directory=HERE, anyway=True).reached is None
    with pytest.raises(UsageError, match="--writes-a-second must be at least 0"):
        recommend(results, writes_a_second=-1.0, directory=HERE, anyway=True)


def test_what_a_database_writes_is_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    import oxlite

    module = importlib.import_module("oxlite.cli.bench.recommend")
    monkeypatch.setattr(module, "WATCHED_SECONDS", 1.0)
    monkeypatch.setattr(module, "read_all", lambda _files: [inserts(2000.0, 2000.0)])
    path = tmp_path / "app.db"
    ended = threading.Event()

    def write() -> None:
        with oxlite.Database(path) as database:
            database.execute("CREATE TABLE t (a)")
            begun.set()
            while not ended.wait(0.01):
                database.execute("INSERT INTO t VALUES (1)")

    begun = threading.Event()
    thread = threading.Thread(target=write)
    thread.start()
    try:
        begun.wait()
        module.recommend([path], database=path, anyway=True)
        with pytest.raises(UsageError, match="leave one away"):
            module.recommend([path], database=path, writes_a_second=1.0)
    finally:
        ended.set()
        thread.join()
    found = re.search(r"The application's ([\d.]+) are", " ".join(capsys.readouterr().out.split()))
    assert found is not None
    assert 1 < float(found[1]) < 101


def test_advice_about_writes_only_says_so_to_who_names_their_part() -> None:
    runs = [inserts(100.0, 300.0), kv((1.0,) * 3, (2.0,) * 3)]
    said = recommend(runs, writes=0.05, directory=HERE, anyway=True)
    about = {one.setting: "it is about writes only" in one.reason for one in said.advice}
    assert about == {"driver": False, "profile": True}
    unsaid = recommend(runs, directory=HERE, anyway=True)
    assert not any("writes only" in one.reason for one in unsaid.advice)


@pytest.mark.parametrize(
    ("advice", "pragma", "value"),
    [
        (Advice("profile", "web", ""), "synchronous", 1),
        (Advice("journal_mode", "DELETE", ""), "journal_mode", "delete"),
    ],
)
def test_the_url_is_one_that_opens(
    advice: Advice, pragma: str, value: object, tmp_path: Path
) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    form = Recommendation([advice], {}).forms()["SQLAlchemy"]
    url = form.removeprefix('create_engine("').removesuffix('")').replace("app.db", "a.db")
    engine = sqlalchemy.create_engine(url.replace("///", f"///{tmp_path}/"))
    with engine.connect() as connection:
        assert connection.exec_driver_sql(f"PRAGMA {pragma}").scalar() == value
    engine.dispose()


def test_the_options_of_django_agree_with_the_pragmas() -> None:
    forms = Recommendation([Advice("journal_mode", "DELETE", "")], {}).forms()
    assert "'journal': 'keep'" in forms["Django"]
    assert forms["SQL"] == "PRAGMA journal_mode=DELETE;"


@pytest.mark.parametrize("question", QUESTIONS, ids=[one.setting for one in QUESTIONS])
def test_every_question_is_of_rows_and_figures_that_exist(question: Any) -> None:  # noqa: ANN401
    workload = WORKLOADS.get(question.workload)
    assert question.metric in {metric.name for metric in workload.metrics}
    grids = workload.grids(workload.parameters({}, quick=False))
    for value in (question.default, *question.candidates):
        assert cells.selected(grids, {**question.where, question.axis: value})


def test_runs_of_another_machine_are_refused(recorded: Recorded) -> None:
    run = read(recorded("kv"))
    assert recommend([run], directory=recorded("kv").parent).value("driver") in {"oxlite", "stdlib"}
    assert run.rows[0].environment is not None
    run.rows[0].environment["machine"]["cpu"]["model"] = "Z80"
    with pytest.raises(UsageError, match="another machine: processor Z80 there"):
        recommend([run], directory=HERE)
    assert recommend([run], directory=HERE, anyway=True).advice


def test_a_place_that_is_no_directory_is_refused(recorded: Recorded, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a directory"):
        recommend([read(recorded("kv"))], directory=tmp_path / "absent")


def test_runs_on_another_file_system_are_refused(recorded: Recorded) -> None:
    run = read(recorded("kv"))
    assert run.rows[0].environment is not None
    run.rows[0].environment["machine"]["file_system"]["type"] = "nfs"
    with pytest.raises(UsageError, match=r"another file system: file system nfs there, \S+ in /"):
        recommend([run], directory=recorded("kv").parent)
    assert recommend([run], directory=recorded("kv").parent, anyway=True).advice


def test_the_command(bench: Callable[..., Any], recorded: Recorded) -> None:
    ended = bench("recommend", recorded("kv"), "--directory", recorded("kv").parent)
    assert ended.returncode == 0, ended.stderr
    assert "driver = " in ended.stdout
    assert "busy: not measured; run `oxlite bench gate" in ended.stdout
    assert "Django" in ended.stdout


def test_what_the_application_runs_today_is_where_it_starts(tmp_path: Path) -> None:
    results = [inserts(durable=10.0, tuned=10.0)]
    found = recommend(results, directory=tmp_path, anyway=True)
    changes = {one.setting: one.change() for one in found.advice}
    assert changes["profile"] == "profile = durable, as today"
    found = recommend(results, today="tuned", directory=tmp_path, anyway=True)
    changes = {one.setting: one.change() for one in found.advice}
    assert changes["profile"] == "profile = durable, today web"
    with pytest.raises(UsageError, match="did you mean 'tuned'"):
        recommend(results, today="tuend", directory=tmp_path, anyway=True)


def test_normal_is_not_advised_without_wal() -> None:
    def pragmas(**values: str) -> list[str]:
        return Recommendation(
            [Advice(name, value, "") for name, value in values.items()], {}
        ).pragmas()

    assert pragmas(profile="web") == ["PRAGMA journal_mode=WAL;", "PRAGMA synchronous=NORMAL;"]
    assert "PRAGMA synchronous=FULL;" in pragmas(profile="web", journal_mode="DELETE")
    kept = Recommendation([Advice("journal_mode", "DELETE", ""), Advice("profile", "web", "")], {})
    assert kept.options() == {"profile": "durable", "journal": "keep"}


def test_there_are_no_empty_options() -> None:
    assert "OPTIONS" not in Recommendation([Advice("driver", "oxlite", "")], {}).forms()["Django"]
    stdlib = Recommendation([Advice("driver", "stdlib", "")], {}).forms()["Django"]
    assert "init_command" not in stdlib
    assert "IMMEDIATE" in stdlib
