"""Warnings that point at the line of a user's program, not into these packages."""

import sys
import warnings

from streamjoin_common.errors import InputWarning

PACKAGES = frozenset(
    {"streamjoin", "streamjoin_common", "streamjoin_datagen", "streamjoin_hw", "streamjoin_spark"}
)


def warn_caller(message: str) -> None:
    """Warn of an input, at the line from which these packages were called."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, InputWarning, stacklevel=level)


def _is_ours(module: object) -> bool:
    return str(module).partition(".")[0] in PACKAGES
