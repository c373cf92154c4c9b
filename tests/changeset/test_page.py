"""The examples of ``docs/sessions.md`` print what they promise."""

import re
from pathlib import Path

import pytest


def test_the_examples_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "sessions.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(examples) == 3
    for example in examples:
        exec(compile(example, "docs/sessions.md", "exec"), {})
        printed = capsys.readouterr().out
        assert printed
        for promised in re.findall(r"^print\(.*\)\s+# (.*)$", example, flags=re.MULTILINE):
            assert printed.splitlines()[-1] == promised
