"""Faults in the design with an ordered index."""

from tests.hw.mutation import Mutation

from streamjoin_hw.formal.faults import Fault

_WORDS = "test_index.py::test_a_word_shows_what_was_stored_and_what_has_expired_before"
_SEARCH = "test_index_words.py::test_a_code_lies_in_the_word_that_its_bucket_says[16]"
_LARGE = "test_index_words.py::test_a_code_lies_in_the_word_that_its_bucket_says[512]"
_HALF = "test_index.py::test_an_index_shows_every_tuple_of_the_buckets_that_are_asked_for_once"
_AGES = "test_index.py::test_tuples_expire_in_order_and_rounds_span_all_that_are_held"

INDEX_MUTATIONS = {
    "splitter-itself-above": Mutation(
        Fault(
            "rtl.index.splitters",
            "above.eq(splitters[k] < codes[k])",
            "above.eq(splitters[k] <= codes[k])",
            "a code that is a splitter lies in the bucket behind",
        ),
        _SEARCH,
        "assert",
    ),
    "splitter-of-another-level": Mutation(
        Fault(
            "rtl.index.splitters",
            "is_mine &= self.number[: depth - 1 - level] == 0",
            "is_mine &= 1",
            "a splitter is also put down in the levels above its own",
        ),
        _SEARCH,
        "assert",
    ),
    "words-of-the-bucket-before": Mutation(
        Fault(
            "rtl.index.splitters",
            "row.shift.eq(Mux(self.several, self.row.shift, ONE_WORD))",
            "row.shift.eq(self.row.shift)",
            "a bucket that is to have one word has the row of another",
        ),
        _SEARCH,
        "assert",
    ),
    "more-words-than-all": Mutation(
        Fault(
            "rtl.index.join",
            "Mux(is_all, ~0, words)",
            "words",
            "of an interval that goes around the index only the rest is read",
        ),
        "test_index_words.py::test_an_interval_of_more_words_than_the_index_has_is_all_of_them",
        "pairs missing",
    ),
    "words-of-the-last-input": Mutation(
        Fault(
            "rtl.index.join",
            "several.eq(self.bucket_words[-1])",
            "several.eq(0)",
            "buckets of several words get one each",
        ),
        "test_index_words.py::test_buckets_of_several_words_are_loaded_through_the_design",
        "assert",
    ),
    "widths-of-the-wrong-side": Mutation(
        Fault(
            "rtl.encode",
            "widths = Mux(is_s, *widths), Mux(is_s, *widths[::-1])",
            "widths = widths",
            "R looks for S by the widths of S",
        ),
        "test_index.py::test_widths_and_splitters_hold_for_a_whole_input",
        "Error",
    ),
    "not-one-float-wider": Mutation(
        Fault(
            "rtl.encode",
            "keys = Mux(is_s, key, _next_below(key)), Mux(is_s, key, _next_above(key))",
            "keys = (key, key)",
            "R looks between rounded bounds for S whose bounds are rounded otherwise",
        ),
        "test_index.py::test_a_float_that_rounds_away_is_looked_for",
        "pairs missing",
    ),
    "no-bound-taken-for-none": Mutation(
        Fault(
            "rtl.encode",
            "low = Mux(is_r & no_bound & ~is_nan(key), Const(0, KEY_BITS), lo)",
            "low = lo",
            "R looks for nothing where a bound is no number",
        ),
        "test_index.py::test_a_float_that_rounds_away_is_looked_for",
        "pairs missing",
    ),
    "widths-in-the-middle": Mutation(
        Fault(
            "rtl.join",
            "return Mux(idle, self.band.as_value(), kept.as_value())",
            "return self.band",
            "widths that are written while an input runs count at once",
        ),
        "test_index.py::test_widths_and_splitters_hold_for_a_whole_input",
        "Error",
    ),
    "splitters-in-the-middle": Mutation(
        Fault(
            "rtl.join",
            "array.splitter_load.eq(self.splitter_load & intake.idle)",
            "array.splitter_load.eq(self.splitter_load)",
            "splitters that are written while an input runs count at once",
        ),
        "test_index.py::test_widths_and_splitters_hold_for_a_whole_input",
        "Error",
    ),
    "expired-in-every-bank": Mutation(
        Fault(
            "rtl.index.occupancy",
            "mine = is_new & (bank_of(params, position.word) == bank)",
            "mine = is_new",
            "a slot of the same row changes in all banks",
        ),
        _WORDS,
        "assert",
    ),
    "change-not-seen": Mutation(
        Fault(
            "rtl.index.occupancy",
            "Mux(rows[bank] == row, changed, 0)",
            "Mux(rows[bank] == row, 0, 0)",
            "what changed is not seen in the cycle in which it is written",
        ),
        _WORDS,
        "assert",
    ),
    "change-of-another-word": Mutation(
        Fault(
            "rtl.index.occupancy",
            "Mux(rows[bank] == row, changed, 0)",
            "changed",
            "what changed in a word is seen in another one",
        ),
        _WORDS,
        "assert",
    ),
    "bit-of-the-other-memory": Mutation(
        Fault(
            "rtl.index.occupancy",
            "self.entered[bank].eq(entered_into)",
            "self.entered[bank].eq(left_into)",
            "a slot that was used before is not seen as used",
        ),
        _WORDS,
        "assert",
    ),
    "swept-in-part": Mutation(
        Fault(
            "rtl.index.occupancy",
            "write.en.eq(Mux(self.sweep, ~0, changed))",
            "write.en.eq(Mux(self.sweep, 1, changed))",
            "clearing leaves all slots of a word but one",
        ),
        _WORDS,
        "assert",
    ),
    "rounds-too-short": Mutation(
        Fault(
            "rtl.index.ages",
            "begin.eq(head + has_arrived)",
            "begin.eq(head)",
            "a round may begin before a tuple of the last but one has expired",
        ),
        f"{_AGES}[8-90]",
        "assert",
    ),
    "position-never-expired": Mutation(
        Fault(
            "rtl.index.ages",
            "self.full & ((before == 0) if bits else 1)",
            "self.full & ((before != 0) if bits else 0)",
            "no tuple leaves a full count window",
        ),
        f"{_AGES}[3-40]",
        "a tuple stays in a full window",
    ),
    "position-expired-early": Mutation(
        Fault(
            "rtl.index.ages",
            "(oldest.o.p.end <= latest)",
            "(oldest.o.p.end <= latest + 1)",
            "a tuple leaves one unit of time too early",
        ),
        f"{_AGES}[8-5]",
        "a tuple expires before its time",
    ),
    "expired-twice": Mutation(
        Fault(
            "rtl.index.ages",
            "& ~self.free & ~self.clear",
            "& ~self.clear",
            "the tuple behind one that expires goes with it",
        ),
        f"{_AGES}[8-5]",
        "assert",
    ),
    "oldest-not-awaited": Mutation(
        Fault(
            "rtl.index.ages",
            "self.blocked.eq(pushes & ~oldest.o.valid)",
            "self.blocked.eq(0)",
            "a tuple arrives before the one that it pushes out is known",
        ),
        f"{_AGES}[1-6]",
        "assert",
    ),
    "left-before-its-time-unseen": Mutation(
        Fault(
            "rtl.index.ages",
            "self.evicted.eq(left & (end > now))",
            "self.evicted.eq(left & (end < now))",
            "a tuple that leaves by count before its time is not counted",
        ),
        f"{_AGES}[8-90]",
        "assert",
    ),
    "spread-ignored": Mutation(
        Fault(
            "rtl.index.plan",
            "last = bucket + reach",
            "last = bucket + (reach & 0)",
            "displaced tuples are not looked for",
        ),
        f"{_HALF}[2-27-16]",
        "a tuple is missing",
    ),
    "spread-of-the-round-before-forgotten": Mutation(
        Fault(
            "rtl.index.place",
            "spread.before.eq(placed.before)",
            "spread.before.eq(0)",
            "a tuple that is stored in a new round hides those of the last that lie further",
        ),
        f"{_HALF}[2-31-16]",
        "a tuple is missing",
    ),
    "extent-ignored": Mutation(
        Fault(
            "rtl.index.plan",
            "one.extent[self._bank_bits :]",
            "0",
            "only the first buckets of an interval are read",
        ),
        f"{_HALF}[2-27-16]",
        "a tuple is missing",
    ),
    "last-word-over-the-end": Mutation(
        Fault(
            "rtl.index.plan",
            "Mux(last[bits], ~0, last[:bits])[:bits]",
            "last[:bits]",
            "a spread that reaches around all words is taken for a short one",
        ),
        f"{_HALF}[2-27-16]",
        "a tuple is missing",
    ),
    "round-in-the-middle-of-a-search": Mutation(
        Fault(
            "rtl.index.half",
            "ages.turn.eq(is_over & ~has_begun)",
            "ages.turn.eq(is_over)",
            "a search that has begun is planned anew",
        ),
        f"{_HALF}[2-31-16]",
        "a tuple is shown twice",
    ),
    "stored-twice-in-a-slot": Mutation(
        Fault(
            "rtl.index.place",
            "reduce(or_, new, known)",
            "reduce(or_, new[1:], known)",
            "of two tuples that follow one another the second takes the first one's slot",
        ),
        f"{_HALF}[2-27-16]",
        "just being stored",
    ),
    "stored-ahead-of-its-search": Mutation(
        Fault(
            "rtl.index.half",
            "stores.eq(is_free & is_bare)",
            "stores.eq(is_free)",
            "a tuple is stored while the search before it waits",
        ),
        f"{_HALF}[2-31-16]",
        "assert",
    ),
    "hint-of-the-row-before": Mutation(
        Fault(
            "rtl.index.plan",
            "count.start.eq(Mux(is_same, hint, 0))",
            "count.start.eq(hint)",
            "where a tuple of an earlier round was displaced to is searched first",
        ),
        "test_index_order.py::test_errands_are_shown_in_order_with_what_they_have_to_read",
        "assert",
    ),
    "read-on-while-held": Mutation(
        Fault(
            "rtl.index.half",
            "~last.stale & ~(last.scans & self.hold)",
            "~last.stale",
            "words are read while the result FIFO is full",
        ),
        "test_index.py::test_one_key_everywhere_overflows_nothing",
        "a result FIFO overflowed",
    ),
    "stored-twice-a-cycle-later": Mutation(
        Fault(
            "rtl.index.place",
            "reduce(or_, new, known)",
            "reduce(or_, new[:1], known)",
            "of two tuples with a cycle between them the second takes the first one's slot",
        ),
        f"{_HALF}[2-27-16]",
        "just being stored",
    ),
    "words-of-the-tuple-behind": Mutation(
        Fault(
            "rtl.index.place",
            "is_old, used, bits = is_kept & ~again, [], []",
            "is_old, used, bits = is_kept & ~is_kept, [], []",
            "a tuple that waits is stored by what the words of the one behind it hold",
        ),
        f"{_HALF}[2-27-16]",
        "just being stored",
    ),
    "word-not-within-its-bucket": Mutation(
        Fault(
            "rtl.index.splitters",
            "self.words[k].eq(first + (part >> ones)[:COUNT_BITS])",
            "self.words[k].eq(first)",
            "all codes of a bucket of several words are of its first",
        ),
        _SEARCH,
        "assert",
    ),
    "word-of-the-next-code": Mutation(
        Fault(
            "rtl.index.splitters",
            'codes = self._beside(m, codes, table, "code")',
            "pass",
            "the code that is one behind is counted on in a bucket",
        ),
        _SEARCH,
        "assert",
    ),
    "code-ahead-of-a-slow-memory": Mutation(
        Fault(
            "rtl.index.splitters",
            "range(2 if is_slow(len(table.init)) else 1)",
            "range(1)",
            "the code does not wait for what is read from block RAM",
        ),
        _LARGE,
        "assert",
    ),
    "splitter-of-the-neighbour": Mutation(
        Fault(
            "rtl.index.splitters",
            "(self.number[0] == bit)",
            "(self.number[0] != bit)",
            "of two rows that are read at once each is written as the other",
        ),
        _SEARCH,
        "assert",
    ),
    "spread-not-renewed": Mutation(
        Fault(
            "rtl.index.place",
            "self.stretch.eq(self.stores & is_displaced)",
            "self.stretch.eq(self.stores & is_displaced & (raises | (offset != 0)))",
            "a spread that reaches no further than the first words is not renewed",
        ),
        "test_index.py::test_a_tuple_that_lies_as_far_as_those_of_the_round_before_is_shown",
        "a tuple is missing",
    ),
}
