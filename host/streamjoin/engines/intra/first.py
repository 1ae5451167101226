"""The first match of each tuple of R, where a kind of join needs no other: ``semi`` and ``anti``.

Whatever S's duplicates are, one row of a key is held: in an array by the keys themselves, where
they are small, as those that were numbered, else in a hash table. One thread does it.
"""

from collections.abc import Callable

import numpy as np

from streamjoin.engines.codes import Codes
from streamjoin.engines.crew import Crew
from streamjoin.engines.intra.window import Emitter, WindowTuples
from streamjoin.engines.numbering import find_integers, number_integers
from streamjoin.metrics import Meter

SMALL = 4
"""Maximum entries of an array by keys for each tuple."""

Find = Callable[[Codes, Codes], None]
"""Writes the first row in S of each key, or the number of S's rows where there is none."""


def emit_first(window: WindowTuples, crew: Crew, meter: Meter) -> None:
    """Emit the first match of each tuple of R that has one, in R's order."""
    emitter, absent = Emitter(meter, window, alone=True), len(window.s_keys)
    with meter.phase("build_or_sort"):
        find = _finder(window, meter)
    for first, end in crew.pieces(0, len(window.r_keys)):
        crew.check()
        with meter.phase("probe"):
            s_rows = np.empty(end - first, dtype=np.uint32)
            find(window.r_keys[first:end], s_rows)
            at = np.flatnonzero(s_rows != absent)
            emitter.emit((at + first).astype(np.uint32), s_rows[at])


def _finder(window: WindowTuples, meter: Meter) -> Find:
    """Hold the first row of each key of S."""
    from streamjoin.engines.kernels import hashing

    keys = window.s_keys
    absent = len(keys)
    highest = int(keys.max()) if absent else 0
    if highest < SMALL * window.tuples:
        rows = np.full(highest + 1, absent, dtype=np.uint32)
        hashing.fill_first(keys, rows)
        meter.holds(rows.nbytes)
        return lambda sought, s_rows: hashing.find_first(sought, rows, absent, s_rows)
    known, numbers = keys.astype(np.uint64), np.empty(absent, dtype=np.uint32)
    table = number_integers(known, numbers)
    meter.holds(known.nbytes + numbers.nbytes + table.nbytes)
    return lambda sought, s_rows: find_integers(
        sought.astype(np.uint64), known, table, s_rows, absent
    )
