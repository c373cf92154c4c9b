"""URIs: which a production profile refuses, and that none is read where none was asked for."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import oxlite
from oxlite import sqlite3

Opened = Callable[..., sqlite3.Connection]

WITHOUT_LOCKS = [
    "nolock=1",
    "immutable=1",
    "mode=ro&immutable=yes",
    "nolock=TRUE",
    "nolock=on",
    "nolock=2",
    "nolock=007",
    "nolock=0x1",
    "immutable=0x01",
    "%6eolock=1",
    "nolock=%31",
    "nolock%00ignored=1",
    "nolock=1%00ignored",
    "immutable=yes%00no",
    "vfs=unix-none",
    "vfs=unix-%6eone",
    "vfs=unix-none%00ignored",
    "x=y&nolock=1",
    "&nolock=1",
    "=&nolock=1",
    "cache=private&nolock=1#fragment",
]


@pytest.mark.parametrize("query", WITHOUT_LOCKS)
@pytest.mark.parametrize("kind", [str, str.encode], ids=["str", "bytes"])
def test_a_uri_that_disables_locking_is_refused(
    existing: Path, query: str, kind: Callable[[str], object]
) -> None:
    with pytest.raises(ValueError, match="allow_no_locking=True"):
        oxlite.connect(kind(f"file:{existing}?{query}"), uri=True, journal="keep")


def test_a_uri_of_a_name_that_is_no_utf8_is_refused_too(tmp_path: Path) -> None:
    name = b"file:" + os.fsencode(tmp_path) + b"/\xff.db?nolock=1"
    with pytest.raises(ValueError, match="allow_no_locking=True"):
        oxlite.connect(name, uri=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("query", ["nolock=1", "immutable=1", "mode=ro&immutable=1"])
def test_a_uri_that_disables_locking_is_accepted_when_meant(
    opened: Opened, existing: Path, query: str
) -> None:
    connection = opened(f"file:{existing}?{query}", uri=True, allow_no_locking=True, journal="keep")
    assert connection.execute("SELECT a FROM t").fetchall() == [(1,)]


@pytest.mark.parametrize(
    "query",
    [
        "",
        "mode=rw",
        "mode=rwc&cache=private",
        "nolock=0",
        "nolock=no",
        "immutable=off",
        "vfs=unix",
        "xnolock=1",
        "nolockx=1",
        "psow=1",
        "mode=rw#?nolock=1",
    ],
)
def test_a_uri_that_keeps_locking_is_accepted(opened: Opened, existing: Path, query: str) -> None:
    connection = opened(f"file:{existing}?{query}", uri=True)
    other = sqlite3.connect(existing, timeout=0, isolation_level=None)
    connection.execute("INSERT INTO t VALUES (2)")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("BEGIN IMMEDIATE")
    other.close()


def test_a_file_colon_name_is_plain_text_unless_uri(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = "file:a.db?nolock=1"
    opened(name).execute("CREATE TABLE t(a)")
    assert {entry.name for entry in tmp_path.iterdir()} >= {name}
    assert not (tmp_path / "a.db").exists()


def test_uri_changes_nothing_for_other_names(opened: Opened, path: Path) -> None:
    opened(path, uri=True).execute("CREATE TABLE t(a)")
    assert path.exists()
