"""SplitJoin on an ordered index in block RAM: bands are looked up, results are in order."""

from dataclasses import replace
from typing import ClassVar

from streamjoin.device.base import Device
from streamjoin.engines.base import Capabilities, Knob
from streamjoin.engines.fpga.base import FpgaEngine
from streamjoin.engines.fpga.device import CLOCK, KINDS, OVERLAY, SELF_TEST
from streamjoin.engines.fpga.keys import Uint32s
from streamjoin.engines.job import Job
from streamjoin_common.contract import (
    DesignParams,
    Term,
    bucket_writes,
    buckets_of,
    order_codes,
)
from streamjoin_common.language.windows import CountWindow

SAMPLE_TUPLES = 1 << 17
"""Maximum tuples of a stream from which its buckets are computed."""


class FpgaSplitJoinIndex(FpgaEngine):
    """Ordered index in block RAM that reads a few buckets, as a Verilated model or on a board."""

    name: ClassVar[str] = "fpga-splitjoin-index"
    capabilities: ClassVar[Capabilities] = replace(FpgaEngine.capabilities, order="inner")
    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("segment_tuples", 8192, "Tuples of each stream that the design holds.", 1, 65536),
        Knob("lanes", 16, "Stored tuples compared in one cycle, a multiple of ways.", 2, 64),
        Knob("buckets", 2048, "Buckets of each stream, a power of two.", 4, 65536),
        Knob("ways", 2, "Buckets read in one cycle: 2, 4 or 8.", 2, 8),
        KINDS,
        CLOCK,
        OVERLAY,
        SELF_TEST,
    )
    capacity_knobs: ClassVar[str] = "the knobs segment_tuples and buckets"

    def wanted(self, job: Job, terms: tuple[Term, ...], timestamp_bits: int) -> DesignParams:
        """Return an index of the knobs' size, which puts an arrival's results in order if asked."""
        is_inner = job.order == "inner"
        return DesignParams(
            design="splitjoin-index",
            cores=1,
            segment_tuples=int(job.knobs["segment_tuples"]),
            lanes=int(job.knobs["lanes"]),
            terms=terms,
            timestamp_bits=timestamp_bits,
            buckets=int(job.knobs["buckets"]),
            ways=int(job.knobs["ways"]),
            order="inner" if is_inner else "none",
            kinds="all" if is_inner else "inner",
        )

    def promise(self, job: Job) -> str:
        """Promise the order by earlier tuples only where it was asked for: it takes a sorter."""
        return "inner" if job.order == "inner" else "outer"

    def program(self, device: Device, job: Job, keys: list[tuple[Uint32s, Uint32s]]) -> None:
        """Divide the words of each stream's index evenly among the tuples of its windows."""
        params = device.params
        windows = [min(len(column), params.window_capacity) for column in keys[0]]
        if isinstance(job.window, CountWindow):
            windows = [job.window.r_tuples, job.window.s_tuples]
        term = params.indexed_term
        assert term is not None  # as the design's parameters were checked
        for side, column in enumerate(keys[term]):
            sample = column[:: max(1, -(-len(column) // SAMPLE_TUPLES))]
            codes = order_codes(sample.tolist(), params.terms[term].type)
            buckets = buckets_of(params, codes, max(1, windows[side]), len(column))
            for name, value in bucket_writes(side, buckets):
                device.write(name, value)
