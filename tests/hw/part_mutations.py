"""Faults in arithmetic and in parts that all designs share, with tests of these parts alone."""

from tests.hw.mutation import Mutation

from streamjoin_hw.formal.faults import Fault

COUNT = "test_split_single.py::test_a_late_count_tells_in_both_forms_how_many_there_are"
SPECIAL = "test_fp_add.py::test_special_values_add_as_in_numpy"
STAGE = "test_streams.py::test_payloads_pass_once_and_in_order[0.6-0.6-{}]"

PART_MUTATIONS = {
    "stage-loses-its-spare": Mutation(
        Fault(
            "rtl.streams",
            "m.d.sync += front.eq(spare)",
            "m.d.sync += front.eq(self.i.payload)",
            "a register stage loses what arrived while its output was stalled",
        ),
        STAGE.format("PipeReg"),
        "assert",
    ),
    "stage-overwrites-its-spare": Mutation(
        Fault(
            "rtl.streams",
            "with m.If(~spare_valid):",
            "with m.If(self.i.valid | ~spare_valid):",
            "a full register stage takes what is offered to it",
        ),
        STAGE.format("PipeReg"),
        "assert",
    ),
    "stage-forgets-that-it-is-full": Mutation(
        Fault(
            "rtl.streams",
            "both.eq((one & comes & ~goes) | (both & ~goes))",
            "both.eq(one & comes & ~goes)",
            "a stage whose two registers are full takes a third payload a cycle later",
        ),
        STAGE.format("PingPongReg"),
        "assert",
    ),
    "reset-leaves-an-offer": Mutation(
        Fault(
            "rtl.streams",
            "reset_less=self.clear is not None",
            "reset_less=self.clear is not None or name == 'one'",
            "a register stage keeps its payload through a reset",
        ),
        "test_handshake.py::test_a_reset_in_the_middle_leaves_an_empty_design[0.5]",
        "a result outlived a reset",
    ),
    "segment-without-an-end": Mutation(
        Fault(
            "rtl.memory",
            "(~fresh & ~ends, further)",
            "(~fresh, further)",
            "a segment goes on behind its last slot",
        ),
        "test_window.py::test_a_ring_behaves_as_a_queue_of_its_length[1-7]",
        "assert",
    ),
    "second-slot-of-one": Mutation(
        Fault(
            "rtl.memory",
            "(fresh & ~single, second)",
            "(fresh, second)",
            "the second tuple of a segment of one slot is written behind it",
        ),
        "test_window.py::test_a_ring_behaves_as_a_queue_of_its_length[1-1]",
        "assert",
    ),
    "written-one-ahead": Mutation(
        Fault(
            "rtl.memory",
            "written.eq(here.word)",
            "written.eq(after.word)",
            "a tuple is written to the word after the one that it takes",
        ),
        "test_window.py::test_a_ring_behaves_as_a_queue_of_its_length[1-7]",
        "assert",
    ),
    "serialiser-highest-lane": Mutation(
        Fault(
            "rtl.matching",
            "return Mux(mask[:half].any(), low, high)",
            "return Mux(mask[half:].any(), high, low)",
            "a serialiser gives the tuple of the highest lane for that of the lowest",
        ),
        "test_core.py::test_a_serialiser_gives_each_match_once_lowest_lane_first[0.0]",
        "assert",
    ),
    "division-of-multiples": Mutation(
        Fault(
            "rtl.chain.segments",
            "fits = ~rest[-1]",
            "fits = rest > 0",
            "a quotient without remainder is one too small",
        ),
        "test_segments.py::test_the_divider_divides",
        "assert",
    ),
    "longest-segment-always-longer": Mutation(
        Fault(
            "rtl.chain.segments",
            "word.eq(Mux(has_longer, one_more.word,",
            "word.eq(Mux(1, one_more.word,",
            "a scan of equal segments reads a word too many",
        ),
        "test_segments.py::test_a_plan_adds_up_to_the_windows[3-1-1]",
        "assert",
    ),
    "rounds-ties-up": Mutation(
        Fault(
            "rtl.floats.add",
            "total[2] & (total[1] | total[0] | total[3])",
            "total[2]",
            "a tie is rounded up and not to even",
        ),
        SPECIAL,
        "gave",
    ),
    "subnormal-exponent": Mutation(
        Fault(
            "rtl.floats.add",
            "small_exponent = Mux(small_hidden, small[23:31], 1)",
            "small_exponent = small[23:31]",
            "a subnormal operand has the exponent 0",
        ),
        SPECIAL,
        "gave",
    ),
    "difference-of-equals-is-minus-zero": Mutation(
        Fault(
            "rtl.floats.add",
            "added.zero_sign.eq(ordered.sign & ~ordered.subtract)",
            "added.zero_sign.eq(ordered.sign)",
            "a number minus itself is -0",
        ),
        SPECIAL,
        "gave",
    ),
    "minus-zero-apart": Mutation(
        Fault(
            "rtl.encode",
            "positive = Mux(bits[:31].any(), bits, Const(0, 32))",
            "positive = bits",
            "-0 and 0 are two keys",
        ),
        "test_encode.py::test_equal_keys_and_only_they_have_equal_codes[float32]",
        "assert",
    ),
    "interval-below-the-type": Mutation(
        Fault(
            "rtl.encode",
            "outside = (low_bits > maximum) | (high_bits < minimum)",
            "outside = low_bits > maximum",
            "an interval that ends below the type's range holds its minimum",
        ),
        "test_encode.py::test_intervals_hold_exactly_the_keys_that_match[int32]",
        "assert",
    ),
    "count-misses-one-that-came": Mutation(
        Fault(
            "rtl.queues",
            "(as_many & ~fell)) | (more & grew)",
            "(as_many & ~fell))",
            "what came a cycle ago is not counted where a queue tells by ANDs",
        ),
        f"{COUNT}[15-True]",
        "by ANDs",
    ),
    "count-keeps-one-that-went": Mutation(
        Fault(
            "rtl.queues",
            "(as_many & ~fell)) | (more",
            "as_many) | (more",
            "what went a cycle ago is still counted where a queue tells by ANDs",
        ),
        f"{COUNT}[20-False]",
        "by ANDs",
    ),
}
