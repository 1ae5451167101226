"""Calls into Spark that an interrupt ends at once.

Py4J reads Java's answers from sockets and is not made for being interrupted there: the next
call on that socket would take the answer of the interrupted one for its own, and PySpark makes
such calls on the way out. So Spark is called from a thread, which no signal reaches.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

SIGNAL_S = 0.2
"""Seconds between looks for signals: one just before the waiting begins does not end it."""

Result = TypeVar("Result")


def interruptible(work: Callable[[], Result], kill: Callable[[], None]) -> Result:
    """Call a function in a thread and wait for it.

    Parameters
    ----------
    work : callable
        What to do; its result or exception is that of this call.
    kill : callable
        Called if an exception, of a signal's handler say, ends the waiting: must make ``work``
        end soon.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="streamjoin-spark") as threads:
        future = None
        try:
            future = threads.submit(work)
            while not future.done():
                wait([future], SIGNAL_S)
            return future.result()
        except BaseException:
            if future is None or not future.done():
                kill()
            raise
