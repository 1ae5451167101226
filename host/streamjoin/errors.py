"""Errors that a user meets: each is one sentence, and also the built-in that fits.

An error carries the exit status of the command line: 2 for bad input or usage, 1 for a run
that failed.
"""

from streamjoin_common.errors import InputError, InputWarning, StreamJoinError

__all__ = [
    "MOST_REASON",
    "DeadlineError",
    "DeviceError",
    "EngineError",
    "InputError",
    "InputWarning",
    "MismatchError",
    "StoreError",
    "StreamJoinError",
    "TooLargeError",
    "UnavailableError",
    "UnsupportedError",
    "in_one_line",
]

MOST_REASON = 200
"""Characters of a library's own words."""


class UnsupportedError(StreamJoinError, ValueError):
    """An engine cannot do what is asked: predicate, window, order or knob."""

    exit_status = 2


class EngineError(StreamJoinError, RuntimeError):
    """An engine failed while it ran."""


class UnavailableError(StreamJoinError, RuntimeError):
    """An engine cannot run here: a package, tool or device is missing."""

    exit_status = 2


class TooLargeError(StreamJoinError, MemoryError):
    """A result has more pairs than there is memory for.

    Parameters
    ----------
    pairs : str
        How many it has, as far as is known.
    most : int
        How many fit.
    """

    def __init__(self, pairs: str, most: int) -> None:
        super().__init__(
            f"the result has {pairs} pairs and the free memory holds {most:.2g}: narrow the "
            "predicate or the window, or join a part of the input at a time"
        )


class MismatchError(StreamJoinError, RuntimeError):
    """A result differs from the oracle's."""


class DeviceError(StreamJoinError, RuntimeError):
    """A device or its model did something it must not."""


class StoreError(StreamJoinError, OSError):
    """A store of a relation failed while it was read, and went on failing until the deadline."""


class DeadlineError(StreamJoinError, TimeoutError):
    """A wait on a thread, process or device lasted beyond its deadline."""


def in_one_line(error: Exception) -> str:
    """What a library says of its error, within a sentence of ours."""
    return " ".join(str(error).split())[:MOST_REASON]
