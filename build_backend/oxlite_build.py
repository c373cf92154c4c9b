"""What pip calls to build Oxlite from its sources (PEP 517): maturin, after a look at this machine.

Compiling takes minutes, and ends in the midst of a compiler's output where something is missing.
So what can be seen beforehand is said beforehand, with what to do: the Python, the processor,
Rust, a C compiler. Whoever installs a wheel never comes here.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import maturin
from maturin import (
    build_sdist,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "obstacles",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

# The newest that the Python binding (PyO3) knows.
_NEWEST_PYTHON = (3, 15)


def obstacles() -> list[str]:
    """Why Oxlite cannot be built here, each with what to do; none if it can."""
    found = []
    implementation, version = platform.python_implementation(), sys.version_info[:2]
    if implementation != "CPython":
        found.append(f"Oxlite is for CPython, and this is {implementation}: use CPython")
    elif version > _NEWEST_PYTHON:
        newest, this = ".".join(map(str, _NEWEST_PYTHON)), ".".join(map(str, version))
        found.append(
            f"this version of Oxlite knows CPython up to {newest}, and this is {this}: use a newer "
            "Oxlite, or an older Python"
        )
    if sys.maxsize < 2**32:
        found.append(
            f"Oxlite needs a processor of 64 bits; this Python is of 32 ({platform.machine()})"
        )
    found += _about_rust()
    compiler = (os.environ.get("CC", "").split() or ["cc"])[0]
    if os.name == "posix" and shutil.which(compiler) is None:
        found.append(
            f"a C compiler is needed, to compile SQLite, and there is no '{compiler}': "
            "apt-get install gcc, apk add gcc musl-dev, dnf install gcc, or xcode-select --install"
        )
    return found


def _about_rust() -> list[str]:
    manifest = (Path(__file__).resolve().parents[1] / "Cargo.toml").read_text()
    (wanted,) = re.findall(r'^rust-version = "([\d.]+)"', manifest, flags=re.MULTILINE)
    rustc = os.environ.get("RUSTC", "rustc")
    try:
        said = subprocess.run(
            [rustc, "--version"], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return []  # maturin fetches one for this build
    found = re.search(r"\d+\.\d+\.\d+", said)
    if found is None or _numbers(found[0]) < _numbers(wanted):
        return [
            f"Rust {wanted} or newer is needed, and this is {said.strip()}: rustup update stable"
        ]
    return []


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _look() -> None:
    if found := obstacles():
        wheels = (
            "There are wheels, which need no compiler, for CPython 3.11 to 3.15 on Linux, x86_64 "
            "and aarch64. An old pip does not find them (before 20.3, with musl before 21.2): "
            "python -m pip install --upgrade pip"
        )
        lines = "".join(f"\n  - {line}" for line in found)
        raise SystemExit(f"Oxlite cannot be built here, and nothing was compiled:{lines}\n{wheels}")


def get_requires_for_build_wheel(config_settings: dict[str, object] | None = None) -> list[str]:
    """What maturin needs beside itself; asked first, so the look at this machine is taken here."""
    _look()
    return maturin.get_requires_for_build_wheel(config_settings)


def get_requires_for_build_editable(config_settings: dict[str, object] | None = None) -> list[str]:
    """The same for an editable installation."""
    _look()
    return maturin.get_requires_for_build_editable(config_settings)


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, object] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """A wheel for this interpreter, as PEP 517 says."""
    _look()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str,
    config_settings: dict[str, object] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """A wheel that points into the sources, as PEP 660 says."""
    _look()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)
