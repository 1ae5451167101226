"""What a device is to pynq: a block design with a DMA and a design, and memory with a cache.

What is not flushed the DMA does not see, what is not invalidated the host does not see. Time is the
device's own and passes with accesses to its registers: how long a wait lasts does not depend on the
machine that the tests run on.
"""

import weakref
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pynq
from pynq.buffer import PynqBuffer
from pynq.pl_server.device import Device

from streamjoin.device import pynq as driver
from streamjoin.device import watch
from streamjoin_common.contract import DesignParams, input_word_bits, result_word_bits

DMA_BASE, DESIGN_BASE, RANGE = 0x4040_0000, 0x43C0_0000, 0x1_0000
MEMORY_BASE, PAGE = 0x1000_0000, 4096

ACCESS_S = 0.002
"""Seconds that an access to a register takes: much, so that a deadline is few of them."""


class BoardError(Exception):
    """The driver did what a board would not survive."""


@dataclass
class Memory:
    """One allocation: what the host sees, and what the DMA sees."""

    address: int
    host: Any
    dram: Any
    buffer: Any = None


class MemoryDevice(Device):
    """A pynq device without registers.

    Parameters
    ----------
    params : DesignParams
        The design.
    length_bits : int
        Width of the DMA's length registers.
    """

    def __init__(self, params: DesignParams, length_bits: int) -> None:
        super().__init__("modelled")
        self.name, self.arch = "modelled", "armv7l"
        self.capabilities = {"REGISTER_RW": True}
        self.memories: dict[int, Memory] = {}
        self.downloads: list[str] = []
        self.now_s = 0.0
        self._next_address = MEMORY_BASE
        self._length_bits = length_bits
        self._in_bytes = input_word_bits(params) // 8
        self._out_bytes = result_word_bits(params) // 8

    def get_bitfile_metadata(self, _bitfile_name: str, partial: bool = False) -> Any:
        """Describe the block design as pynq's parser of a .hwh file does."""
        widths = {"c_m_axi_mm2s_data_width": self._in_bytes * 8}
        widths["c_m_axi_s2mm_data_width"] = self._out_bytes * 8
        dma = {
            "c_include_sg": "0",
            "c_include_mm2s": "1",
            "c_include_s2mm": "1",
            "c_include_mm2s_dre": "0",
            "c_include_s2mm_dre": "0",
            "c_micro_dma": "0",
            "c_sg_length_width": str(self._length_bits),
            **{name: str(width) for name, width in widths.items()},
        }
        cells = {
            "dma": ("xilinx.com:ip:axi_dma:7.1", DMA_BASE, dma),
            "streamjoin": ("streamjoin:streamjoin:streamjoin_board:1.0", DESIGN_BASE, {}),
        }
        ip_dict = {
            name: {
                "phys_addr": base,
                "addr_range": RANGE,
                "type": kind,
                "fullpath": name,
                "parameters": parameters,
                "registers": {},
                "interrupts": {},
                "gpio": {},
                "state": None,
            }
            for name, (kind, base, parameters) in cells.items()
        }
        empty = ("gpio_dict", "interrupt_pins", "interrupt_controllers", "hierarchy_dict")
        return SimpleNamespace(
            ip_dict=ip_dict,
            mem_dict={},
            clock_dict={},
            systemgraph=None,
            **{name: {} for name in empty},
        )

    def download(self, bitstream: Any, parser: Any = None) -> None:
        """Take note of the bitstream."""
        self.downloads.append(bitstream.bitfile_name)
        self.post_download(bitstream, parser, self.name)

    def allocate(self, shape: Any, dtype: Any, **_options: Any) -> Any:
        """Allocate memory that host and DMA see through a cache."""
        count_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        address = self._next_address
        self._next_address += -(-count_bytes // PAGE) * PAGE + PAGE
        host = bytearray(count_bytes)
        dram = np.random.default_rng(address).integers(0, 256, count_bytes, dtype=np.uint8)
        self.memories[address] = Memory(address, np.frombuffer(host, np.uint8), dram)
        made: Any = PynqBuffer(
            shape, dtype, buffer=host, device=self, device_address=address, bo=address
        )
        made.memory, made.pointer, made.return_to = self, address, self
        self.memories[address].buffer = weakref.ref(made)
        return made

    def return_pointer(self, pointer: int) -> None:
        """Free memory."""
        # A buffer without memory is not freed again by pynq when it is collected.
        buffer = self.memories.pop(pointer).buffer()
        if buffer is not None:
            del buffer.memory

    def flush(self, bo: int, offset: int, _pointer: int, count_bytes: int) -> None:
        """Write the cache back."""
        memory, part = self.memories[bo], slice(offset, offset + count_bytes)
        memory.dram[part] = memory.host[part]

    def invalidate(self, bo: int, offset: int, _pointer: int, count_bytes: int) -> None:
        """Drop the cache."""
        memory, part = self.memories[bo], slice(offset, offset + count_bytes)
        memory.host[part] = memory.dram[part]

    def memory_at(self, address: int) -> Memory:
        """Find what is allocated at an address."""
        for memory in self.memories.values():
            if memory.address <= address < memory.address + len(memory.dram):
                return memory
        raise BoardError(f"nothing is allocated at {address:#x}")


def install(board: MemoryDevice) -> None:
    """Make a board the one that pynq finds, and its time the driver's, for good."""
    Device.active_device = board
    # The real one reads registers of the processor.
    pynq.Clocks = SimpleNamespace(fclk0_mhz=100.0)
    for module in (driver, watch):
        module.monotonic = lambda: board.now_s
