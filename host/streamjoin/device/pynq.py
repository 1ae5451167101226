"""A design on a PYNQ board: an overlay with the design and an AXI DMA.

Runs under PYNQ 3.1 (Zynq-7000, Python 3.10) and 4.0 (Zynq UltraScale+, Python 3.12). Cycles of a
device's outcome are the design's own count. Stamps of tuples and results are times of the host's
clock in cycles of the design: a tuple counts as accepted when its transfer starts, a result as
returned when the host has received it. So latencies are those of a program, not of the design
alone.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from streamjoin.device import axi_dma
from streamjoin.device.base import Beats, Device, Results, StreamOutcome, describe
from streamjoin.device.overlay import LoadedOverlay
from streamjoin.device.packets import group, grouped_words, packet
from streamjoin.device.selftest import self_test
from streamjoin.device.watch import Watch, wait_until
from streamjoin.errors import DeadlineError, DeviceError
from streamjoin_common.contract import (
    GROUP_TUPLES,
    SIDE_R,
    beat_bits,
    input_word_bits,
    max_packet_bytes,
    tuple_layout,
)

CHUNK_BYTES = 1 << 20
"""Maximum input bytes of one transfer; two such buffers are allocated."""

QUIET_S = 5.0
"""Seconds of silence that are a fault, beyond the time of a whole drain."""


class PynqDevice(Device):
    """The design of an overlay, with its DMA.

    Parameters
    ----------
    bitstream : Path
        ``.bit`` file with its ``.hwh`` and ``manifest.json`` beside it.
    quiet_s : float
        Seconds without any progress after which a wait ends, beyond the time of a drain.
    chunk_bytes : int
        Maximum input bytes of one transfer.
    tested : bool
        Whether the device joins known inputs first (:mod:`streamjoin.device.selftest`).

    Raises
    ------
    UnavailableError, InputError
        If the overlay cannot be loaded; see :class:`~streamjoin.device.overlay.LoadedOverlay`.
    DeviceError, DeadlineError
        If the overlay holds another design, its DMA does not answer, or the self-test fails.
    """

    def __init__(
        self,
        bitstream: Path,
        *,
        quiet_s: float = QUIET_S,
        chunk_bytes: int = CHUNK_BYTES,
        tested: bool = True,
    ) -> None:
        self._loaded = LoadedOverlay(bitstream)
        super().__init__(self._loaded.manifest.params)
        self._buffers: list[Any] = []
        self._quiet_s = quiet_s
        self._cycles_seen = 0
        self.check_identity()
        dma, self._dma_mmio = self._loaded.dma(), self._loaded.dma_mmio
        self._send = axi_dma.Channel(self._dma_mmio, axi_dma.MM2S, dma.sendchannel)
        self._receive = axi_dma.Channel(self._dma_mmio, axi_dma.S2MM, dma.recvchannel)
        max_transfer_bytes = int(dma.buffer_max_size)
        packet_bytes = max_packet_bytes(self.params)
        group_bytes = (GROUP_TUPLES + 1) * input_word_bits(self.params) // 8
        if max_transfer_bytes < max(packet_bytes, group_bytes):
            raise DeviceError(
                f"{bitstream}: the DMA takes transfers of {max_transfer_bytes} bytes and a packet "
                f"of results has up to {packet_bytes}: build it with a wider length register"
            )
        groups = max(1, min(chunk_bytes, max_transfer_bytes) // group_bytes)
        self._chunk_tuples = groups * GROUP_TUPLES
        try:
            sizes = [groups * group_bytes] * 2 + [packet_bytes] * 2
            for count_bytes in sizes:
                self._buffers.append(self._loaded.allocate(count_bytes))
            self._recover()
            if tested:
                self_test(self)
        except BaseException:
            self.close()
            raise

    @property
    def clock_hz(self) -> float:
        """The clock that the board gives the design, in Hz."""
        return self._loaded.clock_hz

    @property
    def clock_source(self) -> str:
        """Says that the clock was read on the board."""
        return "board: PL clock 0, read back"

    def _read(self, offset: int) -> int:
        return int(self._loaded.design.read(offset))

    def _write(self, offset: int, value: int) -> None:
        self._loaded.design.write(offset, int(value))

    def close(self) -> None:
        """Stop the DMA, then free its buffers."""
        buffers, self._buffers = self._buffers, []
        if not buffers:
            return
        # Freed buffers must not be written to; a DMA that does not respond writes no more.
        with suppress(DeviceError, DeadlineError):
            axi_dma.reset(self._dma_mmio)
        for buffer in buffers:
            buffer.freebuffer()

    def _recover(self) -> None:
        """Reset design and DMA, from any state, so that they wait for an input."""
        self._reset_dma()
        self.restart()
        # Again: the DMA may have received words that the design offered before it was emptied.
        self._reset_dma()
        self._listen()

    def _reset_dma(self) -> None:
        """Reset both channels and drop their transfers."""
        axi_dma.reset(self._dma_mmio)
        self._send.restart()
        self._receive.restart()
        self._next_in, self._next_out = 0, 0

    def _drop_offer(self) -> None:
        """Receive the word that the design offers; without a buffer the DMA takes none."""
        if self._receive.busy and self._receive.done():
            self._receive.finish()
        if not self._receive.busy:
            self._listen()

    def _listen(self) -> None:
        """Start receiving the next packet into the other buffer."""
        buffer = self._buffers[2 + self._next_out]
        self._next_out ^= 1
        self._receive.begin(buffer, buffer.nbytes)
        self._listening = buffer

    def stream(
        self, beats: Beats, on_results: Callable[[Results], None], on_taken: Callable[[int], None]
    ) -> StreamOutcome:
        """Send one whole input; see :meth:`Device.stream`.

        Whatever ends it early, design and DMA are emptied: the next input starts afresh.
        """
        if len(beats.dest) == 0:
            return StreamOutcome(np.empty(0, dtype=np.int64), 0)
        if beats.data.shape != (len(beats.dest), beat_bits(tuple_layout(self.params)) // 8):
            raise DeviceError(f"beats of shape {beats.data.shape} do not fit the design's tuples")
        try:
            return self._run(beats, on_results, on_taken)
        except BaseException:
            # The first error is the one to report; a lost device fails again when used.
            with suppress(DeviceError, DeadlineError):
                self._recover()
            raise

    def _run(
        self, beats: Beats, on_results: Callable[[Results], None], on_taken: Callable[[int], None]
    ) -> StreamOutcome:
        """Keep both channels busy until the packet that ends the input."""
        began = monotonic()
        self._cycles_seen = 0
        before = self._counters()
        accepted = np.zeros(len(beats.dest), dtype=np.int64)
        chunk, filled, sent, received = slice(0, 0), False, 0, 0
        watch = Watch(self.progress, self.state, self.quiet_limit_s)
        while True:
            moved = False
            if self._send.busy and self._send.done():
                self._send.finish()
                self._counters()
                on_taken(sent)
                moved = True
            if not filled and sent < len(beats.dest):
                chunk = slice(sent, min(sent + self._chunk_tuples, len(beats.dest)))
                self._fill(beats, chunk)
                filled = True
            if filled and not self._send.busy:
                words = grouped_words(chunk.stop - chunk.start)
                accepted[chunk] = self._stamp(began)
                self._send.begin(
                    self._buffers[self._next_in], words * input_word_bits(self.params) // 8
                )
                self._next_in ^= 1
                sent, filled, moved = chunk.stop, False, True
            if self._receive.done():
                buffer = self._listening
                count_bytes = self._receive.finish()
                self._listen()  # before decoding it: the design waits meanwhile
                got = packet(self.params, np.asarray(buffer)[:count_bytes])
                received += len(got.data)
                if len(got.data):
                    stamps = np.full(len(got.data), self._stamp(began), dtype=np.int64)
                    on_results(Results(got.data, stamps))
                if got.end:
                    break
                moved = True
            watch.look(moved)
        self._check_end(beats, before, sent, received)
        return StreamOutcome(accepted, self._counters()["cycles"] - before["cycles"])

    def _fill(self, beats: Beats, chunk: slice) -> None:
        """Write a chunk of the input to the buffer that is not being sent."""
        part = Beats(beats.data[chunk], beats.dest[chunk])
        words = group(self.params, part, last=chunk.stop == len(beats.dest)).reshape(-1)
        self._buffers[self._next_in][: len(words)] = words

    def _check_end(self, beats: Beats, before: dict[str, int], sent: int, received: int) -> None:
        """Check that the design's counts equal those of the driver."""
        total = len(beats.dest)
        if sent < total:
            raise DeviceError(f"the design ended the input after {sent} of {total} tuples")
        wait_until(self._send.done, self._quiet_s, f"the DMA did not end sending {total} tuples")
        self._send.finish()
        of_r = int(np.count_nonzero(beats.dest == SIDE_R))
        owed = {"tuples_r": of_r, "tuples_s": total - of_r, "results": received}
        after = self._counters()
        for name, count in owed.items():
            counted = (after[name] - before[name]) % (1 << 32)
            if counted != count % (1 << 32):
                raise DeviceError(
                    f"the design counted {counted} {name} and the driver {count}: "
                    "it was reset while it ran, or a transfer lost a part"
                )

    def _counters(self) -> dict[str, int]:
        """Read the counters of progress; cycles never wrap, so a lower count is a reset."""
        counts = {name: self.read(name) for name in ("tuples_r", "tuples_s", "results")}
        low = self.read("cycles_low")
        cycles = self.read("cycles_high") << 32 | low
        if cycles < self._cycles_seen:
            raise DeviceError(
                "the design was reset by something else in the middle of an input: its cycles "
                f"went back from {self._cycles_seen} to {cycles}; see that no other program uses "
                "the board and run again"
            )
        self._cycles_seen = cycles
        return {**counts, "cycles": cycles}

    def _stamp(self, began: float) -> int:
        """Return the time since an input began, in the design's cycles."""
        return int((monotonic() - began) * self.clock_hz)

    @property
    def quiet_limit_s(self) -> float:
        """Seconds of silence that are a fault."""
        return self._quiet_s + 2 * self.drain_cycles / self.clock_hz

    def progress(self) -> tuple[int, ...]:
        """Return counters that move while the design works."""
        counts = self._counters()
        return counts["tuples_r"], counts["tuples_s"], counts["results"]

    def state(self) -> str:
        """Describe design and DMA, for error messages."""
        channels = {f"dma_{each.name}": hex(each.status()) for each in (self._send, self._receive)}
        return describe({**self.status(), **channels})
