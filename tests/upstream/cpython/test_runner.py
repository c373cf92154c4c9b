"""The runner of CPython's tests fails when it should, and tests the driver that it says.

Each test writes a tiny package of unittest modules and runs it as the real one is run: by the
command, in child processes, with both drivers.
"""

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent, indent

import pytest

HERE = Path(__file__).resolve().parent
RUN = HERE / "run.py"
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
OTHER_VERSION = next(version for version in ("3.11", "3.12") if version != VERSION)

# What the tests of a tiny package can use.
BEFORE = """
import os, subprocess, sys, time, unittest
import sqlite3
IS_OXLITE = sqlite3.__name__ == "oxlite.sqlite3"
class Tests(unittest.TestCase):
"""

# One that passes in both runs, so that a package is never without one.
PASSES = """
def test_passes(self):
    self.assertEqual(sqlite3.connect(":memory:").execute("SELECT 1").fetchone(), (1,))
"""

Done = subprocess.CompletedProcess[str]
Runs = Callable[..., Done]


def declare(test: str, *, versions: list[str] | None = None, reason: str = "It is so.") -> str:
    lines = ["[[declared]]", f'test = "{test}"', f'reason = "{reason}"']
    if versions is not None:
        lines.append(f"versions = {versions!r}")
    return "\n".join([*lines, ""])


@pytest.fixture
def run(tmp_path: Path) -> Runs:
    """Runs the methods of a test class, written as source, and returns what the command did."""

    def run(
        methods: str,
        *options: object,
        declared: str = "",
        before: str = BEFORE,
        floor: int = 1,
        interpreter: str = sys.executable,
    ) -> Done:
        package = tmp_path / "tiny"
        package.mkdir(exist_ok=True)
        (package / "__init__.py").touch()
        source = before + indent(dedent(PASSES) + dedent(methods), "    ")
        (package / "test_tiny.py").write_text(source)
        (tmp_path / "declared.toml").write_text(declared)
        return subprocess.run(
            [
                *(sys.executable, RUN, "--package=tiny", f"--path={tmp_path}"),
                *(f"--declared={tmp_path / 'declared.toml'}", f"--floor={floor}"),
                *(*map(str, options), interpreter),
            ],
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


def numbers(done: Done) -> dict[str, int]:
    """The first line of the table by its headings."""
    heading, row = (line.split() for line in done.stdout.splitlines()[1:3])
    return {name: int(number) for name, number in zip(heading[1:8], row[1:8], strict=True)}


def failures(done: Done) -> list[str]:
    """The titles of what failed; none must mean that the command says so by its status."""
    found = re.findall(r"^FAILED[^:]*: (.*)", done.stdout, re.MULTILINE)
    assert done.returncode == (1 if found else 0), done.stdout + done.stderr
    return found


def test_what_passes_with_both_drivers_passes(run: Runs) -> None:
    done = run(
        """
        def test_subtests(self):
            for number in range(3):
                with self.subTest(number=number):
                    self.assertEqual(number, number)

        @unittest.expectedFailure
        def test_expected(self):
            self.fail("as expected")

        @unittest.skip("for a reason")
        def test_skipped(self):
            self.fail("not reached")
        """
    )
    assert failures(done) == []
    assert numbers(done) == {
        **{"tests": 4, "passed": 3, "skipped": 1, "declared": 0},
        **{"failed": 0, "subtests": 3, "children": 0},
    }
    assert "Skipped on one side only" not in done.stdout


def test_each_run_has_its_own_driver(run: Runs) -> None:
    done = run(
        """
        @unittest.skipIf(IS_OXLITE, "it is Oxlite")
        def test_standard(self):
            import _sqlite3
            self.assertIs(sqlite3.Connection, _sqlite3.Connection)
            self.assertNotIn("oxlite", sys.modules)

        @unittest.skipUnless(IS_OXLITE, "it is not")
        def test_oxlite(self):
            import _sqlite3, oxlite, sqlite3.dbapi2, sqlite3.dump
            self.assertIs(sqlite3.connect, oxlite.sqlite3.connect)
            self.assertIs(sqlite3.dbapi2.connect, sqlite3.connect)
            self.assertIs(_sqlite3, oxlite._native)
        """
    )
    assert failures(done) == []
    assert numbers(done)["passed"] == 2
    assert "Oxlite: skipped (it is Oxlite); the standard library: passed" in done.stdout
    assert "Oxlite: passed; the standard library: skipped (it is not)" in done.stdout


CHILD = """
def test_child(self):
    code = "import sqlite3, sys; print(sqlite3.__name__, '_sqlite3' in sys.modules)"
    done = subprocess.run({command}, capture_output=True, text=True)
    expected = "{expected}" if IS_OXLITE else "sqlite3 True"
    self.assertEqual(done.stdout.strip(), expected, done.stderr)
"""


def test_a_child_interpreter_has_oxlite_too(run: Runs) -> None:
    done = run(CHILD.format(command="[sys.executable, '-c', code]", expected="oxlite.sqlite3 True"))
    assert failures(done) == []
    assert numbers(done)["passed"] == 2
    assert numbers(done)["children"] == 1


def test_a_child_of_cpythons_own_helper_has_oxlite_too(run: Runs) -> None:
    pytest.importorskip("test.support.script_helper", reason="Debian splits it off")
    done = run(
        """
        def test_child(self):
            from test.support.script_helper import assert_python_ok
            code = "import sqlite3; print(sqlite3.__name__)"
            told = assert_python_ok("-c", code, PYTHONIOENCODING="utf-8").out.decode().strip()
            self.assertEqual(told, "oxlite.sqlite3" if IS_OXLITE else "sqlite3")
        """
    )
    assert failures(done) == []
    assert numbers(done)["children"] == 1


def test_a_child_interpreter_that_escapes_fails_the_run(run: Runs) -> None:
    done = run(CHILD.format(command="[sys.executable, '-I', '-c', code]", expected="sqlite3 True"))
    assert failures(done) == ["1 of 1 child interpreters got the standard library's driver"]
    assert numbers(done)["passed"] == 2


def test_without_oxlite_nothing_is_tested(run: Runs, tmp_path: Path) -> None:
    broken = tmp_path / "broken" / "oxlite"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise RuntimeError('it is broken')")
    done = run("", f"--path={broken.parent}")
    assert "error: oxlite.sqlite3" in failures(done)
    assert "error: tiny.test_tiny" in failures(done)
    assert "RuntimeError: it is broken" in done.stdout
    assert numbers(done)["passed"] == 0


FAILS_ON_OXLITE = """
def test_fails(self):
    self.assertFalse(IS_OXLITE, "it " + "differs")
"""
FAILING = "tiny.test_tiny.Tests.test_fails"


def test_an_undeclared_failure_fails_the_run(run: Runs) -> None:
    done = run(FAILS_ON_OXLITE)
    assert failures(done) == [f"failed: {FAILING}"]
    assert "Traceback (most recent call last)" in done.stdout
    assert "AssertionError: True is not false : it differs" in done.stdout
    assert numbers(done)["failed"] == 1
    assert "2 passed (SQLite" in done.stdout


def test_the_command_that_is_shown_repeats_the_one_test(run: Runs) -> None:
    done = run(FAILS_ON_OXLITE)
    (command,) = re.findall(r"^  again: (.*)", done.stdout, re.MULTILINE)
    again = subprocess.run(shlex.split(command), capture_output=True, text=True, timeout=60)
    assert failures(again) == [f"failed: {FAILING}"]
    assert numbers(again)["tests"] == 1


def test_a_failure_of_both_drivers_fails_the_run_and_is_said(run: Runs) -> None:
    done = run("def test_fails(self): self.fail('always')")
    assert failures(done) == [f"failed: {FAILING} (in the standard library's own run too)"]


def test_an_error_fails_the_run(run: Runs) -> None:
    done = run("def test_fails(self): 1 / (not IS_OXLITE)")
    assert failures(done) == [f"error: {FAILING}"]
    assert "ZeroDivisionError" in done.stdout


def test_a_failing_subtest_fails_the_run(run: Runs) -> None:
    done = run(
        """
        def test_fails(self):
            for number in range(5):
                with self.subTest(number=number):
                    self.assertNotEqual(number * IS_OXLITE, 3)
        """
    )
    assert failures(done) == [f"failed: {FAILING}"]
    assert "(number=3)" in done.stdout
    assert "(number=2)" not in done.stdout
    assert numbers(done)["subtests"] == 5


def test_an_unexpected_success_fails_the_run(run: Runs) -> None:
    done = run("@unittest.expectedFailure\ndef test_fails(self): self.assertTrue(IS_OXLITE)")
    assert failures(done) == [f"unexpected success: {FAILING}"]


def test_a_class_that_cannot_be_set_up_fails_the_run(run: Runs) -> None:
    done = run(
        """
        @classmethod
        def setUpClass(cls):
            if IS_OXLITE:
                raise ValueError("not with this driver")
        """
    )
    assert failures(done)[0] == "1 tests are loaded and not run"
    assert failures(done)[1] == "error: setUpClass (tiny.test_tiny.Tests)"


def test_a_declared_failure_is_counted_and_its_reason_is_shown(run: Runs) -> None:
    done = run(FAILS_ON_OXLITE, declared=declare(FAILING, reason="It may differ."))
    assert failures(done) == []
    assert numbers(done)["declared"] == 1
    assert numbers(done)["failed"] == 0
    assert "It may differ." in done.stdout


def test_a_declaration_is_for_its_versions_only(run: Runs) -> None:
    assert failures(run(FAILS_ON_OXLITE, declared=declare(FAILING, versions=[VERSION]))) == []
    done = run(FAILS_ON_OXLITE, declared=declare(FAILING, versions=[OTHER_VERSION]))
    assert failures(done) == [f"failed: {FAILING}"]


@pytest.mark.parametrize("how", ["passed", "skipped"])
def test_a_declared_test_that_does_not_fail_fails_the_run(run: Runs, how: str) -> None:
    skip = "raise unittest.SkipTest('no')" if how == "skipped" else "pass"
    done = run(f"def test_fails(self): {skip}", declared=declare(FAILING))
    assert failures(done) == [f"declared, but {how}: {FAILING}"]
    assert "Remove its declaration" in done.stdout


def test_a_declared_test_that_does_not_exist_fails_the_run(run: Runs) -> None:
    done = run("", declared=declare("tiny.test_tiny.Tests.test_gone", versions=[VERSION]))
    assert failures(done) == ["declared, but on no version there: tiny.test_tiny.Tests.test_gone"]


def test_a_declared_test_may_exist_on_a_version_that_is_not_run(run: Runs) -> None:
    assert failures(run("", declared=declare("tiny.test_tiny.Tests.test_later"))) == []


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("[[declared]]\ntest = 'a.b'\n", "wants test and reason"),
        (declare("a.b", reason=" "), "no reason"),
        (declare("a.b") + "version = '3.12'\n", "wants test and reason"),
        (declare("a.b", versions=["3.7"]), "versions are of"),
        (declare("a.b", versions=[]), "versions are of"),
        (declare("a.b") * 2, "declared twice"),
        (declare("a.b") + "versions = '3.12'\n", "versions are of"),
        ("[[declared", "declared.toml"),
    ],
)
def test_a_declaration_that_is_not_complete_stops_the_run(
    run: Runs, declared: str, message: str
) -> None:
    done = run("", declared=declared)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_crash_names_the_test_that_was_running(run: Runs) -> None:
    done = run(
        """
        def test_quits(self):
            if IS_OXLITE:
                import ctypes
                ctypes.string_at(0)
        """
    )
    crash = "Oxlite's run crashed with SIGSEGV in tiny.test_tiny.Tests.test_quits"
    assert failures(done) == [crash]
    assert "Fatal Python error: Segmentation fault" in done.stdout
    assert numbers(done)["passed"] == 1  # what was before it


def test_a_crash_at_the_end_fails_the_run(run: Runs) -> None:
    done = run(
        """
        def test_later(self):
            import atexit
            atexit.register(os.abort) if IS_OXLITE else None
        """
    )
    assert failures(done) == ["Oxlite's run crashed with SIGABRT in the interpreter's end"]


def test_an_early_exit_fails_the_run(run: Runs) -> None:
    done = run("def test_quits(self): os._exit(0) if IS_OXLITE else None")
    assert failures(done) == [
        "Oxlite's run ended before its last test in tiny.test_tiny.Tests.test_quits"
    ]


def test_the_end_of_the_time_names_the_test_that_was_running(run: Runs, tmp_path: Path) -> None:
    done = run(
        f"""
        def test_waits(self):
            if IS_OXLITE:
                child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
                open({str(tmp_path / "child")!r}, "w").write(str(child.pid))
                time.sleep(300)
        """,
        "--seconds=5",
    )
    late = "Oxlite's run did not end within 5 seconds in tiny.test_tiny.Tests.test_waits"
    assert failures(done) == [late]
    assert "test_tiny.py" in done.stdout  # where it waited
    status = Path("/proc", (tmp_path / "child").read_text(), "stat")
    assert not status.exists() or ") Z " in status.read_text()


def test_a_module_that_cannot_be_imported_is_named(run: Runs) -> None:
    done = run("", before=BEFORE + "    sqlite3.connect if IS_OXLITE else None\n" + WANTS_MORE)
    assert failures(done) == [
        "Oxlite's run loaded 0 tests, fewer than 1",
        "1 tests are loaded with the standard library and not with Oxlite",
        "error: tiny.test_tiny",
    ]
    assert "AttributeError: no_such_constant" in done.stdout
    assert "importlib" not in done.stdout


WANTS_MORE = """
    if IS_OXLITE:
        raise AttributeError("no_such_constant")
"""


def test_fewer_tests_than_the_standard_librarys_run_fail_the_run(run: Runs) -> None:
    done = run("if not IS_OXLITE:\n    def test_more(self): pass")
    assert failures(done) == ["1 tests are loaded with the standard library and not with Oxlite"]
    assert "tiny.test_tiny: 1" in done.stdout


def test_too_few_tests_fail_the_run(run: Runs) -> None:
    done = run("", floor=2)
    assert failures(done) == [
        "Oxlite's run loaded 1 tests, fewer than 2",
        "the standard library's own run loaded 1 tests, fewer than 2",
    ]


def test_an_interpreter_without_the_tests_is_said_and_counted(run: Runs) -> None:
    done = run("", "--package=tiny.gone")
    assert failures(done) == []
    assert f"not run: {sys.executable} has no tiny.gone" in done.stdout
    assert "0 interpreters run, 1 not run" in done.stdout


def test_the_floor_of_the_real_tests_is_below_their_number_and_above_one_module() -> None:
    (floor,) = map(int, re.findall(r"^FLOOR = (\d+)", RUN.read_text(), re.MULTILINE))
    assert 400 < floor <= 436


def test_cpythons_tests_are_not_collected_here() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", HERE],
        capture_output=True,
        text=True,
        cwd=HERE.parents[2],
        timeout=60,
    )
    files = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    assert {Path(file).name for file in files} == {"test_runner.py"}
