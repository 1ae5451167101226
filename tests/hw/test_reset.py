"""A soft reset while an array works, on the Verilog: cores obey it later than what is around them.

In the simulator the parts of a core obey the reset at once; here a core is a module of its own.
"""

from typing import Any

import numpy as np
import pytest

from streamjoin_common.contract import DesignParams, parse_term
from streamjoin_hw.flow.build import build_model
from streamjoin_hw.sim.model import Model, ModelError
from streamjoin_hw.sim.testing import difference, random_workload, reference

SEED = 31
RESETS = 40
DRAIN_READS = 60
CLEARED = ("tuples_r", "tuples_s", "results", "hold_cycles", "cycles_low", "evicted")

SPLIT: dict[str, Any] = {"design": "splitjoin", "segment_tuples": 4, "merge_arity": 2}
SHAPES: dict[str, dict[str, Any]] = {
    "step": {"cores": 20, "segment_tuples": 4},
    "fast": {"cores": 20, "segment_tuples": 4, "forward": "fast"},
    "split": {**SPLIT, "cores": 9},
    # The way to a core has two registers all the same.
    "single": {**SPLIT, "cores": 1},
    "ordered": {
        **SPLIT,
        "cores": 5,
        "lanes": 2,
        "probes": 3,
        "order": "inner",
        "timestamp_bits": 14,
    },
    "shared": {**SPLIT, "cores": 3, "lanes": 2, "probes": 2, "comparators": "shared"},
    "points": {
        **SPLIT,
        "cores": 3,
        "lanes": 2,
        "probes": 2,
        "comparators": "shared",
        "terms": "band:int32",
    },
    "grouped": {**SPLIT, "cores": 3, "lanes": 2, "probes": 2, "order": "outer", "stars": "grouped"},
    "block RAM": {**SPLIT, "cores": 5, "window_memory": "bram"},
}


def params_of(shape: dict[str, Any]) -> DesignParams:
    terms = (parse_term(shape.get("terms", "equi:int32")),)
    return DesignParams(**{**shape, "terms": terms})


@pytest.mark.parametrize("name", SHAPES)
def test_nothing_of_before_a_soft_reset_counts_after_it(name: str) -> None:
    """It comes at any time: as tuples are on their way, as all queues are full of results."""
    params = params_of(SHAPES[name])
    rng = np.random.default_rng(SEED)
    windows = (params.window_capacity, params.window_capacity)
    with Model(params, build_model(params)) as model:
        counters = [each for each in CLEARED if each in model.offsets]
        for number in range(RESETS):
            # Few pairs, so that tuples enter windows all the time, or many, so that queues fill up.
            domain = int(rng.choice([1, 60]))
            before = random_workload(params, rng, 900, domain=domain, windows=windows)
            model.set_up(before)
            stall = int(rng.choice([0, 600, 1024]))
            patience = int(rng.integers(20, 700))
            with pytest.raises(ModelError, match="did not end"):
                model.run(before.arrivals, stall_per_1024=stall, max_cycles=patience, seed=number)
            model.restart()
            after = random_workload(params, rng, int(rng.integers(1, 40)), domain=2)
            model.set_up(after)
            case = f"reset {number}, seed {SEED}, after {patience} cycles at stalls of {stall}"
            assert [model.read(each) for each in counters] == [0] * len(counters), case
            assert difference(reference(after), model.run(after.arrivals).pairs) == "", case


@pytest.mark.parametrize("name", ["step", "fast", "split", "ordered", "shared"])
def test_a_hold_of_before_a_soft_reset_is_not_counted_while_it_drains(name: str) -> None:
    """The drain is written while the reset waits, so that the input after it ends at once."""
    # With so many words a core has read ahead as far as it may.
    params = params_of({**SHAPES[name], "segment_tuples": 64})
    rng = np.random.default_rng(SEED)
    windows = (params.window_capacity, params.window_capacity)
    with Model(params, build_model(params)) as model:
        full = random_workload(params, rng, 3 * params.window_capacity, domain=1, windows=windows)
        model.set_up(full)
        filling = 2 * params.window_capacity
        model.run(full.arrivals[:filling], last=False)
        with pytest.raises(ModelError, match="did not end"):
            model.run(full.arrivals[filling:], stall_per_1024=1024, max_cycles=2_000)
        assert model.read("hold_cycles") > 0
        model.restart(drain=True)
        # Each read takes cycles; the drain is over once `control` holds `enable` alone.
        control = [model.read("control") for _ in range(DRAIN_READS)]
        assert control[-1] == 1, "the drain does not end"
        counted = model.read("hold_cycles")
        assert counted == 0, f"{counted} cycles of before are counted"
