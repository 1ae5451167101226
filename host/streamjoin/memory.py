"""Memory of a run: its growth over time, and the free memory."""

import contextlib
import itertools
import mmap
import os
import threading
import time
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from streamjoin_common.free_memory import SHARE, available_bytes
from streamjoin_common.system import libc, system_file

__all__ = [
    "SHARE",
    "ResidentSet",
    "available_bytes",
    "follows",
    "give_back_freed_memory",
    "input_bytes",
    "joined",
    "keep_one_arena",
    "own",
    "prefer_huge_pages",
    "reserved",
]

MAX_COPIED = 1 << 22
"""Bytes from which on a part of a reserved array is kept as it is: a copy takes too long."""

MAX_POINTS = 200
FIRST_STEP_S = 0.005
_STATUS = "/proc/self/status"
_STATM = "/proc/self/statm"
_RESET = "/proc/self/clear_refs"
_JOIN_DEADLINE_S = 10.0
_M_ARENA_MAX = -8


class ResidentSet:
    """The process' resident set since this was made (Linux): its peak and its curve.

    The peak is the kernel's own high-water mark. After :meth:`watch` a thread samples the curve at
    growing intervals, so that a run of any length has about a hundred points; without, it has one.

    Parameters
    ----------
    small : bool
        Whether memory that was freed before is left for the run: returning it to the system takes
        as long as a small run.

    Attributes
    ----------
    peak_bytes : int or None
        Peak above the start; None if the system does not report it, or before :meth:`stop`.
    curve : list of [float, int]
        Milliseconds since the start, bytes above the start.
    """

    def __init__(self, small: bool = False) -> None:
        self.peak_bytes: int | None = None
        self.curve: list[list[float]] = []
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._baseline_bytes: int | None = None
        if not small:
            give_back_freed_memory()
        try:
            _write(_RESET, b"5")  # 5 resets VmHWM to the present resident set
            self._baseline_bytes = _resident_bytes()
        except OSError:
            return
        self._began_ns = time.perf_counter_ns()

    def watch(self) -> None:
        """Begin to sample the curve, which takes a thread: short runs go without."""
        if self._baseline_bytes is not None and self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="memory", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Read the peak and end the sampling."""
        if self._baseline_bytes is None:
            return
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(_JOIN_DEADLINE_S)
        status = system_file(_STATUS)
        peak_bytes, resident_bytes = (_in_status(status, name) for name in (b"VmHWM:", b"VmRSS:"))
        self.peak_bytes = max(0, peak_bytes - self._baseline_bytes)
        self._note(resident_bytes - self._baseline_bytes)

    def _watch(self) -> None:
        assert self._baseline_bytes is not None  # watch() has looked
        step_s = FIRST_STEP_S
        while not self._stopped.wait(step_s):
            self._note(_resident_bytes() - self._baseline_bytes)
            if len(self.curve) >= MAX_POINTS:
                self.curve = self.curve[1::2]
                step_s *= 2

    def _note(self, grown_bytes: int) -> None:
        elapsed_ms = (time.perf_counter_ns() - self._began_ns) / 1e6
        self.curve.append([elapsed_ms, max(0, grown_bytes)])


def _resident_bytes() -> int:
    return int(system_file(_STATM).split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _in_status(status: bytes, name: bytes) -> int:
    _, found, after = status.partition(name)
    if not found:
        raise OSError(f"{_STATUS} does not report {name.decode()}")
    return int(after.split(maxsplit=1)[0]) * 1024


def _write(path: str, content: bytes) -> None:
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, content)
    finally:
        os.close(file)


def reserved(count: int, kind: DTypeLike) -> NDArray[Any]:
    """Return an array of zeros that takes no memory before it is touched, page by page.

    Parameters
    ----------
    count : int
        Elements.
    kind : dtype
        Their type.

    Raises
    ------
    MemoryError
        If the process may not have so many addresses.
    """
    private = getattr(mmap, "MAP_PRIVATE", None)
    if private is None or not count:  # Windows
        return np.zeros(count, kind)
    size_bytes = count * np.dtype(kind).itemsize
    try:
        pages = mmap.mmap(-1, size_bytes, flags=private | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"no room for {size_bytes} bytes: {error}") from None
    return np.frombuffer(pages, kind, count)


def prefer_huge_pages(array: NDArray[Any]) -> None:
    """Take the rest of a reserved array in huge pages (Linux): a 500th of the page faults."""
    holder = array.base
    while isinstance(holder, np.ndarray):
        holder = holder.base
    if isinstance(holder, memoryview):
        holder = holder.obj
    advice = getattr(mmap, "MADV_HUGEPAGE", None)
    if isinstance(holder, mmap.mmap) and advice is not None:
        with contextlib.suppress(OSError):  # a kernel without them
            holder.madvise(advice)


def own(array: NDArray[Any]) -> NDArray[Any]:
    """Copy a small part of a reserved array: it would keep the addresses of the whole."""
    holder = array.base
    while isinstance(holder, np.ndarray):
        holder = holder.base
    return array.copy() if isinstance(holder, memoryview) and array.nbytes < MAX_COPIED else array


def follows(before: NDArray[Any], after: NDArray[Any]) -> bool:
    """Whether elements lie behind others in the same array."""
    if before.base is None or before.base is not after.base or before.dtype != after.dtype:
        return False
    return _address(after) == _address(before) + before.nbytes and after.strides == before.strides


def _address(after: NDArray[Any]) -> int:
    address: int = after.__array_interface__["data"][0]
    return address


def joined(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Put parts together, without a copy where each follows the one before in memory."""
    if len(parts) < 2:
        return parts[0] if parts else np.empty(0, np.uint32)
    first, last = parts[0], parts[-1]
    holder = first.base
    if not isinstance(holder, np.ndarray) or not holder.flags.c_contiguous:
        return np.concatenate(parts)
    if not all(follows(before, part) for before, part in itertools.pairwise(parts)):
        return np.concatenate(parts)
    begin = (_address(first) - _address(holder)) // first.itemsize
    end = (_address(last) - _address(holder)) // last.itemsize + len(last)
    return holder.reshape(-1).view(first.dtype)[begin:end]


def input_bytes() -> int | None:
    """Return the bytes that an input may take; None if the system does not report free memory."""
    available = available_bytes()
    return None if available is None else int(available * SHARE)


def keep_one_arena() -> None:
    """Make all threads allocate from one arena, which returns all freed memory (glibc).

    The C library keeps the top of a thread's own arena; memory that one run leaves there would be
    missing from the next one's peak. A program may call this, a library must not.
    """
    choose = getattr(libc(), "mallopt", None)
    if choose is not None:
        choose(_M_ARENA_MAX, 1)


def give_back_freed_memory() -> None:
    """Return freed memory from the C library to the system, or it would hide the next peak."""
    trim = getattr(libc(), "malloc_trim", None)
    if trim is not None:
        trim(0)


ALIGNED_WORDS = 32
"""Words of two cache lines."""


def aligned_words(words: int) -> NDArray[np.uint32]:
    """Return zeros that begin at an even cache line."""
    zeros = np.zeros(words + ALIGNED_WORDS, dtype=np.uint32)
    return zeros[(-zeros.ctypes.data // 4) % ALIGNED_WORDS :][:words]
