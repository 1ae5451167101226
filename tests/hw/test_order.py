"""Results out of a promised order are noticed, wherever in a long input they are."""

from dataclasses import replace

import numpy as np
import pytest

from streamjoin_common.contract import SIDE_R, SIDE_S
from streamjoin_common.contract.presets import PRESETS
from streamjoin_hw.flow import build
from streamjoin_hw.sim import run as bulk_run
from streamjoin_hw.sim import testing
from streamjoin_hw.sim.bulk import SlidingJoin, draw_chunks
from streamjoin_hw.sim.model import Model, ModelError, chunk_of
from streamjoin_hw.sim.order import ArrivalOrder, out_of_order
from streamjoin_hw.sim.testing import Arrival, Workload

SEED = 41
PARAMS = PRESETS["tiny-hash"]
ARRIVALS = [Arrival(side, (1,), row) for row in range(3) for side in (SIDE_R, SIDE_S)]


@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [
        ([(0, 0), (1, 0), (1, 1), (0, 1)], ""),
        ([(0, 0), (1, 1), (1, 0)], "result (1, 0) of arrival 2 was given after one of arrival 3"),
        ([(2, 2), (0, 0)], "result (0, 0) of arrival 1 was given after one of arrival 5"),
    ],
)
def test_a_result_before_its_turn_is_named(pairs: list[tuple[int, int]], sentence: str) -> None:
    workload = Workload(PARAMS, ARRIVALS, 8, 8)
    assert out_of_order(workload, pairs) == sentence
    assert out_of_order(Workload(PRESETS["tiny"], ARRIVALS, 8, 8), pairs) == ""


def test_under_the_inner_order_the_earlier_tuples_are_in_turn_too() -> None:
    workload = Workload(PARAMS, ARRIVALS, 8, 8)
    inner = [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert out_of_order(workload, inner, "inner") == ""
    swapped = [(0, 0), (1, 0), (1, 1), (0, 1)]
    wrong = "result (0, 1) of arrival 3 was given after one of arrival 3"
    assert out_of_order(workload, swapped, "inner") == wrong
    assert out_of_order(workload, swapped, "outer") == ""


@pytest.mark.parametrize(
    ("group", "sentence"),
    [
        (1, "result (0, 0) of arrival 1 was given after one of arrival 2"),
        (2, "result (0, 0) of arrival 1 was given after one of arrival 2"),
        (3, ""),
        (4, "result (1, 1) of arrival 3 was given after one of arrival 5"),
        (6, ""),
        (0, ""),
    ],
)
def test_within_a_group_of_arrivals_results_are_in_any_order(group: int, sentence: str) -> None:
    workload = Workload(PARAMS, ARRIVALS, 8, 8, group=group)
    # Later tuples: arrivals 2, 1, 5, 3.
    pairs = [(1, 0), (0, 0), (2, 2), (1, 1)]
    assert out_of_order(workload, pairs, "outer") == sentence
    order = ArrivalOrder(PARAMS, group)
    order.take(chunk_of(PARAMS, ARRIVALS))
    for r, s in pairs:
        order.see(np.array([r], np.uint64), np.array([s], np.uint64))
    assert order.fault == sentence
    # The inner order is between all arrivals.
    assert out_of_order(workload, pairs[:2], "inner") != ""


@pytest.mark.slow
@pytest.mark.parametrize("group", [1, 2, 3, 7, 64, 0])
@pytest.mark.parametrize("comparators", ["own", "shared"])
def test_a_million_tuples_are_exact_and_in_order_between_groups(
    comparators: str, group: int
) -> None:
    params = replace(PRESETS["tiny-split"], stars="grouped", comparators=comparators)
    figures = bulk_run.bulk_run(
        params,
        build.build_model(params),
        tuples=1_000_000,
        windows=(24, 21),
        seed=SEED,
        idle_per_1024=100,
        stall_per_1024=200,
        report=lambda _taken: None,
        group=group,
    )
    assert figures["verdict"] == bulk_run.EXACT, figures
    assert (figures["tuples"], figures["group"]) == (1_000_000, group)


@pytest.mark.parametrize("swap", [None, 0, 700, 1900])
def test_two_results_swapped_in_a_long_input_are_noticed(swap: int | None) -> None:
    order = ArrivalOrder(PARAMS)
    join = SlidingJoin(PARAMS, (48, 48), {})
    rng = np.random.default_rng(SEED)
    seen = 0
    for chunk in draw_chunks(PARAMS, rng, 4000, 20, chunk_tuples=500):
        order.take(chunk)
        expected = join.join(chunk)
        r, s = expected >> np.uint64(32), expected & np.uint64(0xFFFFFFFF)
        numbers = [dict[int, int](), dict[int, int]()]
        for number, (side, row) in enumerate(zip(chunk.sides, chunk.payloads, strict=True)):
            numbers[side][int(row)] = number
        arrivals = [
            [numbers[side].get(int(row), -1) for row in rows] for side, rows in enumerate((r, s))
        ]
        later = np.max(arrivals, axis=0)
        turn = np.argsort(later, kind="stable")
        if swap is not None and seen <= swap < seen + len(turn):
            first = swap - seen
            second = first + int(np.argmax(later[turn][first:] > later[turn][first]))
            turn[[first, second]] = turn[[second, first]]
        seen += len(turn)
        order.see(r[turn], s[turn])
    assert seen > 2500
    assert bool(order.fault) == (swap is not None), order.fault


@pytest.mark.parametrize("windows", [(48, 48), (1, 48), (37, 5)])
def test_a_long_input_comes_out_exact_and_in_order(windows: tuple[int, int]) -> None:
    figures = bulk_run.bulk_run(
        PARAMS,
        build.build_model(PARAMS),
        tuples=300_000,
        windows=windows,
        seed=SEED,
        idle_per_1024=100,
        stall_per_1024=200,
        report=lambda _taken: None,
    )
    assert figures["verdict"] == bulk_run.EXACT, figures
    assert figures["results"] > 100_000 // max(1, max(windows) - min(windows))


def test_a_long_run_ends_where_the_order_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    see = ArrivalOrder.see
    monkeypatch.setattr(ArrivalOrder, "see", lambda self, r, s: see(self, r[::-1], s[::-1]))
    figures = bulk_run.bulk_run(
        PARAMS,
        build.build_model(PARAMS),
        tuples=200_000,
        windows=(8, 8),
        seed=SEED,
        idle_per_1024=0,
        stall_per_1024=0,
        report=lambda _taken: None,
    )
    assert "was given after one of arrival" in figures["verdict"]
    assert figures["tuples"] < 200_000


def test_a_tuple_a_cycle_is_taken_at_match_rates_up_to_one() -> None:
    """The queue has room for 64 tuples, the buckets for the whole window."""
    from streamjoin_hw.studies.rate.loads import Load, measure

    params = replace(PARAMS, segment_tuples=448, lanes=4, buckets=256, ways=8, lead_tuples=64)
    folder = build.build_model(params)
    for rate in (0.0, 0.25, 1.0, 3.0):
        measured = measure(params, folder, Load(400, rate, "uniform", 20_000, SEED))
        assert abs(measured.owed - rate) < 0.05
        assert measured.cycles < 1.03 * max(1.0, measured.owed)
    skewed = measure(params, folder, Load(400, 4.0, "zipf-both", 20_000, SEED))
    assert skewed.owed > 8
    assert skewed.cycles < 1.03 * skewed.owed


def test_a_load_that_gives_a_wrong_result_has_no_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    from streamjoin_hw.studies.rate.loads import Load, measure

    join = SlidingJoin.join
    monkeypatch.setattr(SlidingJoin, "join", lambda *given: join(*given)[1:])
    with pytest.raises(ModelError, match=r"uniform keys, random sides, seed 41: .* 2 surplus"):
        measure(PARAMS, build.build_model(PARAMS), Load(20, 1.0, "uniform", 500, SEED))


def test_the_model_takes_any_input_without_clearing_what_it_holds() -> None:
    """Many short inputs: numbers wrap several times, buckets keep the names of all of them."""
    rng = np.random.default_rng(SEED)
    with Model(PARAMS, build.build_model(PARAMS)) as model:
        for number in range(60):
            workload = testing.random_workload(PARAMS, rng, int(rng.integers(1, 120)), domain=9)
            model.set_up(workload)
            outcome = model.run(workload.arrivals, seed=number, stall_per_1024=300 * (number % 2))
            assert testing.difference(testing.reference(workload), outcome.pairs) == ""
            assert out_of_order(workload, outcome.pairs) == ""
