"""A Verilated model in this process: the C interface of ``model/driver.cpp`` from Python.

For tests and ``streamjoin hw simulate``, which work on tuples one by one; the host has a driver
of its own for whole columns.
"""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from streamjoin_hw import contract
from streamjoin_hw.contract import (
    LIBRARY_NAME,
    DesignParams,
    RunState,
    SjmRun,
    TUser,
    load_model_library,
)
from streamjoin_hw.testing import Arrival, Workload, beat_values


def packed(params: DesignParams, arrivals: Sequence[Arrival]) -> npt.NDArray[np.uint8]:
    """Pack tuples into beats of ``tdata``, shape (tuples, bytes), little endian."""
    layout = contract.tuple_layout(params)
    width = contract.beat_bits(layout) // 8
    rows = []
    for arrival in arrivals:
        word = 0
        for each, value in zip(layout, beat_values(params, arrival), strict=True):
            word |= value << each.offset
        rows.append(np.frombuffer(word.to_bytes(width, "little"), np.uint8))
    return np.array(rows, np.uint8).reshape(len(rows), width)


def unpacked(params: DesignParams, words: npt.NDArray[np.uint8]) -> list[tuple[int, int]]:
    """Read result beats, shape (results, bytes), as pairs of payloads."""
    r, s = contract.result_layout(params)
    mask = (1 << r.width) - 1
    numbers = (int.from_bytes(word.tobytes(), "little") for word in words)
    return [((number >> r.offset) & mask, (number >> s.offset) & mask) for number in numbers]


@dataclass
class Outcome:
    """What one input gave.

    ``pairs`` are payloads in the order of the output, ``users`` the ``tuser`` of every beat,
    ``accepted`` and ``stamps`` the cycles of beats in and out, ``cycles`` the whole run's.
    """

    pairs: list[tuple[int, int]]
    users: list[int]
    accepted: npt.NDArray[np.int64]
    stamps: list[int]
    cycles: int


class ModelError(RuntimeError):
    """A model did not do what its interface promises."""

    exit_status = 1


class Model:
    """A Verilated model in this process.

    Parameters
    ----------
    params : DesignParams
        The design.
    folder : Path
        What :func:`streamjoin_hw.build.build_model` returned.

    Raises
    ------
    ModelError
        If the library holds another design.
    """

    def __init__(self, params: DesignParams, folder: Path) -> None:
        self.params = params
        self.library = library = load_model_library(folder / LIBRARY_NAME)
        self.handle = ctypes.c_void_p(library.sjm_open())
        self.offsets = {each.name: each.offset for each in contract.registers(params)}
        digest = library.sjm_manifest_digest(self.handle).decode()
        if digest != params.digest:
            raise ModelError(f"the model's digest is {digest}, the parameters' {params.digest}")

    def close(self) -> None:
        """Release the model."""
        if self.handle:
            self.library.sjm_close(self.handle)
            self.handle = ctypes.c_void_p()

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def cycles(self) -> int:
        """Cycles since the model was opened."""
        return int(self.library.sjm_cycles(self.handle))

    def read(self, name: str) -> int:
        """Read a register by name."""
        value = ctypes.c_uint32()
        status = self.read_offset(self.offsets[name], value)
        if status:
            raise ModelError(f"reading {name} was answered with {status}")
        return value.value

    def read_offset(self, offset: int, value: ctypes.c_uint32) -> int:
        """Read at an offset; returns the AXI response."""
        return int(self.library.sjm_read(self.handle, ctypes.c_uint32(offset), ctypes.byref(value)))

    def write(self, name: str, value: int) -> None:
        """Write a register by name."""
        status = self.write_offset(self.offsets[name], value)
        if status:
            raise ModelError(f"writing {name} was answered with {status}")

    def write_offset(self, offset: int, value: int) -> int:
        """Write at an offset; returns the AXI response."""
        return int(
            self.library.sjm_write(self.handle, ctypes.c_uint32(offset), ctypes.c_uint32(value))
        )

    def set_up(self, workload: Workload) -> None:
        """Write the windows and band widths of a workload."""
        self.write("window_r", workload.window_r)
        self.write("window_s", workload.window_s)
        for name, bits in workload.registers.items():
            self.write(name, bits)

    def run(
        self,
        arrivals: Sequence[Arrival],
        *,
        last: bool = True,
        seed: int = 0,
        idle_per_1024: int = 0,
        stall_per_1024: int = 0,
        capacity: int = 1 << 14,
        max_cycles: int = 10_000_000,
        report: Callable[[int], None] | None = None,
    ) -> Outcome:
        """Hand in tuples and collect what comes out.

        With ``last`` the input ends and all results are collected; without, the call returns
        when the tuples are taken. ``report`` is told the count of beats taken. After an error
        write the soft reset bit before the next input: it drops what is left of this one.

        Raises
        ------
        ModelError
            If the run does not end within ``max_cycles`` cycles.
        """
        beats = packed(self.params, arrivals)
        dest = np.array([arrival.side for arrival in arrivals], np.uint8)
        accepted = np.full(len(arrivals), -1, np.int64)
        width = contract.beat_bits(contract.result_layout(self.params)) // 8
        words = np.zeros((capacity, width), np.uint8)
        users, stamps = np.zeros(capacity, np.uint8), np.zeros(capacity, np.int64)
        run = SjmRun(
            beats=beats.ctypes.data,
            dest=dest.ctypes.data,
            accepted=accepted.ctypes.data,
            beat_count=len(arrivals),
            last=int(last),
            results=words.ctypes.data,
            users=users.ctypes.data,
            stamps=stamps.ctypes.data,
            capacity=capacity,
            seed=seed,
            idle_per_1024=idle_per_1024,
            stall_per_1024=stall_per_1024,
        )
        outcome = Outcome([], [], accepted, [], 0)
        while True:
            run.max_cycles = min(max_cycles - outcome.cycles, 1 << 18)
            status = self.library.sjm_run(self.handle, ctypes.byref(run))
            taken = run.results_taken
            is_result = (users[:taken] >> TUser.RESULT) & 1
            outcome.pairs += unpacked(self.params, words[:taken][is_result == 1])
            outcome.users += users[:taken].tolist()
            outcome.stamps += stamps[:taken].tolist()
            outcome.cycles += run.cycles
            if report is not None:
                report(run.beats_taken)
            if status in (RunState.ENDED, RunState.BEATS_TAKEN):
                return outcome
            if status not in (RunState.RESULTS_FULL, RunState.CYCLES_OVER):
                raise ModelError(f"the model stopped in state {status}")
            run.resume = 1
            if outcome.cycles >= max_cycles:
                raise ModelError(
                    f"the run did not end within {max_cycles} cycles "
                    f"({run.beats_taken} of {len(arrivals)} tuples taken)"
                )
