"""Durations: ``250us``, ``10ms``, ``1.5s``, ``15min``, ``2h``, ``7d``; inside, microseconds."""

import re
from datetime import timedelta

from streamjoin_common.errors import InputError
from streamjoin_common.spelling import argument

MAX_US = 1 << 62
"""Limit of durations in microseconds, exclusive: a time plus a duration then fits an int64."""

MAX_SHOWN_CHARACTERS = 40
"""Maximum characters of a wrong string that an error repeats."""

UNITS_US = {"us": 1, "ms": 1_000, "s": 1_000_000, "min": 60_000_000, "h": 3_600_000_000}
DAY_US = 24 * UNITS_US["h"]

MAX_DIGITS = len(str(MAX_US))
"""Maximum digits of a duration before the point, in any unit."""

_DURATION = re.compile(r"(0|[1-9][0-9]*)(?:\.([0-9]{1,18}))?(us|ms|s|min|h|d)")
_WIDTH = re.compile(r"(-?)(0|[1-9][0-9]{0,39})(?:\.([0-9]{1,18}))?(ns|us|ms|s|min|h|d)")


def parse_duration(string: str) -> int:
    """Read a duration as microseconds.

    Raises
    ------
    InputError
        If the string is no duration, or not an integer of microseconds from 1 to below 2**62.

    Examples
    --------
    >>> parse_duration("1.5min")
    90000000
    """
    match = _DURATION.fullmatch(string) if isinstance(string, str) else None
    if match is None:
        if isinstance(string, str) and _DURATION.fullmatch(string.removeprefix("-")):
            raise InputError(f"a duration must be above 0, not {shown(string)}")
        raise InputError(
            "a duration is a number with us, ms, s, min, h or d, for example 1.5s, not "
            f"{shown(string)}{meant(string)}"
        )
    fraction = match[2] or ""
    unit_us = DAY_US if match[3] == "d" else UNITS_US[match[3]]  # written in hours
    digits = match[1][: MAX_DIGITS + 1]  # one more is too long in any unit
    scaled = int(digits + fraction) * unit_us
    length_us, rest = divmod(scaled, int(10 ** len(fraction)))
    if length_us >= MAX_US:
        raise InputError(f"a duration is at most {MAX_US - 1}us, not {shown(string)}")
    if rest or length_us < 1:
        raise InputError(
            f"a duration is an integer number of microseconds above 0, not {shown(string)}"
        )
    return length_us


def parse_width(string: str) -> int | None:
    """Read a band's width as nanoseconds; None where it is no duration.

    Other than a length of time it may be 0 or negative, and in nanoseconds.

    Examples
    --------
    >>> parse_width("-1.5us"), parse_width("250ns"), parse_width("0s"), parse_width("7")
    (-1500, 250, 0, None)
    """
    match = _WIDTH.fullmatch(string)
    if match is None:
        return None
    fraction = match[3] or ""
    scaled = int(match[2] + fraction) * _unit_ns(match[4])
    width_ns, rest = divmod(scaled, int(10 ** len(fraction)))
    if rest:
        raise InputError(f"a band's width is an integer number of nanoseconds, not {shown(string)}")
    return -width_ns if match[1] else width_ns


def _unit_ns(unit: str) -> int:
    if unit == "ns":
        return 1
    return 1000 * (DAY_US if unit == "d" else UNITS_US[unit])


def format_width(width_ns: int) -> str:
    """Write nanoseconds as :func:`parse_width` reads them, in the largest fitting unit."""
    for unit in reversed(("ns", *UNITS_US)) if width_ns else ("s",):
        if width_ns % _unit_ns(unit) == 0:
            return f"{width_ns // _unit_ns(unit)}{unit}"
    raise AssertionError(width_ns)  # 1 ns divides every integer


OTHER_UNITS = {
    "us": ("usec", "µs", "microsecond", "microseconds"),
    "ms": ("msec", "millis", "millisecond", "milliseconds"),
    "s": ("sec", "secs", "second", "seconds"),
    "min": ("m", "mins", "minute", "minutes"),
    "h": ("hr", "hrs", "hour", "hours"),
    "d": ("day", "days"),
}
"""What others call the units."""


def likely_duration(string: object) -> str | None:
    """Return the duration that a string probably means, or None where it cannot be guessed.

    Examples
    --------
    >>> likely_duration("1 day"), likely_duration("250us"), likely_duration("soon")
    ('1d', '250us', None)
    """
    plain = string.replace(" ", "").lower() if isinstance(string, str) else ""
    number = re.match(r"[0-9]{1,18}(?:\.[0-9]{1,18})?", plain)
    given = plain[number.end() :] if number else ""
    for unit, others in OTHER_UNITS.items():
        if number and given in {unit, *others} and _DURATION.fullmatch(number[0] + unit):
            return number[0] + unit
    return None


def meant(string: object) -> str:
    """Return ``": did you mean DURATION?"``, or nothing where it cannot be guessed."""
    likely = likely_duration(string)
    return "" if likely is None else f": did you mean {likely}?"


def format_duration(length_us: int) -> str:
    """Write microseconds in the largest unit that keeps them an integer."""
    for unit, scale in reversed(UNITS_US.items()):
        if length_us % scale == 0:
            return f"{length_us // scale}{unit}"
    raise AssertionError(length_us)  # 1 us divides every integer


def in_microseconds(length: "int | str | timedelta") -> int:
    """Return a length of time as microseconds; what is no string or ``timedelta`` stays as it is.

    Raises
    ------
    InputError
        If the string is no duration, or it is no integer of microseconds: pandas' have nanoseconds.
    """
    if isinstance(length, str):
        return parse_duration(length)
    if not isinstance(length, timedelta):
        return length
    length_us, rest = divmod(length, timedelta(microseconds=1))
    if rest:
        raise InputError(f"a duration is an integer number of microseconds, not {length!r}")
    return length_us


def parse_lateness(string: "str | timedelta | None") -> int | None:
    """Read a lateness as microseconds; None stays None.

    Raises
    ------
    InputError
        If it is no duration; the sentence names the option.
    """
    return None if string is None else parse_option("lateness", string)


def parse_option(name: str, given: "str | timedelta") -> int:
    """Read an option that is a length of time as microseconds.

    Parameters
    ----------
    name : str
        The Python argument, by which errors name the option.
    given : str or timedelta
        Its value.

    Raises
    ------
    InputError
        If it is no duration; the sentence names the option.

    Examples
    --------
    >>> parse_option("lateness", timedelta(seconds=1))
    1000000
    """
    if not isinstance(given, str | timedelta):
        raise InputError(
            f"{argument(name)} must be a string such as '10ms', or a timedelta, not {given!r}"
        )
    try:
        length_us = in_microseconds(given)
        if not 1 <= length_us < MAX_US:
            raise InputError(f"a duration must be above 0 and below 2**62us, not {given!r}")
        return length_us
    except InputError as error:
        raise InputError(f"{argument(name)}: {error}") from None


def shown(string: object) -> str:
    """Repeat a wrong string in an error: quoted, and cut where it is long."""
    if isinstance(string, str) and len(string) > MAX_SHOWN_CHARACTERS:
        string = f"{string[: MAX_SHOWN_CHARACTERS - 3]}..."
    return repr(string)
