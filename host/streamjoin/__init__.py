"""Stream joins on multicore CPUs and FPGAs that give the same exact answer.

>>> import numpy as np
>>> import streamjoin as sj
>>> r = {"x": np.array([1, 5, 9]), "ts": np.array([0, 10, 20])}
>>> s = {"a": np.array([4, 8]), "ts": np.array([5, 15])}
>>> len(sj.join(r, s, band="x=a:1:1", window=sj.CountWindow(2)))
2
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from streamjoin_common.moved import keep_old_names

if TYPE_CHECKING:
    from streamjoin.api import join
    from streamjoin.engines.listing import engines
    from streamjoin.errors import (
        ArgumentError,
        DeadlineError,
        DeviceError,
        EngineError,
        InputError,
        InputWarning,
        MismatchError,
        StoreError,
        StreamJoinError,
        TooLargeError,
        UnavailableError,
        UnsupportedError,
    )
    from streamjoin.live.joiner import StreamJoiner
    from streamjoin.live.matches import Matches
    from streamjoin.results.rows import JoinResult
    from streamjoin.verbs.advice import advise
    from streamjoin.verbs.comparison import Compared, compare
    from streamjoin_common.contract import ParameterError, ThetaError
    from streamjoin_common.documents import DocumentError
    from streamjoin_common.errors import ToolError
    from streamjoin_common.language.windows import (
        AllWindow,
        CountWindow,
        TimeWindow,
        TumblingWindow,
    )
    from streamjoin_common.storage import CacheError, StorageError

keep_old_names()

_MODULES = {
    "join": "streamjoin.api",
    "JoinResult": "streamjoin.results.rows",
    "compare": "streamjoin.verbs.comparison",
    "Compared": "streamjoin.verbs.comparison",
    "StreamJoiner": "streamjoin.live.joiner",
    "Matches": "streamjoin.live.matches",
    "AllWindow": "streamjoin_common.language.windows",
    "CountWindow": "streamjoin_common.language.windows",
    "TimeWindow": "streamjoin_common.language.windows",
    "TumblingWindow": "streamjoin_common.language.windows",
    "ArgumentError": "streamjoin.errors",
    "CacheError": "streamjoin_common.storage",
    "DeadlineError": "streamjoin.errors",
    "DeviceError": "streamjoin.errors",
    "DocumentError": "streamjoin_common.documents",
    "EngineError": "streamjoin.errors",
    "InputError": "streamjoin.errors",
    "InputWarning": "streamjoin.errors",
    "MismatchError": "streamjoin.errors",
    "ParameterError": "streamjoin_common.contract",
    "StorageError": "streamjoin_common.storage",
    "StoreError": "streamjoin.errors",
    "StreamJoinError": "streamjoin.errors",
    "ThetaError": "streamjoin_common.contract",
    "TooLargeError": "streamjoin.errors",
    "ToolError": "streamjoin_common.errors",
    "UnavailableError": "streamjoin.errors",
    "UnsupportedError": "streamjoin.errors",
}

_PACKAGES = ("advise", "engines")
"""Packages that are called as functions too."""

__all__ = [
    "AllWindow",
    "ArgumentError",
    "CacheError",
    "Compared",
    "CountWindow",
    "DeadlineError",
    "DeviceError",
    "DocumentError",
    "EngineError",
    "InputError",
    "InputWarning",
    "JoinResult",
    "Matches",
    "MismatchError",
    "ParameterError",
    "StorageError",
    "StoreError",
    "StreamJoinError",
    "StreamJoiner",
    "ThetaError",
    "TimeWindow",
    "TooLargeError",
    "ToolError",
    "TumblingWindow",
    "UnavailableError",
    "UnsupportedError",
    "advise",
    "compare",
    "engines",
    "join",
]


def __dir__() -> list[str]:
    """Names for completion, whether imported yet or not."""
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    """Import a name's module on first use: start-up is a feature."""
    if name == "__version__":
        from importlib.metadata import version

        return version("streamjoin")
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_meant(name)}")
    return getattr(import_module(_MODULES[name]), name)


def _meant(name: str) -> str:
    """Say what was probably meant by a name that is not here."""
    if name.startswith(("read_", "scan_", "from_", "load_")):
        return ": give sj.join the file's path, the data frame or the arrays themselves"
    from streamjoin_common.suggestions import did_you_mean

    others = {"merge": "join", "inner_join": "join", "Joiner": "StreamJoiner"}
    return f": did you mean {others[name]}?" if name in others else did_you_mean(name, __all__)
