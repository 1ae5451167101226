"""Faults in what says when a chain takes tuples, drains and ends, and who takes part."""

from tests.hw.mutation import Mutation

from streamjoin_hw.formal.faults import Fault

SEQUENCER_MUTATIONS = {
    "punctuation-early": Mutation(
        Fault(
            "rtl.chain.sequencer",
            "w.still.eq(w.flushes & w.steppable & ~self.busy)",
            "w.still.eq(w.flushes & w.steppable)",
            "the punctuation does not wait for the results inside",
        ),
        "test_handshake.py::test_random_inputs_are_exact[3-0.0-0.7]",
        "pairs missing",
    ),
    "drain-short": Mutation(
        Fault(
            "rtl.chain.sequencer",
            "~w.has_bubbles, planner.window, name",
            "~w.has_bubbles, planner.window >> 1, name",
            "the drain has half of its bubbles",
        ),
        "test_handshake.py::test_random_inputs_are_exact[3-0.0-0.0]",
        "pairs missing",
    ),
    "drain-forgets-its-upper-half": Mutation(
        Fault(
            "rtl.chain.sequencer",
            "few.eq(bubbles.no_high & (low[2:] == 0))",
            "few.eq(low[2:] == 0)",
            "a drain ends once the lower bits of its count are used up",
        ),
        "test_handshake.py::test_a_drain_counts_its_bubbles_in_two_halves[3]",
        "pairs missing",
    ),
    "drain-carries-early": Mutation(
        Fault(
            "rtl.queues",
            "borrows.eq(counts & (low == 0))",
            "borrows.eq(counts & (low == 4))",
            "the upper half of the count of bubbles is counted down early",
        ),
        "test_handshake.py::test_a_drain_counts_its_bubbles_in_two_halves[3]",
        "payloads arrived",
    ),
    "drain-long": Mutation(
        Fault(
            "rtl.chain.sequencer",
            "Mux(pushed, 2, 1)",
            "1",
            "a bubble that was pushed in the cycle before is not counted",
        ),
        "test_segments.py::test_a_drain_pushes_as_many_bubbles_as_the_window_has_tuples[windows1]",
        "steps == windows[0]",
    ),
    "drain-twice": Mutation(
        Fault(
            "rtl.chain.sequencer",
            "w.met_both & ~begun",
            "w.met_both",
            "a drain begins again as long as all tuples are in",
        ),
        "test_handshake.py::test_random_inputs_are_exact[3-0.0-0.0]",
        "payloads arrived",
    ),
    "takes-although-windows-change": Mutation(
        Fault(
            "rtl.chain.sequencer",
            "~self.drain & ~self.windows_written",
            "~self.drain",
            "a tuple is taken before windows that were just written are planned",
        ),
        "test_handshake.py::test_no_tuple_is_taken_in_windows_that_cannot_be_held[step]",
        "a tuple was taken",
    ),
    "takes-although-windows-change-at-once": Mutation(
        Fault(
            "rtl.intake",
            "~self.drain & ~self.windows_written",
            "~self.drain",
            "a tuple is taken before windows that were just written are looked at",
        ),
        "test_handshake.py::test_no_tuple_is_taken_in_windows_that_cannot_be_held[fast]",
        "a tuple was taken",
    ),
    "takes-after-the-last": Mutation(
        Fault(
            "rtl.chain.sequencer",
            "self.enable & ~w.ending & ~self.drain",
            "self.enable & ~self.drain",
            "a tuple of the next input is taken with an input of one tuple",
        ),
        "test_handshake.py::test_the_next_input_waits_although_it_is_offered_at_once[step]",
        "pairs missing",
    ),
    "takes-after-the-last-at-once": Mutation(
        Fault(
            "rtl.intake",
            "self.enable & ~w.ending & ~self.drain",
            "self.enable & ~self.drain",
            "a tuple of the next input is taken with an input of one tuple",
        ),
        "test_handshake.py::test_the_next_input_waits_although_it_is_offered_at_once[fast]",
        "pairs missing",
    ),
    "plan-compared-the-wrong-way": Mutation(
        Fault(
            "rtl.chain.core",
            "Mux(ours ^ theirs, ours, late)",
            "Mux(ours ^ theirs, theirs, late)",
            "a core takes part if it should not, and the other way round",
        ),
        "test_handshake.py::test_windows_of_any_legal_size_are_exact[windows4]",
        "pairs missing",
    ),
    "plan-equal-is-less": Mutation(
        Fault(
            "rtl.chain.core",
            "late: Value = Const(1, 1)",
            "late: Value = Const(0, 1)",
            "the core behind the last active one takes part",
        ),
        "test_handshake.py::test_windows_of_any_legal_size_are_exact[windows4]",
        "pairs missing",
    ),
}
