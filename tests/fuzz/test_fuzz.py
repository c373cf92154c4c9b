"""A short campaign of fixed seeds, and tests of the fuzzer itself.

Whatever the campaign meets that is neither meant nor known to be open fails here, with its case.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fuzz import reference
from tests.fuzz.campaign import OXLITE, ROOT, STANDARD_LIBRARY, Campaign, Pair, heading
from tests.fuzz.compare import Play, compare
from tests.fuzz.features import PROBES
from tests.fuzz.generator import Case, case_of
from tests.fuzz.intended import KNOWN, Known
from tests.fuzz.minimise import minimised
from tests.fuzz.script import as_script

CASES = 200
WRONG = "tests.fuzz.wrong_driver"
ALL_FEATURES = frozenset(PROBES)


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    """The standard library on Oxlite's SQLite."""
    found = reference.environment()
    if not found:
        pytest.skip("no C compiler, or no source of SQLite, to build the reference with")
    return found


@pytest.fixture(scope="module")
def pair(environment: dict[str, str]) -> Iterator[Pair]:
    """The standard library and Oxlite."""
    with Pair(STANDARD_LIBRARY, OXLITE, environment) as both:
        yield both


def campaign_against(mistake: str, monkeypatch: pytest.MonkeyPatch, cases: int) -> Campaign:
    """A campaign against a driver with this mistake, until something is found."""
    monkeypatch.setenv("OXLITE_FUZZ_MISTAKE", mistake)
    with Pair(STANDARD_LIBRARY, WRONG, seconds=2) as both:
        campaign = Campaign(both)
        campaign.run(iter(range(cases)), lambda: not campaign.findings)
    return campaign


def test_both_have_the_same_sqlite(pair: Pair) -> None:
    versions = {child.features["sqlite_version"] for child in (pair.reference, pair.driver)}
    assert len(versions) == 1


def test_oxlite_does_the_same(pair: Pair) -> None:
    campaign = Campaign(pair)
    campaign.run(iter(range(CASES)), lambda: True)
    found = [
        f"{heading(finding)}\n" + "\n".join(finding.case.steps)
        for finding in campaign.findings.values()
    ]
    assert not found, "\n\n".join(found)
    assert campaign.statistics.cases == CASES
    assert campaign.statistics.compared > campaign.statistics.steps / 2


@pytest.mark.parametrize(
    "known", [known for known in KNOWN if known.example], ids=lambda known: known.name
)
def test_a_known_difference_is_so(pair: Pair, known: Known) -> None:
    if known.feature and known.feature not in pair.features:
        pytest.skip(f"{known.feature} is not there yet")
    comparison, expected, found = pair.play(Case(list(known.example)))
    assert comparison.difference is None
    if known.is_open and sys.version_info[:2] != (3, 11) and not comparison.intended:
        pytest.skip("not with this Python's standard library")
    assert known.name in comparison.intended, (expected.observations, found.observations)


@pytest.mark.parametrize("mistake", ["row", "rowcount"])
def test_a_mistake_is_found_and_minimised(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = campaign_against(mistake, monkeypatch, 50)
    (finding,) = campaign.findings.values()
    assert len(finding.case.steps) <= 4
    assert finding.difference.expected != finding.difference.found


@pytest.mark.parametrize(("mistake", "ending"), [("hang", "hung"), ("crash", "crashed SIGABRT")])
def test_a_death_is_found_and_minimised(
    mistake: str, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OXLITE_FUZZ_MISTAKE", mistake)
    case = Case(
        ["c0 = sqlite3.connect(':memory:')", "1", "k0 = c0.cursor()", "k0.execute('SAVEPOINT s')"],
        ["setup", "module", "setup", "execute"],
    )
    # On a machine under load both may hang, as it seems: then they have more time.
    for seconds in (1, 5, 20) if mistake == "hang" else (30,):
        with Pair(STANDARD_LIBRARY, WRONG, seconds=seconds) as both:
            campaign = Campaign(both)
            campaign.play(case)
            campaign.play(Case(["sqlite3.connect(':memory:')"], ["setup"]))
        if campaign.findings:
            break
    (finding,) = campaign.findings.values()
    assert finding.difference.found == ending
    assert len(finding.case.steps) == 3
    assert campaign.statistics.cases == 2


def test_a_seed_is_a_case() -> None:
    for seed in range(20):
        assert case_of(seed, ALL_FEATURES).steps == case_of(seed, ALL_FEATURES).steps
    assert case_of(1, ALL_FEATURES).steps != case_of(2, ALL_FEATURES).steps


def test_every_step_compiles() -> None:
    for seed in range(300):
        for step in case_of(seed, ALL_FEATURES).steps:
            compile(step, "step", "exec")


def test_a_case_plays_the_same_twice(pair: Pair) -> None:
    for seed in range(10):
        case = case_of(seed, pair.features)
        plays = [pair.play(case)[1:] for _ in range(2)]
        assert plays[0] == plays[1]


def test_minimising_keeps_what_is_needed() -> None:
    case = Case([str(number) for number in range(40)], ["n"] * 40)
    smaller = minimised(case, lambda tried: {"3", "17", "31"} <= set(tried.steps))
    assert smaller.steps == ["3", "17", "31"]


def test_a_difference_is_seen_in_any_attribute() -> None:
    expected = Play([{"value": "int 1", "k0.rowcount": "int 1"}])
    found = Play([{"value": "int 1", "k0.rowcount": "int 2"}])
    difference = compare(expected, found, ["k0.execute('DELETE FROM t')"]).difference
    assert difference is not None
    assert (difference.step, difference.what) == (0, "k0.rowcount")


@pytest.mark.parametrize("driver", ["stdlib", "oxlite"])
def test_a_script_runs_by_itself(pair: Pair, tmp_path: Path, driver: str) -> None:
    path = tmp_path / "case.py"
    # Not random for the standard library, which some cases crash when it ends.
    known = [Case(list(known.example)) for known in KNOWN if "execute" in str(known.example)]
    cases = [case_of(seed, pair.features) for seed in range(3)] if driver == "oxlite" else known[:3]
    for seed, case in enumerate(cases):
        path.write_text(as_script(case, f"seed: {seed}"))
        done = subprocess.run(
            [sys.executable, str(path), driver], capture_output=True, text=True, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        assert f"\n{len(case.steps) - 1}: " in done.stdout


def test_the_command_line(tmp_path: Path) -> None:
    arguments = ["--cases", "5", "--seed", "3", "--findings", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", *arguments], capture_output=True, text=True, cwd=ROOT
    )
    assert "5 cases" in done.stdout, done.stderr
    assert "seed 3;" in done.stdout
