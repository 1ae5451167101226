"""SplitJoin with several levels of cores, Verilated: what a reset leaves, wherever it comes."""

import numpy as np
import pytest

from streamjoin_common.contract import DesignParams
from streamjoin_hw.flow.build import build_model
from streamjoin_hw.rtl.split.array import reset_cycles
from streamjoin_hw.sim.model import Model, ModelError
from streamjoin_hw.sim.testing import difference, random_workload, reference

PARAMS = DesignParams(
    design="splitjoin", cores=5, segment_tuples=4, merge_arity=2, result_fifo_words=16
)
SEED = 47


def test_cores_that_are_reset_late_give_nothing_of_before() -> None:
    assert reset_cycles(PARAMS) == 2
    rng = np.random.default_rng(SEED)
    with Model(PARAMS, build_model(PARAMS)) as model:
        for cycles in range(30, 110):
            dense = random_workload(PARAMS, rng, 200, domain=1, windows=(20, 20))
            model.set_up(dense)
            with pytest.raises(ModelError, match="did not end"):
                model.run(dense.arrivals, max_cycles=cycles)
            model.restart()
            workload = random_workload(PARAMS, rng, 30, domain=4)
            model.set_up(workload)
            outcome = model.run(workload.arrivals)
            assert difference(reference(workload), outcome.pairs) == "", f"after {cycles} cycles"
