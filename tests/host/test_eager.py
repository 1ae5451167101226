"""What is particular to the eager joins: shares, tables, runs, replays, stamps."""

import itertools
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from streamjoin import oracle, run, verify
from streamjoin.engines import catalog
from streamjoin.engines.crew import Crew
from streamjoin.engines.intra import eager
from streamjoin.engines.job import Job
from streamjoin.engines.kernels.intra import merging, symmetric
from streamjoin.metrics import Meter
from streamjoin.tuples import Int64s, Stream
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import AllWindow, parse_window

ON_K = Predicate.parse(on="k")
EAGER = ("shj-jm", "shj-jb", "pmj-jm", "pmj-jb")
TOP = (1 << 32) - 1


def keyed(keys: Int64s, name: str, ts: Int64s | None = None) -> Stream:
    times = np.zeros(len(keys), dtype=np.int64) if ts is None else ts.astype(np.int64)
    return Stream({"k": keys.astype(np.uint32)}, times, name)


RNG = np.random.default_rng(11)
KEYS = {
    "one key": (np.full(150, 7), np.full(170, 7)),
    "unique": (np.arange(900), np.arange(900)[::-1]),
    "zipf": (np.minimum(RNG.zipf(1.6, 400), TOP), np.minimum(RNG.zipf(1.6, 500), TOP)),
    "100 duplicates": (np.arange(600) // 100, np.arange(700) // 100),
    "ends": (np.tile([0, TOP, 1, TOP - 1], 30), np.tile([TOP, 0], 40)),
    "one side empty": (np.arange(0), np.arange(50)),
}


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make small inputs take many batches and overflow the output."""
    monkeypatch.setattr(eager, "BATCH_ROWS", 64)
    monkeypatch.setattr(eager, "MIN_ROOM", 4)
    monkeypatch.setattr("streamjoin.engines.intra.window.MIN_ROOM", 8)
    monkeypatch.setattr("streamjoin.engines.intra.window.OUTPUT_PAIRS", 64)


def knobs_of(name: str) -> Iterator[dict[str, int]]:
    engine = catalog.get(name)
    values = {"group": (1, 2, 3, 5), "delta": (1, 20, 100), "physical_partitioning": (0, 1)}
    have = [knob.name for knob in engine.knobs]
    for chosen in itertools.product(*(values[knob] for knob in have)):
        yield dict(zip(have, chosen, strict=True))


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("name", EAGER)
def test_every_share_run_and_passing_finds_every_pair_once(name: str, keys: str) -> None:
    engine = catalog.get(name)
    r, s = keyed(KEYS[keys][0], "r"), keyed(KEYS[keys][1], "s")
    right = oracle.join(r, s, ON_K, AllWindow())
    for knobs, threads in itertools.product(knobs_of(name), (1, 2, 3, 5)):
        job = run.complete(engine, Job(r, s, ON_K, AllWindow(), threads=threads), knobs)
        verify.check(run.run(engine, job).pairs, right, f"{name} {knobs} {threads}")


@pytest.mark.parametrize(("threads", "group"), [(1, 1), (4, 2), (5, 2), (5, 5), (7, 3), (2, 9)])
def test_shares_cover_every_pair_of_tuples_once(threads: int, group: int) -> None:
    keys = np.concatenate([np.arange(50), RNG.integers(0, TOP, 50)]).astype(np.uint32)
    met = np.zeros((len(keys), len(keys)), dtype=np.int64)
    out = np.empty(len(keys) + 1, dtype=np.uint64)
    for share in eager.shares(threads, group):
        rows = []
        for divided in (False, True):
            side = eager.Side(keys, None, share, divided)
            cut = 0
            while not side.ended:  # in pieces, so that turns go on where they were
                cut = side.take(side.arrived(0), out, cut)
            rows.append((out[:cut] & np.uint64(TOP)).astype(np.int64))
        met[np.ix_(rows[0], rows[1])] += 1
    assert (np.diag(met) == 1).all()
    equal = keys[:, None] == keys[None, :]
    assert (met[equal] == 1).all()
    assert met.max() == 1


@pytest.mark.parametrize("name", EAGER)
def test_a_match_is_never_produced_before_its_later_tuple_arrives(name: str) -> None:
    ts = np.sort(RNG.integers(0, 30_000, 800))
    r, s = keyed(RNG.integers(0, 90, 800), "r", ts), keyed(RNG.integers(0, 90, 800), "s", ts[::1])
    engine = catalog.get(name)
    asked = Job(r, s, ON_K, parse_window("tumbling:10ms"), threads=2, arrival="replay")
    meter = Meter()
    job = run.complete(engine, asked, {})
    prepared = engine.prepare(job, lambda _: None)
    meter.start()
    engine.run(job, prepared, meter)
    meter.stop()
    pairs, produced_us = meter.pairs(), meter._produced_us()
    later = np.maximum(r.ts[pairs.r_rows], s.ts[pairs.s_rows]) - job.start_us
    assert len(pairs) > 0
    assert (produced_us >= later).all()
    verify.check(pairs, oracle.join(r, s, ON_K, job.window), name)


@pytest.mark.parametrize("name", ["shj-jm", "shj-jb"])
def test_a_symmetric_hash_join_gives_early_matches_before_the_window_ends(name: str) -> None:
    ts = np.concatenate([np.zeros(50, dtype=np.int64), [400_000]])
    r, s = keyed(np.arange(51), "r", ts), keyed(np.arange(51), "s", ts)
    engine = catalog.get(name)
    job = run.complete(engine, Job(r, s, ON_K, AllWindow(), arrival="replay"), {})
    curve = run.run(engine, job).metrics["progress"]
    assert next(time_ms for share, time_ms in curve if share >= 0.5) < 400 <= curve[-1][1]


def test_a_progressive_merge_join_gives_matches_of_a_run_before_the_window_ends() -> None:
    ts = np.concatenate([np.zeros(60, dtype=np.int64), [400_000]])
    r, s = keyed(np.arange(61), "r", ts), keyed(np.arange(61), "s", ts)
    engine = catalog.get("pmj-jm")
    job = run.complete(engine, Job(r, s, ON_K, AllWindow(), arrival="replay"), {"delta": 50})
    curve = run.run(engine, job).metrics["progress"]
    assert curve[0][1] < 400 <= curve[-1][1]


def test_nothing_arriving_for_long_is_slept_through() -> None:
    r, s = keyed(np.arange(2), "r", np.array([0, 300_000])), keyed(np.arange(2), "s")
    for name in EAGER:
        engine = catalog.get(name)
        job = run.complete(engine, Job(r, s, ON_K, AllWindow(), arrival="replay"), {})
        phases = run.run(engine, job).metrics["phases_ms"]
        assert phases["wait"] > 0.8 * sum(phases.values())


@pytest.mark.parametrize("name", [*EAGER, "npj", "prj", "mway", "mpass"])
def test_an_error_in_one_thread_ends_the_join_with_it_and_leaves_no_thread(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = catalog.get(name)
    ts = np.arange(2000)
    r, s = keyed(ts, "r", ts * 50), keyed(ts, "s", ts * 50)
    asked = Job(r, s, ON_K, AllWindow(), threads=3, arrival="replay")
    job = run.complete(engine, asked, {})
    prepared = engine.prepare(job, lambda _: None)
    before = threading.active_count()
    calls = itertools.count()

    from streamjoin.engines.kernels import hashing
    from streamjoin.engines.kernels.intra import radix

    kernel = {
        "npj": (hashing, "count"),
        "prj": (radix, "key_histogram"),
        "mway": (merging, "range_histogram"),
        "mpass": (merging, "range_histogram"),
    }.get(name, (symmetric, "take"))
    good = getattr(*kernel)

    def second_call_fails(*arguments: object) -> object:
        if next(calls):
            raise ArithmeticError("a worker died")
        return good(*arguments)

    monkeypatch.setattr(*kernel, second_call_fails)
    with pytest.raises(ArithmeticError, match="a worker died"):
        engine.run(job, prepared, Meter())
    assert threading.active_count() == before


def test_an_error_stops_threads_that_sleep() -> None:
    meter = Meter()
    meter.start()

    def work(number: int) -> None:
        if number:
            raise ArithmeticError("a worker died")
        crew.sleep_until_us(meter, 60e6)

    with pytest.raises(ArithmeticError, match="a worker died"), Crew(2) as crew:
        crew.each(work, range(2))
    assert meter.now_us() < 30e6


def test_more_threads_than_tuples_is_no_matter() -> None:
    r, s = keyed(np.array([1, 2]), "r"), keyed(np.array([2, 1]), "s")
    for name in (*EAGER, "npj", "prj", "mway", "mpass"):
        engine = catalog.get(name)
        job = run.complete(engine, Job(r, s, ON_K, AllWindow(), threads=64), {})
        assert sorted(zip(*_rows(run.run(engine, job)), strict=True)) == [(0, 1), (1, 0)]


def _rows(outcome: run.Outcome) -> tuple[list[int], list[int]]:
    return outcome.pairs.r_rows.tolist(), outcome.pairs.s_rows.tolist()
