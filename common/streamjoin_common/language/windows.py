"""Windows as plain data: which pairs may meet, and how that is written.

The meaning of each is on the page "What a stream join means" (``docs/semantics.md``).
"""

import re
from dataclasses import dataclass
from datetime import timedelta

from streamjoin_common.errors import InputError
from streamjoin_common.language.durations import (
    MAX_SHOWN_CHARACTERS,
    MAX_US,
    format_duration,
    in_microseconds,
    likely_duration,
    parse_duration,
    shown,
)
from streamjoin_common.suggestions import nearest

_COUNT = re.compile(r"[1-9][0-9]{0,399}")


def _check(value: object, what: str, others: str = "") -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < MAX_US:
        raise InputError(f"{what} must be an integer from 1 to below 2**62{others}, not {value!r}")


def _check_length(value: object, what: str) -> None:
    _check(value, f"{what} in microseconds", ", a duration such as '10ms' or a timedelta")


@dataclass(frozen=True)
class AllWindow:
    """One window holds everything: the intra-window join (IaWJ)."""

    kind = "all"
    text = "all"


@dataclass(frozen=True, init=False)
class TumblingWindow:
    """Pairs of the same window of ``length_us`` microseconds: an IaWJ each.

    The length may be a duration such as ``"1s"`` or a ``timedelta``, too.
    """

    length_us: int

    kind = "tumbling"

    def __init__(self, length_us: int | str | timedelta) -> None:
        object.__setattr__(self, "length_us", in_microseconds(length_us))
        _check_length(self.length_us, "a tumbling window's length")

    @property
    def text(self) -> str:
        """The window as ``--window`` takes it."""
        return f"tumbling:{format_duration(self.length_us)}"


@dataclass(frozen=True, init=False)
class CountWindow:
    """The last ``r_tuples`` tuples of R and the last ``s_tuples`` of S (as many by default)."""

    r_tuples: int
    s_tuples: int

    kind = "count"

    def __init__(self, r_tuples: int, s_tuples: int | None = None) -> None:
        object.__setattr__(self, "r_tuples", r_tuples)
        object.__setattr__(self, "s_tuples", r_tuples if s_tuples is None else s_tuples)
        _check(self.r_tuples, "the count window of R")
        _check(self.s_tuples, "the count window of S")

    @property
    def text(self) -> str:
        """The window as ``--window`` takes it."""
        same = self.r_tuples == self.s_tuples
        return f"count:{self.r_tuples}" if same else f"count:{self.r_tuples},{self.s_tuples}"


@dataclass(frozen=True, init=False)
class TimeWindow:
    """A tuple of R lives ``r_us`` microseconds, one of S ``s_us`` (as long by default).

    Both may be durations such as ``"15min"`` or a ``timedelta``, too.
    """

    r_us: int
    s_us: int

    kind = "time"

    def __init__(
        self, r_us: int | str | timedelta, s_us: int | str | timedelta | None = None
    ) -> None:
        object.__setattr__(self, "r_us", in_microseconds(r_us))
        object.__setattr__(self, "s_us", in_microseconds(r_us if s_us is None else s_us))
        _check_length(self.r_us, "the time window of R")
        _check_length(self.s_us, "the time window of S")

    @property
    def text(self) -> str:
        """The window as ``--window`` takes it."""
        lengths = [self.r_us] if self.r_us == self.s_us else [self.r_us, self.s_us]
        return "time:" + ",".join(format_duration(length) for length in lengths)


Window = AllWindow | TumblingWindow | CountWindow | TimeWindow


def needs_arrivals(window: Window) -> bool:
    """Whether arrival times decide which pairs meet, not the order of tuples alone."""
    return isinstance(window, TumblingWindow | TimeWindow)


def parse_window(string: str) -> Window:
    """Read ``all``, ``tumbling:1s``, ``count:W_R[,W_S]`` or ``time:T_R[,T_S]``.

    Raises
    ------
    InputError
        If the string is no window.

    Examples
    --------
    >>> parse_window("count:1000,500")
    CountWindow(r_tuples=1000, s_tuples=500)
    >>> parse_window("time:15min").text
    'time:15min'
    """
    if string == "all":
        return AllWindow()
    kind, _, rest = string.partition(":") if isinstance(string, str) else ("", "", "")
    lengths = rest.split(",") if rest else []
    try:
        if kind == "tumbling" and len(lengths) == 1:
            return TumblingWindow(parse_duration(lengths[0]))
        if kind == "count" and len(lengths) in {1, 2}:
            return CountWindow(*map(_tuples, lengths))
        if kind == "time" and len(lengths) in {1, 2}:
            return TimeWindow(*map(parse_duration, lengths))
    except InputError as error:
        raise InputError(f"window {shown(string)}: {error}") from None
    raise InputError(
        "a window is all, tumbling:DUR, count:W[,W] or time:DUR[,DUR] (such as time:10s), not "
        f"{shown(string)}{_meant(string)}"
    )


EXAMPLES = {"all": "", "tumbling": "1s", "count": "1000", "time": "10s"}
OTHER_WORDS = {
    "tumble": "tumbling",
    "fixed": "tumbling",
    "sliding": "time",
    "slide": "time",
    "range": "time",
    "rows": "count",
    "tuples": "count",
}
"""What others call these windows."""


def _meant(string: object) -> str:
    """Say which window was probably meant."""
    if not isinstance(string, str) or len(string) > MAX_SHOWN_CHARACTERS:
        return ""
    kind, _, rest = string.replace(" ", "").partition(":")
    if kind and kind[0].isdigit() and not rest:  # a length alone
        alone = likely_duration(kind)
        return "" if alone is None else f": did you mean time:{alone}?"
    near = OTHER_WORDS.get(kind.lower()) or nearest(kind, EXAMPLES)
    if near is None or (near == "all" and rest):
        return ""
    if near == "time" and rest.isdecimal():  # a number of tuples, as others write it
        near = "count"
    length = rest or EXAMPLES[near]
    if f"{near}:{length}" == string:  # its lengths are too many
        return ""
    return f": did you mean {near}:{length}?" if length else f": did you mean {near}?"


def _tuples(string: str) -> int:
    if not _COUNT.fullmatch(string):
        raise InputError(f"a count is an integer above 0, for example 1024, not {shown(string)}")
    return int(string)
