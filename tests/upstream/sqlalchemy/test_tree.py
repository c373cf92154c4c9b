"""How what became of SQLAlchemy's tests is read."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).resolve().parent

REPORT = """<testsuites><testsuite>
<testcase classname="test.a.ThingTest_sqlite+{driver}_3_54_1" name="test_passes"/>
<testcase classname="test.a.ThingTest_sqlite+{driver}_3_54_1" name="test_fails[x]">
  <failure message="no"/></testcase>
<testcase classname="test.a.ThingTest" name="test_is_skipped">
  <skipped type="pytest.skip" message="not here"/></testcase>
<testcase classname="test.a.ThingTest" name="test_is_expected_to_fail">
  <skipped type="pytest.xfail" message=""/></testcase>
<testcase classname="test.a.ThingTest" name="test_teardown"/>
<testcase classname="test.a.ThingTest" name="test_teardown"><error message="late"/></testcase>
</testsuite></testsuites>
"""


@pytest.fixture(scope="module")
def tree() -> ModuleType:
    spec = importlib.util.spec_from_file_location("_sqlalchemy_tree", HERE / "tree.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("driver", ["pysqlite", "oxlite", "oxlite_async_async"])
def test_names_are_those_of_any_driver(tree: ModuleType, tmp_path: Path, driver: str) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT.format(driver=driver))
    assert tree.outcomes(report) == {
        "test.a.ThingTest::test_passes": "passed",
        "test.a.ThingTest::test_fails[x]": "failed",
        "test.a.ThingTest::test_is_skipped": "skipped",
        "test.a.ThingTest::test_is_expected_to_fail": "passed",
        "test.a.ThingTest::test_teardown": "failed",
    }
