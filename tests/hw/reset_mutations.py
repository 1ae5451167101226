"""Faults of the soft reset and of what counts for an input, with the tests that notice them."""

from tests.hw.mutation import Mutation

from streamjoin_hw.formal.faults import Fault

AT_WORK = "test_reset.py::test_nothing_of_before_a_soft_reset_counts_after_it"

RESET_MUTATIONS = {
    "soft-reset-hasty": Mutation(
        Fault(
            "rtl.top",
            "restart.eq(asked & ~waits)",
            "restart.eq(file.soft_reset)",
            "a soft reset waits for nothing",
        ),
        "test_soft_reset.py::"
        "test_an_offered_result_stays_until_it_is_taken_and_then_all_is_empty[chain]",
        "an offered beat was withdrawn",
    ),
    "soft-reset-open": Mutation(
        Fault(
            "rtl.top",
            "design.enable.eq(file.enable & ~self.closed & self.aresetn)",
            "design.enable.eq(file.enable & ~restart & self.aresetn)",
            "tuples are accepted, and lost, while a soft reset waits",
        ),
        "test_soft_reset.py::test_every_tuple_accepted_after_the_answer_counts[split]",
        "assert counted == bench.accepted_since_answer",
    ),
    "soft-reset-forgets-a-drain": Mutation(
        Fault(
            "rtl.top",
            "file.drained.eq(design.drained & ~self.closed)",
            "file.drained.eq(design.drained | self.closed)",
            "a drain written while a soft reset waits is dropped",
        ),
        "test_soft_reset.py::"
        "test_a_drain_written_while_a_soft_reset_waits_ends_the_empty_input_after_it",
        "assert 5 == ",
    ),
    "soft-reset-cuts-a-trailer": Mutation(
        Fault(
            "rtl.board_top",
            "waits.eq(self.m_axis_words_tvalid & ~self.m_axis_words_tready)",
            "waits.eq(top.m_axis_results_tvalid & ~top.m_axis_results_tready)",
            "a soft reset waits for a result but for no trailer",
        ),
        "test_soft_reset.py::test_an_offered_word_stays_until_it_is_taken[trailer]",
        "an offered beat was withdrawn",
    ),
    "tree-not-emptied": Mutation(
        Fault(
            "rtl.trees",
            "Link(self.layout, clear=self.clear)",
            "Link(self.layout)",
            "a tree keeps what it holds when it is told to empty itself",
        ),
        "test_trees.py::test_a_tree_is_empty_after_it_was_cleared",
        "assert",
    ),
    "results-in-the-cycle-after-a-reset": Mutation(
        Fault(
            "rtl.chain.collection",
            "~renewed if hops else ~settling",
            "None if hops else ~settling",
            "what lies behind a tree is given once more in the cycle after a reset",
        ),
        "test_soft_reset.py::test_what_is_in_the_tree_of_lines_does_not_outlive_a_reset[fast-17]",
        "assert",
    ),
    "results-while-settling": Mutation(
        Fault(
            "rtl.chain.collection",
            "~settling if is_last else None",
            "None",
            "what a tree gives before it is emptied counts as of the next input",
        ),
        "test_soft_reset.py::test_what_is_in_the_tree_of_lines_does_not_outlive_a_reset[fast-17]",
        "assert",
    ),
    "a-core-is-not-reset": Mutation(
        Fault(
            "rtl.core_array",
            "reset.eq(self.rst)",
            "reset.eq(0)",
            "a core's own register passes no reset on",
        ),
        f"{AT_WORK}[fast]",
        "assert",
    ),
    "split-trees-give-while-settling": Mutation(
        Fault(
            "rtl.split.array",
            "first.valid.eq(tree.o.valid & ~self.settling)",
            "first.valid.eq(tree.o.valid)",
            "what a tree of SplitJoin gives before it is emptied counts as of the next input",
        ),
        f"{AT_WORK}[split]",
        "after ",
    ),
    "split-trees-are-not-emptied": Mutation(
        Fault(
            "rtl.split.trees",
            "clear.eq(self.clears[core])",
            "clear.eq(0)",
            "trees of SplitJoin keep what is inside through a reset",
        ),
        f"{AT_WORK}[split]",
        "after ",
    ),
    "split-trees-are-emptied-early": Mutation(
        Fault(
            "rtl.split.trees",
            "m.d.sync += clear.eq(self.clears[core])",
            "m.d.comb += clear.eq(self.clears[core])",
            "what a core offers before it obeys its reset gets into a tree",
        ),
        f"{AT_WORK}[split]",
        "after ",
    ),
    "split-core-is-emptied-early": Mutation(
        Fault(
            "rtl.split.array",
            "core.clear.eq(late)",
            "core.clear.eq(reset)",
            "a window is emptied, and tuples enter it before the core obeys its reset",
        ),
        f"{AT_WORK}[ordered]",
        "after ",
    ),
    "split-queue-keeps-its-head": Mutation(
        Fault(
            "rtl.queues",
            "(there, few, lost))",
            "(few, lost))",
            "the queue in front of a core keeps a tuple through a reset",
        ),
        f"{AT_WORK}[split]",
        "after ",
    ),
    "split-queue-keeps-a-pointer": Mutation(
        Fault(
            "rtl.queues",
            "(end, start))",
            "(end,))",
            "the queue in front of a core is read where nothing was written after a reset",
        ),
        f"{AT_WORK}[split]",
        "after ",
    ),
    "split-losses-while-settling": Mutation(
        Fault(
            "rtl.split.array",
            "Mux(settling, 0, evicted)",
            "evicted",
            "what a core lost before a reset counts after it",
        ),
        f"{AT_WORK}[ordered]",
        "after ",
    ),
    "split-holds-while-settling": Mutation(
        Fault(
            "rtl.intake",
            "self.running & ~self.settling",
            "self.running",
            "a hold of before a reset counts after it",
        ),
        "test_reset.py::test_a_hold_of_before_a_soft_reset_is_not_counted_while_it_drains[split]",
        "cycles of before",
    ),
    "split-settles-early": Mutation(
        Fault(
            "rtl.split.array",
            "2 * levels + 6, init",
            "levels, init",
            "trees give before they are emptied",
        ),
        f"{AT_WORK}[split]",
        "after ",
    ),
    "split-oldest-batch-after-a-reset": Mutation(
        Fault(
            "rtl.split.gatherer",
            "oldest = Signal(range(BANKS), init=1)",
            "oldest = Signal(range(BANKS))",
            "a reset counts expiries for another batch than a clear",
        ),
        "test_split_shared.py::"
        "test_dense_results_of_a_core_that_stores_every_tuple_are_exact[outer]",
        "missing",
    ),
    "window-of-a-cycle-later": Mutation(
        Fault(
            "rtl.intake",
            "m.d.sync += given.eq(self.window_s if which else self.window_r)",
            "m.d.comb += given.eq(self.window_s if which else self.window_r)",
            "a window that is written in the cycle of the first tuple counts at once",
        ),
        "test_settings.py::test_a_window_counts_from_the_answer_on[fast-0]",
        "offered after",
    ),
    "order-of-a-cycle-later": Mutation(
        Fault(
            "rtl.split.array",
            "control.outer.eq(outer)",
            "control.outer.eq(self.order >= OUTER)",
            "an order that is written in the cycle of the first tuple counts for its results",
        ),
        "test_settings.py::test_an_order_counts_from_the_answer_on[single-ended]",
        "offered after",
    ),
    "stars-of-a-cycle-later": Mutation(
        Fault(
            "rtl.split.array",
            "punctuate.eq(gives_stars)",
            "punctuate.eq(self.punctuate & (self.order >= OUTER))",
            "stars that are asked for in the cycle of the first tuple are given for it",
        ),
        "test_settings.py::test_an_order_counts_from_the_answer_on[single-ended]",
        "offered after",
    ),
    "masks-of-a-cycle-later": Mutation(
        Fault(
            "rtl.split.array",
            "masked.eq(masks)",
            "masked.eq(self.masked)",
            "cores that are masked in the cycle of the first tuple are so for its results",
        ),
        "test_settings.py::test_masks_count_from_the_answer_on",
        "offered after",
    ),
}
