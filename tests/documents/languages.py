"""How a block that is neither typed nor pasted is checked: by what reads its language.

Each returns nothing, or raises with what is wrong. A language that is not here has no place on a
page: :func:`check` says so.
"""

import configparser
import html.parser
import json
import re
import shlex
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer.main
import yaml
from tests.documents.page import Block, Page

from oxlite import sqlite3
from oxlite.cli.app import app


def _that_does_nothing(command: Any) -> Any:  # noqa: ANN401 - of the Click inside Typer
    """A command that parses what it is given, and so do those below it."""
    command.callback = None
    for below in getattr(command, "commands", {}).values():
        _that_does_nothing(below)
    return command


_COMMAND = _that_does_nothing(typer.main.get_command(app))
_ENDS_A_COMMAND = {"|", "||", "&&", ";", "&", ">", ">>"}
_INSTRUCTION = re.compile(
    "ADD|ARG|CMD|COPY|ENTRYPOINT|ENV|EXPOSE|FROM|HEALTHCHECK|LABEL|RUN|SHELL|STOPSIGNAL|USER|VOLUME"
    "|WORKDIR"
)


class WrongError(AssertionError):
    """A block is not what its language says."""


def check(page: Page, block: Block) -> str | None:
    """Reads a block; what was not looked at, and why, or None.

    Raises:
        WrongError: It is not what it says that it is.
    """
    if block.language == "console" and block.not_run:
        _usage(block)
    if block.language in {"console", "text", ""}:
        return None
    reader = _READERS.get(block.language)
    if reader is None:
        known = ", ".join(sorted({*_READERS, "console", "text"}))
        raise WrongError(f"{block.place}: nothing here reads “{block.language}”, only {known}")
    try:
        return reader(page, block)
    except Exception as error:
        raise WrongError(f"{block.place}: {type(error).__name__}: {error}") from error


def _usage(block: Block) -> None:
    """What is not run has at least the options and arguments that the command takes."""
    for typed in block.commands:
        words = shlex.split(typed.typed.replace("\\\n", " "), comments=True)
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            words.pop(0)
        if not words or words[0] != "oxlite":
            continue
        ends = [number for number, word in enumerate(words) if word in _ENDS_A_COMMAND]
        try:
            _COMMAND.main(words[1 : ends[0] if ends else None], "oxlite", standalone_mode=False)
        except Exception as error:
            what = error.format_message() if hasattr(error, "format_message") else str(error)
            raise WrongError(f"{block.page.name}:{typed.line}: {typed.typed}: {what}") from error


def _python(page: Page, block: Block) -> None:
    compile(block.text, block.place, "exec")


def _toml(page: Page, block: Block) -> None:
    tomllib.loads(block.text)


def _json(page: Page, block: Block) -> None:
    json.loads(block.text)


def _yaml(page: Page, block: Block) -> None:
    list(yaml.safe_load_all(block.text))


def _sql(page: Page, block: Block) -> None:
    """SQLite runs it in memory, after the SQL that stands before it, in comments too."""
    connection = sqlite3.connect(":memory:")
    try:
        for each in page.blocks:
            if each.language == "sql" and each.line <= block.line:
                connection.executescript(each.text)
    finally:
        connection.close()


def _ini(page: Page, block: Block) -> str | None:
    """Units of systemd are verified by systemd, if they are files; others are parsed."""
    parser = configparser.ConfigParser(
        strict=False, interpolation=None, delimiters=("=",), allow_no_value=True
    )
    parser.optionxform = str  # type: ignore[assignment,method-assign] - configparser's own idiom
    parser.read_string(block.text)
    title = Path(block.title or "")
    if title.suffix not in {".service", ".timer", ".socket"}:
        return None
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        return "systemd-analyze is not here"
    with tempfile.TemporaryDirectory() as folder:
        # What a unit names need not be on this machine: all units of the page are there, and the
        # programs and directories are replaced by some that are.
        for each in page.blocks:
            if each.title and Path(each.title).suffix in {".service", ".timer", ".socket"}:
                text = re.sub(r"(?m)^(Exec\w+=[-+@!:]*)\S+", r"\1/bin/true", each.text)
                (Path(folder) / Path(each.title).name).write_text(text)
        done = subprocess.run(
            [analyze, "verify", "--man=no", str(Path(folder) / title.name)],
            capture_output=True,
            text=True,
        )
        said = [line for line in done.stderr.splitlines() if title.name in line]
        if said:
            raise ValueError("\n".join(said))
    return None


def _nginx(page: Page, block: Block) -> str | None:
    """Nginx reads what is no file of the page; a file is read when the page starts it."""
    if block.title is not None:
        return None
    nginx = shutil.which("nginx", path="/usr/sbin:/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
    if nginx is None:
        return "nginx is not here: run `make nginx`"
    text = block.text
    if not re.search(r"^(http|events)\b", text, re.MULTILINE):
        if not re.search(r"^(server|upstream|map)\b", text, re.MULTILINE):
            text = f"server {{ listen 127.0.0.1:8080;\n{text}\n}}"
        text = f"events {{}}\nhttp {{\n{text}\n}}"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "logs").mkdir()
        (Path(folder) / "nginx.conf").write_text(f"pid {folder}/nginx.pid;\n{text}")
        done = subprocess.run(
            [nginx, "-t", "-p", folder, "-c", "nginx.conf"], capture_output=True, text=True
        )
        if done.returncode != 0:
            raise ValueError(done.stderr)
    return None


def _dockerfile(page: Page, block: Block) -> str:
    joined = re.sub(r"\\\n", " ", block.text)
    for line in joined.splitlines():
        word = line.partition(" ")[0]
        if line.strip() and not line.startswith("#") and not _INSTRUCTION.fullmatch(word.upper()):
            raise ValueError(f"no instruction: {line}")
        value = line.partition(" ")[2].strip()
        if value.startswith("["):
            json.loads(value)
    return "no image is built: only its instructions are read"


def _html(page: Page, block: Block) -> None:
    class Reader(html.parser.HTMLParser):
        pass

    reader = Reader()
    reader.feed(block.text)
    reader.close()


def _css(page: Page, block: Block) -> None:
    if block.text.count("{") != block.text.count("}"):
        raise ValueError("braces do not match")


def _javascript(page: Page, block: Block) -> str | None:
    node = shutil.which("node")
    if node is None:
        return "node is not here"
    done = subprocess.run([node, "--check", "-"], input=block.text, capture_output=True, text=True)
    if done.returncode != 0:
        raise ValueError(done.stderr)
    return None


_READERS: dict[str, Callable[[Page, Block], str | None]] = {
    "python": _python,
    "toml": _toml,
    "json": _json,
    "yaml": _yaml,
    "sql": _sql,
    "ini": _ini,
    "nginx": _nginx,
    "dockerfile": _dockerfile,
    "html": _html,
    "javascript": _javascript,
    "css": _css,
}
