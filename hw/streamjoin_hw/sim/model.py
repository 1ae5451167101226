"""A Verilated model in this process: the C interface of ``sim/driver/driver.cpp`` from Python.

For tests and ``streamjoin hw simulate``; the host has a driver of its own.
"""

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from streamjoin_common import contract
from streamjoin_common.contract import (
    LIBRARY_NAME,
    SIDE_R,
    SIDE_S,
    DesignParams,
    RunState,
    SjmRun,
    TUser,
    bucket_writes,
    load_model_library,
)
from streamjoin_common.errors import StreamJoinError
from streamjoin_hw.sim.bulk import Chunk
from streamjoin_hw.sim.testing import Arrival, Workload, buckets


def packed(params: DesignParams, chunk: Chunk) -> npt.NDArray[np.uint8]:
    """Pack tuples into beats of ``tdata``, shape (tuples, bytes), little endian."""
    layout = contract.tuple_layout(params)
    beats = np.zeros((len(chunk.sides), contract.beat_bits(layout) // 8), np.uint8)
    for each, column in zip(layout, chunk.columns(params), strict=True):
        first, shift = divmod(each.offset, 8)
        bits = column.astype("<u8") << np.uint64(shift)
        octets = bits.view(np.uint8).reshape(len(bits), 8)[:, : beats.shape[1] - first]
        beats[:, first : first + octets.shape[1]] |= octets
    return beats


def unpacked(params: DesignParams, words: npt.NDArray[np.uint8]) -> list[npt.NDArray[np.uint64]]:
    """Read results, shape (results, bytes), as columns, in the order of the layout."""
    padded = np.pad(words, ((0, 0), (0, 8)))
    columns = []
    for each in contract.result_layout(params):
        first, shift = divmod(each.offset, 8)
        bits = np.ascontiguousarray(padded[:, first : first + 8]).view("<u8")[:, 0]
        columns.append(bits >> np.uint64(shift) & np.uint64((1 << each.width) - 1))
    return columns


def results_of(
    params: DesignParams, words: npt.NDArray[np.uint8], users: npt.NDArray[np.uint8]
) -> npt.NDArray[np.uint8]:
    """Return the results of beats, each a row of its own, in order."""
    width = contract.beat_bits(contract.result_layout(params)) // 8
    rows = words.reshape(-1, width)
    bits = [TUser.RESULT, TUser.SECOND][: params.beat_results]
    valid = np.stack([users >> bit & 1 == 1 for bit in bits], axis=1)
    return np.asarray(rows[valid.reshape(-1)], np.uint8)


def chunk_of(params: DesignParams, arrivals: Sequence[Arrival]) -> Chunk:
    """Return tuples as columns."""
    keys = np.array([arrival.keys for arrival in arrivals], np.uint32)
    return Chunk(
        np.array([arrival.side for arrival in arrivals], np.uint8),
        keys.reshape(len(arrivals), len(params.terms)),
        np.array([arrival.payload for arrival in arrivals], np.uint32),
        np.array([arrival.ts for arrival in arrivals], np.uint32),
    )


class Piece(NamedTuple):
    """What one call of the model gave.

    ``r``, ``s`` are payloads of the results, ``users`` and ``stamps`` the ``tuser`` and the cycle
    of every beat, ``cycles`` the call's, ``taken`` counts the tuples that the run has taken.
    ``missing`` is 1 for a result without a tuple of R, 2 for one without S, else 0.
    """

    r: npt.NDArray[np.uint64]
    s: npt.NDArray[np.uint64]
    users: npt.NDArray[np.uint8]
    stamps: npt.NDArray[np.int64]
    cycles: int
    taken: int
    missing: npt.NDArray[np.uint64]


@dataclass
class Outcome:
    """What one input gave.

    ``pairs`` are payloads in the order of the output, ``missing`` says which of them are none
    (:class:`Piece`), ``users`` are the ``tuser`` of every beat, ``accepted`` and ``stamps`` the
    cycles of beats in and out, ``cycles`` the whole run's.
    """

    pairs: list[tuple[int, int]]
    users: list[int]
    accepted: npt.NDArray[np.int64]
    stamps: list[int]
    cycles: int
    missing: list[int]


class ModelError(StreamJoinError, RuntimeError):
    """A model did not do what its interface promises."""


class Model:
    """A Verilated model in this process.

    Parameters
    ----------
    params : DesignParams
        The design.
    folder : Path
        What :func:`streamjoin_hw.flow.build.build_model` returned.

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

    def restart(self, *, drain: bool = False) -> None:
        """Empty the design by a soft reset; a beat that it offers is taken and dropped.

        With ``drain`` one is written while the reset waits for that beat: the input after it ends
        at once, without tuples.

        Raises
        ------
        ModelError
            If it does not become empty.
        """
        (control,) = (each for each in contract.registers(self.params) if each.name == "control")
        bits = {each.name: 1 << each.bit for each in control.fields}
        self.write("control", bits["enable"] | bits["soft_reset"])
        if drain:
            self.write("control", bits["enable"] | bits["drain"])
        if self.read("control") & bits["soft_reset"]:
            self.library.sjm_drop(self.handle)
        if self.read("control") & bits["soft_reset"]:
            raise ModelError("the design did not end its soft reset")

    def set_up(self, workload: Workload) -> None:
        """Write the windows and band widths of a workload."""
        self.set_registers(
            {"window_r": workload.window_r, "window_s": workload.window_s, **workload.registers}
        )
        windows = (workload.window_r, workload.window_s)
        self.load_splitters(windows, chunk_of(self.params, workload.arrivals))

    def load_splitters(self, windows: tuple[int, int], *chunks: Chunk) -> None:
        """Divide the buckets of an ordered index by the tuples of chunks, each side by its own.

        Does nothing with another design; the design must be empty.
        """
        term = self.params.indexed_term or 0
        r, s = (
            [key for each in chunks for key in each.keys[each.sides == side, term].tolist()]
            for side in (SIDE_R, SIDE_S)
        )
        for side, chosen in enumerate(buckets(self.params, windows, (r, s))):
            for name, value in bucket_writes(side, chosen):
                self.write(name, value)

    def set_registers(self, values: dict[str, int]) -> None:
        """Write registers by name."""
        for name, value in values.items():
            self.write(name, value)

    def run(self, arrivals: Sequence[Arrival], **choices: Any) -> Outcome:
        """Hand in tuples and collect the results; ``choices`` are those of :meth:`feed`."""
        chunk = chunk_of(self.params, arrivals)
        outcome = Outcome([], [], np.full(len(arrivals), -1, np.int64), [], 0, [])
        for piece in self.feed(chunk, accepted=outcome.accepted, **choices):
            outcome.pairs += zip(piece.r.tolist(), piece.s.tolist(), strict=True)
            outcome.missing += piece.missing.tolist()
            outcome.users += piece.users.tolist()
            outcome.stamps += piece.stamps.tolist()
            outcome.cycles += piece.cycles
        return outcome

    def feed(
        self,
        chunk: Chunk,
        *,
        last: bool = True,
        accepted: npt.NDArray[np.int64] | None = None,
        seed: int = 0,
        idle_per_1024: int = 0,
        stall_per_1024: int = 0,
        capacity: int = 1 << 14,
        max_cycles: int = 10_000_000,
    ) -> Iterator[Piece]:
        """Hand in tuples and yield the results, piece by piece.

        With ``last`` the input ends and all results are given; without it the last piece is
        yielded when the tuples are taken. ``accepted``, int64 of shape (tuples,), receives the
        cycles in which they are. After an error call :meth:`restart` before the next
        input: it drops what is left of this one.

        Raises
        ------
        ModelError
            If the run does not end within ``max_cycles`` cycles.
        """
        beats = packed(self.params, chunk)
        dest = np.ascontiguousarray(chunk.sides)
        if accepted is None:
            accepted = np.empty(len(dest), np.int64)
        width = contract.beat_bits(contract.result_beat_layout(self.params)) // 8
        words = np.zeros((capacity, width), np.uint8)
        users, stamps = np.zeros(capacity, np.uint8), np.zeros(capacity, np.int64)
        run = SjmRun(
            beats=beats.ctypes.data,
            dest=dest.ctypes.data,
            accepted=accepted.ctypes.data,
            beat_count=len(dest),
            last=int(last),
            results=words.ctypes.data,
            users=users.ctypes.data,
            stamps=stamps.ctypes.data,
            capacity=capacity,
            seed=seed,
            idle_per_1024=idle_per_1024,
            stall_per_1024=stall_per_1024,
        )
        cycles = 0
        while True:
            run.max_cycles = min(max_cycles - cycles, 1 << 18)
            status = self.library.sjm_run(self.handle, ctypes.byref(run))
            count = run.results_taken
            results = results_of(self.params, words[:count], users[:count])
            r, s, *flags = unpacked(self.params, results)
            missing = flags[0] | flags[1] << np.uint64(1) if flags else np.zeros_like(r)
            cycles += run.cycles
            yield Piece(
                r,
                s,
                users[:count].copy(),
                stamps[:count].copy(),
                run.cycles,
                run.beats_taken,
                missing,
            )
            if status in (RunState.ENDED, RunState.BEATS_TAKEN):
                return
            if status not in (RunState.RESULTS_FULL, RunState.CYCLES_OVER):
                raise ModelError(f"the model stopped in state {status}")
            run.resume = 1
            if cycles >= max_cycles:
                raise ModelError(
                    f"the run did not end within {max_cycles} cycles "
                    f"({run.beats_taken} of {len(dest)} tuples taken)"
                )
