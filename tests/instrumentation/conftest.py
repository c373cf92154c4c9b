"""Programs that are instrumented as the guide says, each in a process of its own.

Instrumentation changes modules for good; and what the guide shows is what runs here.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.instrumentation.doors import Blocks, Instrumented

for _library in ("opentelemetry.instrumentation.dbapi", "opentelemetry.sdk.trace", "elasticapm"):
    pytest.importorskip(_library, reason="no instrumentation is installed")

_GUIDE = Path(__file__).parents[2] / "docs" / "instrumentation.md"

_PRELUDE = """
import asyncio, json, os, sys
os.chdir(sys.argv[1])
found = {}
from sqlalchemy.dialects import registry
registry.register("sqlite.oxlite", "oxlite.sqlalchemy.dialect", "SQLiteDialect_oxlite")
registry.register("sqlite.oxlite_async", "oxlite.sqlalchemy.aio", "SQLiteDialect_oxlite_async")
"""


@pytest.fixture(scope="session")
def guide() -> Blocks:
    """The programs of the guide, by the headings under which they stand."""
    parts = re.split(r"^## (.+)$", _GUIDE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {
        heading: re.findall(r"^```python\n(.*?)^```", body, flags=re.MULTILINE | re.DOTALL)
        for heading, body in zip(parts[1::2], parts[2::2], strict=True)
    }


@pytest.fixture
def instrumented(tmp_path: Path) -> Instrumented:
    """Runs parts of a program in a process of its own, and returns what it has put in ``found``."""

    def run(*parts: str) -> dict[str, Any]:
        file = tmp_path / "program.py"
        file.write_text(_PRELUDE + "\n".join(parts) + "\nprint(json.dumps(found))\n")
        done = subprocess.run(
            [sys.executable, "-W", "ignore", str(file), str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return answer

    return run
