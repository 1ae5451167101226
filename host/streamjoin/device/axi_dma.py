"""The AXI DMA in direct register mode: its registers by name, and a channel with deadlines.

Registers as in AMD's product guide PG021 (AXI DMA 7.1, direct register mode). ``pynq.lib.dma``
starts the transfers and keeps the caches coherent; every wait is here, because PYNQ's own wait
loops have no deadline.
"""

from dataclasses import dataclass
from typing import Any

from streamjoin.device.watch import wait_until
from streamjoin.errors import DeviceError

CONTROL, STATUS, ADDRESS, ADDRESS_HIGH, LENGTH = 0x00, 0x04, 0x18, 0x1C, 0x28
"""Offsets of a channel's registers, in bytes from its first."""

MM2S, S2MM = 0x00, 0x30
"""Offsets of each channel's first register: memory to stream, stream to memory."""

RUN, RESET = 1 << 0, 1 << 2
"""Bits of ``CONTROL``; a reset of either channel is one of both."""

HALTED, IDLE = 1 << 0, 1 << 1
"""Bits of ``STATUS``."""

ERRORS = {
    1 << 4: "internal error: a length of 0, or a packet larger than its buffer",
    1 << 5: "slave error: memory answered with an error",
    1 << 6: "decode error: the address is not memory",
}
"""Error bits of ``STATUS``; any of them halts the channel until a reset."""

RESET_DEADLINE_S = 1.0


NAMES = {MM2S: "sending", S2MM: "receiving"}
"""Names of the channels in error messages."""


def _until_clear(mmio: Any, offset: int, bit: int, what: str) -> None:
    wait_until(lambda: not mmio.read(offset) & bit, RESET_DEADLINE_S, what)


def reset(mmio: Any) -> None:
    """Reset both channels and start them, from whatever state.

    Parameters
    ----------
    mmio : pynq.MMIO
        The DMA's registers.

    Raises
    ------
    DeadlineError
        If it does not respond.
    """
    mmio.write(MM2S + CONTROL, RESET)
    for base, name in NAMES.items():
        what = f"the DMA's channel for {name} did not end its reset"
        _until_clear(mmio, base + CONTROL, RESET, what)
    for base, name in NAMES.items():
        mmio.write(base + CONTROL, RUN)
        what = f"the DMA's channel for {name} did not start"
        _until_clear(mmio, base + STATUS, HALTED, what)


@dataclass
class Channel:
    """One direction of a DMA.

    Attributes
    ----------
    mmio : pynq.MMIO
        The DMA's registers.
    base : int
        :data:`MM2S` or :data:`S2MM`.
    driver : pynq.lib.dma channel
        PYNQ's driver, which starts transfers.
    """

    mmio: Any
    base: int
    driver: Any
    _buffer: Any = None

    @property
    def name(self) -> str:
        """The direction, for error messages."""
        return NAMES[self.base]

    @property
    def busy(self) -> bool:
        """Whether a transfer was begun and not finished."""
        return self._buffer is not None

    def status(self) -> int:
        """Read the status register."""
        return int(self.mmio.read(self.base + STATUS))

    def begin(self, buffer: Any, count_bytes: int) -> None:
        """Start a transfer from or into a buffer, which nothing else may use until it is done."""
        try:
            self.driver.transfer(buffer, 0, count_bytes)
        except (RuntimeError, ValueError) as error:
            raise DeviceError(f"the DMA does not begin {self.name}: {error}") from None
        self._buffer = buffer

    def done(self) -> bool:
        """Return whether the transfer has ended.

        Raises
        ------
        DeviceError
            If the channel reports an error, or was reset or stopped.
        """
        status = self.status()
        errors = [description for bit, description in ERRORS.items() if status & bit]
        if errors:
            raise DeviceError(
                f"the DMA failed while {self.name} (status {status:#x}): {'; '.join(errors)}"
            )
        if status & HALTED:
            raise DeviceError(
                f"the DMA was reset or stopped while {self.name} (status {status:#x})"
            )
        return bool(status & IDLE)

    def finish(self) -> int:
        """End a transfer that is done; return its bytes. The buffer can then be read."""
        try:
            self.driver.wait()
        except RuntimeError as error:
            self.done()  # raises its own error if the channel reports one
            raise DeviceError(f"the DMA failed while {self.name}: {error}") from None
        self._buffer = None
        return int(self.driver.transferred)

    def restart(self) -> None:
        """Forget a transfer, after a reset."""
        self._buffer = None
        self.driver.start()
