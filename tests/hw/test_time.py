"""Time windows: which pairs they join, and that a tuple pushed out too early is always counted."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from streamjoin_common.contract import (
    SIDE_R,
    SIDE_S,
    DesignParams,
    KeyType,
    Term,
    TermKind,
    parse_term,
)
from streamjoin_hw.flow.build import build_model
from streamjoin_hw.sim.model import Model
from streamjoin_hw.sim.testing import Arrival, Workload, difference, random_workload, reference

SEED = 29
INPUTS = 100
TIMESTAMP_BITS = 12
TERMS = (Term(TermKind.EQUI, KeyType.UINT32),)


SHAPES: dict[str, Any] = {
    "step": {"cores": 3, "segment_tuples": 4, "lanes": 2},
    "fast": {"cores": 3, "segment_tuples": 4, "lanes": 2, "forward": "fast"},
    # A tuple follows the other at once, so that several cores lose one in the same cycle.
    "splitjoin": {
        "design": "splitjoin",
        "order": "inner",
        "probes": 3,
        "cores": 3,
        "segment_tuples": 4,
        "lanes": 2,
    },
    "fast, one tuple a core": {"cores": 6, "segment_tuples": 1, "forward": "fast"},
}


@pytest.fixture(scope="module", params=SHAPES)
def model(request: pytest.FixtureRequest) -> Iterator[Model]:
    params = DesignParams(
        **SHAPES[request.param], terms=TERMS, payload_bits=12, timestamp_bits=TIMESTAMP_BITS
    )
    with Model(params, build_model(params)) as opened:
        yield opened


def pushed_out(workload: Workload) -> int:
    """Count, by the definition, who leaves a full count window before its time is over."""
    early = 0
    for side, window, length in (
        (0, workload.window_r, workload.time_r),
        (1, workload.window_s, workload.time_s),
    ):
        times = [arrival.ts for arrival in workload.arrivals if arrival.side == side]
        for old, new in zip(times, times[window:], strict=False):
            early += length is None or new < old + length
    return early


def test_pairs_and_counted_losses_are_exact_under_random_times(model: Model) -> None:
    """Also from one input to the next: nothing of the last one is inside or counted again."""
    rng = np.random.default_rng(SEED)
    counted = timed = 0
    for number in range(INPUTS):
        workload = random_workload(model.params, rng, int(rng.integers(1, 90)), domain=4)
        # From windows that hold everything to ones that hold nobody but the same instant.
        workload.time_r, workload.time_s = (
            None if rng.random() < 0.1 else int(rng.choice([1, 2, 5, 12, 40, 4000]))
            for _ in range(2)
        )
        model.set_up(workload)
        before = model.read("evicted")
        outcome = model.run(
            workload.arrivals,
            seed=number,
            idle_per_1024=int(rng.choice([0, 0, 500])),
            stall_per_1024=int(rng.choice([0, 0, 800])),
        )
        assert difference(reference(workload), outcome.pairs) == "", f"input {number}"
        assert model.read("evicted") - before == pushed_out(workload), f"input {number}"
        counted += pushed_out(workload)
        timed += len(outcome.pairs)
    assert min(counted, timed) > 10 * INPUTS


def alone(model: Model, times: list[tuple[int, int]], length: int) -> tuple[int, int]:
    """Run tuples of one key; return the counts of pairs and of losses."""
    capacity = model.params.window_capacity
    arrivals = [Arrival(side, (7,), row, ts) for row, (side, ts) in enumerate(times)]
    model.set_up(Workload(model.params, arrivals, capacity, capacity, {}, length, length))
    before = model.read("evicted")
    pairs = model.run(arrivals).pairs
    return len(pairs), model.read("evicted") - before


@pytest.mark.parametrize("side", [0, 1])
def test_the_window_ends_just_before_its_length(model: Model, side: int) -> None:
    assert alone(model, [(side, 100), (1 - side, 109)], 10) == (1, 0)
    assert alone(model, [(side, 100), (1 - side, 110)], 10) == (0, 0)


@pytest.mark.parametrize("side", [0, 1])
def test_a_window_that_reaches_beyond_the_last_time_does_not_wrap(model: Model, side: int) -> None:
    maximum = (1 << TIMESTAMP_BITS) - 2
    assert alone(model, [(side, maximum), (1 - side, maximum)], 10) == (1, 0)
    assert alone(model, [(side, 0), (1 - side, maximum)], maximum) == (0, 0)
    assert alone(model, [(side, 1), (1 - side, maximum)], maximum) == (1, 0)


@pytest.mark.parametrize("side", [0, 1])
def test_one_tuple_too_many_is_counted_and_one_just_in_time_is_not(model: Model, side: int) -> None:
    capacity = model.params.window_capacity
    full = [(side, 100)] * capacity
    assert alone(model, full, 10) == (0, 0)
    assert alone(model, [*full, (side, 109)], 10) == (0, 1)
    assert alone(model, [*full, (side, 110)], 10) == (0, 0)
    # All of a burst are lost while another burst arrives, however close the pulses are.
    assert alone(model, full * 3, 10) == (0, 2 * capacity)


def test_a_new_length_counts_for_the_tuples_after_the_write(model: Model) -> None:
    capacity = model.params.window_capacity
    arrivals = [Arrival(0, (7,), 1, 100), Arrival(0, (7,), 2, 100), Arrival(1, (7,), 3, 120)]
    workload = Workload(model.params, arrivals, capacity, capacity, {}, 10, 10)
    model.set_up(workload)
    model.run(arrivals[:1], last=False)
    model.write("time_r", 50)
    assert model.run(arrivals[1:]).pairs == [(2, 3)]


def test_a_soft_reset_clears_the_count_of_losses(model: Model) -> None:
    capacity = model.params.window_capacity
    assert alone(model, [(0, 5)] * (capacity + 1), 10)[1] == 1
    model.write("control", 0b101)
    assert model.read("evicted") == 0


@pytest.mark.parametrize("term", ["band:int32", "band:float32"])
@pytest.mark.parametrize("forward", ["step", "fast"])
def test_a_time_window_counts_from_the_tuple_after_its_write(term: str, forward: str) -> None:
    """However many stages a tuple still has before it when the register is written."""
    params = DesignParams(
        cores=1,
        segment_tuples=64,
        terms=(parse_term(term),),
        timestamp_bits=TIMESTAMP_BITS,
        forward=forward,
    )

    def key(number: int) -> int:
        return int(np.float32(number).view(np.uint32)) if "float" in term else number

    filling = [Arrival(SIDE_S, (key(1000),), row, 0) for row in range(64)]
    early = [Arrival(SIDE_R, (key(row),), row, 1) for row in range(10)]
    late = [Arrival(SIDE_S, (key(row),), 100 + row, 5) for row in range(10)]
    with Model(params, build_model(params)) as model:
        model.set_registers({"time_r": 100, "time_s": 100})
        first = model.run(filling + early, last=False)
        model.set_registers({"time_r": 1})
        pairs = first.pairs + model.run(late).pairs
    assert sorted(pairs) == [(row, 100 + row) for row in range(10)]
