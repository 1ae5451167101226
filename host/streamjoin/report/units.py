"""Numbers as text: SI prefixes, three significant figures, no-break spaces."""

from __future__ import annotations

import math

NBSP = "\N{NO-BREAK SPACE}"
THIN = "\N{NARROW NO-BREAK SPACE}"
MISSING = "\N{EN DASH}"
TIMES = "\N{MULTIPLICATION SIGN}"

PAGE_BYTES = 4096

_PREFIXES = {-3: "n", -2: "µ", -1: "m", 0: "", 1: "k", 2: "M", 3: "G", 4: "T", 5: "P"}


def significant(value: float) -> str:
    """Return three significant figures without trailing zeros.

    Parameters
    ----------
    value : float
        Anything finite; meant for 1 to 999, where no exponent is needed.

    Examples
    --------
    >>> significant(12.3456), significant(400.0), significant(0.5)
    ('12.3', '400', '0.5')
    """
    if value == 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _scaled(value: float, lowest: int, highest: int) -> tuple[str, str]:
    """Mantissa and prefix of a value, the prefix held between two powers of a thousand."""
    if value == 0:
        return "0", ""
    power = min(max(math.floor(math.log10(abs(value)) / 3), lowest), highest)
    # Rounding may carry over: 999.6 k is 1 M.
    if abs(float(significant(value / 1000.0**power))) >= 1000 and power < highest:
        power += 1
    return significant(value / 1000.0**power), _PREFIXES[power]


def count(value: float | None) -> str:
    """Return a count or a rate in short form: ``1.2 M``.

    Examples
    --------
    >>> count(1_234_567).replace(NBSP, " ")
    '1.23 M'
    """
    if value is None:
        return MISSING
    mantissa, prefix = _scaled(value, 0, 5)
    return f"{mantissa}{NBSP}{prefix}" if prefix else mantissa


def rate(value: float | None) -> str:
    """Return tuples per second: ``1.2 M tuples/s``."""
    return MISSING if value is None else f"{count(value)}{NBSP}tuples/s"


def exact(value: int | None) -> str:
    """Return every digit of a count, in groups of three.

    Examples
    --------
    >>> exact(1234567).replace(THIN, "'")
    "1'234'567"
    """
    return MISSING if value is None else f"{value:,}".replace(",", THIN)


def seconds(value: float | None) -> str:
    """Return a duration given in seconds: ``41 µs``, ``1.2 ms``, ``3.4 s``."""
    if value is None:
        return MISSING
    mantissa, prefix = _scaled(value, -3, 0)
    return f"{mantissa}{NBSP}{prefix}s"


def microseconds(value: float | None) -> str:
    """Return a duration given in microseconds, in the unit that fits."""
    return MISSING if value is None else seconds(value * 1e-6)


def memory(value_bytes: float | None) -> str:
    """Return bytes in decimal units: ``25 GB``."""
    if value_bytes is None:
        return MISSING
    mantissa, prefix = _scaled(value_bytes, 0, 5)
    return f"{mantissa}{NBSP}{prefix}B"


def resident(value_bytes: float | None) -> str:
    """Return a growth of resident memory, which is counted in pages: ``1.2 MB``, ``< 4 kB``."""
    if value_bytes is not None and value_bytes < PAGE_BYTES:
        return f"<{NBSP}4{NBSP}kB"
    return memory(value_bytes)


def hertz(value_hz: float | None) -> str:
    """Return a clock: ``100 MHz``."""
    if value_hz is None:
        return MISSING
    mantissa, prefix = _scaled(value_hz, 0, 3)
    return f"{mantissa}{NBSP}{prefix}Hz"


def percent(share: float | None) -> str:
    """Return a share of one as a percentage: ``44 %``; tiny ones as ``< 0.1 %``."""
    if share is None:
        return MISSING
    if 0 < share < 0.001:
        return f"<{NBSP}0.1{NBSP}%"
    decimals = 0 if share == 0 or share >= 0.1 else 1
    return f"{100 * share:.{decimals}f}{NBSP}%"


def ratio(value: float | None) -> str:
    """Return a ratio: 1.2 times, with the sign for it."""
    return MISSING if value is None else f"{significant(value)}{NBSP}{TIMES}"


def plural(value: int, noun: str) -> str:
    """Return a count with its noun: ``1 thread``, ``2 threads``."""
    return f"{exact(value)}{NBSP}{noun}{'' if value == 1 else 's'}"


def spaced(text: str) -> str:
    """Return a text with plain spaces, for files and for those who are read to."""
    return text.replace(NBSP, " ").replace(THIN, " ")
