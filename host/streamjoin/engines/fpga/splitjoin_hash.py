"""The hardware design that looks tuples up, behind the same interface.

Its results come grouped by the later tuple, in arrival order, and every one is held against that.
Where the input was cut into tiles (windows ``all`` and ``tumbling``) the tiles' results are put in
that order at the end.
"""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from streamjoin.device.base import Device
from streamjoin.engines.base import Capabilities, Job, Knob
from streamjoin.engines.fpga.device import BACKENDS, CLOCK, OVERLAY
from streamjoin.engines.fpga.handshake import (
    TIMESTAMP_BITS,
    Feed,
    FpgaHandshake,
    Input,
    Micros,
    Words,
)
from streamjoin.engines.fpga.keys import design_term
from streamjoin.errors import EngineError
from streamjoin.metrics import Meter
from streamjoin.tuples import arrival_positions
from streamjoin_common.contract import DesignParams
from streamjoin_common.language.windows import CountWindow, TimeWindow


class FpgaSplitJoinHash(FpgaHandshake):
    """Hash index in block RAM, a tuple a clock, as a Verilated model or on a board."""

    name: ClassVar[str] = "fpga-splitjoin-hash"
    capabilities: ClassVar[Capabilities] = Capabilities(
        predicates=frozenset({"equi"}),
        windows=frozenset({"all", "tumbling", "count", "time"}),
        order="outer",
        platform="fpga",
        backends=BACKENDS,
        arrivals=frozenset({"instant"}),
    )
    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("segment", 16320, "Tuples of each stream that the design holds.", 1, 65536),
        Knob("lanes", 4, "Stored tuples read and compared in one cycle, a power of two.", 1, 64),
        Knob("buckets", 4096, "Hash buckets of each stream, a power of two.", 2, 65536),
        Knob("ways", 8, "Tuples that a bucket names itself; older ones are linked.", 2, 16),
        Knob("lead", 64, "Tuples accepted behind one that still looks, a power of two.", 8, 4096),
        CLOCK,
        OVERLAY,
    )
    room: ClassVar[str] = "the knob segment"

    def _feed(
        self, job: Job, device: Device, keys: list[tuple[Words, Words]], meter: Meter
    ) -> Feed:
        return OrderedFeed(device, keys, job, meter)

    def _params(self, job: Job) -> DesignParams:
        return DesignParams(
            design="splitjoin-hash",
            cores=1,
            segment_tuples=int(job.knobs["segment"]),
            lanes=int(job.knobs["lanes"]),
            terms=tuple(design_term(term, job) for term in job.predicate.terms),
            timestamp_bits=TIMESTAMP_BITS if isinstance(job.window, TimeWindow) else 0,
            buckets=int(job.knobs["buckets"]),
            ways=int(job.knobs["ways"]),
            lead_tuples=int(job.knobs["lead"]),
        )


class OrderedFeed(Feed):
    """Emits in the order of the later tuple's arrival; what is not in it is an error or a tile."""

    def __init__(
        self, device: Device, keys: list[tuple[Words, Words]], job: Job, meter: Meter
    ) -> None:
        super().__init__(device, keys, (job.r.missing, job.s.missing), meter)
        self._places = arrival_positions(job.r.ts, job.s.ts)
        self._in_tiles = not isinstance(job.window, CountWindow | TimeWindow)
        self._tiles: list[tuple[Words, Words, Micros, Micros]] = []
        self._last = -1

    def run(self, inputs: list[Input]) -> None:
        """Stream every input and emit its results, those of tiles in the end."""
        super().run(inputs)
        if self._tiles:
            r_rows, s_rows, produced_us, latency_us = map(
                np.concatenate, zip(*self._tiles, strict=True)
            )
            order = np.argsort(self._later(r_rows, s_rows), kind="stable")
            self._meter.emit(r_rows[order], s_rows[order], produced_us[order], latency_us[order])

    def emit(self, r_rows: Words, s_rows: Words, produced_us: Micros, latency_us: Micros) -> None:
        """Check the order of results, or keep them until it can be made."""
        if self._in_tiles:
            self._tiles.append((r_rows, s_rows, produced_us, latency_us))
            return
        later = np.concatenate([[self._last], self._later(r_rows, s_rows)])
        if (np.diff(later) < 0).any():
            place = int(np.argmax(np.diff(later) < 0))
            pair = (int(r_rows[place]), int(s_rows[place]))
            raise EngineError(
                f"the device gave the result (r_row, s_row) = {pair} after "
                "one of a tuple that arrived later: its order cannot be relied on"
            )
        self._last = int(later[-1])
        self._meter.emit(r_rows, s_rows, produced_us, latency_us)

    def _later(self, r_rows: Words, s_rows: Words) -> NDArray[np.int64]:
        r_places, s_places = self._places
        return np.maximum(r_places[r_rows], s_places[s_rows])
