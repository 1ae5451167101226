"""How many cycles a word takes to all cores and back, and the tree that takes the reset there."""

import math

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.streams import Component

FANIN = 32
"""Inputs of one registered OR or sum."""

FANOUT = 32
"""Registers that one register of the reset tree feeds."""


def gather_levels(params: DesignParams) -> int:
    """Count the registers between the cores' flags and what is ORed of them."""
    levels, flags = 1, math.ceil(params.cores / FANIN)
    while flags > 1:
        levels, flags = levels + 1, math.ceil(flags / FANIN)
    return levels


def hold_words(params: DesignParams) -> int:
    """Count the words that must be free in a core's result FIFO for it not to ask for a hold.

    After the write that leaves fewer free, the level shows it (1 cycle), ``hold`` is registered
    (1), ORed over the cores (:func:`gather_levels`), and the next scan command is withheld; the
    commands of these cycles, and the two words between command and FIFO (memory, mask), still
    arrive. One word more is free than arrives, and the hold begins one below the limit.
    """
    return 6 + gather_levels(params)


def quiet_cycles(params: DesignParams) -> int:
    """Count the cycles without a sign of life after which nothing is left inside.

    A word reaches the sequencer's ``busy`` so many cycles after its command: command to the core's
    register (1), the OR over the cores (:func:`gather_levels`), the OR with the tree (1). A result
    that leaves a core is inside the tree in the next cycle, and the tree is seen sooner than the
    cores. Twice as many are waited for.
    """
    return 2 * (2 + gather_levels(params))


class ResetTree(Component):
    """Registers that take a reset to many places in the same cycle.

    Every leaf is as many registers behind the input as any other, and every register feeds
    :data:`FANOUT` others at most. They have no reset themselves.

    Parameters
    ----------
    leaves : int
        Places, at least 1.

    Members
    -------
    i : In(1)
        From a register.
    o : Out(leaves)
        The same some cycles later, from registers of their own.
    busy : Out(1)
        A reset is on its way, or arrives in this cycle.
    """

    i: Signal
    o: Signal
    busy: Signal

    def __init__(self, leaves: int) -> None:
        counts = [leaves]
        while counts[0] > FANOUT:
            counts.insert(0, math.ceil(counts[0] / FANOUT))
        self.counts = counts
        super().__init__({"i": In(1), "o": Out(leaves), "busy": Out(1)})

    def elaborate(self, _platform: object) -> Module:
        """Build the levels, the input's side first."""
        m = Module()
        above, firsts = [self.i], [self.i]
        for level, count in enumerate(self.counts):
            # Tools would make one register of those that hold the same.
            here = [
                Signal(init=1, reset_less=True, attrs={"keep": 1}, name=f"reset{level}_{index}")
                for index in range(count)
            ]
            m.d.sync += [each.eq(above[index // FANOUT]) for index, each in enumerate(here)]
            firsts.append(here[0])
            above = here
        m.d.comb += [self.o.eq(Cat(above)), self.busy.eq(Cat(firsts).any())]
        return m
