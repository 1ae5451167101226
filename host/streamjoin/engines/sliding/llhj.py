"""Low-latency handshake join: a chain of cores that forwards first and stores once.

Every tuple is forwarded along the whole chain at once (fast forwarding), and stored on one core,
its home; homes are assigned in turn (SplitJoin, section 2 and figure 10; Roy, Teubner and Gemulla,
2014). The later of two tuples meets the earlier one at the earlier one's home. The latency is that
of the chain, not of the window.

Tuples of R and S may pass each other anywhere, also before one of them has reached its home; this
must neither lose nor duplicate a pair. So a core receives, forwards and stores at once, but joins
an arrival only when it has received all opposite tuples that precede it. Those whose home is here
are stored by then, and the arrival skips those after it, which will meet it themselves. Receiving
never waits for joining, so there is no deadlock.

Expiry messages for S travel among the tuples of R, and the other way round: a core removes an
expired tuple after all arrivals that still meet it, and before all others.
"""

from collections import deque
from typing import ClassVar

import numpy as np

from streamjoin.engines.crew import Crew
from streamjoin.engines.job import Job
from streamjoin.engines.sliding.chain import Chain, ChainCore, ChainEngine, Kind, Ring
from streamjoin.engines.sliding.scanning import Ranges, run_of
from streamjoin.engines.sliding.store import Store
from streamjoin.metrics import Meter
from streamjoin.tuples import Int64s


class _Arriving:
    """One stream at a core: the tuples received, and those of them that were joined."""

    def __init__(self, is_s: bool, firsts: Int64s, ends: Int64s) -> None:
        self.is_s, self.firsts, self.ends = is_s, firsts, ends
        self.received = self.joined = 0
        self.waiting: deque[tuple[Kind, int]] = deque()
        self.ended = False


class LlhjCore(ChainCore):
    """One core of the chain: forwards, stores tuples whose home it is, joins in arrival order."""

    def __init__(self, ranges: Ranges, chain: Chain, number: int, crew: Crew, meter: Meter) -> None:
        super().__init__(ranges, chain, number, crew, meter)
        self._r = _Arriving(False, ranges.r_first, ranges.r_end)
        self._s = _Arriving(True, ranges.s_first, ranges.s_end)
        self._store = Store(ranges, number, chain.cores)

    @property
    def ended(self) -> bool:
        """Whether both streams have ended and all was joined."""
        return self._r.ended and self._s.ended

    def take_left(self) -> bool:
        """Forward a message of R, store tuples whose home is here."""
        return self._take(self._r, self.from_left, self.to_right)

    def take_right(self) -> bool:
        """Forward a message of S, store tuples whose home is here."""
        return self._take(self._s, self.from_right, self.to_left)

    def _take(self, stream: _Arriving, inbox: Ring, onward: Ring | None) -> bool:
        if onward is not None and not onward.has_room:
            return False
        message = inbox.take()
        if message is None:
            return False
        if onward is not None:
            onward.put(*message)
        kind, row = message
        if kind is Kind.TUPLES:
            with self.meter.phase("build_or_sort"):
                stream.received = row
                self._store.keep_up_to(self._r.received, self._s.received)
        stream.waiting.append(message)
        return True

    def forward(self) -> bool:
        """Join what can be joined and remove expired tuples, in each stream's order."""
        return any([self._catch_up(self._r, self._s), self._catch_up(self._s, self._r)])

    def _catch_up(self, stream: _Arriving, opposite: _Arriving) -> bool:
        # Waiting runs are joined as one. Removal may be late, never early.
        due = stream.ends[stream.joined : stream.received]
        able = int(np.searchsorted(due, opposite.received, side="right"))
        if able:
            self._join(stream, slice(stream.joined, stream.joined + able))
        did = able > 0
        while stream.waiting:
            kind, row = stream.waiting[0]
            if kind is Kind.TUPLES and stream.joined < row:
                break
            if kind is Kind.EXPIRED:
                self._store.expire(*((row, 0) if stream.is_s else (0, row)))
            elif kind is Kind.END:
                stream.ended = True
                self.meter.holds(self._store.bytes if self.ended else 0)
            stream.waiting.popleft()
            did = True
        return did

    def _join(self, stream: _Arriving, rows: slice) -> None:
        self._store.begin(run_of(stream.is_s, rows, stream.firsts[rows], stream.ends[rows]))
        self.emit_from(self._store.scanner)
        stream.joined = rows.stop


class Llhj(ChainEngine):
    """Low-latency handshake join: tuples fast-forwarded along a chain, each stored on one core."""

    name: ClassVar[str] = "llhj"

    def cores(self, job: Job, ranges: Ranges, crew: Crew, meter: Meter) -> list[ChainCore]:
        """Make the cores of one chain."""
        chain = Chain(job.threads)
        return [LlhjCore(ranges, chain, number, crew, meter) for number in range(job.threads)]
