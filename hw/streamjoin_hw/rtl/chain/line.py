"""Lines that carry results from neighbour to neighbour to where they are queued.

The cores of a chain lie side by side, and so do the wires of a line: whatever is on it moves one
core on in every cycle, and nothing makes it wait. A core puts a result where there is none. At the
end of a line a queue takes what arrives; before it could be full, it stops the cores from adding to
what is under way. So no wire is longer than from one core to the next, save those that stop, and no
decision reaches back from where results are taken.

What comes from far is not held up by what is near, which finds no gap while the line is full. A
queue that takes no result is full at some time, then the core makes no more results, and in the
end all of them: those from afar come to an end, and the near ones have their turn.
"""

import itertools
from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.queues import ResultQueue, landing_places
from streamjoin_hw.rtl.streams import Component, View, met_layout, registers_of

LINE_CORES = 8
"""Maximum cores of a line: a result passes each of them, in a cycle."""

STOP_WORDS = 3
"""Words beside a line's that still arrive after the one by which a queue begins to be full.

Its level shows it (1 cycle), the stop is registered at the queue (1) and in the core (1). Each
register between the last core and the queue makes two more.
"""


def line_lengths(cores: int) -> tuple[int, ...]:
    """Return how many cores each line has: as few lines as there can be, of about one length."""
    lines = -(-cores // LINE_CORES)
    firsts = [cores * line // lines for line in range(lines + 1)]
    return tuple(end - first for first, end in itertools.pairwise(firsts))


def lines_of_cores(cores: int) -> list[int]:
    """Return for each core the line that it is on."""
    return [line for line, length in enumerate(line_lengths(cores)) for _ in range(length)]


def line_layout(layout: data.Layout) -> data.StructLayout:
    """Layout of one place on a line: a result, if it is ``valid``."""
    return data.StructLayout({"valid": 1, "body": layout})


def line_members(params: DesignParams) -> dict[str, Any]:
    """Ports of a core on a line."""
    return place_members(met_layout(params))


def place_members(layout: data.Layout) -> dict[str, Any]:
    """Ports of a place on a line of results of a layout."""
    place = line_layout(layout)
    return {
        "line_i": In(place),
        "line_next_i": In(1),
        "line_o": Out(place),
        "line_next_o": Out(1),
        "line_stop": In(1),
    }


class LinePlace(Component):
    """A core's place on a line.

    Parameters
    ----------
    layout : Layout
        Layout of a result.

    Members
    -------
    results : In(stream.Signature(layout))
        Those of the core; ``ready`` is a register.
    line_i : In(line_layout(layout)), line_o : Out(line_layout(layout))
        From and to the neighbours; out of registers.
    line_next_i : In(1), line_next_o : Out(1)
        What ``valid`` of ``line_i`` and of ``line_o`` will be in the next cycle.
    line_stop : In(1)
        Add no result from the next cycle on.
    """

    results: stream.Interface
    line_i: View
    line_next_i: Signal
    line_o: View
    line_next_o: Signal
    line_stop: Signal

    def __init__(self, layout: data.Layout) -> None:
        self.layout = layout
        super().__init__({"results": In(stream.Signature(layout)), **place_members(layout)})

    def elaborate(self, _platform: object) -> Module:
        """Build the register."""
        m = Module()
        # Known a cycle ahead: nothing comes from the neighbour, and the line is not stopped.
        free = Signal(init=1)
        place = registers_of(line_layout(self.layout), "valid", name="place")
        m.d.comb += [
            self.results.ready.eq(free),
            self.line_o.eq(place),
            self.line_next_o.eq(self.line_i.valid | (self.results.valid & free)),
        ]
        m.d.sync += [
            free.eq(~self.line_next_i & ~self.line_stop),
            place.valid.eq(self.line_next_o),
            place.body.eq(
                Mux(self.line_i.valid, self.line_i.body.as_value(), self.results.p.as_value())
            ),
        ]
        return m


def add_place(m: Module, core: Any, results: stream.Interface) -> View:
    """Add a core's place, between the core's ports; return what is on it."""
    m.submodules.place = place = LinePlace(results.p.shape())
    wiring.connect(m, results, place.results)
    m.d.comb += [
        place.line_i.eq(core.line_i),
        place.line_next_i.eq(core.line_next_i),
        place.line_stop.eq(core.line_stop),
        core.line_o.eq(place.line_o),
        core.line_next_o.eq(place.line_next_o),
    ]
    on_line: View = place.line_o
    return on_line


class LineEnd(Component):
    """The end of a line: registers on the way to where all lines end, and there a queue.

    Latency ``2 + hops`` cycles, throughput 1 result a cycle.

    Parameters
    ----------
    layout : Layout
        Layout of a result.
    cores : int
        Cores of the line.
    hops : int
        Registers between the last core and the queue, which nothing makes wait.

    Members
    -------
    line_i : In(line_layout(layout))
        From the last core.
    reset : In(1)
        Empty it, a cycle late; nothing in it is reset by its clock domain.
    line_stop : Out(1)
        To every core of the line; from a register.
    o : Out(stream.Signature(layout))
        From registers; ``ready`` should come from one, too.
    busy : Out(1)
        A result is inside; from a register, a cycle late.
    """

    line_i: View
    reset: Signal
    line_stop: Signal
    o: stream.Interface
    busy: Signal

    def __init__(self, layout: data.StructLayout, cores: int, hops: int = 0) -> None:
        self.layout = layout
        self.hops = hops
        self.reserve = cores + STOP_WORDS + 2 * hops
        # As many places again as there are results under way: what is queued lasts until new ones
        # arrive.
        self.places = landing_places(self.reserve)
        super().__init__(
            {
                "line_i": In(line_layout(layout)),
                "reset": In(1),
                "line_stop": Out(1),
                "o": Out(stream.Signature(layout)),
                "busy": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the registers of the way and the queue."""
        m = Module()
        # Nothing here is reset by the domain, whose wire would cross the part beside the line's,
        # which ends in a register, as it does in each core.
        reset = Signal(init=1, reset_less=True)
        m.d.sync += reset.eq(self.reset)
        m.submodules.queue = queue = ResultQueue(
            self.layout, self.places + 1, self.reserve, clear=reset
        )
        arrives, on_way, stop = self.line_i, [], queue.few
        for hop in range(self.hops):
            place = registers_of(
                line_layout(self.layout), "valid", name=f"hop{hop}", reset_less=True
            )
            later = Signal(name=f"stop{hop}", reset_less=True)
            m.d.sync += [place.eq(arrives), later.eq(stop)]
            with m.If(reset):
                m.d.sync += place.valid.eq(0)
            arrives, stop = place, later
            on_way.append(place.valid)
        inside = Signal(name="inside", reset_less=True)
        m.d.comb += [
            queue.word.eq(arrives.body),
            queue.write.eq(arrives.valid),
            self.o.payload.eq(queue.head),
            self.o.valid.eq(queue.is_there),
            queue.take.eq(self.o.ready),
            self.line_stop.eq(stop),
            self.busy.eq(inside),
        ]
        m.d.sync += inside.eq(queue.busy | Cat(*on_way).any())
        return m


def connect_lines(
    m: Module,
    layout: data.StructLayout,
    cores: Sequence[Any],
    resets: Sequence[Value],
    hops: int = 0,
) -> list[LineEnd]:
    """Put cores on lines, the first one of each without a neighbour; return the lines' ends.

    ``hops``: registers between a line's last core and its queue.
    """
    ends: list[LineEnd] = []
    left = list(cores)
    for length, reset in zip(line_lengths(len(cores)), resets, strict=True):
        m.submodules[f"line{len(ends)}"] = end = LineEnd(layout, length, hops)
        m.d.comb += end.reset.eq(reset)
        line, left = left[:length], left[length:]
        for before, after in zip(line, [*line[1:], end], strict=True):
            m.d.comb += [after.line_i.eq(before.line_o), before.line_stop.eq(end.line_stop)]
            if after is not end:
                m.d.comb += after.line_next_i.eq(before.line_next_o)
        ends.append(end)
    return ends
