"""Become another program: ``launch.py PARENT SIGNAL UID GID PROGRAM ARGUMENT…``.

Run with ``-P``, as ``bootstrap`` is. It becomes the account that is named, if it is another one,
and the kernel sends it that signal when the lab ends. ``PARENT`` is the lab's process number: if
that has ended before the kernel was asked to watch it, there is nothing to become any more.
"""

import os
import sys

from oxlite.bench.harness.bootstrap import die_with_parent


def main() -> None:
    """Change the account, ask the kernel, and become the program."""
    parent, number, uid, gid = map(int, sys.argv[1:5])
    if uid != os.geteuid():
        import ctypes  # noqa: F401 - another account may not read it, and die_with_parent needs it

        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    # After that: a change of accounts forgets it.
    die_with_parent(number)
    if os.getppid() != parent:
        sys.exit("the lab has ended")
    os.execvp(sys.argv[5], sys.argv[5:])


if __name__ == "__main__":
    main()
