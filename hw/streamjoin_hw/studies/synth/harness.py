"""A design behind three pins, so that it is placed as inside a chip and not towards its pins.

As a top level of its own a design has hundreds of ports, and each would be a pin somewhere on the
edge of the part: the placer would pull the registers behind them apart, and wide designs would
lack pins. On a board those ports end in registers inside the chip. So here every input comes from
a shift register that one pin fills, and every output goes into a register whose parities are
shifted to another pin: nothing is optimised away, and no path from register to register is left
out.
"""

from typing import Any

from amaranth.hdl import Cat, ClockDomain, Module, Signal
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import DesignParams
from streamjoin_hw.flow.emit import verilog_around
from streamjoin_hw.rtl.streams import Component
from streamjoin_hw.rtl.top import Top

HARNESS_MODULE = "streamjoin_harness"
"""Verilog module of the top level."""


def harness_verilog(params: DesignParams, copies: int = 1) -> str:
    """Return a design, or several that are not connected, in a harness as Verilog."""

    def harness() -> Component:
        if copies > 1:
            return SideBySide(params, copies)
        return Harness(params, by_reference=True)

    return verilog_around(params, harness, HARNESS_MODULE)


class Harness(Component):
    """A design whose ports are shifted in and out, two flip-flops a port bit.

    Parameters
    ----------
    params : DesignParams
        The design.
    by_reference : bool
        See :class:`~streamjoin_hw.rtl.chain.array.Chain`.

    Members
    -------
    clk : In(1)
    serial_in : In(1)
        The next bit of the inputs.
    serial_out : Out(1)
        Parities of the outputs.
    """

    clk: Signal
    serial_in: Signal
    serial_out: Signal

    def __init__(self, params: DesignParams, *, by_reference: bool = False) -> None:
        self.params = params
        self.by_reference = by_reference
        super().__init__({"clk": In(1), "serial_in": In(1), "serial_out": Out(1)})

    def elaborate(self, _platform: object) -> Module:
        """Build the registers around the design."""
        m = Module()
        m.submodules.top = top = Top(self.params, by_reference=self.by_reference)
        # One clock signal for all: a copy of it would rise later in simulation.
        work: Any = ClockDomain("work", reset_less=True, local=True)
        work.clk = top.aclk
        m.domains += work
        m.d.comb += top.aclk.eq(self.clk)
        ports = [
            (getattr(top, name), member.flow)
            for name, member in top.signature.members.items()
            if name != "aclk"
        ]
        inputs = Cat(*(port for port, flow in ports if flow == In))
        outputs = Cat(*(port for port, flow in ports if flow == Out))
        # Two registers each: what is shifted changes in every cycle, what the design sees is local.
        shifted = Signal(len(inputs))
        given = Signal(len(inputs))
        taken = Signal(len(outputs))
        parity = Signal(len(outputs))
        m.d.work += [
            shifted.eq(Cat(self.serial_in, shifted)),
            given.eq(shifted),
            taken.eq(outputs),
            parity.eq(taken ^ Cat(parity[1:], parity[0])),
            self.serial_out.eq(parity[0]),
        ]
        m.d.comb += inputs.eq(given)
        return m


class SideBySide(Component):
    """Copies of a design, each in its harness, of which one shifts its bits to the next.

    What such copies lose in clock beside one of them is lost by the tools: no path leads from one
    design to another.

    Parameters
    ----------
    params : DesignParams
        The design.
    copies : int
        How many, at least 1.

    Members
    -------
    Those of :class:`Harness`.
    """

    clk: Signal
    serial_in: Signal
    serial_out: Signal

    def __init__(self, params: DesignParams, copies: int) -> None:
        self.params = params
        self.copies = copies
        super().__init__({"clk": In(1), "serial_in": In(1), "serial_out": Out(1)})

    def elaborate(self, _platform: object) -> Module:
        """Connect the harnesses in a row."""
        m = Module()
        bit: Any = self.serial_in
        for k in range(self.copies):
            m.submodules[f"copy{k}"] = each = Harness(self.params, by_reference=True)
            m.d.comb += [each.clk.eq(self.clk), each.serial_in.eq(bit)]
            bit = each.serial_out
        m.d.comb += self.serial_out.eq(bit)
        return m
