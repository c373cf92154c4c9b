"""The first file of a worker: another build takes the place of the installed extension."""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from oxlite import _native
from oxlite.bench.harness import bootstrap

LOAD = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("bootstrap", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
module.load_build(sys.argv[2])
assert "oxlite" not in sys.modules
from oxlite import _native, sqlite3
assert sqlite3.connect(":memory:").execute("SELECT 41 + 1").fetchone()[0] == 42
print(_native.__file__)
"""


def loaded(copy: Path, build: str) -> Path:
    ended = subprocess.run(
        [sys.executable, "-P", "-c", LOAD, str(copy), build],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return Path(ended.stdout.strip())


def test_a_build_is_loaded_before_the_package(tmp_path: Path) -> None:
    installed = Path(_native.__file__ or "")
    copy = tmp_path / "harness" / "bootstrap.py"
    other = tmp_path / "builds" / "stock" / f"_native{sysconfig.get_config_var('EXT_SUFFIX')}"
    for path in (copy, other):
        path.parent.mkdir(parents=True)
    shutil.copy(bootstrap.__file__, copy)
    shutil.copy(installed, other)
    assert loaded(copy, "stock") == other
    assert loaded(copy, "tuned") == installed


def test_its_process_ends_when_nobody_speaks_to_it() -> None:
    ended = subprocess.run(
        [sys.executable, "-P", bootstrap.__file__, "--build", "tuned"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (0, b"")
