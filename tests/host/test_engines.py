"""One suite over every engine in the catalog, by what it declares."""

import itertools
import os
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.host import cases

from streamjoin import oracle, run, verify
from streamjoin.engines import catalog
from streamjoin.engines.base import ORDERS, Engine
from streamjoin.engines.job import Job
from streamjoin.errors import InputError, UnsupportedError
from streamjoin.metrics import PHASES
from streamjoin.tuples import Stream
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import CountWindow, TimeWindow, Window, parse_window

NAMES = os.environ["ENGINES"].split(",") if os.environ.get("ENGINES") else catalog.names()
SPARK = [name for name in NAMES if catalog.get(name).capabilities.platform == "spark"]
CASES = {case.name: case for case in cases.hard_cases()}
pytestmark = pytest.mark.timeout(600)  # the first use of a design builds its model


@pytest.fixture(params=NAMES)
def engine(request: pytest.FixtureRequest) -> Engine:
    usable = catalog.get(request.param)
    assert usable.unusable() is None, "make setup installs what every engine needs"
    if request.param in SPARK:
        request.getfixturevalue("session")  # one for all tests: jobs run in what is there
    return usable


def outcome_of(
    engine: Engine, r: Stream, s: Stream, predicate: Predicate, window: Window, **how: object
) -> run.Outcome:
    knobs = {**cases.SMALL_KNOBS.get(engine.name, {}), **how.pop("knobs", {})}  # type: ignore[dict-item]
    job = run.complete(engine, Job(r, s, predicate, window, **how), knobs)  # type: ignore[arg-type]
    return run.run(engine, job)


def check(
    engine: Engine, r: Stream, s: Stream, predicate: Predicate, window: Window, **how: object
) -> None:
    outcome = outcome_of(engine, r, s, predicate, window, **how)
    verify.check(outcome.pairs, oracle.join(r, s, predicate, window), engine.name)
    promise = outcome.metrics["order"]
    assert promise == engine.promise(outcome.job)
    assert ORDERS.index(outcome.job.order) <= ORDERS.index(promise)
    verify.check_order(outcome.pairs, outcome.job, promise)


def held(engine: Engine, window: Window, r: Stream, s: Stream) -> bool:
    """Whether the small design can hold a window of these streams at all."""
    if engine.capabilities.platform != "fpga":
        return True
    if isinstance(window, TimeWindow):
        return all(
            np.all(
                stream.ts[cases.FPGA_CAPACITY :] >= stream.ts[: -cases.FPGA_CAPACITY] + length_us
            )
            for stream, length_us in ((r, window.r_us), (s, window.s_us))
        )
    if not isinstance(window, CountWindow):
        return True
    low, high = sorted((window.r_tuples, window.s_tuples))
    return high <= 4 * min(low, 3)


def family(engine: Engine) -> str:
    """The package of an engine's module, whose engines share most of what can be wrong."""
    return type(engine).__module__.rpartition(".")[0]


RELATED = Counter(family(catalog.get(name)) for name in NAMES)


def everything(engine: Engine, case: str) -> list[tuple[Predicate, Window]]:
    """Each predicate with each window, as far as the engine takes them and can hold the input."""
    inputs = CASES[case]
    return [
        (predicate, window)
        for predicate, window in itertools.product(
            cases.PREDICATES.values(), cases.windows_of(engine)
        )
        if cases.supports(engine, predicate, window) and held(engine, window, inputs.r, inputs.s)
    ]


def spread(engine: Engine, case: str) -> list[tuple[Predicate, Window]]:
    """Every predicate and every window of :func:`everything` at least once.

    Each input pairs them otherwise than the next, and each engine than the next in the catalog,
    which is mostly of its family: a large one meets everything.
    """
    whole = everything(engine, case)
    predicates, windows = (list(dict.fromkeys(each)) for each in zip(*whole, strict=True))
    turn = list(CASES).index(case) + NAMES.index(engine.name)
    if engine.name in SPARK:  # a job takes a second: one, and a window for a row of inputs
        return [(predicates[turn % len(predicates)], windows[turn // 3 % len(windows)])]
    if engine.capabilities.platform == "sql":  # opening a database takes 40 ms
        windows, turn = windows[turn % 3 :: 3], turn // 3
    elif RELATED[family(engine)] == 1:
        return whole
    return [
        (predicates[(turn + step) % len(predicates)], windows[step % len(windows)])
        for step in range(max(len(predicates), len(windows)))
    ]


@pytest.mark.parametrize("case", CASES)
def test_every_engine_gives_the_oracles_result_on_hard_cases(engine: Engine, case: str) -> None:
    for predicate, window in spread(engine, case):
        check(engine, CASES[case].r, CASES[case].s, predicate, window)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_every_engine_gives_the_oracles_result_on_hard_cases_however_joined(
    engine: Engine, case: str
) -> None:
    for predicate, window in everything(engine, case):
        check(engine, CASES[case].r, CASES[case].s, predicate, window)


def examples(count: int) -> settings:
    return settings(
        max_examples=count,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )


def alike() -> dict[str, list[Engine]]:
    """Engines that declare the same, by the first one's name: they share their random cases."""
    groups: dict[object, list[Engine]] = {}
    for engine in map(catalog.get, NAMES):
        can = engine.capabilities
        limits = can.platform if can.platform in {"fpga", "spark"} else None
        groups.setdefault((limits, can.predicates, can.windows), []).append(engine)
    return {engines[0].name: engines for engines in groups.values()}


ALIKE = alike()


@pytest.mark.parametrize("first", [name for name in ALIKE if name not in SPARK])
@examples(60)
@given(data=st.data(), streams=cases.random_streams())
def test_every_engine_gives_the_oracles_result_on_random_cases(
    first: str, data: st.DataObject, streams: tuple[Stream, Stream]
) -> None:
    check_random(ALIKE[first], data, streams)


@pytest.mark.usefixtures("session")
@pytest.mark.parametrize("first", [name for name in ALIKE if name in SPARK])
@examples(6)
@given(data=st.data(), streams=cases.random_streams())
def test_every_engine_on_spark_gives_the_oracles_result_on_some_random_cases(
    first: str, data: st.DataObject, streams: tuple[Stream, Stream]
) -> None:
    check_random(ALIKE[first], data, streams)


def check_random(
    engines: list[Engine], data: st.DataObject, streams: tuple[Stream, Stream]
) -> None:
    can = engines[0].capabilities
    able = [p for p in cases.PREDICATES.values() if p.kind in can.predicates]
    predicate = data.draw(st.sampled_from(able))
    window = data.draw(
        cases.random_windows(can.windows).filter(lambda w: held(engines[0], w, *streams))
    )
    for engine in engines:
        check(engine, *streams, predicate, window)


def test_every_order_that_an_engine_can_promise_is_kept_when_asked_for(engine: Engine) -> None:
    inputs = CASES["bursts"]
    held_windows = (w for w in cases.windows_of(engine) if held(engine, w, inputs.r, inputs.s))
    window = next(held_windows)
    for order in ORDERS[: ORDERS.index(engine.capabilities.order) + 1]:
        for threads in (1, 3):
            check(engine, inputs.r, inputs.s, cases.EQUI, window, order=order, threads=threads)


def test_threads_do_not_change_the_result(engine: Engine) -> None:
    rng = np.random.default_rng(5)
    keys = [rng.integers(0, 300, 3000).tolist() for _ in range(2)]
    r, s = cases.stream("r", list(range(3000)), keys[0]), cases.stream("s", [0] * 3000, keys[1])
    window, digests = parse_window("tumbling:1ms"), set()
    knobs = {"partition_tuples": 500} if engine.name == "spark" else {}  # a dozen tasks
    for threads in (1, 2, 3, 5) if engine.capabilities.parallel else (1, 3):
        outcome = outcome_of(engine, r, s, cases.EQUI, window, threads=threads, knobs=knobs)
        digests.add((len(outcome.pairs), outcome.pairs.digest))
        assert outcome.metrics["threads"] == engine.threads_for(threads)
    right = oracle.join(r, s, cases.EQUI, window)
    assert digests == {(len(right), right.digest)}


def test_a_replay_gives_the_oracles_result_like_data_at_rest(engine: Engine) -> None:
    inputs = CASES["bursts"]
    windows = [w for w in cases.windows_of(engine) if held(engine, w, inputs.r, inputs.s)]
    for window in windows[:3]:
        if engine.capabilities.platform == "fpga":  # in simulated time: test_fpga.py
            continue
        if "replay" not in engine.capabilities.arrivals:
            with pytest.raises(UnsupportedError, match="cannot do arrival replay, only instant"):
                outcome_of(engine, inputs.r, inputs.s, cases.EQUI, window, arrival="replay")
            continue
        slow = outcome_of(
            engine, inputs.r, inputs.s, cases.EQUI, window, arrival="replay", speedup=0.002
        )
        verify.check(slow.pairs, oracle.join(inputs.r, inputs.s, cases.EQUI, window), engine.name)
        # 20 us of arrivals at 1/500 speed: the last tuple is not there before 10 ms.
        assert slow.metrics["wall_s"] >= 0.01
        # On Spark a window that ends is fed file by file; a window that never ends is joined last.
        of_files = engine.capabilities.platform == "spark" and window.kind != "all"
        assert slow.metrics["latency_from"] == ("file" if of_files else "arrival")


def test_metrics_say_what_every_run_must_say(engine: Engine) -> None:
    inputs = CASES["at-rest"]
    outcome = outcome_of(engine, inputs.r, inputs.s, cases.EQUI, parse_window("all"))
    metrics = outcome.metrics
    assert metrics["engine"] == engine.name
    assert (metrics["n_r"], metrics["n_s"], metrics["pairs"]) == (40, 40, 40)
    assert metrics["digest"] == outcome.pairs.digest
    assert metrics["throughput_tuples_per_s"] > 0
    latency = metrics["latency_us"]
    assert 0 <= latency["p50"] <= latency["p95"] <= latency["p99"] <= latency["max"]
    shares = [share for share, _ in metrics["progress"]]
    times = [time_ms for _, time_ms in metrics["progress"]]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert times == sorted(times)
    assert set(metrics["phases_ms"]) == set(PHASES)
    total_ms = metrics["threads"] * metrics["wall_s"] * 1e3
    assert sum(metrics["phases_ms"].values()) == pytest.approx(total_ms, rel=0.02)
    is_fpga = engine.capabilities.platform == "fpga"
    assert metrics["latency_from"] == ("acceptance" if is_fpga else "run start")
    if is_fpga:
        assert metrics["cycles"] > 80
        assert "assumed" in metrics["clock_source"]


def test_a_run_without_pairs_has_no_latency(engine: Engine) -> None:
    inputs = CASES["both-empty"]
    metrics = outcome_of(engine, inputs.r, inputs.s, cases.EQUI, parse_window("all")).metrics
    assert metrics["pairs"] == 0
    assert metrics["progress"] == []
    assert set(metrics["latency_us"].values()) == {None}


def test_what_is_not_declared_is_refused(engine: Engine) -> None:
    inputs, can = CASES["one-each"], engine.capabilities
    for predicate in cases.PREDICATES.values():
        for window in map(parse_window, cases.WINDOWS):
            if not cases.supports(engine, predicate, window):
                with pytest.raises(UnsupportedError, match=rf"^{engine.name} cannot join "):
                    outcome_of(engine, inputs.r, inputs.s, predicate, window)
    for order in ORDERS[ORDERS.index(can.order) + 1 :]:
        with pytest.raises(UnsupportedError, match=f"promises order {can.order}, not {order}"):
            outcome_of(
                engine, inputs.r, inputs.s, cases.EQUI, cases.windows_of(engine)[0], order=order
            )
    with pytest.raises(UnsupportedError, match="has no backend 'nowhere'"):
        outcome_of(
            engine, inputs.r, inputs.s, cases.EQUI, cases.windows_of(engine)[0], backend="nowhere"
        )


def test_knobs_have_defaults_and_limits(engine: Engine) -> None:
    resolved = engine.resolve_knobs({})
    assert set(resolved) == {knob.name for knob in engine.knobs}
    with pytest.raises(InputError, match=f"{engine.name} has no knob 'nothing'"):
        engine.resolve_knobs({"nothing": 1})
    for knob in engine.knobs:
        for bad in ("", "x", "-1", "1.5", 1.5, True, "1_0", " 1", "٣"):
            with pytest.raises(InputError, match=f"knob {knob.name} takes"):
                engine.resolve_knobs({knob.name: bad})


def test_progress_never_goes_back_and_ends_at_the_total(engine: Engine) -> None:
    inputs = CASES["at-rest"]
    reported: list[tuple[int, int]] = []
    job = run.complete(
        engine,
        Job(inputs.r, inputs.s, cases.EQUI, parse_window("all")),
        cases.SMALL_KNOBS.get(engine.name, {}),
    )
    run.run(engine, job, lambda done, total: reported.append((done, total)))
    done = [share for share, _ in reported]
    assert done == sorted(done)
    assert all(share <= total for share, total in reported)


def test_an_engine_says_in_a_line_what_it_is(engine: Engine) -> None:
    assert 20 < len(engine.summary) < 100
    assert engine.name in NAMES
