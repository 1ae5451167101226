"""Inputs, and the pairs that they owe by Kang's procedure in the plainest way."""

from typing import Any

import numpy as np

from streamjoin.device.base import Beats, Results
from streamjoin.device.packing import pack, unpack
from streamjoin.device.pynq import PynqDevice
from streamjoin_common.contract import DesignParams, result_layout, tuple_layout

Pair = tuple[int, int]


def random_input(params: DesignParams, tuples: int, *, keys: int, seed: int) -> Beats:
    """Draw tuples with the keys 0 to ``keys`` in every field; the payload is the place."""
    rng = np.random.default_rng(seed)
    columns = {
        field.name: rng.integers(0, keys, tuples).astype(np.uint32)
        for field in tuple_layout(params)
    }
    columns["payload"] = np.arange(tuples, dtype=np.uint32)
    sides = rng.integers(0, 2, tuples).astype(np.uint8)
    return Beats(pack(tuple_layout(params), columns, tuples), sides)


def owed(params: DesignParams, beats: Beats, window_r: int, window_s: int) -> set[Pair]:
    """Find the pairs with equal keys, the bands' widths being 0."""
    fields = unpack(tuple_layout(params), beats.data)
    keys = list(zip(*(fields[f"key{i}"].tolist() for i in range(len(params.terms))), strict=True))
    pairs = set()
    past: tuple[list[int], list[int]] = ([], [])
    for place, side in enumerate(beats.dest.tolist()):
        for other in past[1 - side][-(window_s if side == 0 else window_r) :]:
            if keys[other] == keys[place]:
                pairs.add((place, other) if side == 0 else (other, place))
        past[side].append(place)
    return pairs


def pairs_of(params: DesignParams, found: list[Results]) -> set[Pair]:
    """Return the pairs, each of which came once."""
    listed: list[Pair] = []
    for results in found:
        fields = unpack(result_layout(params), results.data)
        listed += zip(fields["r_payload"].tolist(), fields["s_payload"].tolist(), strict=True)
    assert len(set(listed)) == len(listed)
    return set(listed)


def nothing(_what: Any) -> None:
    """Take a report and do nothing."""


def check_exact(device: PynqDevice, beats: Beats, window_r: int = 20, window_s: int = 13) -> int:
    """Run an input and hold its result against what is owed; returns the pairs."""
    device.write("window_r", window_r)
    device.write("window_s", window_s)
    found: list[Results] = []
    outcome = device.stream(beats, found.append, nothing)
    right = owed(device.params, beats, window_r, window_s)
    assert pairs_of(device.params, found) == right
    assert outcome.cycles >= len(beats.dest)
    return len(right)
