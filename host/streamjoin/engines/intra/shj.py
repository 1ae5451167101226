"""Symmetric hash joins SHJ-JM and SHJ-JB: the IaWJ study, section 3.2.1.

Every worker keeps a hash table for each stream. A batch of one stream is inserted into its own
table and looked up in the other's, so of two matching tuples the one that a worker takes later
probes the other, once. When a stream has ended, further tuples of the other are not inserted:
nothing would probe them.

Tuples are passed by value (the default) or, with ``physical_partitioning=0``, as pointers: tables
then hold rows only and read keys from the streams (section 5.5, figure 17). Memory, each worker:
16 bytes (8 with pointers) and 4 to 8 for bucket heads for every tuple of its share, R's share
being replicated within a group.
"""

from typing import ClassVar

import numpy as np

from streamjoin.engines.base import Knob
from streamjoin.engines.crew import Crew
from streamjoin.engines.intra.eager import EagerEngine, Side, StampedEmitter, Worker
from streamjoin.engines.job import Job

_BY_VALUE = Knob("physical_partitioning", 1, "1 passes tuples by value, 0 as pointers.", 0, 1)


class _Table:
    """One worker's hash table of one stream."""

    def __init__(self, expected: float, max_tuples: int, by_value: bool) -> None:
        from streamjoin.engines.kernels.intra import symmetric

        bits = max(4, int(expected).bit_length())
        self.shift = 64 - bits
        self.heads = np.full(1 << bits, symmetric.NONE, dtype=np.uint32)
        words = symmetric.VALUE_NODE if by_value else symmetric.POINTER_NODE
        self.nodes = np.empty(
            max_tuples * words, dtype=np.uint32
        )  # its unused pages are never touched
        self.used = 0
        self._words = words

    @property
    def bytes(self) -> int:
        """Bytes of the table that are in use."""
        return self.heads.nbytes + self.used * self._words * self.nodes.itemsize


class _SymmetricHash(Worker):
    def __init__(
        self, sides: tuple[Side, Side], emitter: StampedEmitter, crew: Crew, job: Job
    ) -> None:
        from streamjoin.engines.kernels.intra import symmetric

        self._kernels = symmetric
        self._sides, self._emitter, self._crew, self._meter = sides, emitter, crew, emitter.meter
        self._by_value = bool(job.knobs["physical_partitioning"])
        self._at_rest = job.arrival == "instant"
        expected = [side.expected for side in sides]
        if self._at_rest:  # both advance alike, and when one has ended inserting ends
            expected = [min(expected)] * 2
        self._tables = [
            _Table(likely, side.rows, self._by_value)
            for likely, side in zip(expected, sides, strict=True)
        ]
        max_tuples = max(side.max_pulled for side in sides)
        self._batch = np.zeros(max_tuples + symmetric.PADDING, dtype=np.uint64)

    def consume(self, number: int, upto: int) -> None:
        """Insert a batch into its own stream's table, probe the other one with it."""
        kernels, batch, meter = self._kernels, self._batch, self._meter
        own, other = self._tables[number], self._tables[1 - number]
        with meter.phase("partition"):
            count = self._sides[number].take(upto, batch, 0)
        if not (self._at_rest and self._sides[1 - number].ended):
            with meter.phase("build_or_sort"):
                kernels.insert(
                    batch, count, self._by_value, own.shift, own.heads, own.nodes, own.used
                )
                own.used += count
        if other.used == 0:
            return
        keys = self._sides[1 - number].keys
        state = np.array([0, kernels.FRESH], dtype=np.int64)
        emitter = self._emitter
        while state[0] < count:
            self._crew.check()
            outs = (emitter.out_r, emitter.out_s)
            with meter.phase("probe"):
                filled = kernels.probe(
                    batch,
                    count,
                    state,
                    keys,
                    self._by_value,
                    other.shift,
                    other.heads,
                    other.nodes,
                    outs[1 - number],
                    outs[number],
                    emitter.at,
                )
            emitter.done(filled)

    def finish(self) -> None:
        """Count the tables; every batch was joined with all before it."""
        self._meter.holds(sum(table.bytes for table in self._tables))


class ShjJm(EagerEngine):
    """Symmetric hash join, join-matrix: R replicated to all workers, S divided among them."""

    name: ClassVar[str] = "shj-jm"
    knobs: ClassVar[tuple[Knob, ...]] = (_BY_VALUE,)

    def worker(
        self, sides: tuple[Side, Side], emitter: StampedEmitter, crew: Crew, job: Job
    ) -> Worker:
        """Make one worker."""
        return _SymmetricHash(sides, emitter, crew, job)


class ShjJb(ShjJm):
    """Symmetric hash join, join-biclique: keys routed to groups of workers."""

    name: ClassVar[str] = "shj-jb"
    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("group", 1, "Workers in a group, which shares its keys.", 1, 1024),
        _BY_VALUE,
    )
