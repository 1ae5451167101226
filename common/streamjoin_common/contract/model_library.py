"""The C interface of a design's Verilated model (``sim/driver/driver.cpp``), for ctypes.

Shared by the host's driver and by the hardware's own tests.
"""

import ctypes
from enum import IntEnum
from pathlib import Path
from typing import Any

LIBRARY_NAME = "model.so"


class RunState(IntEnum):
    """Why ``sjm_run`` returned."""

    ENDED = 0
    RESULTS_FULL = 1
    CYCLES_OVER = 2
    BEATS_TAKEN = 3
    NOTHING_TO_RESUME = 4


class SjmRun(ctypes.Structure):
    """One call of ``sjm_run``; the fields are explained beside their twins in ``driver.cpp``.

    After ``RESULTS_FULL`` or ``CYCLES_OVER`` the same run continues in a call with ``resume`` 1.
    With ``resume`` 0 another run begins; where one was abandoned before, the design is emptied
    by a soft reset first.
    """

    _fields_ = (
        ("beats", ctypes.c_void_p),
        ("dest", ctypes.c_void_p),
        ("not_before", ctypes.c_void_p),
        ("accepted", ctypes.c_void_p),
        ("beat_count", ctypes.c_int64),
        ("last", ctypes.c_int32),
        ("resume", ctypes.c_int32),
        ("results", ctypes.c_void_p),
        ("users", ctypes.c_void_p),
        ("stamps", ctypes.c_void_p),
        ("capacity", ctypes.c_int64),
        ("max_cycles", ctypes.c_int64),
        ("seed", ctypes.c_uint64),
        ("idle_per_1024", ctypes.c_uint32),
        ("stall_per_1024", ctypes.c_uint32),
        ("beats_taken", ctypes.c_int64),
        ("results_taken", ctypes.c_int64),
        ("cycles", ctypes.c_int64),
    )


def load_model_library(path: Path) -> Any:
    """Load a model's library and declare its functions.

    Raises
    ------
    OSError
        If it cannot be loaded.
    """
    library = ctypes.CDLL(str(path))
    handle, word = ctypes.c_void_p, ctypes.c_uint32
    library.sjm_open.restype = handle
    library.sjm_close.argtypes = (handle,)
    library.sjm_close.restype = None
    library.sjm_drop.argtypes = (handle,)
    library.sjm_drop.restype = None
    library.sjm_cycles.argtypes = (handle,)
    library.sjm_cycles.restype = ctypes.c_int64
    library.sjm_read.argtypes = (handle, word, ctypes.POINTER(word))
    library.sjm_write.argtypes = (handle, word, word)
    library.sjm_run.argtypes = (handle, ctypes.POINTER(SjmRun))
    library.sjm_manifest_digest.argtypes = (handle,)
    library.sjm_manifest_digest.restype = ctypes.c_char_p
    return library
