"""Long inputs: the join on arrays is the reference's; every pair of the model is accounted for."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamjoin_common.contract import SIDE_R, DesignParams, KeyType, Term, TermKind
from streamjoin_common.contract.presets import PRESETS, REFERENCE_BAND
from streamjoin_hw.flow import build
from streamjoin_hw.sim import run as bulk_run
from streamjoin_hw.sim import testing
from streamjoin_hw.sim.bulk import Owed, SlidingJoin, draw_chunks
from streamjoin_hw.sim.model import chunk_of, packed, unpacked

SEED = 23
BULK_TUPLES = 300_000

TERMS = {
    "equi": (Term(TermKind.EQUI, KeyType.INT32),),
    "unsigned": (Term(TermKind.BAND, KeyType.UINT32), Term(TermKind.EQUI, KeyType.UINT32)),
    "float": (Term(TermKind.EQUI, KeyType.FLOAT32),),
    "reference": REFERENCE_BAND,
}


def numbers(pairs: list[tuple[int, int]]) -> np.ndarray[Any, Any]:
    """Pairs as the bulk join writes them, sorted."""
    return np.sort(np.array([r << 32 | s for r, s in pairs], np.uint64))


@pytest.mark.parametrize("extremes", [0.0, 0.5])
@pytest.mark.parametrize("terms", TERMS)
def test_the_join_on_arrays_is_the_reference(terms: str, extremes: float) -> None:
    params = DesignParams(cores=4, segment_tuples=4, terms=TERMS[terms])
    rng = np.random.default_rng([SEED, len(terms)])
    pairs = 0
    for _ in range(8):
        workload = testing.random_workload(params, rng, 200, domain=4, extremes=extremes)
        join = SlidingJoin(params, (workload.window_r, workload.window_s), workload.bands)
        cuts = sorted(rng.integers(0, 201, 5))
        received = [
            join.join(chunk_of(params, workload.arrivals[first:end]))
            for first, end in zip([0, *cuts], [*cuts, 200], strict=True)
        ]
        expected = numbers(testing.reference(workload))
        np.testing.assert_array_equal(np.sort(np.concatenate(received)), expected)
        pairs += len(expected)
    assert pairs > 100


@pytest.mark.parametrize("payload_bits", [8, 20, 32])
def test_tuples_and_results_pack_and_unpack(payload_bits: int) -> None:
    params = DesignParams(
        cores=1, segment_tuples=1, terms=REFERENCE_BAND, payload_bits=payload_bits
    )
    workload = testing.random_workload(params, np.random.default_rng(SEED), 50, extremes=0.5)
    beats = packed(params, chunk_of(params, workload.arrivals))
    for arrival, beat in zip(workload.arrivals, beats, strict=True):
        first, second = arrival.keys
        word = first | second << 32 | arrival.payload << 64
        assert int.from_bytes(beat.tobytes(), "little") == word
    pairs = [(3, 250), (255, 1), (0, 77)]
    width = (2 * payload_bits + 7) // 8
    words = [(r | s << payload_bits).to_bytes(width, "little") for r, s in pairs]
    r, s = unpacked(params, np.frombuffer(b"".join(words), np.uint8).reshape(3, width))
    assert list(zip(r.tolist(), s.tolist(), strict=True)) == pairs


def test_an_input_drawn_in_chunks_numbers_its_rows_throughout() -> None:
    chunks = list(draw_chunks(PRESETS["tiny-band"], np.random.default_rng(SEED), 1000, 7))
    cut = list(draw_chunks(PRESETS["tiny"], np.random.default_rng(SEED), 1000, 7, chunk_tuples=300))
    assert [len(chunk.sides) for chunk in (*chunks, *cut)] == [1000, 300, 300, 300, 100]
    for side in (SIDE_R, 1 - SIDE_R):
        rows = np.concatenate([chunk.payloads[chunk.sides == side] for chunk in cut])
        assert 400 < len(rows) < 600
        np.testing.assert_array_equal(rows, np.arange(len(rows)))


def test_pairs_are_taken_off_as_often_as_they_are_owed() -> None:
    def pairs(*values: int) -> np.ndarray[Any, Any]:
        return np.array(values, np.uint64)

    owed = Owed()
    owed.update(pairs(5, 5, 7), pairs(5))
    assert owed.missing.tolist() == [5, 7]
    owed.update(pairs(9), pairs(7, 5, 9))
    assert owed.difference() == ""
    owed.update(pairs(1), pairs(2 << 32 | 3, 2 << 32 | 3))
    assert owed.difference() == "1 pairs missing, 2 surplus: first missing (0, 1), surplus (2, 3)"


@pytest.mark.parametrize("preset", ["tiny", "tiny-band"])
def test_a_long_input_with_random_stalls_is_exact(
    preset: str, capsys: pytest.CaptureFixture[str]
) -> None:
    params = PRESETS[preset]
    reported: list[int] = []
    figures = bulk_run.bulk_run(
        params,
        build.build_model(params),
        tuples=BULK_TUPLES,
        windows=(params.window_capacity, params.window_capacity - 3),
        seed=SEED,
        idle_per_1024=100,
        stall_per_1024=300,
        report=reported.append,
    )
    assert figures["verdict"] == bulk_run.EXACT, figures
    assert figures["tuples"] == reported[-1] == BULK_TUPLES
    assert figures["results"] > BULK_TUPLES // 2
    assert figures["results_backpressure_cycles"] > BULK_TUPLES // 20
    assert reported == sorted(reported)


def test_a_pair_too_many_ends_a_long_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference forgets the first chunk's last pair: the model's is surplus."""
    params = PRESETS["tiny"]
    join = SlidingJoin.join
    monkeypatch.setattr(SlidingJoin, "join", lambda *given: join(*given)[1:])
    figures = bulk_run.bulk_run(
        params,
        Path(build.build_model(params)),
        tuples=BULK_TUPLES,
        windows=(4, 4),
        seed=SEED,
        idle_per_1024=0,
        stall_per_1024=0,
        report=lambda _taken: None,
    )
    assert "1 surplus: first missing" in figures["verdict"]
    assert figures["tuples"] < BULK_TUPLES
