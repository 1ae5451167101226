"""Faults in the ordered indexes' pace and order: what waits for one, what joins, what is merged."""

from tests.hw.mutation import Mutation

from streamjoin_hw.formal.faults import Fault

_WAITS = "test_index_order.py::test_an_index_waits_for_results_that_are_not_taken"
_ORDER = "test_index_order.py::test_words_of_both_indexes_are_taken_in_order_of_arrival"
_RUNS = "test_index_order.py::test_sides_that_come_in_runs_are_exact"
_PLAN = "test_index_order.py::test_errands_are_shown_in_order_with_what_they_have_to_read"
_WORDS = "test_index.py::test_a_word_shows_what_was_stored_and_what_has_expired_before"
_HALF = "test_index.py::test_an_index_shows_every_tuple_of_the_buckets_that_are_asked_for_once"

INDEX_SIDE_MUTATIONS = {
    "queue-too-short": Mutation(
        Fault(
            "rtl.index.join",
            "has_room[side].eq(after < queue_tuples(self.params))",
            "has_room[side].eq(after <= 2 * queue_tuples(self.params))",
            "more tuples are accepted than a queue has room for",
        ),
        _WAITS,
        "the queue of the index overflowed",
    ),
    "numbers-come-again": Mutation(
        Fault(
            "rtl.index.merge",
            "self.far[side].eq(ahead >= LEAD)",
            "self.far[side].eq(0)",
            "an index goes on until its arrivals have the numbers of those that wait",
        ),
        _WAITS,
        "Error",
    ),
    "younger-word-first": Mutation(
        Fault(
            "rtl.index.merge",
            "~is_before(oldest[SIDE_S], oldest[SIDE_R])",
            "1",
            "what R's index found is given at once",
        ),
        _ORDER,
        "a result has the other side",
    ),
    "side-of-who-is-stored": Mutation(
        Fault(
            "rtl.index.merge",
            "word.side.eq(Mux(chose_r, SIDE_S, SIDE_R))",
            "word.side.eq(Mux(chose_r, SIDE_R, SIDE_S))",
            "results have the side of the earlier tuple",
        ),
        _ORDER,
        "Error",
    ),
    "passed-before-it-is-shown": Mutation(
        Fault(
            "rtl.index.compare",
            "PASSED_CYCLES = 4",
            "PASSED_CYCLES = 1",
            "an index has passed an arrival whose matches are on their way to the FIFO",
        ),
        _RUNS,
        "Error",
    ),
    "end-of-the-interval-left-out": Mutation(
        Fault(
            "rtl.index.compare",
            "(code <= asks.high)",
            "(code < asks.high)",
            "R does not meet S at the upper end of its interval",
        ),
        "test_index.py::test_widths_and_splitters_hold_for_a_whole_input",
        "Error",
    ),
    "passed-before-it-is-searched": Mutation(
        Fault(
            "rtl.index.side",
            "passed: Any = self.next_number",
            "passed: Any = self.next_number + 1",
            "an index has passed an arrival while it searches for it",
        ),
        _RUNS,
        "Error",
    ),
    "number-of-the-tuple-that-joined": Mutation(
        Fault(
            "rtl.index.side",
            "asker.eq(self.next_number)",
            "asker.eq(self.next_number + half.stored)",
            "a search that a tuple joins has that tuple's number",
        ),
        _RUNS,
        "Error",
    ),
    "joins-in-every-cycle": Mutation(
        Fault(
            "rtl.index.choose",
            "joins.eq(is_search & ends & self.has_second & second.stores)",
            "joins.eq(is_search & self.has_second & second.stores)",
            "a tuple that follows a long search is stored in each of its cycles",
        ),
        f"{_HALF}[2-27-16]",
        "assert",
    ),
    "search-stored": Mutation(
        Fault(
            "rtl.index.choose",
            "joins.eq(is_search & ends & self.has_second & second.stores)",
            "joins.eq(is_search & ends & self.has_second)",
            "a search that follows a search is stored",
        ),
        f"{_HALF}[2-27-16]",
        "assert",
    ),
    "second-errand-lost": Mutation(
        Fault(
            "rtl.index.plan",
            "Mux(self.take_both, is_kept[2:], Mux(self.take_first, is_kept[1:], is_kept))",
            "Mux(self.take_both | self.take_first, is_kept[2:], is_kept)",
            "the errand behind one that begins alone is dropped",
        ),
        _PLAN,
        "errands are not shown in order",
    ),
    "planned-on-what-was-done": Mutation(
        Fault(
            "rtl.index.plan",
            "fetch.eq(begin + was_retired)",
            "fetch.eq(begin)",
            "what was carried out just before all is planned anew is carried out again",
        ),
        _PLAN,
        "errands are not shown in order",
    ),
    "stored-where-words-were-tried": Mutation(
        Fault(
            "rtl.index.place",
            "m.d.sync += same.eq(_equal(rows, looked))",
            "m.d.sync += same.eq(0)",
            "behind a tuple that tried more words the next one takes its slot",
        ),
        f"{_HALF}[2-31-16]",
        "assert",
    ),
    "arrival-dropped-while-the-oldest-waits": Mutation(
        Fault(
            "rtl.index.side",
            "loads.eq((begin != end) & (goes | ~has_second))",
            "loads.eq(begin != end)",
            "what waits behind the second arrival is lost",
        ),
        _WAITS,
        "Error",
    ),
    "shown-again": Mutation(
        Fault(
            "rtl.index.side",
            "shown.eq(Mux(took, second.as_value(), oldest.as_value()))",
            "shown.eq(oldest)",
            "of two that are taken one after the other the first is shown twice",
        ),
        _RUNS,
        "Error",
    ),
    "read-before-it-is-kept": Mutation(
        Fault(
            "rtl.index.plan",
            "Mux(is_newest, newest.as_value(), read.data.as_value())",
            "read.data.as_value()",
            "an errand that comes while none waits is read before it is kept",
        ),
        _PLAN,
        "errands are not shown in order",
    ),
    "word-over-the-one-before": Mutation(
        Fault(
            "rtl.index.found",
            "at.eq(Mux(counts, behind, end))",
            "at.eq(end)",
            "of words with matches in consecutive cycles the second is written over the first",
        ),
        _RUNS,
        "Error",
    ),
    "held-when-full": Mutation(
        Fault(
            "rtl.index.found",
            "waits >= size - HOLD_WORDS",
            "waits >= size",
            "an index is told to stop when no word is free",
        ),
        "test_index.py::test_one_key_everywhere_overflows_nothing",
        "a result FIFO overflowed",
    ),
    "highest-lane-first": Mutation(
        Fault(
            "rtl.matching",
            "return Mux(mask[:half].any(), low, high)",
            "return Mux(mask[half:].any(), high, low)",
            "the payload of a word's highest lane is given with each of its lanes",
        ),
        "test_index_words.py::test_an_interval_of_more_words_than_the_index_has_is_all_of_them",
        "Error",
    ),
}
