"""A database for each git branch."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.operations.databases import filled, numbers, python

from oxlite import branch
from oxlite.cli import main
from oxlite.operations import OperationsError
from oxlite.operations.branches import branch_databases, prune_branches

Git = Callable[..., str]


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """A repository with a commit on main."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)

    def run(*words: str, where: Path = tmp_path) -> str:
        command = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *words]
        return subprocess.run(
            command, cwd=where, check=True, capture_output=True, text=True
        ).stdout.strip()

    run("init", "-q", "-b", "main")
    run("commit", "-q", "--allow-empty", "-m", "first")
    return run


@pytest.fixture
def template(tmp_path: Path) -> Path:
    filled(tmp_path / "app-main.db")
    return tmp_path / "app-{branch}.db"


def path(template: Path, **options: str) -> Path:
    return Path(branch.database(template, debug=True, **options))  # type: ignore[arg-type]


def test_a_branch_has_a_copy_of_its_parents(git: Git, template: Path, tmp_path: Path) -> None:
    assert path(template) == tmp_path / "app-main.db"
    git("checkout", "-q", "-b", "feature")
    mine = path(template)
    assert mine == tmp_path / "app-feature.db"
    assert len(numbers(mine)) == 1000
    python("import sys, oxlite; oxlite.Database(sys.argv[1]).execute('DELETE FROM t')", mine)
    assert path(template) == mine
    assert numbers(mine) == []
    assert len(numbers(tmp_path / "app-main.db")) == 1000
    git("checkout", "-q", "-b", "second")
    assert numbers(path(template, parent="feature")) == []
    found = branch_databases(template)
    assert [(one.branch, one.parent) for one in found] == [
        ("feature", "main"),
        ("second", "feature"),
    ]


def test_names_lead_to_one_file_each_in_one_directory(
    git: Git, template: Path, tmp_path: Path
) -> None:
    names = [
        "feature/login", "feature-login", "Feature-login", "FEATURE/LOGIN", "ä", "ö", "x" * 200,
        "x" * 201, "-", "foo-1cbec737", "Foo", "a.lock", "..", "../../etc/passwd",
        "a\0b", "%s{branch}", "con", "'; --",
    ]  # fmt: skip
    found = set()
    for name in names:
        (tmp_path / ".git" / "HEAD").write_text(f"ref: refs/heads/{name}\n")
        mine = path(template)
        assert mine.parent == tmp_path
        assert len(mine.name) < 100
        found.add(mine.name.lower())
    assert len(found) == len(names)
    assert {one.branch for one in branch_databases(template)} == set(names)


def test_a_detached_head_has_one_too(git: Git, template: Path) -> None:
    commit = git("rev-parse", "HEAD")
    git("checkout", "-q", "--detach")
    assert path(template).name == f"app-detached-{commit[:12]}.db"


def test_a_worktree_has_its_own_branch(git: Git, template: Path, tmp_path: Path) -> None:
    tree = tmp_path / "trees" / "second"
    git("worktree", "add", "-q", "-b", "second", str(tree))
    assert branch.current_branch(tree) == "second"
    assert path(template, repository=str(tree)).name == "app-second.db"
    (tree / "deep").mkdir()
    assert path(tree / "deep" / "app-{branch}.db") == tree / "deep" / "app-second.db"


def test_without_a_parent_it_begins_empty(git: Git, tmp_path: Path) -> None:
    git("checkout", "-q", "-b", "feature")
    template = tmp_path / "other-{branch}.db"
    assert path(template) == tmp_path / "other-feature.db"
    assert not path(template).exists()
    with pytest.raises(OperationsError, match="the branch 'gone' has no database"):
        path(template, parent="gone")


def test_what_cannot_be_is_refused(git: Git, template: Path, tmp_path: Path) -> None:
    with pytest.raises(OperationsError, match="are for development"):
        branch.database(template, debug=False)
    for wrong in ("app.db", "app-{branch}", "{branch}-{branch}.db"):
        with pytest.raises(OperationsError, match="has no place for the name of the branch"):
            path(tmp_path / wrong)
    (tmp_path / ".git" / "HEAD").write_text("nothing")
    with pytest.raises(OperationsError, match="neither a branch nor a commit"):
        path(template)
    with pytest.raises(OperationsError, match="is in no working tree of git"):
        branch.current_branch("/")


def test_all_who_ask_at_once_have_the_same(git: Git, template: Path) -> None:
    git("checkout", "-q", "-b", "feature")
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(path(template))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert len(found) == 8
    assert len(numbers(found[0])) == 1000
    assert [one.name for one in template.parent.iterdir() if one.name.endswith(".partial")] == []


def test_those_of_merged_and_deleted_branches_are_pruned(
    git: Git, template: Path, tmp_path: Path
) -> None:
    for name in ("merged", "open/one", "gone", "used"):
        git("checkout", "-q", "-b", name, "main")
        git("commit", "-q", "--allow-empty", "-m", name)
        path(template)
    git("checkout", "-q", "main")
    for name in ("merged", "used"):
        git("merge", "-q", "--no-ff", "-m", "merge", name)
    git("branch", "-q", "-D", "gone")
    (tmp_path / "app-stranger.db").touch()
    # Somebody's records that lead elsewhere.
    for name in ("app-evil.db", "app-stranger.db"):
        (tmp_path / f"{name}.branch.json").write_text(
            json.dumps(
                {"branch": "../x", "parent": None, "created_at": "2026-01-01T00:00:00+00:00"}
            )
        )
    used = tmp_path / "app-used.db"
    opens = "import sys; file = open(sys.argv[1]); print(1, flush=True); input()"
    holder = subprocess.Popen(
        [sys.executable, "-c", opens, used],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    assert [one.branch for one in prune_branches(template)] == ["gone", "merged"]
    holder.communicate(b"\n")
    assert [one.branch for one in prune_branches(template)] == ["used"]
    assert [one.branch for one in branch_databases(template)] == ["open/one"]
    assert (tmp_path / "app-stranger.db").exists()
    assert (tmp_path / "app-main.db").exists()
    with pytest.raises(OperationsError, match="there is no branch 'gone': say which"):
        prune_branches(template, default="gone")


def test_what_is_left_of_a_deleted_one_is_not_put_into_the_next(git: Git, template: Path) -> None:
    git("checkout", "-q", "-b", "feature")
    mine = path(template)
    python(
        """
import os, sys, oxlite
oxlite.Database(sys.argv[1]).execute("DELETE FROM t")
os._exit(0)
""",
        mine,
    )
    assert Path(f"{mine}-wal").stat().st_size
    mine.unlink()
    assert len(numbers(path(template))) == 1000


def test_another_worktrees_branch_and_gits_variables_change_nothing(
    git: Git, template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / "trees" / "second"
    git("worktree", "add", "-q", "-b", "second", str(tree))
    git("commit", "-q", "--allow-empty", "-m", "x", where=tree)
    git("merge", "-q", "--no-ff", "-m", "merge", "second")
    made = path(template, repository=str(tree))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nothing"))
    assert prune_branches(template) == []
    assert made.exists()


def test_the_commands(
    git: Git, template: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(template.parent)
    git("checkout", "-q", "-b", "a/b")
    name = "app-{branch}.db"
    assert main(["branch", "path", name]) == 0
    made = Path(capsys.readouterr().out.strip())
    assert len(numbers(made)) == 1000
    assert main(["branch", "list", name]) == 0
    assert "a/b" in capsys.readouterr().out
    assert main(["branch", "list", name, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["databases"][0]["path"] == str(made)
    git("checkout", "-q", "main")
    assert main(["branch", "prune", name]) == 0
    assert "1 left" in capsys.readouterr().err  # nothing was done there yet
    git("checkout", "-q", "a/b")
    git("commit", "-q", "--allow-empty", "-m", "some work")
    git("checkout", "-q", "main")
    git("merge", "-q", "--no-ff", "-m", "merge", "a/b")
    assert main(["branch", "prune", name]) == 0
    assert f"deleted {made}" in capsys.readouterr().out
    assert main(["branch", "path", "app.db"]) == 2
    capsys.readouterr()
    assert main(["branch", "list", "none-{branch}.db"]) == 0
    assert capsys.readouterr() == ("", "none was made of none-{branch}.db\n")


def test_of_a_long_template_the_branchs_name_is_cut(git: Git, tmp_path: Path) -> None:
    long = "数" * 70  # 210 bytes
    filled(tmp_path / f"{long}-main.db")
    template = tmp_path / f"{long}-{{branch}}.db"
    found = set()
    for name in ("feature/with-a-long-name-one", "feature/with-a-long-name-two", "short"):
        git("checkout", "-q", "-b", name)
        mine = path(template)
        assert len(numbers(mine)) == 1000
        found.add(mine)
    assert tmp_path / f"{long}-short.db" in found
    assert len(found) == 3
    assert len(branch_databases(template)) == 3
    with pytest.raises(OperationsError, match="is too long a name: it leaves 3 bytes"):
        path(tmp_path / ("数" * 79 + "{branch}.db"))
