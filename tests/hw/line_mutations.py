"""Faults in how a chain's cores are told, and in how their results are collected."""

from tests.hw.mutation import Mutation

from streamjoin_hw.formal.faults import Fault

LINE_MUTATIONS = {
    "stop-ignored": Mutation(
        Fault(
            "rtl.chain.line",
            "free.eq(~self.line_next_i & ~self.line_stop)",
            "free.eq(~self.line_next_i)",
            "a core puts results on a line that was stopped",
        ),
        "test_line.py::test_a_queue_that_nobody_empties_stops_its_line_before_it_overflows[3-0]",
        "a result FIFO overflowed",
    ),
    "stop-late": Mutation(
        Fault(
            "rtl.chain.line",
            "cores + STOP_WORDS + 2 * hops",
            "STOP_WORDS",
            "a line is stopped when there is no room for what is on it",
        ),
        "test_line.py::test_a_queue_that_nobody_empties_stops_its_line_before_it_overflows[8-2]",
        "a result FIFO overflowed",
    ),
    "stop-one-late": Mutation(
        Fault(
            "rtl.chain.line",
            "cores + STOP_WORDS + 2 * hops",
            "cores + STOP_WORDS + 2 * hops - 1",
            "a line is stopped one result late",
        ),
        "test_line.py::test_a_queue_that_nobody_empties_stops_its_line_before_it_overflows[8-2]",
        "a result FIFO overflowed",
    ),
    "line-overrun": Mutation(
        Fault(
            "rtl.chain.line",
            "free.eq(~self.line_next_i & ~self.line_stop)",
            "free.eq(~self.line_stop)",
            "a core gives a result to a place that is taken",
        ),
        "test_line.py::test_a_line_passes_everything_once_and_its_queue_never_overflows[0.5-0.5-2-0]",
        "payloads arrived, not",
    ),
    "line-result-not-kept": Mutation(
        Fault(
            "rtl.matching",
            "queue.take.eq(self.results.ready)",
            "queue.take.eq(1)",
            "a core of one lane gives a result away whether its place is free or not",
        ),
        "test_handshake.py::test_one_key_in_several_lines_never_overflows_a_fifo[step]",
        "pairs missing",
    ),
    "queue-short": Mutation(
        Fault(
            "rtl.chain.line",
            "landing_places(self.reserve)",
            "16",
            "a queue is empty before the results of the far cores arrive",
        ),
        "test_line.py::test_a_line_gives_a_result_in_every_cycle_after_it_was_stopped[8-0]",
        "assert",
    ),
    "queue-outlives-a-reset": Mutation(
        Fault(
            "rtl.queues",
            "empty_at(m, self.clear, emptied)",
            "empty_at(m, self.clear, emptied[:3])",
            "a line's queue keeps its results through a reset",
        ),
        "test_line.py::test_a_reset_empties_a_line_s_end[0-40]",
        "a payload too many",
    ),
    "queue-misplaces-after-a-reset": Mutation(
        Fault(
            "rtl.queues",
            "empty_at(m, self.clear, emptied)",
            "empty_at(m, self.clear, emptied[1:])",
            "a line's queue is read where nothing was written after a reset",
        ),
        "test_line.py::test_a_reset_empties_a_line_s_end[0-40]",
        "assert",
    ),
    "queue-counts-through-a-reset": Mutation(
        Fault(
            "rtl.queues",
            "empty_at(m, clear, counts)",
            "empty_at(m, clear, counts[:2])",
            "a line's queue counts what a reset has emptied",
        ),
        "test_line.py::test_a_reset_empties_a_line_s_end[0-40]",
        "a payload too many",
    ),
    "way-outlives-a-reset": Mutation(
        Fault(
            "rtl.chain.line",
            "m.d.sync += place.valid.eq(0)",
            "m.d.sync += place.valid.eq(arrives.valid)",
            "what is on its way to a line's queue arrives after a reset",
        ),
        "test_line.py::test_a_reset_empties_a_line_s_end[2-4]",
        "a payload too many",
    ),
    "branch-early": Mutation(
        Fault(
            "rtl.chain.array",
            "r_entry, spread.levels, name",
            "r_entry, 0, name",
            "an R tuple is gone when the first core obeys the command to take it",
        ),
        "test_handshake.py::test_inputs_are_exact_over_several_lines_of_cores[step]",
        "pairs missing",
    ),
    "hold-of-one-line": Mutation(
        Fault(
            "rtl.chain.spread",
            "return 11 + 2 * spread_levels(params)\n\n\ndef quiet",
            "return 5 + 0 * spread_levels(params)\n\n\ndef quiet",
            "a core asks to hold when what is on its way to the lines has no room",
        ),
        "test_handshake.py::test_one_key_in_several_lines_never_overflows_a_fifo[step]",
        "a result FIFO overflowed",
    ),
    "reset-unsettled": Mutation(
        Fault(
            "rtl.chain.spread",
            "left.eq(left.init)",
            "left.eq(0)",
            "results of before a reset are given after it",
        ),
        "test_handshake.py::test_a_reset_in_the_middle_leaves_nothing_in_any_line[fast]",
        "surplus",
    ),
    "reset-without-a-clear": Mutation(
        Fault(
            "rtl.chain.core",
            "clear = Signal(init=1)",
            "clear = Signal(init=1, reset_less=True)",
            "tuples of before a reset stay in the rings",
        ),
        "test_handshake.py::test_a_reset_in_the_middle_leaves_an_empty_design[0.0]",
        "surplus",
    ),
    "cleared-too-late": Mutation(
        Fault(
            "rtl.chain.forwarding",
            "clears, spread.levels + 2, name",
            "clears, 60, name",
            "a core is cleared when the first tuples are in it",
        ),
        "test_handshake.py::test_inputs_are_exact_over_several_lines_of_cores[fast]",
        "come too close to each other",
    ),
    "or-forgets-a-line": Mutation(
        Fault(
            "rtl.chain.spread",
            "group, left = left[:size], left[size:]",
            "group, left = left[: max(1, size - 1)], left[size:]",
            "the last core of a line is not heard",
        ),
        "test_line.py::test_every_line_hears_at_once_and_every_core_is_heard_at_once[49]",
        "assert",
    ),
}
