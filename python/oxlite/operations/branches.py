"""A database for each git branch: made from its parent's when it is first asked for.

Beside each is a record of whose it is, ``NAME.branch.json``. The branch is read from git's files;
no program is run, but by ``prune_branches``.

Invariants:
- A branch's name leads to no other directory, and two names to two files.
- What is there is never made anew. Two who ask at once have the same one.
- It is for development: nothing is made unless it is said that this is that.
"""

import hashlib
import json
import math
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from oxlite.operations.errors import OperationsError
from oxlite.operations.files import beside, litestream_directory, name_bytes_in
from oxlite.operations.holders import look_for_holders
from oxlite.operations.online_copy import copy_online
from oxlite.operations.partial import Partial, alone_in, remove_abandoned, write_whole
from oxlite.operations.verification import verified

__all__ = ["BranchDatabase", "branch_databases", "current_branch", "database", "prune_branches"]

_FIELD: Final = "{branch}"
_RECORD: Final = ".branch.json"
_HASH_CHARACTERS: Final = 8
_NAME_CHARACTERS_AT_MOST: Final = 60
_LEAST_CHARACTERS: Final = len("branch-") + _HASH_CHARACTERS
_LINE_BYTES_AT_MOST: Final = 4096


@dataclass(frozen=True, slots=True)
class BranchDatabase:
    """That of a branch.

    Attributes:
        path: Its file.
        branch: The branch's name; of a detached HEAD ``detached-`` and the commit.
        parent: Whose database it was made from; ``None`` if it began empty.
        created_at: When.
    """

    path: Path
    branch: str
    parent: str | None
    created_at: datetime


def database(
    template: str | os.PathLike[str],
    *,
    debug: bool,
    parent: str | None = None,
    default: str = "main",
    repository: str | os.PathLike[str] | None = None,
) -> str:
    """The database of the branch that is checked out; made from its parent's if it is not there.

    >>> DATABASES = {
    ...     "default": {
    ...         "ENGINE": "oxlite.django.sqlite3",
    ...         "NAME": branch.database(BASE_DIR / "db-{branch}.sqlite3", debug=DEBUG),
    ...     }
    ... }

    Args:
        template: Its path, with ``{branch}`` in the file's name.
        debug: Whether this is development; where it is not it is refused.
        parent: The branch whose database is copied; by default ``default``.
        default: The branch that others come from.
        repository: A directory of the working tree; by default that of the template, or else the
            current one.

    Returns:
        The path, absolute. If the parent has no database, nothing is there yet.

    Raises:
        OperationsError: ``debug`` is not true, there is no working tree of git, or the template has
            no place for the name, or too little.
        VerificationFailed, oxlite.sqlite3.Error, OSError: It cannot be copied.
    """
    if not debug:
        raise OperationsError(
            "branch databases are for development: say debug=True, or name the one database of a"
            " site that others use"
        )
    path = Path(template).absolute()
    branch = current_branch(_working_tree(path, repository))
    mine = _path(path, branch)
    if mine.exists():
        return str(mine)
    comes_from = parent or default
    theirs = _path(path, comes_from)
    if comes_from != branch and theirs.is_file():
        _make(mine, theirs, branch, comes_from)
    elif parent is not None and comes_from != branch:
        raise OperationsError(f"the branch {parent!r} has no database {theirs}")
    return str(mine)


def _make(mine: Path, theirs: Path, branch: str, parent: str) -> None:
    remove_abandoned(mine.parent)
    with Partial(mine) as partial:
        copied = copy_online(theirs, partial.path)
        verified(partial.path)
        partial.take_rights(theirs)
        said = {"branch": branch, "parent": parent, "created_at": copied.at.isoformat()}
        write_whole(_record(mine), json.dumps(said) + "\n")
        with alone_in(mine.parent):
            if mine.exists():  # somebody has made it meanwhile
                return
            for left in beside(mine):  # of one that was deleted by hand
                left.unlink(missing_ok=True)
            partial.finish(mine)


def current_branch(directory: str | os.PathLike[str]) -> str:
    """The branch that is checked out in a working tree; ``detached-`` and the commit if none is.

    Raises:
        OperationsError: It is in no working tree of git.
        OSError: Git's files cannot be read.
    """
    head = _first_line(_git_directory(Path(directory)) / "HEAD")
    if head.startswith("ref: refs/heads/") and head != "ref: refs/heads/.invalid":
        return head.removeprefix("ref: refs/heads/")
    if re.fullmatch(r"[0-9a-f]{40,64}", head):
        return f"detached-{head[:12]}"
    raise OperationsError(f"git's HEAD in {directory} is neither a branch nor a commit")


def _working_tree(template: Path, repository: str | os.PathLike[str] | None) -> Path:
    if repository is not None:
        return Path(repository)
    with suppress(OperationsError):
        _git_directory(template.parent)
        return template.parent
    return Path.cwd()


def _git_directory(directory: Path) -> Path:
    """Where git keeps what is of this working tree alone.

    See https://git-scm.com/docs/gitrepository-layout.
    """
    directory = directory.absolute()
    for one in (directory, *directory.parents):
        found = one / ".git"
        if found.is_dir():
            return found
        if found.is_file():  # of a worktree or a submodule
            said = _first_line(found)
            if said.startswith("gitdir: "):
                return one / said.removeprefix("gitdir: ")
    raise OperationsError(f"{directory} is in no working tree of git")


def _first_line(path: Path) -> str:
    with path.open("rb") as file:
        return file.readline(_LINE_BYTES_AT_MOST).decode(errors="replace").rstrip("\r\n")


def _path(template: Path, branch: str) -> Path:
    if template.name.count(_FIELD) != 1 or template.name.endswith(_FIELD):
        raise OperationsError(
            f"{template} has no place for the name of the branch, before a suffix:"
            f" 'app-{_FIELD}.db', for example"
        )
    others = len(os.fsencode(template.name)) - len(_FIELD)
    room = name_bytes_in(template.parent, _RECORD) - others
    if room < _LEAST_CHARACTERS:
        raise OperationsError(
            f"{template.name} is too long a name: it leaves {max(room, 0)} bytes for that of the"
            f" branch, and it needs {_LEAST_CHARACTERS}"
        )
    return template.with_name(template.name.replace(_FIELD, _file_name(branch, room)))


def _file_name(branch: str, room: int) -> str:
    """A name of a file that is no other branch's, on file systems of all kinds."""
    most = min(_NAME_CHARACTERS_AT_MOST, room - _HASH_CHARACTERS - 1)
    plain = re.sub(r"[^a-z0-9_.-]+", "-", branch.lower())[:most].strip(".-")
    if plain == branch and not re.search(r"-[0-9a-f]{8}$", plain):
        return plain
    mark = hashlib.sha256(branch.encode(errors="surrogatepass")).hexdigest()[:_HASH_CHARACTERS]
    return f"{plain or 'branch'}-{mark}"


def _record(path: Path) -> Path:
    return path.with_name(path.name + _RECORD)


def branch_databases(template: str | os.PathLike[str]) -> list[BranchDatabase]:
    """Those that were made from a template, by the names of their branches.

    Raises:
        OperationsError: It has no place for the name.
        OSError: Its directory cannot be read.
    """
    path = Path(template).absolute()
    _path(path, "x")
    return sorted(_recorded(path), key=lambda one: one.branch)


def _recorded(template: Path) -> Iterator[BranchDatabase]:
    for record in template.parent.iterdir():
        if not record.name.endswith(_RECORD) or record.name.startswith("."):
            continue
        path = record.with_name(record.name.removesuffix(_RECORD))
        with suppress(ValueError, KeyError, TypeError, OSError):
            said = json.loads(record.read_bytes())
            found = BranchDatabase(
                path=path,
                branch=str(said["branch"]),
                parent=None if said["parent"] is None else str(said["parent"]),
                created_at=datetime.fromisoformat(said["created_at"]).astimezone(UTC),
            )
            # What somebody has written there leads to no other file.
            if path.is_file() and path == _path(template, found.branch):
                yield found


def prune_branches(
    template: str | os.PathLike[str],
    *,
    default: str = "main",
    repository: str | os.PathLike[str] | None = None,
) -> list[BranchDatabase]:
    """Delete those whose branch is gone, or is merged into ``default``.

    That of the branch that is checked out stays, and one that somebody has open.

    Returns:
        Those that were deleted.

    Raises:
        OperationsError: There is no git, no working tree, or no such branch.
        OSError: One cannot be deleted.
    """
    path = Path(template).absolute()
    tree = _working_tree(path, repository)
    checked_out = current_branch(tree)
    if default not in _branches(tree):
        raise OperationsError(
            f"there is no branch {default!r}: say which one others come from (--default)"
        )
    # A branch on which nothing was done yet is merged, as git has it.
    merged = _branches(tree, "--merged", default) - _branches(tree, "--points-at", default)
    alive = _branches(tree) - merged | {default, checked_out} | _in_worktrees(tree)
    deleted = []
    for one in branch_databases(path):
        holders = look_for_holders(one.path, with_libraries=False, look_for_seconds=math.inf)
        if one.branch in alive or holders is None or holders:
            continue
        # The file last: its name is another one's then, who has nothing of it beside him.
        for path_of_it in (*beside(one.path), one.path, _record(one.path)):
            path_of_it.unlink(missing_ok=True)
        shutil.rmtree(litestream_directory(one.path), ignore_errors=True)
        deleted.append(one)
    return deleted


def _branches(tree: Path, which: str = "", branch: str = "") -> set[str]:
    chosen = [f"{which}=refs/heads/{branch}"] if which else []
    return set(_git(tree, "for-each-ref", "--format=%(refname:lstrip=2)", *chosen, "refs/heads/"))


def _in_worktrees(tree: Path) -> set[str]:
    found = _git(tree, "worktree", "list", "--porcelain")
    begin = "branch refs/heads/"
    return {line.removeprefix(begin) for line in found if line.startswith(begin)}


def _git(tree: Path, *words: str) -> list[str]:
    # Git's hooks say another repository by these.
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "-C", str(tree), *words],
            capture_output=True,
            text=True,
            check=False,
            env=own,
        )
    except FileNotFoundError:
        raise OperationsError("which branches are merged is git's to say: install git") from None
    if done.returncode:
        raise OperationsError(f"git says: {done.stderr.strip()}")
    return done.stdout.splitlines()
