"""Errors that a user meets: each is one sentence, and also the built-in that fits.

An error carries the exit status of the command line: 2 for bad input or usage and for what is
not installed, 1 for a run that failed.
"""

from streamjoin_common.errors import ArgumentError, InputError, InputWarning, StreamJoinError
from streamjoin_common.redaction import redacted
from streamjoin_common.spelling import option

__all__ = [
    "MAX_REASON_CHARACTERS",
    "ArgumentError",
    "DeadlineError",
    "DeviceError",
    "EngineError",
    "InputError",
    "InputWarning",
    "MismatchError",
    "NoColumnError",
    "StoreError",
    "StreamJoinError",
    "TooLargeError",
    "UnavailableError",
    "UnsupportedError",
    "in_one_line",
]

MAX_REASON_CHARACTERS = 200
"""Maximum characters that are quoted of a library's own message."""


NARROWER = "narrow the predicate or the window"
IN_PARTS = "join a part of the input at a time"
"""What to do about a result that is too large."""


class NoColumnError(InputError):
    """An input lacks a column."""


class UnsupportedError(StreamJoinError, ValueError):
    """An engine cannot do what is asked: predicate, window, order or knob."""

    exit_status = 2


class EngineError(StreamJoinError, RuntimeError):
    """An engine failed while it ran."""


class UnavailableError(StreamJoinError, RuntimeError):
    """An engine cannot run here: a package, tool or device is missing."""

    exit_status = 2


class TooLargeError(StreamJoinError, MemoryError):
    """A result has more pairs than there is memory for, or than were asked for.

    Parameters
    ----------
    much : str
        How many pairs it has, as far as is known, and how many it may have.
    remedies : str
        What to do: the last one after an "or".
    what : str
        What has so many pairs.
    """

    def __init__(self, much: str, *remedies: str, what: str = "the result") -> None:
        *others, last = remedies
        super().__init__(f"{what} has {much}: {', '.join(others)}, or {last}")
        self.much = much


class MismatchError(StreamJoinError, RuntimeError):
    """A result differs from the oracle's."""


class DeviceError(StreamJoinError, RuntimeError):
    """A device or its model did something it must not."""


class StoreError(StreamJoinError, OSError):
    """A store of a relation failed while it was read, and went on failing until the deadline."""


class DeadlineError(StreamJoinError, TimeoutError):
    """A wait on a thread, process or device lasted beyond its deadline."""


def in_one_line(error: Exception) -> str:
    """What a library says of its error, within a sentence of ours and without secrets."""
    parts = [part for part in error.args if isinstance(part, str)]
    # Arrow says of a pandas column what failed, and then which: two parts.
    said = "; ".join(parts) if len(parts) == len(error.args) > 1 else str(error)
    return redacted(" ".join(said.split()))[:MAX_REASON_CHARACTERS]


def check_room(count: int, max_pairs: int | None, fitting_pairs: int | None) -> None:
    """Refuse more pairs than were asked for, or than fit into memory.

    Raises
    ------
    TooLargeError
        Saying which.
    """
    if max_pairs is not None and count > max_pairs:
        asked = f"more than {max_pairs} pairs, the maximum asked for"
        more = f"allow more with {option('max_pairs', ...)}"
        raise TooLargeError(asked, NARROWER, IN_PARTS, more)
    if fitting_pairs is not None and count > fitting_pairs:
        much = f"more than {fitting_pairs:.2g} pairs, all that the free memory holds"
        raise TooLargeError(much, NARROWER, IN_PARTS)
