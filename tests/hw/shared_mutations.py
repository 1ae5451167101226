"""Faults in SplitJoin's cores with shared comparators, each with the test that has to notice."""

from tests.hw.mutation import Mutation

from streamjoin_hw.formal.faults import Fault

FILE = "test_split_shared.py"
DENSE = f"{FILE}::test_dense_results_of_a_core_that_stores_every_tuple_are_exact"
BATCH = f"{FILE}::test_a_batch_is_of_one_half_and_of_the_one_behind_while_others_are_compared"
SPARE = f"{FILE}::test_no_more_tuples_expire_than_slots_are_spare_while_results_are_given"
BANKS = f"{FILE}::test_an_emitter_gives_each_batch_its_payloads_while_the_next_is_collected"

SHARED_MUTATIONS = {
    "shared-payload-of-a-probe": Mutation(
        Fault(
            "rtl.split.gatherer",
            "bits.arrives[half] & bits.stores[half] & ~bits.probes[half]):",
            "bits.arrives[half] & bits.stores[half]):",
            "a probe's payload is stored with another tuple's key",
        ),
        f"{DENSE}[none]",
        "pairs missing",
    ),
    "shared-written-over": Mutation(
        Fault(
            "rtl.split.gatherer",
            "self.spent.eq(recent == self.limit)",
            "self.spent.eq(0)",
            "a slot is written over that an older batch may still read",
        ),
        SPARE,
        "more than spare slots",
    ),
    "shared-finished-forgotten": Mutation(
        Fault(
            "rtl.split.gatherer",
            "Mux(self.finished, Array(counts)[oldest], 0)",
            "0",
            "slots stay in use although what read them has been given",
        ),
        SPARE,
        "more than spare slots since the second",
    ),
    "shared-halves-mixed": Mutation(
        Fault(
            "rtl.split.gatherer",
            "(able.bit_select(prefer, 1)[0]), kept)",
            "(able.bit_select(prefer, 1)[0]), prefer)",
            "a batch holds probes of both halves",
        ),
        BATCH,
        "a batch of two halves",
    ),
    "shared-runs-ahead": Mutation(
        Fault(
            "rtl.split.gatherer",
            "Mux(ahead < 0, SIDE_R, SIDE_S)",
            "Mux(ahead < 0, SIDE_S, SIDE_R)",
            "the half that is ahead is preferred",
        ),
        BATCH,
        "ahead, and all are busy",
    ),
    "shared-hasty-probes": Mutation(
        Fault(
            "rtl.split.gatherer",
            "may_open = self.free[half] & (",
            "may_open = (",
            "probes are collected although their emitter has no room",
        ),
        BATCH,
        "its emitter has no room",
    ),
    "shared-bank-of-the-next": Mutation(
        Fault(
            "rtl.split.emitter",
            "given.eq(first)",
            "given.eq(collected)",
            "payloads are read from the bank that is collected",
        ),
        BANKS,
        "not the payloads of their batch",
    ),
    "shared-banks-overrun": Mutation(
        Fault(
            "rtl.split.emitter",
            "self.free.eq(pending != BANKS - 1)",
            "self.free.eq(1)",
            "a batch is collected in the bank whose results are given",
        ),
        BANKS,
        "room for more batches than banks",
    ),
    "shared-read-too-early": Mutation(
        Fault(
            "rtl.split.hits",
            "empty.eq(here == seen)",
            "empty.eq(here == end)",
            "a word of the list is looked at before it can be read",
        ),
        BANKS,
        "Error",
    ),
    "shared-no-second-look": Mutation(
        Fault(
            "rtl.split.hits",
            "m.d.comb += following.eq(start)",
            "m.d.comb += following.eq(here)",
            "the list is looked through for the first probe only",
        ),
        BANKS,
        "not the payloads of their batch",
    ),
    "shared-both-halves": Mutation(
        Fault(
            "rtl.split.shared_core",
            "push & (hit_side == half)",
            "push",
            "a match is given to both halves",
        ),
        f"{DENSE}[outer]",
        "Error",
    ),
    "shared-wrong-memory": Mutation(
        Fault(
            "rtl.split.shared_core",
            "read.addr.eq(Cat(w.word, w.side))",
            "read.addr.eq(Cat(w.word, ~w.side))",
            "probes are compared with tuples of their own side",
        ),
        f"{DENSE}[none]",
        "pairs missing",
    ),
    "shared-stored-on-the-other-side": Mutation(
        Fault(
            "rtl.split.shared_core",
            "write.addr.eq(Cat(word[: word_bits(params)], is_s))",
            "write.addr.eq(Cat(word[: word_bits(params)], 0))",
            "keys of both sides are written over each other",
        ),
        f"{DENSE}[none]",
        "pairs missing",
    ),
}
