"""What PYNQ loads for the driver: the overlay of a bitstream, its cells, clock and memory.

``pynq`` is imported here alone, in a constructor. Common mistakes are checked before PYNQ is
called, or its errors are translated: they are many and say little.
"""

import os
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from streamjoin.device import axi_dma
from streamjoin.device.manifest import MANIFEST_NAME, Manifest, read_manifest
from streamjoin.errors import DeviceError, InputError, StreamJoinError, UnavailableError
from streamjoin_common.contract import BOARDS

DMA_CELL, DESIGN_CELL = "dma", "streamjoin"
"""Names of the cells in every block design of ``hw/boards``."""

CLOCK_TOLERANCE = 1.05
"""How much faster than the clock that was met a board's may read: its divisors are integers."""

BOARD_FILE = Path("/proc/device-tree/chosen/pynq_board")
"""Where PYNQ's images keep the board's name."""


def unusable() -> str | None:
    """Return why no board can be used here, or None."""
    if find_spec("pynq") is None:
        return (
            "pynq is not installed, which the backend pynq needs: type pip install '.[board]' in a "
            "checkout on a PYNQ board, in PYNQ's environment"
        )
    return None


def board_here() -> str | None:
    """Return the name of this board, one of ``BOARDS``; None for any other."""
    name = os.environ.get("BOARD", "")
    with suppress(OSError):
        name = name or BOARD_FILE.read_text(encoding="utf-8", errors="replace").rstrip("\0\n")
    return name.lower() if name.lower() in BOARDS else None


def _checked(bitstream: Path) -> Manifest:
    """Check that the files of one build are there, for this board; return its manifest."""
    if not bitstream.is_file():
        raise InputError(f"there is no bitstream {bitstream}: name the .bit file of a build")
    manifest = read_manifest(bitstream.with_name(MANIFEST_NAME))
    handoff = bitstream.with_suffix(".hwh")
    if not handoff.is_file():
        raise InputError(f"there is no {handoff}: copy it beside the bitstream, of the same build")
    meant, here = manifest.facts.get("board"), board_here()
    if meant is not None and here is not None and meant != here:
        raise InputError(
            f"{bitstream} is for the board {meant} and this is {here}: build one with  "
            f"streamjoin hw bitstream --board {here}"
        )
    return manifest


class LoadedOverlay:
    """An overlay on the board, with a design and a DMA.

    Parameters
    ----------
    bitstream : Path
        ``.bit`` file with its ``.hwh`` and ``manifest.json`` beside it.

    Attributes
    ----------
    manifest : Manifest
        What lies beside the bitstream.
    design : pynq.DefaultIP
        The design's registers.
    dma_mmio : pynq.MMIO
        The DMA's registers.
    clock_hz : float
        The clock that the board gives the design, in Hz.

    Raises
    ------
    InputError
        If a file is missing, is not what it must be, or is for another board.
    UnavailableError
        If ``pynq`` is missing, or there is no board or no right to load it.
    DeviceError
        If PYNQ cannot load it, or it is the overlay of something else.
    """

    def __init__(self, bitstream: Path) -> None:
        self.manifest = _checked(bitstream)
        try:
            import pynq
            import pynq.lib.dma  # the driver that overlays find for their DMA
        except ImportError as error:
            raise UnavailableError(unusable() or f"pynq does not load: {error}") from None
        self._pynq = pynq
        try:
            self._overlay = pynq.Overlay(str(bitstream))
            cells = self._overlay.ip_dict
            for cell in (DESIGN_CELL, DMA_CELL):
                if cell not in cells:
                    have = ", ".join(sorted(cells)) or "none"
                    raise DeviceError(f"{bitstream} has no cell {cell}, only {have}")
            self.design = getattr(self._overlay, DESIGN_CELL)
            entry = cells[DMA_CELL]
            self.dma_mmio = pynq.MMIO(entry["phys_addr"], entry["addr_range"])
            self.clock_hz = float(pynq.Clocks.fclk0_mhz) * 1e6
            self._check_clock(bitstream)
        except StreamJoinError:
            raise
        except Exception as error:
            # PYNQ passes on whatever its parts raise.
            raise _refusal(bitstream, error) from error

    def _check_clock(self, bitstream: Path) -> None:
        """Refuse a clock that the design was not built for: its results would be wrong at times."""
        clock = self.manifest.facts.get("clock")
        met_hz = clock.get("hz") if isinstance(clock, dict) else None
        if isinstance(met_hz, int | float) and self.clock_hz > CLOCK_TOLERANCE * met_hz:
            raise DeviceError(
                f"the board gives the design {self.clock_hz / 1e6:g} MHz and {bitstream} met its "
                f"timing at {met_hz / 1e6:g} MHz: PYNQ sets the clock by the .hwh, copy the one of "
                "the same build"
            )

    def dma(self) -> Any:
        """Return PYNQ's driver of the DMA, which is started.

        Raises
        ------
        DeadlineError
            If the DMA does not answer: PYNQ's driver would wait for it without end.
        """
        axi_dma.reset(self.dma_mmio)
        return getattr(self._overlay, DMA_CELL)

    def allocate(self, count_bytes: int) -> Any:
        """Allocate memory that the DMA reaches.

        Raises
        ------
        DeviceError
            If there is none.
        """
        try:
            return self._pynq.allocate(shape=(count_bytes,), dtype=np.uint8)
        except (RuntimeError, MemoryError, OSError) as error:
            raise DeviceError(
                f"the board has no {count_bytes} bytes left for the DMA ({error}): end other "
                "programs that use PYNQ, or restart the board"
            ) from error


def _refusal(bitstream: Path, error: Exception) -> StreamJoinError:
    """Say why PYNQ does not load an overlay."""
    said = f"{type(error).__name__}: {error}"
    if "No Devices Found" in str(error):
        return UnavailableError(
            "PYNQ finds no board here: run this on the board, in a login shell of root "
            "(sudo -i), which sets up XRT"
        )
    if os.geteuid() != 0:
        return UnavailableError(
            f"only root may load an overlay: run this in a login shell of root (sudo -i), or in "
            f"the board's Jupyter ({said})"
        )
    return DeviceError(
        f"PYNQ does not load {bitstream} ({said}): copy .bit, .hwh and manifest.json of one build"
    )
