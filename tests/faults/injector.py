"""The library that makes calls of the extension module fail, seen from Python."""

import ctypes
import os
import platform
import subprocess
import sys
from pathlib import Path

from oxlite import _native

ROOT = Path(__file__).resolve().parents[2]
_TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "faults"
LIBRARY = _TARGET / "release" / "liboxlite_fault_interposer.so"

SUPPORTED = sys.platform == "linux" and platform.machine() == "x86_64"


def build() -> None:
    """Builds the library."""
    manifest = Path(__file__).with_name("interposer") / "Cargo.toml"
    command = ["cargo", "build", "--quiet", "--release", "--locked"]
    command += ["--manifest-path", str(manifest), "--target-dir", str(_TARGET)]
    # What is preloaded into Python, a sanitizer, is not for the compiler.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    subprocess.run(command, check=True, cwd=ROOT, env=environment)


class Injector:
    """Faults in this process's extension module; there may be one in a process."""

    def __init__(self) -> None:
        self._library = library = ctypes.CDLL(str(LIBRARY))
        library.faults_arm.argtypes = [
            ctypes.c_char_p,
            ctypes.c_uint64,
            ctypes.c_bool,
            ctypes.c_int,
        ]
        library.faults_struck.restype = library.faults_disarm.restype = ctypes.c_uint64
        library.faults_count.argtypes = [ctypes.c_char_p]
        library.faults_count.restype = ctypes.c_int64
        library.faults_live_sqlite.restype = ctypes.c_int64
        library.faults_live_rust.restype = ctypes.c_int64
        slots = library.faults_install(os.fsencode(_native.__file__))
        if slots < 0:
            raise RuntimeError("SQLite's allocations cannot be told from Rust's in this build")
        self.slots: int = slots

    def arm(self, call: str, first: int, is_persistent: bool, effect: int) -> None:
        """Has the call with this number fail, and those after it if that is wanted."""
        if self._library.faults_arm(call.encode(), first, is_persistent, effect) != 0:
            raise ValueError(call)

    def disarm(self) -> int:
        """Has nothing fail any more; how many calls have failed."""
        return int(self._library.faults_disarm())

    def struck(self) -> int:
        """How many calls have failed so far."""
        return int(self._library.faults_struck())

    def count(self, call: str) -> int:
        """How many calls of this kind were made since arming."""
        return int(self._library.faults_count(call.encode()))

    def live_blocks(self) -> tuple[int, int]:
        """The blocks of memory that SQLite and the Rust code have not given back."""
        library = self._library
        return library.faults_live_sqlite(), library.faults_live_rust()
