"""Faults in the design that looks tuples up."""

from tests.hw.mutation import Mutation

from streamjoin_hw.formal.faults import Fault

LEADS = (
    "test_hash_own.py::"
    "test_an_index_leads_to_all_tuples_of_a_tag_in_the_window_and_to_few_others[0.7]"
)

HASH_MUTATIONS = {
    "bucket-behind": Mutation(
        Fault(
            "rtl.hash.index",
            "again.eq(self.push & (self.address == looked_at))",
            "again.eq(0)",
            "a bucket that is looked at right after a push does not show it",
        ),
        "test_hash.py::test_a_bucket_names_its_last_tuples_at_once_and_keeps_the_tags_it_pushed_out",
        "assert",
    ),
    "tags-forgotten": Mutation(
        Fault(
            "rtl.hash.index",
            "after.gone_before.eq(gone_before)",
            "after.gone_before.eq(0)",
            "a bucket forgets in a new round what it pushed out in the last one",
        ),
        "test_hash.py::test_a_bucket_names_its_last_tuples_at_once_and_keeps_the_tags_it_pushed_out",
        "assert",
    ),
    "never-expired": Mutation(
        Fault(
            "rtl.hash.ring",
            "self.arrive & self.full & (self.tail == oldest)",
            "self.arrive & self.full & (self.tail != oldest)",
            "no tuple leaves a full window",
        ),
        "test_hash.py::test_windows_of_any_size_are_exact[3-windows4]",
        "surplus: first surplus",
    ),
    "window-not-emptied": Mutation(
        Fault(
            "rtl.hash.ring",
            "[oldest.eq(self.head), self.tail.eq(self.head)]",
            "[oldest.eq(self.head)]",
            "an input sees the tuples of the one before",
        ),
        "test_hash.py::test_random_inputs_are_exact_and_in_order[two ways-0.0-0.0]",
        "surplus: first",
    ),
    "time-window-short": Mutation(
        Fault(
            "rtl.hash.ring",
            "over.eq(tail_end <= self.now)",
            "over.eq(tail_end <= self.now + 1)",
            "a tuple leaves one unit of time too early",
        ),
        "test_hash.py::test_a_window_drops_what_is_too_old_and_reports_what_left_too_early[6-5]",
        "assert",
    ),
    "link-to-the-wrong-tuple": Mutation(
        Fault(
            "rtl.hash.stream_index",
            "self.link.eq(self.names[ways - 1])",
            "self.link.eq(self.names[0])",
            "a tuple is linked to the newest of its bucket",
        ),
        "test_hash.py::test_one_key_everywhere_is_exact_and_overflows_nothing[3]",
        "pairs missing",
    ),
    "partners-behind-ignored": Mutation(
        Fault(
            "rtl.hash.join",
            "task.deep.eq(seen[-1] & places.behind)",
            "task.deep.eq(0)",
            "no link is followed",
        ),
        "test_hash.py::test_one_key_everywhere_is_exact_and_overflows_nothing[3]",
        "pairs missing",
    ),
    "walk-goes-on": Mutation(
        Fault(
            "rtl.hash.join",
            "before & (places.places[way] < bound)",
            "before & (places.places[way] < places.span)",
            "a name out of date that looks young is followed",
        ),
        "test_hash.py::test_names_of_before_a_reset_that_look_young_give_nothing",
        "surplus: first",
    ),
    "too-far-ahead": Mutation(
        Fault(
            "rtl.hash.join",
            "behind < params.lead_tuples - 1",
            "behind < 2 * params.lead_tuples - 1",
            "more tuples are accepted than the ring and the queue have room for",
        ),
        "test_hash.py::test_one_key_everywhere_is_exact_and_overflows_nothing[3]",
        "the queue of tasks overflowed",
    ),
    "hold-ignored-by-the-walk": Mutation(
        Fault(
            "rtl.hash.walk",
            "active.eq(self.busy & ~self.hold)",
            "active.eq(self.busy)",
            "the walk goes on while the result FIFO is full",
        ),
        "test_hash.py::test_one_key_everywhere_is_exact_and_overflows_nothing[3]",
        "a result FIFO overflowed",
    ),
    "own-bucket-taken-away": Mutation(
        Fault(
            "rtl.hash.stream_index",
            "& ~self._is_held(own.names[0])",
            "& (own.key == own.key)",
            "an own bucket is claimed while its tuples are in the window",
        ),
        LEADS,
        "assert",
    ),
    "own-bucket-never-claimed": Mutation(
        Fault(
            "rtl.hash.stream_index",
            "& (oldest.tag == self.tag)",
            "& (oldest.tag != oldest.tag)",
            "no key gets a bucket of its own",
        ),
        LEADS,
        "assert",
    ),
    "own-bucket-of-another": Mutation(
        Fault(
            "rtl.hash.stream_index",
            "is_own.eq(own.key == key)",
            "is_own.eq(own.key[:-2] == key[:-2])",
            "tags that share an own bucket are taken for one another",
        ),
        LEADS,
        "assert",
    ),
    "pushed-twice": Mutation(
        Fault(
            "rtl.hash.stream_index",
            "table.push.eq(self.push & ~is_own & ~claims)",
            "table.push.eq(self.push)",
            "a tuple is named in its key's own bucket and in the shared one",
        ),
        LEADS,
        "assert",
    ),
    "own-links-ignored": Mutation(
        Fault(
            "rtl.hash.stream_index",
            "self.behind.eq(is_own | ",
            "self.behind.eq(",
            "no link is followed from an own bucket",
        ),
        LEADS,
        "assert",
    ),
    "second-link-from-the-wrong-lane": Mutation(
        Fault(
            "rtl.hash.walk",
            "lane.eq(lane_of(params, task.slots[step]))",
            "lane.eq(lane_of(params, task.slots[0]))",
            "of two links that are read at once the first is followed twice",
        ),
        "test_hash_own.py::test_one_key_everywhere_is_exact_with_two_results_a_beat[8]",
        "pairs missing",
    ),
    "second-link-out-of-order": Mutation(
        Fault(
            "rtl.hash.walk",
            "before, leads_on, listed = place, follows,",
            "before, leads_on, listed = task.last, follows,",
            "the second of two links may lead to a tuple that is younger than the first's",
        ),
        "test_hash_own.py::test_the_second_of_two_links_is_not_followed_to_the_first_ones_tuple[5]",
        "surplus",
    ),
    "second-result-given-twice": Mutation(
        Fault(
            "rtl.matching",
            "held.mask.eq(both)",
            "held.mask.eq(one)",
            "of three results of a word the second is given twice",
        ),
        "test_hash_own.py::test_a_word_leaves_as_beats_of_two_results_and_the_lowest_lane_first",
        "assert",
    ),
    "second-result-not-counted": Mutation(
        Fault(
            "rtl.top",
            "counters.result.eq(2)",
            "counters.result.eq(1)",
            "the register counts beats, not results",
        ),
        "test_hash_model.py::test_the_counter_counts_results_and_not_beats",
        "assert",
    ),
    "second-result-not-in-the-packet": Mutation(
        Fault(
            "rtl.board_top",
            "return Mux(is_second, self.i_data[bits:], self.i_data[:bits]), follows",
            "return self.i_data[:bits], follows",
            "a packet has the first result of a beat twice",
        ),
        "test_board.py::test_two_results_of_a_beat_are_two_words_of_a_packet[0-0]",
        "assert",
    ),
}
