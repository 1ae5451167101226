"""The boards that designs are to fit: their clocks, watts, and what their parts offer.

No board has run here and no open tool routes these parts, so clocks and watts are assumed unless a
source says otherwise.
"""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from streamjoin_common.installed import shipped

RECORDS = shipped.EXPERIMENTS / "synth"
"""Folder of the stored syntheses."""


@dataclass(frozen=True)
class Board:
    """A board.

    Attributes
    ----------
    name : str
        As tables and charts call it.
    preset : str
        Preset of the same name, whose stored synthesis says what the part offers.
    clock_mhz : float
        Clock that is assumed for a design on it.
    watts : float
        Watts of the whole board at work.
    watts_source : str
        Who says so.
    """

    name: str
    preset: str
    clock_mhz: float
    watts: float
    watts_source: str

    def area(self, preset: str) -> dict[str, float]:
        """Return the shares of its part that a design takes by the cells of a stored synthesis.

        Where that is of another part, its cells are divided by what this one offers: both have
        LUTs of six inputs and block RAM of 18 kbit. ``uram``, UltraRAM, is there where it is used.
        """
        used, here = synthesis(preset)["resources"], synthesis(self.preset)["resources"]
        asked = [name for name in ("lut", "ramb18", "uram") if used.get(name, {}).get("used")]
        return {name: used[name]["used"] / here[name]["available"] for name in asked}


@cache
def synthesis(preset: str) -> dict[str, Any]:
    """Return the stored synthesis of a preset."""
    found: dict[str, Any] = json.loads((RECORDS / f"{preset}.json").read_text(encoding="utf-8"))
    return found


PYNQ_Z2 = Board("PYNQ-Z2", "pynq-z2", 100.0, 5.0, "assumed, twice what a USB port gives")
KV260 = Board(
    "KV260", "kv260", 200.0, 10.1, "at its 12 V rail under a neural network, Simfero 2026"
)
ZCU104 = Board("ZCU104", "zcu104", 200.0, 20.0, "assumed")
BOARDS = (PYNQ_Z2, KV260, ZCU104)
"""From the smallest part to the largest."""
