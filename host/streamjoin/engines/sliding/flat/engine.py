"""Index-based window join over a flat index: blocks of a cache line of keys and one of rows.

The index of a window is a map from a code to a block, and blocks of 15 entries. An arriving tuple
looks up one block, or a few neighbours, of the opposite window with a vector comparison of keys and
rows, and overwrites an expired entry of a block of its own window. Nothing is deleted, merged or
locked: an entry whose row is not in the window is skipped exactly. The blocks that arrivals need
are prefetched ahead. For an equality the map is a hash. For a band it keeps the order of codes and
is cut so that blocks are equally full, from a histogram of a sample (PIM-Tree's immutable tree does
that by sorting). When look-ups scan more blocks than their matches need, as the keys have moved, or
the chains have used up their blocks, the map is cut again and the live rows are inserted anew.

Of several terms the index is by all equalities, by a band, or by strips of the one, in each the
order of a band (:mod:`~streamjoin.engines.sliding.flat.ways`); candidates are checked.

With several threads each owns a range of each index's blocks for a batch. All run one kernel a
batch: plan, join, and restore the order of arrival where an order was asked for
(:mod:`~streamjoin.engines.kernels.flat.sharing`, :mod:`~streamjoin.engines.kernels.flat.ordering`).

Memory for each stream and window of W tuples: 18 bytes a tuple, chains at most as much again, and
48 bytes an arrival of a batch.
"""

from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from streamjoin.engines.arrivals import batches, max_live
from streamjoin.engines.base import Capabilities, Engine, Knob, Report, without_numba
from streamjoin.engines.crew import Crew
from streamjoin.engines.encode import prepare_keys
from streamjoin.engines.job import Job
from streamjoin.engines.session import Session
from streamjoin.engines.sliding.flat.columns import FlatColumns
from streamjoin.engines.sliding.flat.index import SHARED_BATCHES, FlatIndex
from streamjoin.engines.sliding.flat.live import FlatSession
from streamjoin.engines.sliding.flat.ways import compile_strips
from streamjoin.metrics import Meter
from streamjoin_common.language.windows import AllWindow, CountWindow, TimeWindow, TumblingWindow

if TYPE_CHECKING:
    from streamjoin.engines.kernels.flat.plans import Times

MIN_SHARED = 1 << 11
"""Minimum arrivals of a batch that threads share: fewer are not worth waking them up."""


def _times(job: Job) -> "Times":
    from streamjoin.engines.kernels.flat.plans import Times
    from streamjoin.engines.kernels.sliding import numbering

    kind, lengths = numbering.ALL, (0, 0)
    if isinstance(job.window, CountWindow):
        kind, lengths = numbering.COUNT, (job.window.r_tuples, job.window.s_tuples)
    elif isinstance(job.window, TimeWindow):
        kind, lengths = numbering.TIME, (job.window.r_us, job.window.s_us)
    elif isinstance(job.window, TumblingWindow):
        kind, lengths = numbering.TUMBLING, (job.window.length_us, job.window.length_us)
    # Vectors of times are read.
    r_ts, s_ts = np.ascontiguousarray(job.r.ts), np.ascontiguousarray(job.s.ts)
    return Times(r_ts, s_ts, kind, *lengths, *job.carried)


def _most_live(job: Job, of_r: bool) -> int:
    """Return the maximum tuples of a stream that its window holds, at least 1."""
    rows = job.r.rows if of_r else job.s.rows
    if isinstance(job.window, CountWindow):
        rows = min(rows, job.window.r_tuples if of_r else job.window.s_tuples)
    elif not isinstance(job.window, AllWindow):
        rows = int(max_live(job.r.ts if of_r else job.s.ts, job.window, of_r))
    return max(1, rows)


def _takes(job: Job) -> bool:
    """Whether 64-bit words stand for the values."""
    texts = any(
        stream.held(name).dtype.kind == "O"
        for stream, names in (
            (job.r, job.predicate.r_columns),
            (job.s, job.predicate.s_columns),
        )
        for name in names
    )
    return not texts or find_spec("pyarrow") is not None  # by a dictionary of strings


def index_of(job: Job, crew: Crew, min_shared: int) -> FlatIndex:
    """Return the empty index of a job, whose columns the threads have coded."""
    live = (_most_live(job, of_r=True), _most_live(job, of_r=False))
    return FlatIndex(
        FlatColumns(job, crew, sum(live) / 2),
        _times(job),
        live,
        order=job.order,
        batch=min(int(job.knobs["batch"]), max(1, job.tuples)),
        threads=job.threads,
        min_shared=min_shared,
        keeps=True,
    )


class FlatJoin(Engine):
    """Index-based window join over flat blocks: a map, a vector scan, nothing to merge."""

    name: ClassVar[str] = "ibwj-flat"
    capabilities: ClassVar[Capabilities] = Capabilities(
        predicates=frozenset({"equi", "band"}),
        windows=frozenset({"all", "tumbling", "count", "time"}),
        order="inner",
        platform="cpu",
        parallel=True,
        live=True,
    )
    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("batch", 1 << 16, "Maximum arrivals that are joined at once.", 1, 1 << 20),
    )

    def unusable(self) -> str | None:
        """Say so where Numba has no wheel."""
        return without_numba()

    def promise(self, job: Job) -> str:
        """Order is made where it is asked for; one thread does not leave that of arrival."""
        return "outer" if job.order == "none" and job.threads == 1 else job.order

    def prepare(self, job: Job, report: Report) -> None:
        """Compile the kernels, or load them from the cache, by joining one tuple with another."""
        if job.predicate.kind == "equi":
            prepare_keys(job.r, job.s, job.predicate)
        if len(job.predicate.terms) > 1:
            compile_strips()
        # Views: of a copy, which can be written, the kernels would have another type.
        r, s = (each.slice(0, min(1, each.rows)) for each in (job.r, job.s))
        few = replace(job, r=r, s=s, carried=(0, 0), arrival="instant", max_pairs=None)
        for threads in {1, job.threads}:
            self._run(replace(few, threads=threads), Meter(), 0)

    def open(self, job: Job) -> Session | None:
        """Keep the indexes, where 64-bit words stand for the values."""
        if not _takes(job):
            return None
        return FlatSession(job, _times(job)._replace(r_carried=0, s_carried=0), MIN_SHARED)

    def run(self, job: Job, prepared: None, meter: Meter) -> None:
        """Join the arrivals, batch by batch."""
        self._run(job, meter, MIN_SHARED)

    @staticmethod
    def _run(job: Job, meter: Meter, min_shared: int) -> None:
        held = 0
        with Crew(job.threads) as crew:
            with meter.phase("partition"):
                index = index_of(job, crew, min_shared)
            is_shared = job.threads > 1 and index.is_shared
            batch = int(job.knobs["batch"]) * (SHARED_BATCHES if is_shared else 1)
            for r_rows, s_rows in batches(job, meter, batch):
                if is_shared:
                    index.join_shared(r_rows, s_rows, meter, crew)
                else:
                    index.join(r_rows, s_rows, meter)
                meter.holds(max(0, index.bytes - held))
                held = max(held, index.bytes)
