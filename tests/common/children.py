"""Work in a fork, which may be killed."""

import os
import traceback
from collections.abc import Callable


def in_a_child(work: Callable[[], object], *, user: int | None = None) -> int:
    """Run something in a fork, as another user perhaps; return its status, negative if killed."""
    child = os.fork()
    if child == 0:
        status = 70
        try:
            if user is not None:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
            status = int(bool(work()))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
