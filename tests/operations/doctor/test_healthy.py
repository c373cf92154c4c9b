"""No false alarm: what is well has no error and no warning, and is left as it is."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.operations.doctor.conftest import OF_THE_MACHINE, contents
from tests.operations.doctor.healthy import HEALTHY, Make

from oxlite.operations.doctor import examine


@pytest.mark.parametrize("quick", [True, False], ids=["quick", "full"])
@pytest.mark.parametrize("make", HEALTHY, ids=lambda make: make.__name__)
def test_it_is_well(make: Make, quick: bool, tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with ExitStack() as stack:
        make(path, stack)
        # Other programs of this process may have it open: its files are not read meanwhile.
        is_in_use = make.__name__.startswith("in_use")
        before = {} if is_in_use else contents(tmp_path)
        names = {file.name for file in tmp_path.iterdir()}
        report = examine(path, quick=quick)
        assert names == {file.name for file in tmp_path.iterdir()}
        assert before == ({} if is_in_use else contents(tmp_path))
    wrong = [
        finding
        for finding in report.findings
        if finding.severity != "hint" and finding.code not in OF_THE_MACHINE
    ]
    assert wrong == []
    unexpected = {"cannot-open", "not-finished", "unknown-sqlite", "wal-left-behind"}
    assert not {finding.code for finding in report.findings} & unexpected
    assert all("not examined" not in note for note in report.notes)


def test_there_are_many_of_them() -> None:
    assert len(HEALTHY) >= 15
