"""Joining live: pushed in any pieces, every engine gives what it gives of the whole.

A case is named by its seed, which is printed where it fails; ``SEED=`` and ``CASES=1`` repeat it.
"""

import os
import tracemalloc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.host import cases

import streamjoin as sj
from streamjoin import live, verify
from streamjoin.engines import catalog
from streamjoin.engines.base import Job
from streamjoin.engines.sliding.kang import Kang
from streamjoin.inputs import as_streams
from streamjoin.predicates import Predicate
from streamjoin.tuples import Pairs, Stream

CASES = int(os.environ.get("CASES", "40"))
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
    most: int = 60,
) -> list[sj.Matches]:
    """Push two streams in random pieces, pull now and then, end, and return all matches."""
    found: list[sj.Matches] = []
    sides = [(joiner.push_r, r, len(r["ts"])), (joiner.push_s, s, len(s["ts"]))]
    done = [0, 0]
    while any(place < rows for place, (_, _, rows) in zip(done, sides, strict=True)):
        which = int(rng.integers(0, 2))
        push, data, rows = sides[which]
        stop = min(rows, done[which] + int(rng.integers(0, most)))
        push(cut(data, done[which], stop))
        done[which] = stop
        if rng.random() < 0.5:
            found += joiner.results()
    joiner.end()
    return found + list(joiner.results())


def together(found: list[sj.Matches]) -> Pairs:
    nothing = [np.empty(0, np.int64)]
    return Pairs(
        np.concatenate([m.r_rows for m in found] or nothing),
        np.concatenate([m.s_rows for m in found] or nothing),
    )


@pytest.mark.parametrize("name", LIVE)
def test_pushed_in_pieces_gives_what_the_oracle_says_of_the_whole(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = catalog.get(name)
    for seed in range(SEED, SEED + CASES):
        rng = np.random.default_rng(seed)
        most = int(rng.choice([3, 60, 400]))
        monkeypatch.setattr(live, "ROUND_TUPLES", int(rng.choice([1, 7, 100, 1 << 17])))
        r, s = (cases.stream_of(rng, side, int(rng.integers(0, most))) for side in ("r", "s"))
        asked = ASKED[str(rng.choice(sorted(ASKED)))]
        window = cases.window_of(rng, most)
        with sj.StreamJoiner(
            **asked, window=window, engine=name, threads=int(rng.integers(1, 4))
        ) as joiner:
            found = together(joined(joiner, given(r), given(s), rng))
            metrics = joiner.metrics
        right = sj.join(given(r), given(s), **asked, window=window, engine="oracle")
        what = f"SEED={seed} CASES=1: {name}, {r.rows} x {s.rows}, {window.text}, {asked}"
        difference = found.difference(Pairs(right.r_rows, right.s_rows))
        assert difference is None, f"{what}: {difference}"
        assert metrics["digest"] == right.metrics["digest"], what
        assert metrics["pairs"] == len(right), what
        streams = as_streams(given(r), given(s), Predicate.parse(**asked))
        whole = Job(*streams, Predicate.parse(**asked), window)
        verify.check_order(found, whole, engine.promise(whole))


@pytest.mark.parametrize("name", LIVE)
def test_an_hour_of_arrivals_needs_the_memory_of_its_window(name: str) -> None:
    per_second, window_s, seconds = 20, 60, 3600
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


@pytest.mark.parametrize("seed", [SEED + number for number in range(20)])
def test_late_tuples_take_their_place_or_are_counted(seed: int) -> None:
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
        found = together(joined(joiner, *data, rng, most=25))
        assert joiner.metrics["late"] == late
    assert found.difference(rows) is None, f"SEED={seed}"
    assert found.digest == whole.metrics["digest"]


def test_without_arrival_times_the_order_of_pushing_is_the_order_of_arrival() -> None:
    rng = np.random.default_rng(SEED)
    pushes = [
        (int(rng.integers(0, 2)), rng.integers(0, 3, int(rng.integers(0, 4)))) for _ in range(200)
    ]
    with sj.StreamJoiner(on="k", window="count:5") as joiner:
        found = []
        for is_s, keys in pushes:
            (joiner.push_s if is_s else joiner.push_r)({"k": keys})
            found += joiner.results()
            assert joiner.metrics["waiting"] == [0, 0]
    sides: list[dict[str, list[int]]] = [{"k": [], "ts": []}, {"k": [], "ts": []}]
    for time_us, (is_s, keys) in enumerate(pushes):
        sides[is_s]["k"] += keys.tolist()
        sides[is_s]["ts"] += [time_us] * len(keys)
    r, s = ({name: np.array(v, dtype=np.int64) for name, v in side.items()} for side in sides)
    right = sj.join(r, s, on="k", window="count:5", engine="oracle")
    assert together(found).difference(Pairs(right.r_rows, right.s_rows)) is None, f"SEED={SEED}"


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
        for place in range(3):
            joiner.push_r(r.slice(place, 1))
            joiner.push_s(s.slice(place, 1))
            joiner.end() if place == 2 else None
            for matches in joiner.results():
                rows += matches.table().to_pylist()
                assert matches.pairs.column_names == ["r_row", "s_row", "ts"]
    assert [(row["k_r"], row["price_r"], row["price_s"], row["ts_s"]) for row in rows] == [
        ("b", 2.5, 9.0, 3),
        ("c", 3.5, 7.0, 31),
    ]


def test_a_round_that_fails_can_be_joined_again(monkeypatch: pytest.MonkeyPatch) -> None:
    good, fails = Kang.run, [True]

    def failing(self: Kang, job: Any, meter: Any) -> None:
        good(self, job, meter)
        if fails.pop():
            fails.append(False)
            raise RuntimeError("lost")

    monkeypatch.setattr(Kang, "run", failing)
    with sj.StreamJoiner(on="k", window="all") as joiner:
        joiner.push_r({"k": [1, 2]})
        joiner.push_s({"k": [2, 1]})
        with pytest.raises(RuntimeError, match="lost"):
            list(joiner.results())
        fails[:] = [False] * 9
        (matches,) = joiner.results()
        assert sorted(zip(matches.r_rows, matches.s_rows, strict=True)) == [(0, 1), (1, 0)]


def left_early() -> None:
    with sj.StreamJoiner(on="k") as joiner:
        joiner.push_r({"k": [1], "ts": [5]})


def test_leaving_with_tuples_that_were_not_joined_says_so() -> None:
    with pytest.raises(sj.InputError, match=r"^1 tuples were pushed and not joined: call end\(\)"):
        left_early()
    with sj.StreamJoiner(on="k") as joiner:
        joiner.push_r({"k": [1], "ts": [5]})
        joiner.close()
        with pytest.raises(sj.InputError, match=r"^r: the input has ended"):
            joiner.push_r({"k": [1], "ts": [5]})


K = {"k": [1], "ts": [5]}
MISTAKES: dict[str, tuple[dict[str, Any], list[Any], str]] = {
    "time goes back": ({}, [K, {"k": [1, 2], "ts": [6, 4]}], "^r: ts goes back at row 2, from 6"),
    "time goes back between batches": (
        {},
        [K, {"k": [1], "ts": [4]}],
        "^r: ts goes back at row 1, from 5 to 4: push in order of ts, or give a lateness$",
    ),
    "a type that changes": (
        {},
        [K, {"k": ["x"], "ts": [5]}],
        "^r: column 'k' is object in this batch and was int64 in the batches before$",
    ),
    "a column that is missing": ({}, [{"x": [1]}], "^r: there is no column 'k'; it has x"),
    "times that come and go": ({}, [K, {"k": [1]}], "^r: give all batches of both streams a ts"),
    "a lateness without times": ({"lateness": "1ms"}, [{"k": [1]}], "^r: a lateness needs the"),
    "no data": ({}, [7], "^r must be Arrow data, a data frame or a mapping"),
    "a bad lateness": ({"lateness": "soon"}, [], "^a duration is a number with us"),
    "an engine of whole inputs": (
        {"engine": "npj"},
        [],
        "^npj does not join live: choose auto or one of kang, splitjoin, llhj, handshake, ibwj",
    ),
    "an order it does not promise": (
        {"engine": "llhj", "order": "outer"},
        [],
        "^llhj promises order none, not outer",
    ),
    "an unknown knob": ({"knobs": {"speed": 9}}, [], "^kang has no knob 'speed'; it has batch$"),
    "other columns": (
        {},
        [pa.table({"k": [1], "ts": [5]}), pa.table({"k": [1], "v": [1], "ts": [5]})],
        "^r: this batch has other columns than the batches before$",
    ),
}


def pushed(options: dict[str, Any], batches: list[Any]) -> None:
    with sj.StreamJoiner(**{"on": "k", **options}) as joiner:
        for batch in batches:
            joiner.push_r(batch)
        joiner.end()
        list(joiner.results())


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_in_one_sentence(mistake: str) -> None:
    options, batches, sentence = MISTAKES[mistake]
    with pytest.raises((sj.InputError, sj.UnsupportedError), match=sentence):
        pushed(options, batches)


def test_too_much_waiting_is_refused_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "MOST_WAITING", 3)
    with sj.StreamJoiner(on="k") as joiner:
        joiner.push_r({"k": [1, 2, 3], "ts": [1, 1, 1]})
        with pytest.raises(sj.InputError, match=r"^s: 3 tuples wait to be joined and 3 may: take"):
            joiner.push_s({"k": [1], "ts": [0]})
        joiner.advance(1)
        assert not list(joiner.results())
        joiner.push_s({"k": [1], "ts": [2]})
        joiner.end()
        assert [len(matches) for matches in joiner.results()] == [1]
