"""What a run comes to, in sentences: losses as plainly as gains, and no verdict on too little."""

import pytest

from oxlite.bench.harness.model import Plan, Result, Row, Sample
from oxlite.bench.report.html import page
from oxlite.bench.report.summary import summary
from oxlite.bench.scenarios.scenario import Scenario
from oxlite.bench.workloads.catalogue import WORKLOADS

OPENS = {"connections": "request"}
OURS = {"driver": "oxlite", "busy": "gate", "settings": "engine", "build": "tuned", **OPENS}
STOCK = {"driver": "stdlib", "busy": "backoff", "settings": "defaults", "build": "own", **OPENS}
TUNED = STOCK | {"settings": "wal"}


def row(axes: dict[str, str], *rates: float, failed: int = 0, clients: int = 32) -> Row:
    scenario = Scenario(**axes, mix="balanced", clients=str(clients))
    errors = {"OperationalError: locked": failed} if failed else {}
    return Row(scenario, [Sample({"requests_per_second": r}, 100, errors) for r in rates])


def web(*rows: Row) -> Result:
    repeats = len(rows[0].samples)
    return Result("web", {}, Plan(), repeats, [], list(rows), [], "", "", "2026-01-01", 1.0)


def test_stock_the_best_tuning_and_the_default_are_told() -> None:
    slower = row(STOCK | {"settings": "immediate"}, 90.0, 90.0, 90.0)
    found = summary(
        [web(row(STOCK, 50.0, 50.0, 50.0, failed=25), slower, row(TUNED, 100.0, 100.0, 100.0),
             row(OURS, 200.0, 210.0, 220.0))]
    )  # fmt: skip
    figures, failures, verdict = found.sentences
    assert "32 clients" in figures
    assert [word for word in figures.split() if word[0].isdigit()][1:] == ["50.0", "100", "210"]
    assert "25%" in failures
    assert "better than the best tuned peer" in verdict
    assert "2.10" in verdict
    assert found.pictured is not None
    assert found.pictured.tuned.scenario["settings"] == "wal"
    assert page.render([found.pictured.result]).count('class="bar of-') >= 3


def test_a_loss_is_told_in_the_same_words() -> None:
    [*_, verdict] = summary([web(row(TUNED, *[100.0] * 3), row(OURS, 80.0, 82.0, 81.0))]).sentences
    assert "worse than the best tuned peer" in verdict
    assert "0.81" in verdict
    [*_, alike] = summary([web(row(TUNED, *[100.0] * 3), row(OURS, 90.0, 110.0, 101.0))]).sentences
    assert "within the noise" in alike


def test_the_rows_with_most_at_work_decide() -> None:
    found = summary(
        [
            web(
                row(TUNED, 1.0, clients=4),
                row(OURS, 9.0, clients=4),
                row(TUNED, 2.0),
                row(OURS, 1.0),
            )
        ]
    )
    assert found.pictured is not None
    assert found.pictured.ours.scenario["clients"] == "32"


@pytest.mark.parametrize("repeats", [1, 2, 3])
def test_below_three_repeats_there_is_no_headline(repeats: int) -> None:
    result = web(row(TUNED, *[100.0] * repeats), row(OURS, *[200.0] * repeats))
    said = " ".join(summary([result]).sentences)
    assert ("better than the best tuned peer" in said) is (repeats >= 3)
    assert ('class="cards"' in page.render([result])) is (repeats >= 3)


def test_a_figure_of_fewer_repeats_than_the_run_has_is_no_headline() -> None:
    ours, peer = row(OURS, *[200.0] * 5), row(TUNED, *[100.0] * 5)
    for sample in ours.samples[2:]:
        sample.figures.clear()
    result = web(peer, ours)
    assert "2 repeats are no verdict" in summary([result]).sentences[-1]
    assert 'class="cards"' not in page.render([result])


def test_zeros_are_not_said_to_be_failures() -> None:
    [*_, verdict] = summary([web(row(TUNED, *[0.0] * 3), row(OURS, *[0.0] * 3))]).sentences
    assert "one of them has no successful requests per second above 0" in verdict


def test_where_rows_failed_it_is_said() -> None:
    peer, ours = row(TUNED, *[1.0] * 3), row(OURS, *[1.0] * 3)
    assert "failed" not in summary([web(ours)]).sentences[0]
    peer.failure = "gone"
    assert "Rows failed" in summary([web(peer, ours)]).sentences[0]


@pytest.mark.parametrize("failing", ["ours", "peer"])
def test_failing_is_no_headline(failing: str) -> None:
    ours = row(OURS, *[300.0] * 3, failed=50 if failing == "ours" else 0)
    peer = row(TUNED, *[100.0] * 3, failed=50 if failing == "peer" else 0)
    result = web(peer, ours)
    assert "cannot be compared" in summary([result]).sentences[-1]
    assert 'class="cards"' not in page.render([result])


def test_oxlite_is_not_compared_with_itself() -> None:
    result = web(row(OURS, *[2.0] * 3), row(OURS | {"busy": "fair"}, *[1.0] * 3))
    assert summary([result]).pictured is None


def test_of_many_figures_the_losses_are_named() -> None:
    names = [metric.name for metric in WORKLOADS.get("driver").metrics[:3]]
    lost = WORKLOADS.get("driver").metrics[2].title

    def operations(driver: str, *microseconds: float) -> Row:
        sample = Sample(dict(zip(names, microseconds, strict=True)))
        return Row(Scenario(driver), [sample] * 3)

    rows = [operations("stdlib", 4.0, 4.0, 4.0), operations("oxlite", 1.0, 2.0, 5.0)]
    result = Result("driver", {}, Plan(), 3, ["stdlib"], rows, [], "", "", "2026-01-01", 1.0)
    [sentence] = summary([result]).sentences
    assert "2 better" in sentence
    assert f"1 worse: {lost}" in sentence
    both = summary([web(row(TUNED, *[1.0] * 3), row(OURS, *[2.0] * 3)), result]).sentences
    assert "driver (1 of 3 operations)" in both[-1]


def test_every_contest_is_of_rows_that_there_are() -> None:
    """Each side of a contest is measured by a run without options, and by the quick one."""
    for workload in WORKLOADS:
        contest = workload.contest
        if contest is None:
            continue
        axes = {axis.name: set(axis.values) for axis in workload.axes}
        for changes in (contest.ours, *contest.tuned, contest.stock or {}):
            for axis, value in changes.items():
                assert value in axes[axis], (workload.name, axis, value)


def test_a_row_of_ours_that_failed_is_told() -> None:
    small = [row(TUNED, *[1.0] * 3, clients=1), row(OURS, *[2.0] * 3, clients=1)]
    broken = row(OURS, 1.0, 1.0, 1.0)
    broken.failure = "worker 0 was killed"
    said = summary([web(*small, row(TUNED, *[100.0] * 3), broken)]).sentences
    assert said[-1] == "Oxlite's row failed: worker 0 was killed."
    counted = [metric.name for metric in WORKLOADS.get("kv").metrics[:2]]
    assert counted
    failed_alone = summary([web(row(TUNED, *[100.0] * 3), broken)]).sentences
    assert "failed" in failed_alone[-1]


def test_a_loss_elsewhere_is_not_hidden_by_a_gain() -> None:
    def mapped(mapper: str, driver: str, milliseconds: float) -> Row:
        build = "tuned" if driver == "oxlite" else "own"
        scenario = Scenario(driver, journal="wal", pragmas="tuned", mapper=mapper, build=build)
        return Row(scenario, [Sample({"sum_ms": milliseconds})] * 3)

    rows = [
        mapped("sqlalchemy", "stdlib", 10.0), mapped("sqlalchemy", "oxlite", 5.0),
        mapped("django", "stdlib", 10.0), mapped("django", "oxlite", 20.0),
    ]  # fmt: skip
    result = Result("orm", {}, Plan(), 3, [], rows, [], "", "", "2026-01-01", 1.0)
    *_, verdict, others = summary([result]).sentences
    assert "better than the best tuned peer" in verdict
    assert "worse in orm django (0.50)" in others


def test_repeats_count_where_they_were_measured() -> None:
    ours = row(OURS, 200.0, 210.0, 220.0)
    for sample in ours.samples[1:]:
        del sample.figures["requests_per_second"]
    [*_, verdict] = summary([web(row(TUNED, *[100.0] * 3), ours)]).sentences
    assert verdict.startswith("One repeat is no verdict")


def test_what_is_only_as_good_is_not_called_better() -> None:
    names = [metric.name for metric in WORKLOADS.get("driver").metrics[:2]]
    rows = [
        Row(Scenario(driver), [Sample(dict.fromkeys(names, value)) for value in values])
        for driver, values in (("stdlib", (1.0, 1.0, 1.0)), ("oxlite", (0.9, 1.0, 1.1)))
    ]
    driver = Result("driver", {}, Plan(), 3, ["stdlib"], rows, [], "", "", "2026-01-01", 1.0)
    [*_, others] = summary([driver, web(row(TUNED, *[1.0] * 3), row(OURS, *[2.0] * 3))]).sentences
    assert "as good in driver" in others
    assert "better in driver" not in others
