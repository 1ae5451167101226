"""Joins over a chain of cores, step by step: every order of steps, and the races of the paper.

A case is named by its seed, which is printed where it fails; ``SEED=`` and ``CASES=1`` repeat it.
"""

import os
from collections.abc import Callable

import numpy as np
import pytest
from tests.host import cases

from streamjoin import oracle, run, verify
from streamjoin.engines import catalog
from streamjoin.engines.crew import Crew
from streamjoin.engines.job import Job
from streamjoin.engines.sliding import chain, scanning, store
from streamjoin.engines.sliding.handshake import HandshakeCore
from streamjoin.metrics import Meter
from streamjoin_common.language.windows import CountWindow

CASES = int(os.environ.get("CASES", "25"))
SEED = int(os.environ.get("SEED", "0")) or int.from_bytes(os.urandom(4), "little")
CHAINS = ("llhj", "handshake")

pytestmark = pytest.mark.timeout(120 + CASES)


class SteppedChain:
    """A chain without threads: each step of each core, and of the driver, when the test says so."""

    def __init__(self, name: str, job: Job) -> None:
        self.meter = Meter()
        self.crew = Crew(1)  # starts no thread before it is given work
        self.ranges = scanning.Ranges.of(job)
        engine = catalog.get(name)
        assert isinstance(engine, chain.ChainEngine)
        self.cores = engine.cores(job, self.ranges, self.crew, self.meter)
        ends = self.cores[0].from_left, self.cores[-1].from_right
        self.driver = chain.Driver(self.ranges, *ends)
        self.job = job

    @property
    def pairs(self) -> set[tuple[int, int]]:
        pairs = self.meter.pairs()
        assert len(pairs) == len({*zip(pairs.r_rows.tolist(), pairs.s_rows.tolist(), strict=True)})
        return {*zip(pairs.r_rows.tolist(), pairs.s_rows.tolist(), strict=True)}

    def end(self) -> None:
        self.driver.end()
        while not (self.driver.send() and all(core.ended for core in self.cores)):
            did = [self.driver.send()]
            did += [step() for core in self.cores for step in steps_of(core)]
            assert any(did), "the chain stands still"


def steps_of(core: chain.ChainCore) -> list[Callable[[], bool]]:
    return [core.take_left, core.take_right, core.forward]


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_is_exact_under_every_order_of_its_steps(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = catalog.get(name)
    for number in range(CASES):
        rng = np.random.default_rng(SEED + number)
        monkeypatch.setattr(chain, "RING_MESSAGES", int(rng.integers(1, 5)))
        monkeypatch.setattr(store, "MIN_SLOTS", 1)
        r, s = (cases.stream_of(rng, source, int(rng.integers(1, 40))) for source in ("r", "s"))
        threads = int(rng.integers(1, 6, endpoint=True))
        asked = Job(r, s, cases.EQUI, cases.window_of(rng, 12), threads=threads)
        knobs = {"move": int(rng.integers(1, 4))} if name == "handshake" else {}
        stepped = SteppedChain(name, run.complete(engine, asked, knobs))
        r_at = s_at = 0
        # Arrivals come row by row; how often each core has a turn is skewed, differently each time.
        weights = rng.random(threads) ** 3
        while r_at < r.rows or s_at < s.rows:
            before_s = np.searchsorted(s.ts, r.ts[r_at]) if r_at < r.rows else s.rows + 1
            if before_s <= s_at:
                stepped.driver.add(slice(r_at, r_at + 1), slice(s_at, s_at))
                r_at += 1
            else:
                stepped.driver.add(slice(r_at, r_at), slice(s_at, s_at + 1))
                s_at += 1
            for _ in range(int(rng.integers(0, 6))):
                stepped.driver.send()
                core = stepped.cores[int(rng.choice(threads, p=weights / weights.sum()))]
                steps_of(core)[int(rng.integers(3))]()
        stepped.end()
        right = oracle.join(r, s, cases.EQUI, asked.window)
        try:
            verify.check(stepped.meter.pairs(), right, name)
        except Exception as error:
            raise AssertionError(
                f"SEED={SEED + number} CASES=1: {threads} cores: {error}"
            ) from error


def two_cores() -> tuple[SteppedChain, list[HandshakeCore]]:
    """The situation before figure 7: R tuple 0 on the left core, S tuple 0 on the right one."""
    r, s = cases.dense(3)
    asked = Job(r, s, cases.EQUI, CountWindow(3), threads=2)
    stepped = SteppedChain("handshake", run.complete(catalog.get("handshake"), asked, {"move": 1}))
    cores = [core for core in stepped.cores if isinstance(core, HandshakeCore)]
    stepped.driver.add(slice(0, 1), slice(0, 1))
    assert stepped.driver.send()
    left, right = cores
    for step in (left.take_left, left.take_left, right.take_right, right.take_right):
        assert step()
    assert stepped.pairs == set()
    return stepped, cores


def test_tuples_that_are_in_the_channels_at_the_same_time_meet_on_the_right_core() -> None:
    stepped, (left, right) = two_cores()
    assert left.forward()  # r0 is on its way to the right ...
    assert right.forward()  # ... and s0 on its way to the left: figure 7
    assert (left.r_begin, left.r_end) == (1, 1)
    assert (right.s_begin, right.s_sent, right.s_end) == (0, 1, 1)  # a copy is kept: figure 8 (a)
    assert left.take_right()
    assert stepped.pairs == set()  # r0 has left: they do not meet here
    assert right.take_left()
    assert stepped.pairs == {(0, 0)}  # it met the copy
    assert right.take_left()
    assert (right.s_begin, right.s_end) == (1, 1)  # acknowledged, the copy goes: figure 8 (c)
    stepped.end()
    assert stepped.pairs == {(0, 0)}


def test_a_tuple_forwarded_behind_an_acknowledgment_does_not_meet_the_copy_again() -> None:
    stepped, (left, right) = two_cores()
    assert right.forward()  # s0 is sent, a copy kept
    assert left.take_right()  # s0 meets r0 here, and is acknowledged
    assert stepped.pairs == {(0, 0)}
    assert left.forward()  # r0 goes right, behind the acknowledgment: figure 8 (b)
    assert right.take_left()
    assert right.s_begin == 1
    assert right.take_left()
    assert (right.r_begin, right.r_end) == (0, 1)
    stepped.end()
    assert stepped.pairs == {(0, 0)}


def test_without_copies_tuples_would_miss_each_other() -> None:
    stepped, (left, right) = two_cores()
    assert left.forward()
    assert right.forward()
    right.s_begin = right.s_sent  # one-phase forwarding: what is sent is gone
    stepped.end()
    assert stepped.pairs == set()


def test_tuples_wait_with_the_acknowledgment_they_owe() -> None:
    r, s = cases.dense(40)
    asked = Job(r, s, cases.EQUI, CountWindow(40), threads=2)
    stepped = SteppedChain("handshake", run.complete(catalog.get("handshake"), asked, {"move": 1}))
    left, right = stepped.cores
    for row in range(20):  # r tuples fill the ring between the cores
        stepped.driver.add(slice(row, row + 1), slice(0, int(row == 0)))
        stepped.driver.send()
        steps = [left.take_left, left.take_left, left.forward]
        assert sum(step() for step in steps) > 0
    assert right.take_right()
    assert right.take_right()
    assert right.forward()
    while left.to_right is not None and left.to_right.has_room:
        left.to_right.put(chain.Kind.EXPIRED, 0)
    assert not left.take_right()  # s0 is there, room for its acknowledgment is not
    assert right.take_left()
    assert left.take_right()
    stepped.end()
    verify.check(
        stepped.meter.pairs(),
        oracle.join(r.slice(0, 20), s.slice(0, 1), cases.EQUI, asked.window),
        "handshake",
    )


def test_segments_of_a_chain_are_balanced_by_forwarding() -> None:
    r, s = cases.dense(600)
    asked = Job(r, s, cases.EQUI, CountWindow(400), threads=4)
    stepped = SteppedChain("handshake", run.complete(catalog.get("handshake"), asked, {"move": 1}))
    for row in range(600):
        stepped.driver.add(slice(row, row + 1), slice(row, row + 1))
        while not stepped.driver.send() or any(
            step() for core in stepped.cores for step in steps_of(core)
        ):
            pass
    lengths = [
        (core.r_end - core.r_begin, core.s_end - core.s_sent)
        for core in stepped.cores
        if isinstance(core, HandshakeCore)
    ]
    assert np.abs(np.array(lengths) - 100).max() <= 4
    stepped.end()
    verify.check(stepped.meter.pairs(), oracle.join(r, s, cases.EQUI, asked.window), "handshake")


def test_a_ring_keeps_order_between_two_threads_and_refuses_when_full() -> None:
    ring, count = chain.Ring(), 20_000
    for row in range(chain.RING_MESSAGES):
        assert ring.has_room
        assert ring.put(chain.Kind.TUPLES, row)
    assert not ring.has_room
    assert not ring.put(chain.Kind.TUPLES, 99)
    assert [ring.take() for _ in range(chain.RING_MESSAGES)] == [
        (chain.Kind.TUPLES, row) for row in range(chain.RING_MESSAGES)
    ]
    assert ring.take() is None
    taken: list[int] = []

    def send() -> None:
        for row in range(count):
            while not ring.put(chain.Kind.END, row):
                threads.idle(1e-5)

    def receive() -> None:
        while len(taken) < count:
            message = ring.take()
            if message is None:
                threads.idle(1e-5)
            else:
                taken.append(message[1])

    with Crew(2) as threads:
        threads.each(lambda task: task(), [send, receive])
    assert taken == list(range(count))
