"""Become another program that does not outlive the lab: ``launch.py PARENT PROGRAM ARGUMENT…``.

Run with ``-P``, as ``bootstrap`` is. ``PARENT`` is the lab's process number: if that has ended
before the kernel was asked to watch it, there is nothing to become any more.
"""

import os
import sys

from oxlite.bench.harness.bootstrap import die_with_parent


def main() -> None:
    """Ask the kernel, and become the program."""
    parent, *program = sys.argv[1:]
    die_with_parent()
    if os.getppid() != int(parent):
        sys.exit("the lab has ended")
    os.execvp(program[0], program)


if __name__ == "__main__":
    main()
