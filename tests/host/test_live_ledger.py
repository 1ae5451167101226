"""Kinds of join live beside an engine's session: rows, times, order, and calls that fail."""

import os
from typing import Any

import numpy as np
import pytest
from tests.host.test_live_kinds import rows_of, rows_of_whole

import streamjoin as sj
from streamjoin.engines.sliding.flat import live as flat_live
from streamjoin.live import kept, ledger, rounds
from streamjoin_common.language.kinds import KINDS

CASES = int(os.environ.get("CASES", "2"))
SEED = int(os.environ.get("SEED", "0")) or int.from_bytes(os.urandom(4), "little")
WINDOWS = ["all", "count:30,300", "count:5", "time:60us,20us", "tumbling:50us"]


def side(rng: np.random.Generator, rows: int, strings: bool) -> dict[str, Any]:
    keys = rng.integers(0, 60, rows)
    named = np.array([None if key < 3 else f"k{key}" for key in keys], object)
    ts = np.sort(rng.integers(-50, 400, rows))
    return {"k": named if strings else keys, "g": rng.integers(0, 3, rows), "ts": ts}


@pytest.mark.parametrize("how", KINDS[1:])
def test_rows_and_times_are_those_of_the_whole_and_sessions_are_kept(how: Any) -> None:
    for seed in range(SEED, SEED + 2 * CASES):
        rng = np.random.default_rng(seed)
        sides = [side(rng, int(rows), seed % 2 == 0) for rows in rng.integers(2, 600, 2)]
        on, window = str(rng.choice(["k", "k,g"])), str(rng.choice(WINDOWS))
        order = str(rng.choice(["none", "outer", "inner"]))
        max_pairs = None if rng.random() < 0.5 else 700
        found: list[sj.Matches] = []
        done, opened = [0, 0], False
        with sj.StreamJoiner(
            on=on, window=window, how=how, order=order, max_pairs=max_pairs
        ) as joiner:
            pushes = (joiner.push_r, joiner.push_s)
            while done != [len(each["ts"]) for each in sides]:
                which = int(rng.integers(0, 2))
                stop = done[which] + int(rng.choice([1, 7, 100]))
                pushes[which]({name: c[done[which] : stop] for name, c in sides[which].items()})
                done[which] = min(stop, len(sides[which]["ts"]))
                following = [
                    each["ts"][at]
                    for each, at in zip(sides, done, strict=True)
                    if at < len(each["ts"])
                ]
                if following and rng.random() < 0.2:
                    joiner.advance(int(min(following)))
                found += joiner.results()
                opened |= joiner._book.now.progress.settled is not None
            joiner.end()
            found += joiner.results()
            assert not joiner._rounds.owes
            digest = joiner.metrics["digest"]
        what = f"SEED={seed} CASES=1: {how}, {on}, {window}, {order}, {max_pairs}"
        right = sj.join(*sides, on=on, window=window, engine="oracle", how=how)
        assert rows_of(found) == rows_of_whole(right), what
        assert digest == right.metrics["digest"], what
        assert opened, what
        if order != "none":
            times = np.concatenate([np.empty(0, np.int64), *(each.ts for each in found)])
            assert (np.diff(times) >= 0).all(), what
        single = how in {"semi", "anti"}
        both = [m for m in found if single or ((m.r_rows >= 0).any() and (m.s_rows >= 0).any())]
        for matches in both[:: max(1, len(both) // 5)]:
            table = matches.table()
            for name, rows, data in zip("rs", (matches.r_rows, matches.s_rows), sides, strict=True):
                if name == "r" or not single:
                    column = table["ts" if single else f"ts_{name}"].to_pylist()
                    assert column == [None if at < 0 else data["ts"][at] for at in rows], what


def test_a_call_that_fails_leaves_no_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    r, s = rng.integers(0, 90, 300), rng.integers(0, 90, 300)
    for how in ("full", "semi"):
        right = sj.join({"k": r}, {"k": s}, on="k", engine="oracle", how=how)
        found, failed = [], 0
        with sj.StreamJoiner(on="k", how=how) as joiner:
            for at in range(0, 300, 30):
                joiner.push_r({"k": r[at : at + 30]})
                joiner.push_s({"k": s[at : at + 30]})
                before = joiner.metrics
                for where, name in (
                    (flat_live.FlatSession, "join"),
                    (ledger.Ledger, "_begin"),
                    (ledger.Ledger, "_alone"),
                    (ledger, "_in_place"),
                    (kept, "Progress"),
                    (rounds, "settled_kept"),
                ):
                    good = getattr(where, name)

                    def failing(*given: Any, good: Any = good, **named: Any) -> Any:
                        good(*given, **named)
                        raise KeyboardInterrupt

                    with monkeypatch.context() as patch:
                        patch.setattr(where, name, failing)
                        if joiner._book.now.progress.session is not None:
                            with pytest.raises(KeyboardInterrupt):
                                list(joiner.results())
                            failed += 1
                    assert joiner.metrics == before
                # After a failure fewer arrivals are joined first: the others have left no marks.
                with monkeypatch.context() as patch:
                    patch.setattr(rounds, "ROUND_TUPLES", 7)
                    found += joiner.results()
            joiner.end()
            found += joiner.results()
            assert joiner.metrics["digest"] == right.metrics["digest"]
        assert failed == 9 * 6
        assert sum(map(len, found)) == len(right)
