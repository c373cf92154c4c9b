"""Writes ``THIRD-PARTY.txt``: what wheels carry of others' work; and a bill of it for SQLite.

    .venv/bin/python scripts/third_party.py

The crates are those that Cargo links into the extension module on a platform that wheels are built
for, at the versions of ``Cargo.lock``; what only helps to build (build scripts, procedural macros)
is in no wheel and not listed. Each is listed with its licence and the text of it, out of the
crate's own source. SQLite is in one of the crates, which says its version.

maturin lists the crates in a bill of materials of its own. It does not know of the SQLite inside
one of them, and that is what a scanner looks for: so there is a second one.

Tests see that this was run since a version has changed.
"""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
NOTICE: Final = ROOT / "THIRD-PARTY.txt"
BILL: Final = ROOT / "crates" / "oxlite-python" / "sqlite.cdx.json"

PLATFORMS: Final = (
    "aarch64-unknown-linux-gnu",
    "aarch64-unknown-linux-musl",
    "x86_64-unknown-linux-gnu",
    "x86_64-unknown-linux-musl",
)
"""What wheels are built for. A crate is listed if one of them has it."""

CHOSEN: Final = {"MIT": ("LICENSE-MIT", "LICENSE"), "Zlib": ("LICENSE",)}
"""The licences that we take crates under, in this order, and which files have their text."""

PUBLIC_DOMAIN: Final = """\
SQLite is in the public domain. Its authors have dedicated all of its code to it, for use by anybody
and for any purpose (https://sqlite.org/copyright.html). Its source says instead of a licence:

    The author disclaims copyright to this source code.  In place of
    a legal notice, here is a blessing:

       May you do good and not evil.
       May you find forgiveness for yourself and forgive others.
       May you share freely, never taking more than you give."""

STANDARD_LIBRARY: Final = """\
What is used of Rust's standard library is linked in as well, at the version of the compiler that
built the wheel. It is the Rust project's, under MIT or Apache-2.0, and names the authors and
licences of its parts in the file share/doc/rust/COPYRIGHT-library.html of each toolchain
(https://www.rust-lang.org/policies/licenses). We take it under MIT, whose text is below."""

LINKER: Final = """\
Wheels of a release are linked by zig (https://ziglang.org). It puts LLVM's libunwind into them,
where a build by gcc uses the libgcc of the system. That is LLVM's, under Apache-2.0 with the LLVM
exception, which asks for no notice in what was compiled (https://llvm.org/LICENSE.txt). What is
used of zig's own run-time functions is under MIT, whose text is below: Copyright (c) Zig
contributors."""


@dataclass(frozen=True)
class Crate:
    """A crate that is linked in."""

    name: str
    version: str
    licence: str
    repository: str
    folder: Path

    @property
    def chosen(self) -> str:
        """The licence that we take it under."""
        offered = re.split(r" OR |/", self.licence)
        for licence in CHOSEN:
            if licence in offered:
                return licence
        sys.exit(
            f"{self.name} {self.version} is under {self.licence!r}, and none of"
            f" {', '.join(CHOSEN)} is offered: see deny.toml and CHOSEN in scripts/third_party.py"
        )

    @property
    def text(self) -> str:
        """The text of that licence, as the crate has it."""
        for name in CHOSEN[self.chosen]:
            file = self.folder / name
            if file.is_file():
                return "\n".join(line.rstrip() for line in file.read_text().strip().splitlines())
        sys.exit(f"{self.name} {self.version} has no file with the text of {self.chosen}")


def _cargo(*arguments: str) -> str:
    command = ["cargo", *arguments, "--locked"]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def _linked(platform: str) -> set[tuple[str, str]]:
    """The names and versions of what is in the module."""
    tree = _cargo(
        *("tree", "--package=oxlite-python", f"--target={platform}"),
        *("--edges=normal,no-proc-macro", "--prefix=none", "--format={p}"),
    )
    return {(name, version) for name, version in re.findall(r"^(\S+) v(\S+)", tree, re.MULTILINE)}


def crates() -> list[Crate]:
    """Others' crates in the module, by name and version."""
    linked = set().union(*map(_linked, PLATFORMS))
    metadata: dict[str, Any] = json.loads(_cargo("metadata", "--format-version=1"))
    found = [
        Crate(
            package["name"],
            package["version"],
            package["license"],
            package["repository"] or "",
            Path(package["manifest_path"]).parent,
        )
        for package in metadata["packages"]
        if package["source"] is not None and (package["name"], package["version"]) in linked
    ]
    return sorted(found, key=lambda crate: (crate.name, crate.version))


def sqlite_version(linked: list[Crate]) -> tuple[str, str]:
    """The version of the SQLite in the module, and the name of its check-in."""
    (crate,) = [crate for crate in linked if crate.name == "libsqlite3-sys"]
    header = (crate.folder / "sqlite3" / "sqlite3.h").read_text()
    version = re.search(r'#define SQLITE_VERSION +"(.+)"', header)
    source = re.search(r'#define SQLITE_SOURCE_ID +"(.+)"', header)
    assert version is not None
    assert source is not None
    return version[1], source[1]


def notice(linked: list[Crate]) -> str:
    """``THIRD-PARTY.txt``."""
    version, source = sqlite_version(linked)
    rows = [(crate.name, crate.version, crate.licence, crate.repository) for crate in linked]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    table = "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
        for row in rows
    )
    texts: dict[str, list[Crate]] = {}
    for crate in linked:
        texts.setdefault(crate.text, []).append(crate)
    licences = "\n\n\n".join(
        "\n".join(
            [*(f"== {crate.name} {crate.version} ({crate.chosen})" for crate in of), "", text]
        )
        for text, of in texts.items()
    )
    return f"""\
The work of others in Oxlite's wheels
=====================================

Oxlite itself is under the MIT licence (LICENSE). Its extension module contains what is listed here,
by scripts/third_party.py out of Cargo.lock. The Python code of the package is Oxlite's own.


SQLite {version}
{"-" * len(f"SQLite {version}")}

Check-in {source}

{PUBLIC_DOMAIN}


Rust's standard library
-----------------------

{STANDARD_LIBRARY}


What the linker adds
--------------------

{LINKER}


Crates
------

{table}

Where a crate is offered under several licences, we take it under MIT.


{licences}
"""


def bill(linked: list[Crate]) -> str:
    """A bill of materials (CycloneDX) that names SQLite, by the names that scanners know."""
    version, source = sqlite_version(linked)
    content = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "components": [
            {
                "type": "library",
                "bom-ref": f"pkg:generic/sqlite@{version}",
                "name": "sqlite",
                "version": version,
                "description": "SQLite, compiled into oxlite._native",
                "licenses": [{"license": {"id": "blessing"}}],
                "purl": f"pkg:generic/sqlite@{version}",
                "cpe": f"cpe:2.3:a:sqlite:sqlite:{version}:*:*:*:*:*:*:*",
                "properties": [{"name": "oxlite:sqlite-source-id", "value": source}],
                "externalReferences": [{"type": "website", "url": "https://sqlite.org/"}],
            }
        ],
    }
    return json.dumps(content, indent=2) + "\n"


def main() -> None:
    """Writes both."""
    linked = crates()
    NOTICE.write_text(notice(linked))
    BILL.write_text(bill(linked))


if __name__ == "__main__":
    main()
