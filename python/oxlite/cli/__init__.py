"""The command line: ``oxlite``, or ``python -m oxlite.cli``.

One module per command; a command parses and calls, and holds no logic of its
own. This module is the entry point and needs nothing but the standard library,
so that it can say what is missing.

Exit codes: 0 done · 1 a check found a problem · 2 wrong usage, or it cannot be
done · 128 + the signal's number when interrupted (130 for Ctrl-C).

Invariants: an expected error is one line on standard error, never a traceback;
nothing but the command line imports this room.
"""

import io
import os
import signal
import sys
from collections.abc import Sequence

__all__ = ["main"]

_OPTIONAL_PACKAGES = frozenset({"click", "psutil", "rich", "typer"})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: what follows the program's name; by default ``sys.argv[1:]``.

    Returns:
        The exit code. An error nobody expected is raised.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that cannot show a µ gets a ?
            stream.reconfigure(errors="replace")
    try:
        from oxlite.cli.app import run

        code = run(sys.argv[1:] if arguments is None else list(arguments))
        if sys.stdout is not None:  # closed by whoever has started it (`>&-`)
            sys.stdout.flush()
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _OPTIONAL_PACKAGES:
            raise
        message = f"the command line needs {package}: pip install 'oxlite[cli]'"
        print(f"oxlite: error: {message}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interrupt:
        return 128 + int(getattr(interrupt, "signal_number", signal.SIGINT))
    except BrokenPipeError:
        # The reader went away (`oxlite env | head -1`). Give the interpreter's last flush
        # somewhere to go, and end as a program does that the signal has killed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + int(signal.SIGPIPE)
    return code
