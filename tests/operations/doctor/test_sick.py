"""Each illness is found, and each finding's mend, applied, cures it."""

import shutil
import sqlite3
from pathlib import Path

import pytest
from tests.operations.doctor.conftest import OF_THE_MACHINE, contents
from tests.operations.doctor.zoo import ZOO, Sick, Ward

from oxlite.environment.versions import can_corrupt_wal
from oxlite.operations.doctor import ILLNESSES, examine

WANTED = {
    "old": (can_corrupt_wal(sqlite3.sqlite_version_info), "the standard library's SQLite is new"),
    "shell": (shutil.which("sqlite3") is not None, "there is no sqlite3 program"),
    "shm": (Path("/dev/shm").is_dir(), "there is no /dev/shm"),
    "": (True, ""),
}

# Made elsewhere: by mounts (test_mounts), by backups (test_backups_of_it), or by what has no cure
# here (test_strangers).
ELSEWHERE = {
    "backup-changed", "backup-missing", "backup-old",
    "cannot-open", "disk-nearly-full", "needs-application", "network-file-system", "not-finished",
    "overlay-file-system", "read-only-file-system", "unusual-file-system",
}  # fmt: skip


@pytest.mark.parametrize("sick", ZOO, ids=lambda sick: sick.name)
def test_it_is_found_and_its_mend_cures_it(sick: Sick, ward: Ward) -> None:
    is_there, reason = WANTED[sick.needs]
    if not is_there:
        pytest.skip(reason)
    sick.make(ward)
    before = {} if ward.processes else contents(ward.directory)
    report = examine(ward.path, quick=sick.quick)
    assert before == ({} if ward.processes else contents(ward.directory))
    found = [finding for finding in report.findings if finding.code == sick.code]
    assert found, report.findings
    for finding in found:
        assert finding.what.endswith((".", ")."))
        assert finding.why
        assert finding.mend
    assert report.is_well is not any(one.severity != "hint" for one in report.findings)
    elsewhere = None
    for finding in found:
        elsewhere = sick.cure(ward, finding) if sick.cure else None
    cured = examine(elsewhere or ward.path, quick=sick.quick)
    assert sick.code not in {finding.code for finding in cured.findings}
    # It has done no harm either.
    before = {finding.code for finding in report.findings}
    assert {
        one.code for one in cured.findings if one.severity == "error"
    } - OF_THE_MACHINE <= before


def test_every_illness_is_in_the_zoo() -> None:
    assert {sick.code for sick in ZOO} | ELSEWHERE == {illness.code for illness in ILLNESSES}
    assert len({illness.code for illness in ILLNESSES}) == len(ILLNESSES)
    assert len({sick.code for sick in ZOO}) >= 25
