"""The index with own buckets and two results a beat, Verilated: skew, long runs, counters."""

from dataclasses import replace

import numpy as np
import pytest

from streamjoin_common.contract import DesignParams, KeyType, Term, TermKind, TUser
from streamjoin_hw.flow import build
from streamjoin_hw.sim import testing
from streamjoin_hw.sim.model import Model
from streamjoin_hw.sim.order import out_of_order
from streamjoin_hw.studies.rate.loads import Load, measure

PARAMS = DesignParams(
    design="splitjoin-hash",
    cores=1,
    segment_tuples=448,
    lanes=4,
    payload_bits=20,
    terms=(Term(TermKind.EQUI, KeyType.UINT32),),
    buckets=256,
    ways=8,
    lead_tuples=64,
    own_buckets=64,
    beat_results=2,
)
SEED = 43


@pytest.mark.parametrize(("keys", "rate"), [("zipf", 1.0), ("zipf", 4.0), ("zipf-both", 1.0)])
def test_frequent_keys_are_exact_and_cost_less_than_a_cycle_a_result(
    keys: str, rate: float
) -> None:
    measured = measure(PARAMS, build.build_model(PARAMS), Load(400, rate, keys, 30_000, SEED))
    assert measured.cycles < max(1.05, 0.85 * measured.owed)


def test_skewed_keys_at_a_match_rate_of_one_take_a_cycle_a_tuple() -> None:
    """Without own buckets and with one result a beat it is a fifth more."""
    folder = build.build_model(PARAMS)
    for rate in (0.0, 0.25, 1.0):
        measured = measure(PARAMS, folder, Load(448, rate, "zipf", 40_000, SEED))
        assert measured.cycles < 1.03


def test_the_counter_counts_results_and_not_beats() -> None:
    workload = testing.random_workload(PARAMS, np.random.default_rng(SEED), 600, domain=30)
    with Model(PARAMS, build.build_model(PARAMS)) as model:
        model.set_up(workload)
        outcome = model.run(workload.arrivals, seed=SEED, stall_per_1024=300)
        assert testing.difference(testing.reference(workload), outcome.pairs) == ""
        assert out_of_order(workload, outcome.pairs) == ""
        assert model.read("results") == len(outcome.pairs)
    beats = [user for user in outcome.users if user >> TUser.RESULT & 1]
    assert len(outcome.pairs) == len(beats) + sum(user >> TUser.SECOND & 1 for user in beats)
    assert len(outcome.pairs) > 1.2 * len(beats)


def test_inputs_without_a_reset_and_with_one_are_exact_whatever_own_buckets_hold() -> None:
    """Short inputs of few keys: numbers wrap, own buckets change hands between and in them."""
    small = replace(PARAMS, segment_tuples=24, buckets=8, ways=3, lead_tuples=8, own_buckets=4)
    rng = np.random.default_rng(SEED)
    with Model(small, build.build_model(small)) as model:
        for number in range(120):
            tuples, domain = int(rng.integers(1, 260)), int(rng.integers(1, 9))
            workload = testing.random_workload(small, rng, tuples, domain=domain)
            model.set_up(workload)
            outcome = model.run(workload.arrivals, seed=number, stall_per_1024=300 * (number % 2))
            assert testing.difference(testing.reference(workload), outcome.pairs) == ""
            assert out_of_order(workload, outcome.pairs) == ""
            if number % 5 == 0:
                model.restart()
