"""SplitJoin: independent cores, a distributor and a collector (the SplitJoin paper).

The distributor sends every batch of arrivals to all cores (algorithm 1). A core stores the tuples
of its turn and compares all of them with its sub-window of the opposite stream (algorithms 2 and
3), independently of other cores. The collector merges the cores' results:

- order ``none``: as they are produced, no punctuation;
- ``outer``: a core ends each arriving tuple's results with a punctuation; the collector takes one
  core's results up to it, then the next core's (section 4, algorithm 5);
- ``inner``: a punctuation after every stored tuple; knob ``punctuation`` sets any interval.

A punctuation is a position in a core's results, which are in order, and needs no mark of its own.
Cores, distributor and collector are threads. Their queues are bounded: a slow core throttles the
distributor.

Metrics beside the usual ones: ``stages_us``, the latencies of the stages (figure 14), medians over
batches: from sending a batch until a core begins it, from there until the core ends it, from the
last core's end until the collector ends; and ``processing_latency_us``, from a tuple's arrival
until the collector ends its batch (section 5). The usual latency is the visiting latency.
"""

import queue
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Generic, TypeAlias, TypeVar

import numpy as np

from streamjoin.engines.arrivals import batches
from streamjoin.engines.base import Capabilities, Engine, Knob, Report, without_numba
from streamjoin.engines.crew import POLL_S, Crew
from streamjoin.engines.job import Job
from streamjoin.engines.sliding.scanning import Ranges, ScanResults, compile_scan
from streamjoin.engines.sliding.store import Store
from streamjoin.errors import InputError
from streamjoin.metrics import Meter, arrival_clock_us

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from streamjoin.engines.kernels.sliding.scan import Arrivals

BATCHES_AHEAD = 4
"""Maximum batches that wait for a core."""

QUANTILES = (0.5, 0.95, 0.99, 1.0)

Item = TypeVar("Item")


class Channel(Generic[Item]):
    """A bounded queue between threads of a crew; waiting ends when the run ends."""

    def __init__(self, crew: Crew, capacity: int) -> None:
        self._crew = crew
        self._queue: queue.Queue[Item] = queue.Queue(capacity)

    def put(self, item: Item) -> None:
        """Append an item, when there is room."""
        while True:
            self._crew.check()
            try:
                return self._queue.put(item, timeout=POLL_S)
            except queue.Full:
                continue

    def get(self) -> Item:
        """Take the first item, when there is one."""
        while True:
            self._crew.check()
            try:
                return self._queue.get(timeout=POLL_S)
            except queue.Empty:
                continue


@dataclass(frozen=True)
class Batch:
    """Arrivals that are distributed together."""

    number: int
    r_rows: slice
    s_rows: slice
    arrivals: "Arrivals"
    handed_us: float


@dataclass
class Done:
    """A core's message that it has ended a batch; ``batch`` is None when it has ended all."""

    core: int
    batch: Batch | None
    began_us: float = 0.0
    ended_us: float = 0.0
    results: list[ScanResults] = field(default_factory=list)
    pairs: int = 0

    def add(self, results: ScanResults) -> None:
        """Keep results until the other cores' results are there."""
        self.results.append(results)
        self.pairs += len(results[0])


Inbox: TypeAlias = "Channel[Batch | None]"
Outbox: TypeAlias = "Channel[Done | ScanResults]"


class SplitJoin(Engine):
    """SplitJoin: each thread stores its share of both windows, all process every tuple."""

    name: ClassVar[str] = "splitjoin"
    capabilities: ClassVar[Capabilities] = Capabilities(
        predicates=frozenset({"equi", "band"}),
        windows=frozenset({"all", "tumbling", "count", "time"}),
        order="inner",
        platform="cpu",
        live=True,
        parallel=True,
    )
    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("batch", 4096, "Maximum arrivals that are distributed together.", 1, 1 << 20),
        Knob(
            "punctuation",
            0,
            "Stored tuples of a core between punctuations; 0: as the order requires.",
            0,
            1 << 30,
        ),
    )

    def unusable(self) -> str | None:
        """Say so where Numba has no wheel."""
        return without_numba()

    def promise(self, job: Job) -> str:
        """Promise the order asked for: it costs the collector's merging."""
        return job.order

    def check(self, job: Job) -> None:
        """Refuse an interval that breaks the order asked for."""
        super().check(job)
        if job.order == "inner" and job.knobs["punctuation"] not in {0, 1}:
            raise InputError(
                f"order inner needs knob punctuation 0 or 1, not {job.knobs['punctuation']}"
            )

    def prepare(self, job: Job, report: Report) -> None:
        """Compile the kernels, or load them from the cache."""
        from streamjoin.engines.kernels.sliding import collecting

        compile_scan()
        nothing = np.zeros((3, 0), dtype=np.uint32)
        none = np.zeros(0, dtype=np.bool_)
        collecting.merge(nothing, np.zeros(2, dtype=np.int64), none, 0, nothing[1], nothing[2])

    def run(self, job: Job, prepared: None, meter: Meter) -> None:
        """Start distributor, cores and collector, and wait for them."""
        with meter.phase("partition"):
            ranges = Ranges.of(job)
        with Crew(job.threads + 2) as crew:
            inboxes: list[Inbox] = [Channel(crew, BATCHES_AHEAD) for _ in range(job.threads)]
            outbox: Outbox = Channel(crew, 0)
            collector = Collector(job, meter)
            tasks: list[Callable[[], None]] = [
                partial(_distribute, job, ranges, crew, inboxes, meter),
                partial(collector.collect, outbox),
            ]
            for number, inbox in enumerate(inboxes):
                store = Store(ranges, number, job.threads)
                core = Core(number, store, inbox, outbox, crew, meter, job.order != "none")
                tasks.append(core.process)
            crew.each(lambda task: task(), tasks)
        meter.device.update(collector.latencies())


def _distribute(job: Job, ranges: Ranges, crew: Crew, inboxes: list[Inbox], meter: Meter) -> None:
    """Send all arrivals to all cores."""
    rest = partial(crew.rest_until_us, meter)
    for number, rows in enumerate(batches(job, meter, int(job.knobs["batch"]), rest)):
        batch = Batch(number, *rows, ranges.arrivals(*rows), meter.now_us())
        for inbox in inboxes:
            inbox.put(batch)
    for inbox in inboxes:
        inbox.put(None)


@dataclass(frozen=True)
class Core:
    """One of the independent cores."""

    number: int
    store: Store
    inbox: Inbox
    outbox: Outbox
    crew: Crew
    meter: Meter
    punctuated: bool

    def process(self) -> None:
        """Store the core's tuples of every batch, and compare the batch with the stored ones."""
        scanner, meter = self.store.scanner, self.meter
        while True:
            with meter.phase("wait"):
                batch = self.inbox.get()
            done = Done(self.number, batch, meter.now_us())
            if batch is None:
                self.outbox.put(done)
                meter.holds(self.store.bytes)
                return
            with meter.phase("build_or_sort"):
                self.store.expire_unmet(batch.r_rows, batch.s_rows)
                self.store.keep_up_to(batch.r_rows.stop, batch.s_rows.stop)
                self.store.begin(batch.arrivals)
            while not scanner.done:
                self.crew.check()
                with meter.phase("probe"):
                    results = scanner.more()
                if self.punctuated:
                    done.add(results)
                    meter.check_room(done.pairs)
                else:
                    self.outbox.put(results)
            done.ended_us = meter.now_us()
            self.outbox.put(done)


class Collector:
    """Merges the cores' results in the order asked for."""

    def __init__(self, job: Job, meter: Meter) -> None:
        self._job, self._meter = job, meter
        interval = int(job.knobs["punctuation"]) or int(job.order == "inner")
        self._interval_rows = interval * job.threads
        self._waiting: dict[int, list[Done]] = {}
        self._stages_us: list[tuple[float, float, float]] = []
        self._processing_us: list[NDArray[np.float64]] = []

    def collect(self, outbox: Outbox) -> None:
        """Take the cores' results until all cores have ended."""
        ended = 0
        while ended < self._job.threads:
            item = outbox.get()
            if not isinstance(item, Done):
                self._meter.emit(item[1], item[2])
            elif item.batch is None:
                ended += 1
            else:
                waiting = self._waiting.setdefault(item.batch.number, [])
                waiting.append(item)
                if len(waiting) == self._job.threads:
                    self._finish(item.batch, self._waiting.pop(item.batch.number))

    def _finish(self, batch: Batch, cores: list[Done]) -> None:
        """Merge a batch's results and note its latencies."""
        from streamjoin.engines.kernels.sliding import collecting

        cores.sort(key=lambda done: done.core)
        counts = [done.pairs for done in cores]
        if any(counts):
            results = np.concatenate(
                [np.array(some) for done in cores for some in done.results], axis=1
            )
            merged = np.empty(sum(counts), np.uint32), np.empty(sum(counts), np.uint32)
            bounds = np.cumsum([0, *counts])
            collecting.merge(results, bounds, batch.arrivals.is_s, self._interval_rows, *merged)
            self._meter.emit(*merged)
        now_us = self._meter.now_us()
        self._stages_us.append(
            (
                float(np.mean([done.began_us for done in cores])) - batch.handed_us,
                float(np.mean([done.ended_us - done.began_us for done in cores])),
                now_us - max(done.ended_us for done in cores),
            )
        )
        arrived_us = np.zeros(len(batch.arrivals.rows))
        if self._job.arrival == "replay":
            job = self._job
            ts = np.concatenate([job.r.ts[batch.r_rows], job.s.ts[batch.s_rows]])
            arrived_us = arrival_clock_us(ts, job.start_us, job.speedup)
        self._processing_us.append(now_us - arrived_us)

    def latencies(self) -> dict[str, dict[str, float]]:
        """Return the stages' latencies, and the processing latency of all tuples."""
        if not self._stages_us:
            return {}
        stages = np.median(np.array(self._stages_us), axis=0).tolist()
        tuples = np.concatenate(self._processing_us)
        quantiles = np.quantile(tuples, QUANTILES, method="inverted_cdf").tolist()
        return {
            "stages_us": dict(
                zip(("distribution", "execution", "collection"), stages, strict=True)
            ),
            "processing_latency_us": dict(
                zip(("p50", "p95", "p99", "max"), quantiles, strict=True)
            ),
        }
