"""Paths that must not be there: a claim about structure, which holds in every cycle at once."""

from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib.wiring import Out

from streamjoin_hw.formal.faults import Fault
from streamjoin_hw.formal.harness import Harness
from streamjoin_hw.formal.passage import ITEM
from streamjoin_hw.rtl.streams import PipeReg
from streamjoin_hw.rtl.trees import Merger, MergeTree

VALID_AFTER_READY = Fault(
    "rtl.streams",
    "self.o.valid.eq(one)",
    "self.o.valid.eq(one & self.o.ready)",
    "valid waits for ready",
)
READY_THROUGH = Fault(
    "rtl.streams",
    "self.i.ready.eq(~spare_valid)",
    "self.i.ready.eq(~spare_valid | self.o.ready)",
    "ready runs through the register stage",
)
LINK_WAITS = Fault(
    "rtl.trees",
    "self.o.valid.eq(queue.is_there)",
    "self.o.valid.eq(queue.is_there & self.o.ready)",
    "valid of a link waits for ready",
)


@dataclass(frozen=True)
class Path:
    """A combinational path between two ports of a component.

    ``source`` and ``sink`` are flat port names, ``why`` the rule that the path would break.
    """

    source: str
    sink: str
    why: str


class Around(Harness):
    """A component with every input free.

    Parameters
    ----------
    name : str
        ``"pipe_reg"``, ``"merger"`` or ``"tree"``, the last two with three inputs.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    @classmethod
    def pipe_reg(cls) -> "Around":
        """Make one around a register stage."""
        return cls("pipe_reg")

    @classmethod
    def merger(cls) -> "Around":
        """Make one around a merger of three."""
        return cls("merger")

    @classmethod
    def tree(cls) -> "Around":
        """Make one around a tree over three."""
        return cls("tree")

    @staticmethod
    def all_paths(inputs: int) -> tuple[Path, ...]:
        """Return what the rules of :mod:`streamjoin_hw.rtl.streams` forbid."""
        paths = [Path("o__ready", sink, "valid waits for ready") for sink in _OFFER]
        for name in ["i"] if inputs == 1 else [f"i__{k}" for k in range(inputs)]:
            paths.append(Path("o__ready", f"{name}__ready", "ready runs through"))
            for source in (f"{name}__valid", f"{name}__payload"):
                paths += [Path(source, sink, "an offer runs through") for sink in _OFFER]
        return tuple(paths)

    def prove(self, m: Module) -> None:
        """Add the component; the paths are looked for from outside."""
        dut: Any
        if self.name == "pipe_reg":
            dut = PipeReg(ITEM)
        elif self.name == "merger":
            dut = Merger(ITEM, 3)
        else:
            dut = MergeTree(ITEM, 3, 2)
        self.drive(m, dut)
        for path, member, value in dut.signature.flatten(dut):
            if member.flow == Out:
                name = "__".join(str(part) for part in path)
                port = Signal(len(Value.cast(value)), name=f"o_{name}")
                # Two inverters: a path without any gate is one that Yosys has no cell to follow.
                m.d.comb += port.eq(~(~Value.cast(value)))
                self.ports.append(port)


_OFFER = ("o__valid", "o__payload")
