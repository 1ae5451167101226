"""Faults in SplitJoin's bands with shared comparators, each with the test that has to notice."""

from tests.hw.mutation import Mutation

from streamjoin_hw.formal.faults import Fault

FILE = "test_split_points.py"
DENSE = f"{FILE}::test_dense_bands_of_a_core_that_stores_every_tuple_are_exact[outer]"
COUNTS = f"{FILE}::test_a_batch_sees_no_more_changes_than_it_can_count_and_slots_are_spare"
BOUNDS = "test_float_bound.py::test_every_bound_of_a_small_format_is_exact[2-2]"
INTERVALS = "test_encode.py::test_both_sides_have_points_and_intervals_that_agree_where_windows"
INTERVALS += "_keep_points[int32]"

POINT_MUTATIONS = {
    "points-odd-key-as-even": Mutation(
        Fault(
            "rtl.floats.bound",
            "ordered.odd.eq(self.inverse & key[0])",
            "ordered.odd.eq(0)",
            "a tie that is rounded away from an odd key counts as rounded to it",
        ),
        BOUNDS,
        "inverse 1",
    ),
    "points-bound-rounded-up": Mutation(
        Fault(
            "rtl.floats.bound",
            "less = normal.inverse & ~sign & exact & normal.odd",
            "less = normal.inverse & ~sign & normal.odd",
            "an inexact bound is lowered although it is below the exact one",
        ),
        BOUNDS,
        "inverse 1",
    ),
    "points-infinite-width": Mutation(
        Fault(
            "rtl.floats.bound",
            "inverse_none = width_infinite & width_sign & ~key_top",
            "inverse_none = width_infinite & width_sign",
            "an infinite sum does not match an infinite key",
        ),
        BOUNDS,
        "inverse 1",
    ),
    "points-widths-of-r": Mutation(
        Fault(
            "rtl.encode",
            "widths = Mux(is_s, *widths), Mux(is_s, *widths[::-1])",
            "widths = widths[0], widths[1]",
            "an R tuple looks for partners with the widths of S",
        ),
        INTERVALS,
        "R probes",
    ),
    "points-small-batches": Mutation(
        Fault(
            "rtl.split.layouts",
            "return (1 << min(_MAX_CHANGE_BITS, bits_for(stored))) - 1",
            "return 1",
            "a second tuple to store ends a batch",
        ),
        f"{FILE}::test_many_tuples_stored_between_the_probes_of_a_batch_leave_batches_full",
        "passes for few probes",
    ),
    "points-widths-of-the-cycle": Mutation(
        Fault(
            "rtl.join",
            "return Mux(idle, self.band.as_value(), kept.as_value())",
            "return self.band.as_value()",
            "band widths of an input change while it runs",
        ),
        f"{FILE}::test_band_widths_are_those_of_an_inputs_begin",
        "a width that was written while the input runs counts",
    ),
    "points-gone-forgotten": Mutation(
        Fault(
            "rtl.split.points.emitter",
            "start.eq(b.batch.start + b.seen.gone)",
            "start.eq(b.batch.start)",
            "a probe matches tuples that expired before it",
        ),
        DENSE,
        "surplus",
    ),
    "points-stored-after": Mutation(
        Fault(
            "rtl.split.points.emitter",
            "end.eq(b.batch.end - b.seen.there)",
            "end.eq(b.batch.end)",
            "a probe misses tuples that were stored since its batch's first probe",
        ),
        DENSE,
        "missing",
    ),
    "points-before-of-a-word": Mutation(
        Fault(
            "rtl.split.points.core",
            "hit.before.eq(w.scanned_before)",
            "hit.before.eq(0)",
            "the words before one do not count as gone",
        ),
        DENSE,
        "missing",
    ),
    "points-not-kept": Mutation(
        Fault(
            "rtl.split.points.ring",
            "m.d.sync += each.eq(Mux(self.keeps, each if more is None else each + more, now))",
            "m.d.sync += each.eq(now)",
            "a pass begins behind tuples that expired since its first probe",
        ),
        DENSE,
        "Error",
    ),
    "points-more-changes-than-counted": Mutation(
        Fault(
            "rtl.split.points.gatherer",
            "most = max_changes(params)",
            "most = -1",
            "a batch sees more tuples stored than its probes can count",
        ),
        COUNTS,
        "Error",
    ),
    "points-written-over": Mutation(
        Fault(
            "rtl.split.points.gatherer",
            "expired.begin.eq(self.put[half] & (self.put_index == 0))",
            "expired.begin.eq(0)",
            "a slot is written over that an older batch may still read",
        ),
        COUNTS,
        "as slots are spare",
    ),
    "points-counts-of-the-batch-before": Mutation(
        Fault(
            "rtl.split.points.gatherer",
            "with m.If(empty | self.begin):",
            "with m.If(0):",
            "a batch goes on counting the changes of the one before",
        ),
        COUNTS,
        "Error",
    ),
}
