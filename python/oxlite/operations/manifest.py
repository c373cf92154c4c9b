"""What is known of a backup, in a file beside it: ``NAME.json``.

Invariants:
- It is there before the backup has its name. So what has a name and a manifest is whole, and was
  verified; what has no manifest is none of ours. One alone is what somebody has left who was killed
  in between.
- The order of backups is that of their sequence, which no clock changes.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

from oxlite.operations.errors import OperationsError
from oxlite.operations.partial import write_whole
from oxlite.operations.verification import Contents

__all__ = [
    "MANIFEST_SUFFIX",
    "Manifest",
    "manifest_as_json",
    "manifest_path",
    "put_in_order",
    "read_manifest",
    "remove_if_orphan",
    "write_manifest",
]

_FORMAT: Final = 1
MANIFEST_SUFFIX: Final = ".json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is known of a backup.

    Attributes:
        sequence: Greater than that of each one that was there in its directory before.
        created_at: When its snapshot was taken: an aware datetime.
        verified_at: When it was verified.
        source: The database that it is a copy of.
        size: Of the backup's file, in bytes.
        sha256: Of the backup's file.
        compression: ``zstd`` or ``None``.
        contents: What is in it.
        sqlite_version: By which it was made.
        host: The host that the database is on; ``None`` in manifests of the first versions.
    """

    sequence: int
    created_at: datetime
    verified_at: datetime
    source: str
    size: int
    sha256: str
    compression: Literal["zstd"] | None
    contents: Contents
    sqlite_version: str
    host: str | None = None


def manifest_as_json(manifest: Manifest) -> dict[str, Any]:
    """What JSON can have of it."""
    found = asdict(manifest)
    for name in ("created_at", "verified_at"):
        found[name] = found[name].isoformat()
    return found


def manifest_path(backup: Path) -> Path:
    """Where that of a backup is."""
    return backup.with_name(f"{backup.name}{MANIFEST_SUFFIX}")


def write_manifest(backup: Path, manifest: Manifest) -> None:
    """Write it, durably.

    Raises:
        OSError: It cannot be written.
    """
    text = json.dumps({"format": _FORMAT, **manifest_as_json(manifest)}, indent=1)
    write_whole(manifest_path(backup), f"{text}\n")


def read_manifest(backup: Path) -> Manifest | None:
    """That of a backup; ``None`` if it has none.

    Raises:
        OperationsError: There is something else of that name.
        OSError: It cannot be read.
    """
    path = manifest_path(backup)
    try:
        said = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise OperationsError(f"{path} is no manifest of a backup: {error}") from None
    try:
        return _manifest(said)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise OperationsError(
            f"{path} is no manifest of a backup that this version knows: {error!r}"
        ) from None


def _manifest(said: dict[str, Any]) -> Manifest:
    if said.pop("format") != _FORMAT:
        raise ValueError("another format")
    compression = said["compression"]
    if compression not in (None, "zstd"):
        raise ValueError(compression)
    return Manifest(
        **{
            **said,
            "created_at": datetime.fromisoformat(said["created_at"]),
            "verified_at": datetime.fromisoformat(said["verified_at"]),
            "contents": Contents(**said["contents"]),
        }
    )


def _manifests(directory: Path) -> Iterator[tuple[Path, Manifest]]:
    """Those of a directory, and which backup each is of."""
    for path in directory.iterdir():
        if path.suffix != MANIFEST_SUFFIX:
            continue
        backup = path.with_name(path.name.removesuffix(MANIFEST_SUFFIX))
        with suppress(OperationsError, OSError):
            if (found := read_manifest(backup)) is not None:
                yield backup, found


def put_in_order(directory: Path) -> int:
    """Delete manifests whose backup never got its name. Nobody gives names meanwhile.

    Returns:
        The next sequence: one more than the greatest that is left.
    """
    last = 0
    for backup, manifest in list(_manifests(directory)):
        if os.path.lexists(backup):
            last = max(last, manifest.sequence)
        else:
            manifest_path(backup).unlink(missing_ok=True)
    return last + 1


def remove_if_orphan(backup: Path) -> None:
    """Delete the manifest of a backup that never got its name. Nobody gives names meanwhile."""
    with suppress(OperationsError, OSError):
        if not os.path.lexists(backup) and read_manifest(backup) is not None:
            manifest_path(backup).unlink(missing_ok=True)
