"""Kinds of join, live: rows and times are those of the whole input, and none comes too early.

A case is named by its seed, which is printed where it fails; ``SEED=`` and ``CASES=1`` repeat it.
"""

import os
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.host import cases
from tests.host.test_live import ASKED, LIVE, cut, given, joined, together

import streamjoin as sj
from streamjoin import verify
from streamjoin.engines import catalog
from streamjoin.engines.job import Job
from streamjoin.live import rounds as live
from streamjoin.streams import as_streams
from streamjoin_common.language.kinds import KINDS
from streamjoin_common.language.predicates import Predicate

CASES = int(os.environ.get("CASES", "20"))
SEED = int(os.environ.get("SEED", "0")) or int.from_bytes(os.urandom(4), "little")
OTHER = KINDS[1:]
pytestmark = pytest.mark.timeout(120 + 2 * CASES)


def rows_of(matches: list[sj.Matches]) -> list[tuple[int, int, int]]:
    found = [zip(m.r_rows, m.s_rows, m.ts, strict=True) for m in matches]
    return sorted(tuple(map(int, row)) for rows in found for row in rows)


def whole(r: Any, s: Any, **asked: Any) -> sj.JoinResult:
    return sj.join(r, s, **asked, engine="oracle")


def rows_of_whole(result: sj.JoinResult) -> list[tuple[int, int, int]]:
    rows = zip(result.r_rows, result.s_rows, result._outcome.ts, strict=True)
    return sorted(tuple(map(int, row)) for row in rows)


@pytest.mark.parametrize("how", OTHER)
def test_pushed_in_pieces_gives_the_rows_and_times_of_the_whole(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(SEED, SEED + CASES):
        rng = np.random.default_rng(seed)
        max_rows = int(rng.choice([3, 60, 200]))
        monkeypatch.setattr(live, "ROUND_TUPLES", int(rng.choice([1, 7, 100, 1 << 17])))
        r, s = (cases.stream_of(rng, side, int(rng.integers(0, max_rows))) for side in ("r", "s"))
        asked = {**ASKED[str(rng.choice(sorted(ASKED)))], "window": cases.window_of(rng, max_rows)}
        name = str(rng.choice(LIVE))
        order = "none" if rng.random() < 0.5 else catalog.get(name).capabilities.order
        max_pairs = None if rng.random() < 0.5 else max_rows
        what = f"SEED={seed} CASES=1: {name}, {r.rows} x {s.rows}, {asked}, {order}"
        with sj.StreamJoiner(
            **asked, engine=name, how=how, order=order, max_pairs=max_pairs
        ) as joiner:
            matches = joined(joiner, given(r), given(s), rng)
            metrics = joiner.metrics
        right = whole(given(r), given(s), **asked, how=how)
        assert rows_of(matches) == rows_of_whole(right), what
        assert metrics["digest"] == right.metrics["digest"], what
        assert (metrics["pairs"], metrics["how"]) == (len(right), how), what
        assert max_pairs is None or max(map(len, matches), default=0) <= max_pairs, what
        if order != "none":
            predicate = Predicate.parse(asked.get("on"), asked.get("band"))
            job = Job(*as_streams(given(r), given(s), predicate), predicate, asked["window"])
            ts = np.concatenate([np.empty(0, np.int64), *(each.ts for each in matches)])
            verify.check_order(together(matches), job, order, ts)


@pytest.mark.parametrize("how", OTHER)
def test_late_tuples_are_in_no_result(how: str) -> None:
    for seed in range(SEED, SEED + CASES // 4):
        rng = np.random.default_rng(seed)
        sides = []
        for name in ("k", "k"):
            ts = np.arange(120) * 3 + rng.integers(0, 60, 120)
            sides.append({name: rng.integers(0, 200, 120), "ts": ts})
        asked = {"on": "k", "window": "time:40us,25us", "lateness": "30us", "how": how}
        with sj.StreamJoiner(**asked) as joiner:
            matches = joined(joiner, *sides, rng, 20)
            metrics = joiner.metrics
        right = whole(*sides, **asked)
        assert metrics["late"] == right.metrics["late"]
        assert sum(metrics["late"]) > 0
        assert rows_of(matches) == rows_of_whole(right), f"SEED={seed} CASES=4"
        assert metrics["digest"] == right.metrics["digest"]


@pytest.mark.parametrize("how", OTHER)
def test_without_arrival_times_the_rows_are_those_of_the_order_of_pushing(how: str) -> None:
    for seed in range(SEED, SEED + CASES // 4):
        rng = np.random.default_rng(seed)
        keys: dict[str, list[int]] = {"r": [], "s": []}
        times: dict[str, list[int]] = {"r": [], "s": []}
        matches = []
        with sj.StreamJoiner(on="k", window="count:5,9", how=how) as joiner:
            for number in range(12):
                side = str(rng.choice(["r", "s"]))
                batch = rng.integers(0, 12, int(rng.integers(1, 6))).tolist()
                (joiner.push_r if side == "r" else joiner.push_s)({"k": batch})
                keys[side] += batch
                times[side] += [number] * len(batch)
                # R precedes S at equal times, so each push is given a time of its own.
                matches += joiner.results()
            joiner.end()
            matches += joiner.results()
            metrics = joiner.metrics
        r, s = ({"k": np.array(keys[x], int), "ts": np.array(times[x], int)} for x in "rs")
        right = whole(r, s, on="k", window="count:5,9", how=how)
        assert [row[:2] for row in rows_of(matches)] == [row[:2] for row in rows_of_whole(right)], (
            f"SEED={seed} CASES=4"
        )
        assert metrics["digest"] == right.metrics["digest"]


def columns_of(rng: np.random.Generator, rows: int, late_us: int) -> dict[str, pa.Array]:
    """Columns of many types, all with missing values but the arrival times."""
    values = rng.integers(0, 30, rows).tolist()
    types = {
        "k": pa.int16(),
        "v": pa.float32(),
        "t": pa.string(),
        "d": pa.decimal128(9, 2),
        "l": pa.list_(pa.int8()),
    }
    columns = {name: [None if v < 2 else v for v in values] for name in types}
    columns["t"] = [None if v is None else f"t{v}" for v in columns["t"]]
    columns["l"] = [None if v is None else [v] for v in columns["l"]]
    ts = pa.array(late_us + np.sort(rng.integers(0, 200, rows)))
    return {**{name: pa.array(columns[name], types[name]) for name in types}, "ts": ts}


@pytest.mark.parametrize("how", ["left", "right", "full"])
def test_tables_of_pieces_are_that_of_the_whole_whichever_side_was_joined_so_far(how: str) -> None:
    for seed in range(SEED, SEED + CASES):
        rng = np.random.default_rng(seed)
        late_us = rng.choice([0, 100, 1000], 2).tolist()
        r, s = (columns_of(rng, int(rng.integers(1, 80)), each) for each in late_us)
        asked = {"on": "k", "window": str(rng.choice(["time:20us", "count:5", "all"])), "how": how}
        name = str(rng.choice(LIVE))
        with sj.StreamJoiner(**asked, engine=name) as joiner:
            joiner.push_r(cut(r, 0, 1))
            joiner.push_s(cut(s, 0, 1))
            rest = (cut(each, 1, len(each["ts"])) for each in (r, s))
            matches = [*joiner.results(), *joined(joiner, *rest, rng, 20)]
        tables = [each.table() for each in matches]
        keys = [(f"{column}_{side}", "ascending") for column in ("ts", "k") for side in "rs"]
        right = whole(pa.table(r), pa.table(s), **asked).table().sort_by(keys)
        found = pa.concat_tables(tables).sort_by(keys)
        assert found.equals(right), f"SEED={seed} CASES=1: {name}, {asked}, {late_us}"


def taken(joiner: sj.StreamJoiner) -> list[tuple[int, int, int]]:
    return rows_of(list(joiner.results()))


def test_a_row_comes_out_when_its_moment_has_passed_and_not_before() -> None:
    with sj.StreamJoiner(on="k", window="time:10us", how="left") as joiner:
        joiner.push_r({"k": [1, 2], "ts": [0, 3]})
        joiner.push_s({"k": [2], "ts": [5]})
        assert taken(joiner) == []
        joiner.push_r({"k": [8], "ts": [9]})
        assert taken(joiner) == [(1, 0, 5)]
        joiner.advance(9)
        assert taken(joiner) == []
        joiner.advance(11)
        assert taken(joiner) == [(0, -1, 10)]
        joiner.end()
        assert taken(joiner) == [(2, -1, 11)]  # the end of the input, as far as it was said
        assert taken(joiner) == []


def test_a_semi_row_comes_out_once_with_its_first_pair() -> None:
    with sj.StreamJoiner(on="k", how="semi") as joiner:
        joiner.push_r({"k": [1, 2], "ts": [0, 0]})
        joiner.push_s({"k": [2, 2], "ts": [5, 6]})
        joiner.push_r({"k": [9], "ts": [6]})
        assert taken(joiner) == [(1, -1, 5)]
        joiner.push_s({"k": [2, 1], "ts": [7, 8]})
        joiner.end()
        assert taken(joiner) == [(0, -1, 8)]


def test_a_tuple_that_a_count_window_pushes_out_comes_with_the_time_of_the_one_that_does() -> None:
    with sj.StreamJoiner(on="k", window="count:2", how="anti") as joiner:
        joiner.push_r({"k": [1, 2, 3], "ts": [0, 1, 4]})
        joiner.push_s({"k": [3], "ts": [9]})
        assert taken(joiner) == [(0, -1, 4)]
        joiner.end()
        assert taken(joiner) == [(1, -1, 9)]


@pytest.mark.parametrize("order", ["none", "outer"])
def test_rows_of_the_end_come_in_order_behind_a_promise_beyond_the_last_arrival(order: Any) -> None:
    r, s = {"k": [1, 2], "ts": [5, 7]}, {"k": [3, 4], "ts": [7, 7]}
    asked: Any = {"on": "k", "window": "count:2,1", "how": "full", "order": order}
    with sj.StreamJoiner(engine="kang", **asked) as joiner:
        joiner.push_r(r)
        joiner.push_s(s)
        joiner.advance(9)
        # S's first is pushed out at 7, where rows of R may come at the end.
        before = list(joiner.results())
        joiner.end()
        matches = before + list(joiner.results())
    assert rows_of(before) == ([(-1, 0, 7)] if order == "none" else [])
    whole = sj.join(r, s, engine="kang", **asked)
    right = [(0, -1), (1, -1), (-1, 0), (-1, 1)]
    found = [pair for m in matches for pair in zip(m.r_rows, m.s_rows, strict=True)]
    assert sorted(found) == sorted(right)
    if order != "none":
        assert found == right == list(zip(whole.r_rows, whole.s_rows, strict=True))


def left_undecided() -> None:
    with sj.StreamJoiner(on="k", how="anti") as joiner:
        joiner.push_r({"k": [1], "ts": [0]})
        joiner.advance(5)
        list(joiner.results())


def test_leaving_with_rows_that_are_not_decided_says_so() -> None:
    with pytest.raises(sj.InputError, match=r"^rows of how anti wait .* call end\(\) and take"):
        left_undecided()


def test_a_wrong_kind_is_refused_with_the_nearest() -> None:
    with pytest.raises(sj.InputError, match="not 'lefft': did you mean left"):
        sj.StreamJoiner(on="k", how="lefft")
    with pytest.raises(sj.InputError, match="not 'lefft': did you mean left"):
        sj.join({"k": [1]}, {"k": [1]}, on="k", how="lefft")


def test_the_memory_of_undecided_rows_is_that_of_the_window() -> None:
    rng, taken_rows = np.random.default_rng(3), 0
    with sj.StreamJoiner(on="k", window="time:1ms", how="full") as joiner:
        for begin in range(0, 100_000, 1000):
            ts = begin + np.arange(0, 1000, 10)
            joiner.push_r({"k": rng.integers(0, 1000, len(ts)), "ts": ts})
            joiner.push_s({"k": rng.integers(0, 1000, len(ts)), "ts": ts})
            taken_rows += sum(map(len, joiner.results()))
            assert max(joiner.metrics["window_tuples"]) <= 201
            owed = [side.state.owed for side in (joiner._r, joiner._s)]
            assert sum(len(each.times) for each in owed if each is not None) <= 2
        assert taken_rows > 10_000
        joiner.close()


def left_rows(*of_s: object) -> sj.Matches:
    with sj.StreamJoiner(on="k", how="left", window="count:2") as joiner:
        for batch in of_s:
            joiner.push_s(batch)
        joiner.push_r({"k": [1]})
        joiner.end()
        (matches,) = joiner.results()
    return matches


def test_columns_of_a_stream_are_known_from_a_batch_without_rows() -> None:
    nothing = pa.table({"k": pa.array([], pa.int64()), "w": pa.array([], pa.float32())})
    unknown = left_rows()
    assert unknown.table("r.*").to_pylist() == [{"k": 1}]
    with pytest.raises(sj.InputError, match=r"^s: no batch was pushed before these pairs"):
        unknown.table()
    known = left_rows(nothing).table()
    assert known.to_pylist() == [{"k_r": 1, "k_s": None, "w": None}]
    assert known.schema.field("w").type == pa.float32()
    other = left_rows(nothing, {"k": [1], "v": ["a"]})  # a batch with rows has the last word
    assert other.table().to_pylist() == [{"k_r": 1, "k_s": 1, "v": "a"}]
