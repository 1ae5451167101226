"""Cycles of a tuple and of a match: what is worked out is what the model does, to the cycle."""

import dataclasses
import itertools
from collections.abc import Sequence

import pytest
from _pytest.mark import ParameterSet

from streamjoin_common.contract import FORWARDS, DesignParams, Term, parse_term
from streamjoin_common.contract.presets import EQUI, REFERENCE_BAND
from streamjoin_hw.flow.build import build_model
from streamjoin_hw.sim.testing import step_cycles
from streamjoin_hw.studies.latency.cases import latency_cycles, measure, met

SHAPES = {
    "odd": DesignParams(cores=3, segment_tuples=4, lanes=2, payload_bits=16),
    "even": DesignParams(cores=2, segment_tuples=5, lanes=1, merge_arity=2),
    "band": DesignParams(cores=4, segment_tuples=3, lanes=3, terms=REFERENCE_BAND),
    "lines": DesignParams(cores=10, segment_tuples=2, merge_arity=2),
    "alone": DesignParams(cores=1, segment_tuples=6, lanes=4, terms=(parse_term("band:uint32"),)),
}


def points(others: Sequence[str], quick: set[tuple[str, str]]) -> list[ParameterSet]:
    """Every shape with every other value; each is a model, and all but the quick ones are slow."""
    return [
        pytest.param(*point, marks=() if point in quick else pytest.mark.slow)
        for point in itertools.product(SHAPES, others)
    ]


@pytest.mark.parametrize(
    ("shape", "forward"), points(FORWARDS, {("odd", "step"), ("band", "fast"), ("lines", "step")})
)
def test_every_match_takes_the_cycles_of_its_closed_form(shape: str, forward: str) -> None:
    params = DesignParams(**{**vars(SHAPES[shape]), "forward": forward})
    folder = build_model(params)
    capacity = params.window_capacity
    period = step_cycles(params, capacity, params.cores)
    # What the specification allows a step.
    assert period <= params.segment_words + 1
    for age in range(capacity):
        measured = measure(params, folder, age)
        assert measured.cycles_per_tuple == period
        assert measured.latency_cycles == latency_cycles(params, age), f"age {age}"


@pytest.mark.parametrize(
    ("shape", "order"), points(["none", "outer"], {("odd", "none"), ("alone", "outer")})
)
def test_every_match_of_splitjoin_takes_the_cycles_of_its_closed_form(
    shape: str, order: str
) -> None:
    given = {"design": "splitjoin", "probes": 2, "order": order}
    params = DesignParams(**{**vars(SHAPES[shape]), **given})
    folder = build_model(params)
    for age in range(params.window_capacity):
        assert measure(params, folder, age).latency_cycles == latency_cycles(params, age), age


@pytest.mark.slow
@pytest.mark.parametrize("terms", [EQUI, REFERENCE_BAND], ids=["equality", "bands"])
def test_every_match_by_shared_comparators_takes_a_cycle_more(terms: tuple[Term, ...]) -> None:
    params = DesignParams(
        design="splitjoin",
        cores=5,
        segment_tuples=8,
        lanes=4,
        probes=3,
        order="outer",
        terms=terms,
        comparators="shared",
    )
    folder = build_model(params)
    for age in range(params.window_capacity):
        assert measure(params, folder, age).latency_cycles == latency_cycles(params, age), age


def test_sixteen_cores_of_splitjoin_answer_within_the_trees_and_eleven_cycles() -> None:
    given = {"design": "splitjoin", "segment_tuples": 64, "lanes": 4, "probes": 4}
    # Levels of the distribution tree; of a collection tree, a link behind each; the combiner.
    for cores, levels in ((1, 2 + 3 + 1), (4, 2 + 3 + 1), (16, 2 + 6 + 1), (64, 3 + 9 + 1)):
        ordered = DesignParams(**{**given, "cores": cores, "order": "outer"})
        last = _last_match(ordered)
        assert last == ordered.segment_words + levels + 11 < 100
        assert _last_match(dataclasses.replace(ordered, comparators="shared")) == last + 1
        # Without order the combiner turns, and in three cycles a merger of several inputs.
        turns = 1 + 3 * ((cores > 1) + (cores > 4) + (cores > 16))
        assert _last_match(dataclasses.replace(ordered, order="none")) == last + turns < 100


def _last_match(params: DesignParams) -> int:
    return max(latency_cycles(params, age) for age in range(params.window_capacity))


@pytest.mark.parametrize("cores", [1, 2, 3, 8, 9])
@pytest.mark.parametrize("segment", [1, 4, 64])
def test_in_lock_step_the_newest_tuples_meet_after_most_of_the_window(
    cores: int, segment: int
) -> None:
    params = DesignParams(cores=cores, segment_tuples=segment)
    wanted = segment * (cores - 1) if cores % 2 else segment * cores - 1
    assert met(params, 0).later_tuples == wanted
    assert max(met(params, age).later_tuples for age in range(params.window_capacity)) == wanted


def test_sixteen_cores_of_64_tuples_stay_under_100_cycles_when_tuples_are_forwarded() -> None:
    params = DesignParams(cores=16, segment_tuples=64, lanes=8, forward="fast")
    assert max(latency_cycles(params, age) for age in range(params.window_capacity)) < 100
