"""How many pairs an equi-join has, under the window ``all`` or a tumbling one, without joining.

Every key contributes the product of its multiplicities in R and S.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamjoin_common.language.windows import TumblingWindow, parse_window

_COUNTED_KEYS = 1 << 26
"""Domains up to this are counted in an array of their length."""

SPAN_ROWS = 1 << 20
"""Maximum rows of either stream in a span of windows that is counted at once."""


def key_pairs(r_keys: NDArray[Any], s_keys: NDArray[Any], domain: int) -> int:
    """Pairs of two columns of integers from 0 to ``domain``.

    Rows of either side must be below 2**31, so that the result is below 2**62.
    """
    if not (r_keys.size and s_keys.size):
        return 0
    if domain > _COUNTED_KEYS:
        # A wide domain is mostly empty: number the keys of R, and count only those.
        keys = np.unique(r_keys)
        indices = np.minimum(np.searchsorted(keys, s_keys), len(keys) - 1)
        s_keys = indices[keys[indices] == s_keys]
        r_keys, domain = np.searchsorted(keys, r_keys), len(keys)
    r_counts = np.bincount(r_keys, minlength=domain + 1)
    s_counts = np.bincount(s_keys, minlength=domain + 1)
    return int(np.dot(r_counts, s_counts))


def window_pairs(
    keys: Sequence[NDArray[Any]],
    times_us: Sequence[NDArray[Any]] | None,
    window: str,
    domain: int,
) -> int:
    """Pairs of R's and S's columns under the window ``all`` or a tumbling one.

    Parameters
    ----------
    keys : sequence of ndarray
        R's and S's, from 0 to ``domain``.
    times_us : sequence of ndarray, optional
        Their arrival times in order, for a tumbling window.
    """
    chosen = parse_window(window)
    if times_us is None or not isinstance(chosen, TumblingWindow):
        return key_pairs(keys[0], keys[1], domain)
    numbers = [ts // chosen.length_us for ts in times_us]
    total = 0
    for r_rows, s_rows in _spans(*numbers):
        windows, r_windows = np.unique(numbers[0][r_rows], return_inverse=True)
        s_windows = np.searchsorted(windows, numbers[1][s_rows])
        met = windows[np.minimum(s_windows, len(windows) - 1)] == numbers[1][s_rows]
        r_keys, s_keys = keys[0][r_rows], keys[1][s_rows][met]
        if len(windows) > 1:  # a key is another one in each window
            r_keys = r_windows * (domain + 1) + r_keys
            s_keys = s_windows[met] * (domain + 1) + s_keys
        total += key_pairs(r_keys, s_keys, len(windows) * (domain + 1))
    return total


def _spans(
    r_numbers: NDArray[np.int64], s_numbers: NDArray[np.int64]
) -> Iterator[tuple[slice, slice]]:
    """Rows of R and S of spans of consecutive windows, each with rows of R."""
    both = (r_numbers, s_numbers)
    firsts = [0, 0]
    while all(first < len(numbers) for first, numbers in zip(firsts, both, strict=True)):
        beyond = [
            int(numbers[first + SPAN_ROWS])
            for first, numbers in zip(firsts, both, strict=True)
            if first + SPAN_ROWS < len(numbers)
        ]
        last = min(beyond, default=max(int(numbers[-1]) for numbers in both))
        ends = [int(np.searchsorted(numbers, last, side="right")) for numbers in both]
        if firsts[0] < ends[0]:
            yield slice(firsts[0], ends[0]), slice(firsts[1], ends[1])
        firsts = ends


def table_pairs(
    r: pa.Table, s: pa.Table, r_columns: Sequence[str], s_columns: Sequence[str]
) -> int:
    """Pairs of two tables on columns of integers or strings, compared in the order given."""
    names = [f"key{index}" for index in range(len(r_columns))]
    r_keys, s_keys = [], []
    for left, right in zip(r_columns, s_columns, strict=True):
        kind = _common_type(r.schema.field(left).type, s.schema.field(right).type)
        r_keys.append(r.column(left).cast(kind))
        s_keys.append(s.column(right).cast(kind))
    counts = []
    for keys, rows in ((r_keys, "r_rows"), (s_keys, "s_rows")):
        counted = pa.table(keys, names=names).group_by(names).aggregate([([], "count_all")])
        counts.append(counted.rename_columns({"count_all": rows}))
    met = counts[0].join(counts[1], keys=names, join_type="inner")
    total = pc.sum(pc.multiply(met.column("r_rows"), met.column("s_rows"))).as_py()
    return int(total or 0)


def _common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Type that holds every value of both."""
    if left == right:
        return left
    if not pa.types.is_integer(left):
        return pa.large_string()
    if pa.types.is_uint64(left) or pa.types.is_uint64(right):
        return pa.decimal128(20, 0)
    return pa.int64()
