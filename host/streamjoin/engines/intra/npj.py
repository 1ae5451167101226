"""No-partitioning join (NPJ): the IaWJ study, section 3.1.

All threads build one shared hash table over R, each inserting an equal part of its rows; after
a barrier all probe it with equal parts of S.
"""

from functools import partial
from typing import ClassVar

import numpy as np

from streamjoin.engines.base import Job, Knob
from streamjoin.engines.crew import Crew
from streamjoin.engines.encode import Codes
from streamjoin.engines.intra.lazy import LazyEngine
from streamjoin.engines.intra.window import Emitter, WindowTuples
from streamjoin.metrics import Meter


class Npj(LazyEngine):
    """No-partitioning hash join: one shared table, parallel build, barrier, parallel probe."""

    name: ClassVar[str] = "npj"
    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("load", 1, "Build tuples per bucket, at most.", least=1, most=64),
    )

    def join_complete(self, window: WindowTuples, crew: Crew, job: Job, meter: Meter) -> None:
        """Build, barrier, probe."""
        with meter.phase("build_or_sort"):
            table = _SharedTable(window.r_keys, int(job.knobs["load"]))
        crew.on_parts(partial(table.build, meter), len(window.r_keys))
        crew.on_parts(partial(table.probe, meter, window), len(window.s_keys))


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

    def probe(self, meter: Meter, window: WindowTuples, first: int, end: int) -> None:
        """Look rows ``first`` to below ``end`` of the probe side up and emit the matches."""
        from streamjoin.engines.kernels import hashing

        emitter = Emitter(meter, window)
        row, chain = first, hashing.CHAIN_START
        while row < end:
            with meter.phase("probe"):
                out_r, out_s = emitter.buffer(4 * (end - row))
                row, chain, found = hashing.probe(
                    self.keys,
                    window.s_keys,
                    row,
                    end,
                    chain,
                    self._shift,
                    self._heads,
                    self._links,
                    out_r,
                    out_s,
                )
                emitter.emit(out_r[:found], out_s[:found])
