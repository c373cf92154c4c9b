#!/usr/bin/env python3
"""Build the wheels of a release, and try each of them as its user would.

    scripts/wheels.py                                  all: into dist/
    scripts/wheels.py --python 3.14 --target aarch64-musl
    scripts/wheels.py --evidence PAGE.md

One wheel is built for each supported Python, processor and C library, with zig as the C compiler
and the linker, which links against an old C library whatever this machine has. Then

- `auditwheel` reads which systems it fits, by the symbols that it needs;
- it is installed by pip from the local folder alone into a new virtual environment, and
- `tests/wheels/smoke.py` is run there, on an interpreter of that processor and C library
  (`scripts/pythons.py`), those for the GNU C library on Debian 11's as well, if there is an
  interpreter for it.

What has passed is in `dist/`; what could not be tried here is in `dist/untried/`, with the reason
in the table, and is not to be published; a wheel that fails ends the run with exit code 1.
"""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from pythons import VERSIONS, MissingError, Python, make
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

ROOT = Path(__file__).resolve().parents[1]
SMOKE = ROOT / "tests" / "wheels" / "smoke.py"

# The limits that a release keeps: what is fetched by each installation, and how long that takes.
LIMIT_MEBIBYTES = 4.0
LIMIT_SECONDS = 10.0


@dataclass(frozen=True)
class Target:
    """A kind of system that wheels are built for."""

    processor: str
    libc: str
    triple: str
    """As Rust and zig name it."""
    policy: str
    """The oldest system it is to fit: https://peps.python.org/pep-0600/, pep-0656."""
    libcs: tuple[str, ...]
    """The C libraries on which it is tried."""

    @property
    def name(self) -> str:
        """As it is named on the command line."""
        return f"{self.processor}-{self.libc}"


TARGETS = (
    # 2.17, of 2012, is the oldest that Rust's own library works with.
    Target(
        "x86_64", "glibc", "x86_64-unknown-linux-gnu", "manylinux_2_17", ("glibc", "glibc-2.31")
    ),
    Target("x86_64", "musl", "x86_64-unknown-linux-musl", "musllinux_1_2", ("musl",)),
    Target("aarch64", "glibc", "aarch64-unknown-linux-gnu", "manylinux_2_17", ("glibc",)),
    Target("aarch64", "musl", "aarch64-unknown-linux-musl", "musllinux_1_2", ("musl",)),
)


class FailedError(Exception):
    """A wheel does not build, or is not as it must be."""


@dataclass
class Wheel:
    """A wheel, and what has been found about it."""

    version: str
    target: Target
    file: Path | None = None
    build_seconds: float = 0
    system: str = ""
    trials: list[str] = field(default_factory=list)
    install_seconds: list[float] = field(default_factory=list)
    untried: str = ""
    fault: str = ""

    @property
    def mebibytes(self) -> float:
        """Its size."""
        return self.file.stat().st_size / (1 << 20) if self.file else 0

    def cells(self) -> list[str]:
        """Its row of the table."""
        return [
            self.version,
            self.target.name,
            self.system,
            f"{self.mebibytes:.2f}",
            f"{self.build_seconds:.0f}",
            ", ".join(self.trials) or "none",
            ", ".join(f"{seconds:.1f}" for seconds in self.install_seconds) or "none",
            self.fault or self.untried or ("passed" if self.trials else "built"),
        ]


# What says how an ordinary build is made would be taken for the answer here: `-march=native` in one
# of them would give a wheel that ends elsewhere with an illegal instruction.
_OF_OTHER_BUILDS = re.compile(
    r"CARGO_(BUILD|ENCODED|PROFILE|TARGET)_|PYO3_|RUSTFLAGS$|RUSTC_(?!WRAPPER$)|LDFLAGS$|CPPFLAGS$|VIRTUAL_ENV$|PYTHON[A-Z]"
    r"|(HOST_|TARGET_)?(CC|CXX|AR|CFLAGS|CXXFLAGS)(_|$)"
)
HEADINGS = ["Python", "system", "policy", "MiB", "built, s", "tried on", "installed, s", "result"]


def build(wheel: Wheel, into: Path) -> None:
    """Builds one wheel.

    Raises:
        FailedError: If it does not build.
    """
    started = time.monotonic()
    target = wheel.target
    with tempfile.TemporaryDirectory(dir=into) as directory:
        _run(
            *(sys.executable, "-m", "maturin", "build", "--release", "--locked", "--zig"),
            *("--target", target.triple, "--compatibility", target.policy),
            *("--interpreter", f"python{wheel.version}", "--out", directory),
            cwd=ROOT,
            CARGO_TARGET_DIR=str(ROOT / "target" / "wheels" / target.triple),
            # maturin and cargo find the tools of this environment, zig among them.
            PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        )
        (built,) = Path(directory).iterdir()
        wheel.file = Path(shutil.move(built, into / built.name))
    wheel.build_seconds = time.monotonic() - started


def audit(wheel: Wheel) -> None:
    """Has auditwheel read which systems it fits, and looks at its size.

    Raises:
        FailedError: If it fits fewer systems than its name says, or is too large.
    """
    said = _run(sys.executable, "-m", "auditwheel", "show", wheel.file)
    fits = re.search(r'platform tag:\s+"(\w+)"', said)
    wheel.system = fits[1] if fits else "?"
    # Of musl, which has no versions of symbols, auditwheel knows the library by Alpine's name
    # alone; zig calls it as musl itself does. Its loader takes both for itself.
    if wheel.target.libc == "musl" and '{\n    "libc.so": null\n}' in said:
        wheel.system = f"{wheel.target.policy}_{wheel.target.processor}"
    if wheel.system != f"{wheel.target.policy}_{wheel.target.processor}":
        raise FailedError(f"It is to fit {wheel.target.policy}, and auditwheel says: {said}")
    if wheel.mebibytes > LIMIT_MEBIBYTES:
        raise FailedError(f"{wheel.mebibytes:.2f} MiB are more than {LIMIT_MEBIBYTES}")


def try_out(wheel: Wheel) -> None:
    """Installs it where nothing else is, and runs the smoke suite there, on each C library.

    Raises:
        FailedError: If it does not install, or something of the suite fails.
    """
    assert wheel.file is not None
    for libc in wheel.target.libcs:
        try:
            executable = make(Python(wheel.version, wheel.target.processor, libc))
        except MissingError as error:
            if not wheel.trials:
                wheel.untried = f"not tried: {str(error).partition(': ')[0]}"
            continue
        with tempfile.TemporaryDirectory() as directory:
            environment = Path(directory) / "environment"
            _run(executable, "-m", "venv", "--without-pip", environment)
            python = environment / "bin" / "python"
            started = time.monotonic()
            _run(
                *(sys.executable, "-m", "pip", "--disable-pip-version-check"),
                *_place(wheel, environment),
                *("--quiet", "--no-index", "--no-cache-dir"),
                *("--find-links", wheel.file.parent.resolve(), "oxlite"),
                cwd=Path(directory),
            )
            if wheel.target.processor == platform.machine():
                wheel.install_seconds.append(time.monotonic() - started)
            empty = Path(directory) / "empty"
            empty.mkdir()
            _run(python, "-I", SMOKE, cwd=empty)
        wheel.trials.append(libc)
        wheel.untried = ""


def _place(wheel: Wheel, environment: Path) -> list[object]:
    """Pip's arguments that have it install into an environment.

    It runs in the environment's interpreter, which says by itself what fits it. Where that is
    emulated pip would take minutes, so it is told instead.
    """
    if wheel.target.processor == platform.machine():
        return ["--python", environment / "bin" / "python", "install"]
    (packages,) = environment.glob("lib/python*/site-packages")
    return [
        *("install", "--platform", f"{wheel.target.policy}_{wheel.target.processor}"),
        *("--python-version", wheel.version, "--only-binary", ":all:", "--target", packages),
    ]


def see_to(wheel: Wheel, into: Path, *, is_tried: bool) -> None:
    """Builds a wheel, and tries it; what it comes to is noted in it."""
    try:
        build(wheel, into)
        audit(wheel)
        if is_tried:
            try_out(wheel)
    except FailedError as error:
        wheel.fault = str(error)
    except Exception as error:  # the others are built all the same, and the table has all
        wheel.fault = f"{type(error).__name__}: {error}"
    if wheel.file and (wheel.untried or wheel.fault):
        kept = into / ("faulty" if wheel.fault else "untried")
        kept.mkdir(exist_ok=True)
        wheel.file = Path(shutil.move(wheel.file, kept / wheel.file.name))


def table(wheels: list[Wheel]) -> str:
    """All wheels as a table of Markdown."""
    rows = [HEADINGS, ["---"] * len(HEADINGS), *(wheel.cells() for wheel in wheels)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def report(wheels: list[Wheel]) -> str:
    """What a release says of its wheels: the table, and what was tried in each."""
    longest = max((s for wheel in wheels for s in wheel.install_seconds), default=0)
    largest = max((wheel.mebibytes for wheel in wheels), default=0)
    suite = _run(sys.executable, SMOKE, "--list").strip().splitlines()
    return (
        "# Wheels\n\nEach wheel was installed by pip from a local folder alone into a new virtual "
        "environment, and the smoke suite was run there, on an interpreter of its processor and C "
        "library; aarch64 by QEMU, where the time of an installation says nothing. *Policy* is "
        "what auditwheel reads from the symbols that a wheel needs.\n\n"
        f"{table(wheels)}\n"
        f"The largest has {largest:.2f} MiB (limit {LIMIT_MEBIBYTES:.0f}); the longest "
        f"installation took {longest:.1f} s (goal {LIMIT_SECONDS:.0f}).\n\n"
        f"The smoke suite: {', '.join(suite)}.\n\n"
        f"Captured from `make wheels` on {platform.machine()}, {os.cpu_count()} processors, "
        f"{date.today():%-d %B %Y}.\n"
    )


def _run(*command: object, cwd: Path | None = None, **variables: str) -> str:
    """The output of a command.

    Raises:
        FailedError: If it fails, with what it has said.
    """
    ours = {name: value for name, value in os.environ.items() if not _OF_OTHER_BUILDS.match(name)}
    ended = subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        env=ours | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if ended.returncode != 0:
        said = ended.stdout.strip()[-4000:]
        raise FailedError(f"{' '.join(map(str, command))} ended with {ended.returncode}: {said}")
    return ended.stdout


def _see_to_rust(targets: list[Target]) -> None:
    """Rust's own library for the targets, where rustup keeps it."""
    if shutil.which("rustup"):
        _run("rustup", "target", "add", *(target.triple for target in targets))


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", action="append", choices=VERSIONS, help="by default all")
    names = [target.name for target in TARGETS]
    parser.add_argument("--target", action="append", choices=names, help="by default all")
    parser.add_argument("--only-build", action="store_true", help="they are tried elsewhere")
    parser.add_argument("--jobs", type=int, default=2, help="targets at a time (2)")
    parser.add_argument(
        "--into", type=Path, default=ROOT / "dist", help="where the wheels go (dist)"
    )
    parser.add_argument("--evidence", type=Path, help="write the table to this page as well")
    said = parser.parse_args()
    targets = [target for target in TARGETS if target.name in (said.target or names)]
    _see_to_rust(targets)
    said.into.mkdir(parents=True, exist_ok=True)
    for earlier in said.into.rglob("oxlite-*.whl"):
        earlier.unlink()
    wheels = [Wheel(version, target) for target in targets for version in said.python or VERSIONS]
    console = Console()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("Wheels", total=len(wheels))

        def one_target(target: Target) -> None:
            for wheel in wheels:
                if wheel.target is target:
                    see_to(wheel, said.into, is_tried=not said.only_build)
                    passed = f"passed on {', '.join(wheel.trials)}" if wheel.trials else "built"
                    outcome = wheel.fault or wheel.untried or passed
                    progress.console.print(
                        f"{wheel.version} {target.name}: {outcome}", markup=False
                    )
                    progress.advance(bar)

        with ThreadPoolExecutor(said.jobs) as threads:
            list(threads.map(one_target, targets))
    console.print(table(wheels), markup=False, soft_wrap=True)
    if said.evidence:
        said.evidence.write_text(report(wheels))
    passed = [wheel for wheel in wheels if wheel.trials and not wheel.fault]
    faulty = [wheel for wheel in wheels if wheel.fault]
    untried = [wheel for wheel in wheels if wheel.untried and not wheel.fault]
    console.print(
        f"In {said.into}: {len(wheels) - len(faulty) - len(untried)} wheels, {len(passed)} tried"
    )
    if untried:
        console.print(
            f"Not to be published: what is in {said.into / 'untried'}, which nothing here runs"
        )
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
