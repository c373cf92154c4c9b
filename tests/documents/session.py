"""What happens on a page, in one directory: files are written, commands typed, Python pasted.

- One bash for all commands of a page. What is left running in the background goes on.
- One interpreter for all of its Python, the ``python`` that bash finds by then.
- Nothing outlives a page: who leaves the session too is found, since orphans become children of
  this process (Linux's "child subreaper"). A page that has left something running is wrong, for it
  leaves its reader with it as well.
"""

import ctypes
import fcntl
import json
import os
import re
import select
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO

import psutil
from tests.documents import page as pages
from tests.documents.page import Block, Command, Page

_PR_SET_CHILD_SUBREAPER = 36
_HERE = Path(__file__).parent

# What somebody needs who types the next line. A server whose port is named is waited for.
_PAUSE_SECONDS = 2.5
_LEFT_OUT = {"...", "…"}


class DiffersError(AssertionError):
    """A page does not do what it says; the message names the page, the line and the command."""


def matches(shown: Sequence[str], output: str) -> bool:
    """Whether an output is the one that a page shows.

    A line ``...`` or ``…`` is any number of lines, and ``…`` in a line is any text.
    """
    parts = []
    for line in shown:
        if line.strip() in _LEFT_OUT:
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*?".join(map(re.escape, line.rstrip().split("…"))) + r"\n")
    lines = [line.rstrip() for line in output.strip("\n").splitlines()]
    return re.fullmatch("".join(parts), "".join(f"{line}\n" for line in lines)) is not None


class Session:
    """One directory, one bash, one interpreter.

    Args:
        page: What is played.
        directory: An empty directory, where it all happens.
        variables: The environment of the shell.
        limit_seconds: How long a command or a block may take before it is given up.
    """

    def __init__(
        self,
        page: Page,
        directory: Path,
        variables: Mapping[str, str],
        limit_seconds: float = 60,
    ) -> None:
        self._page = page
        self._directory = directory
        self._variables = dict(variables)
        self._limit_seconds = limit_seconds
        self._records = directory.parent / f"{directory.name}.records"
        self._count = 0
        self._python: _Python | None = None
        self._resources = ExitStack()

    def __enter__(self) -> "Session":
        """Begin, in the empty directory."""
        self._directory.mkdir(exist_ok=True)
        self._records.mkdir(exist_ok=True)
        self._resources.enter_context(_alone(self._page.ports))
        self._resources.enter_context(_as_subreaper())
        self._before = {child.pid for child in psutil.Process().children(recursive=True)}
        self._resources.callback(self._end_all)
        self._bash = self._resources.enter_context(_Bash(self._directory, self._variables))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End all that was begun; what should have ended by itself is a difference."""
        with self._resources:
            if kind is None:
                self._end()

    def play(self, block: Block) -> None:
        """Does what a block says, if it is of those that are done.

        Raises:
            DiffersError: It came out otherwise than the page says.
        """
        if block.title is not None:
            self._write(block)
        elif block.not_run:
            return
        elif block.language == "console":
            self._type_all(block)
        elif block.language == "python":
            self._paste(block)

    # Files

    def _write(self, block: Block) -> None:
        assert block.title is not None
        file = self._directory / block.title
        if not file.resolve().is_relative_to(self._directory.resolve()):
            raise DiffersError(f"{block.place}: {block.title} is not in the page's directory")
        file.parent.mkdir(parents=True, exist_ok=True)
        if block.added and not file.exists():
            raise DiffersError(f"{block.place}: there is no {block.title} to add to")
        with file.open("a" if block.added else "w") as opened:
            opened.write(block.text)

    # Commands

    def _type_all(self, block: Block) -> None:
        commands = block.commands
        for command in commands:
            fails = bool(block.fails) and command is commands[-1]
            self._type(block, command, fails=fails)

    def _type(self, block: Block, command: Command, *, fails: bool) -> None:
        output = self._record()
        status, last = self._bash.run(command.typed, output, self._limit_seconds)
        place = f"{pages.named(block.page)}:{command.line}: $ {command.typed}"
        if status is None:
            what = f"gave no answer for {self._limit_seconds:g} s" if last else "ended the shell"
            raise DiffersError(f"{place}\n{what}; its output:\n{_read(output)}")
        if command.stays:
            self._settle(place, command, output, last)
            return
        said = _read(output)
        if (status != 0) != fails:
            wanted = "was to fail, and has not" if fails else f"ended with status {status}"
            raise DiffersError(f"{place}\n{wanted}; its output:\n{said}")
        if command.shown and not block.varies and not matches(command.shown, said):
            raise DiffersError(_difference(place, command.shown, said))
        for job in re.findall(r"%(\d+)", command.typed) if command.typed.startswith("kill") else []:
            # Its reader is not so quick that the next command meets it still ending.
            self._bash.run(f"wait %{job}", output, self._limit_seconds)

    def _settle(self, place: str, command: Command, output: Path, last: str) -> None:
        """Waits until what was left running has said what is shown, or can be asked."""
        started = time.monotonic()
        ports = set(pages.ports(command.typed))
        while True:
            said = _read(output)
            if not _is_alive(int(last)):
                status, _ = self._bash.run(f"wait {last}", output, self._limit_seconds)
                if status != 0:
                    raise DiffersError(f"{place}\nended with status {status}; its output:\n{said}")
                return
            waited = time.monotonic() - started
            if command.shown:
                settled = matches((*command.shown, "..."), said)
            elif ports:
                settled = ports <= self._listening()
            else:
                settled = waited > min(_PAUSE_SECONDS, self._limit_seconds)
            if settled:
                return
            if waited > self._limit_seconds:
                if command.shown:
                    raise DiffersError(_difference(place, command.shown, said))
                raise DiffersError(f"{place}\ndoes not listen on {ports}; its output:\n{said}")
            time.sleep(0.05)

    def _listening(self) -> set[int]:
        """The ports on which something listens that this process has begun."""
        found: set[int] = set()
        for process in psutil.Process().children(recursive=True):
            try:
                opened = process.net_connections("inet")
            except psutil.Error:
                continue
            found |= {each.laddr.port for each in opened if each.status == psutil.CONN_LISTEN}
        return found

    # Python

    def _paste(self, block: Block) -> None:
        if self._python is None:
            python, variables = self._bash.python(self._record(), self._limit_seconds)
            self._python = self._resources.enter_context(_Python(python, variables))
        output = self._record()
        where = self._bash.where(self._record(), self._limit_seconds)
        status = self._python.paste(block, where, output, self._limit_seconds)
        said = _read(output)
        if status is None:
            raise DiffersError(
                f"{block.place}: the interpreter gave no answer for {self._limit_seconds:g} s, or "
                f"ended; its output:\n{said}"
            )
        if (status != 0) != bool(block.fails):
            wanted = "was to fail, and has not" if block.fails else "failed"
            raise DiffersError(f"{block.place}: this Python {wanted}:\n{said}")
        shown = self._shown_below(block)
        if shown is not None and not matches(shown.text.splitlines(), said):
            raise DiffersError(_difference(shown.place, shown.text.splitlines(), said))

    def _shown_below(self, block: Block) -> Block | None:
        """What the page says that this Python prints: a block of text that follows it."""
        visible = [each for each in self._page.blocks if not each.hidden]
        after = visible[visible.index(block) + 1 :] if block in visible else []
        if after and after[0].language == "text" and not (after[0].not_run or after[0].varies):
            return after[0]
        return None

    # The end

    def _end(self) -> None:
        if self._python is not None:
            status = self._python.end(self._limit_seconds)
            if status != 0:
                raise DiffersError(
                    f"{pages.named(self._page.path)}: its Python ended with {status}"
                )
        ends = time.monotonic() + _PAUSE_SECONDS
        while (left := self._running()) and time.monotonic() < ends:
            time.sleep(0.05)
        if left:
            names = "\n".join(_command_line(process) for process in left)
            raise DiffersError(f"{pages.named(self._page.path)} leaves this running:\n{names}")

    def _running(self) -> list[psutil.Process]:
        """What was begun by the page and goes on, but for the shell."""
        return [
            child
            for child in psutil.Process().children(recursive=True)
            if child.pid not in self._before
            and child.pid != self._bash.pid
            and (self._python is None or child.pid != self._python.pid)
            and _is_alive(child.pid)
        ]

    def _end_all(self) -> None:
        children = psutil.Process().children(recursive=True)
        mine = [child for child in children if child.pid not in self._before]
        for process in mine:
            _quietly(process.terminate)
        _, alive = psutil.wait_procs(mine, timeout=5)
        for process in alive:
            _quietly(process.kill)
        psutil.wait_procs(alive, timeout=5)

    def _record(self) -> Path:
        self._count += 1
        return self._records / f"{self._count:03}.txt"


class _Bash:
    """A shell to which commands are told one after the other, with job control."""

    def __init__(self, directory: Path, variables: Mapping[str, str]) -> None:
        answers, told = os.pipe()
        self._answers = os.fdopen(answers)
        self._process = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-m"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=directory,
            env=dict(variables),
            pass_fds=[told],
            text=True,
            start_new_session=True,
        )
        os.close(told)
        self._told = told
        self.pid = self._process.pid

    def __enter__(self) -> "_Bash":
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        _quietly(self._process.stdin.close)
        _quietly(self._process.kill)
        self._process.wait()
        self._answers.close()

    def run(self, typed: str, output: Path, limit_seconds: float) -> tuple[int | None, str]:
        """Its status and the last process that was left running; no status if it does not end."""
        assert self._process.stdin is not None
        into = f">>{shlex.quote(str(output))} 2>&1 </dev/null {self._told}>&-"
        try:
            self._process.stdin.write(
                f"eval {shlex.quote(typed)} {into}\n"
                f'echo "$? $!" >&{self._told}; jobs >/dev/null 2>&1\n'
            )
            self._process.stdin.flush()
        except BrokenPipeError:
            return None, ""
        answer = _line(self._answers, limit_seconds)
        if not answer:
            return None, "" if answer == "" else "waits"
        status, _, last = answer.strip().partition(" ")
        return int(status), last

    def where(self, record: Path, limit_seconds: float) -> Path:
        """The directory in which it is."""
        self.run("pwd", record, limit_seconds)
        return Path(_read(record).rstrip("\n"))

    def python(self, record: Path, limit_seconds: float) -> tuple[str, dict[str, str]]:
        """The interpreter that it finds by now, and what it gives to those that it runs."""
        self.run("type -P python; env -0", record, limit_seconds)
        path, _, rest = _read(record).partition("\n")
        named = (each.partition("=") for each in rest.split("\0") if "=" in each)
        return path, {name: value for name, _, value in named}


class _Python:
    """The interpreter of a page."""

    def __init__(self, python: str, variables: Mapping[str, str]) -> None:
        reads, asks = os.pipe()
        answers, told = os.pipe()
        self._asks = os.fdopen(asks, "w")
        self._answers = os.fdopen(answers)
        self._process = subprocess.Popen(
            [python, str(_HERE / "interpreter.py"), str(reads), str(told)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env=dict(variables),
            pass_fds=[reads, told],
        )
        os.close(reads)
        os.close(told)
        self.pid = self._process.pid

    def __enter__(self) -> "_Python":
        return self

    def __exit__(self, *_: object) -> None:
        _quietly(self._asks.close)
        _quietly(self._process.kill)
        self._process.wait()
        self._answers.close()

    def paste(
        self, block: Block, directory: Path, output: Path, limit_seconds: float
    ) -> int | None:
        """The status of a block; None if it does not end, or ends the interpreter."""
        told = {
            "page": pages.named(block.page),
            "line": block.line,
            "text": block.text,
            "directory": str(directory),
            "output": str(output),
        }
        try:
            self._asks.write(json.dumps(told) + "\n")
            self._asks.flush()
        except BrokenPipeError:
            return None
        answer = _line(self._answers, limit_seconds)
        return int(answer) if answer else None

    def end(self, limit_seconds: float) -> int | str:
        """How the interpreter ends when nothing more is pasted into it."""
        self._asks.close()
        try:
            return self._process.wait(limit_seconds)
        except subprocess.TimeoutExpired:
            return "no end: a thread of it goes on"


def _line(stream: IO[str], limit_seconds: float) -> str | None:
    """A line; empty at the end of the stream, None if there is none in time."""
    ready, _, _ = select.select([stream], [], [], limit_seconds)
    return stream.readline() if ready else None


def _read(file: Path) -> str:
    return file.read_text(errors="replace") if file.exists() else ""


def _difference(place: str, shown: Sequence[str], said: str) -> str:
    wanted = "\n".join(shown)
    return f"{place}\nThe page shows:\n{wanted}\n\nIt is:\n{said}"


def _is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _command_line(process: psutil.Process) -> str:
    try:
        return f"{process.pid}: {shlex.join(process.cmdline())}"
    except psutil.Error:
        return f"{process.pid}"


def _quietly(act: Callable[[], object]) -> None:
    with suppress(psutil.Error, OSError):
        act()


@contextmanager
def _as_subreaper() -> Iterator[None]:
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    try:
        yield
    finally:
        prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


@contextmanager
def _alone(ports: Sequence[int]) -> Iterator[None]:
    """Pages that name the same port are played one after the other, also by other processes.

    The processes are one user's: in /tmp nobody else may open a file that one has left there.
    """
    with ExitStack() as held:
        for port in sorted(ports):
            name = f"/tmp/oxlite-page-port-{os.getuid()}-{port}.lock"
            file = held.enter_context(Path(name).open("w"))
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
