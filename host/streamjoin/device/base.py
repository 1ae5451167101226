"""A device that holds a design: registers by name, tuples in, results out, deadlines on all.

The driver code does not depend on whether a Verilated model or a board runs the design. A device is
opened for one design and refuses another: the digest in its registers must be the manifest's.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.device.watch import wait_until
from streamjoin.errors import DeviceError
from streamjoin_common.contract import (
    MAGIC,
    DesignParams,
    Register,
    TUser,
    beat_bits,
    registers,
    result_layout,
)

Bytes = NDArray[np.uint8]
Cycles = NDArray[np.int64]

RESTART_DEADLINE_S = 1.0
"""Seconds that a soft reset may take: it waits for one beat to be taken."""


@dataclass(frozen=True)
class Beats:
    """Input beats in arrival order.

    Attributes
    ----------
    data : ndarray of uint8, shape (beats, tuple bytes)
        Packed ``tdata``, little endian.
    dest : ndarray of uint8, shape (beats,)
        0 for R, 1 for S.
    arrival_cycles : ndarray of int64, shape (beats,), optional
        Cycle, from the start of the input, before which each is not offered; none waits by
        default. Only models wait.
    """

    data: Bytes
    dest: Bytes
    arrival_cycles: Cycles | None = None


@dataclass(frozen=True)
class Results:
    """Output beats of one input, in the design's order, without punctuation.

    Attributes
    ----------
    data : ndarray of uint8, shape (results, result bytes)
        Packed ``tdata``, little endian.
    cycles : ndarray of int64, shape (results,)
        Cycle at which each was handed over, from the start of the input.
    """

    data: Bytes
    cycles: Cycles


@dataclass(frozen=True)
class StreamOutcome:
    """What streaming one input through a device took.

    Attributes
    ----------
    accepted_cycles : ndarray of int64, shape (beats,)
        Cycle at which each beat was taken, from the start of the input.
    cycles : int
        From the start of the input to the end of its drain.
    """

    accepted_cycles: Cycles
    cycles: int


class Device(ABC):
    """One opened design; use it as a context manager."""

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        self._registers: dict[str, Register] = {reg.name: reg for reg in registers(params)}

    @property
    @abstractmethod
    def clock_hz(self) -> float:
        """Clock that turns cycles into seconds."""

    @property
    @abstractmethod
    def clock_source(self) -> str:
        """Source of that clock: board, timing report or assumption."""

    @abstractmethod
    def _read(self, offset: int) -> int: ...

    @abstractmethod
    def _write(self, offset: int, value: int) -> None: ...

    @abstractmethod
    def stream(
        self, beats: Beats, on_results: Callable[[Results], None], on_taken: Callable[[int], None]
    ) -> StreamOutcome:
        """Send one whole input, drain, and pass on results as they arrive.

        Parameters
        ----------
        beats : Beats
            The input; the last beat carries ``tlast``. May be empty.
        on_results : callable
            Called with batches of results.
        on_taken : callable
            Called at intervals with the number of beats taken so far.

        Raises
        ------
        DeadlineError
            If the device makes no progress.
        """

    @abstractmethod
    def close(self) -> None:
        """Give the device back."""

    def __enter__(self) -> "Device":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def read(self, name: str) -> int:
        """Read a register by name."""
        return self._read(self._registers[name].offset)

    def write(self, name: str, value: int) -> None:
        """Write a register by name, 32 bits."""
        self._write(self._registers[name].offset, value & 0xFFFFFFFF)

    def status(self) -> dict[str, int]:
        """Read the status register's fields, for error messages."""
        value = self.read("status")
        fields = self._registers["status"].fields
        return {field.name: value >> field.bit & ((1 << field.width) - 1) for field in fields}

    def restart(self) -> None:
        """Empty the design and clear its counters; windows and band widths keep their values.

        A beat that the design offers stays until it is taken; it is taken and dropped.

        Raises
        ------
        DeadlineError
            If the design does not become empty.
        """
        fields = {field.name: 1 << field.bit for field in self._registers["control"].fields}

        def is_empty() -> bool:
            if not self.read("control") & fields["soft_reset"]:
                return True
            self._drop_offer()
            return not self.read("control") & fields["soft_reset"]

        self.write("control", fields["enable"] | fields["soft_reset"])
        wait_until(is_empty, RESTART_DEADLINE_S, "the design did not end its soft reset")

    @abstractmethod
    def _drop_offer(self) -> None:
        """Take a beat that the design offers during a soft reset, if any; called repeatedly."""

    @property
    def drain_cycles(self) -> int:
        """Maximum cycles without a result while the design works: a whole drain."""
        return self.params.window_capacity * (self.params.segment_words + 1)

    def check_identity(self) -> None:
        """Refuse a device that holds another design.

        Raises
        ------
        DeviceError
            If magic or digest differ from this design's.
        """
        magic = self.read("identity")
        if magic != MAGIC:
            raise DeviceError(f"the device is no streamjoin design: identity reads {magic:#010x}")
        digest = f"{self.read('digest_high'):08x}{self.read('digest_low'):08x}"
        if digest != self.params.digest:
            raise DeviceError(
                f"the device holds design {digest}, the manifest says {self.params.digest}: "
                "build or load the design anew"
            )


def result_rows(params: DesignParams, beats: Bytes, users: Bytes) -> tuple[Bytes, Cycles]:
    """Take the results out of output beats.

    Parameters
    ----------
    params : DesignParams
        The design.
    beats : ndarray of uint8, shape (beats, beat bytes)
        Packed ``tdata``.
    users : ndarray of uint8, shape (beats,)
        ``tuser`` of each.

    Returns
    -------
    rows : ndarray of uint8, shape (results, result bytes)
        The results in their order; a copy.
    at : ndarray of int64, shape (results,)
        The number of each result's beat.
    """
    bits = [TUser.RESULT, TUser.SECOND][: params.beat_results]
    valid = np.stack([users >> bit & 1 == 1 for bit in bits], axis=1).reshape(-1)
    rows = beats.reshape(-1, beat_bits(result_layout(params)) // 8)[valid]
    at = np.repeat(np.arange(len(users)), params.beat_results)[valid]
    return rows, at


def describe(fields: dict[str, Any]) -> str:
    """Write register fields as ``name=value`` for error messages."""
    return ", ".join(f"{name}={value}" for name, value in fields.items())
