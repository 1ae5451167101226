"""What a user reads: errors of one sentence each, and the checks that raise them."""

from collections.abc import Collection

from streamjoin_common.errors import InputError, StreamJoinError
from streamjoin_common.suggestions import did_you_mean


class SpecError(InputError):
    """The request is no workload; one sentence says what would be right."""


class GenerationError(StreamJoinError, RuntimeError):
    """Writing a workload failed for a reason outside the request."""


class MissingError(GenerationError):
    """A program that Spark or a generator needs is not there."""

    exit_status = 2


def require(ok: bool, name: str, requirement: str, value: object) -> None:
    """Raise :class:`SpecError` with one sentence unless ``ok``."""
    if not ok:
        raise SpecError(f"{name} must be {requirement}, not {value!r}")


def require_known(value: str, known: Collection[str], name: str) -> None:
    """Raise :class:`SpecError`, with the name that was probably meant, unless it is known."""
    if value not in known:
        near = did_you_mean(value, known)
        raise SpecError(f"{name} must be one of {', '.join(known)}, not {value!r}{near}")


def check_seed(seed: object) -> None:
    """Raise :class:`SpecError` unless the seed is an integer of 64 bits."""
    ok = isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed < 1 << 64
    require(ok, "seed", "an integer from 0 to below 2**64", seed)
