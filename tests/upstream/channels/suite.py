"""Runs channels-redis' tests of its layer with Oxlite's in its place; says what became of each.

Started by test_suite.py in an interpreter of its own. The tests are those of the source
distribution, as they are: under the name of the module that they import there is a layer with the
arguments of Redis', which are one file for all hosts.

Invariant: channels-redis' own code is never imported.
"""

import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest

RELEASE = "4.3.0"


def substitute(path: Path) -> None:
    """Put Oxlite's layer under the name that the tests import."""
    from channels.exceptions import ChannelFull
    from django.conf import settings

    from oxlite.django.channels import OxliteChannelLayer

    settings.configure()

    class Layer(OxliteChannelLayer):
        def __init__(self, hosts: object = None, prefix: str = "asgi", **options: Any) -> None:  # noqa: ANN401
            super().__init__(path, **options)
            self.prefix = prefix

        async def close_pools(self) -> None:
            await self.close()

    package = types.ModuleType("channels_redis")
    core = types.ModuleType("channels_redis.core")
    vars(core).update(RedisChannelLayer=Layer, ChannelFull=ChannelFull)
    sys.modules.update({"channels_redis": package, "channels_redis.core": core})


class Outcomes:
    """Notes what became of each test."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The worst of its phases counts."""
        name = report.nodeid.rpartition("::")[2]
        if report.outcome != "passed" and not hasattr(report, "wasxfail"):
            self.found[name] = (report.outcome, report.longreprtext)
        elif report.when == "call":
            # What fails on Redis, as its authors say, is to pass here.
            xfailed = hasattr(report, "wasxfail") and report.outcome == "skipped"
            self.found.setdefault(name, ("failed" if xfailed else "passed", report.longreprtext))


def main() -> None:
    """Run them."""
    tests, folder = Path(sys.argv[1]), Path(sys.argv[2])
    substitute(folder / "cable.db")
    outcomes = Outcomes()
    options = ["-q", "-p", "no:cacheprovider", "-p", "pytest_asyncio", "-o", "asyncio_mode=auto"]
    options += ["-o", "asyncio_default_fixture_loop_scope=function"]
    options += ["--rootdir", str(tests), "-c", "/dev/null", "-o", "xfail_strict=false"]
    pytest.main([*options, str(tests / "tests" / "test_core.py")], plugins=[outcomes])
    print("\n" + json.dumps(outcomes.found))


if __name__ == "__main__":
    main()
