"""What all index-based window joins share: PIM-Tree, section 2.2.

An arriving tuple probes the index of the opposite window, then it is inserted into the index of its
own. The index is on the most selective term of the predicate and ordered, so that a range of keys
holds all candidates, which are checked against the other terms. Results are grouped by the later
tuple, in arrival order.

Every window is a range of each stream's rows, so a comparison of row numbers says whether an index
entry is live, and expired entries that an index still holds are skipped exactly.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from streamjoin.engines.arrivals import max_live, number_arrivals, numbered_batches
from streamjoin.engines.base import Capabilities, Engine, Knob, Report, without_numba
from streamjoin.engines.crew import Crew
from streamjoin.engines.encode import IntervalCodes, encode_intervals
from streamjoin.engines.job import Job
from streamjoin.metrics import Meter

if TYPE_CHECKING:
    from streamjoin.engines.kernels.trees.probing import Arrivals, Columns

OUTPUT_PAIRS = 1 << 16
"""Initial pairs of a kernel's output buffer; it grows if a single arrival has more matches."""

SAMPLE_ROWS = 1 << 10
STEPS_LOG2 = 20
"""log2 of the maximum steps of codes for which the start of intervals is tabulated: at most 4
MB."""

BATCH = Knob("batch", 1 << 14, "Maximum arrivals that are joined at once.", 1, 1 << 20)


class WindowIndex(ABC):
    """The indexes of both windows, and the kernel that joins arrivals over them."""

    @abstractmethod
    def join(self, arrivals: "Arrivals", meter: Meter, crew: Crew) -> None:
        """Join arrivals; their pairs are emitted when :meth:`finish` returns, or before."""

    @abstractmethod
    def finish(self) -> None:
        """Wait until all pairs are emitted."""

    @property
    @abstractmethod
    def bytes(self) -> int:
        """Bytes of the indexes that are in use."""


class Output:
    """A kernel's output buffer, and its way to the meter."""

    def __init__(self) -> None:
        self.room = np.empty((2, OUTPUT_PAIRS), dtype=np.uint32)

    def emit(self, matches: int, meter: Meter) -> None:
        """Emit the matches in the buffer; a kernel that stopped without any needs more room."""
        if matches:
            pairs = self.room[:, :matches].copy()
            meter.emit(pairs[0], pairs[1])

    def grow(self) -> None:
        """Double the room: a single arrival has more matches than fit."""
        self.room = np.empty((2, 2 * self.room.shape[1]), dtype=np.uint32)


class IndexJoin(Engine):
    """An index-based window join; a subclass makes the indexes."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        predicates=frozenset({"equi", "band"}),
        windows=frozenset({"all", "tumbling", "count", "time"}),
        order="outer",
        platform="cpu",
        live=True,
    )
    knobs: ClassVar[tuple[Knob, ...]] = (BATCH,)

    def unusable(self) -> str | None:
        """Say so where Numba has no wheel."""
        return without_numba()

    def prepare(self, job: Job, report: Report) -> None:
        """Compile the kernels, or load them from the cache, by joining one tuple with another."""
        from streamjoin.engines.kernels.trees.probing import Arrivals

        codes = IntervalCodes(*(np.zeros((1, 1), dtype=np.uint32) for _ in range(3)))
        at_once, live = np.zeros(1, dtype=np.int64), np.zeros(2, dtype=np.int64)
        arrivals = Arrivals(*number_arrivals((at_once, at_once), (0, 0), 2, job.window, live))
        index = self.index(index_columns(codes), (1, 1), job)
        with Crew(job.threads) as crew:
            index.join(arrivals, Meter(), crew)
            index.finish()

    def run(self, job: Job, prepared: None, meter: Meter) -> None:
        """Join the arrivals, batch by batch."""
        from streamjoin.engines.kernels.trees.probing import Arrivals

        with meter.phase("partition"):
            columns = index_columns(encode_intervals(job.r, job.s, job.predicate))
            live = (
                max(1, max_live(job.r.ts, job.window, of_r=True)),
                max(1, max_live(job.s.ts, job.window, of_r=False)),
            )
            index = self.index(columns, live, job)
        held = 0
        with Crew(job.threads) as crew:
            batches = numbered_batches(job, meter, int(job.knobs["batch"]))
            if job.threads > 1 and job.arrival == "instant":
                batches = crew.ahead(batches)
            for batch in batches:
                index.join(Arrivals(*batch), meter, crew)
                meter.holds(max(0, index.bytes - held))
                held = max(held, index.bytes)
            index.finish()

    @abstractmethod
    def index(self, columns: "Columns", live: tuple[int, int], job: Job) -> WindowIndex:
        """Make the indexes of windows that hold at most ``live`` tuples of R and of S."""


def index_columns(codes: IntervalCodes) -> "Columns":
    """Choose the term to index, and compute the range of keys that each tuple probes."""
    from streamjoin.engines.kernels.trees import probing

    term = most_selective(codes)
    r, s_lo, s_hi = codes.r[term], codes.s_lo[term], codes.s_hi[term]
    lows = np.empty(len(r) + len(s_lo), dtype=np.uint32)
    widths = s_hi.astype(np.int64) - s_lo
    widest = int(widths.max(initial=0))
    top = int(s_hi.max(initial=0))
    shift = max(0, top.bit_length() - STEPS_LOG2)
    starts = np.empty((top >> shift) + 1, dtype=np.uint32)
    probing.reach(s_lo, s_hi, r, shift, widest, starts, lows[: len(r)])
    lows[len(r) :] = s_lo
    # If all intervals have the same width, the range is exact.
    checked = len(codes.r) > 1 or int(widths.min(initial=widest)) < widest
    return probing.Columns(
        np.concatenate([r, s_lo]),
        lows,
        np.concatenate([r, s_hi]),
        codes.r,
        codes.s_lo,
        codes.s_hi,
        checked,
    )


def most_selective(codes: IntervalCodes) -> int:
    """Return the term that the smallest number of sampled pairs satisfies."""
    if len(codes.r) == 1:
        return 0
    r_step, s_step = (max(1, part.shape[1] // SAMPLE_ROWS) for part in (codes.r, codes.s_lo))
    sampled = (codes.r[:, ::r_step], codes.s_lo[:, ::s_step], codes.s_hi[:, ::s_step])
    return int(np.argmin(passed_by_term(IntervalCodes(*sampled))))


def passed_by_term(codes: IntervalCodes) -> list[int]:
    """Count for each term the pairs of these tuples, all of R with all of S, that satisfy it."""
    return [
        int(np.count_nonzero((lo[:, None] <= keys) & (keys <= hi[:, None])))
        for keys, lo, hi in zip(codes.r, codes.s_lo, codes.s_hi, strict=True)
    ]
