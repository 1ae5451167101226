"""How many pairs of tuples meet in a window, whatever their values. Standard library only."""

import re

_UNIT_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


def duration_s(text: str) -> float:
    """Seconds of a duration such as ``250us``, which :func:`check_window` has let pass.

    Examples
    --------
    >>> duration_s("1.5min")
    90.0
    """
    found = re.fullmatch(r"([\d.]+)([a-z]+)", text)
    assert found is not None, text
    return float(found[1]) * _UNIT_S[found[2]]


def met_tuples(window: str, *, rows: tuple[int, int], rates_per_s: tuple[float, float]) -> float:
    """Pairs of tuples that are in a window together, for streams of constant rates.

    Parameters
    ----------
    window : str
        As ``--window`` takes it.
    rows, rates_per_s : tuple
        Of R and S; rates of 0 are data at rest.

    Notes
    -----
    The beginning of a sliding window, while it fills, is counted as if it were full, but never
    more than all pairs.
    """
    r_rows, s_rows = rows
    kind, _, sizes = window.partition(":")
    every = float(r_rows) * s_rows
    if kind == "all" or (kind != "count" and not any(rates_per_s)):
        return every
    spans = [each / rate if rate else 0.0 for each, rate in zip(rows, rates_per_s, strict=True)]
    if kind == "tumbling":
        windows = max(1.0, max(spans) / duration_s(sizes))
        return every / windows if all(rates_per_s) else every
    left, _, right = sizes.partition(",")
    if kind == "count":
        # An S tuple meets the window of R, an R tuple that of S.
        met = float(s_rows) * int(left) + float(r_rows) * int(right or left)
    else:
        met = s_rows * rates_per_s[0] * duration_s(left)
        met += r_rows * rates_per_s[1] * duration_s(right or left)
    return min(met, every)
