"""The ordered index in bulk: millions of tuples, stalls, skew, splitters that fit and do not."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from streamjoin_common.contract import DesignParams, KeyType
from streamjoin_common.contract.presets import BAND, REFERENCE_BAND
from streamjoin_hw.flow.build import build_model
from streamjoin_hw.sim.bulk import Chunk, Owed, SlidingJoin
from streamjoin_hw.sim.model import Model
from streamjoin_hw.sim.order import ArrivalOrder
from streamjoin_hw.sim.testing import random_bands, random_times

SEED = 5
CHUNK_TUPLES = 1 << 15
KINDS = ("uniform", "one key", "few keys", "gauss", "shifting", "zipf")


def design(segment: int, lanes: int, **others: object) -> DesignParams:
    plain = {"terms": [term.text for term in BAND], "buckets": 16, "ways": 2, **others}
    return DesignParams.from_dict(
        {
            "design": "splitjoin-index",
            "cores": 1,
            "segment_tuples": segment,
            "lanes": lanes,
            **plain,
        }
    )


REFERENCE = [term.text for term in REFERENCE_BAND]
DESIGNS = {
    "count": design(60, 8),
    "nearly full": design(31, 4),
    "four ways": design(70, 24, ways=4, timestamp_bits=28),
    "reference": design(48, 8, terms=REFERENCE),
    "float times": design(48, 8, terms=["band:float32"], timestamp_bits=28),
}


def drawn_keys(
    kind: str, rng: np.random.Generator, count: int, window: int
) -> npt.NDArray[np.float64]:
    """Draw numbers of one column around zero."""
    numbers: npt.NDArray[Any]
    if kind == "one key":
        numbers = np.zeros(count)
    elif kind == "zipf":
        numbers = np.minimum(rng.zipf(1.3, count), 10_000)
    elif kind in ("gauss", "shifting"):
        mean = np.linspace(-900, 900, count) if kind == "shifting" else 0
        numbers = rng.normal(mean, 30, count)
    else:
        domain = 5 if kind == "few keys" else 3 * window
        numbers = rng.integers(0, domain, count) - domain // 2
    return np.rint(numbers)


def drawn(
    params: DesignParams, kind: str, rng: np.random.Generator, rows: list[int], now: int
) -> Chunk:
    """Draw a chunk that continues the rows and the time of the one before."""
    sides = (rng.random(CHUNK_TUPLES) < rng.choice([0.5, 0.5, 0.15])).astype(np.uint8)
    columns = []
    for term in params.terms:
        numbers = drawn_keys(kind, rng, CHUNK_TUPLES, params.segment_tuples)
        is_float = term.type is KeyType.FLOAT32
        bits = (numbers / 2).astype(np.float32) if is_float else numbers.astype(np.int32)
        columns.append(bits.view(np.uint32))
    payloads = np.empty(CHUNK_TUPLES, np.uint64)
    for side in (0, 1):
        mine = sides == side
        payloads[mine] = rows[side] + np.arange(mine.sum())
        rows[side] += int(mine.sum())
    times = now + np.cumsum(rng.choice([0, 0, 0, 1, 2, 3], CHUNK_TUPLES))
    times = times if params.timestamp_bits else np.zeros(CHUNK_TUPLES)
    return Chunk(
        sides, np.stack(columns, axis=1), payloads.astype(np.uint32), times.astype(np.uint32)
    )


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", DESIGNS)
def test_millions_of_tuples_are_exact_whatever_their_keys(name: str) -> None:
    """Inputs of two chunks follow one another in one design, each with splitters of its own.

    One in three inputs has the splitters of the input before: they do not fit its keys.
    """
    params = DESIGNS[name]
    rng = np.random.default_rng([SEED, len(name)])
    capacity, seen = params.window_capacity, 0
    with Model(params, build_model(params)) as model:
        for number in range(31):
            kind = KINDS[number % len(KINDS)]
            windows = (capacity, capacity)
            if number % 3:
                windows = (int(rng.integers(1, capacity + 1)), int(rng.integers(1, capacity + 1)))
            bands = random_bands(params, rng, 4)
            time_r, time_s = random_times(params, rng, windows)
            times = None if time_r is None or time_s is None else (time_r, time_s)
            join = SlidingJoin(params, windows, bands, times)
            owed, order = Owed(), ArrivalOrder(params)
            model.set_registers({"window_r": windows[0], "window_s": windows[1], **bands})
            if times is not None:
                model.set_registers({"time_r": times[0], "time_s": times[1]})
            rows, now = [0, 0], 0
            for part in (0, 1):
                chunk = drawn(params, kind, rng, rows, now)
                now = int(chunk.times[-1])
                if not part and number % 3 != 1:
                    model.load_splitters(windows, chunk)
                order.take(chunk)
                stalls = int(rng.choice([0, 0, 150]))
                received = []
                for piece in model.feed(
                    chunk,
                    last=bool(part),
                    seed=number,
                    idle_per_1024=int(rng.choice([0, 0, 300])),
                    stall_per_1024=stalls,
                    max_cycles=1 << 34,
                ):
                    order.see(piece.r, piece.s)
                    received.append(piece.r << np.uint64(32) | piece.s)
                owed.update(join.join(chunk), np.concatenate(received))
                seen += CHUNK_TUPLES
                assert not len(owed.surplus), (number, kind, windows, owed.difference())
            assert owed.difference() == "", (number, kind, windows, bands, times)
            assert order.fault == "", (number, kind, windows, order.fault)
    assert seen > 2_000_000
