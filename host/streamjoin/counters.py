"""Hardware counters of a run, where the machine allows: Linux' perf events, no other program.

User-mode events of the calling thread and of all threads that it starts while counting. A pool of
threads that was there before (a library's own) is not counted.
"""

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Mapping

from streamjoin_common.system import libc

_HARDWARE, _SOFTWARE, _CACHE = 0, 1, 3
_L1D, _DTLB, _READ_MISS = 0, 3, 1 << 16

EVENTS: Mapping[str, tuple[int, int]] = {
    "cycles": (_HARDWARE, 0),
    "instructions": (_HARDWARE, 1),
    "cache_references": (_HARDWARE, 2),
    "cache_misses": (_HARDWARE, 3),
    "l1d_read_misses": (_CACHE, _L1D | _READ_MISS),
    "dtlb_read_misses": (_CACHE, _DTLB | _READ_MISS),
}
"""Type and number of each event, as in ``linux/perf_event.h``."""

SOFTWARE_EVENTS: Mapping[str, tuple[int, int]] = {"task_clock_ns": (_SOFTWARE, 1)}
"""Events that need no hardware."""

_CALLS = {"x86_64": 298, "aarch64": 241}
_ATTR_BYTES = 64
_INHERIT, _EXCLUDE_KERNEL, _EXCLUDE_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6
_NO_SUCH_EVENT = {errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV, errno.EINVAL}


class Counters:
    """Counts from when it is made until it is stopped.

    Attributes
    ----------
    found : dict of str to int, or None
        Events by name; None where nothing can be counted, and before :meth:`stop`.
    note : str or None
        Why there are none.
    """

    def __init__(self, events: Mapping[str, tuple[int, int]] = EVENTS) -> None:
        self.found: dict[str, int] | None = None
        self.note: str | None = None
        self._files: dict[str, int] = {}
        for name, (kind, number) in events.items():
            file, error = _open(kind, number)
            if error is None:
                self._files[name] = file
            elif not self._files:  # without the first, no other is tried: each costs a system call
                self.note = error
                break

    def stop(self) -> None:
        """Read and close the counters."""
        if not self._files:
            return
        self.found = {}
        for name, file in self._files.items():
            self.found[name] = int.from_bytes(os.read(file, 8), sys.byteorder)
            os.close(file)
        self._files = {}


def _open(kind: int, number: int) -> tuple[int, str | None]:
    call = _CALLS.get(platform.machine())
    if sys.platform != "linux" or call is None:
        return -1, f"no hardware counters on {sys.platform} {platform.machine()}"
    flags = _INHERIT | _EXCLUDE_KERNEL | _EXCLUDE_HYPERVISOR
    attr = struct.pack("=IIQQQQQQQ", kind, _ATTR_BYTES, number, 0, 0, 0, flags, 0, 0)
    file = libc().syscall(call, ctypes.create_string_buffer(attr, _ATTR_BYTES), 0, -1, -1, 0)
    if file >= 0:
        return int(file), None
    return -1, _reason(ctypes.get_errno())


def _reason(code: int) -> str:
    if code in _NO_SUCH_EVENT:
        return "this machine shows its programs no hardware counters, as virtual machines often do"
    if code in {errno.EACCES, errno.EPERM}:
        return "the kernel lets only root count: set /proc/sys/kernel/perf_event_paranoid to 2"
    return f"the kernel refuses hardware counters: {os.strerror(code)}"
