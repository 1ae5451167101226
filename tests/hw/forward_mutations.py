"""Faults in cores that forward at once, and in their intake."""

from tests.hw.mutation import Mutation

from streamjoin_hw.formal.faults import Fault

FORWARD_MUTATIONS = {
    "expiry-one-early-fast": Mutation(
        Fault(
            "rtl.intake",
            "last = is_low & Mux(came, low == 2, low == 1)",
            "last = is_low & (low == 2)",
            "a window is full one tuple early",
        ),
        "test_handshake.py::test_random_inputs_are_exact_when_forwarded_at_once[4-4-0-3-0.0-0.0]",
        "pairs missing",
    ),
    "expiry-late-behind-a-neighbour": Mutation(
        Fault(
            "rtl.intake",
            "last = is_low & Mux(came, low == 2, low == 1)",
            "last = is_low & (low == 1)",
            "a window filled without a gap is full one tuple late",
        ),
        "test_split.py::test_random_inputs_are_exact_and_in_order[3-4-2-4-outer-0.0-0.0]",
        "surplus",
    ),
    "room-without-its-upper-bits": Mutation(
        Fault(
            "rtl.queues",
            "self.no_high.eq(high == 0)",
            "self.no_high.eq(1)",
            "a window is full once the lower bits of its room are used up",
        ),
        "test_handshake.py::test_a_window_fills_at_any_size[shape0]",
        "pairs missing",
    ),
    "upper-bits-counted-down-twice": Mutation(
        Fault(
            "rtl.queues",
            "less.eq(high - 1)",
            "less.eq(high - 2)",
            "the upper bits of a room are counted down by two",
        ),
        "test_handshake.py::test_a_window_fills_at_any_size[shape1]",
        "surplus",
    ),
    "count-not-cleared": Mutation(
        Fault(
            "rtl.intake",
            "w.settled.eq(0), *(each.eq(0) for each in full)]",
            "w.settled.eq(0)]",
            "a window counts the tuples of the last input",
        ),
        "test_handshake.py::test_random_inputs_are_exact_when_forwarded_at_once[4-4-0-3-0.0-0.0]",
        "pairs missing",
    ),
    "expired-still-seen": Mutation(
        Fault(
            "rtl.chain.subwindow",
            "older = Mux(self.scan_first, after_tail[:lanes], ~Const(0, lanes))",
            "older = ~Const(0, lanes)",
            "the first word of a scan shows expired tuples",
        ),
        "test_handshake.py::test_random_inputs_are_exact_when_forwarded_at_once[4-4-0-3-0.0-0.0]",
        "surplus: first surplus",
    ),
    "forwarded-twice": Mutation(
        Fault(
            "rtl.chain.forwarding",
            "forward.i.valid.eq(takes)",
            "forward.i.valid.eq(self.i.valid)",
            "a tuple is forwarded before the core has taken it, and again",
        ),
        "test_handshake.py::test_random_inputs_are_exact_when_forwarded_at_once[5-1-0-3-0.5-0.5]",
        "surplus: first",
    ),
    "taken-before-the-last-word": Mutation(
        Fault(
            "rtl.chain.forwarding",
            "goes_on & (left <= 2)",
            "goes_on",
            "a tuple is taken before all words were compared with the one before it",
        ),
        "test_handshake.py::test_random_inputs_are_exact_when_forwarded_at_once[5-1-0-3-0.5-0.5]",
        "pairs missing",
    ),
    "hold-a-word-late-fast": Mutation(
        Fault(
            "rtl.matching",
            "HOLD_WORDS - 1",
            "HOLD_WORDS - 2",
            "a core that scans by itself keeps a word too few free",
        ),
        "test_handshake.py::test_one_key_everywhere_never_overflows_a_fifo[fast]",
        "a result FIFO overflowed",
    ),
    "hold-ignored-fast": Mutation(
        Fault(
            "rtl.chain.forwarding",
            "goes_on = ~resting & ~matcher.hold",
            "goes_on = ~resting",
            "the scan goes on while the result FIFO is full",
        ),
        "test_handshake.py::test_one_key_everywhere_never_overflows_a_fifo[fast]",
        "a result FIFO overflowed",
    ),
}
