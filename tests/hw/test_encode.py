"""The encoder: codes keep order, intervals hold exactly the keys that match."""

from typing import Any

import numpy as np
import pytest
from tests.hw.checks import give, nothing_more, pauses, simulate, take

from streamjoin_common.contract import SIDE_R, SIDE_S, DesignParams, KeyType, Term, TermKind
from streamjoin_hw.rtl.encode import Encoder
from streamjoin_hw.rtl.streams import crossing_layout, r_layout, s_layout
from streamjoin_hw.sim.testing import as_number, interesting_keys

SEED = 11


def design(*terms: Term) -> DesignParams:
    return DesignParams(cores=1, segment_tuples=4, terms=terms, payload_bits=16)


def fields(layout: Any, body: int) -> dict[str, int]:
    """Take a tuple's bits apart."""
    return {name: body >> field.offset & ((1 << field.width) - 1) for name, field in layout}


def encode(
    params: DesignParams, beats: list[dict[str, int]], bands: dict[str, int], stall: float = 0.0
) -> list[tuple[int, dict[str, int]]]:
    """Send beats through an encoder; returns side and fields of each."""
    encoder = Encoder(params)
    fields_of_sides: list[tuple[int, dict[str, int]]] = []

    async def source(ctx: Any) -> None:
        ctx.set(encoder.opens, 1)
        for name, bits in bands.items():
            ctx.set(encoder.band[name], bits)
        await give(ctx, encoder.i, beats, pauses(1, stall))

    async def sink(ctx: Any) -> None:
        for bits in await take(ctx, encoder.o, len(beats), pauses(2, stall)):
            side, body = bits & 1, bits >> 1
            layout = s_layout(params) if side == SIDE_S else r_layout(params)
            layout = crossing_layout(params) if params.has_point_windows else layout
            fields_of_sides.append((side, fields(layout, body)))
        await nothing_more(ctx, encoder.o)

    simulate(encoder, source, sink)
    return fields_of_sides


def keys_of(key_type: KeyType, rng: np.random.Generator, count: int) -> list[int]:
    """Draw keys: the nasty ones, their neighbours, and any bits."""
    nasty = interesting_keys(key_type)
    near = [(bits + step) & 0xFFFFFFFF for bits in nasty for step in (-11, -1, 1, 10)]
    return [*nasty, *near, *(int(bits) for bits in rng.integers(0, 1 << 32, count))]


@pytest.mark.parametrize("key_type", list(KeyType))
def test_codes_of_r_keep_the_order_of_keys(key_type: KeyType) -> None:
    keys = keys_of(key_type, np.random.default_rng(SEED), 60)
    params = design(Term(TermKind.EQUI, key_type))
    beats = [{"side": SIDE_R, "key0": key, "payload": 5} for key in keys]
    coded = [
        (as_number(k, key_type), c["code0"])
        for k, (_, c) in zip(keys, encode(params, beats, {}), strict=True)
    ]
    for a, code_a in coded:
        if np.isnan(a):
            assert code_a == 0xFFFFFFFF
            continue
        for b, code_b in coded:
            if not np.isnan(b):
                assert (a < b) == (code_a < code_b), f"{a} and {b}"


@pytest.mark.parametrize("key_type", list(KeyType))
def test_equal_keys_and_only_they_have_equal_codes(key_type: KeyType) -> None:
    keys = keys_of(key_type, np.random.default_rng(SEED), 20)
    params = design(Term(TermKind.EQUI, key_type))
    beats = [{"side": side, "key0": key, "payload": 5} for side in (SIDE_R, SIDE_S) for key in keys]
    codes = [coded["code0"] for _, coded in encode(params, beats, {})]
    for r, r_code in zip(keys, codes[: len(keys)], strict=True):
        for s, s_code in zip(keys, codes[len(keys) :], strict=True):
            equal = as_number(r, key_type) == as_number(s, key_type)
            assert bool(equal) == (r_code == s_code), f"{r:#x} and {s:#x}"


def widths_of(key_type: KeyType) -> list[tuple[int, int]]:
    """Return band widths as bits: usual ones, negative ones, the largest, infinities, NaN."""
    if key_type is KeyType.FLOAT32:
        numbers = [(10.0, 10.0), (0.0, 0.1), (-1.5, 3.0), (3e38, 3e38), (1e-45, 1e-45)]
        pairs = [tuple(int(np.float32(w).view(np.uint32)) for w in pair) for pair in numbers]
        return [*pairs, (0x7F800000, 0x7F800000), (0x7FC00000, 0)]  # type: ignore[list-item]
    numbers_int = [(10, 10), (0, 0), (-3, 5), (5, -3), (0x7FFFFFFF, 0x7FFFFFFF), (0, -0x80000000)]
    return [(lo & 0xFFFFFFFF, hi & 0xFFFFFFFF) for lo, hi in [*numbers_int, (-0x80000000, 7)]]


@pytest.mark.parametrize("key_type", list(KeyType))
def test_intervals_hold_exactly_the_keys_that_match(key_type: KeyType) -> None:
    rng = np.random.default_rng(SEED)
    params = design(Term(TermKind.BAND, key_type))
    width_type = KeyType.FLOAT32 if key_type is KeyType.FLOAT32 else KeyType.INT32
    keys = keys_of(key_type, rng, 25)
    beats = [{"side": side, "key0": key, "payload": 5} for side in (SIDE_R, SIDE_S) for key in keys]
    for lo_bits, hi_bits in widths_of(key_type):
        coded = [fields for _, fields in encode(params, beats, {"lo0": lo_bits, "hi0": hi_bits})]
        lo, hi = as_number(lo_bits, width_type), as_number(hi_bits, width_type)
        for s_bits, interval in zip(keys, coded[len(keys) :], strict=True):
            s = as_number(s_bits, key_type)
            with np.errstate(all="ignore"):
                minimum, maximum = s - lo, s + hi
            for r_bits, code in zip(keys, coded[: len(keys)], strict=True):
                r = as_number(r_bits, key_type)
                wanted = bool(r >= minimum and r <= maximum)
                matches = interval["lo0"] <= code["code0"] <= interval["hi0"]
                assert matches == wanted, f"r {r}, s {s}, lo {lo}, hi {hi}"


@pytest.mark.parametrize("key_type", list(KeyType))
def test_both_sides_have_points_and_intervals_that_agree_where_windows_keep_points(
    key_type: KeyType,
) -> None:
    """An R tuple's interval holds an S tuple's point if and only if they match, and so around."""
    rng = np.random.default_rng(SEED)
    terms = (Term(TermKind.BAND, key_type),)
    params = DesignParams(
        design="splitjoin", cores=1, segment_tuples=4, terms=terms, comparators="shared"
    )
    width_type = KeyType.FLOAT32 if key_type is KeyType.FLOAT32 else KeyType.INT32
    keys = keys_of(key_type, rng, 25)
    beats = [{"side": side, "key0": key, "payload": 5} for side in (SIDE_R, SIDE_S) for key in keys]
    widths = widths_of(key_type)
    if key_type is KeyType.FLOAT32:
        infinity, negative = 0x7F800000, 0xFF800000
        widths += [(negative, infinity), (infinity, negative), (0x3F800000, negative)]
    for lo_bits, hi_bits in widths:
        coded = [fields for _, fields in encode(params, beats, {"lo0": lo_bits, "hi0": hi_bits})]
        lo, hi = as_number(lo_bits, width_type), as_number(hi_bits, width_type)
        s_numbers = [as_number(bits, key_type) for bits in keys]
        with np.errstate(all="ignore"):
            intervals = [(s - lo, s + hi) for s in s_numbers]
        for s, s_coded, (minimum, maximum) in zip(
            s_numbers, coded[len(keys) :], intervals, strict=True
        ):
            for r_bits, r_coded in zip(keys, coded[: len(keys)], strict=True):
                r = as_number(r_bits, key_type)
                wanted = bool(r >= minimum and r <= maximum)
                what = f"r {r}, s {s}, lo {lo}, hi {hi}"
                matches = s_coded["lo0"] <= r_coded["code0"] <= s_coded["hi0"]
                assert matches == wanted, f"S probes: {what}"
                matches = r_coded["lo0"] <= s_coded["code0"] <= r_coded["hi0"]
                assert matches == wanted, f"R probes: {what}"


@pytest.mark.parametrize("stall", [0.0, 0.6])
def test_tuples_keep_order_and_payload_under_stalls(stall: float) -> None:
    params = design(Term(TermKind.BAND, KeyType.FLOAT32), Term(TermKind.EQUI, KeyType.UINT32))
    rng = np.random.default_rng(SEED)
    sides = [int(side) for side in rng.integers(0, 2, 120)]
    beats = [
        {"side": side, "key0": 0x3F800000 + k, "key1": k, "payload": k}
        for k, side in enumerate(sides)
    ]
    coded = encode(params, beats, {"lo0": 0, "hi0": 0}, stall)
    assert [side for side, _ in coded] == sides
    assert [each["payload"] for _, each in coded] == list(range(120))
    assert [each["code1"] for _, each in coded] == list(range(120))
    for k, (side, each) in enumerate(coded):
        code = 0xBF800000 + k
        wanted = {"lo0": code, "hi0": code} if side == SIDE_S else {"code0": code}
        assert wanted.items() <= each.items()


@pytest.mark.parametrize("key_type", [KeyType.INT32, KeyType.FLOAT32])
@pytest.mark.parametrize("waits", [0, 1, 40])
def test_what_is_accepted_finds_a_place_however_long_nobody_takes_it(
    key_type: KeyType, waits: int
) -> None:
    """The ways of both kinds of key are of different lengths; neither waits on the way."""
    encoder = Encoder(design(Term(TermKind.BAND, key_type)))
    beats = [{"side": k % 2, "key0": k, "payload": k} for k in range(90)]

    async def source(ctx: Any) -> None:
        ctx.set(encoder.opens, 1)
        await give(ctx, encoder.i, beats, pauses(3, 0.0))

    async def sink(ctx: Any) -> None:
        taken: list[tuple[int, int]] = []
        while len(taken) < len(beats):
            await ctx.tick().repeat(waits + 1)
            for bits in await take(ctx, encoder.o, min(30, len(beats)), pauses(4, 0.0)):
                side, body = bits & 1, bits >> 1
                layout = s_layout(encoder.params) if side == SIDE_S else r_layout(encoder.params)
                taken.append((side, fields(layout, body)["payload"]))
        assert taken == [(k % 2, k) for k in range(90)]
        await nothing_more(ctx, encoder.o)

    simulate(encoder, source, sink)


def test_the_band_widths_of_the_cycle_of_acceptance_count() -> None:
    encoder = Encoder(design(Term(TermKind.BAND, KeyType.INT32)))

    async def testbench(ctx: Any) -> None:
        ctx.set(encoder.o.ready, 1)
        ctx.set(encoder.opens, 1)
        await ctx.tick()
        for width in (3, 4, 5):
            ctx.set(encoder.band.lo0, width)
            ctx.set(encoder.i.payload, {"side": SIDE_S, "key0": 100, "payload": width})
            ctx.set(encoder.i.valid, 1)
            await ctx.tick()
        ctx.set(encoder.i.valid, 0)
        ctx.set(encoder.band.lo0, 99)
        seen = []
        for _ in range(10):
            if ctx.get(encoder.o.valid):
                bits = ctx.get(encoder.o.payload.body)
                seen.append(fields(s_layout(encoder.params), bits))
            await ctx.tick()
        assert [each["payload"] for each in seen] == [3, 4, 5]
        assert [(1 << 31) + 100 - each["lo0"] for each in seen] == [3, 4, 5]

    simulate(encoder, testbench)
