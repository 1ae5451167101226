"""Kang's three-step procedure (scan, insert, expire), vectorised: handshake join, section 2.2.

Each arriving tuple scans the opposite window. A window is a stretch of its stream's columns:
inserting moves its end, expiring moves its start, nothing is copied. One thread.
"""

from typing import ClassVar

import numpy as np

from streamjoin.engines.arrivals import batches, scan_ranges
from streamjoin.engines.base import Capabilities, Engine, Job, Knob, Report, without_numba
from streamjoin.engines.encode import encode_intervals
from streamjoin.metrics import Meter
from streamjoin.tuples import arrival_order

OUTPUT_PAIRS = 1 << 16


class Kang(Engine):
    """Three-step procedure with a vectorised scan: the single-threaded baseline."""

    name: ClassVar[str] = "kang"
    capabilities: ClassVar[Capabilities] = Capabilities(
        predicates=frozenset({"equi", "band"}),
        windows=frozenset({"all", "tumbling", "count", "time"}),
        order="inner",
        platform="cpu",
    )
    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("batch", 1024, "Arrivals that are joined before results are handed over.", 1, 1 << 20),
    )

    def unusable(self) -> str | None:
        """Say so where Numba has no wheel."""
        return without_numba()

    def prepare(self, job: Job, report: Report) -> None:
        """Compile the kernels, or load them from the cache."""
        from streamjoin.engines.kernels import scan

        report("compiling kernels")
        codes = np.zeros((1, 1), dtype=np.uint32)
        none = np.zeros(0, dtype=np.int64)
        out = np.empty(2, dtype=np.uint32)
        scan.scan_stretch(
            codes, codes, codes, none.astype(np.bool_), none, none, none, 0, 0, out, out
        )

    def run(self, job: Job, meter: Meter) -> None:
        """Scan the opposite window for every tuple in arrival order."""
        from streamjoin.engines.kernels import scan

        with meter.phase("partition"):
            codes = encode_intervals(job.r, job.s, job.predicate)
            r_first, r_end, s_first, s_end = scan_ranges(job.r.ts, job.s.ts, job.window)
        meter.holds(codes.r.nbytes + codes.s_lo.nbytes + codes.s_hi.nbytes)
        for r_rows, s_rows in batches(job, meter, int(job.knobs["batch"])):
            with meter.phase("build_or_sort"):
                is_s, rows = arrival_order(job.r.ts[r_rows], job.s.ts[s_rows])
                rows += np.where(is_s, s_rows.start, r_rows.start)
                firsts, ends = np.empty_like(rows), np.empty_like(rows)
                firsts[~is_s], firsts[is_s] = r_first[r_rows], s_first[s_rows]
                ends[~is_s], ends[is_s] = r_end[r_rows], s_end[s_rows]
            arrival, offset = 0, 0
            while arrival < len(rows):
                with meter.phase("probe"):
                    out_r, out_s = np.empty((2, OUTPUT_PAIRS), dtype=np.uint32)
                    arrival, offset, found = scan.scan_stretch(
                        codes.r,
                        codes.s_lo,
                        codes.s_hi,
                        is_s,
                        rows,
                        firsts,
                        ends,
                        arrival,
                        offset,
                        out_r,
                        out_s,
                    )
                    # A copy of the few that were found frees the large buffer.
                    pairs = out_r[:found].copy(), out_s[:found].copy()
                meter.emit(*pairs)
