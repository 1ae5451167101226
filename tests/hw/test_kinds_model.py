"""Kinds of join in whole designs: Verilated models against the reference."""

import dataclasses
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from streamjoin_common.contract import (
    JOIN_KINDS,
    SIDE_R,
    SIDE_S,
    DesignParams,
    TUser,
    parse_term,
)
from streamjoin_hw.flow.build import build_model
from streamjoin_hw.sim.bulk import SlidingJoin, draw_chunks
from streamjoin_hw.sim.model import Model, Outcome
from streamjoin_hw.sim.order import ArrivalOrder, out_of_order
from streamjoin_hw.sim.testing import Workload, random_workload, reference, rows_of_kind

SEED = 31


def design(name: str, term: str, cores: int, segment: int, **others: Any) -> DesignParams:
    return DesignParams(
        design=name,
        cores=cores,
        segment_tuples=segment,
        terms=(parse_term(term),),
        timestamp_bits=28,
        kinds="all",
        **others,
    )


DESIGNS = {
    "chain": design("handshake", "band:int32", 2, 16, lanes=4, forward="fast", payload_bits=24),
    "split": design("splitjoin", "equi:int32", 2, 16, lanes=4, probes=2, order="outer"),
    "grouped": design(
        "splitjoin",
        "equi:int32",
        2,
        16,
        lanes=4,
        probes=3,
        order="outer",
        stars="grouped",
    ),
    "hash": design("splitjoin-hash", "equi:int32", 1, 32, buckets=16, ways=4, lead_tuples=16),
    "index": design(
        "splitjoin-index", "band:int32", 1, 32, lanes=8, buckets=16, ways=2, order="inner"
    ),
}


@pytest.fixture(scope="module", params=DESIGNS)
def model(request: pytest.FixtureRequest) -> Iterator[Model]:
    """Open a model of each design."""
    params = DESIGNS[request.param]
    with Model(params, build_model(params)) as opened:
        yield opened


def run(model: Model, workload: Workload, kind: str, **choices: Any) -> Outcome:
    """Join an input, and check all that does not depend on how it was drawn."""
    model.set_up(workload)
    model.write("kind", JOIN_KINDS.index(kind))
    before = model.read("results")
    outcome = model.run(workload.arrivals, **choices)
    rows = list(zip(outcome.pairs, outcome.missing, strict=True))
    pairs = reference(workload)
    of_r, of_s = (
        [each.payload for each in workload.arrivals if each.side == side]
        for side in (SIDE_R, SIDE_S)
    )
    given = Counter(
        (None if missing & 1 else r, None if missing & 2 or kind == "semi" else s)
        for (r, s), missing in rows
    )
    owed = Counter(rows_of_kind(pairs, of_r, of_s, kind))
    wrong = f"missing {dict(owed - given)}, surplus {dict(given - owed)}"
    assert given == owed, f"rows differ: {wrong}"
    assert model.read("results") - before == len(rows)
    assert any(model.read("status") & 1 for _ in range(2)), "not idle"
    assert outcome.users[-1] == 1 << TUser.PUNCTUATION
    users = [user for user in outcome.users if user & 1 << TUser.RESULT]
    for ((r, s), missing), user in zip(rows, users, strict=True):
        side = user >> TUser.SIDE & 1
        assert missing in (0, 1 + (side == SIDE_R)), "of the wrong side"
        assert (r, s)[1 - side] == 0 or not missing, "a payload is missing and not 0"
    met = [pair for pair, missing in rows if not missing]
    assert out_of_order(workload, met) == ""
    if kind == "semi" and model.params.order_promise != "none":
        # The partner is of the first group.
        first = {r: (r, s) for r, s in reversed(pairs)}
        assert all(not out_of_order(workload, [pair, first[pair[0]]]) for pair in met)
    return outcome


def test_every_kind_is_exact_whatever_windows_sides_and_stalls(model: Model) -> None:
    """Many inputs in one model, each with another kind than the one before."""
    rng = np.random.default_rng(SEED)
    capacity = model.params.window_capacity
    seen: Counter[str] = Counter()
    for number in range(48):
        kind = JOIN_KINDS[number % 6]
        tuples = int(rng.choice([1, 2, 30, 250, 600]))
        windows = [None, (capacity, capacity), (1, capacity), (1, 1)][number // 6 % 4]
        workload = random_workload(
            model.params,
            rng,
            tuples,
            windows=windows,
            domain=[None, 1][number % 11 == 5],
            share_r=float(rng.choice([0, 0.1, 0.5, 0.5, 0.9, 1])),
        )
        if number % 4 < 2:
            workload = dataclasses.replace(workload, time_r=None, time_s=None)
        outcome = run(
            model,
            workload,
            kind,
            seed=number,
            idle_per_1024=int(rng.choice([0, 0, 300])),
            stall_per_1024=int(rng.choice([0, 0, 600])),
        )
        seen["lone"] += sum(missing != 0 for missing in outcome.missing)
        seen["pairs"] += sum(missing == 0 for missing in outcome.missing)
    assert seen["lone"] > 1000
    assert seen["pairs"] > 1000


def test_rows_keep_their_payloads_while_results_hardly_leave(model: Model) -> None:
    """Tuples of one side without gaps: the ring is full, and its oldest group waits in front."""
    rng = np.random.default_rng(SEED)
    for side, kind in ((SIDE_R, "left"), (SIDE_S, "full")):
        share_r = float(side == SIDE_R)
        workload = random_workload(model.params, rng, 500, windows=(8, 8), share_r=share_r)
        run(model, workload, kind, stall_per_1024=1000)


def test_after_a_soft_reset_the_next_input_is_exact(model: Model) -> None:
    """Whatever rows were inside: those of any number of groups, all with a partner."""
    rng = np.random.default_rng(SEED)
    windows = (model.params.window_capacity,) * 2
    for number, tuples in enumerate((1, 40, 150, 333)):
        for kind in ("full", "anti"):
            cut = random_workload(model.params, rng, tuples, windows=windows, domain=1)
            model.set_up(cut)
            model.write("kind", JOIN_KINDS.index(kind))
            model.run(cut.arrivals, last=False, seed=number, stall_per_1024=700)
            model.restart()
            run(model, random_workload(model.params, rng, 200, windows=windows), kind)


def test_a_drain_without_tuples_gives_the_punctuation_alone(model: Model) -> None:
    workload = random_workload(model.params, np.random.default_rng(SEED), 20)
    model.write("kind", JOIN_KINDS.index("full"))
    model.write("control", 0b11)
    outcome = model.run([], max_cycles=2000)
    assert (outcome.pairs, outcome.users) == ([], [1 << TUser.PUNCTUATION])
    run(model, workload, "full")


def test_rows_come_out_before_the_input_ends(model: Model) -> None:
    """Without any gap: those that are older than window and ring together."""
    params = model.params
    rng = np.random.default_rng(SEED)
    workload = random_workload(params, rng, 1000, windows=(8, 8), share_r=1)
    model.set_up(workload)
    model.write("kind", JOIN_KINDS.index("anti"))
    outcome = model.run(workload.arrivals, last=False)
    assert len(outcome.pairs) >= 1000 - params.kept_rows
    assert outcome.pairs == [(row, 0) for row in range(len(outcome.pairs))]
    model.restart()


def bulk(model: Model, kind: str, tuples: int, **choices: Any) -> int:
    """Run a long input of one kind; the join on arrays says which tuples have partners."""
    params = model.params
    rng = np.random.default_rng([SEED, JOIN_KINDS.index(kind)])
    windows = (params.window_capacity, params.window_capacity - 5)
    bands = {"band_lo0": 1, "band_hi0": 0} if "band" in params.terms[0].text else {}
    join = SlidingJoin(params, windows, bands, (50, 60))
    model.set_registers({"window_r": windows[0], "window_s": windows[1], **bands})
    model.set_registers({"time_r": 50, "time_s": 60, "kind": JOIN_KINDS.index(kind)})
    owed, given, lone, counts = [], [], [], [0, 0]
    group = 5 if params.has_groups else 1
    if params.has_groups:
        model.write("group_arrivals", group)
    order = ArrivalOrder(params, group)
    taken = 0
    for chunk in draw_chunks(params, rng, tuples, 2 * params.window_capacity):
        if not taken:
            model.load_splitters(windows, chunk)
        taken += len(chunk.sides)
        owed.append(join.join(chunk))
        order.take(chunk)
        for side in (SIDE_R, SIDE_S):
            counts[side] += int(np.count_nonzero(chunk.sides == side))
        for piece in model.feed(
            chunk, last=taken == tuples, seed=taken, max_cycles=1 << 34, **choices
        ):
            beats = piece.r << np.uint64(32) | piece.s
            met = piece.missing == 0
            given.append(beats[met])
            order.see(piece.r[met], piece.s[met])
            lone.append((piece.missing << np.uint64(32) | piece.r | piece.s)[~met])
    assert order.fault == ""
    pairs = np.sort(np.concatenate(owed))
    rows = (pairs >> np.uint64(32), pairs & np.uint64(0xFFFFFFFF))
    alone: list[Any] = []
    for side, kinds in ((SIDE_R, ("left", "full", "anti")), (SIDE_S, ("right", "full"))):
        met = np.zeros(counts[side], bool)
        met[rows[side].astype(np.int64)] = True
        (rest,) = np.nonzero(~met)
        if kind in kinds:
            alone.append(rest.astype(np.uint64) | np.uint64(2 - side << 32))
    received = np.sort(np.concatenate(given))
    if kind == "semi":
        np.testing.assert_array_equal(received >> np.uint64(32), np.unique(rows[SIDE_R]))
    else:
        np.testing.assert_array_equal(received, pairs if kind != "anti" else pairs[:0])
    expected = np.sort(np.concatenate([pairs[:0], *alone]))
    np.testing.assert_array_equal(np.sort(np.concatenate(lone)), expected)
    return len(pairs) + len(expected)


def test_a_long_input_is_exact(model: Model) -> None:
    for kind in ("full", "semi"):
        assert bulk(model, kind, 13_000, stall_per_1024=200, idle_per_1024=100) > 5_000


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_millions_of_tuples_are_exact(model: Model) -> None:
    for number, kind in enumerate(JOIN_KINDS):
        choices = {"stall_per_1024": 150 * (number % 3), "idle_per_1024": 100 * (number % 2)}
        bulk(model, kind, 420_000, **choices)


@pytest.mark.parametrize(("name", "arrivals"), [("split", 1), ("grouped", 7)])
def test_stars_and_rows_without_partner_pass_side_by_side(name: str, arrivals: int) -> None:
    """With punctuation a group is what lies between two stars, but for rows without partner."""
    params = DESIGNS[name]
    workload = random_workload(params, np.random.default_rng(SEED), 400, group=arrivals)
    with Model(params, build_model(params)) as model:
        model.write("order", 1 | 1 << 4)
        outcome = run(model, workload, "inner")
        groups = _groups(outcome)
        assert len(groups) == 1 + -(-400 // arrivals)
        assert _groups(run(model, workload, "full", stall_per_1024=300)) == groups


def _groups(outcome: Outcome) -> list[list[tuple[int, int]]]:
    """Return the pairs between stars, each group sorted."""
    groups: list[list[tuple[int, int]]] = [[]]
    rows = iter(zip(outcome.pairs, outcome.missing, strict=True))
    for user in outcome.users[:-1]:
        if user & 1 << TUser.PUNCTUATION:
            groups.append([])
            continue
        pair, missing = next(rows)
        if not missing:
            groups[-1].append(pair)
    return [sorted(group) for group in groups]
