"""Live joins whose engine keeps its windows: any pieces, codes that change, calls that fail.

A case is named by its seed, which is printed where it fails; ``SEED=`` and ``CASES=1`` repeat it.
"""

import os
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import streamjoin as sj
from streamjoin.engines.sliding.flat import live as flat_live
from streamjoin.engines.sliding.flat.index import FlatIndex
from streamjoin.engines.sliding.flat.output import Buffer
from streamjoin.live import kept as kept_rounds
from streamjoin.live import quick
from streamjoin.live.payload import Rows
from streamjoin.tuples import Pairs

CASES = int(os.environ.get("CASES", "8"))
SEED = int(os.environ.get("SEED", "0")) or int.from_bytes(os.urandom(4), "little")
WINDOWS = ["all", "count:30,300", "count:2000", "time:60us,20us", "tumbling:50us"]
TIMES = np.dtype("M8[ns]")
KINDS = ["int64", "int16", "uint64", "float64", "nan", "masked", "times", "strings", "bytes"]
pytestmark = [
    pytest.mark.timeout(120 + 10 * CASES),
    # Large integers beside missing values, as floating-point numbers, are meant here.
    pytest.mark.filterwarnings("ignore:.*holds integers beside missing:streamjoin.InputWarning"),
    pytest.mark.filterwarnings("ignore:band .* is empty:streamjoin.InputWarning"),  # so are these
]


def column(rng: np.random.Generator, rows: int, kind: str) -> Any:
    """Values whose range widens in mid-stream, beyond what codes held before."""
    jump = int(rng.choice([0, 1 << 20, 1 << 33, 1 << 50]))
    values = rng.integers(0, 300, rows) + np.cumsum(rng.random(rows) < 0.003) * jump
    if kind == "float64":
        return values * 0.5
    if kind == "nan":
        return np.where(rng.random(rows) < 0.1, np.nan, values * 1.0)
    if kind == "masked":
        return np.ma.masked_array(values, rng.random(rows) < 0.1)
    if kind in {"strings", "bytes"}:
        named = [f"k{each}" * int(1 + each % 5) for each in values.tolist()]
        if kind == "bytes":
            return np.array([each.encode() for each in named])
        return np.array(
            [
                None if lost else each
                for lost, each in zip(rng.random(rows) < 0.1, named, strict=True)
            ],
            dtype=object,
        )
    return values.view(TIMES) if kind == "times" else values.astype(kind)


@pytest.mark.parametrize("number", range(CASES))
def test_pieces_of_1_to_1000_tuples_give_the_pairs_of_the_whole(number: int) -> None:
    rng = np.random.default_rng(SEED + number)
    kind = str(rng.choice(KINDS))
    asked: dict[str, Any] = {"on": ["k", "g"] if rng.random() < 0.4 else "k"}
    if kind in {"int64", "int16", "masked"} and rng.random() < 0.6:
        asked = {"band": f"k=k:{rng.integers(-2, 9)}:{rng.integers(0, 5)}"}
    window, sides = str(rng.choice(WINDOWS)), []
    for rows in rng.integers(1, 1500, 2):
        ts = np.sort(rng.integers(0, 1500, rows))
        sides.append({"k": column(rng, rows, kind), "g": rng.integers(0, 3, rows), "ts": ts})
    order = str(rng.choice(["none", "inner"]))
    threads = int(rng.integers(1, 3))
    right = sj.join(*sides, **asked, window=window, engine="oracle")
    found, late, done = [], rng.random() < 0.2, [0, 0]
    with sj.StreamJoiner(
        **asked, window=window, order=order, threads=threads, lateness="9us" if late else None
    ) as joiner:
        pushes = (joiner.push_r, joiner.push_s)
        while done != [len(side["ts"]) for side in sides]:
            which = int(rng.integers(0, 2))
            stop = done[which] + int(rng.choice([1, 1, 7, 100, 1000]))
            piece = {name: each[done[which] : stop] for name, each in sides[which].items()}
            pushes[which](piece)
            done[which] = min(stop, len(sides[which]["ts"]))
            found += joiner.results()
        joiner.end()
        found += joiner.results()
        metrics = joiner.metrics
        kept = joiner._book.now.progress.session is not None
    what = f"SEED={SEED + number} CASES=1: {kind}, {asked}, {window}, {order}"
    nothing = [np.empty(0, np.int64)]
    pairs = Pairs(*(np.concatenate([getattr(m, n) for m in found] or nothing) for n in NAMES))
    assert pairs.difference(Pairs(right.r_rows, right.s_rows)) is None, what
    assert metrics["digest"] == right.metrics["digest"], what
    assert kept or not all(done), what
    for matches in found[:: max(1, len(found) // 5)]:
        table = matches.table()
        assert table["ts_r"].to_pylist() == sides[0]["ts"][matches.r_rows].tolist(), what
        assert table["g_s"].to_pylist() == sides[1]["g"][matches.s_rows].tolist(), what
        latest = np.maximum(sides[0]["ts"][matches.r_rows], sides[1]["ts"][matches.s_rows])
        assert matches.ts.tolist() == latest.tolist(), what


NAMES = ("r_rows", "s_rows")


def test_a_call_that_fails_anywhere_leaves_the_windows_as_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng, found, tried = np.random.default_rng(3), [], 0
    keys = np.r_[rng.integers(0, 40, 300), rng.integers(0, 40, 300) + (1 << 40)]
    right = sj.join({"k": keys}, {"k": keys}, on="k", engine="oracle")
    places = [
        (flat_live.Buffers, "append"),
        (flat_live.Coding, "code"),
        (FlatIndex, "join_few"),
        (Buffer, "emit"),
        (flat_live._Pairs, "numbered"),
        (kept_rounds, "Matches"),
    ]
    with sj.StreamJoiner(on="k", engine="ibwj-flat") as joiner:
        for at in range(0, len(keys), 30):
            joiner.push_r({"k": keys[at : at + 30]})
            joiner.push_s({"k": keys[at : at + 30]})
            before = joiner.metrics
            for where, name in places if at else []:
                good, calls = getattr(where, name), []

                def failing(*given: Any, good: Any = good, calls: Any = calls, **named: Any) -> Any:
                    calls.append(good(*given, **named))
                    raise KeyboardInterrupt

                with monkeypatch.context() as patch:
                    patch.setattr(where, name, failing)
                    with pytest.raises(KeyboardInterrupt):
                        list(joiner.results())
                tried += len(calls)
                assert joiner.metrics == before
            found += joiner.results()
        assert joiner.metrics["digest"] == right.metrics["digest"]
    assert tried == 19 * len(places)
    assert sum(map(len, found)) == len(right)


def test_a_round_does_not_grow_with_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    cut: list[int] = []
    good = FlatIndex._recut

    def counting(self: FlatIndex, side: int, rows: slice, homes: int) -> None:
        cut.append(self._held(side, rows))
        good(self, side, rows, homes)

    monkeypatch.setattr(FlatIndex, "_recut", counting)
    with sj.StreamJoiner(on="k", window="count:1000") as joiner:
        for at in range(10_000):
            joiner.push_r({"k": np.array([at])})
            joiner.push_s({"k": np.array([at])})
            assert sum(map(len, joiner.results())) == 1
        assert joiner.metrics["window_tuples"] == [1000, 1000]
    assert sum(cut) < 4 * 10_000  # tuples that were inserted anew


def test_a_dictionary_of_strings_does_not_grow_beyond_a_few_windows() -> None:
    with sj.StreamJoiner(on="k", window="count:500") as joiner:
        for at in range(0, 20_000, 100):
            keys = np.array([f"a key of its own {each}" for each in range(at, at + 100)], object)
            joiner.push_r({"k": keys})
            joiner.push_s({"k": keys[::-1]})
            assert sum(map(len, joiner.results())) == 100
        session = joiner._book.now.progress.session
        assert isinstance(session, flat_live.FlatSession)
        words = session._dictionary
        assert words is not None
        assert len(words) < 8 * 1024
        again = np.array(["a key of its own 3", "a key of its own 19999"], object)
        joiner.push_r({"k": again[:1]})  # was forgotten
        joiner.push_s({"k": again})
        assert sum(map(len, joiner.results())) == 2


def test_batches_like_the_ones_before_are_read_the_short_way_and_others_are_not() -> None:
    with sj.StreamJoiner(on="k") as joiner:
        joiner.push_r({"k": [1], "v": [0.5], "ts": [1]})
        assert joiner._r.form is None, "a list"
        like = {"k": np.array([1]), "v": np.array([0.5]), "ts": np.array([2])}
        joiner.push_r(like)
        form = joiner._r.form
        assert isinstance(form, quick.Form)
        read = form.read(like)
        assert read is not None
        assert isinstance(read.table, Rows)
        assert not np.shares_memory(read.columns["k"], like["k"])
        twice = {name: np.tile(values, 2) for name, values in like.items()}
        for other in (
            {**like, "more": np.array([1])},
            {"k": like["k"], "ts": like["ts"]},
            {**like, "v": np.array([0.5, 0.5])},
            {**like, "v": np.array([1])},
            {**like, "k": np.ma.masked_array([1], [True])},
            {**like, "k": np.array([1], np.int32)},
            {**like, "ts": np.array([1 << 62]) + 1},
            {**twice, "ts": np.array([5, 4])},
            {name: values[:0] for name, values in like.items()},
        ):
            assert form.read(other) is None
        with pytest.raises(sj.InputError, match=r"^r: ts goes back at row 2, from 2 to 1"):
            joiner.push_r({**like, "ts": np.array([1])})
        joiner.close()


@pytest.mark.parametrize("how", ["inner", "left", "full"])
@pytest.mark.parametrize(
    ("before", "after"), [((8, 2), (8, 3)), ((12, 3), (8, 2)), ((8, 0), (9, 1)), ((8, 2), (12, 3))]
)
def test_decimals_may_change_their_scale_in_mid_stream(
    how: str, before: tuple[int, int], after: tuple[int, int]
) -> None:
    def keys(numbers: str, scale: tuple[int, int]) -> "dict[str, pa.Array]":
        return {"k": pa.array([Decimal(each) for each in numbers], pa.decimal128(*scale))}

    joiner = sj.StreamJoiner(on="k", how=how)
    rows = []
    for r, s, scale in (("1", "1", before), ("21", "12", after), ("3", "3", before)):
        joiner.push_r(keys(r, scale))
        joiner.push_s(keys(s, scale))
        rows += [row for matches in joiner.results() for row in matches.table("r.k").to_pylist()]
    assert sorted(row["k"] for row in rows) == [1, 1, 1, 1, 2, 3]


@pytest.mark.parametrize("engine", ["auto", "kang"])
def test_wide_decimals_of_rows_that_match_nothing_stand_in_no_ones_way(engine: str) -> None:
    def side(key: int, group: int | None) -> pa.Table:
        keys = pa.array([Decimal(key)], pa.decimal128(30, 0))
        return pa.table({"k": keys, "g": pa.array([group], pa.int64())})

    joiner = sj.StreamJoiner(on="k,g", window="count:10", how="right", engine=engine)
    joiner.push_r(side(5, 1))
    joiner.push_s(side(1 << 63, None))
    joiner.push_s(side(5, 1))
    joiner.end()
    found = [pair for m in joiner.results() for pair in zip(m.r_rows, m.s_rows, strict=True)]
    assert sorted(found) == [(-1, 0), (0, 1)]


def test_what_is_no_number_stays_so_beside_another_width() -> None:
    for width, other in ((pa.float32(), pa.float64()), (pa.float64(), pa.float32())):
        joiner = sj.StreamJoiner(on="k")
        joiner.push_s({"k": [1, 2]})
        for key, value, kind in ((1, float("nan"), width), (2, 1.5, other)):
            joiner.push_r({"k": pa.array([key]), "c": pa.array([value], kind)})
        (matches,) = joiner.results()
        values = matches.table("r.c")["c"].to_pylist()
        assert values[1] == 1.5
        assert values[0] is not None
        assert np.isnan(values[0])
