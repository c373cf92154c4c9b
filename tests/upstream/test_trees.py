"""The comparison of two runs of a framework's tree of tests."""

from pathlib import Path

import pytest
from tests.upstream.trees import Comparison, beyond, declarations


@pytest.mark.parametrize(
    ("theirs", "ours", "differs"),
    [
        ("passed", "passed", False),
        ("failed", "failed", False),
        ("failed", "passed", False),
        ("skipped", "passed", False),
        ("failed", "skipped", False),
        ("skipped", None, False),
        (None, "passed", False),
        ("passed", "failed", True),
        ("passed", "skipped", True),
        ("passed", None, True),
        ("failed", None, True),
        ("skipped", "failed", True),
        (None, "failed", True),
    ],
)
def test_what_is_beyond_the_other_driver(
    theirs: str | None, ours: str | None, differs: bool
) -> None:
    stock = {"test": theirs} if theirs else {}
    oxlite = {"test": ours} if ours else {}
    assert bool(beyond(stock, oxlite)) is differs


@pytest.mark.parametrize("framework", ["django", "sqlalchemy"])
def test_every_declaration_has_a_reason(framework: str) -> None:
    declared = declarations(Path(__file__).parent / framework / "tree_declared.toml", "999")
    assert all(len(reason) > 20 for reason in declared.values())


def test_a_release_has_not_the_tests_of_later_ones(tmp_path: Path) -> None:
    path = tmp_path / "declared.toml"
    path.write_text(
        '[[declared]]\ntest = "always"\nreason = "of all"\n'
        '[[declared]]\ntest = "late"\nsince = "6.1"\nreason = "of some"\n'
    )
    assert list(declarations(path, "5.2.19")) == ["always"]
    assert list(declarations(path, "6.1")) == ["always", "late"]
    assert list(declarations(path, "10.0.1")) == ["always", "late"]


def test_what_is_not_as_declared_is_a_complaint() -> None:
    stock = {"a": "passed", "b": "passed", "c": "failed"}
    comparison = Comparison(
        title="",
        said="",
        settings={"stock": "", "oxlite": ""},
        stock=stock,
        oxlite=stock | {"a": "failed"},
        declared={"b": "for no reason"},
    )
    assert len(comparison.complaints(is_whole=False)) == 1
    assert comparison.complaints(is_whole=True)[1] == "declared, but does not differ: b"
    assert "## Fails on both: 1" in comparison.report()
