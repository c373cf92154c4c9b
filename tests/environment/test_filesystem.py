"""The mount table is read right, and tells nothing private."""

import sys
from pathlib import Path

import pytest

from oxlite.environment import filesystem
from oxlite.environment.filesystem import file_system, parse_mounts

TABLE = r"""
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,discard
22 21 0:5 / /srv rw,noatime - xfs /dev/sdb rw,noquota
23 22 0:6 / /srv/data\040base ro,relatime master:2 propagate_from:1 - btrfs /dev/sdc rw,ssd
24 21 0:7 / /mnt/share rw - cifs //server/x rw,vers=3.0,username=ada,domain=D,addr=10.0.0.1,uid=7
25 21 0:8 / /mnt/hidden rw - ext4 /dev/sdd rw
26 21 0:9 / /mnt/hidden rw - tmpfs tmpfs rw,size=1024k
27 21 0:9 / /layers rw - overlay overlay rw,lowerdir=/lower/a:/b,upperdir=/c,xino=off
28 21 0:9 / /remote rw - nfs4 h:/x rw,rsize=1,hard,clientaddr=10.0.0.2,local_lock=none,addr=::1
29 21 0:9 / /bare rw -
not a mount
"""


@pytest.fixture
def _table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filesystem, "_mounts", lambda: parse_mounts(TABLE))


@pytest.mark.usefixtures("_table")
@pytest.mark.parametrize(
    ("directory", "kind", "mount_point"),
    [
        ("/", "ext4", "/"),
        ("/srv", "xfs", "/srv"),
        ("/srvx/below", "ext4", "/"),
        ("/srv/data base/app", "btrfs", "/srv/data base"),
        ("/srv/database", "xfs", "/srv"),
        ("/mnt/hidden/below", "tmpfs", "/mnt/hidden"),
    ],
)
def test_the_longest_mount_that_covers_wins(directory: str, kind: str, mount_point: str) -> None:
    found = file_system(Path(directory))
    assert (found["type"], found["mount_point"]) == (kind, mount_point)


@pytest.mark.usefixtures("_table")
@pytest.mark.parametrize(
    ("directory", "network", "volatile"),
    [("/mnt/share", True, False), ("/remote", True, False), ("/mnt/hidden", False, True),
     ("/srv", False, False)],
)  # fmt: skip
def test_what_sqlite_cannot_rely_on_is_flagged(
    directory: str, network: bool, volatile: bool
) -> None:
    found = file_system(Path(directory))
    assert (found["network"], found["volatile"]) == (network, volatile)


def test_options_of_the_mount_and_of_the_file_system_are_merged() -> None:
    mounts = {mount.point: mount for mount in parse_mounts(TABLE)}
    assert mounts["/srv"].options == ("rw", "noatime", "noquota")
    assert mounts["/srv/data base"].options == ("ro", "relatime", "rw", "ssd")


def test_addresses_people_and_paths_are_left_out() -> None:
    mounts = {mount.point: mount for mount in parse_mounts(TABLE)}
    assert mounts["/mnt/share"].options == (
        *("rw", "vers=3.0", "username=…", "domain=…", "addr=…", "uid=…"),
    )
    assert mounts["/layers"].options == ("rw", "lowerdir=…", "upperdir=…", "xino=off")
    assert mounts["/remote"].options == (
        *("rw", "rsize=1", "hard", "clientaddr=…", "local_lock=none", "addr=…"),
    )


def test_lines_that_are_no_mounts_are_passed_over() -> None:
    assert len(parse_mounts(TABLE)) == 8
    assert parse_mounts("") == []


def test_no_covering_mount_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filesystem, "_mounts", list)
    found = file_system(Path("/"))
    assert found == {
        "type": None, "mount_point": None, "options": [], "network": False, "volatile": False,
    }  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="the mount table of Linux")
def test_links_are_resolved(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/proc/self")
    assert file_system(link)["type"] == "proc"
    assert file_system(tmp_path)["type"] != "proc"
    assert file_system(tmp_path / "missing" / "below") == file_system(tmp_path)
