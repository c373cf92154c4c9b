"""Runs CPython's own tests of ``sqlite3`` on Oxlite, on each interpreter that is named.

    python run.py [--only TEST] INTERPRETER...

Each interpreter runs them twice, in child processes with a time limit: once with the standard
library's driver, once with Oxlite in its place (see substitute/sitecustomize.py). Every test that
does not pass on Oxlite must be declared in declared.toml. The run fails

- for a failure that is not declared, and for a declaration that is not needed or names no test;
- for a crash or the end of the time, with the test that was running;
- if Oxlite's run does not hold exactly the tests of the standard library's, or too few;
- if a child interpreter that a test starts gets the standard library's driver.

It needs nothing but the standard library. Status: 0 passed, 1 failed, 2 could not be started.
"""

import argparse
import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SUITE = HERE / "suite.py"
SUBSTITUTE = HERE / "substitute"
PACKAGE = "test.test_sqlite3"
FLOOR = 430  # Python 3.11 has 436 tests, later ones have more
VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
FAILURES = {"failed", "error", "unexpected success"}


@dataclass(frozen=True)
class Outcome:
    """What became of one test."""

    outcome: str
    detail: str
    subtests: int


@dataclass
class Run:
    """What one child process told."""

    python: str = "?"
    sqlite: str = "?"
    absent: bool = False
    loaded: list[str] = field(default_factory=list)
    tests: dict[str, Outcome] = field(default_factory=dict)
    running: str | None = None
    finished: bool = False
    children: int = 0
    substituted: int = 0
    crash: str | None = None
    output: str = ""

    @property
    def version(self) -> str:
        """The Python without its last part, as declarations name it."""
        return ".".join(self.python.split(".")[:2])

    def having(self, *outcomes: str) -> set[str]:
        """The tests that ended so."""
        return {test for test, outcome in self.tests.items() if outcome.outcome in outcomes}

    def summary(self) -> str:
        """The outcomes with their numbers: ``433 passed, 3 skipped``."""
        counts = Counter(outcome.outcome for outcome in self.tests.values())
        return ", ".join(f"{number} {outcome}" for outcome, number in counts.most_common())


@dataclass(frozen=True)
class Declaration:
    """A test that need not pass, and why."""

    test: str
    reason: str
    versions: tuple[str, ...] = VERSIONS


@dataclass(frozen=True)
class Problem:
    """Why the run fails; with a test, how to run it alone is shown."""

    title: str
    detail: str = ""
    test: str | None = None


@dataclass
class Result:
    """One interpreter's two runs, compared."""

    interpreter: str
    ours: Run
    standard: Run
    problems: list[Problem] = field(default_factory=list)
    declared: list[Declaration] = field(default_factory=list)


def declarations(file: Path) -> list[Declaration]:
    """Reads the declared exceptions; raises ValueError for one that is not complete."""
    found: dict[str, Declaration] = {}
    try:
        entries = tomllib.loads(file.read_text()).get("declared", [])
    except ValueError as error:
        raise ValueError(f"{file.name}: {error}") from None
    for entry in entries:
        if not {"test", "reason"} <= entry.keys() <= {"test", "reason", "versions"}:
            raise ValueError(f"{file.name}: wants test and reason, and takes versions: {entry}")
        declared = Declaration(
            entry["test"], entry["reason"].strip(), tuple(entry.get("versions", VERSIONS))
        )
        if not declared.reason:
            raise ValueError(f"{file.name}: no reason is given for {declared.test}")
        if not declared.versions or not set(declared.versions) <= set(VERSIONS):
            raise ValueError(f"{file.name}: versions are of {VERSIONS}, for {declared.test}")
        if declared.test in found:
            raise ValueError(f"{file.name}: declared twice: {declared.test}")
        found[declared.test] = declared
    return list(found.values())


def run_suite(interpreter: str, options: argparse.Namespace, *, substitute: bool) -> Run:
    """Runs the tests in a child process, in a folder of its own, and reads what it wrote."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    paths = ([str(SUBSTITUTE)] if substitute else []) + options.path
    if paths:
        environment["PYTHONPATH"] = os.pathsep.join(paths)
    program = os.path.abspath(interpreter)  # noqa: PTH100 - resolve() would leave a venv
    with tempfile.TemporaryDirectory(prefix="oxlite-cpython-") as name:
        events, output, folder = Path(name, "events"), Path(name, "output"), Path(name, "folder")
        events.touch()
        folder.mkdir()
        with output.open("w") as file:
            process = subprocess.Popen(
                [
                    *(program, "-P", str(SUITE), *(["--substitute"] * substitute)),
                    *(str(events), options.package, *options.only),
                ],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            crash = end_of(process, options.seconds)
        run = read(events.read_text())
        run.output = output.read_text(errors="replace")
    run.crash = crash or crash_of(process.returncode)
    if run.crash is None and not (run.finished or run.absent):
        run.crash = "ended before its last test"
    return run


def crash_of(status: int) -> str | None:
    """What the status of a process says, if it is not that all is well."""
    if status < 0:
        return f"crashed with {signal.Signals(-status).name}"
    return f"ended with status {status}" if status else None


def end_of(process: subprocess.Popen[bytes], seconds: float) -> str | None:
    """Waits for a process and ends all that it started; says so if its time was up."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)  # faulthandler prints the stack of every thread
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        return f"did not end within {seconds:g} seconds"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return None


def read(events: str) -> Run:
    """What suite.py wrote, put together. The last line may be cut short by a crash."""
    run = Run()
    for line in events.splitlines():
        try:
            event: dict[str, Any] = json.loads(line)
        except ValueError:
            break
        if "test" in event:
            run.tests[event["test"]] = Outcome(event["outcome"], event["detail"], event["subtests"])
            run.running = None
        elif "started" in event:
            run.running = event["started"]
        else:
            vars(run).update(event)
    return run


def compare(result: Result, declared: list[Declaration], options: argparse.Namespace) -> None:
    """Finds what fails the run on one interpreter."""
    ours, standard = result.ours, result.standard
    of_test = {entry.test: entry for entry in declared if ours.version in entry.versions}
    result.problems += [
        *ended_early("Oxlite's run", ours),
        *ended_early("the standard library's own run", standard),
        *wrongly_loaded(ours, standard, 0 if options.only else options.floor),
    ]
    for test in sorted(ours.having(*FAILURES)):
        if test in of_test:
            result.declared.append(of_test[test])
            continue
        outcome = ours.tests[test]
        also = " (in the standard library's own run too)" * (test in standard.having(*FAILURES))
        title = f"{outcome.outcome}: {test}{also}"
        alone = test if test.startswith(f"{options.package}.") else None
        result.problems.append(Problem(title, outcome.detail, alone))
    for test in sorted(of_test.keys() & ours.tests.keys() - ours.having(*FAILURES)):
        title = f"declared, but {ours.tests[test].outcome}: {test}"
        result.problems.append(Problem(title, "Remove its declaration.", test))
    if ours.children != ours.substituted:
        wrong = ours.children - ours.substituted
        title = f"{wrong} of {ours.children} child interpreters got the standard library's driver"
        result.problems.append(Problem(title))


def ended_early(whose: str, run: Run) -> Iterator[Problem]:
    """A crash, or the end of the time."""
    if run.crash:
        where = run.running or ("the interpreter's end" if run.finished else "the loading")
        tail = "\n".join(run.output.splitlines()[-60:])
        yield Problem(f"{whose} {run.crash} in {where}", tail, run.running)


def wrongly_loaded(ours: Run, standard: Run, floor: int) -> Iterator[Problem]:
    """Tests that should have been loaded or run, and were not."""
    for whose, run in (("Oxlite's run", ours), ("the standard library's own run", standard)):
        if len(run.loaded) < floor:
            yield Problem(f"{whose} loaded {len(run.loaded)} tests, fewer than {floor}")
    for title, tests in (
        (
            "loaded with the standard library and not with Oxlite",
            {*standard.loaded} - {*ours.loaded},
        ),
        (
            "loaded with Oxlite and not with the standard library",
            {*ours.loaded} - {*standard.loaded},
        ),
        (
            "loaded and not run",
            set() if ours.crash else {*ours.loaded} & {*standard.tests} - {*ours.tests},
        ),
    ):
        if tests:
            modules = Counter(test.rsplit(".", 2)[0] for test in tests)
            lines = [f"{module}: {number}" for module, number in sorted(modules.items())]
            yield Problem(f"{len(tests)} tests are {title}", "\n".join(lines))


def unknown(declared: list[Declaration], results: list[Result]) -> Iterator[Problem]:
    """Declarations of tests that no version has. Nothing is said before all have been run."""
    loaded: dict[str, set[str]] = {}
    for result in results:
        loaded.setdefault(result.ours.version, set()).update(result.standard.loaded)
    for entry in declared:
        versions = set(entry.versions)
        if versions <= loaded.keys() and not any(entry.test in loaded[v] for v in versions):
            title = f"declared, but on no version there: {entry.test}"
            yield Problem(title, "Remove its declaration, or correct its name.")


def print_table(results: list[Result], absent: list[tuple[str, Run]], package: str) -> None:
    """The numbers, a line for each interpreter."""
    heading = ["Python", "tests", "passed", "skipped", "declared", "failed", "subtests", "children"]
    rows = [[*heading, "the standard library's own run"]]
    for result in results:
        ours = result.ours
        failed = len(ours.having(*FAILURES)) - len(result.declared)
        passed = len(ours.having("passed", "expected failure"))
        subtests = sum(outcome.subtests for outcome in ours.tests.values())
        numbers = [len(ours.loaded), passed, len(ours.having("skipped"))]
        numbers += [len(result.declared), failed, subtests, ours.substituted]
        standard = f"{result.standard.summary()} (SQLite {result.standard.sqlite})"
        rows.append([ours.python, *map(str, numbers), standard])
    sqlite = ", ".join(sorted({result.ours.sqlite for result in results}))
    print(f"{package} on Oxlite" + (f" (SQLite {sqlite})" if sqlite else ""))
    if results:
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        for row in rows:
            cells = [row[0].ljust(widths[0]), *map(str.rjust, row[1:-1], widths[1:-1]), row[-1]]
            print("  " + "  ".join(cells))
    for interpreter, run in absent:
        print(f"  {run.python}  not run: {interpreter} has no {package}", end="")
        print(f" (Debian: libpython{run.version}-testsuite)" * (package == PACKAGE))
    print(f"  {len(results)} interpreters run, {len(absent)} not run")


def print_differences(results: list[Result]) -> None:
    """The declared exceptions, and what was skipped on one side only."""
    declared: dict[Declaration, list[str]] = {}
    skipped: dict[tuple[str, str], list[str]] = {}
    for result in results:
        ours, standard = result.ours, result.standard
        for entry in result.declared:
            declared.setdefault(entry, []).append(ours.version)
        on_one_side = ours.having("skipped") ^ standard.having("skipped")
        for test in sorted(on_one_side & ours.tests.keys() & standard.tests.keys()):
            told = [
                f"{name}: {run.tests[test].outcome}"
                + f" ({run.tests[test].detail})" * (run.tests[test].outcome == "skipped")
                for name, run in (("Oxlite", ours), ("the standard library", standard))
            ]
            skipped.setdefault((test, "; ".join(told)), []).append(ours.version)
    if declared:
        print("\nDeclared:")
        for entry, versions in declared.items():
            print(f"  {entry.test} ({', '.join(versions)})\n      {entry.reason}")
    if skipped:
        print("\nSkipped on one side only:")
        for (test, how), versions in skipped.items():
            print(f"  {test} ({', '.join(versions)})\n      {how}")


def print_problems(results: list[Result], general: list[Problem], options: list[str]) -> None:
    """Each problem once, with the versions that have it."""
    versions: dict[tuple[str, str], list[str]] = {}
    first: dict[tuple[str, str], tuple[Problem, str]] = {}
    for result in results:
        for problem in result.problems:
            # Line numbers differ from version to version; the last line is the error.
            key = problem.title, "\n".join(problem.detail.splitlines()[-1:])
            versions.setdefault(key, []).append(result.ours.python)
            first.setdefault(key, (problem, result.interpreter))
    for key, (problem, interpreter) in first.items():
        print(f"\nFAILED on Python {', '.join(versions[key])}: {problem.title}")
        if problem.test:
            command = [sys.executable, str(Path(__file__)), *options, "--only", problem.test]
            print(f"  again: {shlex.join([*map(shortest, command), shortest(interpreter)])}")
        print(indented(problem.detail), end="")
    for problem in general:
        print(f"\nFAILED: {problem.title}\n{indented(problem.detail)}", end="")


def shortest(path: str) -> str:
    """A file as one would type it here; anything else as it is."""
    relative = os.path.relpath(path) if os.path.isabs(path) else path  # noqa: PTH117
    return relative if len(relative) < len(path) else path


def indented(text: str) -> str:
    """The text as a block below a heading."""
    return "".join(f"    {line}".rstrip() + "\n" for line in text.splitlines())


def command_line(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options; those after --only serve the tests of this program."""
    parser = argparse.ArgumentParser(description="Run CPython's tests of sqlite3 on Oxlite.")
    parser.add_argument("interpreters", nargs="+", metavar="INTERPRETER")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TEST",
        help="run this test, class or module only, such as test.test_sqlite3.test_types",
    )
    parser.add_argument("--seconds", type=float, default=120, help="the time limit of each run")
    parser.add_argument("--package", default=PACKAGE, help="where the test modules are")
    parser.add_argument(
        "--path",
        action="append",
        default=[],
        type=os.path.abspath,  # the child runs elsewhere
        help="a folder to import from",
    )
    parser.add_argument("--declared", type=Path, default=HERE / "declared.toml", metavar="FILE")
    parser.add_argument("--floor", type=int, default=FLOOR, help="the least number of tests")
    return parser.parse_args(arguments)


def repeatable(options: argparse.Namespace) -> list[str]:
    """The options that a command to repeat one test must have, too."""
    standard = command_line(["INTERPRETER"])
    words = [word for path in options.path for word in ("--path", path)]
    for name in ("seconds", "package", "declared"):
        if getattr(options, name) != getattr(standard, name):
            words += [f"--{name}", str(getattr(options, name))]
    return words


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs everything, prints what came of it and returns the status."""
    options = command_line(arguments)
    try:
        declared = declarations(options.declared)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    results: list[Result] = []
    absent: list[tuple[str, Run]] = []
    for interpreter in options.interpreters:
        standard = run_suite(interpreter, options, substitute=False)
        if standard.absent:
            absent.append((interpreter, standard))
            continue
        ours = run_suite(interpreter, options, substitute=True)
        results.append(Result(interpreter, ours, standard))
        compare(results[-1], declared, options)
    general = [] if options.only else list(unknown(declared, results))
    print_table(results, absent, options.package)
    print_differences(results)
    print_problems(results, general, repeatable(options))
    return 1 if general or any(result.problems for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
