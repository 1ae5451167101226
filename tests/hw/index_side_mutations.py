"""Faults in the ordered indexes' pace and order: what waits for one, what joins, what is merged."""

from tests.hw.mutation import Mutation

from streamjoin_hw.formal.faults import Fault

_WAITS = "test_index_order.py::test_an_index_waits_for_results_that_are_not_taken"
_ORDER = "test_index_order.py::test_words_of_both_indexes_are_taken_in_order_of_arrival"
_RUNS = "test_index_order.py::test_sides_that_come_in_runs_are_exact"
_QUEUE = "test_index_order.py::test_two_entries_of_a_queue_are_shown_in_order"
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
            "word.side.eq(Mux(is_r, SIDE_S, SIDE_R))",
            "word.side.eq(Mux(is_r, SIDE_R, SIDE_S))",
            "results have the side of the earlier tuple",
        ),
        _ORDER,
        "Error",
    ),
    "passed-before-it-is-searched": Mutation(
        Fault(
            "rtl.index.side",
            "passed.eq(Mux(half.searching, number, self.next_number))",
            "passed.eq(self.next_number)",
            "an index has passed an arrival as soon as it begins with it",
        ),
        _RUNS,
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
    "number-of-the-tuple-that-joined": Mutation(
        Fault(
            "rtl.index.side",
            "(self.next_number + half.joins)",
            "(self.next_number + 0)",
            "a search that begins as a tuple joins the one before has that tuple's number",
        ),
        _RUNS,
        "Error",
    ),
    "joins-a-full-word": Mutation(
        Fault(
            "rtl.index.half",
            "self.joins.eq(self.searching & self.follows & ~occupancy.used_ahead.all())",
            "self.joins.eq(self.searching & self.follows)",
            "a tuple whose word is full is stored nowhere",
        ),
        f"{_HALF}[2]",
        "a tuple is missing",
    ),
    "joins-in-every-cycle": Mutation(
        Fault(
            "rtl.index.half",
            "joined.eq(self.joins & finishes)",
            "joined.eq(self.joins)",
            "a tuple that follows a long search is stored again in each of its cycles",
        ),
        f"{_HALF}[2]",
        "Error",
    ),
    "window-of-the-search": Mutation(
        Fault(
            "rtl.index.side",
            "half.full.eq(_task(layout, enters).full)",
            "half.full.eq(_task(layout, working).full)",
            "whether a tuple that joins a search pushes another out is read off the search",
        ),
        _RUNS,
        "Error",
    ),
    "search-stored": Mutation(
        Fault(
            "rtl.index.side",
            "follows.eq(is_known & ahead.stores)",
            "follows.eq(is_known)",
            "a search that follows a search is stored",
        ),
        _RUNS,
        "Error",
    ),
    "taken-over-by-the-words-before": Mutation(
        Fault(
            "rtl.index.occupancy",
            "Mux(self.beside, entered_ahead.data, was_entered.data)",
            "was_entered.data",
            "a tuple that joins a search flips the bits of another word",
        ),
        _WORDS,
        "assert",
    ),
    "stored-and-not-shown-ahead": Mutation(
        Fault(
            "rtl.index.occupancy",
            "entered_ahead = entered.read_port(transparent_for=(enters,))",
            "entered_ahead = entered.read_port()",
            "a word that is looked ahead at as a tuple is stored in it does not show the tuple",
        ),
        _WORDS,
        "assert",
    ),
    "second-entry-lost": Mutation(
        Fault(
            "rtl.index.errands",
            "moves.eq(fifo.r_rdy & (is_front == self.take_first) & ~self.take_both)",
            "moves.eq(fifo.r_rdy & ~is_front & ~self.take_first & ~self.take_both)",
            "the entry behind one that is taken alone is dropped",
        ),
        _QUEUE,
        "entries are not shown in order",
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
}
