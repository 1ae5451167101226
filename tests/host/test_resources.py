"""What a run takes, and how it ends when it takes too much or is told to stop."""

import itertools
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
from streamjoin.errors import TooLargeError
from streamjoin.run import SMALL_TUPLES

INTRA = ("npj", "prj", "mway", "mpass", "shj-jm", "shj-jb", "pmj-jm", "pmj-jb")
SLIDING = ("kang", "splitjoin", "llhj", "handshake")
MIB = 1 << 20


def same_keys(rows: int) -> dict[str, np.ndarray]:
    return {"k": np.zeros(rows, dtype=np.int32)}


@pytest.mark.parametrize("engine", [*INTRA, *SLIDING])
def test_every_engine_tells_what_its_structures_hold(engine: str) -> None:
    keys = {"k": np.arange(200_000, dtype=np.int32)}
    few = {"k": np.arange(100, dtype=np.int32)}
    result = sj.join(keys, few if engine in SLIDING else keys, on="k", engine=engine, threads=2)
    held = result.metrics["structure_bytes"]
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
    maximum = max(held for _, held in curve)
    assert 16_000_000 * 8 * 0.5 < maximum <= peak + 8 * MIB  # 16 million pairs of two 32-bit rows


def test_freed_memory_is_given_back_before_all_but_small_runs() -> None:
    few, many = ({"k": np.arange(rows)} for rows in (100, SMALL_TUPLES))
    with mock.patch.object(memory, "give_back_freed_memory") as given_back:
        sj.join(few, few, on="k", engine="npj")
        assert given_back.call_count == 0
        sj.join(few, many, on="k", engine="npj")
        assert given_back.call_count == 1


def test_a_curve_of_any_length_has_few_points() -> None:
    before = threading.active_count()
    with mock.patch.object(memory, "FIRST_STEP_S", 1e-5):
        watched = memory.ResidentSet()
        watched.watch()
        time.sleep(0.5)
        watched.stop()
    assert 2 < len(watched.curve) <= memory.MAX_POINTS + 1
    assert threading.active_count() == before


def test_counters_count_or_say_why_not() -> None:
    result = sj.join(same_keys(100), same_keys(100), on="k", engine="npj")
    counters, note = result.metrics["counters"], result.metrics["counters_note"]
    if counters is None:
        assert "counters" in note
    else:
        assert note is None
        assert all(count >= 0 for count in counters.values())


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
def test_a_result_that_outgrows_memory_ends_the_run(engine: str) -> None:
    with (
        mock.patch.object(estimate, "check_fits", return_value=5_000_000),
        pytest.raises(TooLargeError, match=r"more than 5e\+06 pairs"),
    ):
        sj.join(same_keys(4000), same_keys(4000), on="k", engine=engine, threads=2)
    assert not workers()


def workers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if "ThreadPool" in thread.name]


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
    result = sj.join(keys, keys, on="k", engine="npj", window="tumbling:1us")
    assert len(result) == 20_000
    batches = result._outcome.metrics["pairs"]
    assert batches == 20_000
    assert result.metrics["peak_bytes"] < 40 * MIB


@pytest.mark.parametrize("engine", [*INTRA, *SLIDING])
def test_a_replay_takes_all_input_also_what_joins_nothing(engine: str) -> None:
    r = {"k": np.array([1, 2], np.int32), "ts": np.array([0, 300_000], np.int64)}
    s = {"k": np.array([1], np.int32), "ts": np.array([0], np.int64)}
    result = sj.join(r, s, on="k", engine=engine, arrival="replay", window="tumbling:1ms")
    assert len(result) == 1
    assert result.metrics["wall_s"] >= 0.3


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


def test_a_single_thread_emits_neighbours_and_nothing_is_copied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "MAX_COPIED", 0)  # as of results that are large
    meter = metrics.Meter()
    out = memory.reserved(2 * 40_000, np.uint32).reshape(2, 40_000)
    out[:] = np.arange(80_000).reshape(2, 40_000)
    cuts = [0, 5000, 5003, 9000, 9001]
    kept = [
        meter.emit(out[0, first:end], out[1, first:end], 1.0)
        for first, end in itertools.pairwise(cuts)
    ]
    pairs = meter.pairs()
    assert all(kept)
    assert np.shares_memory(pairs.r_rows, out)
    assert pairs.r_rows.tolist() == list(range(9001))
    assert pairs.s_rows.tolist() == list(range(40_000, 49_001))


@pytest.mark.parametrize("gap", [0, 1])
def test_parts_are_joined_whether_they_are_neighbours_or_not(gap: int) -> None:
    held = np.arange(40, dtype=np.uint32).reshape(2, 20)
    parts = [held[1, 2:5], held[1, 5 + gap : 9], held[1, 9:12]]
    whole = memory.joined(parts)
    assert whole.tolist() == np.concatenate(parts).tolist()
    assert np.shares_memory(whole, held) == (gap == 0)


def test_few_small_batches_are_kept_and_many_copied() -> None:
    meter, out = metrics.Meter(), np.arange(4000, dtype=np.uint32).reshape(2, 2000)
    meter.emit(out[0, :1500], out[1, :1500], 1.0)
    kept = [meter.emit(out[0, i : i + 1], out[1, i : i + 1], 1.0) for i in range(1500, 1700)]
    assert sum(kept) == metrics.MAX_SMALL_KEPT
    assert meter.pairs().s_rows.tolist() == list(range(2000, 3700))
