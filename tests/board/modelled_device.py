"""A board without a board: a pynq device with the Verilated design behind a model of the AXI DMA.

``pynq.Overlay``, ``pynq.lib.dma`` and ``pynq.allocate`` run unchanged on it. Registers of the DMA
behave as AMD's PG021 says (direct register mode). A DMA that writes where nothing is allocated is
an error. Cycles and time pass while registers are accessed.
"""

import ctypes
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from memory_device import ACCESS_S, DESIGN_BASE, DMA_BASE, RANGE, BoardError, MemoryDevice

from streamjoin.device import axi_dma
from streamjoin_common.contract import (
    LIBRARY_NAME,
    DesignParams,
    RunState,
    SjmRun,
    load_model_library,
)

NEVER = 1024
"""As a share of 1024 cycles in which the output is not ready."""

EARLY_WORDS = 4
"""Words that the DMA may take in before it is told of a buffer: its stream is ready early."""


@dataclass
class ChannelModel:
    """Registers and transfer of one direction."""

    control: int = 0
    status: int = axi_dma.HALTED
    address: int = 0
    length: int = 0
    active: bool = False
    moved_words: int = 0
    early: list[bytes] = field(default_factory=list)
    early_ends: bool = False


@dataclass
class Faults:
    """What goes wrong, by the words that were moved before; None is nothing."""

    error_bit: int = 0
    error_after_words: int | None = None
    stuck_after_words: int | None = None
    dma_reset_after_words: int | None = None
    design_reset_after_words: int | None = None
    short_by_bytes: int = 0
    never_starts: bool = False
    wrong_bit_after_words: int | None = None
    sent_words: int = field(default=0, init=False)


class ModelledBoard(MemoryDevice):
    """A pynq device that holds one design and one AXI DMA.

    Parameters
    ----------
    params : DesignParams
        The design.
    folder : Path
        Its model for boards, from ``build_model(params, board=True)``.
    length_bits : int
        Width of the DMA's length registers.
    cycles_at_once : int
        Cycles that pass during an access to the DMA's registers.
    """

    def __init__(
        self,
        params: DesignParams,
        folder: Path,
        *,
        length_bits: int = 26,
        cycles_at_once: int = 5000,
    ) -> None:
        super().__init__(params, length_bits)
        self.faults = Faults()
        self.log: list[tuple[str, int, Any]] | None = None
        self._length_mask = (1 << length_bits) - 1
        self._cycles_at_once = cycles_at_once
        self._library = load_model_library(folder / LIBRARY_NAME)
        self._handle = self._library.sjm_open()
        self._resume = False
        self.send, self.receive = ChannelModel(), ChannelModel()

    def stop(self) -> None:
        """Free the model."""
        self._library.sjm_close(self._handle)

    def return_pointer(self, pointer: int) -> None:
        """Free memory, unless a transfer goes to or from it."""
        for channel in (self.send, self.receive):
            if channel.active and self.memory_at(channel.address).address == pointer:
                raise BoardError("memory was freed under a transfer")
        super().return_pointer(pointer)

    def read_registers(self, address: int, count_bytes: int) -> bytes:
        """Read registers, of the DMA or of the design."""
        assert count_bytes == 4
        self.now_s += ACCESS_S
        if DMA_BASE <= address < DMA_BASE + RANGE:
            value = self._read_dma(address - DMA_BASE)
        else:
            word = ctypes.c_uint32()
            offset = address - DESIGN_BASE
            if self._library.sjm_read(self._handle, offset, ctypes.byref(word)):
                raise BoardError(f"bus error at {address:#x}")
            value = word.value
        if self.log is not None:
            self.log.append(("read", address, value))
        return value.to_bytes(4, "little")

    def write_registers(self, address: int, data: Any) -> None:
        """Write registers, of the DMA or of the design."""
        value = int.from_bytes(bytes(data), "little")
        self.now_s += ACCESS_S
        if self.log is not None:
            self.log.append(("write", address, value))
        if DMA_BASE <= address < DMA_BASE + RANGE:
            self._write_dma(address - DMA_BASE, value)
        elif self._library.sjm_write(self._handle, address - DESIGN_BASE, value):
            raise BoardError(f"bus error at {address:#x}")

    # The DMA.

    def _channel(self, offset: int) -> tuple[ChannelModel, int]:
        of_receive = offset >= axi_dma.S2MM
        channel = self.receive if of_receive else self.send
        return channel, offset - (axi_dma.S2MM if of_receive else axi_dma.MM2S)

    def _read_dma(self, offset: int) -> int:
        channel, register = self._channel(offset)
        if register == axi_dma.STATUS:
            self.advance(self._cycles_at_once)
        values = {
            axi_dma.CONTROL: channel.control,
            axi_dma.STATUS: channel.status,
            axi_dma.ADDRESS: channel.address & 0xFFFFFFFF,
            axi_dma.ADDRESS_HIGH: channel.address >> 32,
            axi_dma.LENGTH: channel.length,
        }
        return values[register]

    def _write_dma(self, offset: int, value: int) -> None:
        channel, register = self._channel(offset)
        if register == axi_dma.CONTROL:
            if value & axi_dma.RESET:
                self.reset_dma()
                return
            channel.control = value
            if value & axi_dma.RUN and not self.faults.never_starts:
                channel.status &= ~axi_dma.HALTED
            elif not value & axi_dma.RUN:
                channel.status = channel.status & ~axi_dma.IDLE | axi_dma.HALTED
        elif register == axi_dma.ADDRESS:
            channel.address = channel.address >> 32 << 32 | value
        elif register == axi_dma.ADDRESS_HIGH:
            channel.address = channel.address & 0xFFFFFFFF | value << 32
        elif register == axi_dma.LENGTH:
            self._begin(channel, value & self._length_mask)
        elif register == axi_dma.STATUS:
            pass  # interrupt flags, of which there are none
        else:
            raise BoardError(f"no such register of the DMA: {offset:#x}")

    def reset_dma(self) -> None:
        """Reset both channels; what is under way is lost."""
        sent_words = self.faults.sent_words
        self.send, self.receive, self._resume = ChannelModel(), ChannelModel(), False
        self.faults.sent_words = sent_words

    def _begin(self, channel: ChannelModel, length: int) -> None:
        if channel.status & axi_dma.HALTED:
            raise BoardError("a transfer was begun on a channel that is halted")
        if channel.active:
            raise BoardError("a transfer was begun while one is under way")
        width = self._in_bytes if channel is self.send else self._out_bytes
        memory = self.memory_at(channel.address)
        end = channel.address - memory.address + length
        if channel.address % width or length % width or end > len(memory.dram):
            raise BoardError(f"a transfer of {length} bytes at {channel.address:#x} does not fit")
        channel.status &= ~axi_dma.IDLE
        channel.length, channel.moved_words = length, 0
        channel.active = length > 0
        if length == 0:
            self._fail(channel, 1 << 4)
        elif channel.early:
            words = np.frombuffer(b"".join(channel.early), np.uint8)
            ended, channel.early, channel.early_ends = channel.early_ends, [], False
            self._received(words.reshape(-1, self._out_bytes), ended)

    def _window(self, channel: ChannelModel) -> Any:
        """What the DMA reads or writes, shape (bytes,)."""
        memory = self.memory_at(channel.address)
        first = channel.address - memory.address
        return memory.dram[first : first + channel.length]

    def _fail(self, channel: ChannelModel, bit: int) -> None:
        channel.status |= bit | axi_dma.HALTED
        channel.active = False

    def advance(self, cycles: int) -> None:
        """Let cycles pass."""
        while cycles > 0:
            self._inject()
            cycles -= max(1, self._run(cycles))

    def _inject(self) -> None:
        faults, sent = self.faults, self.faults.sent_words

        def due(after: int | None) -> bool:
            return after is not None and sent >= after and self.send.active

        if due(faults.error_after_words):
            faults.error_after_words = None
            self._fail(self.send, faults.error_bit)
        if due(faults.dma_reset_after_words):
            faults.dma_reset_after_words = None
            self.reset_dma()
        if due(faults.design_reset_after_words):
            faults.design_reset_after_words = None
            self._library.sjm_write(self._handle, 0x20, 0b101)  # soft reset, by someone else
            self._resume = False

    def _run(self, cycles: int) -> int:
        """Run the design until a transfer ends; returns cycles."""
        send, receive, faults = self.send, self.receive, self.faults
        stuck = faults.stuck_after_words is not None and faults.sent_words >= (
            faults.stuck_after_words
        )
        sends = send.active and not stuck
        data = np.ascontiguousarray(self._window(send)) if sends else np.zeros(1, np.uint8)
        count = len(data) // self._in_bytes if sends else 0
        takes = receive.active
        if takes:
            room = receive.length // self._out_bytes - receive.moved_words
        else:
            room = EARLY_WORDS - len(receive.early)
            takes = room > 0 and not receive.early_ends
            room = room if takes else 1
        results = np.empty((room, self._out_bytes), np.uint8)
        lasts, dest = np.empty(room, np.uint8), np.zeros(max(1, count), np.uint8)
        if any(each is not None for each in (faults.error_after_words, faults.stuck_after_words)):
            cycles = min(cycles, 64)
        run = SjmRun(
            beats=data.ctypes.data,
            dest=dest.ctypes.data,
            beat_count=count,
            last=not sends,
            resume=self._resume and sends,
            results=results.ctypes.data,
            users=lasts.ctypes.data,
            capacity=room,
            max_cycles=cycles,
            stall_per_1024=0 if takes else NEVER,
            beats_taken=send.moved_words if sends else 0,
        )
        state = self._library.sjm_run(self._handle, ctypes.byref(run))
        if state == RunState.NOTHING_TO_RESUME:
            self._resume = False
            return 1
        if sends:
            faults.sent_words += int(run.beats_taken) - send.moved_words
            send.moved_words = int(run.beats_taken)
            self._resume = send.moved_words < count
            if send.moved_words == count:
                send.active = False
                send.status |= axi_dma.IDLE
        came, ended = results[: int(run.results_taken)], state == RunState.ENDED
        if receive.active:
            self._received(came, ended)
        else:
            receive.early += [bytes(word) for word in came]
            receive.early_ends |= ended
        return int(run.cycles)

    def _received(self, words: Any, ended: bool) -> None:
        receive = self.receive
        if (wrong := self.faults.wrong_bit_after_words) is not None and len(words):
            if wrong < len(words) - 1:  # not in the trailer
                words[wrong, 0] ^= 1
                wrong += 1 << 62
            self.faults.wrong_bit_after_words = wrong - len(words)
        first = receive.moved_words * self._out_bytes
        self._window(receive)[first : first + words.size] = words.reshape(-1)
        receive.moved_words += len(words)
        written = receive.moved_words * self._out_bytes
        if self.log is not None:
            part = bytes(words.reshape(-1)).hex()
            self.log.append(("memory", receive.address + first, part))
        if ended:
            receive.length = written - self.faults.short_by_bytes
            self.faults.short_by_bytes = 0
            receive.active = False
            receive.status |= axi_dma.IDLE
        elif written == receive.length:
            self._fail(receive, 1 << 4)  # the packet is larger than its buffer
