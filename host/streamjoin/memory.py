"""Memory of a run: its growth over time, and the free memory."""

import os
import threading
import time
from pathlib import Path

from streamjoin_common.free_memory import SHARE, available_bytes

__all__ = ["SHARE", "ResidentSet", "available_bytes", "input_bytes", "keep_one_arena"]

MAX_POINTS = 200
FIRST_STEP_S = 0.005
_STATUS = Path("/proc/self/status")
_STATM = Path("/proc/self/statm")
_RESET = Path("/proc/self/clear_refs")
_JOIN_DEADLINE_S = 10.0
_M_ARENA_MAX = -8


class ResidentSet:
    """The process' resident set since this was made (Linux): its peak and its curve.

    The peak is the kernel's own high-water mark. A thread samples the curve at growing intervals,
    so that a run of any length has about a hundred points.

    Attributes
    ----------
    peak_bytes : int or None
        Peak above the start; None if the system does not report it, or before :meth:`stop`.
    curve : list of [float, int]
        Milliseconds since the start, bytes above the start.
    """

    def __init__(self) -> None:
        self.peak_bytes: int | None = None
        self.curve: list[list[float]] = []
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        _give_back_freed_memory()
        try:
            _RESET.write_text("5")  # 5 resets VmHWM to the present resident set
            self._baseline_bytes = _status_bytes("VmRSS")
        except OSError:
            return
        self._began_ns = time.perf_counter_ns()
        self._thread = threading.Thread(target=self._watch, name="memory", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Read the peak and end the sampling."""
        if self._thread is None:
            return
        self._stopped.set()
        self.peak_bytes = max(0, _status_bytes("VmHWM") - self._baseline_bytes)
        self._thread.join(_JOIN_DEADLINE_S)
        self._note()

    def _watch(self) -> None:
        step_s = FIRST_STEP_S
        while not self._stopped.wait(step_s):
            self._note()
            if len(self.curve) >= MAX_POINTS:
                self.curve = self.curve[1::2]
                step_s *= 2

    def _note(self) -> None:
        elapsed_ms = (time.perf_counter_ns() - self._began_ns) / 1e6
        resident_pages = int(_STATM.read_text().split()[1])
        above_bytes = resident_pages * os.sysconf("SC_PAGE_SIZE") - self._baseline_bytes
        self.curve.append([elapsed_ms, max(0, above_bytes)])


def _status_bytes(name: str) -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"{_STATUS} does not report {name}")


def input_bytes() -> int | None:
    """Return the bytes that an input may take; None if the system does not report free memory."""
    available = available_bytes()
    return None if available is None else int(available * SHARE)


def keep_one_arena() -> None:
    """Make all threads allocate from one arena, which returns all freed memory (glibc).

    The C library keeps the top of a thread's own arena; memory that one run leaves there would be
    missing from the next one's peak. A program may call this, a library must not.
    """
    import ctypes

    choose = getattr(ctypes.CDLL(None), "mallopt", None)
    if choose is not None:
        choose(_M_ARENA_MAX, 1)


def _give_back_freed_memory() -> None:
    """Return freed memory from the C library to the system, or it would hide the next peak."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
