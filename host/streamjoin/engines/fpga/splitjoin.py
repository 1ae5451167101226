"""SplitJoin in hardware: independent cores between trees, results in order."""

from dataclasses import replace
from typing import ClassVar

from streamjoin.device.base import Device
from streamjoin.engines.base import Capabilities, Knob
from streamjoin.engines.fpga.base import FpgaEngine
from streamjoin.engines.fpga.device import CLOCK, KINDS, OVERLAY, SELF_TEST
from streamjoin.engines.fpga.keys import Uint32s
from streamjoin.engines.job import Job
from streamjoin.errors import InputError
from streamjoin_common.contract import CHOICES, DesignParams, Term


class FpgaSplitJoin(FpgaEngine):
    """SplitJoin's cores between trees, as a Verilated model or on a board."""

    name: ClassVar[str] = "fpga-splitjoin"
    capabilities: ClassVar[Capabilities] = replace(FpgaEngine.capabilities, order="outer")
    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("cores", 16, "Join cores.", 1, 1024),
        Knob("segment_tuples", 64, "Tuples of each stream that one core holds.", 1, 65536),
        Knob("lanes", 4, "Stored tuples that one core compares in one cycle.", 1, 64),
        Knob("probes", 4, "Arriving tuples compared in one pass over the window.", 1, 16),
        Knob(
            "comparators",
            "own",
            "Comparators of each half of a core, or shared by both (count windows).",
            choices=CHOICES["comparators"],
        ),
        Knob(
            "group",
            1,
            "Arrivals whose results are in no order among each other; 0: all; outer order needs 1.",
            0,
            1 << 31,
        ),
        KINDS,
        CLOCK,
        OVERLAY,
        SELF_TEST,
    )

    def wanted(self, job: Job, terms: tuple[Term, ...], timestamp_bits: int) -> DesignParams:
        """Return trees and cores of the knobs' size."""
        segment = int(job.knobs["segment_tuples"])
        return DesignParams(
            design="splitjoin",
            cores=int(job.knobs["cores"]),
            segment_tuples=segment,
            lanes=min(int(job.knobs["lanes"]), segment),
            probes=int(job.knobs["probes"]),
            comparators=str(job.knobs["comparators"]),
            order="outer",
            stars="each" if self._group(job) == 1 else "grouped",
            terms=terms,
            timestamp_bits=timestamp_bits,
        )

    def check(self, job: Job) -> None:
        """Refuse groups that break the order asked for."""
        super().check(job)
        if job.order == "outer" and self._group(job) != 1:
            raise InputError(f"order outer needs knob group 1, not {self._group(job)}")

    def promise(self, job: Job) -> str:
        """Promise no order of single arrivals where they are grouped."""
        return super().promise(job) if self._group(job) == 1 else "none"

    def program(self, device: Device, job: Job, keys: list[tuple[Uint32s, Uint32s]]) -> None:
        """Set how many arrivals a group has."""
        if device.params.has_groups:
            device.write("group_arrivals", self._group(job))

    @staticmethod
    def _group(job: Job) -> int:
        """Return how many arrivals a group has, 0 for all."""
        return int(job.knobs["group"])
