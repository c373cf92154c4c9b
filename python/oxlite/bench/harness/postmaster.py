"""Starts a program of PostgreSQL's: ``python -P postmaster.py LAB UID GID PROGRAM ARGUMENTS…``.

It runs as a script, becomes the account that is named if it is root's (PostgreSQL refuses to run
as root), asks the kernel to end it when the lab ends, and then becomes the program.

Invariant: nothing is started once the lab has gone. SIGQUIT makes a server end at once, with all
its processes and shared memory.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """See the module."""
    lab, uid, gid = (int(word) for word in sys.argv[1:4])
    libc = ctypes.CDLL(None, use_errno=True) if sys.platform.startswith("linux") else None
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    # After that: a change of accounts forgets it.
    if libc is not None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGQUIT, 0, 0, 0)
    if os.getppid() != lab:
        sys.exit("the lab has gone")
    os.execv(sys.argv[4], sys.argv[4:])


if __name__ == "__main__":
    main()
