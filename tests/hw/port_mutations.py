"""Faults of registers and counters, each with the test that has to notice."""

from tests.hw.mutation import Mutation

from streamjoin_hw.formal.faults import Fault

CYCLES = (
    "test_ports.py::test_cycles_count_until_the_end_is_taken_and_backpressure_counts_results[chain]"
)
STROBES = (
    "test_ports.py::test_a_write_changes_the_bytes_of_its_strobes_and_says_that_windows_changed"
)
ERRORS = (
    "test_ports.py::test_what_is_not_there_and_what_cannot_be_written_are_answered_with_an_error"
)
COUNTED = "test_ports.py::test_tuples_of_each_side_and_stalls_of_the_input_are_counted"

PORT_MUTATIONS = {
    "cycles-stop-early": Mutation(
        Fault(
            "rtl.top",
            "counters.cycle.eq(running | gives | taken)",
            "counters.cycle.eq(running | taken)",
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
    "lower-half-too-soon": Mutation(
        Fault(
            "rtl.registers",
            "lower.eq(low)",
            "lower.eq(low + counted)",
            "the lower half of the cycle counter does not wait for the carry",
        ),
        "test_ports.py::test_a_carry_reaches_both_halves_of_the_cycle_counter_at_once",
        "assert",
    ),
    "cycles-high-not-latched": Mutation(
        Fault(
            "rtl.registers",
            'self.map if each.name == "cycles_low"',
            'self.map if each.name == "cycles_high"',
            "the upper half of the cycle counter is not that of the last read",
        ),
        "test_ports.py::test_both_halves_of_the_cycle_counter_are_of_one_cycle",
        "assert",
    ),
    "backpressure-counts-the-end": Mutation(
        Fault(
            "rtl.top",
            "counters.results_backpressure.eq(gives & ~accepted & user[TUser.RESULT])",
            "counters.results_backpressure.eq(gives & ~accepted)",
            "the punctuation is counted as a result that waits",
        ),
        CYCLES,
        "waited",
    ),
    "results-counted-while-they-wait": Mutation(
        Fault(
            "rtl.top",
            "counters.result.eq(given &",
            "counters.result.eq(self.m_axis_results_tvalid &",
            "a result counts in every cycle in which it is offered",
        ),
        CYCLES,
        "assert",
    ),
    "sides-counted-for-each-other": Mutation(
        Fault(
            "rtl.top",
            "counters.tuple_r.eq(taken & ~is_s)",
            "counters.tuple_r.eq(taken & is_s)",
            "tuples of S are counted as those of R",
        ),
        COUNTED,
        "assert [1, 1] == [3, 1]",
    ),
    "input-stalls-count-all-that-is-offered": Mutation(
        Fault(
            "rtl.top",
            "counters.input_stall.eq(offered & ~ready)",
            "counters.input_stall.eq(offered)",
            "a tuple that is taken counts as stalled",
        ),
        COUNTED,
        "bench.stalled",
    ),
    "strobes-ignored": Mutation(
        Fault(
            "rtl.registers",
            "with m.If(strobe[byte]):",
            "with m.If(strobe.any()):",
            "a write changes bytes that it does not select",
        ),
        STROBES,
        "assert (2864434397, 0) == (297481181, 0)",
    ),
    "windows-written-unsaid": Mutation(
        Fault(
            "rtl.registers",
            "m.d.sync += self.windows_written.eq(1)",
            "m.d.sync += self.windows_written.eq(0)",
            "nobody hears that a window register was written",
        ),
        STROBES,
        "bench.windows_written",
    ),
    "read-of-nothing-succeeds": Mutation(
        Fault(
            "rtl.registers",
            "self.rresp.eq(Mux(is_known, OKAY, SLVERR))",
            "self.rresp.eq(OKAY)",
            "a read of an offset without a register is answered without an error",
        ),
        ERRORS,
        "assert (0, 0) == (0, 2)",
    ),
    "read-of-another-page-succeeds": Mutation(
        Fault(
            "rtl.registers",
            "is_known = word[32] & ~left.any()",
            "is_known = word[32]",
            "a read of an offset above all registers is answered without an error",
        ),
        ERRORS,
        "assert",
    ),
    "write-of-nothing-succeeds": Mutation(
        Fault(
            "rtl.registers",
            "self.bresp.eq(Mux(is_known, OKAY, SLVERR))",
            "self.bresp.eq(OKAY)",
            "a write that does nothing is answered without an error",
        ),
        ERRORS,
        "assert 0 == 2",
    ),
    "response-does-not-wait": Mutation(
        Fault(
            "rtl.registers",
            "with m.If(self.bvalid & self.bready):",
            "with m.If(self.bvalid):",
            "the response of a write is withdrawn before it is taken",
        ),
        "test_soft_reset.py::test_responses_outlive_a_soft_reset",
        "assert",
    ),
}
