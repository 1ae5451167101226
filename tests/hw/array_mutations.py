"""Faults in what all designs share and in the chains of cores."""

from tests.hw.mutation import Mutation

from streamjoin_hw.formal.faults import Fault

ARRAY_MUTATIONS = {
    "expiry-one-late": Mutation(
        Fault(
            "rtl.chain.segments",
            "Mux(by_lanes, divider.quotient, window)",
            "Mux(by_lanes, divider.quotient + 1, window)",
            "every segment is one tuple longer than planned",
        ),
        "test_handshake.py::test_windows_of_any_legal_size_are_exact[windows4]",
        "surplus: first surplus",
    ),
    "expiry-one-early": Mutation(
        Fault(
            "rtl.memory",
            "(after.word == last.word) & (after.lane == last.lane)",
            "(after.word == last.word) & (after.lane + 1 == last.lane)",
            "a ring turns one slot early",
        ),
        "test_window.py::test_a_ring_behaves_as_a_queue_of_its_length[3-8]",
        "assert",
    ),
    "stale-tuple": Mutation(
        Fault(
            "rtl.memory",
            "                oldest.valid.eq(0),\n",
            "",
            "a segment hands a tuple of the last input on",
        ),
        "test_window.py::test_a_ring_behaves_as_a_queue_of_its_length[3-8]",
        "ring.oldest.valid",
    ),
    "ready-dropped": Mutation(
        Fault(
            "rtl.join",
            "results.ready.eq(output.i.ready)",
            "results.ready.eq(1)",
            "results are taken whether or not there is room",
        ),
        "test_handshake.py::test_random_inputs_are_exact[3-0.0-0.7]",
        "pairs missing",
    ),
    "side-swapped": Mutation(
        Fault(
            "rtl.chain.core",
            "probe_side.eq(Mux(command.step_s, SIDE_S, SIDE_R))",
            "probe_side.eq(Mux(command.step_s, SIDE_R, SIDE_S))",
            "the core takes R's step for one of S",
        ),
        "test_core.py::test_a_core_compares_what_enters_with_the_opposite_segment",
        "assert",
    ),
    "merger-forgets": Mutation(
        Fault(
            "rtl.trees",
            "turn & output.i.ready.replicate(self.inputs)",
            "turn",
            "a merger takes what it cannot hold",
        ),
        "test_trees.py::test_a_merger_passes_everything_once[0.5-0.5-3]",
        "payloads arrived, not",
    ),
    "merger-unfair": Mutation(
        Fault(
            "rtl.trees",
            "following(turn, seen)",
            "(seen & ~turn) & -(seen & ~turn)",
            "a merger always turns to the first input",
        ),
        "test_trees.py::test_a_busy_input_cannot_starve_another[busy1]",
        "Counter",
    ),
    "merger-turns-from-an-offer": Mutation(
        Fault(
            "rtl.trees",
            "held_up = ~output.i.ready & (turn & offered).any()",
            "held_up = output.i.ready & ~output.i.ready",
            "an input loses its turn although it was not served",
        ),
        "test_trees.py::test_a_merger_takes_turns[0.3]",
        "not in turns",
    ),
    "merger-keeps-its-turn": Mutation(
        Fault(
            "rtl.trees",
            "held = held_up.replicate(self.inputs)",
            "held = (held_up | (turn & offered).any()).replicate(self.inputs)",
            "an input keeps its turn while it has something, and others wait",
        ),
        "test_trees.py::test_a_merger_takes_turns[0.3]",
        "not in turns",
    ),
    "bound-excluded": Mutation(
        Fault(
            "rtl.predicates",
            'code <= s[f"hi{index}"]',
            'code < s[f"hi{index}"]',
            "the upper bound of a band does not count",
        ),
        "test_handshake.py::test_the_reference_band_query_is_exact",
        "pairs missing",
    ),
    "bound-wraps": Mutation(
        Fault(
            "rtl.encode",
            "hi = Mux(high_bits > maximum,",
            "hi = Mux(high_bits > maximum + (1 << 32),",
            "an integer bound wraps at the limit of its type",
        ),
        "test_encode.py::test_intervals_hold_exactly_the_keys_that_match[int32]",
        "assert",
    ),
    "nan-equals-nan": Mutation(
        Fault(
            "rtl.encode",
            "code = Mux(is_nan(late_key), NAN_CODE_S, code)",
            "code = Mux(is_nan(late_key), code, code)",
            "NaN equals NaN",
        ),
        "test_encode.py::test_equal_keys_and_only_they_have_equal_codes[float32]",
        "assert",
    ),
    "hold-ignored": Mutation(
        Fault(
            "rtl.join",
            "sequencer.held.eq(array.held)",
            "sequencer.held.eq(0)",
            "the scan goes on while a result FIFO is full",
        ),
        "test_handshake.py::test_one_key_everywhere_never_overflows_a_fifo[step]",
        "a result FIFO overflowed",
    ),
    "hold-late": Mutation(
        Fault(
            "rtl.queues",
            "waits.at_least(self.words - self.free_words)",
            "waits.at_least(self.words - 2)",
            "a core asks to hold when there is no room for what is on its way",
        ),
        "test_handshake.py::test_one_key_everywhere_never_overflows_a_fifo[step]",
        "a result FIFO overflowed",
    ),
    "clear-incomplete": Mutation(
        Fault(
            "rtl.memory",
            "(~fresh & ~at.fills, after[name])",
            "(~at.fills, after[name])",
            "a ring that was emptied still shows words",
        ),
        "test_window.py::test_a_ring_behaves_as_a_queue_of_its_length[1-7]",
        "assert",
    ),
    "row-wrong": Mutation(
        Fault(
            "rtl.chain.core",
            "matcher.r_probe.eq(ring_r.entered)",
            "matcher.r_probe.eq(ring_r.oldest)",
            "a result carries another tuple's row",
        ),
        "test_handshake.py::test_random_inputs_are_exact[1-0.0-0.0]",
        "pairs missing",
    ),
    "last-lane-ignored": Mutation(
        Fault(
            "rtl.matching",
            "for lane in range(params.lanes):\n            r, s",
            "for lane in range(params.lanes - 1):\n            r, s",
            "the last lane compares nothing",
        ),
        "test_handshake.py::test_random_inputs_are_exact[1-0.0-0.0]",
        "pairs missing",
    ),
    "result-skipped": Mutation(
        Fault(
            "rtl.matching",
            "self.results.ready & held.single",
            "held.single",
            "the last result of a word does not wait to be taken",
        ),
        "test_core.py::test_a_serialiser_gives_each_match_once_lowest_lane_first[0.5]",
        "an offered payload",
    ),
    "entry-missed": Mutation(
        Fault(
            "rtl.chain.core",
            "behind.eq(self.index + 1)",
            "behind.eq(self.index)",
            "arriving S tuples enter behind the last active core",
        ),
        "test_handshake.py::test_windows_of_any_legal_size_are_exact[windows0]",
        "pairs missing",
    ),
    "entry-before-its-command": Mutation(
        Fault(
            "rtl.chain.array",
            '("s_entry", s_entry)',
            '("s_entry", self.s_entry)',
            "an S tuple is gone when the last core obeys the command to take it",
        ),
        "test_handshake.py::test_random_inputs_are_exact[1-0.0-0.0]",
        "pairs missing",
    ),
    "address-of-this-cycle": Mutation(
        Fault(
            "rtl.chain.core",
            "ring.next_scan_word.eq(ahead.scan_word)",
            "ring.next_scan_word.eq(ahead.scan_word ^ 1)",
            "a scan reads the word beside the one that it is to read",
        ),
        "test_handshake.py::test_random_inputs_are_exact[1-0.0-0.0]",
        "pairs missing",
    ),
    "higher-bits-alone": Mutation(
        Fault(
            "rtl.memory",
            "above & Cat(sames[k + 1 :]).all() for",
            "above & Cat(sames[k + 1 :]).any() for",
            "a word counts as not yet filled by bits that decide nothing",
        ),
        "test_window.py::test_a_ring_behaves_as_a_queue_of_its_length[1-7]",
        "AssertionError",
    ),
    "lower-bit-of-another-pair": Mutation(
        Fault(
            "rtl.memory",
            "more[0] & ~differs[-1]",
            "more[0]",
            "the lower bit of two decides although the upper one has decided otherwise",
        ),
        "test_window.py::test_a_ring_behaves_as_a_queue_of_its_length[1-2]",
        "AssertionError",
    ),
    "the-filling-word-is-full": Mutation(
        Fault(
            "rtl.memory",
            "beyond.eq(is_same | is_above)",
            "beyond.eq(is_above)",
            "every lane of the word that is being filled counts as filled",
        ),
        "test_window.py::test_a_ring_behaves_as_a_queue_of_its_length[4-5]",
        "AssertionError",
    ),
    "partly-of-every-word": Mutation(
        Fault(
            "rtl.memory",
            "partly.eq(Mux(is_same, is_filled, 0))",
            "partly.eq(is_filled)",
            "words that were never written count as partly filled",
        ),
        "test_window.py::test_a_ring_behaves_as_a_queue_of_its_length[3-8]",
        "AssertionError",
    ),
    "ring-stays-wrapped": Mutation(
        Fault(
            "rtl.chain.subwindow",
            "Mux(extent.wraps, Cat(extent.words, Const(0, 1), is_single",
            "Mux(extent.wraps, Cat(extent.words, Const(1, 1), is_single",
            "after the oldest word left, a scan still reads as many words as the ring has",
        ),
        "test_forwarding.py::test_windows_of_any_size_are_exact[windows1-4]",
        "surplus",
    ),
    "turn-one-late": Mutation(
        Fault(
            "rtl.turn",
            "Mux(mine, self.cores - 1, less)",
            "Mux(mine, self.cores, less)",
            "a core's turn is one tuple late",
        ),
        "test_handshake.py::test_random_inputs_are_exact_when_forwarded_at_once[4-4-0-3-0.0-0.0]",
        "pairs missing",
    ),
    "input-takes-after-its-last": Mutation(
        Fault(
            "rtl.join",
            "is_open & ~is_last & ~self.writing",
            "is_open & ~self.writing",
            "the first tuple of the next input is taken behind the last of this one",
        ),
        "test_handshake.py::test_the_next_input_waits_although_it_is_offered_at_once[fast]",
        "pairs missing",
    ),
    "input-open-while-a-register-is-written": Mutation(
        Fault(
            "rtl.join",
            "is_open & ~is_last & ~self.writing",
            "is_open & ~is_last",
            "a tuple is accepted in the cycle after a write that closes the input",
        ),
        "test_soft_reset.py::test_every_tuple_accepted_after_the_answer_counts[split]",
        "assert",
    ),
    "ingress-reserves-too-little": Mutation(
        Fault(
            "rtl.encode",
            "LANDING_RESERVE = 5",
            "LANDING_RESERVE = 4",
            "what is accepted last is written over what waits longest",
        ),
        "test_encode.py::test_what_is_accepted_finds_a_place_however_long_nobody_takes_it[40-int32]",
        "a queue overflowed",
    ),
    "head-skips-what-waits": Mutation(
        Fault(
            "rtl.queues",
            "head.eq(Mux(many, after[name], self.payload[name]))",
            "head.eq(Mux(self.arrives, self.payload[name], after[name]))",
            "what arrives last decides about what waits longest",
        ),
        "test_encode.py::test_what_is_accepted_finds_a_place_however_long_nobody_takes_it[40-int32]",
        "assert",
    ),
    "time-window-closed": Mutation(
        Fault(
            "rtl.predicates",
            "[r.ts < s.end, s.ts < r.end]",
            "[r.ts <= s.end, s.ts < r.end]",
            "a time window holds its end",
        ),
        "test_handshake.py::test_random_inputs_are_exact_when_forwarded_at_once[4-4-12-3-0.5-0.5]",
        "surplus: first surplus",
    ),
    "time-window-of-the-other": Mutation(
        Fault(
            "rtl.encode",
            "Mux(self.i.p.side == SIDE_S, self.time_s, self.time_r)",
            "Mux(self.i.p.side == SIDE_S, self.time_r, self.time_s)",
            "a tuple gets the other stream's time window",
        ),
        "test_handshake.py::test_random_inputs_are_exact_under_time_windows[3-0.0-0.0]",
        "pairs missing",
    ),
    "window-too-wide": Mutation(
        Fault(
            "rtl.chain.segments",
            "in_range.all() & in_bits.all() & fits",
            "in_range.all() & fits",
            "a window of more bits than are kept passes the check",
        ),
        "test_segments.py::test_a_plan_adds_up_to_the_windows[3-1-1]",
        "cannot be held",
    ),
    "assertion-unguarded": Mutation(
        Fault(
            "flow.compact",
            "return _CLEARED.sub(_loop, guarded)",
            'return _CLEARED.sub(_loop, _UNWANTED.sub("", verilog))',
            "assertions are left where Verilog-2001 does not know them",
        ),
        "test_lint.py::test_verilator_and_yosys_find_nothing_to_complain_of"
        "[splitjoin, smallest-streamjoin_top]",
        "Can't find definition of",
    ),
}
