"""Runs Django's own tests of ``ArrayField`` on Oxlite's; says what became of each.

Started by test_suite.py in an interpreter of its own. The tests and their models are those of the
source distribution, without the skip for other databases and with the changes that declared.toml
lists. What they import of ``django.contrib.postgres`` is Oxlite's.

Invariant: no driver for PostgreSQL is imported.
"""

import ast
import json
import os
import sys
import tomllib
import types
import unittest
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PACKAGE = "postgres_tests"


def configure(folder: Path) -> None:
    """The settings of a site."""
    from django.conf import settings

    settings.configure(
        SECRET_KEY="a",
        USE_TZ=False,
        INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", PACKAGE],
        DATABASES={
            "default": {"ENGINE": "oxlite.django.sqlite3", "NAME": folder / "site.db"},
        },
        MIGRATION_MODULES=dict.fromkeys(("auth", "contenttypes", PACKAGE)),
        DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    )


def substitute() -> None:
    """Put Oxlite under the names that the tests import."""
    sys.modules.update(psycopg=None, psycopg2=None)  # type: ignore[arg-type]

    def module(name: str, **names: object) -> None:
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(names)
        parent, _, own = name.rpartition(".")
        setattr(sys.modules[parent], own, sys.modules[name])

    import_module("django.contrib.postgres")
    import_module("django.db.backends.postgresql")

    from oxlite.django import array_lookups, expressions, fields, forms

    module("django.contrib.postgres.fields", ArrayField=fields.ArrayField)
    module(
        "django.contrib.postgres.fields.array",
        IndexTransform=array_lookups.IndexTransform,
        SliceTransform=array_lookups.SliceTransform,
    )
    module(
        "django.contrib.postgres.forms",
        SimpleArrayField=forms.SimpleArrayField,
        SplitArrayField=forms.SplitArrayField,
        SplitArrayWidget=forms.SplitArrayWidget,
    )
    # What Oxlite has not: the tests that use them are declared.
    module("django.contrib.postgres.aggregates", ArrayAgg=None)
    module("django.contrib.postgres.expressions", ArraySubquery=expressions.ArraySubquery)
    module("django.db.backends.postgresql.psycopg_any", NumericRange=None)


def models_of_arrays(text: str) -> str:
    """The models of the tests of arrays, and what they need, without fields of ranges."""
    tree = ast.parse(text)
    kept: list[ast.stmt] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            if not (node.name.endswith(("ArrayModel", "EnumModel")) or node.name in WANTED):
                continue
            node.body = [
                part
                for part in node.body
                if "Range" not in ast.unparse(part) and "HStore" not in ast.unparse(part)
            ]
            if node.name == "PostgreSQLModel":
                node.body = ast.parse("class Meta:\n    abstract = True").body
        if isinstance(node, ast.ImportFrom) and node.module == "fields":
            node.names = [ast.alias("ArrayField"), ast.alias("EnumField")]
        kept.append(node)
    return ast.unparse(ast.Module(kept, []))


WANTED = {
    "Tag",
    "TagField",
    "PostgreSQLModel",
    "ArrayFieldSubclass",
    "CharFieldModel",
    "TextFieldModel",
}

FIELDS = """
import enum
from django.db import models
from django.contrib.postgres.fields import ArrayField

class EnumField(models.CharField):
    def get_prep_value(self, value):
        return value.value if isinstance(value, enum.Enum) else value
"""

CASES = """
from django.test import SimpleTestCase as PostgreSQLSimpleTestCase, TestCase as PostgreSQLTestCase
from forms_tests.widget_tests.base import WidgetTest as PostgreSQLWidgetTestCase
"""


class Outcomes(unittest.TestResult):
    """Notes what became of each test; the worst of its parts counts."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, tuple[str, str]] = {}

    def _note(self, test: unittest.TestCase, outcome: str, said: str) -> None:
        name = ".".join(test.id().split(".")[2:4])
        if outcome != "passed" or name not in self.found:
            self.found[name] = (outcome, said)

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self._note(test, "passed", "")

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802, ANN401
        self._note(test, "failed", self._exc_info_to_string(err, test))  # type: ignore[attr-defined]

    addFailure = addError  # noqa: N815

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802, ANN401
        self._note(test, "passed", "fails, as it is to")

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self._note(test, "passed", "though it is to fail on PostgreSQL")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        self._note(test, "skipped", reason)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802, ANN401
        if err is not None:
            self._note(test, "failed", self._exc_info_to_string(err, subtest))  # type: ignore[attr-defined]


def main() -> None:
    """Run them."""
    tests, folder = Path(sys.argv[1]) / "tests", Path(sys.argv[2])
    text = (tests / PACKAGE / "test_array.py").read_text()
    for change in tomllib.loads((HERE / "declared.toml").read_text())["changed"]:
        assert change["from"] in text, f"needless: {change['from']}"
        text = text.replace(change["from"], change["to"])
    package = folder / PACKAGE
    package.mkdir()
    (package / "__init__.py").write_text(CASES)
    (package / "fields.py").write_text(FIELDS)
    (package / "models.py").write_text(
        models_of_arrays((tests / PACKAGE / "models.py").read_text())
    )
    (package / "test_array.py").write_text(text)
    for each in ("array_default_migrations", "array_index_migrations"):
        (package / each).symlink_to(tests / PACKAGE / each)
    sys.path[:0] = [str(folder), str(tests)]
    os.environ["DJANGO_SETTINGS_MODULE"] = ""
    configure(folder)
    substitute()
    import django

    django.setup()
    from django.test.utils import setup_databases, setup_test_environment, teardown_databases

    setup_test_environment()
    old = setup_databases(0, False)
    outcomes = Outcomes()
    wanted = [f"{PACKAGE}.test_array.{name}" for name in sys.argv[3:]]
    unittest.defaultTestLoader.loadTestsFromNames(wanted or [f"{PACKAGE}.test_array"]).run(outcomes)
    teardown_databases(old, 0)
    print("\n" + json.dumps(outcomes.found))


if __name__ == "__main__":
    main()
