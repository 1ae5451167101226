"""Joined rows of a live join are looked up in the pieces that hold them, however rows came."""

import os
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import streamjoin as sj
from streamjoin.live import payload

CASES = int(os.environ.get("CASES", "6"))
SEED = int(os.environ.get("SEED", "0")) or int.from_bytes(os.urandom(4), "little")


def batch(rng: np.random.Generator, first: int, rows: int, form: str) -> Any:
    """Rows whose columns say their number; their keys repeat."""
    numbers = np.arange(first, first + rows)
    columns = {
        "k": rng.integers(0, 9, rows),
        "n": numbers,
        "text": np.array([f"row {number} \u00e4" for number in numbers], dtype=object),
    }
    if form == "numpy":
        return columns
    table = pa.table(columns)
    return table if form == "arrow" else table.to_pandas()


@pytest.mark.parametrize("how", ["inner", "full", "semi"])
def test_rows_are_those_of_their_numbers(how: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload, "PIECE_PARTS", 3)
    monkeypatch.setattr(payload, "PIECE_ROWS", 24)
    for seed in range(SEED, SEED + CASES):
        rng = np.random.default_rng(seed)
        forms = ["numpy", "arrow", "pandas"] if rng.random() < 0.5 else ["numpy"]
        window = str(rng.choice(["count:7", "count:90,11", "all"]))
        what = f"SEED={seed} CASES=1: {how}, {window}, {forms}"
        joiner = sj.StreamJoiner(on="k", how=how, window=window)
        pushed, kept = [0, 0], []
        for turn in range(150):
            for side, push in enumerate((joiner.push_r, joiner.push_s)):
                rows = int(rng.choice([1, 1, 2, 30])) if turn else 1
                push(batch(rng, pushed[side], rows, str(rng.choice(forms))))
                pushed[side] += rows
            kept += joiner.results()
            if rng.random() < 0.5:
                check(kept, how, what)
                kept = []
        joiner.end()
        check([*kept, *joiner.results()], how, what)


def check(found: list[sj.Matches], how: str, what: str) -> None:
    columns = ["r.n", "r.text"] + (["s.n", "s.text"] if how != "semi" else [])
    for matches in found:
        table = matches.table(columns, r_suffix="", s_suffix="_s").to_pydict()
        for rows, suffix in ((matches.r_rows, ""), (matches.s_rows, "_s")):
            if suffix and how == "semi":
                continue
            wanted = [None if row < 0 else row for row in rows.tolist()]
            assert table[f"n{suffix}"] == wanted, what
            texts = [None if row is None else f"row {row} \u00e4" for row in wanted]
            assert table[f"text{suffix}"] == texts, what


def test_small_pieces_are_copied_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload, "PIECE_PARTS", 4)
    monkeypatch.setattr(payload, "PIECE_ROWS", 100)
    rows = payload.Payload()
    for number in range(1000):
        rows = rows.with_rows(payload.Rows({"n": np.array([number])}, 1), 1, None)
        sizes = np.diff([0, *(piece.end for piece in rows.pieces)])
        assert (sizes < payload.PIECE_ROWS).sum() < payload.PIECE_PARTS
        together = [each for piece in rows.pieces for each in piece.rows.columns["n"].tolist()]
        assert together == list(range(len(together)))
    assert len(rows.pieces) < 12
