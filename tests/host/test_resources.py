"""What a run takes, and how it ends when it takes too much or is told to stop."""

import os
import signal
import threading
import time
from typing import Any
from unittest import mock

import numpy as np
import pytest

import streamjoin as sj
from streamjoin import counters, estimate, memory, metrics
from streamjoin.engines import catalog
from streamjoin.engines.base import Job
from streamjoin.errors import TooLargeError
from streamjoin.inputs import as_streams
from streamjoin.predicates import Predicate
from streamjoin.windows import parse_window

INTRA = ("npj", "prj", "mway", "mpass", "shj-jm", "shj-jb", "pmj-jm", "pmj-jb")
SLIDING = ("kang", "splitjoin", "llhj", "handshake")
MIB = 1 << 20


def same_keys(rows: int) -> dict[str, np.ndarray]:
    return {"k": np.zeros(rows, dtype=np.int32)}


@pytest.mark.parametrize("engine", [*INTRA, *SLIDING])
def test_every_engine_tells_what_its_structures_hold(engine: str) -> None:
    keys = {"k": np.arange(200_000, dtype=np.int32)}
    few = {"k": np.arange(100, dtype=np.int32)}
    found = sj.join(keys, few if engine in SLIDING else keys, on="k", engine=engine, threads=2)
    held = found.metrics["structure_bytes"]
    # At least four bytes for each key of one side; at most a few machine words for every tuple.
    assert 4 * 200_000 <= held <= 64 * 400_000


def test_structures_of_one_window_are_gone_in_the_next() -> None:
    ts = np.arange(40_000, dtype=np.int64)
    keys = {"k": (ts % 1000).astype(np.int32), "ts": ts}
    whole = sj.join(keys, keys, on="k", engine="npj").metrics["structure_bytes"]
    tenth = sj.join(keys, keys, on="k", window="tumbling:4ms", engine="npj").metrics
    assert 0 < tenth["structure_bytes"] < whole / 5


def test_the_memory_curve_rises_to_the_peak() -> None:
    result = sj.join(same_keys(4000), same_keys(4000), on="k", engine="mway")
    curve, peak = result.metrics["memory"], result.metrics["peak_bytes"]
    times = [time_ms for time_ms, _ in curve]
    assert times == sorted(times)
    most = max(held for _, held in curve)
    assert 16_000_000 * 8 * 0.5 < most <= peak + 8 * MIB  # 16 million pairs of two 32-bit rows


def test_a_curve_of_any_length_has_few_points() -> None:
    before = threading.active_count()
    with mock.patch.object(memory, "FIRST_STEP_S", 1e-5):
        watched = memory.ResidentSet()
        time.sleep(0.5)
        watched.stop()
    assert 2 < len(watched.curve) <= memory.MOST_POINTS + 1
    assert threading.active_count() == before


def test_counters_count_or_say_why_not() -> None:
    result = sj.join(same_keys(100), same_keys(100), on="k", engine="npj")
    found, note = result.metrics["counters"], result.metrics["counters_note"]
    if found is None:
        assert "counters" in note
    else:
        assert note is None
        assert all(count >= 0 for count in found.values())


def test_counters_count_all_threads_that_start_while_counting() -> None:
    counted = counters.Counters(counters.SOFTWARE_EVENTS)
    if counted.note is not None:
        pytest.skip(counted.note)

    def burn() -> None:
        until = time.thread_time() + 0.1
        while time.thread_time() < until:
            pass

    threads = [threading.Thread(target=burn) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    counted.stop()
    assert counted.found is not None
    assert counted.found["task_clock_ns"] > 0.15e9


@pytest.mark.parametrize(
    ("machine", "code", "sentence"),
    [
        ("sparc", 0, "no hardware counters on"),
        ("x86_64", 1, "set /proc/sys/kernel/perf_event_paranoid to 2"),
        ("x86_64", 2, "shows its programs no hardware counters"),
        ("x86_64", 24, "the kernel refuses hardware counters: Too many open files"),
    ],
)
def test_refused_counters_say_why(machine: str, code: int, sentence: str) -> None:
    with (
        mock.patch.object(counters.platform, "machine", return_value=machine),
        mock.patch.object(counters.ctypes, "CDLL") as library,
        mock.patch.object(counters.ctypes, "get_errno", return_value=code),
    ):
        library.return_value.syscall.return_value = -1
        counted = counters.Counters()
    counted.stop()
    assert counted.found is None
    assert sentence in str(counted.note)


def test_preparing_is_told_apart_from_running() -> None:
    result = sj.join(same_keys(10), same_keys(10), on="k", engine="prj")
    assert result.metrics["prepare_s"] > 0


@pytest.mark.parametrize("engine", [*INTRA, *SLIDING])
def test_a_result_that_surely_does_not_fit_is_refused_before_it_runs(engine: str) -> None:
    with (
        mock.patch.object(memory, "available_bytes", return_value=100 * MIB),
        mock.patch.object(catalog.get(engine), "run", side_effect=AssertionError),
        pytest.raises(TooLargeError, match=r"the result has about 4e\+08 pairs and the free"),
    ):
        sj.join(same_keys(20_000), same_keys(20_000), on="k", engine=engine)


@pytest.mark.parametrize("engine", [*INTRA, *SLIDING])
def test_a_result_that_outgrows_memory_ends_the_run(engine: str) -> None:
    with (
        mock.patch.object(estimate, "check_fits", return_value=5_000_000),
        pytest.raises(TooLargeError, match=r"more than 5e\+06 pairs"),
    ):
        sj.join(same_keys(4000), same_keys(4000), on="k", engine=engine, threads=2)
    assert not workers()


def workers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if "ThreadPool" in thread.name]


@pytest.mark.parametrize("window", ["all", "tumbling:1ms", "count:500"])
def test_an_estimate_is_about_right(window: str) -> None:
    ts = np.arange(20_000, dtype=np.int64)
    rng = np.random.default_rng(5)
    keys = [{"k": rng.integers(0, 20, 20_000).astype(np.int32), "ts": ts} for _ in "rs"]
    predicate = Predicate.parse(on="k")
    job = Job(*as_streams(*keys, predicate), predicate, parse_window(window))
    likely, sure = estimate.estimated_pairs(job)
    assert sure
    found = len(sj.join(*keys, on="k", window=window, engine="kang"))
    assert 0.8 * found < likely < 1.2 * found


def nearly_none(rows: int) -> dict[str, dict[str, np.ndarray]]:
    """Inputs whose columns, or windows, or heavy keys each promise much, and together give none."""
    odd = (np.arange(rows) % 2).astype(np.int32)
    halves = np.repeat([0, 1], rows // 2).astype(np.int32)
    ts = np.repeat([0, 10**6], rows // 2).astype(np.int64)
    return {
        "conjunction": {"a": odd, "b": odd, "k": odd, "ts": ts},
        "other half": {"a": odd, "b": 1 - odd, "k": 1 - halves, "ts": ts},
        "half": {"a": odd, "b": odd, "k": halves, "ts": ts},
    }


@pytest.mark.parametrize("how", [{"on": "a,b"}, {"on": "k", "window": "tumbling:1s"}])
def test_a_join_with_a_small_result_is_never_refused(how: dict[str, str]) -> None:
    inputs = nearly_none(20_000)
    with mock.patch.object(memory, "available_bytes", return_value=10 * MIB):
        found = sj.join(inputs["half"], inputs["other half"], engine="npj", **how)
    assert len(found) == 0


def test_one_heavy_row_in_a_sample_is_no_reason_to_refuse() -> None:
    rng = np.random.default_rng(3)
    r = {"k": rng.permutation(200_000).astype(np.int32)}
    s = {"k": np.where(rng.random(200_000) < 0.5, r["k"][7], -1).astype(np.int32)}
    for seed in range(20):
        with mock.patch.object(
            estimate.np.random, "default_rng", return_value=np.random.default_rng(seed)
        ):
            predicate = Predicate.parse(on="k")
            job = Job(*as_streams(r, s, predicate), predicate, parse_window("all"))
            _, sure = estimate.estimated_pairs(job)
        assert not sure


@pytest.mark.parametrize(
    ("origin", "latency_us"), [(None, np.ones(1)), ("acceptance", None)], ids=["unsaid", "absent"]
)
def test_a_latency_is_never_emitted_without_its_origin(origin: Any, latency_us: Any) -> None:
    meter = metrics.Meter(latency_from=origin)
    rows = np.zeros(1, dtype=np.uint32)
    with pytest.raises(ValueError, match="if and only if latency_from says from when it is counte"):
        meter.emit(rows, rows, latency_us=latency_us)


def test_many_small_windows_cost_what_their_pairs_do() -> None:
    ts = np.arange(20_000, dtype=np.int64)
    keys = {"k": (ts % 50).astype(np.int32), "ts": ts}
    found = sj.join(keys, keys, on="k", engine="npj", window="tumbling:1us")
    assert len(found) == 20_000
    batches = found._outcome.metrics["pairs"]
    assert batches == 20_000
    assert found.metrics["peak_bytes"] < 40 * MIB


@pytest.mark.parametrize("engine", [*INTRA, *SLIDING])
def test_a_replay_takes_all_input_also_what_joins_nothing(engine: str) -> None:
    r = {"k": np.array([1, 2], np.int32), "ts": np.array([0, 300_000], np.int64)}
    s = {"k": np.array([1], np.int32), "ts": np.array([0], np.int64)}
    found = sj.join(r, s, on="k", engine=engine, arrival="replay", window="tumbling:1ms")
    assert len(found) == 1
    assert found.metrics["wall_s"] >= 0.3


def test_a_time_window_is_estimated_from_both_sides() -> None:
    r = {"k": np.zeros(1000, np.int32), "ts": np.arange(1000, dtype=np.int64)}
    s = {"k": np.zeros(500, np.int32), "ts": np.arange(500, dtype=np.int64) * 2}
    predicate = Predicate.parse(on="k")
    job = Job(*as_streams(r, s, predicate), predicate, parse_window("time:40us,10us"))
    found = len(sj.join(r, s, on="k", window="time:40us,10us", engine="kang"))
    likely, sure = estimate.estimated_pairs(job)
    assert sure
    assert likely == found  # the samples are the whole streams


@pytest.mark.timeout(120)
@pytest.mark.parametrize("engine", [*INTRA, *SLIDING[1:]])
def test_one_interrupt_ends_a_run_that_computes(engine: str) -> None:
    many = same_keys(15_000)
    emit, stop = metrics.Meter.emit, metrics.Meter.stop
    emitted: list[int] = []

    def emit_and_press(meter: metrics.Meter, *columns: Any) -> None:
        emit(meter, *columns)
        if not emitted and len(columns[0]) > 1:  # not the one match of what compiles
            os.kill(os.getpid(), signal.SIGINT)
            emitted.append(0)

    def count_and_stop(meter: metrics.Meter) -> None:
        stop(meter)
        emitted.append(len(meter.pairs()))

    with (
        mock.patch.object(metrics.Meter, "emit", emit_and_press),
        mock.patch.object(metrics.Meter, "stop", count_and_stop),
        mock.patch.object(estimate, "check_fits", return_value=None),
        pytest.raises(KeyboardInterrupt),
    ):
        sj.join(many, many, on="k", engine=engine, threads=3)
    for thread in workers():
        thread.join(30)  # one that was just being started ends by itself
    assert not workers()
    assert 0 < emitted[-1] < 15_000**2
