"""Faults in how the ordered index plans ahead, and plans anew."""

from tests.hw.mutation import Mutation

from streamjoin_hw.formal.faults import Fault

_PLAN = "test_index_order.py::test_errands_are_shown_in_order_with_what_they_have_to_read"
_RAISED = "test_index.py::test_a_search_behind_the_tuple_that_raised_a_spread_reads_as_far"
_HALF = f"{_RAISED}[2-60]"
_ONE = f"{_RAISED}[2-3]"

INDEX_PLAN_MUTATIONS = {
    "full-ring-looks-empty": Mutation(
        Fault(
            "rtl.index.plan",
            "Signal(range(2 * self.depth), name=name)",
            "Signal(range(self.depth), name=name)",
            "errands that fill the memory are none",
        ),
        _PLAN,
        "assert",
    ),
    "stale-row-passed-on": Mutation(
        Fault(
            "rtl.index.plan",
            "later.stale.eq(self._is_stale(row)),",
            'later.stale.eq(row["stale"]),',
            "a spread that is raised while it is read for an errand does not count",
        ),
        _PLAN,
        "assert",
    ),
    "stale-as-it-is-planned": Mutation(
        Fault(
            "rtl.index.plan",
            "planned.stale.eq(self._is_stale(row)),",
            'planned.stale.eq(row["stale"]),',
            "a spread that is raised in an errand's last cycle of planning does not count",
        ),
        _PLAN,
        "an errand reads too little or too much",
    ),
    "stale-while-it-waits": Mutation(
        Fault(
            "rtl.index.plan",
            "with m.If(self.raised & is_kept[k] & is_hit)",
            "with m.If(self.raised & is_kept[k] & is_hit & (k < 2))",
            "of the planned errands the first two alone are marked",
        ),
        _PLAN,
        "an errand reads too little or too much",
    ),
    "stale-row-of-many": Mutation(
        Fault(
            "rtl.index.plan",
            "row.stale.eq(self._is_stale(row)),",
            "row.stale.eq(0),",
            "an errand of several rows forgets that the first ones were read too early",
        ),
        _PLAN,
        "an errand reads too little or too much",
    ),
    "stale-as-it-is-chosen": Mutation(
        Fault(
            "rtl.index.choose",
            "with m.If(self.raised & is_hit)",
            "with m.If(self.raised & is_hit & 0)",
            "an errand that has been chosen is not planned anew",
        ),
        _HALF,
        "a tuple is ",
    ),
    "stale-row-ready": Mutation(
        Fault(
            "rtl.index.half",
            "for row in (ready, last):",
            "for row in (last,):",
            "a search whose turn is next but one is not planned anew",
        ),
        _HALF,
        "a tuple is ",
    ),
    "stale-row-in-turn": Mutation(
        Fault(
            "rtl.index.half",
            "for row in (ready, last):",
            "for row in (ready,):",
            "a search whose turn it is is not planned anew",
        ),
        _HALF,
        "a tuple is ",
    ),
    "goes-on-as-it-marks": Mutation(
        Fault(
            "rtl.index.half",
            "is_idle.eq(self.wait | place.raised | ages.turn)",
            "is_idle.eq(self.wait | ages.turn)",
            "a search is carried out in the cycle in which it is marked",
        ),
        _HALF,
        "a tuple is missing",
    ),
    "stale-search-carried-out": Mutation(
        Fault(
            "rtl.index.half",
            "last.search & ~last.stale &",
            "last.search &",
            "a search that is to be planned anew is carried out all the same",
        ),
        _HALF,
        "a tuple is ",
    ),
    "stale-tuple-stored": Mutation(
        Fault(
            "rtl.index.place",
            "m.d.sync += is_placed.eq(0)",
            "pass",
            "a tuple brings its bucket's former spread back",
        ),
        _ONE,
        "a search is passed over",
    ),
    "stale-tuple-looked-at": Mutation(
        Fault(
            "rtl.index.place",
            "for each in stages",
            "for each in stages[1:]",
            "a tuple behind the one that raised their bucket's spread brings the former one back",
        ),
        _ONE,
        "a tuple is ",
    ),
}
