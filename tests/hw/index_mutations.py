"""Faults in the design with an ordered index."""

from tests.hw.mutation import Mutation

from streamjoin_hw.formal.faults import Fault

_WORDS = "test_index.py::test_a_word_shows_what_was_stored_and_what_has_expired_before"
_SEARCH = "test_index_words.py::test_a_code_lies_in_the_word_that_its_bucket_says"
_HALF = "test_index.py::test_an_index_shows_every_tuple_of_the_buckets_that_are_asked_for_once"
_AGES = "test_index.py::test_tuples_expire_in_order_and_rounds_span_all_that_are_held"

INDEX_MUTATIONS = {
    "expired-a-cycle-late": Mutation(
        Fault(
            "rtl.index.occupancy",
            "Mux(goes & (row_of(params, going.word) == shown), going.slot, 0)",
            "Mux(goes & ~goes, going.slot, 0)",
            "a word that is looked at as a tuple of it expires still shows the tuple",
        ),
        _WORDS,
        "assert",
    ),
    "expired-in-every-bank": Mutation(
        Fault(
            "rtl.index.occupancy",
            "goes.eq(going.valid & (bank_of(params, going.word) == bank))",
            "goes.eq(going.valid)",
            "a slot of the same row is freed in all banks",
        ),
        _WORDS,
        "assert",
    ),
    "two-expire-in-a-word": Mutation(
        Fault(
            "rtl.index.occupancy",
            "beside = left.read_port(transparent_for=(leaves,))",
            "beside = left.read_port()",
            "of two tuples of a word that expire one after the other the first is forgotten",
        ),
        _WORDS,
        "assert",
    ),
    "stored-and-not-shown": Mutation(
        Fault(
            "rtl.index.occupancy",
            "was_entered = entered.read_port(transparent_for=(enters,))",
            "was_entered = entered.read_port()",
            "a word that is looked at as a tuple is stored in it does not show the tuple",
        ),
        _WORDS,
        "assert",
    ),
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
    "word-not-within-its-bucket": Mutation(
        Fault(
            "rtl.index.splitters",
            "self.words[k].eq(first + behind)",
            "self.words[k].eq(first)",
            "all codes of a bucket of several words are of its first",
        ),
        _SEARCH,
        "assert",
    ),
    "word-of-the-next-code": Mutation(
        Fault(
            "rtl.index.splitters",
            'codes = [self._behind(m, code, "code") for code in codes]\n        self._count_on',
            "self._count_on",
            "the code that is one behind is counted on in a bucket",
        ),
        _SEARCH,
        "assert",
    ),
    "words-of-the-bucket-before": Mutation(
        Fault(
            "rtl.index.splitters",
            "write.data.shift.eq(Mux(self.several, self.row.shift, ONE_WORD))",
            "write.data.shift.eq(self.row.shift)",
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
            "table.several.eq(self.bucket_words[-1])",
            "table.several.eq(0)",
            "buckets of several words get one each",
        ),
        "test_index_words.py::test_buckets_of_several_words_are_loaded_through_the_design",
        "assert",
    ),
    "rounds-too-short": Mutation(
        Fault(
            "rtl.index.ages",
            "begin.eq(head + self.arrive)",
            "begin.eq(head)",
            "a round may begin before a tuple of the last but one has expired",
        ),
        f"{_AGES}[3-40]",
        "assert",
    ),
    "position-never-expired": Mutation(
        Fault(
            "rtl.index.ages",
            "leaves.eq(self.full & (tail == counted))",
            "leaves.eq(self.full & (tail != counted))",
            "no tuple leaves a full count window",
        ),
        f"{_AGES}[3-40]",
        "assert",
    ),
    "position-expired-early": Mutation(
        Fault(
            "rtl.index.ages",
            "over.eq(read.data.end <= self.now)",
            "over.eq(read.data.end <= self.now + 1)",
            "a tuple leaves one unit of time too early",
        ),
        f"{_AGES}[8-5]",
        "assert",
    ),
    "window-of-one": Mutation(
        Fault(
            "rtl.index.ages",
            "read = memory.read_port(transparent_for=(write,))",
            "read = memory.read_port()",
            "the position of a tuple that is the oldest at once is not known",
        ),
        f"{_AGES}[1-6]",
        "assert",
    ),
    "spread-ignored": Mutation(
        Fault(
            "rtl.index.half",
            "end = bucket + _reach(spread, now)",
            "end = bucket + (_reach(spread, now) & 0)",
            "displaced tuples are not looked for",
        ),
        f"{_HALF}[2]",
        "a tuple is missing",
    ),
    "spread-of-the-round-before-forgotten": Mutation(
        Fault(
            "rtl.index.half",
            "after.before.eq(Mux(is_same, spread.before, Mux(is_last, spread.now, 0)))",
            "after.before.eq(0)",
            "a tuple that is stored in a new round hides those of the last that lie further",
        ),
        f"{_HALF}[2]",
        "a tuple is missing",
    ),
    "spread-of-the-first-words": Mutation(
        Fault(
            "rtl.index.half",
            "spread.eq(Mux(offset == 0, first.as_value(), kept.as_value()))",
            "spread.eq(first.as_value())",
            "a tuple that is stored far away takes over another bucket's spread",
        ),
        f"{_HALF}[2]",
        "a tuple is missing",
    ),
    "extent-ignored": Mutation(
        Fault(
            "rtl.index.half",
            "known: Value = Mux(offset == 0, extent, before)",
            "known: Value = Mux(offset == 0, 0, before)",
            "only the first buckets of an interval are read",
        ),
        f"{_HALF}[2]",
        "a tuple is missing",
    ),
    "last-word-over-the-end": Mutation(
        Fault(
            "rtl.index.half",
            "end = Mux(end[bits], ~0, end[:bits])[:bits]",
            "end = end[:bits]",
            "a spread that reaches around all words is taken for a short one",
        ),
        f"{_HALF}[2]",
        "a tuple is missing",
    ),
    "read-on-while-held": Mutation(
        Fault(
            "rtl.index.half",
            "self.scan.eq(self.searching & ~self.hold)",
            "self.scan.eq(self.searching)",
            "words are read while the result FIFO is full",
        ),
        "test_index.py::test_one_key_everywhere_overflows_nothing",
        "a result FIFO overflowed",
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
            "array.splitter_load.eq(self.splitter_load & sequencer.idle)",
            "array.splitter_load.eq(self.splitter_load)",
            "splitters that are written while an input runs count at once",
        ),
        "test_index.py::test_widths_and_splitters_hold_for_a_whole_input",
        "Error",
    ),
}
