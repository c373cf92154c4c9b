"""Children of a process that plays: all is loaded already, and they may be killed.

Invariant: a child is made by a fork before anything of the database is opened.
"""

import faulthandler
import os
import sys
import traceback
from collections.abc import Callable

_SECONDS = 60


def in_a_child(work: Callable[[], object]) -> int:
    """Has a child do it; its process number."""
    # It has a thread of its own, which a child would wait for in vain.
    faulthandler.cancel_dump_traceback_later()
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        faulthandler.dump_traceback_later(_SECONDS, exit=True)
        work()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def ended(child: int) -> int:
    """How a child ends: its code, or the negative number of a signal."""
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)
