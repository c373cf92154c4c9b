"""What cannot be built here is refused before anything is compiled, with what to do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PRETEND = """
import platform, sys
sys.path.insert(0, {backend!r})
import oxlite_build
{pretended}
oxlite_build.get_requires_for_build_wheel()
print("goes on")
"""


def build(tmp_path: Path, pretended: str = "", rustc: str | None = None, cc: bool = True) -> str:
    """What the first call of a frontend comes to, with the tools that are said to be there."""
    tools = tmp_path / "tools"
    tools.mkdir()
    if rustc:
        (tools / "rustc").write_text(f"#!/bin/sh\necho 'rustc {rustc} (an old one)'\n")
    if cc:
        (tools / "cc").write_text("#!/bin/sh\n")
    (tools / "cargo").write_text("#!/bin/sh\n")
    for tool in tools.iterdir():
        tool.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name not in ("CC", "RUSTC")}
    program = PRETEND.format(backend=str(ROOT / "build_backend"), pretended=pretended)
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env=environment | {"PATH": str(tools)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return ended.stdout + ended.stderr


def test_a_machine_that_has_all_goes_on(tmp_path: Path) -> None:
    assert build(tmp_path, rustc="1.99.0") == "goes on\n"


def test_without_rust_maturin_sees_to_it(tmp_path: Path) -> None:
    assert build(tmp_path) == "goes on\n"


@pytest.mark.parametrize(
    ("pretended", "said"),
    [
        (
            "platform.python_implementation = lambda: 'PyPy'",
            "Oxlite is for CPython, and this is PyPy",
        ),
        ("sys.version_info = (3, 99, 0)", "knows CPython up to 3.15, and this is 3.99"),
        ("sys.maxsize = 2**31 - 1", "needs a processor of 64 bits"),
    ],
)
def test_another_python(tmp_path: Path, pretended: str, said: str) -> None:
    output = build(tmp_path, pretended, rustc="1.99.0")
    assert "nothing was compiled" in output
    assert said in output
    assert "goes on" not in output


def test_an_old_rust(tmp_path: Path) -> None:
    output = build(tmp_path, rustc="1.63.0")
    assert "or newer is needed, and this is rustc 1.63.0" in output
    assert "rustup update" in output


@pytest.mark.parametrize("variable", ["", "import os; os.environ['CC'] = ''"])
def test_no_c_compiler(tmp_path: Path, variable: str) -> None:
    output = build(tmp_path, variable, rustc="1.99.0", cc=False)
    assert "a C compiler is needed" in output
    assert "apt-get install gcc" in output
    assert "--upgrade pip" in output
