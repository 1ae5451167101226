"""What a user is told: errors of one sentence each, and the checks that raise them."""

import re

_DURATION = r"\d*[1-9]\d*(\.\d+)?(us|ms|s|min|h)"
_WINDOW = re.compile(
    rf"all|tumbling:{_DURATION}|count:[1-9]\d*(,[1-9]\d*)?|time:{_DURATION}(,{_DURATION})?"
)


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
        isinstance(window, str) and _WINDOW.fullmatch(window) is not None,
        "window",
        "all, tumbling:DUR, count:W[,W] or time:DUR[,DUR] (such as time:10s)",
        window,
    )


def check_seed(seed: object) -> None:
    """Raise :class:`SpecError` unless the seed is a whole number of 64 bits."""
    ok = isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed < 1 << 64
    require(ok, "seed", "a whole number from 0 to below 2**64", seed)
