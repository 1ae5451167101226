"""Numba set up for this project: no interpreter lock, and a cache of this project's own.

Numba does not notice an edit in a helper of another file, so the cache lies in a folder named by a
hash of all kernel sources. Its own files are pickles and machine code, which it would run even if
they were damaged; here a file is used only if its checksum is right and no other user can have
written it, and is rebuilt otherwise.
"""

import hashlib
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.serialize import dumps

from streamjoin.engines import compiling
from streamjoin_common.storage import cache

Function = TypeVar("Function", bound=Callable[..., object])


def _sources_digest() -> str:
    sources = sorted(Path(__file__).parent.rglob("*.py"))
    content = b"".join(source.read_bytes() for source in sources) + numba.__version__.encode()
    return hashlib.sha256(content).hexdigest()[:12]


BOUNDS_CHECKED = bool(os.environ.get("STREAMJOIN_BOUNDSCHECK"))
"""Set the variable to make an index out of bounds an error instead of a silent fault."""


_DIGEST = _sources_digest()


class _Locator(_CacheLocator):
    """Names a kernel's files; their folder is resolved when one is read or written."""

    def __init__(self, function: Any, path: str) -> None:
        self._py_file = path
        self._line = function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, function: Any, path: str) -> "_Locator":
        return cls(function, path)

    def ensure_cache_path(self) -> None:
        """Do nothing: writing a file makes its folder."""

    def get_cache_path(self) -> str:
        return ""

    def get_source_stamp(self) -> str:
        return _DIGEST

    def get_disambiguator(self) -> str:
        return str(self._line)


class _Naming(CompileResultCacheImpl):
    _locator_classes = (_Locator,)


class _Files:
    """The compiled forms of a kernel, a checked file for each signature."""

    def __init__(self, name: str) -> None:
        self._name = name

    def _path(self, key: tuple[Any, ...]) -> Path:
        number = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        return cache.root() / f"kernels-{_DIGEST}" / f"{self._name}.{number}.nbc"

    def load(self, key: tuple[Any, ...]) -> object:
        content = cache.read_checked(self._path(key))
        known, payload = (None, None) if content is None else pickle.loads(content)
        if known != key:
            compiling.begins()
            return None
        return payload

    def save(self, key: tuple[Any, ...], payload: object) -> None:
        cache.write_checked(self._path(key), dumps((key, payload)))

    def flush(self) -> None:
        """Do nothing: other processes' files stay valid, as their folder names their sources."""


class _KernelCache(FunctionCache):
    _impl_class = _Naming

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file = _Files(self._impl.filename_base)


def kernel(function: Function) -> Function:
    """Compile a function on first call, releasing the interpreter lock, and keep the code."""
    return _compiled(function)


def uncounted(function: Function) -> Function:
    """Compile like :func:`kernel`, without counting references to arrays.

    Kernels that pass tuples of arrays to one another would count about a dozen references at every
    call. Such a kernel can allocate neither arrays nor slices, and calls only kernels of this kind.
    """
    return _compiled(function, _nrt=False)


def fused(function: Function) -> Function:
    """Compile a helper of :func:`uncounted` kernels into each caller, as machine code.

    A call would copy the tuples of arrays, about a hundred words; rarely called helpers need not be
    fused.
    """
    return _compiled(function, _nrt=False, forceinline=True)


def _compiled(function: Function, **options: Any) -> Function:
    # From within a zip file, as Spark ships packages, Numba would cache in the home folder, by a
    # path that is new each time.
    cached = not BOUNDS_CHECKED and Path(__file__).is_file()
    if BOUNDS_CHECKED:
        options.pop("_nrt", None)  # the error that a check raises is counted
    compiled = numba.njit(nogil=True, boundscheck=BOUNDS_CHECKED, **options)(function)
    if cached:
        compiled._cache = _KernelCache(function)
    return cast("Function", compiled)


def inlined(function: Function) -> Function:
    """Compile a helper into each kernel that calls it."""
    return cast("Function", numba.njit(inline="always", boundscheck=BOUNDS_CHECKED)(function))
