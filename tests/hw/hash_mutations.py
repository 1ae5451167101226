"""Faults in the design that looks tuples up."""

from tests.hw.mutation import Mutation

from streamjoin_hw.formal.faults import Fault

HASH_MUTATIONS = {
    "bucket-behind": Mutation(
        Fault(
            "rtl.hash.index",
            "again.eq(self.push & (self.bucket == looked_at))",
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
            "rtl.hash.join",
            "of_r.names[last].sequence)",
            "of_r.names[0].sequence)",
            "a tuple of R is linked to the newest of its bucket",
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
}
