"""Live joins whose buffers are full again and again: what is live moves to the front of them."""

from typing import Any

import numpy as np
import pytest

import streamjoin as sj
from streamjoin.engines.sliding.flat import live as flat_live
from streamjoin.engines.sliding.flat.buffers import Buffers
from streamjoin.engines.sliding.flat.index import FlatIndex
from streamjoin.tuples import Pairs

ROWS = 600
ASKED: dict[str, dict[str, Any]] = {
    "equality": {"on": "k"},
    "strings": {"on": "t"},
    "band": {"band": "k=k:1:1"},
    "two bands": {"band": ["k=k:20:20", "x=x:0.3:0.2"]},
    "an equality and a band": {"on": "g", "band": "x=x:0.3:0.2"},
}


def stream(rng: np.random.Generator) -> dict[str, Any]:
    """Values that drift, some of them missing."""
    keys = rng.integers(0, 60, ROWS) + np.arange(ROWS) // 4
    return {
        "k": keys,
        "g": keys % 5,
        "t": np.array([f"name {key}" for key in keys], dtype=object),
        "x": np.where(rng.random(ROWS) < 0.05, np.nan, rng.random(ROWS) * 8),
        "ts": np.sort(rng.integers(0, 1500, ROWS)),
    }


def test_two_bands_with_a_stream_that_has_no_tuples() -> None:
    bands, side = ["k=k:1:1", "x=x:1:1"], {"k": np.arange(3), "x": np.arange(3.0)}
    nothing = {name: values[:0] for name, values in side.items()}
    for sides in ((side, nothing), (nothing, side)):
        found = sj.join(*sides, band=bands, window="count:2", engine="ibwj-flat")
        assert len(found) == 0


class Moves:
    """Small buffers, and how often some were moved in place."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, slid = 0, Buffers.slid

        def counted(buffers: Buffers, first: int, end: int) -> Buffers:
            self.count += 1
            return slid(buffers, first, end)

        monkeypatch.setattr(Buffers, "slid", counted)
        monkeypatch.setattr(flat_live, "MIN_LIVE", 16)
        monkeypatch.setattr(flat_live, "MIN_BATCH", 16)


@pytest.mark.parametrize("of_s", [0.5, 0.02])
@pytest.mark.parametrize("window", ["count:40", "count:5,90", "time:100us", "tumbling:80us"])
@pytest.mark.parametrize("asked", ASKED)
def test_buffers_that_are_full_give_the_pairs_of_the_whole(
    monkeypatch: pytest.MonkeyPatch, asked: str, window: str, of_s: float
) -> None:
    moves, rng = Moves(monkeypatch), np.random.default_rng(5)
    sides = [stream(rng), stream(rng)]
    right = sj.join(*sides, **ASKED[asked], window=window, engine="oracle")
    rows: list[Any] = []
    with sj.StreamJoiner(**ASKED[asked], window=window, engine="ibwj-flat") as joiner:
        pushes, done = (joiner.push_r, joiner.push_s), [0, 0]
        while done != [ROWS, ROWS]:
            which = int(rng.random() < of_s) if min(ROWS - at for at in done) else done[0] == ROWS
            stop = done[which] + int(rng.integers(1, 20))
            pushes[which]({name: each[done[which] : stop] for name, each in sides[which].items()})
            done[which] = min(stop, ROWS)
            rows += joiner.results()
        joiner.end()
        rows += joiner.results()
    found = [
        np.concatenate([getattr(each, name) for each in rows]) for name in ("r_rows", "s_rows")
    ]
    assert Pairs(*found).digest == right.metrics["digest"]
    assert len(found[0]) == len(right)
    assert moves.count


def test_a_move_that_fails_anywhere_leaves_the_windows_as_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moves, tried = Moves(monkeypatch), 0
    keys = np.random.default_rng(3).integers(0, 40, ROWS)
    side = {"k": keys, "ts": np.arange(ROWS)}
    right = sj.join(side, side, on="k", window="count:40", engine="oracle")
    places: list[tuple[Any, str]] = [
        (Buffers, "slid"),
        (FlatIndex, "slide"),
        (Buffers, "clear_behind"),
        (flat_live.FlatSession, "_slide"),
    ]
    with sj.StreamJoiner(on="k", window="count:40", engine="ibwj-flat") as joiner:
        for number, at in enumerate(range(0, ROWS, 3)):
            for push in (joiner.push_r, joiner.push_s):
                push({name: each[at : at + 3] for name, each in side.items()})
            where, name = places[number % len(places)]
            good = getattr(where, name)

            def failing(*given: Any, good: Any = good) -> None:
                good(*given)
                raise KeyboardInterrupt

            with monkeypatch.context() as patch:
                patch.setattr(where, name, failing)
                try:
                    list(joiner.results())
                except KeyboardInterrupt:
                    tried += 1
            list(joiner.results())
        joiner.end()
        list(joiner.results())
        assert joiner.metrics["digest"] == right.metrics["digest"]
    assert tried > len(places)
    assert moves.count
