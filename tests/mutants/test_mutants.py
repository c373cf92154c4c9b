"""That mutants find their places, and the places stay known. Nothing is compiled here."""

from pathlib import Path

import pytest
from tests.mutants.copy_of_tree import ROOT
from tests.mutants.declared import Mutant, areas
from tests.mutants.place import Place, find, find_all, sources, with_mistake, with_switches

FEWEST = 60


def _mutant(original: str, mutated: str) -> Mutant:
    return Mutant(7, "area", "a name", original, mutated)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Two files in which mutants may go."""
    files = {
        "crates/oxlite-core/src/line.rs": "fn give() {\n    count += 1;\n    wake(a, b)\n}\n",
        "python/oxlite/line.py": "def give():\n    if count:\n        count += 1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_every_mutant_has_its_place_and_every_area_its_tests() -> None:
    """Whoever changes or moves what is mutated moves the mutant along."""
    everything = areas()
    mutants = [mutant for area in everything for mutant in area.mutants]
    assert len(find_all(mutants, ROOT)) >= FEWEST
    paths = {path.partition("::")[0] for area in everything for path in area.tests}
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


def _place(mutant: Mutant, project: Path) -> Place:
    return find(mutant, sources(project))


def test_a_place_is_found_however_it_is_formatted(project: Path) -> None:
    place = _place(_mutant("fn give() { «count   += 1;» wake", ""), project)
    text = (project / place.file).read_text()
    assert text[place.start : place.end] == "count += 1;"


@pytest.mark.parametrize("original", ["count += 1", "nothing like it"])
def test_a_place_that_is_not_one_is_an_error_with_its_name(project: Path, original: str) -> None:
    with pytest.raises(ValueError, match="'a name' must stand once"):
        _place(_mutant(original, ""), project)


def test_two_mutants_in_one_place_are_an_error(project: Path) -> None:
    with pytest.raises(ValueError, match="in one place"):
        find_all([_mutant("count += 1;", ""), _mutant("+= 1; wake", "")], project)


def test_statements_and_expressions_in_rust_are_chosen_by_a_number(project: Path) -> None:
    mutants = [_mutant("count += 1;", ""), _mutant("wake(a, «b»)", "a")]
    places = [_place(mutant, project) for mutant in mutants]
    assert with_switches((project / places[0].file).read_text(), places) == (
        "fn give() {\n"
        "    if oxlite_sqlite::mutant(7) {  } else { count += 1; }\n"
        "    wake(a, (if oxlite_sqlite::mutant(7) { a } else { b }))\n"
        "}\n"
    )


@pytest.mark.parametrize(
    ("mutated", "expected"),
    [("", "pass"), ("count = 1\nraise", "count = 1\n        raise")],
)
def test_python_is_replaced_with_its_indentation(
    project: Path, mutated: str, expected: str
) -> None:
    place = _place(_mutant("if count: «count += 1»", mutated), project)
    text = with_mistake((project / place.file).read_text(), place)
    assert text == f"def give():\n    if count:\n        {expected}\n"
