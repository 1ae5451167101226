"""No-partitioning join (NPJ): the IaWJ study, section 3.1.

All threads build one shared hash table over R, each inserting an equal part of its rows; after
a barrier all probe it with equal parts of S. Beyond the study: the table is built over the shorter
side, equal keys lie side by side instead of in a chain, buckets are prefetched, and keys below the
number of buckets are not hashed. Where each tuple of R is in the result once at most, its first
match is all that is looked for (:mod:`~streamjoin.engines.intra.first`).
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from streamjoin.engines.base import Capabilities, Knob
from streamjoin.engines.codes import Codes
from streamjoin.engines.crew import Crew
from streamjoin.engines.intra.first import emit_first
from streamjoin.engines.intra.lazy import LazyEngine
from streamjoin.engines.intra.window import Emitter, IntraWindowEngine, WindowTuples
from streamjoin.engines.job import Job
from streamjoin.metrics import Meter
from streamjoin_common.language.kinds import R_ONLY


class Npj(LazyEngine):
    """No-partitioning hash join: one shared table, parallel build, barrier, parallel probe."""

    name: ClassVar[str] = "npj"
    capabilities: ClassVar[Capabilities] = replace(IntraWindowEngine.capabilities, first_pairs=True)
    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("load", 1, "Maximum build tuples per bucket, on average.", minimum=1, maximum=64),
    )

    def join_complete(self, window: WindowTuples, crew: Crew, job: Job, meter: Meter) -> None:
        """Build, barrier, probe."""
        if job.how in R_ONLY:
            emit_first(window, crew, meter)
            return
        sides = _Sides(window, len(window.s_keys) < len(window.r_keys))
        with meter.phase("build_or_sort"):
            table = _SharedTable(sides, int(job.knobs["load"]), crew, meter)
        meter.holds(table.bytes)
        table.build()
        crew.on_parts(table.probe, len(sides.probe))


@dataclass(frozen=True)
class _Sides:
    """The side that the table is built of, and the one that probes it."""

    window: WindowTuples
    swapped: bool

    @property
    def build(self) -> Codes:
        """Keys of R, or of S where they are swapped."""
        return self.window.s_keys if self.swapped else self.window.r_keys

    @property
    def probe(self) -> Codes:
        """Keys of the other side."""
        return self.window.r_keys if self.swapped else self.window.s_keys

    def emit(self, emitter: Emitter, build_rows: Codes, probe_rows: Codes) -> None:
        """Emit matches."""
        rows = (probe_rows, build_rows) if self.swapped else (build_rows, probe_rows)
        emitter.emit(*rows)


class _SharedTable:
    """The hash table that all threads build and probe together.

    Memory: 8 bytes a build tuple and 4 a bucket, of which there are at most 2 for ``load`` tuples.
    """

    def __init__(self, sides: _Sides, load: int, crew: Crew, meter: Meter) -> None:
        from streamjoin.engines.kernels import hashing

        self._sides, self._crew, self._meter = sides, crew, meter
        self._keys = keys = sides.build
        self._alone = crew.threads == 1
        bits = max(1, (len(keys) // load).bit_length())
        highest = int(keys.max()) if len(keys) else 0
        # Keys that are small, as those that were numbered, are their own buckets.
        are_small = highest >> bits == 0
        if are_small:
            bits = max(1, highest.bit_length())
        self._shift = 64 - bits
        self._factor = np.uint64(1 << self._shift) if are_small else hashing.FIBONACCI
        self._bounds = np.zeros((1 << bits) + 1, dtype=np.uint32)
        self._table = np.empty(len(keys), dtype=np.uint64)

    @property
    def bytes(self) -> int:
        """Bytes of the table."""
        return self._bounds.nbytes + self._table.nbytes

    def build(self) -> None:
        """Insert all rows, each thread an equal part of them."""
        self._crew.on_parts(self._count, len(self._keys))
        with self._meter.phase("build_or_sort"):
            np.cumsum(self._bounds, out=self._bounds)
        self._crew.on_parts(self._fill, len(self._keys))

    def _count(self, first: int, end: int) -> None:
        from streamjoin.engines.kernels import hashing

        for start, stop in self._crew.pieces(first, end):
            with self._meter.phase("build_or_sort"):
                hashing.count(
                    self._keys, start, stop, self._factor, self._shift, self._bounds, self._alone
                )

    def _fill(self, first: int, end: int) -> None:
        from streamjoin.engines.kernels import hashing

        for start, stop in self._crew.pieces(first, end):
            with self._meter.phase("build_or_sort"):
                hashing.fill(
                    self._keys,
                    start,
                    stop,
                    self._factor,
                    self._shift,
                    self._bounds,
                    self._table,
                    self._alone,
                )

    def probe(self, first: int, end: int) -> None:
        """Look rows ``first`` to below ``end`` of the probe side up and emit the matches."""
        from streamjoin.engines.kernels import hashing

        emitter = Emitter(self._meter, self._sides.window, self._alone)
        for start, stop in self._crew.pieces(first, end):
            state = np.array([start, 0], dtype=np.int64)
            while state[0] < stop:
                self._crew.check()
                with self._meter.phase("probe"):
                    out_r, out_s = emitter.buffer(4 * (stop - start))
                    matches = hashing.probe(
                        self._sides.probe,
                        stop,
                        state,
                        self._factor,
                        self._shift,
                        self._bounds,
                        self._table,
                        out_r,
                        out_s,
                    )
                    self._sides.emit(emitter, out_r[:matches], out_s[:matches])
