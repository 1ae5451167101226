"""Streams a job's inputs through a device and emits its results, on one clock of cycles."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.device.base import Beats, Device, Results
from streamjoin.device.packing import pack, unpack
from streamjoin.engines.fpga.keys import Uint32s
from streamjoin.engines.fpga.tiles import Input, is_tiled
from streamjoin.engines.job import Job
from streamjoin.engines.kinds import Alone
from streamjoin.errors import EngineError
from streamjoin.metrics import Meter, arrival_clock_us
from streamjoin.tuples import Int64s, arrival_positions
from streamjoin_common.contract import SIDE_S, DesignParams, result_layout, tuple_layout
from streamjoin_common.language.order import group_numbers

Micros = NDArray[np.float64]


class Feed:
    """Emits results in the order in which the device returns them.

    Parameters
    ----------
    device : Device
        Holds the design, its registers set for the job.
    keys : list of (ndarray of uint32, ndarray of uint32)
        Keys of R and of S for each term, by row.
    job : Job
        Says which rows lack a value.
    meter : Meter
        Takes results, phases and progress.

    Attributes
    ----------
    cycles : int
        Device cycles of all inputs so far.
    """

    def __init__(
        self, device: Device, keys: list[tuple[Uint32s, Uint32s]], job: Job, meter: Meter
    ) -> None:
        self.cycles = 0
        self._device, self._keys, self._meter = device, keys, meter
        self._missing = (job.r.missing, job.s.missing)
        self._job = job
        self._alone: tuple[list[Uint32s], list[Uint32s]] = ([], [])
        meter.latency_from = "arrival" if job.arrival == "replay" else "acceptance"

    def run(self, inputs: list[Input]) -> None:
        """Stream every input and emit its results."""
        total = sum(each.tuples for each in inputs)
        done = 0
        for each in inputs:
            self._stream(each, partial(self._progress, done, total))
            done += each.tuples

    @property
    def alone(self) -> Alone:
        """The rows that the device gave without a partner."""
        r_rows, s_rows = (
            np.sort(np.concatenate([np.empty(0, dtype=np.int64), *rows])) for rows in self._alone
        )
        return Alone(r_rows, s_rows)

    def _progress(self, done: int, total: int, taken: int) -> None:
        self._meter.progress(done + taken, total)

    def _stream(self, each: Input, on_taken: Callable[[int], None]) -> None:
        device, meter = self._device, self._meter
        with meter.phase("build_or_sort"):
            device.write("window_r", each.window_r)
            device.write("window_s", each.window_s)
            beats = _beats(device.params, each, self._keys)
            if self._job.arrival == "replay":
                beats = replace(beats, arrival_cycles=self._arrival_cycles(each))
        batches: list[Results] = []
        with meter.phase("probe"):
            outcome = device.stream(beats, batches.append, on_taken)
        r_beats = _BeatIndex(each.r_rows, each.r_beats)
        s_beats = _BeatIndex(each.s_rows, each.s_beats)
        per_us = device.clock_hz / 1e6
        begins = outcome.accepted_cycles if beats.arrival_cycles is None else beats.arrival_cycles
        for results in batches:
            fields = unpack(result_layout(device.params), results.data)
            r_rows, s_rows, cycles = fields["r_payload"], fields["s_payload"], results.cycles
            if device.params.decides_kinds:
                r_missing, s_missing = fields["r_missing"] != 0, fields["s_missing"] != 0
                self._alone[0].append(r_rows[s_missing])
                self._alone[1].append(s_rows[r_missing])
                met = ~(r_missing | s_missing)
                r_rows, s_rows, cycles = r_rows[met], s_rows[met], cycles[met]
            later = np.maximum(r_beats.of(r_rows), s_beats.of(s_rows))
            produced_us = (self.cycles + cycles) / per_us
            latency_us = (cycles - begins[later]) / per_us
            valid = self._valid(r_rows, s_rows)
            self._emit(r_rows[valid], s_rows[valid], produced_us[valid], latency_us[valid])
        self.cycles += outcome.cycles

    def _arrival_cycles(self, each: Input) -> Int64s:
        """Return the cycle in which each beat of an input arrives."""
        job, cycles = self._job, np.empty(each.tuples, dtype=np.int64)
        per_us = self._device.clock_hz / 1e6
        for beats, rows, ts in (
            (each.r_beats, each.r_rows, job.r.ts),
            (each.s_beats, each.s_rows, job.s.ts),
        ):
            due_us = arrival_clock_us(ts[rows], job.start_us, job.speedup)
            cycles[beats] = np.ceil(due_us * per_us)
        return cycles

    def _emit(
        self, r_rows: Uint32s, s_rows: Uint32s, produced_us: Micros, latency_us: Micros
    ) -> None:
        """Pass results on as the device returns them."""
        self._meter.emit(r_rows, s_rows, produced_us, latency_us)

    def _valid(self, r_rows: Uint32s, s_rows: Uint32s) -> Any:
        """Select the results whose tuples have all values: a design compares any bits."""
        r_missing, s_missing = self._missing
        valid: Any = slice(None)
        if r_missing is not None:
            valid = ~r_missing[r_rows]
        if s_missing is not None:
            valid = ~s_missing[s_rows] & (True if isinstance(valid, slice) else valid)
        return valid


class OrderedFeed(Feed):
    """Emits results grouped by the later tuple, in arrival order, or by groups of arrivals.

    The device must return results of one input in that order, and those of a later tuple by the
    earlier one if the order ``is_inner``. Where the input is cut into tiles, results of all tiles
    are sorted into it at the end.
    """

    def __init__(
        self,
        device: Device,
        keys: list[tuple[Uint32s, Uint32s]],
        job: Job,
        meter: Meter,
        *,
        is_inner: bool = False,
    ) -> None:
        super().__init__(device, keys, job, meter)
        self._positions = arrival_positions(job.r.ts, job.s.ts)
        self._is_tiled = is_tiled(job)
        self._group = int(job.knobs.get("group", 1))
        self._is_inner = is_inner
        self._of_tiles: list[tuple[Uint32s, Uint32s, Micros, Micros]] = []
        self._last = -1

    def run(self, inputs: list[Input]) -> None:
        """Stream every input and emit its results; those of tiles at the end."""
        super().run(inputs)
        if self._of_tiles:
            r_rows, s_rows, produced_us, latency_us = map(
                np.concatenate, zip(*self._of_tiles, strict=True)
            )
            order = np.argsort(self._ranks(r_rows, s_rows), kind="stable")
            self._meter.emit(r_rows[order], s_rows[order], produced_us[order], latency_us[order])

    def _emit(
        self, r_rows: Uint32s, s_rows: Uint32s, produced_us: Micros, latency_us: Micros
    ) -> None:
        """Check the order of results, or keep those of a tile until the end."""
        if self._is_tiled:
            self._of_tiles.append((r_rows, s_rows, produced_us, latency_us))
            return
        ranks = self._ranks(r_rows, s_rows)
        if not self._is_inner:
            ranks = group_numbers(ranks, self._group)
        ranks = np.concatenate([[self._last], ranks])
        if (np.diff(ranks) < 0).any():
            first = int(np.argmax(np.diff(ranks) < 0))
            pair = (int(r_rows[first]), int(s_rows[first]))
            raise EngineError(
                f"the device gave the result (r_row, s_row) = {pair} after "
                f"one that comes later in the order {'inner' if self._is_inner else 'outer'}: its "
                "order cannot be relied on"
            )
        self._last = int(ranks[-1])
        super()._emit(r_rows, s_rows, produced_us, latency_us)

    def _ranks(self, r_rows: Uint32s, s_rows: Uint32s) -> Int64s:
        """Return numbers by which results are sorted: when the later tuple arrived, or both."""
        r_positions, s_positions = self._positions[0][r_rows], self._positions[1][s_rows]
        later = np.maximum(r_positions, s_positions)
        if not self._is_inner:
            return later
        arrivals = len(self._positions[0]) + len(self._positions[1])
        return later * arrivals + np.minimum(r_positions, s_positions)


class _BeatIndex:
    """Looks up in which beat of the input a row was sent; rows are consecutive."""

    def __init__(self, rows: Int64s, beats: Int64s) -> None:
        self._first = int(rows[0]) if len(rows) else 0
        self._beats = beats

    def of(self, rows: Uint32s) -> Int64s:
        """Return the beat of each row."""
        return np.asarray(self._beats[rows.astype(np.int64) - self._first])


def _beats(params: DesignParams, each: Input, keys: list[tuple[Uint32s, Uint32s]]) -> Beats:
    """Pack an input's keys, timestamps and row numbers."""

    def merged(of_r: NDArray[Any], of_s: NDArray[Any]) -> Uint32s:
        column = np.empty(each.tuples, dtype=np.uint32)
        column[each.r_beats], column[each.s_beats] = of_r, of_s
        return column

    columns = {
        f"key{number}": merged(r_keys[each.r_rows], s_keys[each.s_rows])
        for number, (r_keys, s_keys) in enumerate(keys)
    }
    if each.ts is not None:
        r_ts, s_ts = each.ts
        columns["ts"] = merged(r_ts[each.r_rows], s_ts[each.s_rows])
    columns["payload"] = merged(each.r_rows, each.s_rows)
    dest = np.zeros(each.tuples, dtype=np.uint8)
    dest[each.s_beats] = SIDE_S
    return Beats(pack(tuple_layout(params), columns, each.tuples), dest)
