"""The oracle as an engine, for small inputs and for comparison."""

from typing import ClassVar

import numpy as np

from streamjoin import oracle
from streamjoin.engines.base import Capabilities, Engine
from streamjoin.engines.job import Job
from streamjoin.metrics import Meter


class Oracle(Engine):
    """The definition itself, slow and obvious: the reference for every other engine."""

    name: ClassVar[str] = "oracle"
    capabilities: ClassVar[Capabilities] = Capabilities(
        predicates=frozenset({"equi", "band"}),
        windows=frozenset({"all", "tumbling", "count", "time"}),
        order="none",
        platform="cpu",
    )

    def run(self, job: Job, prepared: None, meter: Meter) -> None:
        """Join by the definition, all at once."""
        meter.sleep_until_arrived(job)
        with meter.phase("probe"):
            pairs = oracle.join(job.r, job.s, job.predicate, job.window, meter.progress)
        meter.emit(pairs.r_rows.astype(np.uint32), pairs.s_rows.astype(np.uint32))
