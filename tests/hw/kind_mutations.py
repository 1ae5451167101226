"""Faults in the stage that decides kinds of join: rings, marks, sweep, results."""

from tests.hw.mutation import Mutation

from streamjoin_hw.formal.faults import Fault

_LEFT = "test_kinds.py::test_a_stage_gives_the_rows_of_each_kind[left]"
_FULL = "test_kinds.py::test_a_stage_gives_the_rows_of_each_kind[full]"
_SEMI = "test_kinds.py::test_a_stage_gives_the_rows_of_each_kind[semi]"
_ANTI = "test_kinds.py::test_a_stage_gives_the_rows_of_each_kind[anti]"
_RUNS = "test_kinds.py::test_rows_come_out_while_an_input_runs"
_RESTS = "test_kinds.py::test_rows_wait_until_the_array_rests"
_RESET = "test_kinds.py::test_after_a_reset_in_the_middle_the_next_input_is_exact"
_MARKS = "test_kinds.py::test_marks_of_rows_side_by_side_are_all_kept"
_RING = "test_kinds.py::test_a_ring_has_room_for_all_its_rows_but_none_for_more"

_OLDEST = "test_kinds_order.py::test_results_of_an_arrival_are_given_oldest_first"

KIND_MUTATIONS = {
    "oldest-first-of-the-next-arrival": Mutation(
        Fault(
            "rtl.kinds.oldest",
            "(came.side == kept.side) & (came.later == kept.later)",
            "(came.side == kept.side) & (came.later == came.later)",
            "results of arrivals of one side are put together",
        ),
        f"{_OLDEST}[0.0-0.0]",
        "payloads arrived, not",
    ),
    "oldest-first-from-slot-0": Mutation(
        Fault(
            "rtl.kinds.oldest",
            "Mux(group >= kept.start, group - kept.start, group + groups - kept.start)",
            "Mux(group >= 0, group, kept.start)",
            "results are by slot and not by age",
        ),
        f"{_OLDEST}[0.0-0.0]",
        "not by arrival of the earlier tuple",
    ),
    "oldest-first-bits-of-before": Mutation(
        Fault(
            "rtl.kinds.oldest",
            "Mux(has_others, others.data, 0) | row",
            "others.data | row",
            "bits of an earlier arrival are given again",
        ),
        f"{_OLDEST}[0.0-0.0]",
        "not by arrival of the earlier tuple",
    ),
    "oldest-first-bit-unseen": Mutation(
        Fault(
            "rtl.kinds.oldest",
            "others = w.memory.read_port(transparent_for=(write,))",
            "others = w.memory.read_port()",
            "of two bits of a group that are set one after the other the first is lost",
        ),
        f"{_OLDEST}[0.0-0.0]",
        "Error",
    ),
    "oldest-first-half-in-use": Mutation(
        Fault(
            "rtl.kinds.oldest",
            "(several | ~w.used.bit_select(fill, 1))",
            "1",
            "bits are collected where those of another arrival are read",
        ),
        f"{_OLDEST}[0.3-0.5]",
        "Error",
    ),
    "oldest-first-other-ring": Mutation(
        Fault(
            "rtl.kinds.oldest",
            "Mux(later_is_s, self.starts[SIDE_R], self.starts[SIDE_S])",
            "Mux(later_is_s, self.starts[SIDE_S], self.starts[SIDE_R])",
            "ages are counted in the later tuple's ring",
        ),
        "test_kinds_order.py::test_an_age_is_counted_from_the_ring_of_the_earlier_tuple",
        "not by age",
    ),
    "kinds-window-ignored": Mutation(
        Fault(
            "rtl.kinds.rows",
            "limit.eq(self.window + SWEPT_ROWS)",
            "limit.eq(SWEPT_ROWS)",
            "rows of the window are given as if they could meet no other",
        ),
        _RUNS,
        "rows differ",
    ),
    "kinds-row-too-many": Mutation(
        Fault(
            "rtl.kinds.rows",
            "(held < Const(rows - 2)) &",
            "(held < Const(rows - 1)) &",
            "a row gets the slot of one that is not decided yet",
        ),
        _RING,
        "PARAMS.kept_rows",
    ),
    "kinds-never-asked-to-rest": Mutation(
        Fault(
            "rtl.kinds.rows",
            "((held < Const(rows - SWEPT_ROWS)) | self.due)",
            "1",
            "arrivals go on until no slot is free",
        ),
        _RING,
        "too few are free",
    ),
    "kinds-settled-at-once": Mutation(
        Fault(
            "rtl.kinds.rows",
            "settled.eq(Mux(self.settles, left, rest))",
            "settled.eq(left)",
            "a row is decided although pairs of it are on their way",
        ),
        _RESTS,
        "given too early",
    ),
    "kinds-never-settled": Mutation(
        Fault(
            "rtl.kinds.rows",
            "settled.eq(Mux(self.settles, left, rest))",
            "settled.eq(Mux(self.settles & self.ends, left, rest))",
            "no row is decided before the end",
        ),
        _FULL,
        "no tuple is accepted any more",
    ),
    "kinds-rows-that-are-none": Mutation(
        Fault(
            "rtl.kinds.rows",
            "(settled[:GROUP_BITS] > number)",
            "(settled[:GROUP_BITS] >= number)",
            "the slot behind an input's last row is given as a row",
        ),
        _FULL,
        "rows differ",
    ),
    "kinds-last-group-stays": Mutation(
        Fault(
            "rtl.kinds.rows",
            "few.eq(settled < SWEPT_ROWS)",
            "few.eq(0)",
            "the last group of an input counts as a whole one",
        ),
        _FULL,
        "the stage does not end",
    ),
    "kinds-slots-of-the-last-input": Mutation(
        Fault(
            "rtl.kinds.rows",
            "for each in (held, settled, ended, self.due, self.slot, self.group, self.room)",
            "for each in (held, settled, ended, self.due, self.group, self.room)",
            "an input's rows begin in the middle of a group",
        ),
        _FULL,
        "rows differ",
    ),
    "kinds-in-flight-forgotten": Mutation(
        Fault(
            "rtl.kinds.stage",
            "self.taken | (in_flight != 0) | self.working",
            "self.taken | self.working",
            "tuples in front of the array count as done with",
        ),
        _RESTS,
        "given too early",
    ),
    "kinds-rest-too-short": Mutation(
        Fault(
            "rtl.kinds.stage",
            "settles.eq(quiet == QUIET_CYCLES)",
            "settles.eq(quiet == 1)",
            "results that the array does not report yet are forgotten",
        ),
        _RESTS,
        "given too early",
    ),
    "kinds-mark-unseen": Mutation(
        Fault(
            "rtl.kinds.stage",
            "read = memory.read_port(transparent_for=(write,))",
            "read = memory.read_port()",
            "of two rows of a group that are marked one after the other the first is forgotten",
        ),
        _MARKS,
        "a mark was lost",
    ),
    "kinds-marks-stay": Mutation(
        Fault(
            "rtl.kinds.stage",
            "Mux(self.empties | self.clears, 0, marked)",
            "Mux(self.empties, 0, marked)",
            "a slot's mark is kept for its next row",
        ),
        _FULL,
        "rows differ",
    ),
    "kinds-marks-survive-a-reset": Mutation(
        Fault(
            "rtl.kinds.stage",
            "is_emptying = Signal(init=1)",
            "is_emptying = Signal()",
            "after a reset rows have the marks of those before",
        ),
        _RESET,
        "rows differ",
    ),
    "kinds-moves-without-room": Mutation(
        Fault(
            "rtl.kinds.stage",
            "sweep.free.eq(moves & ~takes)",
            "sweep.free.eq(~takes)",
            "the sweep goes on while nothing is taken",
        ),
        _LEFT,
        "Error",
    ),
    "kinds-swept-in-a-result's-cycle": Mutation(
        Fault(
            "rtl.kinds.stage",
            "sweep.free.eq(moves & ~takes)",
            "sweep.free.eq(moves)",
            "a row that is due in the cycle of a result is lost",
        ),
        _LEFT,
        "Error",
    ),
    "kinds-result-taken-in-the-sweeps-cycle": Mutation(
        Fault(
            "rtl.kinds.stage",
            "found.ready.eq(moves & ~first)",
            "found.ready.eq(moves)",
            "a pair is lost in a cycle that the sweep takes",
        ),
        _LEFT,
        "Error",
    ),
    "kinds-every-pair-of-semi": Mutation(
        Fault(
            "rtl.kinds.stage",
            '~kinds["semi"] | ~marks[SIDE_R].was_met',
            '~kinds["semi"] | ~marks[SIDE_S].was_met',
            "a semi join gives the first pairs of S",
        ),
        _SEMI,
        "rows differ",
    ),
    "kinds-pairs-of-anti": Mutation(
        Fault(
            "rtl.kinds.stage",
            '(at.pair & counts & ~kinds["anti"])',
            "(at.pair & counts)",
            "an anti join gives pairs",
        ),
        _ANTI,
        "rows differ",
    ),
    "kinds-other-side-missing": Mutation(
        Fault(
            "rtl.kinds.stage",
            "self.o.p.r_missing.eq(at.lone & (at.side == SIDE_S))",
            "self.o.p.r_missing.eq(at.lone & (at.side == SIDE_R))",
            "a row of R without a partner is said to miss R",
        ),
        _LEFT,
        "Error",
    ),
    "kinds-one-row-of-a-group": Mutation(
        Fault(
            "rtl.kinds.sweep",
            "rest.eq(rest & (rest - 1))",
            "rest.eq(0)",
            "of a group one row without a partner is given",
        ),
        _LEFT,
        "rows differ",
    ),
    "kinds-one-side-swept": Mutation(
        Fault(
            "rtl.kinds.sweep",
            "chosen.eq(side ^ other_is_due)",
            "chosen.eq(side)",
            "rows of S are never looked at",
        ),
        _FULL,
        "Error",
    ),
}
