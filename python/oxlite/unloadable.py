"""Why the native module cannot be loaded, and what to do about it.

Pip chooses the wheel that fits, so this is seen where one was forced or copied, where an
installation was interrupted, where it lies in a zip or on a file system that executes nothing, or
in a checkout that was not built. Nothing is imported before it is needed: this module is imported
where the import of ``oxlite`` fails.
"""

import platform
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

__all__ = ["explanation"]

# Of the loader, where it finds the module and may not or cannot map it.
_REFUSALS = (
    "Permission denied",
    "Operation not permitted",
    "failed to map segment",
    "Cannot allocate memory",
    "Too many open files",
)
_AGAIN = f"{sys.executable or 'python'} -m pip install --force-reinstall --no-cache-dir oxlite"


def explanation(error: ImportError) -> ImportError | None:
    """The error with which the import of Oxlite ends, in place of the one that Python raises.

    Args:
        error: What an import within Oxlite has raised.

    Returns:
        An error that says what is the matter and what to do; nothing if this one is not about the
        native module, or says that by itself.
    """
    path = error.path or ""
    if error.name not in ("oxlite._native", "_native") and "_native" not in path:
        return None
    if (matter := _matter(error)) is None:
        return None
    return ImportError(f"Oxlite cannot be loaded: {matter}", name=error.name, path=error.path)


def _matter(error: ImportError) -> str | None:
    text = str(error)
    if isinstance(error, ModuleNotFoundError):
        return _missing()
    if text.startswith("cannot import name") or error.path is None:
        return (
            f"its Python files and its native module are of different versions ({text}). "
            f"Install it again: {_AGAIN}"
        )
    if any(refusal in text for refusal in _REFUSALS):
        return (
            f"this system refuses its native module ({text}). Look whether the file may be read, "
            "whether its file system is mounted with noexec, and at the limits of memory and files"
        )
    if "GLIBC" in text or "shared library" in text or "shared object" in text or "symbol" in text:
        return (
            f"its native module was built for another system than this one ({text}). The wheel "
            f"that fits is found by pip 21.2 or newer: {_AGAIN}"
        )
    if any(damage in text for damage in ("ELF", "file too short", "cannot read file data")):
        return f"its native module is damaged, or for another processor ({text}): {_AGAIN}"
    return None


def _missing() -> str:
    here = f"{platform.python_implementation()} {platform.python_version()}"
    if platform.python_implementation() != "CPython":
        return f"it is for CPython, and this is {here}"
    wanted = f"_native{EXTENSION_SUFFIXES[0]}"
    if not _directory().is_dir():
        return (
            f"it lies in an archive ({_directory()}), and Python loads no native module from one: "
            "unpack it (shiv, pex and PyInstaller do so by themselves)"
        )
    there = sorted(
        file.name
        for file in _directory().glob("_native.*.so")
        if file.name != wanted and file.is_file()
    )
    if there:
        return (
            f"its native module is for another Python, processor or C library: this one ({here}) "
            f"needs {wanted}, and {', '.join(there)} is there. With this Python: {_AGAIN}"
        )
    return (
        f"its native module ({wanted}) is not there. In a checkout: make build. "
        f"Elsewhere the installation is not whole: {_AGAIN}"
    )


def _directory() -> Path:
    return Path(__file__).parent
