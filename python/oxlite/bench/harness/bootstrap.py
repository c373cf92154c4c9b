"""The first file a worker process runs: ``python -P bootstrap.py --build NAME``.

It runs as a script, before anything of Oxlite is imported, because

* the ``build`` axis is the choice of the extension module, which must be in
  place before the package imports its own;
* a worker must not outlive the lab: on Linux the kernel kills it when the lab
  dies, elsewhere it ends when it next reads its standard input;
* what a library prints must not end up among the messages, so descriptor 1 is
  set aside for those and replaced by standard error.

Run with ``-P``: this directory has a module called ``statistics`` and must not
become the first place where Python looks for one.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

INSTALLED_BUILDS = ("own", "tuned")
"""The values of the axis ``build`` that choose no extension module."""

PR_SET_PDEATHSIG = 1


def die_with_parent(signal_number: int = 9) -> None:
    """Ask the kernel to signal this process, by SIGKILL, when the thread that started it ends."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0)


def build_path(build: str) -> "Path":
    """Where the extension module of ``build`` is, if it was built."""
    import sysconfig
    from pathlib import Path

    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    return Path(__file__).parents[1] / "builds" / build / f"_native{suffix}"


def load_build(build: str) -> None:
    """Put the extension module of ``build`` in the place of the installed one."""
    if build in INSTALLED_BUILDS:
        return
    import importlib.machinery
    import importlib.util

    path = str(build_path(build))
    name = "oxlite._native"
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None:
        raise ImportError(f"cannot load the build {build!r} from {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    loader.exec_module(module)


def main() -> int:
    """Prepare this process and hand it to the worker's loop."""
    die_with_parent()
    messages = os.dup(1)
    os.dup2(2, 1)
    load_build(sys.argv[sys.argv.index("--build") + 1])

    from oxlite.bench.harness.channel import Channel
    from oxlite.bench.harness.worker import serve

    return serve(Channel(0, messages))


if __name__ == "__main__":
    sys.exit(main())
