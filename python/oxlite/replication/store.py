"""Where a replica is: a URL of Litestream's, or a directory.

Invariants:
- No credentials are in it: they come from the environment (https://litestream.io/reference/config/).
- What is shown of it has nothing in it that a URL of such a kind may hide.
"""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlsplit, urlunsplit

from oxlite import harmless
from oxlite.replication.errors import ReplicationError

__all__ = ["SCHEMES", "Store", "store_of"]

SCHEMES: Final = ("file", "s3", "gs", "abs", "sftp", "nats", "oss", "webdav", "webdavs")
"""What Litestream has a client for."""

_SECRET: Final = re.compile(
    r"key|secret|token|pass|auth|sas|jwt|seed|cred|signature|(?<![a-z])sig(?![a-z])", re.IGNORECASE
)
"""A query's names whose values are secrets: ``sig`` is that of a pasted SAS, ``sign-payload`` is
none."""

_NOT_SECRET: Final = frozenset({"sse-kms-key-id", "host-key"})
_TOKEN_AS_USER: Final = frozenset({"nats"})
"""Where a user without a password is a token. Elsewhere it is a name (sftp, webdav, abs)."""

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


@dataclass(frozen=True, slots=True)
class Store:
    """A place for one replica.

    Attributes:
        url: As Litestream takes it.
        made: How many of the last directories of a path may be made; those above are there, or a
            volume is not mounted.
    """

    url: str
    made: int = field(default=1, compare=False)

    @property
    def directory(self) -> Path | None:
        """The directory it is in, if it is one of this machine's."""
        parts = urlsplit(self.url)
        if parts.scheme != "file":
            return None
        return Path(os.fsdecode(unquote_to_bytes(os.fsencode(parts.path))))

    @property
    def shown(self) -> str:
        """For people: without what follows the path, and harmless."""
        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2]
        return harmless(urlunsplit((parts.scheme, host, parts.path, "", "")))

    @property
    def place(self) -> str:
        """The same for two URLs of one place."""
        parts = urlsplit(self.url)
        if (directory := self.directory) is not None:
            return f"file://{directory.resolve()}"
        host = parts.netloc.rpartition("@")[2].lower()
        path = re.sub(r"/+", "/", parts.path).rstrip("/")
        endpoint = dict(parse_qsl(parts.query)).get("endpoint", "")
        return f"{parts.scheme}://{host}{path}?{endpoint}"

    def below(self, name: str) -> "Store":
        """The place of that name in this one, for a database among several."""
        parts = urlsplit(self.url)
        path = f"{parts.path.rstrip('/')}/{quote(os.fsencode(name))}"
        return Store(urlunsplit(parts._replace(path=path)), made=self.made + 1)

    def lacking(self) -> Path | None:
        """The directory that has to be there first, and is not."""
        directory = self.directory
        if directory is None or directory.is_dir():
            return None
        above = (directory, *directory.parents)[min(self.made, len(directory.parents))]
        return None if above.is_dir() else above


def store_of(text: str) -> Store:
    """Read where a replica is.

    Args:
        text: A URL that Litestream takes, or the path of a directory.

    Raises:
        ReplicationError: It is neither, or has credentials in it.
    """
    if not text.strip():
        raise ReplicationError("where the replica is to be is empty: name a directory or a URL")
    if not _URL.match(text):
        if "\0" in text:
            raise ReplicationError("a path has no NUL character in it")
        return Store(f"file://{quote(os.fsencode(Path(text).absolute()))}")
    try:
        parts = urlsplit(text)
        secrets = parts.password is not None
        secrets |= parts.username is not None and parts.scheme in _TOKEN_AS_USER
        arguments = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:  # whose text may have credentials in it
        raise ReplicationError(
            "where the replica is to be is no URL: write it as SCHEME://HOST/PATH, such as"
            " s3://bucket/app"
        ) from None
    if parts.scheme not in SCHEMES:
        raise ReplicationError(
            f"Litestream knows no {harmless(parts.scheme)}://: one of {', '.join(SCHEMES)}, or the"
            " path of a directory"
        )
    secrets |= any(_SECRET.search(name) and name not in _NOT_SECRET for name, _value in arguments)
    if secrets:
        raise ReplicationError(
            f"a URL is seen by everybody who lists processes, so it takes no credentials: give"
            f" {parts.scheme}:// the environment variables that docs/replication.md lists"
        )
    if not parts.path.strip("/"):
        raise ReplicationError(
            f"{Store(text).shown} names no place in the store: add a path, such as /app"
        )
    return Store(text)
