"""How a tuple finds its partners: the walk through a bucket, in the order of arrival.

Why the walk is exact. A tuple takes with it, from the cycle in which it was accepted, the ``tail``
and the ``head`` of the other stream: it may see the tuples from the one to before the other, no
more and no fewer, however late it looks. It saw its bucket after all earlier tuples were pushed
into it, and before all later ones. The names of a bucket, and the links behind them, are followed
in the order in which they were pushed, newest first, and the walk ends at the first that is not in
the window or not older than the one before. What is skipped is older still: no partner
is missed. A number that is out of date may look as if it were in the window, since numbers wrap,
buckets are never cleared and slots are written anew; the slot then holds another tuple, which is in
the window. If its key is another, it gives no result. If its key is the same it is in this bucket,
was therefore pushed after the name that is out of date, has been met already, and is not older than
what was met since: the walk ends there. So no partner is met twice, and none is invented. Nothing
of this depends on what memories held at the start.

The same holds for a key's own bucket (:mod:`streamjoin_hw.rtl.hash.stream_index`): it ends with the
shared bucket as it was when the own one was claimed.

A tuple's slot is not written anew while an earlier tuple may read it: at most ``lead_tuples`` are
accepted behind a tuple that still looks, and the ring has as many slots more than a window.
"""

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.hash.index import ring_bits, sequence_bits
from streamjoin_hw.rtl.hash.ring import lane_bits, lane_of, row_bits, row_of
from streamjoin_hw.rtl.streams import Component, View, arrival_layout, payload_of


def stamp_bits(params: DesignParams) -> int:
    """Bits of the number of an arrival; twice as many as may be inside at a time, and more."""
    return params.lead_tuples.bit_length() + 1


def task_layout(params: DesignParams) -> data.StructLayout:
    """Layout of a tuple that has partners to look for.

    ``tuple`` as it arrived; ``slots``, where the tuples are that its bucket names, newest first;
    ``wanted``, which of them to look at; ``deep``, all are in the window and there may be partners
    behind; ``last``, position of the last one in the window, counted from ``tail``, the oldest;
    ``stamp``, the number of its arrival.
    """
    return data.StructLayout(
        {
            "tuple": arrival_layout(params),
            "slots": data.ArrayLayout(ring_bits(params), params.ways),
            "wanted": params.ways,
            "deep": 1,
            "last": ring_bits(params),
            "tail": sequence_bits(params),
            "stamp": stamp_bits(params),
        }
    )


class Walker(Component):
    """Reads what a bucket names, up to ``lanes`` tuples a cycle, one task after the other.

    A task whose bucket names all that is in the window takes a cycle for each tuple to look at in
    its busiest lane. Else the walk begins with a tuple a cycle, newest first, as each link is
    needed; it is known three cycles after its tuple is read. Where a beat may have two results, two
    tuples are read in a cycle, if they are in different lanes. Once a link leads out of the window
    only the wanted ones of the rest are read, ``lanes`` a cycle. The next task follows at once.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    i : In(stream.Signature(task_layout(params)))
    hold : In(1)
        Read nothing in this cycle.
    rows : Out(ArrayLayout(row_bits(params), lanes)), reads : Out(lanes)
        Rows to read, and in which lanes.
    links : In(ArrayLayout(sequence_bits(params), lanes))
        Links of the tuples read a cycle ago.
    tuple : Out(arrival_layout(params))
        The tuple that looks for partners in this cycle.
    stamp : Out(stamp_bits(params))
        The number of its arrival.
    done : Out(1)
        This is the last cycle of a task.
    busy : Out(1)
        A task is inside.
    """

    i: stream.Interface
    hold: Signal
    rows: View
    reads: Signal
    links: View
    tuple: View
    stamp: Signal
    done: Signal
    busy: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        super().__init__(
            {
                "i": In(stream.Signature(task_layout(params))),
                "hold": In(1),
                "rows": Out(data.ArrayLayout(row_bits(params), params.lanes)),
                "reads": Out(params.lanes),
                "links": In(data.ArrayLayout(sequence_bits(params), params.lanes)),
                "tuple": Out(arrival_layout(params)),
                "stamp": Out(stamp_bits(params)),
                "done": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the list of slots and who reads from it."""
        m = Module()
        ways = self.params.ways
        task = payload_of(task_layout(self.params))
        # While the walk may go deeper the list is read from its front; `here` is what is left.
        here = Signal(ways)
        deeper = Signal()
        active = Signal()
        m.d.comb += [
            self.tuple.eq(task.tuple),
            self.stamp.eq(task.stamp),
            active.eq(self.busy & ~self.hold),
        ]
        picked = self._pick(m, task, here, deeper, active)
        rest = Signal(ways)
        # Which of the first in the list are read for their links in this cycle.
        steps = Signal(self.params.beat_results)
        left = Signal(ways)
        m.d.comb += [
            left.eq(here),
            steps.eq(Mux(active & deeper, picked, 0)),
            rest.eq(task.wanted & ~picked),
            self.done.eq(active & ~deeper & (rest == 0)),
            self.i.ready.eq(~self.busy | self.done),
        ]
        for step in range(1, self.params.beat_results + 1):
            with m.If(steps[step - 1]):
                m.d.comb += left.eq(here >> step)
                m.d.sync += [
                    here.eq(left),
                    task.wanted.eq(task.wanted >> step),
                    *(task.slots[k].eq(task.slots[k + step]) for k in range(ways - step)),
                ]
        with m.If(active & ~deeper):
            m.d.sync += task.wanted.eq(rest)
        self._follow(m, task, [here, left], deeper, steps)
        with m.If(self.i.ready):
            m.d.sync += [
                self.busy.eq(self.i.valid),
                task.eq(self.i.payload),
                here.eq(~Const(0, ways)),
                deeper.eq(self.i.p.deep),
            ]
        return m

    def _pick(self, m: Module, task: View, here: Signal, deeper: Signal, active: Signal) -> Value:
        """Read the front of the list, or in each lane the first one wanted; return which.

        The front are as many as links are followed in a cycle; of two in a lane the first.
        """
        params = self.params
        picked: Value = Const(0, params.ways)
        for lane in range(params.lanes):
            asking = Signal(params.ways, name=f"asking{lane}")
            first = Signal(params.ways, name=f"first{lane}")
            for way in range(params.ways):
                slot = task.slots[way]
                mine: Value = lane_of(params, slot) == lane if lane_bits(params) else Const(1, 1)
                front = here[way] if way < params.beat_results else Const(0, 1)
                m.d.comb += asking[way].eq(mine & Mux(deeper, front, task.wanted[way]))
                with m.If(first[way]):
                    m.d.comb += self.rows[lane].eq(row_of(params, slot))
            m.d.comb += [
                first.eq(asking & (~asking + 1)[: params.ways]),
                self.reads[lane].eq(asking.any() & active),
            ]
            picked |= first
        return picked

    def _follow(
        self, m: Module, task: View, lists: list[Signal], deeper: Signal, steps: Signal
    ) -> None:
        """Append what links name to the list, two cycles after their tuples were read."""
        params = self.params
        here, left = lists
        awaited, returned = Signal.like(steps), Signal.like(steps)
        ends = Signal()
        before: Value = task.last
        # What is in the list: what is left of it and, link by link, one more.
        listed: Value = left
        leads_on: Value = Const(1, 1)
        for step in range(params.beat_results):
            lane = payload_of(max(1, lane_bits(params)), name=f"lane{step}")
            link = payload_of(sequence_bits(params), name=f"link{step}")
            place = Signal(sequence_bits(params), name=f"place{step}")
            follows = Signal(name=f"follows{step}")
            m.d.comb += [
                place.eq(link - task.tail),
                follows.eq(leads_on & returned[step] & (place < before)),
            ]
            m.d.sync += [
                lane.eq(lane_of(params, task.slots[step])),
                link.eq(Array(self.links)[lane]),
            ]
            with m.If(returned[step] & ~follows):
                m.d.comb += ends.eq(1)
            with m.If(follows):
                m.d.sync += task.last.eq(place)
                filled = Cat(Const(1, 1), listed)
                for k in range(params.ways):
                    with m.If(filled[k] & ~listed[k]):
                        m.d.sync += [
                            here[k].eq(1),
                            task.wanted[k].eq(1),
                            task.slots[k].eq(link[: ring_bits(params)]),
                        ]
            before, leads_on, listed = place, follows, Cat(Const(1, 1), listed)[: params.ways]
        m.d.sync += [
            awaited.eq(Mux(ends, 0, steps)),
            returned.eq(Mux(ends, 0, awaited)),
        ]
        with m.If(ends):
            m.d.sync += deeper.eq(0)
