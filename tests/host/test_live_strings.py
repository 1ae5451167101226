"""Live joins of strings that are pushed as Python's or NumPy's: the short way, and any value.

A case is named by its seed, which is printed where it fails; ``SEED=`` and ``CASES=1`` repeat it.
"""

import os
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import streamjoin as sj
from streamjoin.inputs import strings as of_strings
from streamjoin.inputs.strings import Strings
from streamjoin.live import quick
from streamjoin.live.payload import Rows, joined_rows

CASES = int(os.environ.get("CASES", "6"))
SEED = int(os.environ.get("SEED", "0")) or int.from_bytes(os.urandom(4), "little")
ODD = ["", "\0", "a\0", "a", "ä", "a\u0308", "日本", "𝄞", "x" * 7, "x" * 8, "x" * 9, "y" * 300]
HALF = "\ud800"
"""Half a surrogate pair, which no store holds."""


def objects(values: list[Any]) -> Any:
    """Return an array of Python objects."""
    return np.array([*values, None], dtype=object)[:-1]


def pairs_of(found: list[Any]) -> list[tuple[int, int]]:
    """Return the pairs of results."""
    return [
        pair
        for each in found
        for pair in zip(each.r_rows.tolist(), each.s_rows.tolist(), strict=True)
    ]


@pytest.mark.timeout(120 + 10 * CASES)
@pytest.mark.parametrize("number", range(CASES))
def test_strings_of_any_kind_join_in_pieces_of_any_size(number: int) -> None:
    rng = np.random.default_rng(SEED + number)
    rows, lost = int(rng.choice([40, 1500, 3000])), float(rng.choice([0.0, 0.0, 0.002]))
    known = [*ODD, *(f"name {each}" for each in range(int(rng.choice([3, 300]))))]
    sides = []
    for _ in range(2):
        keys = [known[each] for each in rng.integers(0, len(known), rows)]
        keys = [None if rng.random() < lost else each for each in keys]
        note = [f"{each}" for each in range(rows)]
        sides.append({"k": objects(keys), "note": objects(note), "x": rng.integers(0, 9, rows)})
    asked: dict[str, Any] = {"on": "k"} | ({"band": "x=x:2:2"} if rng.random() < 0.4 else {})
    window = str(rng.choice(["all", "count:100", "count:700"]))
    times = [{"ts": 2 * np.arange(rows) + side} for side in range(2)]
    right = sj.join(
        sides[0] | times[0], sides[1] | times[1], **asked, window=window, engine="oracle"
    )
    found, done = [], [0, 0]
    with sj.StreamJoiner(**asked, window=window) as joiner:
        pushes = (joiner.push_r, joiner.push_s)
        while done != [rows, rows]:
            which = int(rng.integers(0, 2))
            stop = min(rows, done[which] + int(rng.choice([1, 1, 7, 100, 1000])))
            columns = sides[which] | times[which]
            piece = {name: each[done[which] : stop] for name, each in columns.items()}
            whole = all(type(each) is str for each in piece["k"])
            if whole and rng.random() < 0.2 and not any(each.endswith("\0") for each in piece["k"]):
                piece["k"] = piece["k"].astype(str)
            pushes[which](piece)
            done[which] = stop
            if rng.random() < 0.9:
                found += joiner.results()
        joiner.end()
        found += joiner.results()
        assert joiner.metrics["digest"] == right.metrics["digest"], SEED + number
    assert sorted(pairs_of(found)) == sorted(
        zip(right.r_rows.tolist(), right.s_rows.tolist(), strict=True)
    ), f"SEED={SEED + number} CASES=1"
    for each in found[:: max(1, len(found) // 5)]:
        table = each.table()
        assert table["k_r"].type == table["note_s"].type == pa.string()
        assert table["k_r"].to_pylist() == sides[0]["k"][each.r_rows].tolist()
        assert table["note_s"].to_pylist() == [str(row) for row in each.s_rows]


def test_strings_are_read_the_short_way_and_what_is_none_is_not() -> None:
    like = {"k": objects(["a", "b"]), "v": objects(["c", ""]), "ts": np.array([1, 2])}
    with sj.StreamJoiner(on="k") as joiner:
        joiner.push_r(like)
        form = joiner._r.form
        assert isinstance(form, quick.Form)
        read = form.read(like)
        assert read is not None
        assert isinstance(read.table, Rows)
        assert read.table.table().equals(pa.table(like))
        assert isinstance(read.columns["k"], Strings)
        assert form.read(like | {"k": np.array(["a", "b"])}) is not None
        for other in (
            ["a", None],
            [None, None],
            ["a", 1],
            ["a", b"b"],
            [b"a", b"b"],
            ["a", float("nan")],
            ["a", HALF],
            ["a"],
        ):
            assert form.read(like | {"k": objects(other)}) is None, other
            assert form.read(like | {"v": objects(other)}) is None, other
        for other in ([None], [1], [b"a"], [HALF]):
            one = {name: each[:1] for name, each in like.items()}
            assert form.read(one | {"k": objects(other)}) is None, other
        with pytest.raises(sj.InputError, match="r: column 'k' holds 1 at row 1"):
            joiner.push_r(like | {"k": objects(["a", 1])})
        with pytest.raises(sj.InputError, match="of which no Arrow column can be made"):
            joiner.push_r(like | {"k": objects(["a", HALF])})
        joiner.close()


def test_many_strings_are_looked_up_in_columns_of_a_limited_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(of_strings, "MAX_CHUNK_BYTES", 10)
    values = ["", "x" * 10, "ab", "cd", "efghijk", "", "l"]
    strings = Strings.of_objects(objects(values))
    column = strings[1:].table_column()
    assert column.to_pylist() == values[1:]
    assert column.num_chunks > 1
    assert all(sum(map(len, each.to_pylist())) <= 10 for each in column.chunks)
    assert strings[:0].table_column().to_pylist() == []


def test_slices_of_strings_are_put_together() -> None:
    values = ["ab", "", "c", "日本", "d" * 20]
    strings = Strings.of_objects(objects(values))
    parts = [strings[1:3], strings[0:0], strings[2:], strings[:1]]
    joined = Strings.joined(parts)
    right = values[1:3] + values[2:] + values[:1]
    assert joined.objects().tolist() == right
    rows = joined_rows([Rows({"k": each}, len(each)) for each in parts])
    assert rows is not None
    assert rows.table()["k"].to_pylist() == right
