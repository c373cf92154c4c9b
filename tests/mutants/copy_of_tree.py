"""A copy of the project with all mutants in it, built once.

Invariants:
- The project itself is not changed; the copy lies in ``target/mutants``.
- Those in Rust are all there, behind their numbers; of those in Python one at a time.
- What is run in the copy imports the package of the copy, native module and all.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.mutants.place import CRATE, SWITCH, Place, with_mistake, with_switches

ROOT = Path(__file__).parents[2]
_CRATES_WITH_TESTS = ("oxlite-sqlite", "oxlite-core", "oxlite-functions")

# The mutants are to be compiled soon, not to run fast.
_PROFILE = {
    "CARGO_PROFILE_RELEASE_LTO": "off",
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
    "CARGO_PROFILE_RELEASE_OPT_LEVEL": "1",
    "CARGO_PROFILE_RELEASE_DEBUG": "false",
}


class CopyOfTree:
    """The copy.

    Attributes:
        folder: Where it lies.
        rust_tests: The programs with the crates' tests, by crate and ``lib`` or ``tests/NAME``.
    """

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root
        self._target = root / "target" / "mutants"
        self.folder = self._target / "tree"
        self.rust_tests: dict[tuple[str, str], Path] = {}

    def environment(self, number: int) -> dict[str, str]:
        """What the tests are run with, and with which mutant; 0 is none."""
        return {
            **os.environ,
            "OXLITE_MUTANT": str(number),
            "PYTHONPATH": str(self.folder / "python"),
            # What has changed within a second, to the same size, would be taken from there.
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
        }

    def fill(self, places: list[Place]) -> None:
        """Have the files of the project in it, those in Rust with their mutants."""
        listed = subprocess.check_output(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=self._root,
            text=True,
        )
        names = {name for name in listed.split("\0") if name and (self._root / name).is_file()}
        in_file: defaultdict[Path, list[Place]] = defaultdict(list)
        for place in places:
            if place.is_rust:
                in_file[place.file].append(place)
        for name in names:
            content = (self._root / name).read_bytes()
            if name.startswith("crates/") and name.endswith(".rs"):
                text = with_switches(content.decode(), in_file[Path(name)])
                if Path(name) == Path(f"crates/{CRATE}/src/lib.rs"):
                    text += SWITCH
                content = text.encode()
            self._write(self.folder / name, content, (self._root / name).stat().st_mode)
        for folder in ("crates", "python", "tests"):
            for file in (self.folder / folder).rglob("*"):
                name = file.relative_to(self.folder).as_posix()
                is_stale = file.is_file() and file.suffix != ".so" and name not in names
                if is_stale or file.name == "__pycache__":
                    shutil.rmtree(file) if file.is_dir() else file.unlink()

    def _write(self, file: Path, content: bytes, mode: int) -> None:
        if not file.exists() or file.read_bytes() != content:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        file.chmod(mode)

    def build(self) -> None:
        """Compile the native module and the tests of the crates.

        Raises:
            subprocess.CalledProcessError: It does not compile; the compiler has said why.
        """
        environment = {
            **os.environ,
            **_PROFILE,
            "CARGO_TARGET_DIR": str(self._target / "build"),
            "PYO3_PYTHON": sys.executable,
        }
        # Warnings about the forms of the switches are nobody's business.
        environment["RUSTFLAGS"] = f"{os.environ.get('RUSTFLAGS', '')} --cap-lints=allow".strip()
        subprocess.check_call(
            ["cargo", "build", "--quiet", "--release", "--package", "oxlite-python"],
            cwd=self.folder,
            env=environment,
        )
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        native = self.folder / "python" / "oxlite" / f"_native{suffix}"
        shutil.copy(self._target / "build" / "release" / "lib_native.so", native)
        packages = [word for name in _CRATES_WITH_TESTS for word in ("--package", name)]
        told = subprocess.check_output(
            ["cargo", "test", "--quiet", "--no-run", "--message-format=json", *packages],
            cwd=self.folder,
            env=environment,
            text=True,
        )
        for line in told.splitlines():
            message = json.loads(line)
            if message.get("executable") and message.get("profile", {}).get("test"):
                crate = Path(message["manifest_path"]).parent.name
                target = message["target"]
                kind = "lib" if "lib" in target["kind"] else f"tests/{target['name']}"
                self.rust_tests[crate, kind] = Path(message["executable"])

    @contextmanager
    def mistaken(self, place: Place | None) -> Iterator[int]:
        """Have one mutant in it: the number to be switched on."""
        if place is None:
            yield 0
            return
        if place.is_rust:
            yield place.mutant.number
            return
        file = self.folder / place.file
        text = file.read_text()
        file.write_text(with_mistake(text, place))
        try:
            yield 0
        finally:
            file.write_text(text)
