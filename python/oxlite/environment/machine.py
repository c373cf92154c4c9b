"""The machine and the Python under a measurement.

Invariants: neither the host's name nor a user's is reported; what cannot be
found out is None, never an error. Only a missing psutil is one.
"""

import datetime
import os
import platform
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from oxlite.environment.errors import ReportError
from oxlite.environment.filesystem import file_system

__all__ = ["git_revision", "machine_report"]

_GIT_TIMEOUT_SECONDS = 5.0


def machine_report(directory: Path | str) -> dict[str, Any]:
    """Everything under the database that a measurement depends on.

    Args:
        directory: where the database is (it decides the file system).

    Returns:
        A dictionary that JSON can hold::

            date                ISO 8601, UTC, to the second
            cpu                 model, architecture, logical_cores, physical_cores,
                                usable_cores (this process's affinity),
                                quota_cores (a container's limit, or None)
            memory_total_bytes
            operating_system    name, kernel, distribution
            file_system         type, mount_point, options, network, volatile
            python              version, implementation, compiler, build,
                                free_threaded_build, gil_enabled
            git                 revision and dirty, of the source tree this
                                package runs from; None outside of one

    Raises:
        ReportError: psutil is not installed.
    """
    try:
        import psutil
    except ModuleNotFoundError as error:
        raise ReportError.missing("psutil") from error
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "cpu": {
            "model": _cpu_model(),
            "architecture": platform.machine(),
            "logical_cores": psutil.cpu_count(logical=True),
            "physical_cores": psutil.cpu_count(logical=False),
            "usable_cores": _usable_cores(),
            "quota_cores": _quota_cores(),
        },
        "memory_total_bytes": psutil.virtual_memory().total,
        "operating_system": {
            "name": platform.system(),
            "kernel": platform.release(),
            "distribution": _distribution(),
        },
        "file_system": file_system(Path(directory)),
        "python": _python(),
        "git": git_revision(Path(__file__).resolve().parents[3]),
    }


def git_revision(checkout: Path) -> dict[str, Any] | None:
    """The revision of a checkout of Oxlite.

    An installed package often lies inside the checkout of somebody's
    application, whose revision would mean nothing here. So only a tree that
    holds Oxlite's own sources counts.

    Args:
        checkout: the directory that would be the root of the source tree.

    Returns:
        ``revision`` (the full hash) and ``dirty`` (whether files differ from
        it), or None if this is no such tree, or git does not answer.
    """
    if not (checkout / "crates" / "oxlite-sqlite").is_dir() or not (checkout / ".git").exists():
        return None
    revision = _git(checkout, "rev-parse", "--verify", "HEAD")
    changes = _git(checkout, "status", "--porcelain")
    if revision is None or changes is None:
        return None
    return {"revision": revision, "dirty": bool(changes)}


def _git(checkout: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(checkout), *arguments],
            capture_output=True,
            text=True,
            timeout=_GIT_TIMEOUT_SECONDS,
            check=True,
            # A report must not take the lock that a working git needs.
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _cpu_model() -> str | None:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() in {"model name", "Model"} and value.strip():
                return value.strip()
    except OSError:
        pass
    return platform.processor() or None


def _usable_cores() -> int | None:
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _quota_cores() -> float | None:
    """A container's processor limit, in cores (cgroup v2)."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return None if quota == "max" else round(int(quota) / int(period), 2)
    except (OSError, ValueError):
        return None


def _distribution() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


def _python() -> dict[str, Any]:
    is_gil_enabled = getattr(sys, "_is_gil_enabled", None)
    return {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "compiler": platform.python_compiler(),
        "build": " ".join(platform.python_build()),
        "free_threaded_build": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "gil_enabled": is_gil_enabled() if is_gil_enabled else True,
    }
