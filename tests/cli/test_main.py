"""The entry point: one line for an expected error, and codes that mean something."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

import oxlite as package
from oxlite import environment
from oxlite.cli import main


def test_version_names_what_is_inside(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"oxlite {package.__version__}"
    assert lines[1].startswith(f"SQLite {package.sqlite3.sqlite_version} (20")


def test_an_output_that_is_closed_is_no_fault() -> None:
    command = f'"{sys.executable}" -m oxlite.cli --version >&-'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    output = capsys.readouterr().out
    assert " env " in output
    assert " bench " in output


def test_nothing_asked_for_shows_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    captured = capsys.readouterr()
    assert "Usage: oxlite" in captured.out + captured.err
    assert "error" not in captured.err


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["nonsense"], "nonsense", "oxlite --help"),
        (["--nonsense"], "--nonsense", "oxlite --help"),
        (["env", "--nonsense"], "--nonsense", "oxlite env --help"),
        (["env", "a", "b"], "b", "oxlite env --help"),
        (["env", "--profile"], "--profile", "requires an argument"),
        (["bench", "nonsense"], "nonsense", "oxlite bench --help"),
        (["bench", "kw"], "unknown command 'kw': did you mean 'kv'?", "oxlite bench --help"),
    ],
)
def test_wrong_usage_is_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str, hint: str
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("oxlite: error: ")
    assert captured.err.count("\n") == 1
    assert message in captured.err
    assert hint in captured.err


@pytest.fixture
def env_raises(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Makes ``oxlite env`` fail with an error."""

    def arrange(error: BaseException) -> None:
        def failing(*arguments: object, **options: object) -> None:
            raise error

        monkeypatch.setattr(environment, "inspect_database", failing)

    return arrange


def _expected_errors() -> list[Exception]:
    from oxlite import sqlite3
    from oxlite.bench import LabError

    return [
        OSError(28, "No space left on device", "x.db"),
        sqlite3.OperationalError("two\nlines"),
        LabError("no such workload"),
        environment.ReportError("x.db: no"),
    ]


@pytest.mark.parametrize("error", _expected_errors(), ids=lambda error: type(error).__name__)
def test_an_expected_error_is_one_line(
    capsys: pytest.CaptureFixture[str],
    env_raises: Callable[[BaseException], None],
    error: Exception,
) -> None:
    env_raises(error)
    assert main(["env"]) == 2
    assert capsys.readouterr().err == f"oxlite: error: {' '.join(str(error).split())}\n"


def test_a_mistake_of_ours_is_not_hidden(env_raises: Callable[[BaseException], None]) -> None:
    env_raises(AttributeError("a mistake"))
    with pytest.raises(AttributeError, match="a mistake"):
        main(["env"])


def test_an_interruption_is_quiet(
    capsys: pytest.CaptureFixture[str], env_raises: Callable[[BaseException], None]
) -> None:
    env_raises(KeyboardInterrupt())
    assert main(["env"]) == 130
    assert capsys.readouterr() == ("", "")


def test_an_interruption_tells_its_signal(env_raises: Callable[[BaseException], None]) -> None:
    interrupt = KeyboardInterrupt()
    interrupt.signal_number = signal.SIGTERM  # type: ignore[attr-defined]
    env_raises(interrupt)
    assert main(["env"]) == 128 + signal.SIGTERM


@pytest.mark.parametrize("package_name", ["typer", "rich", "psutil"])
def test_a_missing_package_says_how_to_install_it(package_name: str) -> None:
    code = (
        f"import sys; sys.modules[{package_name!r}] = None\n"
        "from oxlite.cli import main; sys.exit(main(['env']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("oxlite: error: ")
    assert done.stderr.endswith("pip install 'oxlite[cli]'\n")
    assert done.stderr.count("\n") == 1
    assert package_name in done.stderr


@pytest.mark.parametrize("arguments", [["env", "--no-fsync"], ["env", "--json", "--no-fsync"]])
def test_a_reader_that_went_away_is_quiet(arguments: list[str]) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with open(write_end, "wb") as closed:  # noqa: PTH123 - a descriptor, not a path
        done = subprocess.run(
            [sys.executable, "-m", "oxlite.cli", *arguments],
            stdout=closed,
            stderr=subprocess.PIPE,
            timeout=60,
        )
    assert done.stderr == b""
    assert done.returncode == 128 + signal.SIGPIPE
