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
    from streamjoin.errors import (
        DeadlineError,
        DeviceError,
        InputError,
        MismatchError,
        StoreError,
        StreamJoinError,
        UnavailableError,
        UnsupportedError,
    )
    from streamjoin.live.joiner import StreamJoiner
    from streamjoin.live.matches import Matches
    from streamjoin.results.rows import JoinResult
    from streamjoin_common.language.windows import (
        AllWindow,
        CountWindow,
        TimeWindow,
        TumblingWindow,
    )

keep_old_names()

_MODULES = {
    "join": "streamjoin.api",
    "JoinResult": "streamjoin.results.rows",
    "StreamJoiner": "streamjoin.live.joiner",
    "Matches": "streamjoin.live.matches",
    "AllWindow": "streamjoin_common.language.windows",
    "CountWindow": "streamjoin_common.language.windows",
    "TimeWindow": "streamjoin_common.language.windows",
    "TumblingWindow": "streamjoin_common.language.windows",
    "StreamJoinError": "streamjoin.errors",
    "InputError": "streamjoin.errors",
    "UnsupportedError": "streamjoin.errors",
    "UnavailableError": "streamjoin.errors",
    "MismatchError": "streamjoin.errors",
    "DeviceError": "streamjoin.errors",
    "StoreError": "streamjoin.errors",
    "DeadlineError": "streamjoin.errors",
}

__all__ = [
    "AllWindow",
    "CountWindow",
    "DeadlineError",
    "DeviceError",
    "InputError",
    "JoinResult",
    "Matches",
    "MismatchError",
    "StoreError",
    "StreamJoinError",
    "StreamJoiner",
    "TimeWindow",
    "TumblingWindow",
    "UnavailableError",
    "UnsupportedError",
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
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
