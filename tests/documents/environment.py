"""In what environment a page is played: a new user's shell, beside what the machine has.

A page that makes a virtual environment finds a bare Python before, and installs a wheel of this
tree as if it came from the index. Any other page finds the Python of the tests, and a ``pip`` that
says whether all is there.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.documents.page import ROOT, Page

_HERE = Path(__file__).parent
# What is about this machine, and not about who uses it.
_KEPT = ("LANG", "TMPDIR", "TZ", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE")


def built_wheel(folder: Path) -> Path:
    """A wheel of this tree for the Python of the pages; ``OXLITE_WHEEL`` names one to take.

    Cargo has compiled it already where ``make build`` was run, and what is left takes seconds.

    Raises:
        RuntimeError: It cannot be built; the message is maturin's.
    """
    ready = os.environ.get("OXLITE_WHEEL")
    if ready:
        return Path(ready).resolve(strict=True)
    # By that path the crates are compiled already.
    python = os.environ.get("OXLITE_PYTHON", sys.executable)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "maturin", "build", "--release", "--locked", "--quiet"),
            *("--interpreter", python, "--out", str(folder)),
        ],
        cwd=ROOT,
        env=os.environ | {"PYO3_PYTHON": python, "VIRTUAL_ENV": sys.prefix},
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise RuntimeError(f"no wheel of this tree:\n{done.stdout}{done.stderr}")
    (wheel,) = folder.glob("*.whl")
    return wheel


def bare_python() -> str:
    """The Python with which pages make environments; ``OXLITE_PYTHON`` names another one."""
    said = os.environ.get("OXLITE_PYTHON")
    return said or getattr(sys, "_base_executable", sys.executable)


def variables(page: Page, folder: Path, wheel: Path | None = None) -> dict[str, str]:
    """The environment of a page's shell.

    Args:
        page: Whose it is.
        folder: Where a home and a directory of programs are made.
        wheel: What ``pip install oxlite`` installs, if the page makes an environment.
    """
    home, programs = folder / "home", folder / "bin"
    home.mkdir(parents=True)
    programs.mkdir()
    environment = {name: value for name, value in os.environ.items() if _is_of_the_machine(name)}
    environment |= {
        "HOME": str(home),
        "USER": os.environ.get("USER", "user"),
        "TERM": "dumb",
        "COLUMNS": "80",
        "LC_ALL": "C.UTF-8",
        # For what a page presupposes, and nothing else.
        "OXLITE_CHECKOUT": str(ROOT),
    }
    search = [str(programs), os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"]
    if page.makes_environments:
        assert wheel is not None
        for name in ("python", "python3"):
            (programs / name).symlink_to(bare_python())
        # A later release on the index is not what is played here.
        constraints = folder / "constraints.txt"
        constraints.write_text(f"oxlite=={wheel.name.split('-')[1]}\n")
        environment |= {
            "PIP_FIND_LINKS": str(wheel.parent),
            "PIP_CONSTRAINT": str(constraints),
            "PIP_REQUIRE_VIRTUALENV": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_PROGRESS_BAR": "off",
            "PIP_CACHE_DIR": os.environ.get("PIP_CACHE_DIR") or str(_cache()),
        }
        own = str(Path(sys.executable).parent)
        search[1] = os.pathsep.join(
            each for each in search[1].split(os.pathsep) if Path(each).resolve() != Path(own)
        )
    else:
        pip = programs / "pip"
        pip.write_text(f'#!/bin/sh\nexec {sys.executable} {_HERE / "installed.py"} "$@"\n')
        pip.chmod(0o755)
        search.insert(1, str(Path(sys.executable).parent))
    return environment | {"PATH": os.pathsep.join(search)}


def strangers(folder: Path, wheel: Path) -> list[Path]:
    """The native modules in a page's environments that are not those of the wheel."""
    with zipfile.ZipFile(wheel) as opened:
        (name,) = (each for each in opened.namelist() if each.startswith("oxlite/_native.c"))
        own = opened.read(name)
    found = folder.rglob("site-packages/oxlite/_native.c*")
    return [module for module in found if module.read_bytes() != own]


def lacking(page: Page) -> str | None:
    """Which program a page needs that is not here, and how it comes here."""
    search = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
    for name, cure in {"nginx": "run `make nginx`, or install it", "jq": "install it"}.items():
        words = page.typed.replace("\n", " ").split()
        if name in words and shutil.which(name, path=search) is None:
            return f"{name} is not here: {cure}"
    return None


def _is_of_the_machine(name: str) -> bool:
    return name in _KEPT or name.upper() in _KEPT or name.startswith(("PIP_INDEX", "PIP_EXTRA"))


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pip"
