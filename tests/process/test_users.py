"""Writers of several users stand in one line, and nobody else can stand in it.

With real users, which takes root; they need no entry in any list of users.
"""

import contextlib
import os
import shutil
import sqlite3 as standard
import stat
import struct
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.process.actors import Actor, Start
from tests.wait import until

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0,
    reason="to become other users takes root, and the gate takes Linux",
)

GROUP = 61_000
WEB, CRON, READER, STRANGER = 61_001, 61_002, 61_003, 61_004

INSERT = "INSERT INTO t VALUES (1)"


@pytest.fixture
def path() -> Iterator[Path]:
    """A database in a folder that every user can reach: WEB's, shared with the group."""
    folder = Path(tempfile.mkdtemp(prefix="oxlite-users-"))
    path = folder / "app.db"
    with contextlib.closing(standard.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (x)")
    give(folder, WEB, 0o2770)
    give(path, WEB, 0o660)
    yield path
    shutil.rmtree(folder)


def give(path: Path, user: int, mode: int, group: int = GROUP) -> None:
    os.chown(path, user, group)
    path.chmod(mode)


def gate_of(path: Path) -> Path:
    return path.with_name("app.db-gate")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def user(
    start: Start, name: int, *others: int, group: int | None = None, umask: int = 0o22
) -> Actor:
    """A process of that user's, with a connection that has not written."""
    actor = start("user")
    group = name if group is None else group
    assert actor.does(f"become({name}, {group}, {list(others)}, {umask})") == "done"
    assert actor.does("connect()") == "done"
    return actor


def no_gate(actor: Actor) -> str:
    """Why it stands in no line with other processes; empty if it does."""
    said = actor.does(
        "say('why ' + str(connection.queue_statistics()['process_queue_unavailable'] or ''))"
    )
    assert actor.answer() == "done"
    return said.removeprefix("why ").strip()


def writes(actor: Actor) -> None:
    assert actor.does(f"execute({INSERT!r})") == "done"


def stand_in_one_line(first: Actor, second: Actor) -> None:
    """The second one is told by the first one's note who keeps it, and comes after it."""
    writes(first)
    assert first.does(f"execute('BEGIN IMMEDIATE', {INSERT!r})") == "done"
    assert second.does("connect(timeout=0)") == "done"
    said = second.does(f"execute({INSERT!r})")
    assert f"held by process {first.process.pid}, thread" in said
    assert second.does("connect()") == "done"
    second.writes(INSERT)
    assert first.does("execute('COMMIT')") == "done"
    assert second.answer() == "done"
    assert (no_gate(first), no_gate(second)) == ("", "")


@pytest.mark.parametrize("umask", [0o22, 0o77])
@pytest.mark.parametrize("folder", ["gives its group", "plain"])
@pytest.mark.parametrize("who", ["owner", "member", "root"])
def test_whoever_writes_first_all_stand_in_one_line(
    start: Start, path: Path, who: str, folder: str, umask: int
) -> None:
    own: dict[str, int] = {}
    if folder == "plain":
        # SQLite's own files beside the database need that as well.
        path.parent.chmod(0o770)
        own = {"group": GROUP}
    web = user(start, WEB, GROUP, umask=umask, **own)
    cron = user(start, CRON, GROUP, umask=umask, **own)
    first, second = {"owner": (web, cron), "member": (cron, web)}.get(who, (web, cron))
    if who == "root":
        root = start("user")
        assert root.does(f"os.umask({umask})") == "done"
        assert root.does("connect()") == "done"
        writes(root)
    stand_in_one_line(first, second)
    gate = gate_of(path).stat()
    owner = {"owner": WEB, "member": CRON, "root": WEB}[who]
    assert (gate.st_uid, gate.st_gid, stat.S_IMODE(gate.st_mode)) == (owner, GROUP, 0o660)
    stand_in_one_line(second, first)


@pytest.mark.parametrize(
    ("database", "gate"),
    [(0o600, 0o600), (0o640, 0o600), (0o644, 0o600), (0o664, 0o660), (0o666, 0o666)],
)
def test_who_cannot_write_the_database_cannot_read_the_gate(
    start: Start, path: Path, database: int, gate: int
) -> None:
    path.parent.chmod(0o777)
    path.chmod(database)
    web = user(start, WEB, GROUP)
    writes(web)
    assert mode_of(gate_of(path)) == gate
    for name, may in ((READER, bool(database & 0o020)), (STRANGER, bool(database & 0o002))):
        actor = start("user")
        others = [GROUP] if name == READER else []
        assert actor.does(f"become({name}, {name}, {others}, 0)") == "done"
        said = actor.does(f"os.close(os.open({str(gate_of(path))!r}, os.O_RDONLY))")
        assert said == "done" if may else said.startswith("PermissionError")


def test_who_only_reads_goes_on_as_before(start: Start, path: Path) -> None:
    path.parent.chmod(0o775)
    path.chmod(0o644)
    web = user(start, WEB, GROUP)
    writes(web)
    reader = user(start, READER)
    assert reader.does("say(str(connection.execute('SELECT x FROM t').fetchall()))") == "[(1,)]"
    assert reader.answer() == "done"
    said = reader.does(f"execute({INSERT!r})")
    assert said == "OperationalError: attempt to write a readonly database"
    assert reader.does("say(str(connection.queue_statistics()))") == "None"
    assert reader.answer() == "done"
    writes(web)


@pytest.mark.parametrize("mode", [0o644, 0o666, 0o600])
def test_a_gate_of_another_mode_is_mended_by_its_owner(start: Start, path: Path, mode: int) -> None:
    gate = gate_of(path)
    gate.write_bytes(b"oxlite 1\n7\n7\n0\nSELECT 1\0")
    give(gate, WEB, mode, group=WEB)
    web = user(start, WEB, GROUP)
    writes(web)
    assert (mode_of(gate), gate.stat().st_gid) == (0o660, GROUP)
    stand_in_one_line(user(start, CRON, GROUP), web)


def test_the_gate_follows_the_database_while_it_is_in_use(start: Start, path: Path) -> None:
    path.chmod(0o600)
    web = user(start, WEB, GROUP)
    writes(web)
    assert mode_of(gate_of(path)) == 0o600
    for database, gate in ((0o660, 0o660), (0o640, 0o600)):
        path.chmod(database)

        def follows(wanted: int = gate) -> bool:
            writes(web)
            return mode_of(gate_of(path)) == wanted

        until(follows)


def test_a_refused_gate_is_tried_again(start: Start, path: Path) -> None:
    gate = gate_of(path)
    gate.touch()
    give(gate, STRANGER, 0o666, group=STRANGER)
    web = user(start, WEB, GROUP)
    writes(web)
    assert f"it belongs to user {STRANGER}" in no_gate(web)
    gate.unlink()

    def has_one() -> bool:
        writes(web)
        return not no_gate(web)

    until(has_one)
    assert gate.stat().st_uid == WEB


@pytest.mark.parametrize(
    "what", ["file", "file of the folder's group", "hard link", "link", "pipe", "socket"]
)
def test_a_stranger_in_the_folder_keeps_nobody_waiting(start: Start, path: Path, what: str) -> None:
    gate = gate_of(path)
    folder = path.parent
    # As /tmp is, and with the database's group.
    folder.chmod(0o3777)
    stranger = start("user")
    assert stranger.does(f"become({STRANGER}, {STRANGER}, [], 0)") == "done"
    name, other = repr(str(gate)), repr(str(folder / "other"))
    make = {
        "file": f"os.close(os.open({name}, os.O_CREAT | os.O_RDWR, 0o666));"
        f" os.chown({name}, -1, {STRANGER})",
        "file of the folder's group": f"os.close(os.open({name}, os.O_CREAT | os.O_RDWR, 0o666))",
        "hard link": f"os.close(os.open({other}, os.O_CREAT | os.O_RDWR, 0o666));"
        f" os.link({other}, {name})",
        "link": f"os.close(os.open({other}, os.O_CREAT | os.O_RDWR, 0o666));"
        f" os.symlink({other}, {name})",
        "pipe": f"os.mkfifo({name}, 0o666); os.chmod({name}, 0o666)",
        "socket": f"s = socket.socket(socket.AF_UNIX); s.bind({name})",
    }[what]
    assert stranger.does(make) == "done"
    if what == "file of the folder's group":
        assert gate.stat().st_gid == GROUP
    if stat.S_ISREG(gate.lstat().st_mode):
        # All of it, for as long as he likes.
        lock = "file = open({name}, 'r+b'); fcntl.lockf(file, fcntl.LOCK_EX)"
        assert stranger.does(lock.format(name=name)) == "done"
    web, cron = user(start, WEB, GROUP), user(start, CRON, GROUP)
    for actor in (web, cron):
        writes(actor)
        assert "app.db-gate" in no_gate(actor)
        waits = actor.does("say(str(connection.queue_statistics()['process_waits']))")
        assert (waits, actor.answer()) == ("0", "done")


def test_a_file_of_ours_that_somebody_has_put_there_is_left_alone(start: Start, path: Path) -> None:
    gate = gate_of(path)
    gate.write_bytes(b"a secret of WEB's")
    give(gate, WEB, 0o600, group=WEB)
    linked = path.with_name("linked")
    web = user(start, WEB, GROUP)
    assert web.does(f"execute('BEGIN IMMEDIATE', {INSERT!r}, 'COMMIT')") == "done"
    assert (gate.read_bytes(), mode_of(gate)) == (b"a secret of WEB's", 0o600)
    gate.write_bytes(b"")
    os.link(gate, linked)
    again = user(start, WEB, GROUP)
    assert again.does(f"execute('BEGIN IMMEDIATE', {INSERT!r}, 'COMMIT')") == "done"
    assert (gate.read_bytes(), mode_of(gate)) == (b"", 0o600)


def access_list(*entries: tuple[int, int, int]) -> bytes:
    """As the kernel takes it: tag, permission, id (posix_acl_xattr.h)."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def give_access(path: Path, which: str) -> None:
    """A list that lets CRON write, and WEB's group read."""
    nobody = 2**32 - 1
    entries = [(1, 6, nobody), (2, 6, CRON), (4, 4, nobody), (16, 6, nobody), (32, 0, nobody)]
    if path.is_dir():
        entries = [(tag, permission | 1, name) for tag, permission, name in entries]
    try:
        os.setxattr(path, f"system.posix_acl_{which}", access_list(*entries))
    except OSError as error:
        pytest.skip(f"this file system has no access lists: {error}")


@pytest.mark.parametrize("who", ["owner", "named"])
def test_an_access_list_decides_who_stands_in_line(start: Start, path: Path, who: str) -> None:
    path.parent.chmod(0o770)
    give_access(path.parent, "access")
    give_access(path.parent, "default")
    give_access(path, "access")
    web, cron = user(start, WEB), user(start, CRON)
    first, second = (web, cron) if who == "owner" else (cron, web)
    stand_in_one_line(first, second)
    reader = start("user")
    assert reader.does(f"become({READER}, {READER}, [{GROUP}], 0)") == "done"
    for name, may in ((path, True), (gate_of(path), False)):
        said = reader.does(f"os.close(os.open({str(name)!r}, os.O_RDONLY))")
        assert said == "done" if may else said.startswith("PermissionError")
