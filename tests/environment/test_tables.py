"""The report reads well on a terminal of any width."""

import copy
import io
import json
import sqlite3
from typing import Any

import pytest
from rich.console import Console

from oxlite.environment import CONFIGURATION_PRAGMAS, render, report


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    connection = sqlite3.connect(":memory:")
    result = report(connection, tmp_path_factory.mktemp("here"), driver="stdlib", check=True)
    connection.close()
    return result


def shown(made: dict[str, Any], width: int = 100) -> str:
    output = io.StringIO()
    Console(file=output, width=width).print(render(made))
    return output.getvalue()


@pytest.mark.parametrize("width", [80, 120, 200])
def test_everything_is_shown_at_every_width(made: dict[str, Any], width: int) -> None:
    text = shown(made, width)
    assert max(map(len, text.splitlines())) <= width
    words = set(text.replace(",", " ").split())
    assert set(CONFIGURATION_PRAGMAS) <= words
    for option in made["connection"]["compile_options"]:
        assert set(option.split()) <= words
    assert made["machine"]["python"]["version"] in text


def test_a_report_read_back_looks_the_same(made: dict[str, Any]) -> None:
    assert shown(json.loads(json.dumps(made))) == shown(made)


def test_numbers_carry_their_meaning(made: dict[str, Any]) -> None:
    changed = copy.deepcopy(made)
    changed["connection"]["pragmas"] |= {
        "synchronous": 1, "mmap_size": 134217728, "journal_size_limit": -1, "temp_store": 2,
        "threads": None,
    }  # fmt: skip
    text = shown(changed)
    for expected in (
        "synchronous 1 NORMAL",
        "mmap_size 128 MiB",
        "journal_size_limit -1",
        "temp_store 2 MEMORY",
        "threads no value",
    ):
        assert expected in text


def test_skipped_settings_carry_their_reason(made: dict[str, Any]) -> None:
    setting = {"name": "mmap_size", "requested": "1", "effective": "", "skipped": "[no] file"}
    text = shown({**made, "profile": {"name": "web", "settings": [setting]}})
    assert "Profile web" in text
    assert "[no] file" in text


def test_a_profile_without_pragmas_says_so(made: dict[str, Any]) -> None:
    text = shown({**made, "profile": {"name": "stock", "settings": []}})
    assert "SQLite's own defaults" in text


def test_problems_and_dangers_are_noted(made: dict[str, Any]) -> None:
    changed = copy.deepcopy(made)
    changed["connection"]["pragmas"]["integrity_check"] = ["row 7 missing from index i"]
    changed["machine"]["file_system"] |= {"type": "nfs4", "network": True}
    changed["fsync"] = {"measured": False, "reason": "Read-only file system"}
    changed["machine"]["git"] = {"revision": "0" * 40, "dirty": True}
    text = shown(changed)
    assert "integrity_check: row 7 missing from index i" in text
    assert "nfs4 is a network file system" in text
    assert "Read-only file system" in text
    assert "with changes" in text


def test_what_is_unknown_is_no_error(made: dict[str, Any]) -> None:
    changed = copy.deepcopy(made)
    changed["connection"]["threadsafe_mode"] = None
    changed["machine"]["cpu"] |= {"model": None, "physical_cores": None, "quota_cores": 0.5}
    changed["machine"]["operating_system"]["distribution"] = None
    changed["machine"]["file_system"] |= {"type": None, "mount_point": None, "options": []}
    changed["machine"]["git"] = None
    assert "limited to 0.5" in shown(changed)


def test_processes_that_share_their_syncs_are_shown(made: dict[str, Any]) -> None:
    group = {
        "members": 25, "commits": 12_400, "commits_durable": 12_388, "syncs_led": 2_000,
        "leaders_lost": 1, "poisoned": None,
    }  # fmt: skip
    text = " ".join(shown({**made, "shared_commit": group}).split())
    assert (
        "Commits that share a sync processes 25 commits 12,400, 12 not yet durable"
        " syncs for all 2,000, 6.2 commits each leaders lost 1 stopped no"
    ) in text
    ended = group | {"members": 0, "syncs_led": 0, "commits": 0, "commits_durable": 0}
    text = " ".join(shown({**made, "shared_commit": ended | {"poisoned": "it failed"}}).split())
    assert "processes none now commits 0 syncs for all 0 leaders" in text
    assert "stopped it failed" in text
    text = " ".join(shown({**made, "shared_commit": group | {"members": None}}).split())
    assert "processes unknown" in text
    assert "share a sync" not in shown({**made, "shared_commit": None})
