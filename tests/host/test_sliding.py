"""What is particular to the sliding-window joins that scan: threads in any order, and their ends.

A case is named by its seed, which is printed where it fails; ``SEED=`` and ``CASES=1`` repeat it.
"""

import itertools
import os
import random
import sys
import threading
import time

import numpy as np
import pytest
from tests.host import cases

from streamjoin import oracle, run, verify
from streamjoin.engines import catalog, crew
from streamjoin.engines.base import ORDERS, Engine
from streamjoin.engines.crew import Crew, StoppedError
from streamjoin.engines.job import Job
from streamjoin.engines.sliding import scanning, splitjoin, store
from streamjoin.errors import InputError, TooLargeError
from streamjoin.metrics import Meter
from streamjoin_common.language.windows import CountWindow

CASES = int(os.environ.get("CASES", "25"))
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
    monkeypatch.setattr(store, "MIN_SLOTS", 8)  # so that what is stored has to move


def case_of(seed: int, engine: Engine) -> Job:
    """One random job; all of it follows from the seed."""
    rng = np.random.default_rng(seed)
    max_rows = int(rng.choice([30, 200, 1500]))
    r, s = (cases.stream_of(rng, source, int(rng.integers(0, max_rows))) for source in ("r", "s"))
    predicate = cases.PREDICATES[str(rng.choice(sorted(cases.PREDICATES)))]
    orders = ORDERS[: ORDERS.index(engine.capabilities.order) + 1]
    asked = Job(
        r,
        s,
        predicate,
        cases.window_of(rng, max_rows),
        threads=int(rng.integers(1, 6, endpoint=True)),
        order=str(rng.choice(orders)),
        arrival=str(rng.choice(["instant", "replay"], p=[0.8, 0.2])),
        speedup=float(rng.choice([1.0, 0.3])),
    )
    knobs: dict[str, int | str] = {"batch": int(rng.choice([1, 3, 17, 256, 4096]))}
    if any(knob.name == "simd" for knob in engine.knobs):
        knobs["simd"] = int(rng.integers(2))
    return run.complete(engine, asked, knobs)


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


@pytest.mark.parametrize("name", SCANNING)
def test_a_full_output_and_a_call_that_is_over_are_taken_up_where_they_were(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "OUTPUT_PAIRS", 700)
    monkeypatch.setattr(scanning, "CALL_COMPARISONS", 1)
    engine, (r, s) = catalog.get(name), cases.dense(1200)
    right = oracle.join(r, s, cases.EQUI, CountWindow(1100, 900))
    for order in ORDERS[: ORDERS.index(engine.capabilities.order) + 1]:
        asked = Job(r, s, cases.EQUI, CountWindow(1100, 900), threads=2, order=order)
        outcome = run.run(engine, run.complete(engine, asked, {}))
        verify.check(outcome.pairs, right, name)
        verify.check_order(outcome.pairs, outcome.job, engine.promise(outcome.job))


@pytest.mark.parametrize("name", PARALLEL)
def test_more_threads_than_tuples_is_no_matter(name: str) -> None:
    engine, (r, s) = catalog.get(name), cases.dense(2)
    job = run.complete(engine, Job(r, s, cases.EQUI, CountWindow(1), threads=6), {})
    right = oracle.join(r, s, cases.EQUI, CountWindow(1))
    verify.check(run.run(engine, job).pairs, right, name)


def test_results_that_wait_for_their_order_count_before_they_are_handed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine, (r, s) = catalog.get("splitjoin"), cases.dense(2000)
    asked = Job(r, s, cases.EQUI, CountWindow(2000), threads=2, order="outer")
    job = run.complete(engine, asked, {"batch": 1 << 20})
    monkeypatch.setattr(run.estimate, "check_fits", lambda *_: 500_000)
    monkeypatch.setattr(splitjoin.Collector, "_finish", lambda *_: pytest.fail("all were made"))
    with pytest.raises(TooLargeError, match=r"more than 5e\+05"):
        run.run(engine, job)


def endless(name: str) -> tuple[Engine, Job]:
    """A join that arrives for an hour."""
    engine, rows = catalog.get(name), 4000
    ts = np.linspace(0, 3.6e9, rows).astype(np.int64)
    ts[: rows // 2] = 0
    r, s = (cases.stream(source, ts.tolist(), [1] * rows) for source in ("r", "s"))
    asked = Job(r, s, cases.EQUI, CountWindow(50), threads=3, arrival="replay")
    job = run.complete(engine, asked, {})
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
            engine.run(job, None, meter)
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
    engine, (r, s) = catalog.get("splitjoin"), cases.dense(60)
    asked = Job(r, s, cases.EQUI, CountWindow(40), threads=3, order="outer")
    outcome = run.run(engine, run.complete(engine, asked, {"punctuation": punctuation}))
    pairs = outcome.pairs
    verify.check(pairs, oracle.join(r, s, cases.EQUI, CountWindow(40)), "splitjoin")
    later_is_s = pairs.s_rows >= pairs.r_rows  # times are rows, and R comes first
    later = np.where(
        later_is_s, 2 * pairs.s_rows.astype(np.int64) + 1, 2 * pairs.r_rows.astype(np.int64)
    )
    stored = np.where(later_is_s, pairs.r_rows, pairs.s_rows).astype(np.int64)
    slot, core = stored // 3, stored % 3
    interval = slot // punctuation if punctuation else np.zeros_like(slot)
    order = np.stack([later, interval, core, slot])
    assert np.array_equal(np.lexsort(order[::-1]), np.arange(len(pairs)))


def test_an_interval_that_breaks_the_order_asked_for_is_refused() -> None:
    engine, (r, s) = catalog.get("splitjoin"), cases.dense(2)
    asked = Job(r, s, cases.EQUI, CountWindow(1), order="inner")
    with pytest.raises(InputError, match="order inner needs knob punctuation 0 or 1, not 2"):
        run.complete(engine, asked, {"punctuation": 2})


@pytest.mark.parametrize("order", ORDERS)
def test_splitjoin_tells_the_latency_of_its_stages_and_of_processing(order: str) -> None:
    engine, (r, s) = catalog.get("splitjoin"), cases.dense(300)
    asked = Job(r, s, cases.EQUI, CountWindow(40), threads=2, order=order, arrival="replay")
    metrics = run.run(engine, run.complete(engine, asked, {})).metrics
    assert set(metrics["stages_us"]) == {"distribution", "execution", "collection"}
    assert all(stage >= 0 for stage in metrics["stages_us"].values())
    processing, visiting = metrics["processing_latency_us"], metrics["latency_us"]
    assert 0 < processing["p50"] <= processing["p95"] <= processing["p99"] <= processing["max"]
    assert visiting["max"] <= processing["max"]
