"""SplitJoin in hardware: independent cores between trees, results in order."""

from dataclasses import replace
from typing import ClassVar

from streamjoin.engines.base import Capabilities, Knob
from streamjoin.engines.fpga.base import FpgaEngine
from streamjoin.engines.fpga.device import CLOCK, KINDS, OVERLAY
from streamjoin.engines.job import Job
from streamjoin_common.contract import CHOICES, DesignParams, Term


class FpgaSplitJoin(FpgaEngine):
    """SplitJoin's cores between trees, as a Verilated model or on a board."""

    name: ClassVar[str] = "fpga-splitjoin"
    capabilities: ClassVar[Capabilities] = replace(FpgaEngine.capabilities, order="outer")
    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("cores", 16, "Join cores.", 1, 1024),
        Knob("segment", 64, "Tuples of each stream that one core holds.", 1, 65536),
        Knob("lanes", 4, "Stored tuples that one core compares in one cycle.", 1, 64),
        Knob("probes", 4, "Arriving tuples compared in one pass over the window.", 1, 16),
        Knob(
            "comparators",
            "own",
            "Comparators of each half of a core, or shared by both (equality, count windows).",
            choices=CHOICES["comparators"],
        ),
        KINDS,
        CLOCK,
        OVERLAY,
    )

    def wanted(self, job: Job, terms: tuple[Term, ...], timestamp_bits: int) -> DesignParams:
        """Return trees and cores of the knobs' size."""
        segment = int(job.knobs["segment"])
        return DesignParams(
            design="splitjoin",
            cores=int(job.knobs["cores"]),
            segment_tuples=segment,
            lanes=min(int(job.knobs["lanes"]), segment),
            probes=int(job.knobs["probes"]),
            comparators=str(job.knobs["comparators"]),
            order="outer",
            terms=terms,
            timestamp_bits=timestamp_bits,
        )
