"""Cores in a chain: R enters at the left end, S at the right; rings connect neighbours.

Tuples travel as rows: a message names the row up to which a stream has advanced. So it stands for a
run of tuples, whose codes every core reads in place. Other messages say that the opposite stream's
tuples before a row have expired, acknowledge tuples, or end a stream.

The driver feeds both ends, each stream in arrival order. The threads determine how far the two
streams are apart when they meet; joins over a chain must be exact in every case.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import ClassVar

from streamjoin.engines.arrivals import batches
from streamjoin.engines.base import Capabilities, Engine, Knob, Report, without_numba
from streamjoin.engines.crew import Crew
from streamjoin.engines.job import Job
from streamjoin.engines.sliding.scanning import Ranges, Scanner, compile_scan
from streamjoin.metrics import Meter

RING_MESSAGES = 16
"""Maximum messages in a ring: the driver stays close to the cores."""

SPINS = 200
"""Checks of both inboxes before an idle core sleeps."""

SHORTEST_SLEEP_S, LONGEST_SLEEP_S = 2e-5, 5e-4
"""Seconds of an idle thread's sleeps, which double from the first to the second."""


class Kind(IntEnum):
    """What a message states about the rows before the one that it names."""

    TUPLES = 0
    """They have arrived."""
    EXPIRED = 1
    """Those of the opposite stream have expired for all later tuples."""
    ACKNOWLEDGED = 2
    """The neighbour has received those of the opposite stream."""
    END = 3
    """The stream has ended."""


class Ring:
    """One direction between two neighbours."""

    def __init__(self) -> None:
        from streamjoin.engines.kernels.sliding import rings

        self._kernels, self.array = rings, rings.ring(RING_MESSAGES)

    @property
    def has_room(self) -> bool:
        """Whether :meth:`put` would succeed; for the sender."""
        return bool(self._kernels.has_room(self.array))

    def put(self, kind: Kind, row: int) -> bool:
        """Send a message; False if there is no room."""
        return bool(self._kernels.put(self.array, kind << 32 | row))

    def take(self) -> tuple[Kind, int] | None:
        """Return the next message; None if there is none."""
        message = self._kernels.take(self.array)
        if message == self._kernels.NONE:
            return None
        return Kind(message >> 32), message & 0xFFFFFFFF


class Patience:
    """The sleeps of a thread that waits for another one."""

    def __init__(self, crew: Crew) -> None:
        self._crew, self._sleep_s = crew, SHORTEST_SLEEP_S

    def sleep(self) -> None:
        """Sleep, longer than the last time."""
        self._crew.idle(self._sleep_s)
        self._sleep_s = min(2 * self._sleep_s, LONGEST_SLEEP_S)

    def renew(self) -> None:
        """Begin again with a short sleep."""
        self._sleep_s = SHORTEST_SLEEP_S


class Chain:
    """The rings between the cores.

    Attributes
    ----------
    rightward, leftward : list of Ring
        Inboxes of core ``k`` from its left and from its right.
    """

    def __init__(self, cores: int) -> None:
        self.cores = cores
        self.rightward = [Ring() for _ in range(cores)]
        self.leftward = [Ring() for _ in range(cores)]


class ChainCore(ABC):
    """One core: takes messages from its inboxes, joins, and forwards.

    Parameters
    ----------
    ranges : Ranges
        The input.
    chain : Chain
        The rings.
    number : int
        Position in the chain, from the left.
    crew, meter
        The crew of its thread, and the meter for its results.
    """

    def __init__(self, ranges: Ranges, chain: Chain, number: int, crew: Crew, meter: Meter) -> None:
        self.ranges, self.number, self.crew, self.meter = ranges, number, crew, meter
        self.from_left, self.from_right = chain.rightward[number], chain.leftward[number]
        last = number == chain.cores - 1
        self.to_right = None if last else chain.rightward[number + 1]
        self.to_left = chain.leftward[number - 1] if number else None

    @property
    @abstractmethod
    def ended(self) -> bool:
        """Whether nothing is left to do or to receive."""

    @abstractmethod
    def take_left(self) -> bool:
        """Handle one message from the left; return False if there is none, or it has to wait."""

    @abstractmethod
    def take_right(self) -> bool:
        """Handle one message from the right; return False if there is none, or it has to wait."""

    @abstractmethod
    def forward(self) -> bool:
        """Do work that no message triggers; return False if there is none."""

    def emit_from(self, scanner: Scanner) -> None:
        """Run a scanner until it is done, and emit the results."""
        while not scanner.done:
            self.crew.check()
            with self.meter.phase("probe"):
                _, r_rows, s_rows = scanner.more()
            self.meter.emit(r_rows, s_rows)

    def work(self) -> None:
        """Run this core until both streams have ended."""
        from streamjoin.engines.kernels.sliding import rings

        patience = Patience(self.crew)
        while not self.ended:
            self.crew.check()
            did = [_as_often(self.take_left), _as_often(self.take_right), self.forward()]
            if any(did):
                patience.renew()
                continue
            with self.meter.phase("wait"):
                if not rings.await_any(self.from_left.array, self.from_right.array, SPINS):
                    patience.sleep()


def _as_often(take: Callable[[], bool]) -> bool:
    """Take all messages of an inbox, to join them together; return whether there was one."""
    taken = 0
    while taken < RING_MESSAGES and take():
        taken += 1
    return taken > 0


class ChainEngine(Engine):
    """A join over a chain of cores."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        predicates=frozenset({"equi", "band"}),
        windows=frozenset({"all", "tumbling", "count", "time"}),
        order="none",
        platform="cpu",
        live=True,
        parallel=True,
    )
    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("batch", 4096, "Maximum arrivals that enter the chain together.", 1, 1 << 20),
    )

    def unusable(self) -> str | None:
        """Say so where Numba has no wheel."""
        return without_numba()

    def prepare(self, job: Job, report: Report) -> None:
        """Compile the kernels, or load them from the cache."""
        from streamjoin.engines.kernels.sliding import rings

        compile_scan()
        ring = Ring()
        if ring.has_room and ring.put(Kind.TUPLES, 0):
            ring.take()
        rings.await_any(ring.array, ring.array, 0)
        rings.publish(ring.array, 0, rings.published(ring.array, 0))

    @abstractmethod
    def cores(self, job: Job, ranges: Ranges, crew: Crew, meter: Meter) -> list[ChainCore]:
        """Make the cores of one chain."""

    def run(self, job: Job, prepared: None, meter: Meter) -> None:
        """Start driver and cores, and wait for them."""
        with meter.phase("partition"):
            ranges = Ranges.of(job)
        with Crew(job.threads + 1) as crew:
            cores = self.cores(job, ranges, crew, meter)
            driver = Driver(ranges, cores[0].from_left, cores[-1].from_right)

            def send_all() -> None:
                patience = Patience(crew)
                while not driver.send():
                    patience.sleep()

            def drive() -> None:
                rest = partial(crew.rest_until_us, meter)
                for r_rows, s_rows in batches(job, meter, int(job.knobs["batch"]), rest):
                    driver.add(r_rows, s_rows)
                    send_all()
                driver.end()
                send_all()

            crew.each(lambda task: task(), [drive, *(core.work for core in cores)])


class Driver:
    """Feeds both ends: the expiry for a run of tuples, then the run (section 4.4).

    Parameters
    ----------
    ranges : Ranges
        The input.
    left, right : Ring
        Rings where R and where S enters.
    """

    def __init__(self, ranges: Ranges, left: Ring, right: Ring) -> None:
        self._ranges, self._rings = ranges, (left, right)
        self._waiting: tuple[list[tuple[Kind, int]], ...] = ([], [])

    def add(self, r_rows: slice, s_rows: slice) -> None:
        """Queue arrivals."""
        firsts = (self._ranges.r_first, self._ranges.s_first)
        for waiting, first, rows in zip(self._waiting, firsts, (r_rows, s_rows), strict=True):
            if rows.start < rows.stop:
                waiting += [(Kind.EXPIRED, int(first[rows.start])), (Kind.TUPLES, rows.stop)]

    def end(self) -> None:
        """Queue the end of both streams."""
        for waiting in self._waiting:
            waiting.append((Kind.END, 0))

    def send(self) -> bool:
        """Send what the rings have room for; return whether that was all."""
        for waiting, ring in zip(self._waiting, self._rings, strict=True):
            while waiting and ring.put(*waiting[0]):
                del waiting[0]
        return not any(self._waiting)
