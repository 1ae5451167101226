"""The Verilated model through its C interface: exactness on arbitrary cases, and its promises."""

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamjoin_common.contract import (
    SIDE_S,
    DesignParams,
    KeyType,
    ParameterError,
    RunState,
    SjmRun,
    TUser,
    active_cores,
    parse_term,
    registers,
)
from streamjoin_hw.flow.build import build_model
from streamjoin_hw.sim.model import Model, ModelError, chunk_of, packed
from streamjoin_hw.sim.testing import (
    Arrival,
    Workload,
    difference,
    interesting_keys,
    random_workload,
    reference,
    step_cycles,
)
from streamjoin_hw.studies.latency.cases import steady_cycles


def design(cores: int, segment: int, lanes: int, *terms: str, **others: Any) -> DesignParams:
    parsed = tuple(parse_term(term) for term in terms)
    return DesignParams(cores=cores, segment_tuples=segment, lanes=lanes, terms=parsed, **others)


DESIGNS = {
    "equal floats": design(2, 3, 2, "equi:float32", payload_bits=9),
    "band query": design(3, 4, 3, "band:int32", "band:float32", merge_arity=2),
    # Several lines: commands, resets and what all cores say take cycles more.
    "many cores": design(40, 20, 1, "equi:int32"),
    "unsigned": design(1, 2, 1, "band:uint32", "equi:uint32", payload_bits=16),
}

SEED = 17


@pytest.fixture(scope="module", params=DESIGNS)
def model(request: pytest.FixtureRequest) -> Iterator[Model]:
    """Open a model of each design."""
    params = DESIGNS[request.param]
    with Model(params, build_model(params)) as opened:
        yield opened


def key_strategy(key_type: KeyType) -> st.SearchStrategy[int]:
    """Return keys that often coincide: a few small ones, the nasty ones, any bits."""
    if key_type is KeyType.FLOAT32:
        small = st.integers(-6, 6).map(lambda v: int(np.float32(v / 2).view(np.uint32)))
    else:
        small = st.integers(-3, 3).map(lambda v: v & 0xFFFFFFFF)
    return small | small | st.sampled_from(interesting_keys(key_type)) | st.integers(0, 0xFFFFFFFF)


@st.composite
def workloads(draw: Any, params: DesignParams) -> Workload:
    """Draw any input that the design can run."""
    window_r = draw(st.integers(1, params.window_capacity))
    window_s = draw(st.integers(1, params.window_capacity))
    try:
        active_cores(params, window_r, window_s)
    except ParameterError:
        window_r = window_s = max(window_r, window_s)
    keys = st.tuples(*(key_strategy(term.type) for term in params.terms))
    pairs = draw(st.lists(st.tuples(st.integers(0, 1), keys), min_size=1, max_size=60))
    arrivals = [Arrival(side, key, number) for number, (side, key) in enumerate(pairs)]
    bands = {}
    for register in registers(params):
        if register.name.startswith("band_"):
            term = params.terms[int(register.name[-1])]
            width_type = KeyType.FLOAT32 if term.type is KeyType.FLOAT32 else KeyType.INT32
            bands[register.name] = draw(key_strategy(width_type))
    return Workload(params, arrivals, window_r, window_s, bands)


def test_any_input_gives_exactly_the_reference(model: Model) -> None:
    @settings(
        max_examples=150,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(
        workload=workloads(model.params),
        idle=st.sampled_from([0, 0, 500]),
        stall=st.sampled_from([0, 0, 800]),
        seed=st.integers(0, 1 << 32),
    )
    def check(workload: Workload, idle: int, stall: int, seed: int) -> None:
        model.set_up(workload)
        outcome = model.run(workload.arrivals, seed=seed, idle_per_1024=idle, stall_per_1024=stall)
        assert difference(reference(workload), outcome.pairs) == ""
        # Some cycles after the end: a read takes some.
        assert any(model.read("status") & 1 for _ in range(2)), "not idle"

    check()


def test_a_long_input_under_stalls_is_exact(model: Model) -> None:
    rng = np.random.default_rng(SEED)
    tuples = 4_000 if model.params.cores > 8 else 12_000  # many cores simulate slowly
    workload = random_workload(model.params, rng, tuples, extremes=0.02)
    model.set_up(workload)
    outcome = model.run(
        workload.arrivals, seed=SEED, idle_per_1024=200, stall_per_1024=400, capacity=700
    )
    assert difference(reference(workload), outcome.pairs) == ""
    assert outcome.users[-1] == 1 << TUser.PUNCTUATION
    assert (np.diff(outcome.accepted) > 0).all()
    assert (np.diff(outcome.stamps) > 0).all()


def test_one_key_everywhere_loses_nothing_when_the_output_stands_still(model: Model) -> None:
    capacity = model.params.window_capacity
    rng = np.random.default_rng(SEED)
    workload = random_workload(model.params, rng, 500, domain=1, windows=(capacity, capacity))
    model.set_up(workload)
    held = model.read("hold_cycles")
    outcome = model.run(workload.arrivals, seed=SEED, stall_per_1024=900)
    assert difference(reference(workload), outcome.pairs) == ""
    if model.params.segment_words > 1:
        assert model.read("hold_cycles") > held


def test_a_step_costs_what_the_formula_says(model: Model) -> None:
    params = model.params
    capacity = params.window_capacity
    active = active_cores(params, capacity, capacity)
    assert step_cycles(params, capacity, active) <= -(-params.segment_tuples // params.lanes) + 1
    rng = np.random.default_rng(SEED)
    workload = random_workload(params, rng, 500, domain=1 << 20, windows=(capacity, capacity))
    model.set_up(workload)
    accepted = model.run(workload.arrivals).accepted
    # In the long run; the ingress takes the first ones ahead.
    assert steady_cycles(accepted[50:]) == step_cycles(params, capacity, active)


def test_a_run_goes_on_where_full_results_stopped_it(model: Model) -> None:
    params = model.params
    workload = random_workload(params, np.random.default_rng(SEED), 400, domain=1)
    model.set_up(workload)
    whole = model.run(workload.arrivals)
    model.set_up(workload)
    pieces = model.run(workload.arrivals, capacity=3)
    assert pieces.users.count(1 << TUser.PUNCTUATION) == 1
    assert difference(whole.pairs, pieces.pairs) == ""


def test_the_status_tells_a_stalled_output_from_a_starved_input(model: Model) -> None:
    """Between runs the output is not ready."""
    (status,) = (each for each in registers(model.params) if each.name == "status")
    bits = {each.name: each.bit for each in status.fields}

    def now() -> set[str]:
        for _ in range(60):  # until what was taken is at rest
            value = model.read("status")
        return {name for name, bit in bits.items() if value >> bit & 1}

    capacity = model.params.window_capacity
    rng = np.random.default_rng(SEED)
    workload = random_workload(model.params, rng, 1200, domain=1, windows=(capacity, capacity))
    model.set_up(workload)
    assert now() == {"idle", "starved"}
    early = [arrival for arrival in workload.arrivals if arrival.side == SIDE_S][:3]
    model.run(early, last=False)
    assert now() == {"starved"}
    with pytest.raises(ModelError, match="did not end"):
        model.run(workload.arrivals, stall_per_1024=1024, max_cycles=20_000)
    assert now() == {"held", "output_stalled"}
    model.restart()
    assert now() == {"idle", "starved"}


def test_without_last_the_input_stays_open_until_the_drain_bit(model: Model) -> None:
    workload = random_workload(model.params, np.random.default_rng(SEED), 60)
    model.set_up(workload)
    first = model.run(workload.arrivals[:30], last=False)
    second = model.run(workload.arrivals[30:], last=False)
    assert not model.read("status") & 1
    model.write("control", 0b11)
    rest = model.run([], last=True)
    pairs = first.pairs + second.pairs + rest.pairs
    assert difference(reference(workload), pairs) == ""


def test_a_soft_reset_leaves_an_empty_design(model: Model) -> None:
    workload = random_workload(model.params, np.random.default_rng(SEED), 60)
    model.set_up(workload)
    model.run(workload.arrivals[:40], last=False)
    model.restart()
    assert model.read("tuples_r") == model.read("tuples_s") == model.read("results") == 0
    outcome = model.run(workload.arrivals)
    assert difference(reference(workload), outcome.pairs) == ""


def test_a_soft_reset_drops_drain_and_enable_as_its_description_says(model: Model) -> None:
    (control,) = (each for each in registers(model.params) if each.name == "control")
    (doc,) = (each.doc for each in control.fields if each.name == "soft_reset")
    assert "drops a drain written with it and clears enable unless written with it" in doc
    model.restart()
    model.write("control", 0b110)
    assert model.read("control") == 0
    model.write("control", 0b111)
    assert model.read("control") == 1


def test_new_band_widths_count_for_the_tuples_after_the_write(model: Model) -> None:
    params = model.params
    if not any(name.startswith("band_") for name in model.offsets):
        return
    capacity = params.window_capacity
    rng = np.random.default_rng(SEED)
    workload = random_workload(params, rng, 200, domain=6, windows=(capacity, capacity))
    wider = Workload(params, workload.arrivals, capacity, capacity, dict(workload.bands))
    for name in wider.bands:
        kind = params.terms[int(name[-1])].type
        wider.bands[name] = 3 if kind is not KeyType.FLOAT32 else 0x40400000  # 3 in both
    model.set_up(workload)
    first = model.run(workload.arrivals[:100], last=False)
    for name, bits in wider.bands.items():
        model.write(name, bits)
    rest = model.run(workload.arrivals[100:])
    # A pair belongs to the widths in force when its S tuple was accepted.
    late = {a.payload for a in workload.arrivals[100:] if a.side == SIDE_S}
    expected = [pair for pair in reference(workload) if pair[1] not in late]
    expected += [pair for pair in reference(wider) if pair[1] in late]
    assert difference(expected, first.pairs + rest.pairs) == ""


def test_a_tuple_is_not_offered_before_its_time(model: Model) -> None:
    arrivals = random_workload(model.params, np.random.default_rng(SEED), 20).arrivals
    model.set_up(Workload(model.params, arrivals, 1, 1))
    beats = packed(model.params, chunk_of(model.params, arrivals))
    dest = np.array([a.side for a in arrivals], np.uint8)
    not_before = 300 + np.arange(20, dtype=np.int64) * 37
    accepted = np.zeros(20, np.int64)
    results, users = np.zeros((64, 16), np.uint8), np.zeros(64, np.uint8)
    run = SjmRun(
        beats=beats.ctypes.data,
        dest=dest.ctypes.data,
        not_before=not_before.ctypes.data,
        accepted=accepted.ctypes.data,
        beat_count=20,
        last=1,
        results=results.ctypes.data,
        users=users.ctypes.data,
        capacity=64,
        max_cycles=10_000,
    )
    start = model.cycles
    assert model.library.sjm_run(model.handle, ctypes.byref(run)) == RunState.ENDED
    assert (accepted - start == not_before).all()
    assert model.cycles - start == run.cycles


def abandoned(model: Model, arrivals: list[Arrival]) -> None:
    """Offer a tuple to an empty design that takes none, and give up."""
    model.write("control", 0b100)
    with pytest.raises(ModelError, match=r"\(0 of"):
        model.run(arrivals, max_cycles=100)


def test_a_beat_of_an_abandoned_run_is_not_the_first_of_the_next(model: Model) -> None:
    workload = random_workload(model.params, np.random.default_rng(SEED), 60, domain=2)
    model.set_up(workload)
    last = workload.arrivals[-1]
    strange = Arrival(1 - workload.arrivals[0].side, last.keys, 255)
    abandoned(model, [strange])
    model.write("control", 0b100)
    model.write("control", 1)
    for _ in range(60):  # the windows take effect; a beat that is still offered would be taken
        model.read("status")
    outcome = model.run(workload.arrivals)
    assert difference(reference(workload), outcome.pairs) == ""
    assert model.read("tuples_r") + model.read("tuples_s") == 60


def test_a_new_run_withdraws_the_beat_that_was_offered(model: Model) -> None:
    workload = random_workload(model.params, np.random.default_rng(SEED), 60, domain=2)
    model.set_up(workload)
    first = workload.arrivals[0]
    abandoned(model, [Arrival(1 - first.side, first.keys, 255)])
    with pytest.raises(ModelError, match=r"\(0 of"):
        model.run(workload.arrivals, max_cycles=100)  # its first beat is offered now
    model.write("control", 1)  # ... and taken here
    model.read("status")  # the counters follow some cycles later
    taken = [model.read("tuples_r"), model.read("tuples_s")]
    assert taken == [1 - first.side, first.side]
    model.write("control", 0b101)


def test_a_run_that_was_not_left_cannot_be_gone_on_with(model: Model) -> None:
    run = SjmRun(last=1, resume=1, max_cycles=10, capacity=1)
    model.write("control", 0b101)
    assert model.library.sjm_run(model.handle, ctypes.byref(run)) == RunState.NOTHING_TO_RESUME


def test_an_unknown_offset_is_an_error(model: Model) -> None:
    assert model.read_offset(0x7F0, ctypes.c_uint32()) != 0
    assert model.write_offset(0x7F0, 0) != 0
    assert model.write_offset(model.offsets["identity"], 0) != 0


def test_windows_that_cannot_be_held_stop_the_input(model: Model) -> None:
    params = model.params
    arrivals = random_workload(params, np.random.default_rng(SEED), 10).arrivals
    model.write("window_r", params.window_capacity + 1)
    with pytest.raises(ModelError, match=r"^the run did not end within 2000 cycles \(0 of 10"):
        model.run(arrivals, max_cycles=2000)
    assert model.read("status") & 0b10000
    model.write("control", 0b101)
    model.write("window_r", params.window_capacity)


def test_too_many_terms_are_named_as_they_are_written() -> None:
    terms = ("equi:int32", "band:float32", "equi:int32", "equi:uint32", "band:int32")
    with pytest.raises(ParameterError) as caught:
        design(1, 2, 1, *terms)
    assert str(caught.value) == f"terms must be 1 to 4 terms, not 5: {','.join(terms)}"


def test_another_design_is_refused() -> None:
    built, wanted = DESIGNS["equal floats"], DESIGNS["unsigned"]
    with pytest.raises(ModelError, match=f"digest is {built.digest}, the parameters'"):
        Model(wanted, build_model(built))
