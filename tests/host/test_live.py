"""Joining live: pushed in any pieces, every engine gives what it gives of the whole.

A case is named by its seed, which is printed where it fails; ``SEED=`` and ``CASES=1`` repeat it.
"""

import os
import threading
import tracemalloc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.host import cases

import streamjoin as sj
from streamjoin import verify
from streamjoin.engines import catalog
from streamjoin.engines.job import Job
from streamjoin.engines.sliding.kang import Kang
from streamjoin.live import rounds as live
from streamjoin.streams import as_streams
from streamjoin.tuples import Pairs, Stream
from streamjoin_common.language.predicates import Predicate

CASES = int(os.environ.get("CASES", "10"))
SEED = int(os.environ.get("SEED", "0")) or int.from_bytes(os.urandom(4), "little")
LIVE = [name for name in catalog.names() if catalog.get(name).capabilities.live]
ASKED: dict[str, dict[str, Any]] = {
    "equi": {"on": "k=k2"},
    "band-2d": {"band": ["k=k2:10:10", "y=y2:10:10"]},
    "band-and-equi": {"on": "g=g2", "band": "k=k2:-1:3"},
}

pytestmark = pytest.mark.timeout(120 + 2 * CASES)


def given(stream: Stream) -> dict[str, Any]:
    """A stream as a user holds it."""
    columns = {name: np.ma.masked_array(c, stream.missing) for name, c in stream.columns.items()}
    return {**columns, "ts": stream.ts}


def cut(data: dict[str, Any], start: int, stop: int) -> dict[str, Any]:
    return {name: column[start:stop] for name, column in data.items()}


def joined(
    joiner: sj.StreamJoiner,
    r: dict[str, Any],
    s: dict[str, Any],
    rng: np.random.Generator,
    max_rows: int = 60,
) -> list[sj.Matches]:
    """Push two streams in random pieces, pull now and then, end, and return all matches."""
    matches: list[sj.Matches] = []
    sides = [(joiner.push_r, r, len(r["ts"])), (joiner.push_s, s, len(s["ts"]))]
    done = [0, 0]
    while any(index < rows for index, (_, _, rows) in zip(done, sides, strict=True)):
        which = int(rng.integers(0, 2))
        push, data, rows = sides[which]
        stop = min(rows, done[which] + int(rng.integers(0, max_rows)))
        push(cut(data, done[which], stop))
        done[which] = stop
        if rng.random() < 0.5:
            matches += joiner.results()
    joiner.end()
    return matches + list(joiner.results())


def together(matches: list[sj.Matches]) -> Pairs:
    nothing = [np.empty(0, np.int64)]
    return Pairs(
        np.concatenate([m.r_rows for m in matches] or nothing),
        np.concatenate([m.s_rows for m in matches] or nothing),
    )


@pytest.mark.parametrize("name", LIVE)
def test_pushed_in_pieces_gives_what_the_oracle_says_of_the_whole(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = catalog.get(name)
    for seed in range(SEED, SEED + CASES):
        rng = np.random.default_rng(seed)
        max_rows = int(rng.choice([3, 60, 400]))
        monkeypatch.setattr(live, "ROUND_TUPLES", int(rng.choice([1, 7, 100, 1 << 17])))
        r, s = (cases.stream_of(rng, side, int(rng.integers(0, max_rows))) for side in ("r", "s"))
        asked = ASKED[str(rng.choice(sorted(ASKED)))]
        window = cases.window_of(rng, max_rows)
        with sj.StreamJoiner(
            **asked, window=window, engine=name, threads=int(rng.integers(1, 4))
        ) as joiner:
            matches = together(joined(joiner, given(r), given(s), rng))
            metrics = joiner.metrics
        right = sj.join(given(r), given(s), **asked, window=window, engine="oracle")
        what = f"SEED={seed} CASES=1: {name}, {r.rows} x {s.rows}, {window.text}, {asked}"
        difference = matches.difference(Pairs(right.r_rows, right.s_rows))
        assert difference is None, f"{what}: {difference}"
        assert metrics["digest"] == right.metrics["digest"], what
        assert metrics["pairs"] == len(right), what
        streams = as_streams(given(r), given(s), Predicate.parse(**asked))
        whole = Job(*streams, Predicate.parse(**asked), window)
        verify.check_order(matches, whole, engine.promise(whole))


@pytest.mark.parametrize("name", LIVE)
def test_half_an_hour_of_arrivals_needs_the_memory_of_its_window(name: str) -> None:
    per_second, window_s, seconds = 20, 60, 1800
    rng = np.random.default_rng(5)
    peaks = []
    with sj.StreamJoiner(on="k", window=f"time:{window_s}s", engine=name, threads=2) as joiner:
        tracemalloc.start()
        try:
            for begin in range(0, seconds, 30):
                ts = begin * 1_000_000 + np.sort(rng.integers(0, 30_000_000, 30 * per_second))
                joiner.push_r({"k": rng.integers(0, 100, len(ts)), "ts": ts})
                joiner.push_s({"k": rng.integers(0, 100, len(ts)), "ts": ts})
                assert sum(len(matches) for matches in joiner.results()) > 0
                assert max(joiner.metrics["window_tuples"]) <= (window_s + 30) * per_second
                assert max(joiner.metrics["waiting"]) <= 1
                peaks.append(tracemalloc.get_traced_memory()[1])
                tracemalloc.reset_peak()
        finally:
            tracemalloc.stop()
        joiner.end()
        assert sum(1 for _ in joiner.results()) <= 1
    steady = peaks[len(peaks) // 4 :]
    assert max(steady) < 1.5 * min(steady)


def reference(ts: list[int], lateness: int) -> tuple[list[int], list[int]]:
    """Rows in order of arrival time and rows that came too late, tuple by tuple."""
    newest, kept, late = None, [], []
    for row, value in enumerate(ts):
        if newest is not None and value < newest - lateness:
            late.append(row)
        else:
            kept.append((value, row))
        newest = value if newest is None else max(newest, value)
    return [row for _, row in sorted(kept)], late


@pytest.mark.parametrize("number", range(20))
def test_late_tuples_take_their_place_or_are_counted(number: int) -> None:
    seed = SEED + number
    print(f"SEED={seed}")  # noqa: T201  (shown with a failure)
    rng = np.random.default_rng(seed)
    lateness, data, plain, late = int(rng.integers(1, 30)), [], [], []
    for name in ("k", "k2"):
        rows = int(rng.integers(0, 300))
        ts = np.arange(rows) * 3 - rng.integers(0, 40, rows)
        keys = rng.integers(0, 9, rows)
        order, beyond = reference(ts.tolist(), lateness)
        data.append({name: keys, "ts": ts})
        plain.append(({name: keys[order], "ts": ts[order]}, np.array(order, dtype=np.int64)))
        late.append(len(beyond))
    (r, r_order), (s, s_order) = plain
    right = sj.join(r, s, on="k=k2", window="count:20", engine="oracle")
    rows = Pairs(r_order[right.r_rows], s_order[right.s_rows])

    lately = {"on": "k=k2", "window": "count:20", "lateness": f"{lateness}us"}
    whole = sj.join(*data, **lately, engine="kang", check=True)
    assert Pairs(whole.r_rows, whole.s_rows).difference(rows) is None
    assert whole.metrics["digest"] == rows.digest
    assert whole.metrics["late"] == late

    with sj.StreamJoiner(**lately) as joiner:
        matches = together(joined(joiner, *data, rng, max_rows=25))
        assert joiner.metrics["late"] == late
    assert matches.difference(rows) is None, f"SEED={seed}"
    assert matches.digest == whole.metrics["digest"]


def test_without_arrival_times_the_order_of_pushing_is_the_order_of_arrival() -> None:
    rng = np.random.default_rng(SEED)
    pushes = [
        (int(rng.integers(0, 2)), rng.integers(0, 3, int(rng.integers(0, 4)))) for _ in range(200)
    ]
    with sj.StreamJoiner(on="k", window="count:5") as joiner:
        matches = []
        for is_s, keys in pushes:
            (joiner.push_s if is_s else joiner.push_r)({"k": keys})
            matches += joiner.results()
            assert joiner.metrics["waiting"] == [0, 0]
    sides: list[dict[str, list[int]]] = [{"k": [], "ts": []}, {"k": [], "ts": []}]
    for time_us, (is_s, keys) in enumerate(pushes):
        sides[is_s]["k"] += keys.tolist()
        sides[is_s]["ts"] += [time_us] * len(keys)
    r, s = ({name: np.array(v, dtype=np.int64) for name, v in side.items()} for side in sides)
    right = sj.join(r, s, on="k", window="count:5", engine="oracle")
    assert together(matches).difference(Pairs(right.r_rows, right.s_rows)) is None, f"SEED={SEED}"


def test_a_tuple_waits_until_nothing_can_come_before_it() -> None:
    with sj.StreamJoiner(on="k", window="all") as joiner:
        joiner.push_r({"k": [1], "ts": [10]})
        joiner.push_s({"k": [1], "ts": [10]})
        assert not list(joiner.results()), "an R tuple with time 10 would come before"
        joiner.advance(11)
        (matches,) = joiner.results()
        assert (matches.r_rows.tolist(), matches.ts.tolist()) == ([0], [10])


def test_matches_show_both_sides_rows() -> None:
    r = pa.table({"k": ["a", "b", "c"], "price": [1.5, 2.5, 3.5], "ts": [1, 2, 30]})
    s = pa.table({"k": ["b", None, "c"], "price": [9.0, 8.0, 7.0], "ts": [3, 4, 31]})
    with sj.StreamJoiner(on="k", window="count:2") as joiner:
        rows = []
        for index in range(3):
            joiner.push_r(r.slice(index, 1))
            joiner.push_s(s.slice(index, 1))
            joiner.end() if index == 2 else None
            for matches in joiner.results():
                rows += matches.table().to_pylist()
                assert matches.pairs.column_names == ["r_row", "s_row", "ts"]
    assert [(row["k_r"], row["price_r"], row["price_s"], row["ts_s"]) for row in rows] == [
        ("b", 2.5, 9.0, 3),
        ("c", 3.5, 7.0, 31),
    ]


def test_a_round_that_fails_can_be_joined_again(monkeypatch: pytest.MonkeyPatch) -> None:
    good, fails = Kang.run, [True]

    def failing(self: Kang, job: Any, prepared: Any, meter: Any) -> None:
        good(self, job, prepared, meter)
        if fails.pop():
            fails.append(False)
            raise RuntimeError("lost")

    monkeypatch.setattr(Kang, "run", failing)
    with sj.StreamJoiner(on="k", window="all", engine="kang") as joiner:
        joiner.push_r({"k": [1, 2]})
        joiner.push_s({"k": [2, 1]})
        with pytest.raises(RuntimeError, match="lost"):
            list(joiner.results())
        fails[:] = [False] * 9
        (matches,) = joiner.results()
        assert sorted(zip(matches.r_rows, matches.s_rows, strict=True)) == [(0, 1), (1, 0)]


def test_an_interrupt_leaves_a_round_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Pairs) -> str:
        raise KeyboardInterrupt

    joiner = sj.StreamJoiner(on="k", window="all", engine="kang")
    joiner.push_r({"k": [1]})
    joiner.push_s({"k": [1]})
    with monkeypatch.context() as patch:
        patch.setattr(Pairs, "digest", property(interrupted))
        with pytest.raises(KeyboardInterrupt):
            list(joiner.results())
    assert [len(matches) for matches in joiner.results()] == [1]
    assert (joiner.metrics["rounds"], joiner.metrics["pairs"]) == (1, 1)


def test_what_a_thread_pushes_while_a_round_runs_is_joined_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    good, producers = Kang.run, []

    def slow(self: Kang, job: Any, prepared: Any, meter: Any) -> None:
        if not producers:
            late = {"k": [1], "ts": [7]}
            producers.append(threading.Thread(target=joiner.push_r, args=(late,), daemon=True))
            producers[0].start()
            producers[0].join(0.2)  # it either waits for the round or is through by then
        good(self, job, prepared, meter)

    monkeypatch.setattr(Kang, "run", slow)
    with sj.StreamJoiner(on="k", window="all", engine="kang") as joiner:
        joiner.push_r({"k": [1, 2], "ts": [1, 5]})
        joiner.push_s({"k": [1], "ts": [5]})
        matches = list(joiner.results())
        producers[0].join(60)
        joiner.end()
        matches += joiner.results()
    pairs = together(matches)
    assert sorted(zip(pairs.r_rows, pairs.s_rows, strict=True)) == [(0, 0), (2, 0)]


def test_arrays_may_be_used_again_once_they_are_pushed() -> None:
    keys, ts, masked = np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros(2, np.bool_)
    with sj.StreamJoiner(on="k", window="all") as joiner:
        for push in (joiner.push_r, joiner.push_s):
            for number in range(3):
                keys[:], ts[:], masked[:] = (2 * number, 2 * number + 1), 10 * number, number == 1
                push({"k": np.ma.MaskedArray(keys, masked), "ts": ts})
        joiner.end()
        (matches,) = joiner.results()
    assert sorted(zip(matches.r_rows, matches.s_rows, matches.ts, strict=True)) == [
        (0, 0, 0),
        (1, 1, 0),
        (4, 4, 20),
        (5, 5, 20),
    ]


@pytest.mark.parametrize("lateness", [None, "10us"])
@pytest.mark.parametrize("ts", [1 << 62, -(1 << 62)])
def test_the_ends_of_time_are_joined(ts: int, lateness: str | None) -> None:
    with sj.StreamJoiner(on="k", window="time:1s", lateness=lateness) as joiner:
        joiner.push_r({"k": [1], "ts": [ts]})
        joiner.push_s({"k": [1], "ts": [ts]})
        joiner.end()
        assert [matches.ts.tolist() for matches in joiner.results()] == [[ts]]


EMPTY = {
    "masked": np.ma.masked_array([0, 0], [True, True]),
    "none": np.array([None, None], dtype=object),
    "no time": np.array(["NaT", "NaT"], dtype="M8[us]"),
    "no duration": np.array(["NaT", "NaT"], dtype="m8[us]"),
}


@pytest.mark.parametrize("second", EMPTY)
@pytest.mark.parametrize("first", EMPTY)
def test_batches_without_any_value_go_with_any_type(first: str, second: str) -> None:
    with sj.StreamJoiner(on="k", window="all") as joiner:
        for index, keys in enumerate((EMPTY[first], EMPTY[second], np.array(["a", "b"]))):
            joiner.push_r({"k": keys, "ts": [index, index]})
            joiner.push_s({"k": keys, "ts": [index, index]})
            joiner.advance(index + 1)
            assert index != 1 or not list(joiner.results())
        joiner.end()
        assert [len(matches) for matches in joiner.results()] == [2]


def test_arrow_batches_without_any_value_go_with_any_type() -> None:
    batches = [
        pa.table({"k": pa.nulls(1), "price": [1.5]}),
        pa.table({"k": ["a"], "price": pa.nulls(1)}),
        pa.table({"price": [2.5], "k": pa.nulls(1)}),
        pa.table({"k": ["b"], "price": [3.5]}).cast(
            pa.schema([pa.field("k", pa.string(), nullable=False), pa.field("price", pa.float64())])
        ),
    ]
    with sj.StreamJoiner(on="k", window="all") as joiner:
        for batch in batches:
            joiner.push_r(batch)
            joiner.push_s(batch)
        rows = [row for matches in joiner.results() for row in matches.table().to_pylist()]
    assert [(row["k_r"], row["price_r"], row["price_s"]) for row in rows] == [
        ("a", None, None),
        ("b", 3.5, 3.5),
    ]


def test_dictionaries_that_change_need_the_memory_of_their_window() -> None:
    peaks, rows = [], 10
    with sj.StreamJoiner(on="k", window="count:1000") as joiner:
        for number in range(600):
            strings = pa.array([f"{number}-{row}-{'x' * 1000}" for row in range(rows)])
            coded = strings.dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string()))
            for push in (joiner.push_r, joiner.push_s):
                push(pa.table({"k": np.arange(rows) + rows * number, "text": coded}))
            tables = [matches.table() for matches in joiner.results()]
            assert [table["text_r"].to_pylist() for table in tables] == [strings.to_pylist()]
            del tables
            peaks.append(pa.total_allocated_bytes())
    assert max(peaks[500:]) < 1.5 * max(peaks[150:250])
