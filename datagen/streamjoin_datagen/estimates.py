"""How many pairs of tuples meet in a window, whatever their values. Standard library only."""

from streamjoin_common.language.windows import (
    AllWindow,
    CountWindow,
    TumblingWindow,
    parse_window,
)


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
    chosen = parse_window(window)
    every = float(r_rows) * s_rows
    if isinstance(chosen, AllWindow):
        return every
    if isinstance(chosen, CountWindow):
        # An S tuple meets the window of R, an R tuple that of S.
        met = float(s_rows) * chosen.r_tuples + float(r_rows) * chosen.s_tuples
        return min(met, every)
    if not any(rates_per_s):
        return every
    if isinstance(chosen, TumblingWindow):
        spans = [each / rate if rate else 0.0 for each, rate in zip(rows, rates_per_s, strict=True)]
        windows = max(1.0, max(spans) * 1e6 / chosen.length_us)
        return every / windows if all(rates_per_s) else every
    met = s_rows * rates_per_s[0] * chosen.r_us / 1e6 + r_rows * rates_per_s[1] * chosen.s_us / 1e6
    return min(met, every)
