"""Joins of NumPy arrays where there is no Arrow and no Numba, as on a 32-bit board."""

import platform
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import streamjoin as sj
from streamjoin.device.packing import pack, unpack
from streamjoin.device.selftest import known_inputs
from streamjoin_common.contract import DesignParams, result_layout, tuple_layout
from streamjoin_common.contract.presets import PRESETS

LARGE = 1 << 35


def test_it_is_the_wheel_that_is_tested() -> None:
    assert "dist-packages" in Path(sj.__file__).parts
    assert platform.machine() in ("armv7l", "aarch64")
    bits = 8 * struct.calcsize("P")
    assert bits == (32 if platform.machine() == "armv7l" else 64)
    assert np.dtype(np.intp).itemsize == bits // 8


def streams(rows: int, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return streams whose keys and times need 64 bits."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(2):
        ts = LARGE + np.sort(rng.integers(0, 5 * rows, rows, dtype=np.int64))
        keys = LARGE + rng.integers(0, 9, rows, dtype=np.int64)
        y = (rng.integers(0, 50, rows) / 3).astype(np.float32)
        made.append({"k": keys, "y": y, "ts": ts})
    return made[0], made[1]


def expected(r: Any, s: Any, meets: Any, window: Any) -> list[tuple[int, int]]:
    """Join in pure Python: Kang's procedure over rows in order of arrival, R first."""
    arrivals = sorted(
        [(int(t), 0, i) for i, t in enumerate(r["ts"])]
        + [(int(t), 1, i) for i, t in enumerate(s["ts"])]
    )
    past: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    pairs = []
    for time, side, row in arrivals:
        for other_time, other in past[1 - side]:
            if window(past[1 - side], other_time, other, time):
                pair = (row, other) if side == 0 else (other, row)
                if meets(*pair):
                    pairs.append(pair)
        past[side].append((time, row))
    return sorted(pairs)


def last(count: int) -> Any:
    def within(past: Any, _other_time: int, other: int, _time: int) -> bool:
        return other >= past[-1][1] - count + 1

    return within


def shorter(length_us: int) -> Any:
    def within(_past: Any, other_time: int, _other: int, time: int) -> bool:
        return time - other_time < length_us

    return within


@pytest.mark.parametrize(
    ("window", "within"),
    [("count:20", last(20)), ("time:90us", shorter(90)), ("all", lambda *_: True)],
)
def test_the_oracle_joins_by_the_definition(window: str, within: Any) -> None:
    r, s = streams(150, 3)
    result = sj.join(r, s, on="k", window=window, engine="oracle")
    right = expected(r, s, lambda a, b: r["k"][a] == s["k"][b], within)
    assert len(right) > 100
    assert sorted(zip(result.r_rows.tolist(), result.s_rows.tolist(), strict=True)) == right


def test_a_band_on_floats_joins_by_the_definition() -> None:
    r, s = streams(150, 4)
    result = sj.join(r, s, band="y=y:1:2", window="count:30", engine="oracle")

    def meets(a: int, b: int) -> bool:
        x, y = r["y"][a], s["y"][b]  # each bound is one float32 operation
        return bool(y - np.float32(1) <= x <= y + np.float32(2))

    right = expected(r, s, meets, last(30))
    assert sorted(zip(result.r_rows.tolist(), result.s_rows.tolist(), strict=True)) == right


@pytest.mark.parametrize("how", ["left", "right", "full", "semi", "anti"])
def test_other_kinds_keep_what_they_owe(how: str) -> None:
    r, s = streams(60, 5)
    r["k"] = r["k"] + np.arange(60) % 3
    result = sj.join(r, s, on="k", how=how, window="all", engine="oracle")
    met = {(a, b) for a in range(60) for b in range(60) if r["k"][a] == s["k"][b]}
    of_r, of_s = {a for a, _ in met}, {b for _, b in met}
    alone_r, alone_s = 60 - len(of_r), 60 - len(of_s)
    counts = {
        "left": len(met) + alone_r,
        "right": len(met) + alone_s,
        "full": len(met) + alone_r + alone_s,
        "semi": len(of_r),
        "anti": alone_r,
    }
    assert result.metrics["pairs"] == counts[how]


def test_engines_that_cannot_run_here_say_so() -> None:
    r, s = streams(20, 6)
    unusable = [each for each in sj.engines() if not each.usable]
    assert {"npj", "splitjoin", "ibwj-flat"} <= {each.engine for each in unusable}
    with pytest.raises(sj.StreamJoinError, match=r"Numba is not installed"):
        sj.join(r, s, on="k", window="all", engine="npj")


@pytest.mark.parametrize("preset", PRESETS)
def test_known_inputs_are_the_same_everywhere(preset: str) -> None:
    """A board's self-test compares with these; they are made without a platform's integers."""
    for known in known_inputs(PRESETS[preset]):
        assert known.pairs is not None
        assert known.pairs.dtype == np.uint64
        assert len(known.pairs) > 40


@pytest.mark.parametrize("payload_bits", [8, 13, 31, 32])
def test_beats_hold_what_is_packed(payload_bits: int) -> None:
    params = DesignParams(cores=1, segment_tuples=4, payload_bits=payload_bits, timestamp_bits=32)
    for layout in (tuple_layout(params), result_layout(params)):
        rng = np.random.default_rng(payload_bits)
        columns = {
            field.name: rng.integers(0, 1 << field.width, 100, dtype=np.uint64).astype(np.uint32)
            for field in layout
        }
        packed = pack(layout, columns, 100)
        for row in range(100):
            whole = int.from_bytes(packed[row].tobytes(), "little")
            for field in layout:
                bits = whole >> field.offset & ((1 << field.width) - 1)
                assert bits == int(columns[field.name][row])
        for name, column in unpack(layout, packed).items():
            assert column.tolist() == columns[name].tolist()
