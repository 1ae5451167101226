"""Numba set up for this project: no interpreter lock, and a cache that is never stale.

Numba does not notice an edit in a helper of another file, so the cache lies in a folder named
by a hash of all kernel sources.
"""

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

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
    return _compiled(function)


def uncounted(function: Function) -> Function:
    """Compile like :func:`kernel`, without counting references to arrays.

    Kernels that hand tuples of arrays to one another would count some dozen references at every
    call. Such a kernel can neither make an array nor a slice of one, and calls only its like.
    """
    return _compiled(function, _nrt=False)


def fused(function: Function) -> Function:
    """Compile a helper of :func:`uncounted` kernels into each caller, as machine code.

    A call would copy the tuples of arrays, some hundred words. What is rarely called need not be.
    """
    return _compiled(function, _nrt=False, forceinline=True)


def _compiled(function: Function, **options: Any) -> Function:
    # From within a zip file, as Spark ships packages, Numba would cache in the home folder, by a
    # path that is new each time.
    cached = not BOUNDS_CHECKED and Path(__file__).is_file()
    previous = config.CACHE_DIR
    config.CACHE_DIR = str(_FOLDER) if cached else ""
    if BOUNDS_CHECKED:
        options.pop("_nrt", None)  # the error that a check raises is counted
    try:
        compiled = numba.njit(nogil=True, cache=cached, boundscheck=BOUNDS_CHECKED, **options)(
            function
        )
    finally:
        config.CACHE_DIR = previous
    return cast("Function", compiled)


def inlined(function: Function) -> Function:
    """Compile a helper into each kernel that calls it."""
    return cast("Function", numba.njit(inline="always", boundscheck=BOUNDS_CHECKED)(function))
