"""The contract: parameters, digest, layouts, registers, the sentences of its errors."""

import dataclasses
import json
import re
from typing import Any

import pytest

from streamjoin_common import contract
from streamjoin_common.contract import (
    DesignParams,
    KeyType,
    ParameterError,
    Term,
    TermKind,
    Theta,
    parse_term,
)
from streamjoin_common.contract.presets import PRESETS, REFERENCE_BAND

BASE = DesignParams(cores=4, segment_tuples=8, lanes=2, terms=REFERENCE_BAND)

CHANGES: dict[str, Any] = {
    "cores": 5,
    "segment_tuples": 9,
    "lanes": 4,
    "terms": (Term(TermKind.EQUI, KeyType.INT32),),
    "payload_bits": 31,
    "merge_arity": 3,
    "result_fifo_words": 32,
    "forward": "fast",
    "timestamp_bits": 16,
    "window_memory": "bram",
    "theta": Theta("near", "0123456789abcdef"),
    "buckets": 8,
    "ways": 3,
    "lead_tuples": 16,
    "kinds": "all",
}

SPLIT_CHANGES: dict[str, Any] = {
    "probes": 3,
    "order": "outer",
    "comparators": "shared",
    "stars": "grouped",
}
"""For each parameter of SplitJoin alone another value."""

SPLIT = DesignParams(design="splitjoin", cores=40, segment_tuples=8, order="inner")

HASH = DesignParams(design="splitjoin-hash", cores=1, segment_tuples=8, lanes=2)

HASH_CHANGES: dict[str, Any] = {"own_buckets": 16, "beat_results": 2}
"""For each parameter of the hash index alone another value."""


@pytest.mark.parametrize(
    "params", [BASE, dataclasses.replace(BASE, theta=CHANGES["theta"]), *PRESETS.values()]
)
def test_parameters_survive_json(params: DesignParams) -> None:
    assert DesignParams.from_dict(json.loads(json.dumps(params.to_dict()))) == params


def test_every_parameter_but_the_design_has_a_change_here() -> None:
    assert HASH.digest != dataclasses.replace(HASH, design="handshake").digest
    assert {f.name for f in dataclasses.fields(DesignParams)} == {
        "design",
        *CHANGES,
        *SPLIT_CHANGES,
        *HASH_CHANGES,
    }


@pytest.mark.parametrize("name", CHANGES)
def test_every_parameter_changes_the_digest(name: str) -> None:
    # A chain that forwards by step decides no kinds.
    base = dataclasses.replace(BASE, forward="fast") if name == "kinds" else BASE
    assert dataclasses.replace(base, **{name: CHANGES[name]}).digest != base.digest


@pytest.mark.parametrize("name", SPLIT_CHANGES)
def test_every_parameter_of_splitjoin_changes_its_digest_and_is_of_no_other_design(
    name: str,
) -> None:
    change = {name: SPLIT_CHANGES[name]}
    assert dataclasses.replace(SPLIT, **change).digest != SPLIT.digest
    for other in (BASE, HASH):
        with pytest.raises(
            ParameterError, match=f"^{name} must be .* in the design {other.design}"
        ):
            dataclasses.replace(other, **change)


@pytest.mark.parametrize("name", HASH_CHANGES)
def test_parameters_of_the_hash_index_change_its_digest_and_are_refused_elsewhere(
    name: str,
) -> None:
    change = {name: HASH_CHANGES[name]}
    assert dataclasses.replace(HASH, **change).digest != HASH.digest
    assert name not in HASH.to_dict(), "designs made before there was a choice keep their digest"
    for other in (BASE, SPLIT):
        with pytest.raises(
            ParameterError, match=f"^{name} must be .* in the design {other.design}"
        ):
            dataclasses.replace(other, **change)


@pytest.mark.parametrize("bits", [8, 10, 32])
def test_the_second_result_of_a_beat_begins_at_a_byte_and_is_named_after_the_first(
    bits: int,
) -> None:
    one = dataclasses.replace(HASH, payload_bits=bits)
    two = dataclasses.replace(one, beat_results=2)
    first = contract.result_layout(two)
    assert contract.result_beat_layout(one) == first == contract.result_layout(one)
    beat = contract.result_beat_layout(two)
    size = contract.beat_bits(first)
    assert contract.beat_bits(beat) == 2 * size
    assert beat[:2] == first
    assert [(each.name, each.offset, each.width) for each in beat[2:]] == [
        (f"{each.name}_second", size + each.offset, each.width) for each in first
    ]
    assert contract.tuser_bits(one) == len(contract.tuser_of(one)) == 3
    assert contract.tuser_bits(two) == len(contract.tuser_of(two)) == 4
    assert "TUSER_SECOND 0x8" in contract.c_header(two)
    assert "SECOND" not in contract.c_header(one)
    # A DMA gets a result a word all the same.
    assert contract.result_word_bits(two) == contract.result_word_bits(one)


def test_the_interface_version_changes_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    newer = dataclasses.replace(BASE, forward="fast", kinds="all")
    groups = dataclasses.replace(SPLIT, stars="grouped")
    newest = dataclasses.replace(HASH, beat_results=2)
    assert [params.interface_version for params in (BASE, newer, groups, newest)] == [2, 3, 4, 5]
    before = BASE.digest, newest.digest
    monkeypatch.setattr(contract.params, "INTERFACE_VERSION", contract.INTERFACE_VERSION + 1)
    # Nothing has changed for a design that has none of the newest registers.
    assert BASE.digest == before[0]
    assert newest.digest != before[1]
    assert contract.manifest(newest)["interface_version"] == contract.INTERFACE_VERSION + 1


@pytest.mark.parametrize("layout", [contract.tuple_layout, contract.result_layout])
def test_layouts_are_packed_without_gaps(layout: Any) -> None:
    for bits in (8, 20, 32):
        fields = layout(dataclasses.replace(BASE, payload_bits=bits))
        offset = 0
        for each in fields:
            assert each.offset == offset
            offset += each.width
        assert 0 <= contract.beat_bits(fields) - offset < 8
        assert contract.beat_bits(fields) % 8 == 0


def test_registers_are_unique_aligned_and_in_order() -> None:
    band = Term(TermKind.BAND, KeyType.INT32)
    for params in (BASE, dataclasses.replace(SPLIT, order="inner", terms=(band,) * 4)):
        registers = contract.registers(params)
        offsets = [each.offset for each in registers]
        assert offsets == sorted(set(offsets))
        assert all(offset % 4 == 0 for offset in offsets)
        assert len({each.name for each in registers}) == len(registers)
        assert {each.access for each in registers} <= {"ro", "rw", "wo"}


def test_only_band_terms_have_width_registers() -> None:
    terms = (Term(TermKind.EQUI, KeyType.INT32), Term(TermKind.BAND, KeyType.FLOAT32))
    names = [r.name for r in contract.registers(dataclasses.replace(BASE, terms=terms))]
    assert [name for name in names if name.startswith("band")] == ["band_lo1", "band_hi1"]


def test_fields_of_a_register_do_not_overlap() -> None:
    for register in contract.registers(BASE):
        used = [b for f in register.fields for b in range(f.bit, f.bit + f.width)]
        assert len(used) == len(set(used))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"cores": 0}, "cores must be an integer from 1 to 1024, not 0"),
        ({"cores": True}, "cores must be an integer from 1 to 1024, not True"),
        ({"segment_tuples": 65537}, "segment_tuples must be an integer from 1 to 65536, not 65537"),
        ({"lanes": 9}, "lanes must be at most segment_tuples, not 9"),
        ({"lanes": 65}, "lanes must be an integer from 1 to 64, not 65"),
        ({"terms": ()}, "terms must be 1 to 4 Term objects, not ()"),
        ({"payload_bits": 7}, "payload_bits must be an integer from 8 to 32, not 7"),
        ({"merge_arity": 17}, "merge_arity must be an integer from 2 to 16, not 17"),
        ({"result_fifo_words": 15}, "result_fifo_words must be an integer from 16 to 4096, not 15"),
        ({"forward": "back"}, "forward must be one of step, fast, not 'back'"),
        ({"timestamp_bits": 7}, "timestamp_bits must be 0 or an integer from 8 to 32, not 7"),
        (
            {"window_memory": "disk"},
            "window_memory must be one of auto, registers, lutram, bram, uram, not 'disk'",
        ),
        (
            {"theta": len},
            "theta must be a Theta, as Theta.of makes it, not <built-in function len>",
        ),
        (
            {"terms": (Term(TermKind.KEY, KeyType.INT32),)},
            "terms must be other than keys alone where there is no theta, not 'key:int32'",
        ),
        (
            {"design": "spread"},
            "design must be one of handshake, splitjoin, splitjoin-hash, splitjoin-index, "
            "not 'spread'",
        ),
        (
            {"cores": 1024, "segment_tuples": 65536},
            "cores * segment_tuples must be below 16777216, not 67108864",
        ),
    ],
)
def test_a_parameter_out_of_range_is_named(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ParameterError, match=f"^{re.escape(sentence)}$"):
        dataclasses.replace(BASE, **changes)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"cores": 2}, "cores must be 1 for splitjoin-hash, not 2"),
        ({"forward": "fast"}, "forward must be step in the design splitjoin-hash, not 'fast'"),
        ({"lanes": 3}, "lanes must be a power of two up to 64, not 3"),
        ({"buckets": 12}, "buckets must be a power of two from 2 to 65536, not 12"),
        ({"lead_tuples": 4}, "lead_tuples must be a power of two from 8 to 4096, not 4"),
        ({"ways": 17}, "ways must be an integer from 2 to 16, not 17"),
        (
            {"own_buckets": 8192},
            "own_buckets must be 0 or a power of two from 2 to buckets = 4096, not 8192",
        ),
        (
            {"own_buckets": 3},
            "own_buckets must be 0 or a power of two from 2 to buckets = 4096, not 3",
        ),
        ({"beat_results": 3}, "beat_results must be an integer from 1 to 2, not 3"),
        (
            {"beat_results": 2, "lanes": 1},
            "lanes must be at least 2 where a beat has 2 results, not 1",
        ),
        (
            {"beat_results": 2, "kinds": "all"},
            "kinds must be inner where a beat has 2 results, not 'all'",
        ),
        (
            {"terms": REFERENCE_BAND},
            "terms must hold an equi term for splitjoin-hash, not band:int32,band:float32",
        ),
    ],
)
def test_a_parameter_that_an_index_cannot_have_is_named(
    changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ParameterError, match=f"^{re.escape(sentence)}$"):
        dataclasses.replace(HASH, **changes)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"cores": 2}, "cores must be 1 for splitjoin-index, not 2"),
        (
            {"order": "inner"},
            "order must be none, or inner with kinds=all, for splitjoin-index, not 'inner'",
        ),
        ({"lanes": 3}, "lanes must be a multiple of ways = 2 for splitjoin-index, not 3"),
        ({"ways": 3}, "ways must be 2, 4 or 8 for splitjoin-index, not 3"),
        (
            {"buckets": 12},
            "buckets must be a power of two from 2 * ways = 4 to 65536 for splitjoin-index, not 12",
        ),
        (
            {"segment_tuples": 32},
            "segment_tuples must be below buckets * lanes / ways = 32 for splitjoin-index, not 32",
        ),
        (
            {"terms": (parse_term("key:int32"),), "theta": Theta("own", "00")},
            "terms must hold a band or equi term for splitjoin-index, not key:int32",
        ),
    ],
)
def test_a_parameter_that_an_ordered_index_cannot_have_is_named(
    changes: dict[str, Any], sentence: str
) -> None:
    index = DesignParams(
        design="splitjoin-index", cores=1, segment_tuples=31, lanes=4, ways=2, buckets=16
    )
    with pytest.raises(ParameterError, match=f"^{re.escape(sentence)}$"):
        dataclasses.replace(index, **changes)


@pytest.mark.parametrize(
    ("segment", "lead", "slots"), [(8, 8, 16), (9, 8, 32), (8192, 64, 16384), (16320, 64, 16384)]
)
def test_a_ring_has_room_for_a_window_and_the_tuples_ahead(
    segment: int, lead: int, slots: int
) -> None:
    params = dataclasses.replace(HASH, segment_tuples=segment, lead_tuples=lead)
    assert params.ring_tuples == slots


@pytest.mark.parametrize(
    ("windows", "active"), [((32, 32), 4), ((1, 1), 1), ((3, 24), 3), ((8, 1), 1), ((2, 16), 2)]
)
def test_as_many_cores_take_part_as_the_smaller_window_allows(
    windows: tuple[int, int], active: int
) -> None:
    assert contract.active_cores(BASE, *windows) == active


@pytest.mark.parametrize(
    ("windows", "sentence"),
    [
        ((0, 1), "window_r must be an integer from 1 to 32, not 0"),
        ((1, 33), "window_s must be an integer from 1 to 32, not 33"),
        (
            (9, 1),
            "window_r must be at most 8 while window_s is 1 (a segment holds 8 tuples), not 9",
        ),
        (
            (2, 17),
            "window_s must be at most 16 while window_r is 2 (a segment holds 8 tuples), not 17",
        ),
    ],
)
def test_windows_that_cannot_be_held_are_named(windows: tuple[int, int], sentence: str) -> None:
    with pytest.raises(ParameterError, match=f"^{re.escape(sentence)}$"):
        contract.active_cores(BASE, *windows)


@pytest.mark.parametrize("string", ["equi", "equi:int64", "theta:int32", "", "equi:int32:x"])
def test_a_term_that_is_none_is_refused(string: str) -> None:
    sentence = f"term must be equi|band|key:int32|uint32|float32, not {string!r}"
    with pytest.raises(ParameterError, match=f"^{re.escape(sentence)}$"):
        contract.parse_term(string)


def test_the_manifest_is_json_and_names_everything() -> None:
    manifest = json.loads(json.dumps(contract.manifest(BASE, tools={"amaranth": "0.5"})))
    assert manifest["digest"] == BASE.digest
    assert manifest["tuple_bits"] == 96
    assert manifest["result_bits"] == 64
    assert manifest["window_capacity"] == 32
    assert {row["name"] for row in manifest["registers"]} >= {"control", "window_r", "band_lo1"}
    assert DesignParams.from_dict(manifest["params"]) == BASE
