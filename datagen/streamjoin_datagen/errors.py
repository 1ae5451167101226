"""What a user is told: errors of one sentence each, and the checks that raise them."""

import re

_MOST = 1 << 62
"""What windows hold is below this: in microseconds, or in tuples."""

_UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000}
_DURATION = re.compile(r"([0-9]{1,18})(?:\.([0-9]{1,18}))?(us|ms|s|min|h)")
_COUNT = re.compile(r"[1-9][0-9]{0,18}")


class SpecError(ValueError):
    """What the user asked for is not a workload; one sentence says what would be right."""

    exit_status = 2


class GenerationError(RuntimeError):
    """Writing a workload failed for a reason outside what the user asked for."""

    exit_status = 1


def require(ok: bool, name: str, requirement: str, value: object) -> None:
    """Raise :class:`SpecError` with one sentence unless ``ok``."""
    if not ok:
        raise SpecError(f"{name} must be {requirement}, not {value!r}")


def check_window(window: object) -> None:
    """Raise :class:`SpecError` unless the text is a window as ``--window`` takes it."""
    require(
        isinstance(window, str) and _is_window(window),
        "window",
        "all, tumbling:DUR, count:W[,W] or time:DUR[,DUR] (such as time:10s)",
        window,
    )


def _is_window(text: str) -> bool:
    kind, _, rest = text.partition(":")
    lengths = rest.split(",")
    if kind == "count":
        return len(lengths) <= 2 and all(map(_is_count, lengths))
    most = {"tumbling": 1, "time": 2}.get(kind, 0)
    return text == "all" or (len(lengths) <= most and all(map(_is_duration, lengths)))


def _is_count(text: str) -> bool:
    return _COUNT.fullmatch(text) is not None and int(text) < _MOST


def _is_duration(text: str) -> bool:
    """Whether a text is a whole number of microseconds above 0 that a window may be long."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return False
    fraction = found[2] or ""
    length_us, rest = divmod(
        int(found[1] + fraction) * _UNITS_US[found[3]], int(10 ** len(fraction))
    )
    return rest == 0 and 0 < length_us < _MOST


def check_seed(seed: object) -> None:
    """Raise :class:`SpecError` unless the seed is a whole number of 64 bits."""
    ok = isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed < 1 << 64
    require(ok, "seed", "a whole number from 0 to below 2**64", seed)
