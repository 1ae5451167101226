"""Faults in SplitJoin's grouped stars, each with the test that has to notice."""

from tests.hw.mutation import Mutation

from streamjoin_hw.formal.faults import Fault

FILE, PARTS = "test_split_groups.py::", "test_split_group_parts.py::"
RANDOM = f"{FILE}test_results_are_exact_and_in_order_between_groups"
TIMES = f"{FILE}test_long_passes_in_time_windows_are_exact_between_groups"
SHARED = f"{FILE}test_groups_last_from_one_batch_to_the_next_with_shared_comparators"
COUNTER = f"{PARTS}test_the_last_arrival_of_each_group_closes_it"
ROUNDS = f"{PARTS}test_rounds_divide_a_batch_after_the_probes_that_end_a_group"
COMBINER = f"{PARTS}test_a_half_is_held_at_its_star_until_the_other_is_at_its_own"
BLANK = f"{PARTS}test_a_star_that_is_late_has_a_blank_probe"

GROUP_MUTATIONS = {
    "group-too-long": Mutation(
        Fault(
            "rtl.split.groups.counter",
            "(left == 2) & ~endless",
            "(left == 1) & ~endless",
            "a group is one arrival longer than it should be",
        ),
        f"{COUNTER}[3]",
        "another arrival",
    ),
    "group-single": Mutation(
        Fault(
            "rtl.split.groups.counter",
            "single.eq(self.size == 1)",
            "single.eq(self.size <= 2)",
            "after the first one groups of two have one arrival",
        ),
        f"{COUNTER}[2]",
        "another arrival",
    ),
    "group-counted-on": Mutation(
        Fault(
            "rtl.split.groups.counter",
            "left.eq(self.size)",
            "left.eq(left)",
            "the next input goes on in the last one's group",
        ),
        f"{COUNTER}[3]",
        "another arrival",
    ),
    "group-star-forgotten": Mutation(
        Fault(
            "rtl.split.collector",
            "m.d.sync += batch.count.eq(1)",
            "m.d.sync += batch.count.eq(0)",
            "a group whose last probe is of a batch before gets no star",
        ),
        BLANK,
        "no star is owed",
    ),
    "group-star-not-moved": Mutation(
        Fault(
            "rtl.split.collector",
            "m.d.sync += batch.ends[p].eq(1)",
            "m.d.sync += batch.ends[p].eq(0)",
            "a group that the other side's tuple closes gets no star",
        ),
        BLANK,
        "its last probe",
    ),
    "group-blank-probe-matches": Mutation(
        Fault(
            "rtl.split.half",
            "wanted & ~w.batch.blank if p == 0 else wanted",
            "wanted",
            "what stands for a star is compared",
        ),
        f"{RANDOM}[3-4-2-4-3-0.0-0.0]",
        "surplus",
    ),
    "group-blank-probe-matches-shared": Mutation(
        Fault(
            "rtl.split.shared_core",
            "wanted &= ~w.batch.blank",
            "wanted &= 1",
            "what stands for a star is compared",
        ),
        f"{SHARED}[3]",
        "surplus",
    ),
    "group-blank-probe-has-a-time": Mutation(
        Fault(
            "rtl.split.half",
            "any_alive = any_alive | w.batch.blank",
            "any_alive = any_alive | 0",
            "rows are dropped by the time of a probe that is none",
        ),
        f"{TIMES}[3]",
        "missing",
    ),
    "group-served-together": Mutation(
        Fault(
            "rtl.split.groups.rounds",
            "self.serves.eq(following)",
            "self.serves.eq(next_left)",
            "probes of the next group are served before the star",
        ),
        ROUNDS,
        "another round",
    ),
    "group-overtaken": Mutation(
        Fault(
            "rtl.split.groups.combiner",
            "allowed = ~closed | theirs[side]",
            "allowed = ~closed | closed",
            "a half without tuples in the group that is due goes on",
        ),
        COMBINER,
        "before its group",
    ),
    "group-half-a-star": Mutation(
        Fault(
            "rtl.split.groups.combiner",
            "closed & (stars | ~theirs).all()",
            "closed & (stars & theirs).any()",
            "one half's star is taken for both",
        ),
        COMBINER,
        "Error",
    ),
    "group-last-star-lost": Mutation(
        Fault(
            "rtl.split.array",
            "owed.eq(self.draining & combiner.open & punctuate)",
            "owed.eq(0)",
            "an input ends without the star of its last group",
        ),
        f"{RANDOM}[3-4-2-4-3-0.0-0.0]",
        "not a star for each group",
    ),
    "group-last-star-late": Mutation(
        Fault(
            "rtl.split.array",
            "inside |= self._owed(m, combiner, punctuate, inside)",
            "inside |= 0 & self._owed(m, combiner, punctuate, inside)",
            "an input ends while the star of its last group waits",
        ),
        f"{PARTS}test_an_array_is_busy_until_the_last_group_s_star_is_taken",
        "idle although a star is owed",
    ),
    "group-under-the-inner-order": Mutation(
        Fault(
            "rtl.split.array",
            "Mux(self.order == OUTER, self.group, self.order >= INNER)",
            "Mux(self.order >= OUTER, self.group, 0)",
            "arrivals are grouped under the inner order",
        ),
        f"{FILE}test_groups_count_under_the_outer_order_alone[inner]",
        "Error",
    ),
    "group-begins-without-room": Mutation(
        Fault(
            "rtl.split.gatherer",
            "able &= ~bits.late[half] | may_open",
            "able &= 1",
            "a batch is begun for a star though its half has no room for one",
        ),
        f"{PARTS}test_a_late_star_waits_for_room_where_comparators_are_shared",
        "no room",
    ),
}
