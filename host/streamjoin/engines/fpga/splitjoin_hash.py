"""SplitJoin on a hash index in block RAM: tuples are looked up, results are in order."""

from dataclasses import replace
from typing import ClassVar

from streamjoin.engines.base import Capabilities, Knob
from streamjoin.engines.fpga.base import FpgaEngine
from streamjoin.engines.fpga.device import CLOCK, KINDS, OVERLAY, SELF_TEST
from streamjoin.engines.job import Job
from streamjoin_common.contract import DesignParams, Term


class FpgaSplitJoinHash(FpgaEngine):
    """Hash index in block RAM, a tuple a clock, as a Verilated model or on a board."""

    name: ClassVar[str] = "fpga-splitjoin-hash"
    capabilities: ClassVar[Capabilities] = replace(
        FpgaEngine.capabilities, predicates=frozenset({"equi"}), order="outer"
    )
    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("segment_tuples", 16320, "Tuples of each stream that the design holds.", 1, 65536),
        Knob("lanes", 4, "Stored tuples read and compared in one cycle, a power of two.", 1, 64),
        Knob("buckets", 4096, "Hash buckets of each stream, a power of two.", 2, 65536),
        Knob("ways", 8, "Tuples that a bucket names itself; older ones are linked.", 2, 16),
        Knob(
            "lead_tuples",
            64,
            "Tuples accepted behind one that still looks, a power of two.",
            8,
            4096,
        ),
        Knob(
            "own_buckets",
            0,
            "Buckets of each stream for one frequent key each, a power of two; 0: none.",
            0,
            65536,
        ),
        Knob("beat_results", 1, "Results that the design gives in a cycle at most.", 1, 2),
        KINDS,
        CLOCK,
        OVERLAY,
        SELF_TEST,
    )
    capacity_knobs: ClassVar[str] = "the knob segment_tuples"

    def wanted(self, job: Job, terms: tuple[Term, ...], timestamp_bits: int) -> DesignParams:
        """Return an index of the knobs' size."""
        return DesignParams(
            design="splitjoin-hash",
            cores=1,
            segment_tuples=int(job.knobs["segment_tuples"]),
            lanes=int(job.knobs["lanes"]),
            terms=terms,
            timestamp_bits=timestamp_bits,
            buckets=int(job.knobs["buckets"]),
            ways=int(job.knobs["ways"]),
            lead_tuples=int(job.knobs["lead_tuples"]),
            own_buckets=int(job.knobs["own_buckets"]),
            beat_results=int(job.knobs["beat_results"]),
        )
