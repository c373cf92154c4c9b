"""SQLAlchemy's own tests of any dialect pass; what is skipped is declared, with its reason."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.slow

pytest.importorskip("sqlalchemy", reason="the extra oxlite[sqlalchemy] is not installed")

HERE = Path(__file__).resolve().parent
FORMS = ["sqlite+oxlite:///compliance.db", "sqlite+oxlite_async:///compliance.db"]


def load(name: str) -> ModuleType:
    """A module of this folder, which is no package."""
    spec = importlib.util.spec_from_file_location(f"_sqlalchemy_{name}", HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.timeout(600)
@pytest.mark.parametrize("url", FORMS)
def test_the_suite_passes(url: str, tmp_path: Path) -> None:
    outcome = load("compliance").run(url, tmp_path, seconds=580)
    assert not outcome.failed, "\n".join(f"{k}\n{v}" for k, v in outcome.failed.items())[:20000]
    assert outcome.passed > 1300, outcome.output[-2000:]
    reasons = declared_reasons()
    undeclared = {
        test: said
        for test, said in outcome.skipped.items()
        if not any(reason in said for reason in reasons)
    }
    assert not undeclared


def declared_reasons() -> set[str]:
    """The texts of requirements.py, read without the machinery it imports."""
    import ast

    tree = ast.parse((HERE / "requirements.py").read_text())
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
    }
