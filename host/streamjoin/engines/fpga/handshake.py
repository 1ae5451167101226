"""Handshake join in hardware: a chain of cores through which both streams flow."""

from typing import ClassVar

from streamjoin.engines.base import Knob
from streamjoin.engines.fpga.base import FpgaEngine
from streamjoin.engines.fpga.device import CLOCK, KINDS, OVERLAY, SELF_TEST
from streamjoin.engines.job import Job
from streamjoin_common.contract import FORWARDS, DesignParams, Term


class FpgaHandshake(FpgaEngine):
    """Handshake-join systolic array: a Verilated model, cycle for cycle, or a board."""

    name: ClassVar[str] = "fpga-handshake"
    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("cores", 16, "Join cores of the chain.", 1, 1024),
        Knob("segment_tuples", 64, "Tuples of each stream that one core holds.", 1, 65536),
        Knob("lanes", 8, "Stored tuples that one core compares in one cycle.", 1, 64),
        Knob(
            "forward",
            "step",
            "step walks tuples through the chain, fast forwards them at once (low latency).",
            choices=FORWARDS,
        ),
        KINDS,
        CLOCK,
        OVERLAY,
        SELF_TEST,
    )

    def wanted(self, job: Job, terms: tuple[Term, ...], timestamp_bits: int) -> DesignParams:
        """Return a chain of the knobs' size."""
        segment = int(job.knobs["segment_tuples"])
        return DesignParams(
            cores=int(job.knobs["cores"]),
            segment_tuples=segment,
            lanes=min(int(job.knobs["lanes"]), segment),
            terms=terms,
            forward=str(job.knobs["forward"]),
            timestamp_bits=timestamp_bits,
        )
