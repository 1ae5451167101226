"""What a live joiner holds: types, refusals that change nothing, rounds cut to the memory."""

from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

import streamjoin as sj
from streamjoin import estimate, memory
from streamjoin.engines import catalog
from streamjoin.engines.sliding.kang import Kang
from streamjoin.errors import InputError, TooLargeError
from streamjoin.inputs.batches import Batch
from streamjoin.live import joiner as live
from streamjoin.live import payload as live_payload
from streamjoin.live import side as live_side
from streamjoin.metrics import Meter

LIVE = [name for name in catalog.names() if catalog.get(name).capabilities.live]


def arrow(k: Any, ts: Any, p: Any) -> pa.Table:
    return pa.table({"k": k, "ts": ts, "p": p})


GOOD = [
    ("r", arrow([1, 2], [10, 20], ["a", "b"])),
    ("s", arrow([2, 1], [10, 25], ["c", "d"])),
    ("r", arrow([2, 1], [30, 40], ["e", "f"])),
    ("s", arrow([1, 2], [30, 45], ["g", "h"])),
]
PLAIN = [(side, {"k": t["k"].to_numpy(), "ts": t["ts"].to_numpy()}) for side, t in GOOD]
STAMPED = [(side, {"k": data["k"]}) for side, data in PLAIN]
REFUSED: dict[str, tuple[dict[str, Any], list[Any], Any]] = {
    "other columns": ({}, GOOD, pa.table({"k": [1], "ts": [50]})),
    "one column more": ({}, GOOD, arrow([1], [50], ["x"]).append_column("q", [[1]])),
    "a payload of another type": ({}, GOOD, arrow([1], [50], [1.5])),
    "a payload of another type with late rows": (
        {"lateness": "1us"},
        GOOD,
        arrow([1, 2], [99, 50], [1.5, 2.5]),
    ),
    "a key of another type": ({}, GOOD, arrow(["1"], [50], ["x"])),
    "a wider key": ({}, PLAIN, {"k": np.array([1], np.int32), "ts": [50]}),
    "a key that cannot be joined on": ({}, GOOD, arrow([[1]], [50], ["x"])),
    "no key": ({}, PLAIN, {"j": [1], "ts": [50]}),
    "no data": ({}, PLAIN, 7),
    "times that go back inside": ({}, PLAIN, {"k": [1, 1], "ts": [99, 98]}),
    "times that go back": ({}, PLAIN, {"k": [1], "ts": [0]}),
    "no times": ({}, PLAIN, {"k": [1]}),
    "no times beside a lateness": ({"lateness": "1us"}, PLAIN, {"k": [1]}),
    "times among stamped ones": ({}, STAMPED, {"k": [1], "ts": [1 << 40]}),
    "a time that is missing": ({}, GOOD, arrow([1, 1], [50, None], ["x", "y"])),
    "times that are real": ({}, PLAIN, {"k": [1], "ts": [50.0]}),
    "times beyond all": ({}, PLAIN, {"k": [1], "ts": np.array([1 << 62], "M8[s]")}),
    "columns of two lengths": ({}, PLAIN, {"k": [1, 2], "ts": [50]}),
    "columns of two dimensions": ({}, PLAIN, {"k": [[1]], "ts": [50]}),
    "more than may wait": ({}, PLAIN, {"k": [1] * 60, "ts": [50] * 60}),
}


def held(joiner: sj.StreamJoiner) -> Any:
    """All that a joiner keeps from one call to the next, but its engine and its lock."""
    return joiner.metrics, *joiner._book.now.sides, joiner._book.now.stamped, joiner._ended


def lives(options: dict[str, Any], good: list[Any], bad: Any, index: int | None) -> Any:
    """Push the good batches, and the bad one to both sides before one of them; what came out."""
    joined = []
    with sj.StreamJoiner(on="k", window="count:3", **options) as joiner:
        for number, (side, batch) in enumerate([*good, ("", None)]):
            if number == index:
                for push in (joiner.push_r, joiner.push_s):
                    before = held(joiner)
                    with pytest.raises(InputError):
                        push(bad)
                    after = held(joiner)
                    assert all(one == other for one, other in zip(before, after, strict=True))
            if side:
                (joiner.push_r if side == "r" else joiner.push_s)(batch)
            else:
                joiner.end()
            for matches in joiner.results():
                rows = zip(matches.r_rows, matches.s_rows, matches.ts, strict=True)
                joined.append((list(rows), matches.table().to_pylist() if good is GOOD else []))
        return joined, joiner.metrics


@pytest.mark.parametrize("index", [2, 4])
@pytest.mark.parametrize("kind", REFUSED)
def test_a_push_that_is_refused_changes_nothing(
    kind: str, index: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MAX_WAITING_TUPLES", 50)
    monkeypatch.setattr(Meter, "now_us", lambda _: 1000.0)
    options, good, bad = REFUSED[kind]
    assert lives(options, good, bad, index) == lives(options, good, bad, None)


@pytest.mark.parametrize(
    ("where", "what"), [(Batch, "take"), (live_payload, "written_out"), (live_side, "Held")]
)
def test_a_push_that_fails_midway_changes_nothing(
    where: Any, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    joiner = sj.StreamJoiner(on="k", lateness="5us")
    joiner.push_r(GOOD[0][1])
    before = held(joiner)
    with monkeypatch.context() as patch:
        patch.setattr(where, what, mock.Mock(side_effect=MemoryError))
        with pytest.raises(MemoryError):
            joiner.push_r(arrow([1, 2], [99, 50], ["x", "y"]))  # the second is too late
    assert all(one == other for one, other in zip(before, held(joiner), strict=True))


def test_a_push_to_one_side_that_does_not_compare_with_the_other_is_refused() -> None:
    with sj.StreamJoiner(on="k") as joiner:
        joiner.push_r({"k": [1]})
        with pytest.raises(InputError, match=r"^r: 'k' is integer, s: 'k' is string; both must be"):
            joiner.push_s({"k": ["1"]})
        joiner.push_s({"k": [1]})
        assert [len(matches) for matches in joiner.results()] == [1]
    with sj.StreamJoiner(on="k") as joiner:
        joiner.push_r({"k": [True]})
        with pytest.raises(InputError, match=r"cast the bool column to int8"):
            joiner.push_s({"k": [1]})
        joiner.close()
        assert joiner.metrics["n_s"] == 0


MISSING = {
    "masked": np.ma.masked_array([0, 0], [True, True]),
    "none": np.array([None, None], dtype=object),
    "not a number": np.array([np.nan, np.nan]),
    "single": np.ma.masked_array(np.zeros(2, np.float32), [True, True]),
    "null": pa.nulls(2),
    "null integers": pa.nulls(2, pa.int64()),
    "null reals": pa.nulls(2, pa.float64()),
    "null strings": pa.nulls(2, pa.string_view()),
}
VALUED: dict[str, tuple[dict[str, Any], Any]] = {
    "real bands": ({"band": "k=k:0.5:0.5"}, np.array([1.0, 2.0])),
    "single bands": ({"band": "k=k:0.5:0.5"}, np.array([1.0, 2.0], np.float32)),
    "whole bands": ({"band": "k=k:0:0"}, np.array([1, 2], np.int32)),
    "bands of whole widths on reals": ({"band": "k=k:0:0"}, np.array([1.0, 2.0])),
    "strings": ({"on": "k"}, np.array(["a", "b"])),
    "integers": ({"on": "k"}, np.array([0, 1], np.uint64)),
    "times": ({"on": "k"}, np.array(["2020-01-01", "2021-01-01"], "M8[us]")),
    "durations": ({"on": "k"}, np.array([0, 1], "m8[ms]")),
}


@pytest.mark.parametrize("first", ["r", "s"])
@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("values", VALUED)
def test_a_side_without_values_has_no_type(values: str, missing: str, first: str) -> None:
    options, keys = VALUED[values]
    nothing = MISSING[missing]
    tabled = isinstance(nothing, pa.Array)

    def batch(column: Any, number: int) -> Any:
        columns = {"k": pa.array(column) if tabled else column, "ts": np.array([number, number])}
        return pa.table(columns) if tabled else columns

    with sj.StreamJoiner(**options, window="count:9") as joiner:
        pushes = {"r": joiner.push_r, "s": joiner.push_s}
        silent, other = pushes.pop(first), *pushes.values()
        silent(batch(nothing, 0))
        joiner.advance(1)
        assert not list(joiner.results())
        other(batch(nothing, 1))
        joiner.advance(2)
        assert not list(joiner.results())
        other(batch(keys, 2))
        joiner.advance(3)
        assert not list(joiner.results())
        silent(batch(nothing, 3))
        silent(batch(keys, 4))
        joiner.end()
        assert [len(matches) for matches in joiner.results()] == [2]


@pytest.mark.parametrize("engine", LIVE)
def test_every_engine_waits_for_the_values_of_a_side(engine: str) -> None:
    with sj.StreamJoiner(band="k=k:0.5:0.5", window="count:8", engine=engine) as joiner:
        joiner.push_r({"k": np.ma.masked_array([0, 0], [True, True]), "ts": [0, 1]})
        joiner.push_s({"k": [1.0, 2.0], "ts": [2, 3]})
        joiner.advance(4)
        assert not list(joiner.results())
        joiner.push_r({"k": [1.25, 7.0], "ts": [4, 5]})
        joiner.end()
        assert [len(matches) for matches in joiner.results()] == [1]


def test_a_join_at_rest_takes_a_side_without_values_for_nothing() -> None:
    nothing, strings = {"k": np.array([np.nan, np.nan])}, {"k": np.array(["", "a"])}
    for r, s in ((nothing, strings), (strings, nothing), (nothing, {"k": np.array([0, 1])})):
        assert len(sj.join(r, s, on="k", engine="npj", check=True)) == 0
    assert len(sj.join({"k": []}, {"k": np.ma.masked_all(2, int)}, band="k=k:0.5:0.5")) == 0


def free_for(pairs: int) -> Any:
    free = int(pairs * estimate.PAIR_BYTES / memory.SHARE) + 1
    return mock.patch.object(memory, "available_bytes", return_value=free)


@pytest.mark.parametrize("engine", LIVE)
@pytest.mark.parametrize("bound", ["memory", "max_pairs"])
def test_a_round_with_too_many_pairs_is_cut_until_it_fits(engine: str, bound: str) -> None:
    rows, fitting = 150, 500
    keys, ts = np.zeros(rows, np.int64), np.arange(rows)
    maximum = fitting if bound == "max_pairs" else None
    with sj.StreamJoiner(on="k", window="all", engine=engine, max_pairs=maximum) as joiner:
        joiner.push_r({"k": keys, "ts": ts})
        joiner.push_s({"k": keys, "ts": ts})
        joiner.end()
        with free_for(fitting):
            rounds = list(joiner.results())
        metrics = joiner.metrics
    assert max(len(matches) for matches in rounds) <= fitting
    whole = sj.join({"k": keys, "ts": ts}, {"k": keys, "ts": ts}, on="k", engine="npj")
    assert (metrics["pairs"], metrics["digest"]) == (rows * rows, whole.metrics["digest"])
    assert rows * rows / fitting <= metrics["rounds"] < 8 * rows * rows / fitting


def test_rounds_grow_again_once_there_is_room() -> None:
    joiner = sj.StreamJoiner(on="k", window="count:64")
    for name in "rs":
        push = joiner.push_r if name == "r" else joiner.push_s
        push({"k": np.r_[np.zeros(64, np.int64), np.arange(1, 4001)], "ts": np.arange(4064)})
    joiner.end()
    with free_for(1000):
        assert sum(len(matches) for matches in joiner.results()) == 64 * 64 + 4000
    assert joiner.metrics["rounds"] < 60


@pytest.mark.parametrize("bound", ["memory", "max_pairs"])
def test_a_single_tuple_with_too_many_pairs_is_refused_and_waits(bound: str) -> None:
    rows = 100
    maximum = 50 if bound == "max_pairs" else None
    much = "50 pairs, the maximum asked for" if maximum else "50 pairs, all that the free memory"
    with sj.StreamJoiner(on="k", window="all", max_pairs=maximum) as joiner:
        joiner.push_r({"k": np.zeros(rows, np.int64), "ts": np.arange(rows)})
        joiner.push_s({"k": np.array([1, 0]), "ts": np.array([rows, rows + 1])})
        joiner.end()
        with free_for(50):
            sentence = rf"^s: row 1 alone has more than {much}.*: narrow the predicate or the "
            for _ in range(2):
                with pytest.raises(TooLargeError, match=sentence):
                    list(joiner.results())
                assert joiner.metrics["waiting"] == [0, 1]
                assert joiner.metrics["pairs"] == 0
        if maximum:
            joiner.close()
        else:
            (matches,) = joiner.results()  # memory has become free
            assert matches.s_rows.tolist() == [1] * rows


def test_a_round_that_runs_out_of_memory_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    good = Kang.run

    def greedy(self: Kang, job: Any, prepared: Any, meter: Meter) -> None:
        good(self, job, prepared, meter)
        if job.tuples - sum(job.carried) > 3:
            raise MemoryError

    monkeypatch.setattr(Kang, "run", greedy)
    with sj.StreamJoiner(on="k", engine="kang") as joiner:
        for push in (joiner.push_r, joiner.push_s):
            push({"k": np.arange(20), "ts": np.arange(20)})
        joiner.end()
        assert sum(len(matches) for matches in joiner.results()) == 20
        assert joiner.metrics["rounds"] >= 14


def test_a_joiner_refuses_a_maximum_without_sense() -> None:
    with pytest.raises(InputError, match=r"^max_pairs must be an integer of at least 1, not 0$"):
        sj.StreamJoiner(on="k", max_pairs=0)


WIDER = {
    "strings": (pa.string(), pa.large_string(), ["a", None]),
    "bytes": (pa.binary(), pa.large_binary(), [b"a", None]),
    "integers": (pa.int16(), pa.int64(), [-3, None]),
    "unsigned": (pa.uint8(), pa.uint32(), [3, None]),
    "floats": (pa.float32(), pa.float64(), [0.5, None]),
    "lists": (pa.list_(pa.string()), pa.large_list(pa.large_string()), [["a"], None]),
    "nothing in lists": (pa.list_(pa.null()), pa.list_(pa.int32()), [[], None]),
}


@pytest.mark.parametrize("wide_first", [False, True])
@pytest.mark.parametrize("name", WIDER)
def test_a_column_takes_the_wider_of_two_types(name: str, wide_first: bool) -> None:
    narrow, wide, values = WIDER[name]
    kinds = [wide, narrow, wide] if wide_first else [narrow, wide, narrow]
    with sj.StreamJoiner(on="k", window="all") as joiner:
        for number, kind in enumerate(kinds):
            keys = np.arange(2) + 2 * number
            batch = pa.table({"k": keys, "p": pa.array(values, kind)})
            joiner.push_r(batch)
            joiner.push_s(batch)
        joiner.end()
        tables = [matches.table() for matches in joiner.results()]
    rows = sorted((row["k_r"], row["p_r"]) for table in tables for row in table.to_pylist())
    assert rows == list(enumerate(values * 3))
    assert {table.schema.field("p_s").type for table in tables} == {wide}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([1]), pa.array(["a"])),
        (pa.array([1]), pa.array([0.5])),
        (pa.array(["a"]), pa.array([b"a"])),
        (pa.array([1], pa.int32()), pa.array([1], pa.uint32())),
        (pa.array([[1]]), pa.array([["a"]])),
        (pa.array([1], pa.timestamp("us")), pa.array([1], pa.timestamp("ns"))),
    ],
)
def test_a_column_of_a_type_that_does_not_hold_the_other_is_refused(one: Any, other: Any) -> None:
    with sj.StreamJoiner(on="k", window="all") as joiner:
        joiner.push_r(pa.table({"k": [1], "p": one}))
        for _ in range(2):
            with pytest.raises(InputError, match=r"column 'p' is .* in this batch and was"):
                joiner.push_r(pa.table({"k": [1], "p": other}))
        joiner.push_s(pa.table({"k": [1], "p": one}))
        assert sum(len(matches) for matches in joiner.results()) == 1
