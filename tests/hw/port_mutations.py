"""Faults of reset and counters, each with the test that has to notice."""

from tests.hw.mutation import Mutation

from streamjoin_hw.formal.faults import Fault

CYCLES = (
    "test_ports.py::test_cycles_count_until_the_end_is_taken_and_backpressure_counts_results[chain]"
)

PORT_MUTATIONS = {
    "core-not-reset": Mutation(
        Fault(
            "rtl.top",
            "domain.rst.eq(resets.o[1 + index])",
            "domain.rst.eq(0)",
            "no reset reaches the cores",
        ),
        "test_soft_reset.py::"
        "test_an_offered_result_stays_until_it_is_taken_and_then_all_is_empty[chain]",
        "assert",
    ),
    "reset-opens-early": Mutation(
        Fault(
            "rtl.top",
            "restart.eq(resets.busy)",
            "restart.eq(begins)",
            "tuples are accepted before the reset has emptied the design",
        ),
        "test_soft_reset.py::test_every_tuple_accepted_after_the_answer_counts[fast]",
        "assert",
    ),
    "cycles-stop-early": Mutation(
        Fault(
            "rtl.top",
            "design.running | taken | self.m_axis_results_tvalid",
            "design.running | taken",
            "cycles are not counted while the end waits to be taken",
        ),
        CYCLES,
        "before",
    ),
    "cycles-high-shifted": Mutation(
        Fault(
            "rtl.top",
            "target.eq(counters.cycles[32:])",
            "target.eq(counters.cycles[31:])",
            "the upper half of the cycle counter begins a bit too low",
        ),
        "test_ports.py::test_the_cycle_counter_has_64_bits",
        "assert",
    ),
    "cycles-high-not-latched": Mutation(
        Fault(
            "rtl.registers",
            'if each.name == "cycles_low":',
            'if each.name == "cycles_high":',
            "the upper half of the cycle counter is not that of the last read",
        ),
        "test_ports.py::test_both_halves_of_the_cycle_counter_are_of_one_cycle",
        "assert",
    ),
    "backpressure-counts-the-end": Mutation(
        Fault(
            "rtl.top",
            "counters.results_backpressure.eq(output_stalled & result.user[TUser.RESULT])",
            "counters.results_backpressure.eq(output_stalled)",
            "the punctuation is counted as a result that waits",
        ),
        CYCLES,
        "waited",
    ),
}
