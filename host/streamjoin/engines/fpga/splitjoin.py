"""SplitJoin in hardware: independent cores between trees, results in order."""

from typing import ClassVar

from streamjoin.device.base import Device
from streamjoin.engines.base import Capabilities, Job, Knob
from streamjoin.engines.fpga.device import BACKENDS, CLOCK, OVERLAY
from streamjoin.engines.fpga.handshake import TIMESTAMP_BITS, Feed, FpgaHandshake, Words
from streamjoin.engines.fpga.keys import design_term
from streamjoin.engines.fpga.splitjoin_hash import OrderedFeed
from streamjoin.metrics import Meter
from streamjoin_common.contract import DesignParams
from streamjoin_common.language.windows import TimeWindow


class FpgaSplitJoin(FpgaHandshake):
    """SplitJoin's cores between trees, as a Verilated model or on a board."""

    name: ClassVar[str] = "fpga-splitjoin"
    capabilities: ClassVar[Capabilities] = Capabilities(
        predicates=frozenset({"equi", "band"}),
        windows=frozenset({"all", "tumbling", "count", "time"}),
        order="outer",
        platform="fpga",
        backends=BACKENDS,
        arrivals=frozenset({"instant"}),
    )
    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("cores", 16, "Join cores.", 1, 1024),
        Knob("segment", 64, "Tuples of each stream that one core holds.", 1, 65536),
        Knob("lanes", 4, "Stored tuples that one core compares in one cycle.", 1, 64),
        Knob("probes", 4, "Arriving tuples compared in one pass over the window.", 1, 16),
        CLOCK,
        OVERLAY,
    )

    def _feed(
        self, job: Job, device: Device, keys: list[tuple[Words, Words]], meter: Meter
    ) -> Feed:
        return OrderedFeed(device, keys, job, meter)

    def _params(self, job: Job) -> DesignParams:
        segment = int(job.knobs["segment"])
        return DesignParams(
            design="splitjoin",
            cores=int(job.knobs["cores"]),
            segment_tuples=segment,
            lanes=min(int(job.knobs["lanes"]), segment),
            probes=int(job.knobs["probes"]),
            order="outer",
            terms=tuple(design_term(term, job) for term in job.predicate.terms),
            timestamp_bits=TIMESTAMP_BITS if isinstance(job.window, TimeWindow) else 0,
        )
