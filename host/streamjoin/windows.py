"""Windows as plain data: which pairs may meet, and how that is written.

The meaning of each is on the page "What a stream join means" (``docs/semantics.md``).
"""

import re
from dataclasses import dataclass

from streamjoin.errors import InputError

MOST = 1 << 62
"""Largest window length that keeps every sum of a time and a length inside int64."""


def _check(value: object, what: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < MOST:
        raise InputError(f"{what} must be a whole number from 1 to below 2**62, not {value!r}")


@dataclass(frozen=True)
class AllWindow:
    """One window holds everything: the intra-window join (IaWJ)."""

    kind = "all"
    text = "all"


@dataclass(frozen=True)
class TumblingWindow:
    """Pairs of the same window of ``length_us`` microseconds: one IaWJ for each window."""

    length_us: int

    kind = "tumbling"

    def __post_init__(self) -> None:
        _check(self.length_us, "a tumbling window's length in microseconds")

    @property
    def text(self) -> str:
        """The window as ``--window`` takes it."""
        return f"tumbling:{format_duration(self.length_us)}"


@dataclass(frozen=True)
class CountWindow:
    """The last ``r_tuples`` tuples of R and the last ``s_tuples`` of S (as many by default)."""

    r_tuples: int
    s_tuples: int = None  # type: ignore[assignment]  # never None once it is made

    kind = "count"

    def __post_init__(self) -> None:
        if self.s_tuples is None:
            object.__setattr__(self, "s_tuples", self.r_tuples)
        _check(self.r_tuples, "the count window of R")
        _check(self.s_tuples, "the count window of S")

    @property
    def text(self) -> str:
        """The window as ``--window`` takes it."""
        same = self.r_tuples == self.s_tuples
        return f"count:{self.r_tuples}" if same else f"count:{self.r_tuples},{self.s_tuples}"


@dataclass(frozen=True)
class TimeWindow:
    """A tuple of R lives ``r_us`` microseconds, one of S ``s_us`` (as long by default)."""

    r_us: int
    s_us: int = None  # type: ignore[assignment]  # never None once it is made

    kind = "time"

    def __post_init__(self) -> None:
        if self.s_us is None:
            object.__setattr__(self, "s_us", self.r_us)
        _check(self.r_us, "the time window of R in microseconds")
        _check(self.s_us, "the time window of S in microseconds")

    @property
    def text(self) -> str:
        """The window as ``--window`` takes it."""
        lengths = [self.r_us] if self.r_us == self.s_us else [self.r_us, self.s_us]
        return "time:" + ",".join(format_duration(length) for length in lengths)


Window = AllWindow | TumblingWindow | CountWindow | TimeWindow

_UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000}
_DURATION = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)(us|ms|s|min|h)")
_COUNT = re.compile(r"[0-9]{1,400}")


def parse_duration(text: str) -> int:
    """Read ``250us``, ``10ms``, ``1.5s``, ``15min`` or ``2h`` as microseconds.

    Raises
    ------
    InputError
        If the text is no duration or no whole number of microseconds above zero.
    """
    found = _DURATION.fullmatch(text.strip())
    if not found:
        raise InputError(f"a duration is a number with us, ms, s, min or h, not {text!r}")
    whole, _, fraction = found[1].partition(".")
    scaled = int(whole + fraction) * _UNITS_US[found[2]]
    length_us, rest = divmod(scaled, int(10 ** len(fraction)))
    if rest or length_us < 1:
        raise InputError(f"a duration is a whole number of microseconds above 0, not {text!r}")
    return length_us


def format_duration(length_us: int) -> str:
    """Write microseconds in the largest unit that keeps them whole."""
    for unit, scale in reversed(_UNITS_US.items()):
        if length_us % scale == 0:
            return f"{length_us // scale}{unit}"
    raise AssertionError("microseconds always divide by one")


def parse_window(text: str) -> Window:
    """Read ``all``, ``tumbling:1s``, ``count:W_R[,W_S]`` or ``time:T_R[,T_S]``.

    Raises
    ------
    InputError
        If the text is no window.

    Examples
    --------
    >>> parse_window("count:1000,500")
    CountWindow(r_tuples=1000, s_tuples=500)
    >>> parse_window("time:15min").text
    'time:15min'
    """
    kind, _, rest = text.partition(":")
    lengths = rest.split(",") if rest else []
    if text == "all":
        return AllWindow()
    if kind == "tumbling" and len(lengths) == 1:
        return TumblingWindow(parse_duration(lengths[0]))
    if kind == "count" and len(lengths) in {1, 2}:
        return CountWindow(*(_tuples(length, text) for length in lengths))
    if kind == "time" and len(lengths) in {1, 2}:
        return TimeWindow(*(parse_duration(length) for length in lengths))
    raise InputError(f"a window is all, tumbling:DUR, count:W[,W] or time:DUR[,DUR], not {text!r}")


def _tuples(text: str, whole: str) -> int:
    if not _COUNT.fullmatch(text) or int(text) < 1:
        shown = text if len(text) < 40 else f"{text[:37]}..."
        raise InputError(f"window {whole[:60]}: a count is a whole number above 0, not {shown!r}")
    return int(text)
