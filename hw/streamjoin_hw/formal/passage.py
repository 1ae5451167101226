"""What enters leaves: once, unchanged, in order for each source, and nothing else."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring

from streamjoin_hw.formal.faults import Fault
from streamjoin_hw.formal.harness import Harness
from streamjoin_hw.rtl.chain.line import LinePlace, connect_lines
from streamjoin_hw.rtl.queues import ResultQueue
from streamjoin_hw.rtl.split.queue import Queue
from streamjoin_hw.rtl.streams import PingPongReg, PipeReg
from streamjoin_hw.rtl.trees import LINK_WORDS, Link, Merger, MergeTree

ITEM = data.StructLayout({"origin": 2, "number": 2})
"""Payload of the proofs: who sent it, and data that distinguishes what must not be mixed up.

One bit would do for what is copied and never looked at (data independence); two leave room for
a component that drops one and repeats another.
"""

QUEUE_JUMPER = Fault(
    "rtl.split.queue",
    "(self.busy | ~self.o.ready)",
    "~self.o.ready",
    "a payload is taken to have passed although others are before it",
)
OVERWRITTEN = Fault(
    "rtl.streams",
    "holds.eq(comes & (enters == k))",
    "holds.eq(comes & (enters != k))",
    "the register that was not filled is taken to be full",
)
DEAF_CORE = Fault(
    "rtl.chain.line",
    "free.eq(~self.line_next_i & ~self.line_stop)",
    "free.eq(~self.line_next_i)",
    "a core puts results on a line that was stopped",
)
HASTY_LINK = Fault(
    "rtl.trees",
    "self.words, self.RESERVE, self.clear",
    "self.words, self.RESERVE - 1, self.clear",
    "the queue of a link has a place less than what is on its way",
)


class PipeStage:
    """The registers of a :class:`~streamjoin_hw.rtl.streams.PipeReg` at a path."""

    def __init__(self, harness: Harness, path: str) -> None:
        self.spare_valid: Any = harness.probe(1, f"{path}.spare_valid")
        self.spare: Any = ITEM(harness.probe(ITEM.size, f"{path}.spare"))

    def claim(self, m: Module) -> None:
        """Claim which of their states can be reached, beside what is claimed of every stage."""


class PingPongTurns:
    """What decides in a :class:`~streamjoin_hw.rtl.streams.PingPongReg` at a path."""

    def __init__(self, harness: Harness, path: str) -> None:
        self.harness = harness
        self.full = [harness.probe(1, f"{path}.full{k}") for k in (0, 1)]
        self.enters, self.leaves, self.one, self.both = (
            harness.probe(1, f"{path}.{name}") for name in ("enters", "leaves", "one", "both")
        )

    def claim(self, m: Module) -> None:
        """Claim which of their states can be reached."""
        claim, (first, second) = self.harness.claim, self.full
        claim(m, self.one == (first | second), "one register is full, or none")
        claim(m, self.both == (first & second), "both registers are full, or not")
        same = self.enters == self.leaves
        claim(m, same == (first == second), "the registers take turns")
        due = Mux(self.leaves, second, first)
        claim(m, ~self.one | due, "what is full longest is given first")


class PingPongStage(PingPongTurns):
    """The registers of a :class:`~streamjoin_hw.rtl.streams.PingPongReg` at a path."""

    def __init__(self, harness: Harness, path: str) -> None:
        super().__init__(harness, path)
        kept = [harness.probe(ITEM.size, f"{path}.kept{k}") for k in (0, 1)]
        self.spare_valid: Any = self.both
        self.spare: Any = ITEM(Mux(self.leaves, kept[0], kept[1]))


class Passage(Harness):
    """Streams in, one stream out.

    The solver watches one payload of its choice: ``ahead`` counts the payloads of the same
    source that must leave before it.

    Parameters
    ----------
    sources : int
        Streams that go in, up to 4.
    capacity : int
        Payloads that can be inside.
    busy_delay : int
        Cycles that ``busy`` is late.
    stage : str, optional
        Path of the register stage in which everything inside is, ``kind``: with it the proof
        states which states can be reached, and induction closes.
    kind : type
        What is known of its registers, :class:`PipeStage` or :class:`PingPongStage`.
    turns : bool
        Also claim that nobody is passed over more often than there are others.
    """

    def __init__(
        self,
        sources: int,
        capacity: int,
        *,
        busy_delay: int = 0,
        stage: str | None = None,
        kind: type[PipeStage] | type[PingPongStage] = PingPongStage,
        turns: bool = False,
    ) -> None:
        super().__init__()
        self.sources = sources
        self.capacity = capacity
        self.busy_delay = busy_delay
        self.turns = turns
        self.which = self.constant(range(max(2, sources)), "which")
        self.pick = self.free(1, "pick")
        self.turn = self.probe(sources, "dut.turn") if turns else None
        self.stage = None if stage is None else kind(self, stage)

    def parts(self, m: Module) -> tuple[list[Any], Any, Any]:
        """Make the component; return its input streams, its output stream and ``busy``."""
        raise NotImplementedError

    def prove(self, m: Module) -> None:
        """Count what is inside, watch one payload, claim."""
        inputs, output, busy = self.parts(m)
        self.assume(m, self.which < self.sources)
        for k, each in enumerate(inputs):
            self.assume(m, ~each.valid | (each.p.origin == k))
            self.keep_the_rules(m, each)
        self.claim_the_rules(m, output)

        inside = [Signal(range(self.capacity + 2), name=f"inside{k}") for k in range(self.sources)]
        entering, leaving = Signal(self.sources), Signal(self.sources)
        for k, each in enumerate(inputs):
            m.d.comb += [
                entering[k].eq(each.valid & each.ready),
                leaving[k].eq(output.valid & output.ready & (output.p.origin == k)),
            ]
            m.d.sync += inside[k].eq(inside[k] + entering[k] - leaving[k])
        total = sum(inside[1:], inside[0])
        offers_something = Signal()
        m.d.comb += offers_something.eq(0)
        for k in range(self.sources):
            with m.If(output.p.origin == k):
                m.d.comb += offers_something.eq(inside[k] != 0)
        self.claim(m, ~output.valid | offers_something, "nothing leaves that did not enter")
        self.claim(m, total <= self.capacity, f"at most {self.capacity} payloads are inside")
        empty = total == 0
        for _ in range(self.busy_delay):
            empty = self.last(m, empty)
        m.d.comb += (settled := Signal()).eq(self.started if self.busy_delay else 1)
        self.claim(m, ~settled | (busy != 0) | empty, "what is not busy has lost nothing")
        self._watch(m, inputs, output, inside, (entering, leaving))
        if self.turns:
            self._take_turns(m, inputs, entering)

    def _watch(
        self,
        m: Module,
        inputs: list[Any],
        output: Any,
        inside: list[Any],
        moves: tuple[Signal, Signal],
    ) -> None:
        """Follow the payload of the solver's choice; ``moves`` are what enters and what leaves."""
        entering, leaving = moves
        watching, ahead = Signal(), Signal(range(self.capacity + 2))
        kept, given = Signal(ITEM.size), Signal(ITEM.size)
        enters, leaves, before = Signal(), Signal(), Signal(range(self.capacity + 2))
        for k, each in enumerate(inputs):
            with m.If(self.which == k):
                m.d.comb += [
                    enters.eq(entering[k]),
                    leaves.eq(leaving[k]),
                    before.eq(inside[k]),
                    given.eq(each.payload),
                ]
        with m.If(watching & leaves):
            m.d.sync += [ahead.eq(ahead - 1), watching.eq(ahead != 0)]
        with m.If(~watching & enters & self.pick):
            m.d.sync += [watching.eq(1), ahead.eq(before - leaves), kept.eq(given)]
        due = watching & (ahead == 0)
        mine = output.valid & (output.p.origin == self.which)
        self.claim(
            m,
            ~(due & mine) | (output.payload.as_value() == kept),
            "payloads of one source leave unchanged and in the order in which they entered",
        )
        if self.stage is None:
            return
        self.stage.claim(m)
        spare_valid, spare = self.stage.spare_valid, self.stage.spare
        spare_mine = spare_valid & (spare.origin == self.which)
        behind = Mux(mine, 1, 0)
        self.claim(m, ~spare_valid | output.valid, "the spare entry fills behind the front one")
        for k in range(self.sources):
            held = (output.valid & (output.p.origin == k)) + (spare_valid & (spare.origin == k))
            self.claim(m, inside[k] == held, f"both entries together hold what is inside of {k}")
        self.claim(
            m,
            ~spare_valid | (spare.origin < self.sources),
            "the spare entry holds what some source sent",
        )
        self.claim(
            m,
            ~watching
            | ((ahead == 0) & mine)
            | ((ahead == behind) & spare_mine & (spare.as_value() == kept)),
            "the watched payload is in the front entry or the spare one",
        )

    def _take_turns(self, m: Module, inputs: list[Any], entering: Any) -> None:
        """Count how often the chosen source is passed over while it offers something."""
        passed_over = Signal(range(self.sources + 1))
        offers, served = Signal(), Signal()
        for k, each in enumerate(inputs):
            with m.If(self.which == k):
                m.d.comb += [offers.eq(each.valid), served.eq(entering[k])]
        with m.If(~offers | served):
            m.d.sync += passed_over.eq(0)
        with m.Elif(entering.any() & (passed_over != self.sources)):
            m.d.sync += passed_over.eq(passed_over + 1)
        self.claim(
            m,
            passed_over < self.sources,
            f"an input with an offer is passed over at most {self.sources - 1} times",
        )
        # Only those between the one that was served first since the offer and the one whose turn
        # it is have been served.
        orders = []
        for now in range(self.sources):
            between = Signal(range(self.sources), name=f"between{now}")
            for k in range(self.sources):
                with m.If(self.which == k):
                    m.d.comb += between.eq((now - k - 1) % self.sources)
            orders.append((self.turn == 1 << now) & (passed_over <= between))
        self.claim(m, Cat(*orders).any(), "turns are taken in a circle")


class PipeRegPassage(Passage):
    """The register stage."""

    def __init__(self) -> None:
        super().__init__(1, 2, stage="dut", kind=PipeStage)

    def parts(self, m: Module) -> tuple[list[Any], Any, Any]:
        """Make the stage."""
        dut = PipeReg(ITEM)
        self.drive(m, dut)
        return [dut.i], dut.o, dut.busy


class PingPongPassage(Passage):
    """The register stage whose two registers take turns."""

    def __init__(self) -> None:
        super().__init__(1, 2, stage="dut")

    def parts(self, m: Module) -> tuple[list[Any], Any, Any]:
        """Make the stage."""
        dut = PingPongReg(ITEM)
        self.drive(m, dut)
        return [dut.i], dut.o, dut.busy


class MergerPassage(Passage):
    """A merger of three."""

    def __init__(self) -> None:
        super().__init__(3, 2, stage="dut.output", turns=True)

    def parts(self, m: Module) -> tuple[list[Any], Any, Any]:
        """Make the merger."""
        dut = Merger(ITEM, self.sources)
        self.drive(m, dut)
        return [dut.i[k] for k in range(self.sources)], dut.o, dut.busy


class TreePassage(Passage):
    """Three mergers over three streams, one of them with a single input."""

    def __init__(self) -> None:
        super().__init__(3, 3 * LINK_WORDS, busy_delay=1)

    def parts(self, m: Module) -> tuple[list[Any], Any, Any]:
        """Make the tree."""
        dut = MergeTree(ITEM, self.sources, 2)
        self.drive(m, dut)
        return [dut.i[k] for k in range(self.sources)], dut.o, dut.busy


class FifoPassage(Passage):
    """The FIFO that queues a core's results, written while it says that there is room."""

    WORDS = 5

    def __init__(self) -> None:
        super().__init__(1, self.WORDS)

    def parts(self, m: Module) -> tuple[list[Any], Any, Any]:
        """Make the FIFO between two streams."""
        m.submodules.dut = fifo = ResultQueue(ITEM, self.WORDS, 1)
        inside = Signal(range(self.WORDS + 1))
        source, sink = stream.Signature(ITEM).create(), stream.Signature(ITEM).create()
        m.d.comb += [
            source.valid.eq(self.free(1, "i_valid")),
            source.payload.eq(self.free(ITEM.size, "i_payload")),
            sink.ready.eq(self.free(1, "o_ready")),
            fifo.word.eq(source.payload),
            fifo.write.eq(source.valid & source.ready),
            source.ready.eq(inside < self.WORDS),
            sink.payload.eq(fifo.head),
            sink.valid.eq(fifo.is_there),
            fifo.take.eq(sink.ready),
        ]
        m.d.sync += inside.eq(inside + fifo.write - (sink.valid & sink.ready))
        return [source], sink, fifo.busy


class QueuePassage(Passage):
    """The queue of SplitJoin's halves, with few places, and the register stage behind it."""

    PLACES = 4

    def __init__(self) -> None:
        super().__init__(1, self.PLACES + 2)

    def parts(self, m: Module) -> tuple[list[Any], Any, Any]:
        """Make the queue between two streams."""
        m.submodules.dut = queue = Queue(ITEM, self.PLACES)
        m.submodules.behind = behind = PipeReg(ITEM)
        wiring.connect(m, queue.o, behind.i)
        m.d.comb += [
            queue.i.valid.eq(self.free(1, "i_valid")),
            queue.i.payload.eq(self.free(ITEM.size, "i_payload")),
            behind.o.ready.eq(self.free(1, "o_ready")),
        ]
        return [queue.i], behind.o, queue.busy | behind.busy


class LinePassage(Passage):
    """Two cores' places on a line and its end, with a queue that is as small as it may be."""

    PLACES = 8
    HOPS = 1

    def __init__(self) -> None:
        super().__init__(2, self.PLACES + 4 + self.HOPS, busy_delay=1)

    def parts(self, m: Module) -> tuple[list[Any], Any, Any]:
        """Make the line between two streams and one."""
        places = [LinePlace(ITEM) for _ in range(self.sources)]
        for k, place in enumerate(places):
            m.submodules[f"place{k}"] = place
            m.d.comb += [
                place.results.valid.eq(self.free(1, f"i{k}_valid")),
                place.results.payload.eq(self.free(ITEM.size, f"i{k}_payload")),
            ]
        (end,) = connect_lines(m, ITEM, places, [Const(0, 1)], self.HOPS)
        end.places = self.PLACES
        m.d.comb += end.o.ready.eq(self.free(1, "o_ready"))
        on_line = Cat(*(place.line_o.valid for place in places)).any()
        # A core says at the earliest a cycle late that there is something on its place.
        return [place.results for place in places], end.o, end.busy | self.last(m, on_line)


class LinkPassage(Passage):
    """A link."""

    def __init__(self) -> None:
        super().__init__(1, LINK_WORDS)

    def parts(self, m: Module) -> tuple[list[Any], Any, Any]:
        """Make the link."""
        dut = Link(ITEM)
        self.drive(m, dut)
        return [dut.i], dut.o, dut.busy
