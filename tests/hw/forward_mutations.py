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
            "(full[which] | (comes & last)) & ~w.clears",
            "full[which] | (comes & last)",
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
            "forwards.eq(takes | stays)",
            "forwards.eq(self.i.valid | stays)",
            "a tuple is forwarded before the core has taken it, and again",
        ),
        "test_handshake.py::test_random_inputs_are_exact_when_forwarded_at_once[5-1-0-3-0.5-0.5]",
        "surplus: first",
    ),
    "forwarded-over-one-that-waits": Mutation(
        Fault(
            "rtl.chain.forwarding",
            "free.eq(rests & ~matcher.hold & ~stays)",
            "free.eq(rests & ~matcher.hold)",
            "a tuple is taken while the next core has not taken the one before",
        ),
        "test_handshake.py::test_random_inputs_are_exact_when_forwarded_at_once[5-1-0-3-0.5-0.5]",
        "missing",
    ),
    "forwarded-once-and-gone": Mutation(
        Fault(
            "rtl.chain.forwarding",
            "forwards.eq(takes | stays)",
            "forwards.eq(takes)",
            "a tuple that the next core does not take at once is lost",
        ),
        "test_handshake.py::test_random_inputs_are_exact_when_forwarded_at_once[5-1-0-3-0.5-0.5]",
        "missing",
    ),
    "taken-before-the-last-word": Mutation(
        Fault(
            "rtl.chain.forwarding",
            "rests.eq(Mux(resting, ~takes, ends))",
            "rests.eq(Mux(resting, ~takes, 1))",
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
    "turn-kept-a-tuple-longer": Mutation(
        Fault(
            "rtl.turn",
            "left == Mux(event, Const(self.cores > 1, 1), 0)",
            "left == 0",
            "a core takes the tuple behind its own, too",
        ),
        "test_handshake.py::test_random_inputs_are_exact_when_forwarded_at_once[4-4-0-3-0.0-0.0]",
        "pairs",
    ),
    "reach-counts-a-word-twice": Mutation(
        Fault(
            "rtl.chain.subwindow",
            "opens.eq(stores & (head.lane == 0))",
            "opens.eq(stores)",
            "a sub-window reaches a word further with every tuple",
        ),
        "test_handshake.py::test_random_inputs_are_exact_when_forwarded_at_once[4-3-0-1-0.0-0.7]",
        "surplus",
    ),
    "reach-keeps-a-word-left": Mutation(
        Fault(
            "rtl.chain.subwindow",
            "leaves.eq(expires & (tail.lane == lanes - 1))",
            "leaves.eq(0)",
            "a word that all tuples have left is scanned",
        ),
        "test_handshake.py::test_random_inputs_are_exact_when_forwarded_at_once[4-4-0-3-0.0-0.0]",
        "surplus",
    ),
    "sub-window-never-empty": Mutation(
        Fault(
            "rtl.chain.subwindow",
            "empty.eq(~stored & alone)",
            "empty.eq(0)",
            "a sub-window whose last tuple expired is scanned",
        ),
        "test_forwarding.py::test_windows_of_any_size_are_exact[windows0-4]",
        "surplus",
    ),
    "sub-window-empty-too-soon": Mutation(
        Fault(
            "rtl.chain.subwindow",
            "extent.is_single & ~extent.wraps & (after == head.lane)",
            "extent.is_single & ~extent.wraps",
            "a sub-window of one word is empty once a tuple of it expired",
        ),
        "test_forwarding.py::test_windows_of_any_size_are_exact[windows1-4]",
        "pairs missing",
    ),
    "scan-a-word-short": Mutation(
        Fault(
            "rtl.chain.forwarding",
            "ends.eq(~left[2:].any())",
            "ends.eq(1)",
            "a scan ends after its third word",
        ),
        "test_forwarding.py::test_windows_of_any_size_are_exact[windows2-1]",
        "pairs missing",
    ),
    "seems-idle-while-it-scans": Mutation(
        Fault(
            "rtl.chain.forwarding",
            "matcher.scan.eq(~resting)",
            "matcher.scan.eq(0)",
            "a core seems idle while what it read is compared",
        ),
        "test_forwarding.py::test_a_core_is_busy_until_its_last_result_is_given",
        "looks empty",
    ),
    "windows-above-the-capacity": Mutation(
        Fault(
            "rtl.intake",
            "(high_above | (high_is & low_above))",
            "high_above",
            "a window above the capacity is taken for legal",
        ),
        "test_handshake.py::test_no_tuple_is_taken_in_windows_that_cannot_be_held[fast]",
        "a tuple was taken",
    ),
    "windows-of-no-tuple": Mutation(
        Fault(
            "rtl.intake",
            "(some_low | some_high) & ~",
            "~",
            "a window of no tuple is taken for legal",
        ),
        "test_handshake.py::test_no_tuple_is_taken_in_windows_that_cannot_be_held[fast]",
        "a tuple was taken",
    ),
}
