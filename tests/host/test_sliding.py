"""What is particular to the sliding-window joins that scan: threads in any order, and their ends.

A case is named by its seed, which is printed where it fails; ``SEED=`` and ``CASES=1`` repeat it.
"""

import itertools
import os
import random
import sys
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
from tests.host import cases

from streamjoin import oracle, run, verify
from streamjoin.engines import catalog, crew
from streamjoin.engines.base import ORDERS, Engine, Job
from streamjoin.engines.crew import Crew, StoppedError
from streamjoin.engines.sliding import chain, scanning, store
from streamjoin.engines.sliding.handshake import HandshakeCore
from streamjoin.errors import InputError
from streamjoin.metrics import Meter
from streamjoin.tuples import Stream
from streamjoin.windows import AllWindow, CountWindow, TimeWindow, TumblingWindow, Window

CASES = int(os.environ.get("CASES", "200"))
SEED = int(os.environ.get("SEED", "0")) or int.from_bytes(os.urandom(4), "little")
CHAINS = ("llhj", "handshake")
PARALLEL = ("splitjoin", *CHAINS)
SCANNING = ("kang", *PARALLEL)

pytestmark = pytest.mark.timeout(120 + CASES)


@pytest.fixture
def _any_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have threads lose time wherever they look whether the run has ended."""
    chance = random.Random(SEED)
    good = Crew.check

    def dawdling(threads: Crew) -> None:
        draw = chance.random()
        if draw < 0.2:
            time.sleep(draw / 500)
        good(threads)

    monkeypatch.setattr(Crew, "check", dawdling)
    monkeypatch.setattr(store, "LEAST_SLOTS", 8)  # so that what is stored has to move


def stream_of(rng: np.random.Generator, source: str, rows: int) -> Stream:
    """A stream of one of the shapes that hurt."""
    shape = rng.choice(["spread", "rest", "bursts", "late"])
    ts = np.sort(rng.integers(0, 4 * rows + 1, rows))
    if shape == "rest":
        ts[:] = 0
    elif shape == "bursts":
        ts = np.sort(rng.choice(np.array([0, rows, 2 * rows, 3 * rows]), rows))
    elif shape == "late":
        ts[: rows // 2] = 0
    keys = rng.integers(0, rng.choice([1, 8, 300, 5000]), rows)
    return cases.stream(source, ts.tolist(), keys.tolist(), None, (rng.random(rows) < 0.1).tolist())


def window_of(rng: np.random.Generator, most: int) -> Window:
    """A window of any kind: of one tuple, uneven, longer than the input."""
    r, s = (int(x) for x in rng.choice([1, 2, 7, most // 3 + 1, most, 2 * most], 2))
    kind = rng.choice(["all", "tumbling", "count", "time"], p=[0.1, 0.1, 0.4, 0.4])
    if kind == "all":
        return AllWindow()
    if kind == "tumbling":
        return TumblingWindow(r)
    return CountWindow(r, s) if kind == "count" else TimeWindow(r, s)


def case_of(seed: int, engine: Engine) -> Job:
    """One random job; all of it follows from the seed."""
    rng = np.random.default_rng(seed)
    most = int(rng.choice([30, 200, 1500]))
    r, s = (stream_of(rng, source, int(rng.integers(0, most))) for source in ("r", "s"))
    predicate = cases.PREDICATES[str(rng.choice(sorted(cases.PREDICATES)))]
    orders = ORDERS[: ORDERS.index(engine.capabilities.order) + 1]
    asked = Job(
        r,
        s,
        predicate,
        window_of(rng, most),
        threads=int(rng.integers(1, 6, endpoint=True)),
        order=str(rng.choice(orders)),
        arrival=str(rng.choice(["instant", "replay"], p=[0.8, 0.2])),
        speedup=float(rng.choice([1.0, 0.3])),
    )
    return run.settle(engine, asked, {"batch": int(rng.choice([1, 3, 17, 256, 4096]))})


@pytest.mark.usefixtures("_any_schedule")
@pytest.mark.parametrize("name", SCANNING)
def test_random_joins_under_random_schedules_are_as_the_oracle_says(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    engine, pairs = catalog.get(name), 0
    for number in range(CASES):
        seed = SEED + number
        job = case_of(seed, engine)
        try:
            outcome = run.run(engine, job)
            right = oracle.join(job.r, job.s, job.predicate, job.window)
            verify.check(outcome.pairs, right, name)
            verify.check_order(outcome.pairs, job, engine.promise(job))
        except Exception as error:
            raise AssertionError(
                f"SEED={seed} CASES=1: {name}, {job.r.rows} x {job.s.rows}, {job.window.text}, "
                f"{job.predicate.text}, {job.threads} threads, {job.arrival}, order {job.order}, "
                f"{dict(job.knobs)}: {error}"
            ) from error
        pairs += len(right)
    with capsys.disabled():
        sys.stdout.write(f" {name}: {CASES} cases, {pairs} pairs, SEED={SEED} ")
    assert pairs > 0 or CASES < 5


def dense(rows: int) -> tuple[Stream, Stream]:
    """Two streams of which every pair joins."""
    ts = list(range(rows))
    return cases.stream("r", ts, [1] * rows), cases.stream("s", ts, [1] * rows)


@pytest.mark.parametrize("name", SCANNING)
def test_a_full_output_and_a_call_that_is_over_are_taken_up_where_they_were(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "OUTPUT_PAIRS", 700)
    monkeypatch.setattr(scanning, "CALL_COMPARISONS", 1)
    engine, (r, s) = catalog.get(name), dense(1200)
    right = oracle.join(r, s, cases.EQUI, CountWindow(1100, 900))
    for order in ORDERS[: ORDERS.index(engine.capabilities.order) + 1]:
        asked = Job(r, s, cases.EQUI, CountWindow(1100, 900), threads=2, order=order)
        outcome = run.run(engine, run.settle(engine, asked, {}))
        verify.check(outcome.pairs, right, name)
        verify.check_order(outcome.pairs, outcome.job, engine.promise(outcome.job))


@pytest.mark.parametrize("name", PARALLEL)
def test_more_threads_than_tuples_is_no_matter(name: str) -> None:
    engine, (r, s) = catalog.get(name), dense(2)
    job = run.settle(engine, Job(r, s, cases.EQUI, CountWindow(1), threads=6), {})
    right = oracle.join(r, s, cases.EQUI, CountWindow(1))
    verify.check(run.run(engine, job).pairs, right, name)


def endless(name: str) -> tuple[Engine, Job]:
    """A join that arrives for an hour."""
    engine, rows = catalog.get(name), 4000
    ts = np.linspace(0, 3.6e9, rows).astype(np.int64)
    ts[: rows // 2] = 0
    r, s = (cases.stream(source, ts.tolist(), [1] * rows) for source in ("r", "s"))
    asked = Job(r, s, cases.EQUI, CountWindow(50), threads=3, arrival="replay")
    job = run.settle(engine, asked, {})
    engine.prepare(job, lambda _: None)
    return engine, job


def check_ends(
    engine: Engine, job: Job, error: type[BaseException], message: str | None = None
) -> None:
    before = threading.active_count()
    meter = Meter()
    meter.start()
    try:
        with pytest.raises(error, match=message):
            engine.run(job, meter)
    finally:
        meter.stop()
    assert threading.active_count() == before


@pytest.mark.timeout(60)
@pytest.mark.parametrize("deaths", [0, 1, 5])
@pytest.mark.parametrize("name", SCANNING)
def test_an_error_in_one_thread_ends_the_join_with_it_and_leaves_no_thread(
    name: str, deaths: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, job = endless(name)
    calls, good = itertools.count(), scanning.Scanner.more

    def dies(scanner: scanning.Scanner) -> object:
        if next(calls) >= deaths:
            raise ArithmeticError("a worker died")
        return good(scanner)

    monkeypatch.setattr(scanning.Scanner, "more", dies)
    monkeypatch.setattr(scanning, "CALL_COMPARISONS", 1)
    check_ends(engine, job, ArithmeticError, "a worker died")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", PARALLEL)
def test_an_error_where_results_are_taken_ends_the_join_with_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, job = endless(name)

    def full(*_: object) -> None:
        raise MemoryError("no room for results")

    monkeypatch.setattr(Meter, "emit", full)
    check_ends(engine, job, MemoryError, "no room for results")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", PARALLEL)
def test_ctrl_c_ends_all_threads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, job = endless(name)
    emitted = threading.Event()
    good = Meter.emit

    def emit(meter: Meter, *pairs: np.ndarray) -> None:
        good(meter, *pairs)
        emitted.set()

    def interrupted(_: object) -> None:
        assert emitted.wait(30)
        raise KeyboardInterrupt

    monkeypatch.setattr(Meter, "emit", emit)
    monkeypatch.setattr(crew, "_first_exception", interrupted)
    check_ends(engine, job, KeyboardInterrupt)


def test_sleeping_helpers_end_with_the_run() -> None:
    meter = Meter()
    meter.start()
    try:
        with Crew(1) as threads:
            threads.rest_until_us(meter, 10)
            threads._stopping.set()
            with pytest.raises(StoppedError):
                threads.rest_until_us(meter, 3.6e9)
    finally:
        meter.stop()


@pytest.mark.parametrize("punctuation", [0, 1, 2, 7, 5000])
def test_a_collector_takes_core_by_core_up_to_each_punctuation(punctuation: int) -> None:
    engine, (r, s) = catalog.get("splitjoin"), dense(60)
    asked = Job(r, s, cases.EQUI, CountWindow(40), threads=3, order="outer")
    outcome = run.run(engine, run.settle(engine, asked, {"punctuation": punctuation}))
    pairs = outcome.pairs
    verify.check(pairs, oracle.join(r, s, cases.EQUI, CountWindow(40)), "splitjoin")
    later_is_s = pairs.s_rows >= pairs.r_rows  # times are rows, and R comes first
    later = np.where(
        later_is_s, 2 * pairs.s_rows.astype(np.int64) + 1, 2 * pairs.r_rows.astype(np.int64)
    )
    stored = np.where(later_is_s, pairs.r_rows, pairs.s_rows).astype(np.int64)
    slot, core = stored // 3, stored % 3
    interval = slot // punctuation if punctuation else np.zeros_like(slot)
    places = np.stack([later, interval, core, slot])
    assert np.array_equal(np.lexsort(places[::-1]), np.arange(len(pairs)))


def test_an_interval_that_breaks_the_order_asked_for_is_refused() -> None:
    engine, (r, s) = catalog.get("splitjoin"), dense(2)
    asked = Job(r, s, cases.EQUI, CountWindow(1), order="inner")
    with pytest.raises(InputError, match="order inner needs knob punctuation 0 or 1, not 2"):
        run.settle(engine, asked, {"punctuation": 2})


@pytest.mark.parametrize("order", ORDERS)
def test_splitjoin_tells_the_latency_of_its_stages_and_of_processing(order: str) -> None:
    engine, (r, s) = catalog.get("splitjoin"), dense(300)
    asked = Job(r, s, cases.EQUI, CountWindow(40), threads=2, order=order, arrival="replay")
    metrics = run.run(engine, run.settle(engine, asked, {})).metrics
    assert set(metrics["stages_us"]) == {"distribution", "execution", "collection"}
    assert all(stage >= 0 for stage in metrics["stages_us"].values())
    processing, visiting = metrics["processing_latency_us"], metrics["latency_us"]
    assert 0 < processing["p50"] <= processing["p95"] <= processing["p99"] <= processing["max"]
    assert visiting["max"] <= processing["max"]


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
    return [core.take_left, core.take_right, core.go_on]


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_is_exact_under_every_order_of_its_steps(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = catalog.get(name)
    for number in range(CASES):
        rng = np.random.default_rng(SEED + number)
        monkeypatch.setattr(chain, "RING_MESSAGES", int(rng.integers(1, 5)))
        monkeypatch.setattr(store, "LEAST_SLOTS", 1)
        r, s = (stream_of(rng, source, int(rng.integers(1, 40))) for source in ("r", "s"))
        threads = int(rng.integers(1, 6, endpoint=True))
        asked = Job(r, s, cases.EQUI, window_of(rng, 12), threads=threads)
        knobs = {"move": int(rng.integers(1, 4))} if name == "handshake" else {}
        stepped = SteppedChain(name, run.settle(engine, asked, knobs))
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
    r, s = dense(3)
    asked = Job(r, s, cases.EQUI, CountWindow(3), threads=2)
    stepped = SteppedChain("handshake", run.settle(catalog.get("handshake"), asked, {"move": 1}))
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
    assert left.go_on()  # r0 is on its way to the right ...
    assert right.go_on()  # ... and s0 on its way to the left: figure 7
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
    assert right.go_on()  # s0 is sent, a copy kept
    assert left.take_right()  # s0 meets r0 here, and is acknowledged
    assert stepped.pairs == {(0, 0)}
    assert left.go_on()  # r0 goes right, behind the acknowledgment: figure 8 (b)
    assert right.take_left()
    assert right.s_begin == 1
    assert right.take_left()
    assert (right.r_begin, right.r_end) == (0, 1)
    stepped.end()
    assert stepped.pairs == {(0, 0)}


def test_without_copies_tuples_would_miss_each_other() -> None:
    stepped, (left, right) = two_cores()
    assert left.go_on()
    assert right.go_on()
    right.s_begin = right.s_sent  # one-phase forwarding: what is sent is gone
    stepped.end()
    assert stepped.pairs == set()


def test_tuples_wait_with_the_acknowledgment_they_owe() -> None:
    r, s = dense(40)
    asked = Job(r, s, cases.EQUI, CountWindow(40), threads=2)
    stepped = SteppedChain("handshake", run.settle(catalog.get("handshake"), asked, {"move": 1}))
    left, right = stepped.cores
    for row in range(20):  # r tuples fill the ring between the cores
        stepped.driver.add(slice(row, row + 1), slice(0, int(row == 0)))
        stepped.driver.send()
        steps = [left.take_left, left.take_left, left.go_on]
        assert sum(step() for step in steps) > 0
    assert right.take_right()
    assert right.take_right()
    assert right.go_on()
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
    r, s = dense(600)
    asked = Job(r, s, cases.EQUI, CountWindow(400), threads=4)
    stepped = SteppedChain("handshake", run.settle(catalog.get("handshake"), asked, {"move": 1}))
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
