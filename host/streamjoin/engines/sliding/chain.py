"""Cores in a chain: R enters at the left end, S at the right, neighbours talk through rings.

Tuples travel as rows: a message says up to which row a stream has come. So it stands for a run of
tuples, whose codes every core reads where they are. Beside tuples there are messages that the
opposite stream's tuples before a row have expired, acknowledgments, and the end of a stream.

The driver feeds both ends, in arrival order as far as one stream goes. How far the two are apart
when they meet is left to the threads; joins over a chain must be exact whatever happens.
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
"""Messages in a ring at most: the driver is not far ahead of the cores."""

SPINS = 200
"""Looks at both inboxes before an idle core sleeps."""

SHORTEST_SLEEP_S, LONGEST_SLEEP_S = 2e-5, 5e-4
"""The sleeps of an idle thread double from one to the other."""


class Kind(IntEnum):
    """What a message says of the rows before the one it names."""

    TUPLES = 0
    """These have come."""
    EXPIRED = 1
    """Of the opposite stream, these have expired for all that comes behind."""
    ACKNOWLEDGED = 2
    """Of the opposite stream, these were received by the neighbour."""
    END = 3
    """That was all."""


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
        """Receive a message; None if there is none."""
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
    """The rings of so many cores.

    Attributes
    ----------
    rightward, leftward : list of Ring
        Into core ``k`` from its left and from its right.
    """

    def __init__(self, cores: int) -> None:
        self.cores = cores
        self.rightward = [Ring() for _ in range(cores)]
        self.leftward = [Ring() for _ in range(cores)]


class ChainCore(ABC):
    """One core: takes what its inboxes hold, joins, and passes on what is to be passed on.

    Parameters
    ----------
    ranges : Ranges
        The input.
    chain : Chain
        The rings.
    number : int
        Place in the chain, from the left.
    crew, meter
        Whose thread it is, and where results go.
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
        """Whether nothing is left to do or to come."""

    @abstractmethod
    def take_left(self) -> bool:
        """Handle one message from the left; False if there is none, or it has to wait."""

    @abstractmethod
    def take_right(self) -> bool:
        """Handle one message from the right; False if there is none, or it has to wait."""

    @abstractmethod
    def go_on(self) -> bool:
        """Do what no message asks for; False if there is nothing."""

    def emit_from(self, scanner: Scanner) -> None:
        """Have a scanner join all that it was given, and hand the results over."""
        while not scanner.done:
            self.crew.check()
            with self.meter.phase("probe"):
                _, r_rows, s_rows = scanner.more()
            self.meter.emit(r_rows, s_rows)

    def work(self) -> None:
        """Be this core until all has ended."""
        from streamjoin.engines.kernels.sliding import rings

        patience = Patience(self.crew)
        while not self.ended:
            self.crew.check()
            did = [_as_often(self.take_left), _as_often(self.take_right), self.go_on()]
            if any(did):
                patience.renew()
                continue
            with self.meter.phase("wait"):
                if not rings.await_any(self.from_left.array, self.from_right.array, SPINS):
                    patience.sleep()


def _as_often(take: Callable[[], bool]) -> bool:
    """Take what an inbox holds, so that it is joined together; whether there was anything."""
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
        Knob("batch", 4096, "Arrivals that enter the chain together, at most.", 1, 1 << 20),
    )

    def unusable(self) -> str | None:
        """Say so where Numba has no wheel."""
        return without_numba()

    def prepare(self, job: Job, report: Report) -> None:
        """Compile the kernels, or load them from the cache."""
        from streamjoin.engines.kernels.sliding import rings

        report("compiling kernels")
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
    """Feeds both ends: what has expired for a run of tuples, then the run (section 4.4).

    Parameters
    ----------
    ranges : Ranges
        The input.
    left, right : Ring
        Where R and where S enters.
    """

    def __init__(self, ranges: Ranges, left: Ring, right: Ring) -> None:
        self._ranges, self._rings = ranges, (left, right)
        self._waiting: tuple[list[tuple[Kind, int]], ...] = ([], [])

    def add(self, r_rows: slice, s_rows: slice) -> None:
        """Take arrivals."""
        firsts = (self._ranges.r_first, self._ranges.s_first)
        for waiting, first, rows in zip(self._waiting, firsts, (r_rows, s_rows), strict=True):
            if rows.start < rows.stop:
                waiting += [(Kind.EXPIRED, int(first[rows.start])), (Kind.TUPLES, rows.stop)]

    def end(self) -> None:
        """Take note that nothing more arrives."""
        for waiting in self._waiting:
            waiting.append((Kind.END, 0))

    def send(self) -> bool:
        """Send as much as there is room for; whether that was all."""
        for waiting, ring in zip(self._waiting, self._rings, strict=True):
            while waiting and ring.put(*waiting[0]):
                del waiting[0]
        return not any(self._waiting)
