"""No-partitioning join (NPJ): the IaWJ study, section 3.1.

All threads build one shared hash table over R, each inserting an equal part of its rows; after
a barrier all probe it with equal parts of S. Lazy: a window is joined when it is complete.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ClassVar

import numpy as np

from streamjoin.engines.arrivals import tumbling_slices
from streamjoin.engines.base import Capabilities, Engine, Job, Knob, Report, without_numba
from streamjoin.engines.encode import Codes, encode_keys
from streamjoin.metrics import Meter

OUTPUT_PAIRS = 1 << 18
"""Pairs that a thread hands over at once."""


class Npj(Engine):
    """No-partitioning hash join: one shared table, parallel build, barrier, parallel probe."""

    name: ClassVar[str] = "npj"
    capabilities: ClassVar[Capabilities] = Capabilities(
        predicates=frozenset({"equi"}),
        windows=frozenset({"all", "tumbling"}),
        order="none",
        platform="cpu",
        parallel=True,
    )
    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("load", 1, "Build tuples per bucket, at most.", least=1, most=64),
    )

    def unusable(self) -> str | None:
        """Say so where Numba has no wheel."""
        return without_numba()

    def prepare(self, job: Job, report: Report) -> None:
        """Compile the kernels, or load them from the cache."""
        report("compiling kernels")
        keys = np.zeros(1, dtype=np.uint32)
        table = _SharedTable(keys, load=1)
        table.build(Meter(), 0, 1)
        table.probe(Meter(), keys, (0, 0), 0, 1)

    def run(self, job: Job, meter: Meter) -> None:
        """Join window after window as each becomes complete."""
        with meter.phase("partition"):
            r_keys, s_keys = encode_keys(job.r, job.s, job.predicate)
        with ThreadPoolExecutor(job.threads) as pool:
            for end_us, r_rows, s_rows in tumbling_slices(job):
                if job.arrival == "replay":
                    due_us = (min(end_us, job.end_us) - job.start_us) / job.speedup
                    _on_all(pool, job.threads, lambda *_, due=due_us: meter.sleep_until_us(due))
                firsts = r_rows.start, s_rows.start
                with meter.phase("build_or_sort"):
                    table = _SharedTable(r_keys[r_rows], int(job.knobs["load"]))
                _on_all(pool, job.threads, partial(table.build, meter), len(table.keys))
                probe_keys = s_keys[s_rows]
                probe = partial(table.probe, meter, probe_keys, firsts)
                _on_all(pool, job.threads, probe, len(probe_keys))
                meter.progress(r_rows.stop + s_rows.stop, job.tuples)


class _SharedTable:
    """The hash table that all threads build and probe together."""

    def __init__(self, keys: Codes, load: int) -> None:
        self.keys = keys
        bucket_bits = max(1, (len(keys) // load).bit_length())
        self._shift = np.uint32(64 - bucket_bits)
        self._heads = np.full(1 << bucket_bits, -1, dtype=np.int32)
        self._links = np.empty(len(keys), dtype=np.int32)

    def build(self, meter: Meter, first: int, end: int) -> None:
        """Insert rows ``first`` to below ``end``."""
        from streamjoin.engines.kernels import hashing

        with meter.phase("build_or_sort"):
            hashing.build(self.keys, first, end, self._shift, self._heads, self._links)

    def probe(
        self, meter: Meter, keys: Codes, firsts: tuple[int, int], first: int, end: int
    ) -> None:
        """Look rows ``first`` to below ``end`` of the probe side up and emit the matches.

        ``firsts`` are the window's first rows in R and S.
        """
        from streamjoin.engines.kernels import hashing

        row, chain = first, hashing.CHAIN_START
        while row < end:
            with meter.phase("probe"):
                room = min(OUTPUT_PAIRS, max(1024, 4 * (end - row)))
                out_r, out_s = np.empty((2, room), dtype=np.uint32)
                row, chain, found = hashing.probe(
                    self.keys,
                    keys,
                    row,
                    end,
                    chain,
                    self._shift,
                    self._heads,
                    self._links,
                    out_r,
                    out_s,
                )
                out_r[:found] += np.uint32(firsts[0])
                out_s[:found] += np.uint32(firsts[1])
            meter.emit(out_r[:found], out_s[:found])


def _on_all(
    pool: ThreadPoolExecutor, threads: int, work: Callable[[int, int], None], rows: int = 0
) -> None:
    """Run ``work`` on equal parts of the rows, one for each thread; a barrier."""
    bounds = [rows * part // threads for part in range(threads + 1)]
    for _ in pool.map(work, bounds[:-1], bounds[1:]):
        pass
