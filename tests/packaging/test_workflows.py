"""The workflows call what there is, for all that is supported, and trust nobody without need."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CALLERS = [ROOT / ".pre-commit-config.yaml", ROOT / ".github" / "pull_request_template.md"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.fixture(scope="module")
def pythons() -> list[str]:
    """The supported versions of Python, as the package's metadata has them."""
    script = runpy.run_path(str(ROOT / "scripts" / "release.py"))
    found: list[str] = script["pythons"]()
    return found


@pytest.mark.parametrize("caller", [*WORKFLOWS, *CALLERS], ids=lambda file: file.stem)
def test_what_is_called_is_there(caller: Path) -> None:
    text = caller.read_text()
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    called = set(re.findall(r"\bmake ([a-z-]+)", text))
    files = set(re.findall(r"\b((?:scripts|tests|docs)/[\w/.-]+\.\w+)", text))
    assert called | files
    assert called - targets == set()
    assert {name for name in files if not (ROOT / name).is_file()} == set()


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda file: file.stem)
def test_an_action_of_others_is_named_by_its_commit(workflow: Path) -> None:
    used = re.findall(r"uses: (\S+)(.*)$", workflow.read_text(), flags=re.MULTILINE)
    wrong = [
        name
        for name, comment in used
        if not name.startswith("$/")
        and not (re.search(r"@[0-9a-f]{40}$", name) and re.match(r" # v\d+\.\d+\.\d+$", comment))
    ]
    assert used
    assert wrong == []


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda file: file.stem)
def test_no_workflow_may_do_more_than_it_needs(workflow: Path) -> None:
    """Nothing by default, and a checkout leaves no credentials for what runs after it."""
    text = workflow.read_text()
    assert "\npermissions: {}\n" in text
    assert text.count("persist-credentials: false") == text.count("uses: actions/checkout@")
    writes = set(re.findall(r"^ +([a-z-]+): write", text, flags=re.MULTILINE))
    assert writes == {
        "publish": {"id-token", "attestations", "contents"},
        "site": {"pages", "id-token"},
    }.get(workflow.stem, set())


def test_every_supported_python_is_tested_and_tried(pythons: list[str]) -> None:
    tested = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    listed = ", ".join(f'"{python}"' for python in pythons)
    assert f"python: [{listed}]" in tested
    tried = (ROOT / ".github" / "workflows" / "wheels.yml").read_text()
    tags = [f"cp{python.replace('.', '')}" for python in pythons]
    assert re.findall(r"/opt/python/(cp\d+)-cp\d+/bin/python", tried) == tags


def test_zizmor_finds_nothing() -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("zizmor"), "--offline", "--strict-collection", ".github"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
