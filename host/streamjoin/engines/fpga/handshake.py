"""Engines that run a hardware design: the same interface, the result from the device.

Count and time windows are set in the design's registers. A time window holds as many tuples as the
design has room for; one that is pushed out before its time is an error. ``all`` and ``tumbling``
windows are tiled: a block of the smaller stream is held in the array while all of the other
streams past, so that each pair meets once whatever the inputs' size.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from streamjoin.device.base import Beats, Device, Results
from streamjoin.device.packing import pack, unpack
from streamjoin.engines.arrivals import tumbling_slices
from streamjoin.engines.base import Capabilities, Engine, Job, Knob, Report
from streamjoin.engines.fpga import device as fpga_device
from streamjoin.engines.fpga.device import BACKENDS, CLOCK, OVERLAY
from streamjoin.engines.fpga.keys import design_term, program_bands, term_keys
from streamjoin.errors import EngineError, UnsupportedError
from streamjoin.metrics import Meter
from streamjoin.tuples import arrival_positions
from streamjoin_common.contract import (
    FORWARDS,
    MAX_TERMS,
    SIDE_S,
    DesignParams,
    ParameterError,
    active_cores,
    result_layout,
    tuple_layout,
)
from streamjoin_common.language.windows import CountWindow, TimeWindow

if TYPE_CHECKING:
    from streamjoin.engines.encode import Missing

Words = NDArray[np.uint32]
Micros = NDArray[np.float64]

TIMESTAMP_BITS = 32
MOST_SPAN_US = (1 << TIMESTAMP_BITS) - 2
"""The highest timestamp is reserved."""


@dataclass(frozen=True)
class Input:
    """One input to the device: which rows, in which order, under which windows."""

    r_rows: NDArray[np.int64]
    s_rows: NDArray[np.int64]
    r_places: NDArray[np.int64]
    s_places: NDArray[np.int64]
    window_r: int
    window_s: int
    r_ts: NDArray[np.int64] | None = None
    s_ts: NDArray[np.int64] | None = None

    @property
    def tuples(self) -> int:
        """Tuples of both sides."""
        return len(self.r_rows) + len(self.s_rows)


class FpgaHandshake(Engine):
    """Handshake-join systolic array: a Verilated model, cycle for cycle, or a board."""

    name: ClassVar[str] = "fpga-handshake"
    capabilities: ClassVar[Capabilities] = Capabilities(
        predicates=frozenset({"equi", "band"}),
        windows=frozenset({"all", "tumbling", "count", "time"}),
        order="none",
        platform="fpga",
        backends=BACKENDS,
        arrivals=frozenset({"instant"}),
    )
    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("cores", 16, "Join cores of the chain.", 1, 1024),
        Knob("segment", 64, "Tuples of each stream that one core holds.", 1, 65536),
        Knob("lanes", 8, "Stored tuples that one core compares in one cycle.", 1, 64),
        Knob(
            "forward",
            "step",
            "step walks tuples through the chain, fast forwards them at once (low latency).",
            choices=FORWARDS,
        ),
        CLOCK,
        OVERLAY,
    )
    room: ClassVar[str] = "the knobs cores or segment"
    """What to raise where a window is too large."""

    def unusable(self) -> str | None:
        """Say so where no model can be built and no board is there."""
        return fpga_device.unusable()

    def check(self, job: Job) -> None:
        """Refuse also columns and windows that the design cannot hold."""
        super().check(job)
        fpga_device.check_backend(job)
        if len(job.predicate.terms) > MAX_TERMS:
            raise UnsupportedError(
                f"{self.name} takes at most {MAX_TERMS} terms, not {len(job.predicate.terms)}"
            )
        try:
            params = self._design(job)
        except ParameterError as error:
            raise UnsupportedError(f"{self.name}: {error}") from None
        if isinstance(job.window, CountWindow):
            most = max(job.window.r_tuples, job.window.s_tuples)
            if most > params.window_capacity:
                raise UnsupportedError(
                    f"{self.name}: window {job.window.text} needs {most} tuples of a stream and "
                    f"the design holds {params.window_capacity}: raise {self.room}"
                )
            try:
                active_cores(params, job.window.r_tuples, job.window.s_tuples)
            except ParameterError as error:
                raise UnsupportedError(
                    f"{self.name}: window {job.window.text} is too uneven: {error}"
                ) from None

        if isinstance(job.window, TimeWindow) and job.end_us - job.start_us > MOST_SPAN_US:
            raise UnsupportedError(
                f"{self.name}: the input spans {(job.end_us - job.start_us) / 1e6:.0f} s and the "
                f"design's {TIMESTAMP_BITS}-bit timestamps {MOST_SPAN_US / 1e6:.0f} s: join a part "
                "of it at a time"
            )

    def prepare(self, job: Job, report: Report) -> None:
        """Build the design's model, or find it in the cache."""
        fpga_device.prepare(job, self._design(job), report)

    def run(self, job: Job, prepared: None, meter: Meter) -> None:
        """Stream the inputs through the device, one after the other."""
        params = self._design(job)
        with meter.phase("partition"):
            keys = [term_keys(term, job) for term in job.predicate.terms]
        with fpga_device.opened(job, params) as device:
            program_bands(device, job.predicate.terms)
            if isinstance(job.window, TimeWindow):
                for side, length_us in (("r", job.window.r_us), ("s", job.window.s_us)):
                    device.write(f"time_{side}", min(length_us, (1 << TIMESTAMP_BITS) - 1))
            feed = self._feed(job, device, keys, meter)
            feed.run(list(_inputs(job, params)))
            if isinstance(job.window, TimeWindow) and (evicted := device.read("evicted")):
                raise EngineError(
                    f"{self.name}: {evicted} tuples were pushed out of windows of "
                    f"{params.window_capacity} tuples before their time, so pairs may be missing: "
                    f"raise {self.room}"
                )
            meter.device.update(
                cycles=feed.cycles,
                clock_hz=device.clock_hz,
                clock_source=device.clock_source,
                results_backpressure_cycles=device.read("results_backpressure_cycles"),
                input_stall_cycles=device.read("input_stall_cycles"),
                design=params.digest,
            )

    def _feed(
        self, job: Job, device: Device, keys: list[tuple[Words, Words]], meter: Meter
    ) -> "Feed":
        """Make what streams the inputs and emits the results."""
        return Feed(device, keys, (job.r.missing, job.s.missing), meter)

    def _design(self, job: Job) -> DesignParams:
        """Return the design that the job runs on."""
        return fpga_device.design(self.name, job, self._params(job))

    def _params(self, job: Job) -> DesignParams:
        terms = tuple(design_term(term, job) for term in job.predicate.terms)
        segment = int(job.knobs["segment"])
        return DesignParams(
            cores=int(job.knobs["cores"]),
            segment_tuples=segment,
            lanes=min(int(job.knobs["lanes"]), segment),
            terms=terms,
            forward=str(job.knobs["forward"]),
            timestamp_bits=TIMESTAMP_BITS if isinstance(job.window, TimeWindow) else 0,
        )


class Feed:
    """Streams one input after the other and emits what comes back, on one clock of cycles."""

    def __init__(
        self,
        device: Device,
        keys: list[tuple[Words, Words]],
        missing: tuple["Missing", "Missing"],
        meter: Meter,
    ) -> None:
        self.cycles = 0
        self._device, self._keys, self._meter = device, keys, meter
        self._missing = missing
        meter.latency_from = "acceptance"

    def run(self, inputs: list[Input]) -> None:
        """Stream every input and emit its results."""
        total = sum(each.tuples for each in inputs)
        done = 0
        for each in inputs:
            self._stream(each, partial(self._progress, done, total))
            done += each.tuples

    def _progress(self, done: int, total: int, taken: int) -> None:
        self._meter.progress(done + taken, total)

    def _stream(self, each: Input, on_taken: Callable[[int], None]) -> None:
        device, meter = self._device, self._meter
        with meter.phase("build_or_sort"):
            device.write("window_r", each.window_r)
            device.write("window_s", each.window_s)
            beats = _beats(device.params, each, self._keys)
        found: list[Results] = []
        with meter.phase("probe"):
            outcome = device.stream(beats, found.append, on_taken)
        place_of_r = _Places(each.r_rows, each.r_places)
        place_of_s = _Places(each.s_rows, each.s_places)
        per_us = device.clock_hz / 1e6
        for results in found:
            fields = unpack(result_layout(device.params), results.data)
            r_rows, s_rows = fields["r_payload"], fields["s_payload"]
            later = np.maximum(place_of_r(r_rows), place_of_s(s_rows))
            produced_us = (self.cycles + results.cycles) / per_us
            latency_us = (results.cycles - outcome.accepted_cycles[later]) / per_us
            valid = self._valid(r_rows, s_rows)
            self.emit(r_rows[valid], s_rows[valid], produced_us[valid], latency_us[valid])
        self.cycles += outcome.cycles

    def emit(self, r_rows: Words, s_rows: Words, produced_us: Micros, latency_us: Micros) -> None:
        """Pass results on as they come from the device."""
        self._meter.emit(r_rows, s_rows, produced_us, latency_us)

    def _valid(self, r_rows: Words, s_rows: Words) -> Any:
        """Leave out what lacks a value: a design compares whatever bits stand for it."""
        r_missing, s_missing = self._missing
        valid: Any = slice(None)
        if r_missing is not None:
            valid = ~r_missing[r_rows]
        if s_missing is not None:
            valid = ~s_missing[s_rows] & (True if isinstance(valid, slice) else valid)
        return valid


class _Places:
    """Looks up at which place of the input a row was sent; rows are consecutive."""

    def __init__(self, rows: NDArray[np.int64], places: NDArray[np.int64]) -> None:
        self._first = int(rows[0]) if len(rows) else 0
        self._places = places

    def __call__(self, rows: Words) -> NDArray[np.int64]:
        return np.asarray(self._places[rows.astype(np.int64) - self._first])


def _inputs(job: Job, params: DesignParams) -> Iterator[Input]:
    if isinstance(job.window, CountWindow | TimeWindow):
        r_places, s_places = arrival_positions(job.r.ts, job.s.ts)
        rows = (np.arange(job.r.rows), np.arange(job.s.rows))
        if isinstance(job.window, CountWindow):
            windows = (job.window.r_tuples, job.window.s_tuples)
            yield Input(*rows, r_places, s_places, *windows)
        else:
            windows = (params.window_capacity, params.window_capacity)
            times = (job.r.ts - job.start_us, job.s.ts - job.start_us)
            yield Input(*rows, r_places, s_places, *windows, *times)
        return
    for _, r_rows, s_rows in tumbling_slices(job):
        yield from _tiles(
            np.arange(r_rows.start, r_rows.stop), np.arange(s_rows.start, s_rows.stop), params
        )


def _tiles(
    r_rows: NDArray[np.int64], s_rows: NDArray[np.int64], params: DesignParams
) -> Iterator[Input]:
    """Hold blocks of the smaller side while all of the other streams past.

    The streaming side's window is one tuple a core: nothing arrives after it that it could owe.
    """
    hold_s = len(s_rows) < len(r_rows)
    held, past = (s_rows, r_rows) if hold_s else (r_rows, s_rows)
    if not len(past):
        return
    for first in range(0, len(held), params.window_capacity):
        block = held[first : first + params.window_capacity]
        block_places = np.arange(len(block))
        past_places = len(block) + np.arange(len(past))
        narrow = min(params.cores, len(block))
        if hold_s:
            yield Input(past, block, past_places, block_places, narrow, len(block))
        else:
            yield Input(block, past, block_places, past_places, len(block), narrow)


def _beats(params: DesignParams, each: Input, keys: list[tuple[Words, Words]]) -> Beats:
    layout = tuple_layout(params)
    total = each.tuples
    columns: dict[str, Words] = {}
    for place, (r_keys, s_keys) in enumerate(keys):
        column = np.empty(total, dtype=np.uint32)
        column[each.r_places], column[each.s_places] = r_keys[each.r_rows], s_keys[each.s_rows]
        columns[f"key{place}"] = column
    if each.r_ts is not None and each.s_ts is not None:
        ts = np.empty(total, dtype=np.uint32)
        ts[each.r_places], ts[each.s_places] = each.r_ts[each.r_rows], each.s_ts[each.s_rows]
        columns["ts"] = ts
    payload = np.empty(total, dtype=np.uint32)
    payload[each.r_places], payload[each.s_places] = each.r_rows, each.s_rows
    dest = np.zeros(total, dtype=np.uint8)
    dest[each.s_places] = SIDE_S
    return Beats(pack(layout, {**columns, "payload": payload}, total), dest)
