"""The page of the doctor lists all that is found."""

import re
from pathlib import Path

from oxlite.operations.doctor import ILLNESSES

PAGE = Path(__file__).parents[3] / "docs" / "doctor.md"


def test_the_page_has_each_illness_as_it_is() -> None:
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| (\w+) \| (.+) \| (.+) \|$", PAGE.read_text(), re.M)
    listed = {code: (severity, why, "(safe)" in mend) for code, severity, why, mend in rows}
    assert len(listed) == len(rows)
    assert listed == {one.code: (one.severity, one.why, one.is_safe) for one in ILLNESSES}


def test_codes_are_names_that_can_stay() -> None:
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", one.code) for one in ILLNESSES)
    assert all(one.why.endswith(".") for one in ILLNESSES)
