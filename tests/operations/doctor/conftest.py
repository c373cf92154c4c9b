"""What the tests of the doctor share."""

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.operations.doctor.zoo import Ward

# Of the machine that the tests run on, and not of what they make.
OF_THE_MACHINE = frozenset(
    {
        "disk-nearly-full", "memory-file-system", "network-file-system", "overlay-file-system",
        "unusual-file-system",
    }
)  # fmt: skip


def contents(directory: Path) -> dict[str, str]:
    """What is in each file; the WAL's index is memory, in which who reads marks where."""
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in directory.iterdir()
        if file.is_file() and not file.name.endswith("-shm")
    }


@pytest.fixture
def ward(tmp_path: Path) -> Iterator[Ward]:
    """A directory for a database, and an end for all that is started for it."""
    directory = tmp_path / "ward"
    directory.mkdir(mode=0o755)
    with ExitStack() as stack:
        yield Ward(directory, stack)
    directory.chmod(0o755)
