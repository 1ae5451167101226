"""A design as a Verilated model: a shared library driven in bulk, cycle for cycle.

The builder under the entry-point group ``streamjoin.models`` (the ``hw`` extra) builds the library
or takes it from the cache; this module knows only its C interface.
"""

import ctypes
import functools
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import numpy as np

from streamjoin.device.base import (
    Beats,
    Bytes,
    Cycles,
    Device,
    Results,
    StreamOutcome,
    describe,
    result_rows,
)
from streamjoin.errors import DeadlineError, DeviceError, UnavailableError
from streamjoin_common.contract import (
    LIBRARY_NAME,
    DesignParams,
    RunState,
    SjmRun,
    beat_bits,
    load_model_library,
    result_beat_layout,
    tuple_layout,
)
from streamjoin_common.installed.checks import not_installed

RESULTS_AT_ONCE = 1 << 16
CYCLES_AT_ONCE = 200_000
"""Maximum cycles of one call into the library; progress is reported in between."""


Report = Callable[[str], None]


@functools.cache
def _builders() -> tuple[EntryPoint, ...]:
    """Return the builders that are installed: a look at every package, milliseconds."""
    return tuple(entry_points(group="streamjoin.models"))


def unusable() -> str | None:
    """Return why no model can be used here, or None."""
    if _builders():
        return None
    return not_installed("amaranth", needed_by="the backend model")


def build(params: DesignParams, report: Report) -> Path:
    """Return the folder of a design's model, built if it is not in the cache.

    Raises
    ------
    UnavailableError
        If no model builder is installed.
    """
    reason = unusable()
    if reason is not None:
        raise UnavailableError(reason)
    (builder,) = _builders()
    folder: Path = builder.load()(params, report=report)
    return folder


class ModelDevice(Device):
    """A Verilated model in this process.

    Parameters
    ----------
    params : DesignParams
        The design.
    folder : Path
        What :func:`build` returned.
    clock_hz : float
        Clock to assume: a model has none of its own.
    seed, idle_per_1024, stall_per_1024 : int
        Random gaps at the input and refusals at the output, for tests.

    Raises
    ------
    DeviceError
        If the library cannot be loaded or holds another design.
    """

    def __init__(
        self,
        params: DesignParams,
        folder: Path,
        *,
        clock_hz: float = 100e6,
        seed: int = 0,
        idle_per_1024: int = 0,
        stall_per_1024: int = 0,
    ) -> None:
        super().__init__(params)
        self._clock_hz = clock_hz
        self._stalls = (seed, idle_per_1024, stall_per_1024)
        self._library = _load(folder / LIBRARY_NAME)
        self._handle: Any = self._library.sjm_open()
        if not self._handle:
            raise DeviceError(f"{folder}: the model does not start")
        self.check_identity()

    @property
    def clock_hz(self) -> float:
        """The assumed clock in Hz."""
        return self._clock_hz

    @property
    def clock_source(self) -> str:
        """Says that the clock is an assumption."""
        return "assumed; simulated, not measured"

    def close(self) -> None:
        """Free the model."""
        if self._handle:
            self._library.sjm_close(self._handle)
            self._handle = None

    def _read(self, offset: int) -> int:
        value = ctypes.c_uint32()
        if self._library.sjm_read(self._handle, offset, ctypes.byref(value)):
            raise DeviceError(f"reading register {offset:#x} failed")
        return value.value

    def _write(self, offset: int, value: int) -> None:
        if self._library.sjm_write(self._handle, offset, value):
            raise DeviceError(f"writing register {offset:#x} failed")

    def _drop_offer(self) -> None:
        self._library.sjm_drop(self._handle)

    def stream(
        self, beats: Beats, on_results: Callable[[Results], None], on_taken: Callable[[int], None]
    ) -> StreamOutcome:
        """Send one whole input through the model; see :meth:`Device.stream`.

        Whatever ends it early, the design is emptied: the next input starts afresh. Windows and
        band widths keep their values, the counters begin anew.
        """
        beat_count = len(beats.dest)
        if beat_count == 0:
            return StreamOutcome(np.empty(0, dtype=np.int64), 0)
        data = np.ascontiguousarray(beats.data)
        dest = np.ascontiguousarray(beats.dest)
        if data.shape != (beat_count, beat_bits(tuple_layout(self.params)) // 8):
            raise DeviceError(f"beats of shape {data.shape} do not fit the design's tuples")
        try:
            return self._run(data, dest, beats.arrival_cycles, on_results, on_taken)
        except BaseException:
            # The first error is the one to report; a lost device fails again when used.
            with suppress(DeviceError, DeadlineError):
                self.restart()
            raise

    def _run(
        self,
        data: Bytes,
        dest: Bytes,
        due: Cycles | None,
        on_results: Callable[[Results], None],
        on_taken: Callable[[int], None],
    ) -> StreamOutcome:
        """Call the library until the input has drained."""
        beat_count = len(dest)
        accepted = np.zeros(beat_count, dtype=np.int64)
        seed, idle, stall = self._stalls
        began = int(self._library.sjm_cycles(self._handle))
        taken, quiet, resume = 0, 0, 0
        limit = self._quiet_limit_cycles
        if due is not None:  # between two arrivals nothing happens
            limit += int(np.diff(due, prepend=0).max())
        while True:
            results = np.empty(
                (RESULTS_AT_ONCE, beat_bits(result_beat_layout(self.params)) // 8),
                dtype=np.uint8,
            )
            users = np.empty(RESULTS_AT_ONCE, dtype=np.uint8)
            stamps = np.empty(RESULTS_AT_ONCE, dtype=np.int64)
            run = SjmRun(
                beats=data.ctypes.data,
                dest=dest.ctypes.data,
                not_before=None if due is None else due.ctypes.data,
                accepted=accepted.ctypes.data,
                beat_count=beat_count,
                last=1,
                resume=resume,
                results=results.ctypes.data,
                users=users.ctypes.data,
                stamps=stamps.ctypes.data,
                capacity=RESULTS_AT_ONCE,
                max_cycles=CYCLES_AT_ONCE,
                seed=seed + began + taken,
                idle_per_1024=idle,
                stall_per_1024=stall,
                beats_taken=taken,
            )
            state = self._library.sjm_run(self._handle, ctypes.byref(run))
            count = int(run.results_taken)
            rows, beats = result_rows(self.params, results[:count], users[:count])
            if len(beats):
                on_results(Results(rows, stamps[:count][beats] - began))
            on_taken(int(run.beats_taken))
            if state == RunState.ENDED:
                cycles = int(self._library.sjm_cycles(self._handle)) - began
                return StreamOutcome(accepted - began, cycles)
            if state not in {RunState.RESULTS_FULL, RunState.CYCLES_OVER}:
                raise DeviceError(f"the model stopped in state {state}")
            resume = 1
            progressed = count > 0 or run.beats_taken > taken
            quiet = 0 if progressed else quiet + int(run.cycles)
            taken = int(run.beats_taken)
            if quiet > limit:
                raise DeadlineError(
                    f"the design took no tuple and gave no result for {quiet} cycles: "
                    f"{describe(self.status())}"
                )

    @property
    def _quiet_limit_cycles(self) -> int:
        """Cycles after which silence is a fault: twice a whole drain, at least a million."""
        slowed = 1024 // (1024 - min(self._stalls[1], 1023)) + 1
        return max(1_000_000, 2 * self.drain_cycles) * slowed


def _load(path: Path) -> Any:
    try:
        return load_model_library(path)
    except OSError as error:
        raise DeviceError(f"{path}: the model cannot be loaded: {error}") from None
