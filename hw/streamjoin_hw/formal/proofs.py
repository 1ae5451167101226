"""The proofs, by name: what each claims, how far it looks, and the fault that it must find."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from streamjoin_hw.formal.faults import Fault
from streamjoin_hw.formal.harness import Harness
from streamjoin_hw.formal.lookup import CLAIMED_AND_LOST, LINK_CUT, NEVER_EXPIRED, Lookup
from streamjoin_hw.formal.meeting import ArrayMeeting
from streamjoin_hw.formal.packets import GroupPassage, PacketPassage
from streamjoin_hw.formal.passage import (
    DEAF_CORE,
    HASTY_LINK,
    OVERWRITTEN,
    QUEUE_JUMPER,
    FifoPassage,
    LinePassage,
    LinkPassage,
    MergerPassage,
    PingPongPassage,
    PipeRegPassage,
    QueuePassage,
    TreePassage,
)
from streamjoin_hw.formal.paths import (
    LINK_WAITS,
    READY_THROUGH,
    VALID_AFTER_READY,
    Around,
    Path,
)
from streamjoin_hw.formal.ring import RingMemory
from streamjoin_hw.formal.shown import FREED_SHOWN, STORED_TWICE, Shown, Slots
from streamjoin_hw.formal.soft_reset import HASTY_RESET, HASTY_WORDS, SoftReset
from streamjoin_hw.formal.stars import (
    BEHIND_A_PROBE,
    BOTH_HALVES,
    EARLY_THERE,
    HALF_A_STAR,
    HASTY_STAR,
    SplitMeeting,
    StarOrder,
)


@dataclass(frozen=True)
class Proof:
    """One proof.

    Parameters
    ----------
    title : str
        What is proven, in a few words.
    harness : callable returning Harness
        Makes it anew.
    fault : Fault
        The same search must find a counterexample in the design with this fault.
    quick_depth, depth, fault_depth : int
        Cycles searched by the tests, in full, and for the fault if it takes more to show. That of
        an inductive proof is the depth of the search from reset, and of the induction.
    inductive : bool
        The claims are proven for any number of cycles.
    paths : tuple of Path
        Combinational paths that must not be there; a proof has these or a depth.
    """

    title: str
    harness: Callable[[], Harness]
    fault: Fault
    quick_depth: int = 0
    depth: int = 0
    fault_depth: int = 0
    inductive: bool = False
    paths: tuple[Path, ...] = ()


LOST_SPARE = Fault(
    "rtl.streams",
    "m.d.sync += spare_valid.eq(1)",
    "m.d.sync += spare_valid.eq(0)",
    "the spare entry is never valid",
)
FORGETFUL_MERGER = Fault(
    "rtl.trees",
    "turn & output.i.ready.replicate(self.inputs)",
    "turn",
    "a merger takes what it cannot hold",
)
GREEDY_MERGER = Fault(
    "rtl.trees",
    "ready.eq(turn & soon.replicate(self.inputs))",
    "ready.eq(-1)",
    "a merger in front of a link takes from all of its inputs",
)
STUCK_TURNS = Fault(
    "rtl.trees",
    "following(turn, seen)",
    "(seen & ~turn) & -(seen & ~turn)",
    "a merger always turns to the first input",
)
LATE_OLDEST = Fault(
    "rtl.memory",
    "Mux(self.next_step, after.word, self.next_scan_word)",
    "Mux(self.next_step, here.word, self.next_scan_word)",
    "the ring looks one word back, not ahead",
)
WIDE_SCAN = Fault(
    "rtl.memory",
    "beyond.eq(is_same | is_above)",
    "beyond.eq(is_above)",
    "a scan takes a word for filled that is not",
)
NO_DRAIN = Fault("rtl.chain.sequencer", "w.all_in & w.met_both & ~begun", "0", "no bubbles")
LATE_EXPIRY = Fault(
    "rtl.intake",
    "full[which].eq((full[which] | (comes & last)) & ~w.clears)",
    "full[which].eq(0)",
    "no window is ever full",
)
LATE_END = Fault(
    "rtl.predicates",
    "[r.ts < s.end, s.ts < r.end]",
    "[r.ts < s.end, s.ts <= r.end]",
    "a time window of R ends one late",
)
EMPTY_SLOT = Fault("rtl.matching", " & r.valid & self.s_probe.valid", "", "empty slots match")
LAZY_STORE = Fault(
    "rtl.chain.forwarding",
    "Mux(resting, ~takes, ends)",
    "Mux(resting, 1, ends)",
    "a tuple is taken before the one before it is stored",
)
FULL_FIFO = Fault(
    "rtl.queues",
    "waits.at_least(2)",
    "waits.at_least(1)",
    "the last word that waits is taken to be followed by another",
)
HASTY_HEADER = Fault(
    "rtl.board_top",
    "self.i_ready.eq(~in_group | self.o_ready)",
    "self.i_ready.eq(~in_group | self.o_ready | (left == 1))",
    "a group's last word is taken whether its tuple is or not",
)
HASTY_TRAILER = Fault(
    "rtl.board_top",
    "(is_old & ~waits)",
    "is_old",
    "a packet is closed although a word of it is offered",
)

PROOFS = {
    "pipe-reg-paths": Proof(
        "the register stage cuts every path",
        Around.pipe_reg,
        READY_THROUGH,
        paths=Around.all_paths(1),
    ),
    "pipe-reg-passage": Proof(
        "the register stage loses and invents nothing",
        PipeRegPassage,
        LOST_SPARE,
        quick_depth=6,
        depth=12,
        inductive=True,
    ),
    "ping-pong-passage": Proof(
        "the register stage of two that take turns loses and invents nothing",
        PingPongPassage,
        OVERWRITTEN,
        quick_depth=6,
        depth=12,
        inductive=True,
    ),
    "merger-paths": Proof(
        "a merger's output waits for nobody",
        Around.merger,
        VALID_AFTER_READY,
        paths=Around.all_paths(3),
    ),
    "merger-passage": Proof(
        "a merger loses and invents nothing, keeps order, takes turns",
        MergerPassage,
        FORGETFUL_MERGER,
        quick_depth=6,
        depth=12,
        inductive=True,
    ),
    "merger-turns": Proof(
        "a merger starves nobody",
        MergerPassage,
        STUCK_TURNS,
        quick_depth=6,
        depth=12,
        inductive=True,
    ),
    "tree-paths": Proof(
        "a tree is cut from its output",
        Around.tree,
        LINK_WAITS,
        paths=Around.all_paths(3),
    ),
    "tree-passage": Proof(
        "a tree loses and invents nothing",
        TreePassage,
        GREEDY_MERGER,
        quick_depth=11,
        depth=13,
    ),
    "fifo-passage": Proof(
        "a result FIFO loses and invents nothing",
        FifoPassage,
        FULL_FIFO,
        quick_depth=10,
        depth=18,
    ),
    "line-passage": Proof(
        "a line of two cores and its queue lose and invent nothing",
        LinePassage,
        DEAF_CORE,
        quick_depth=8,
        depth=11,
        fault_depth=14,
    ),
    "link-passage": Proof(
        "a link of SplitJoin's trees loses and invents nothing though it never waits",
        LinkPassage,
        HASTY_LINK,
        quick_depth=12,
        depth=16,
    ),
    "queue-passage": Proof(
        "a queue of SplitJoin's halves loses and invents nothing",
        QueuePassage,
        QUEUE_JUMPER,
        quick_depth=7,
        depth=16,
    ),
    **{
        f"ring-{lanes}": Proof(
            f"a segment ring of {lanes} lanes holds the last tuples",
            partial(RingMemory, lanes),
            fault,
            quick_depth=14,
            depth=26,
        )
        for lanes, fault in ((1, LATE_OLDEST), (2, WIDE_SCAN))
    },
    "meeting-stalls": Proof(
        "two cores of one tuple: owed pairs meet once, any gaps and stalls",
        partial(ArrayMeeting, 2, 1, 1, 2, 2),
        EMPTY_SLOT,
        quick_depth=25,
        depth=28,
    ),
    "meeting-dense": Proof(
        "two cores of one tuple: owed pairs meet once, two inputs",
        partial(ArrayMeeting, 2, 1, 1, 2, 2, dense=True),
        NO_DRAIN,
        quick_depth=32,
        depth=37,
    ),
    "fast-stalls": Proof(
        "forwarded at once: owed pairs meet once, any gaps and stalls",
        partial(ArrayMeeting, 2, 1, 1, 2, 1, forward="fast"),
        LATE_EXPIRY,
        quick_depth=26,
        depth=30,
    ),
    "fast-words": Proof(
        "forwarded at once, two words a core: owed pairs meet once",
        partial(ArrayMeeting, 1, 2, 1, 2, 2, dense=True, forward="fast"),
        LAZY_STORE,
        quick_depth=21,
        depth=29,
    ),
    "fast-times": Proof(
        "forwarded at once, time windows: owed pairs meet once",
        partial(ArrayMeeting, 2, 1, 1, 2, 2, dense=True, forward="fast", times=(2, 1)),
        LATE_END,
        quick_depth=22,
        depth=32,
    ),
    "lookup-stalls": Proof(
        "looked up: owed pairs are given once and in order, any gaps, stalls and clears",
        partial(Lookup, (1, 2)),
        NEVER_EXPIRED,
        quick_depth=14,
        depth=18,
    ),
    "lookup-links": Proof(
        "looked up behind links: owed pairs are given once and in order",
        partial(Lookup, (3, 3), dense=True),
        LINK_CUT,
        quick_depth=20,
        depth=24,
    ),
    "lookup-own": Proof(
        "looked up behind own buckets, two results a beat: owed pairs are given once and in order",
        partial(Lookup, (1, 3), dense=True, own=True),
        CLAIMED_AND_LOST,
        quick_depth=17,
        depth=20,
    ),
    "index-slots": Proof(
        "an ordered index: a slot is used from when it is taken until it is freed",
        Slots,
        FREED_SHOWN,
        quick_depth=12,
        depth=20,
    ),
    "index-shown": Proof(
        "an ordered index: a tuple is shown once to whoever asks for its bucket, while it lives",
        partial(Shown, 3),
        STORED_TWICE,
        quick_depth=19,
        depth=22,
    ),
    "meeting-uneven": Proof(
        "two cores of two tuples, uneven windows: owed pairs meet once",
        partial(ArrayMeeting, 2, 2, 1, 3, 2, dense=True),
        NO_DRAIN,
        quick_depth=30,
        depth=35,
        fault_depth=42,
    ),
    "group-passage": Proof(
        "groups: every tuple is given once, with its side, the end with the last",
        GroupPassage,
        HASTY_HEADER,
        quick_depth=3,
        depth=6,
        inductive=True,
    ),
    "packet-passage": Proof(
        "packets: every result is given once, trailers are true and in time",
        partial(PacketPassage, 3, 4),
        HASTY_TRAILER,
        quick_depth=3,
        depth=10,
        inductive=True,
    ),
    "soft-reset": Proof(
        "soft reset withdraws no offer and no response, and ends, whatever the design",
        SoftReset,
        HASTY_RESET,
        quick_depth=3,
        depth=12,
        inductive=True,
    ),
    "soft-reset-words": Proof(
        "the same of the top level for boards",
        partial(SoftReset, board=True),
        HASTY_WORDS,
        quick_depth=3,
        depth=12,
        inductive=True,
    ),
    "star-order": Proof(
        "a star merger keeps every result between its stars",
        partial(StarOrder, 3),
        HASTY_STAR,
        quick_depth=9,
        depth=14,
    ),
    "split-stalls": Proof(
        "SplitJoin of two cores: owed pairs once, before their stars, any gaps and stalls",
        partial(SplitMeeting, 2, 1, (2, 1)),
        BEHIND_A_PROBE,
        quick_depth=22,
        depth=24,
        fault_depth=30,
    ),
    "split-probes": Proof(
        "SplitJoin, two probes a pass, inner order: owed pairs once, in order",
        partial(SplitMeeting, 2, 2, (2, 2), dense=True, order="inner"),
        EARLY_THERE,
        quick_depth=22,
        depth=24,
        fault_depth=36,
    ),
    "split-grouped": Proof(
        "SplitJoin, stars for groups of two: owed pairs once, before their group's star",
        partial(SplitMeeting, 1, 2, (1, 1), dense=True, group=2),
        HALF_A_STAR,
        quick_depth=19,
        depth=22,
        fault_depth=30,
    ),
    "split-shared": Proof(
        "SplitJoin with shared comparators: owed pairs once, before their stars",
        partial(SplitMeeting, 1, 2, (1, 1), dense=True, comparators="shared"),
        BOTH_HALVES,
        quick_depth=20,
        depth=22,
        fault_depth=32,
    ),
}
