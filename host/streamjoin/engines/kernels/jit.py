"""Numba set up for this project: no interpreter lock, and a cache that is never stale.

Numba does not notice an edit in a helper of another file, so the cache lies in a folder named
by a hash of all kernel sources.
"""

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import numba
from numba import config

Function = TypeVar("Function", bound=Callable[..., object])


def _cache_folder() -> Path:
    sources = sorted(Path(__file__).parent.glob("*.py"))
    text = b"".join(source.read_bytes() for source in sources) + numba.__version__.encode()
    root = os.environ.get("STREAMJOIN_CACHE") or Path(sys.prefix) / "share" / "streamjoin"
    return Path(root) / f"kernels-{hashlib.sha256(text).hexdigest()[:12]}"


BOUNDS_CHECKED = bool(os.environ.get("STREAMJOIN_BOUNDSCHECK"))
"""Set the variable to make an index out of bounds an error instead of a silent fault."""


_FOLDER = _cache_folder()


def kernel(function: Function) -> Function:
    """Compile a function on first call, releasing the interpreter lock, and keep the code."""
    previous = config.CACHE_DIR
    config.CACHE_DIR = "" if BOUNDS_CHECKED else str(_FOLDER)
    try:
        compiled = numba.njit(nogil=True, cache=not BOUNDS_CHECKED, boundscheck=BOUNDS_CHECKED)(
            function
        )
    finally:
        config.CACHE_DIR = previous
    return cast("Function", compiled)


def inlined(function: Function) -> Function:
    """Compile a helper into each kernel that calls it."""
    return cast("Function", numba.njit(inline="always", boundscheck=BOUNDS_CHECKED)(function))
