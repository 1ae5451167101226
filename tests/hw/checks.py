"""Stream endpoints for Amaranth's simulator that also check the stream's rules."""

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from amaranth.hdl import Value
from amaranth.sim import Simulator

CLOCK_S = 1e-6


def spread(*axes: Sequence[Any], one_of: int, rest: int = 0) -> list[Any]:
    """Combine the values of axes; one of so many combinations is always run, the others are slow.

    Whose numbers along the axes add up to ``rest`` modulo ``one_of`` is always run: every value
    meets as many of the other axes' values as there are cases for. A tuple is several parameters.
    """
    cases = []
    for numbered in itertools.product(*(list(enumerate(axis)) for axis in axes)):
        values = [
            value
            for _, each in numbered
            for value in (each if isinstance(each, tuple) else (each,))
        ]
        is_slow = sum(number for number, _ in numbered) % one_of != rest
        marks = [pytest.mark.slow] if is_slow else []
        cases.append(pytest.param(*values, id="-".join(map(str, values)), marks=marks))
    return cases


def simulate(component: Any, *testbenches: Callable[[Any], Any], **processes: Any) -> None:
    """Run test benches on a component until all have ended.

    ``processes`` run beside them and do not keep the simulation going.
    """
    simulator = Simulator(component)
    simulator.add_clock(CLOCK_S)
    for testbench in testbenches:
        simulator.add_testbench(testbench)
    for process in processes.values():
        simulator.add_testbench(process, background=True)
    simulator.run()


class Kept:
    """A component in a simulator that is made once: making it takes longer than most inputs.

    Parameters
    ----------
    component : Elaboratable
        What is simulated.
    testbenches : int
        How many run at a time.
    """

    def __init__(self, component: Any, testbenches: int) -> None:
        self.component = component
        self._testbenches: Sequence[Callable[[Any], Any]] = ()
        self._state = "new"
        self._simulator = Simulator(component)
        self._simulator.add_clock(CLOCK_S)
        for k in range(testbenches):
            self._simulator.add_testbench(self._testbench(k))

    def _testbench(self, k: int) -> Callable[[Any], Any]:
        async def testbench(ctx: Any) -> None:
            await self._testbenches[k](ctx)

        return testbench

    def simulate(self, *testbenches: Callable[[Any], Any]) -> None:
        """Run test benches on the component as it is at first until all have ended."""
        assert self._state != "running", "a run before this one failed"
        if self._state == "ended":
            self._simulator.reset()
        self._state = "running"
        self._testbenches = testbenches
        self._simulator.run()
        self._state = "ended"


def pauses(seed: int, share: float) -> Iterator[bool]:
    """Draw whether to pause, cycle by cycle."""
    rng = random.Random(seed)
    while True:
        yield rng.random() < share


async def give(ctx: Any, stream: Any, payloads: list[Any], idle: Iterator[bool]) -> None:
    """Offer payloads one after another, each until it is taken."""
    for payload in payloads:
        while next(idle):
            await ctx.tick()
        ctx.set(stream.payload, payload)
        ctx.set(stream.valid, 1)
        await ctx.tick().until(stream.ready)
        ctx.set(stream.valid, 0)


async def take(
    ctx: Any, stream: Any, count: int, stalls: Iterator[bool], *, patience: int = 200
) -> list[Any]:
    """Take a count of payloads; fails if the next does not arrive within cycles (``patience``).

    Checks that a payload offered stays until it is taken.
    """
    taken: list[Any] = []
    kept = None
    bits = bits_of(stream)
    waited = 0
    while len(taken) < count and waited < patience:
        waited += 1
        ready = not next(stalls)
        ctx.set(stream.ready, ready)
        _, _, valid, payload = await ctx.tick().sample(stream.valid, bits)
        if valid:
            assert kept in (None, payload), f"an offered payload changed: {kept:#x}, {payload:#x}"
            kept = None if ready else payload
            if ready:
                taken.append(payload)
                waited = 0
        else:
            assert kept is None, "an offered payload was withdrawn"
    ctx.set(stream.ready, 0)
    assert len(taken) == count, f"{len(taken)} payloads arrived, not {count}"
    return taken


async def nothing_more(ctx: Any, stream: Any, cycles: int = 30) -> None:
    """See that a stream offers nothing for some cycles."""
    for _ in range(cycles):
        _, _, valid = await ctx.tick().sample(stream.valid)
        assert not valid, "a payload too many"


def bits_of(stream: Any) -> Value:
    """Return a stream's payload as a plain number."""
    return Value.cast(stream.payload)
