"""How what one component says reaches all lines of a chain: trees of registers that nothing holds.

A wire across a part takes longer than a clock cycle. So what is said passes registers on its way,
as many to every line, and each feeds few others, which can lie between it and what they feed. What
comes back is ORed and added in the same way. The cycles of both ways follow from the number of
lines, and so does how early a core has to ask for a hold.
"""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.chain.line import line_lengths
from streamjoin_hw.rtl.streams import flags_apart

FANOUT = 6
"""Registers that one feeds, and inputs of one OR or sum of lines."""


def spread_levels(params: DesignParams) -> int:
    """Count the registers on the way to a line, none if there is one line only."""
    lines, levels = len(line_lengths(params.cores)), 0
    while FANOUT**levels < lines:
        levels += 1
    return levels


def hold_words(params: DesignParams) -> int:
    """Count the words that must be free in a core's result FIFO for it not to ask for a hold.

    After the write that leaves fewer free, the level shows it (1 cycle), ``hold`` is registered
    (1), ORed over a line (2) and over the lines (1 for each level), and the next scan command is
    withheld, a step a cycle later (1). The commands of these cycles still arrive, and those on
    their way to the lines (1 for each level) and between command and FIFO (the core's register,
    memory, parts, match, word). One less than that is free without a hold.
    """
    return 11 + 2 * spread_levels(params)


def quiet_cycles(params: DesignParams) -> int:
    """Count the cycles without a sign of life after which nothing is left inside a chain.

    A word reaches the ``busy`` of all at most so many cycles after its command: to the line (1 for
    each level), to the core's register (1), that to the core's ``busy`` (3), the OR over a line (2)
    and over the lines (1 for each level), the OR with what is behind the lines (1). Two are spare.
    What leaves a core is on the line in the next cycle and seen there, and the end of the line is
    seen sooner.
    """
    return 9 + 2 * spread_levels(params)


def _groups(many: int, levels: int) -> list[int]:
    """Return how many nodes each level has, the last one ``many``, with fan-outs about alike."""
    fanout = 1
    while fanout**levels < many:
        fanout += 1
    return [-(-many // fanout ** (levels - level)) for level in range(1, levels + 1)]


class Spread:
    """A tree of registers from one to every line, which are kept apart.

    Parameters
    ----------
    params : DesignParams
        The design.
    """

    def __init__(self, params: DesignParams) -> None:
        self.levels = spread_levels(params)
        lines = len(line_lengths(params.cores))
        self.nodes = _groups(lines, self.levels)
        self.there: Value = Const(0, 0)
        # In the cycle after a reset: its own wire need not reach further than to here.
        self.renewed = Signal(init=1)

    @property
    def complete(self) -> Value:
        """Every branch is there; from a register."""
        return self.there[-1] if self.levels else Const(1, 1)

    def grow(self, m: Module) -> None:
        """Build what says that there was a reset, and that branches are there, one by one."""
        m.d.sync += self.renewed.eq(0)
        if self.levels:
            self.there = flags_apart(m, sum(self.nodes))

    def branches(
        self, m: Module, shape: Any, given: Any, *, name: str, init: Any = None
    ) -> list[Any]:
        """Return what each line gets of ``given``; ``init`` until its branch is there."""
        nodes, first = [given], 0
        for level, many in enumerate(self.nodes):
            grown = []
            for index in range(many):
                node: Any = Signal(shape, name=f"{name}{level}_{index}", init=init, reset_less=True)
                with m.If(self.there[first + index]):
                    m.d.sync += node.eq(nodes[index * len(nodes) // many])
                grown.append(node)
            nodes, first = grown, first + many
        return nodes

    def resets(self, m: Module) -> list[Any]:
        """Return a reset for each line, which comes with what was said when the reset was."""
        return self.branches(m, 1, self.renewed, name="line_reset", init=1)

    def settling(self, m: Module, again: Value | None = None) -> Value:
        """Return what is 1 after a reset as long as something from before may still arrive.

        It arrives at the latest from a core that was reset last, over all levels. ``again``: as
        after a reset.
        """
        left = Signal(2 * self.levels + 6, init=-1, reset_less=True)
        m.d.sync += left.eq(left >> 1)
        with m.If(self.renewed if again is None else self.renewed | again):
            m.d.sync += left.eq(left.init)
        return self.renewed | left[0]


def delayed(m: Module, shape: Any, given: Any, cycles: int, *, name: str) -> Any:
    """Return what was given so many cycles ago, whether there was a reset since or not."""
    for cycle in range(cycles):
        late: Any = Signal(shape, name=f"{name}{cycle}", reset_less=True)
        m.d.sync += late.eq(given)
        given = late
    return given


def _gathered(m: Module, params: DesignParams, values: Sequence[Value], name: str) -> Value:
    """Add up (bits: OR) what all cores say, through registers: over each line, then over lines."""
    lengths = list(line_lengths(params.cores))
    # Of a line, four at a time: one LUT.
    fours = [-(-length // 4) for length in lengths]
    levels = [[min(4, length - at) for length in lengths for at in range(0, length, 4)], fours]
    many = len(lengths)
    for nodes in reversed([1, *_groups(many, spread_levels(params))[:-1]][: spread_levels(params)]):
        levels.append([many * (k + 1) // nodes - many * k // nodes for k in range(nodes)])
        many = nodes
    left = list(values)
    for level in levels:
        grown: list[Value] = []
        for size in level:
            group, left = left[:size], left[size:]
            value = Cat(*group).any() if name == "or" else sum(group, Const(0, 1))
            register = Signal(len(value), name=f"{name}_group", reset_less=True)
            m.d.sync += register.eq(value)
            grown.append(register)
        left = grown
    (whole,) = left
    return whole


def gathered_or(m: Module, params: DesignParams, bits: Sequence[Value]) -> Value:
    """OR a bit of every core; two cycles late and one more for each of :func:`spread_levels`."""
    return _gathered(m, params, bits, "or")


def gathered_sum(m: Module, params: DesignParams, numbers: Sequence[Value]) -> Value:
    """Add a number of every core, as late as :func:`gathered_or`."""
    return _gathered(m, params, numbers, "sum")
