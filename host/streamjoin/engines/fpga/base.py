"""The shared part of engines that run a hardware design: checks, preparation, the run.

A subclass names its design. A time window holds as many tuples as the design has room for; a tuple
that is evicted before its time is an error.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from streamjoin.device.base import Device
from streamjoin.engines.base import Capabilities, Engine, Report
from streamjoin.engines.fpga import device as fpga_device
from streamjoin.engines.fpga.device import BACKENDS
from streamjoin.engines.fpga.feed import Feed, OrderedFeed
from streamjoin.engines.fpga.keys import Uint32s, design_term, program_bands, term_keys
from streamjoin.engines.fpga.tiles import inputs_of, is_tiled
from streamjoin.engines.job import Job
from streamjoin.engines.kinds import Alone
from streamjoin.errors import EngineError, UnsupportedError
from streamjoin.metrics import Meter
from streamjoin_common.contract import (
    JOIN_KINDS,
    MAX_TERMS,
    DesignParams,
    ParameterError,
    Term,
    active_cores,
)
from streamjoin_common.language.windows import CountWindow, TimeWindow
from streamjoin_common.spelling import knob, option

TIMESTAMP_BITS = 32
MAX_TIMESTAMP_US = (1 << TIMESTAMP_BITS) - 1
MAX_SPAN_US = MAX_TIMESTAMP_US - 1
"""Maximum time between the first and the last arrival in microseconds; the highest timestamp is
reserved."""

MAX_REPLAY_CYCLES = 1_000_000_000
"""Maximum cycles of a replay: a model simulates some 100,000 a second."""


@dataclass(frozen=True)
class PreparedDesign:
    """The design that a job runs on, and where it is.

    Attributes
    ----------
    params : DesignParams
        The design.
    path : Path
        The model's folder, or the overlay's bitstream.
    """

    params: DesignParams
    path: Path


class FpgaEngine(Engine):
    """A join in a hardware design: a Verilated model, cycle for cycle, or a board."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        predicates=frozenset({"equi", "band"}),
        windows=frozenset({"all", "tumbling", "count", "time"}),
        order="none",
        platform="fpga",
        backends=BACKENDS,
    )
    capacity_knobs: ClassVar[str] = "the knobs cores or segment_tuples"
    """Knobs to raise if a window is too large."""

    @abstractmethod
    def wanted(self, job: Job, terms: tuple[Term, ...], timestamp_bits: int) -> DesignParams:
        """Return the design that the job's knobs ask for."""

    def unusable(self) -> str | None:
        """Say so where no model can be built and no board is there."""
        return fpga_device.unusable()

    def check(self, job: Job) -> None:
        """Refuse also columns and windows that the design cannot hold."""
        super().check(job)
        fpga_device.check_backend(job)
        if job.arrival == "replay":
            self._check_replay(job)
        if len(job.predicate.terms) > MAX_TERMS:
            raise UnsupportedError(
                f"{self.name} takes at most {MAX_TERMS} terms, not {len(job.predicate.terms)}"
            )
        try:
            params = self._design(job)
        except ParameterError as error:
            raise UnsupportedError(f"{self.name}: {error}") from None
        if isinstance(job.window, CountWindow):
            self._check_count_window(job.window, params)
        if isinstance(job.window, TimeWindow) and job.end_us - job.start_us > MAX_SPAN_US:
            raise UnsupportedError(
                f"{self.name}: the input spans {job.end_us - job.start_us:,} us and the "
                f"design's {TIMESTAMP_BITS}-bit timestamps {MAX_SPAN_US:,} us: join a part "
                "of it at a time"
            )

    def _check_replay(self, job: Job) -> None:
        if job.backend == fpga_device.PYNQ:
            raise UnsupportedError(
                f"{self.name} replays arrival times on the model alone: a board takes tuples as "
                f"fast as they reach it: drop {option('backend', job.backend)} or "
                f"{option('arrival', 'replay')}"
            )
        if is_tiled(job):
            raise UnsupportedError(
                f"{self.name} replays arrival times under count and time windows, not under "
                f"{job.window.text}, for which one stream is held while the other passes"
            )
        cycles = (job.end_us - job.start_us) / job.speedup * int(job.knobs["clock_mhz"])
        if cycles > MAX_REPLAY_CYCLES:
            raise UnsupportedError(
                f"{self.name}: the replay lasts {cycles:,.0f} cycles and a model simulates at most "
                f"{MAX_REPLAY_CYCLES:,}: raise the speedup to "
                f"{math.ceil(job.speedup * cycles / MAX_REPLAY_CYCLES)} or lower the knob clock_mhz"
            )

    def _check_count_window(self, window: CountWindow, params: DesignParams) -> None:
        wider = max(window.r_tuples, window.s_tuples)
        if wider > params.window_capacity:
            raise UnsupportedError(
                f"{self.name}: window {window.text} needs {wider} tuples of a stream and "
                f"the design holds {params.window_capacity}: raise {self.capacity_knobs}"
            )
        try:
            active_cores(params, window.r_tuples, window.s_tuples)
        except ParameterError as error:
            raise UnsupportedError(
                f"{self.name}: window {window.text} is too uneven: {error}"
            ) from None

    def prepare(self, job: Job, report: Report) -> PreparedDesign:
        """Build the design's model or take it from the cache; a board only needs its overlay."""
        params = self._design(job)
        return PreparedDesign(params, fpga_device.path_of(job, params, report))

    def run(self, job: Job, prepared: PreparedDesign, meter: Meter) -> Alone | None:
        """Stream the inputs through the device; return tuples without partner if it finds them."""
        params = prepared.params
        with meter.phase("partition"):
            keys = [term_keys(term, job) for term in job.predicate.terms]
        with fpga_device.opened(job, params, prepared.path) as device:
            program_bands(device, job.predicate.terms)
            self.program(device, job, keys)
            if isinstance(job.window, TimeWindow):
                for side, length_us in (("r", job.window.r_us), ("s", job.window.s_us)):
                    device.write(f"time_{side}", min(length_us, MAX_TIMESTAMP_US))
            decides = self._decides_kind(job)
            if params.decides_kinds:
                device.write("kind", JOIN_KINDS.index(job.how) if decides else 0)
            if self.capabilities.order == "none":
                feed = Feed(device, keys, job, meter)
            else:
                is_inner = self.promise(job) == "inner"
                feed = OrderedFeed(device, keys, job, meter, is_inner=is_inner)
            feed.run(list(inputs_of(job, params)))
            if isinstance(job.window, TimeWindow):
                self._check_evicted(device)
            meter.device.update(_figures(device, feed))
            return feed.alone if decides else None

    def program(self, device: Device, job: Job, keys: list[tuple[Uint32s, Uint32s]]) -> None:
        """Set what the design needs beside widths and windows, from the keys of each term."""

    def _check_evicted(self, device: Device) -> None:
        """Refuse a result that lacks pairs of tuples that left their window too early."""
        if evicted := device.read("evicted"):
            raise EngineError(
                f"{self.name}: {evicted} tuples were pushed out of windows of "
                f"{device.params.window_capacity} tuples before their time, so pairs may be "
                f"missing: raise {self.capacity_knobs}"
            )

    def _design(self, job: Job) -> DesignParams:
        """Return the design that the job runs on."""
        terms = tuple(design_term(term, job) for term in job.predicate.terms)
        timestamp_bits = TIMESTAMP_BITS if isinstance(job.window, TimeWindow) else 0
        wanted = self.wanted(job, terms, timestamp_bits)
        if self._decides_kind(job):
            if not wanted.stores_in_turn:
                raise UnsupportedError(
                    f"{self.name}: {knob('kinds', fpga_device.DEVICE)} needs "
                    f"{knob('forward', 'fast')}: cores that forward by step leave tuples without "
                    "partner to the host"
                )
            wanted = replace(wanted, kinds="all")
        return fpga_device.design(self.name, job, wanted)

    def _decides_kind(self, job: Job) -> bool:
        """Whether the design decides the kind of join, as the knob ``kinds`` asks for.

        It does not where a tuple's partners come in several inputs, nor where values are missing,
        which it compares like others. The first pair of a tuple, whose time a semi join gives,
        comes first only in an order.
        """
        if job.knobs["kinds"] != fpga_device.DEVICE or job.how == "inner" or is_tiled(job):
            return False
        if job.r.missing is not None or job.s.missing is not None:
            return False
        return job.how != "semi" or self.promise(job) != "none"


def _figures(device: Device, feed: Feed) -> dict[str, Any]:
    """Return what a run's metrics say of the device."""
    return {
        "cycles": feed.cycles,
        "clock_hz": device.clock_hz,
        "clock_source": device.clock_source,
        "results_backpressure_cycles": device.read("results_backpressure_cycles"),
        "input_stall_cycles": device.read("input_stall_cycles"),
        "design": device.params.digest,
    }
