"""Faults in SplitJoin's long ways and in its batches of one probe, each with its test."""

from tests.hw.mutation import Mutation

from streamjoin_hw.formal.faults import Fault

LINK = "test_split_links.py::test_a_link_keeps_order_and_loses_nothing[0.0-0.0]"
LEAVES = "test_split_links.py::test_every_leaf_is_given_every_payload_once_in_its_own_time"
AHEAD = "test_split_links.py::test_queues_let_one_core_be_ahead_and_show_what_waits[16]"
DENSE = "test_split_single.py::test_full_windows_and_dense_results_are_exact"
IDLE = "test_split_single.py::test_a_half_is_idle_only_when_all_it_owes_was_taken"
BEFORE = "test_split_single.py::test_changes_come_before_the_probe_of_their_batch"

OFFER = "test_split_parts.py::test_the_combiner_keeps_what_it_offers_until_it_is_taken"

SPLIT_WAY_MUTATIONS = {
    "split-turn-a-tuple-early": Mutation(
        Fault(
            "rtl.turn",
            "is_zero: Value = left == 0",
            "is_zero: Value = left == 1",
            "with one probe slot it is a core's turn one tuple early",
        ),
        f"{DENSE}[2-3-1-none-0.8]",
        "pairs",
    ),
    "split-sides-change-while-one-waits": Mutation(
        Fault(
            "rtl.split.combiner",
            "with m.If(other & ~(self.o.valid & ~self.o.ready)):",
            "with m.If(other):",
            "a design without order changes what waits to be taken",
        ),
        f"{OFFER}[none]",
        "an offer changed",
    ),
    "split-a-side-is-never-served": Mutation(
        Fault(
            "rtl.split.combiner",
            "other.eq(Mux(turn, self.i[0].valid, self.i[1].valid))",
            "other.eq(0)",
            "a design without order gives the results of one side only",
        ),
        f"{OFFER}[none]",
        "assert [",
    ),
    "split-landing-says-too-late": Mutation(
        Fault(
            "rtl.queues",
            "level.at_least(self.places - self.reserve + 1)",
            "level.at_least(self.places)",
            "what is on its way to a full queue is written over what waits",
        ),
        f"{LEAVES}[5-2-16]",
        "Error",
    ),
    "split-landing-counts-a-cycle-late": Mutation(
        Fault(
            "rtl.queues",
            "level.at_least(2)",
            "level.at_least(3)",
            "of two that wait one leaves, and the other is taken not to be there",
        ),
        f"{LEAVES}[5-2-16]",
        "Error",
    ),
    "split-link-forgets-what-is-on-its-way": Mutation(
        Fault(
            "rtl.trees",
            "    RESERVE = 4",
            "    RESERVE = 3",
            "what is on its way to a link's queue is written over what waits",
        ),
        LINK,
        "a result FIFO overflowed",
    ),
    "split-link-is-never-shut": Mutation(
        Fault(
            "rtl.trees",
            "self.i.ready.eq(~shut)",
            "self.i.ready.eq(1)",
            "a link takes what its queue has no place for",
        ),
        LINK,
        "Error",
    ),
    "split-spread-reserves-for-one-way": Mutation(
        Fault(
            "rtl.split.links",
            "self.reserve = 2 * self.levels + 2",
            "self.reserve = self.levels + 2",
            "places are kept for the way down and not for the way back",
        ),
        f"{LEAVES}[5-2-16]",
        "Error",
    ),
    "split-spread-heeds-one-core": Mutation(
        Fault(
            "rtl.split.links",
            "~gathered_or(m, few, self.arity, init=1)",
            "~gathered_or(m, few[:1], self.arity, init=1)",
            "tuples set out although another core's queue is full",
        ),
        f"{LEAVES}[5-2-16]",
        "Error",
    ),
    "split-spread-takes-before-it-is-there": Mutation(
        Fault(
            "rtl.split.links",
            "few[-1] = few[-1] | ~flags[-1]",
            "few[-1] = few[-1]",
            "what is taken at power-up is lost in branches that are not there yet",
        ),
        f"{LEAVES}[17-2-16]",
        "Error",
    ),
    "split-plan-of-what-has-changed": Mutation(
        Fault(
            "rtl.split.half",
            "due.eq(is_due & ~w.begin)",
            "due.eq(is_due)",
            "a pass begins twice, by what the ring was before the tuple that was stored last",
        ),
        f"{DENSE}[1-4-1-outer-0.8]",
        "pairs miss",
    ),
    "split-reads-before-it-is-written": Mutation(
        Fault(
            "rtl.split.half",
            "early = w.begin & plan.last & collector.store",
            "early = 0 & w.begin",
            "a pass of one word reads it in the cycle in which it is written",
        ),
        f"{DENSE}[2-3-1-none-0.8]",
        "pairs missing",
    ),
    "split-key-of-the-next-slot": Mutation(
        Fault(
            "rtl.split.subwindow",
            "self._keys(m, before, known)",
            "self._keys(m, head, known)",
            "a key is written where the next tuple's belongs",
        ),
        f"{DENSE}[1-4-1-outer-0.8]",
        "pairs missing",
    ),
    "split-match-by-a-part": Mutation(
        Fault(
            "rtl.split.half",
            "hit.mask[p][lane].eq(parts.all())",
            "hit.mask[p][lane].eq(parts[0] & parts[2:].all())",
            "the first bits of an equality are not looked at",
        ),
        "test_split.py::test_random_inputs_are_exact_and_in_order[1-4-3-1-none-0.5-0.5]",
        "surplus",
    ),
    "split-list-of-one-probe-overflows": Mutation(
        Fault(
            "rtl.split.hits",
            "list_words(params), IN_FLIGHT + 2, is_flat",
            "list_words(params), IN_FLIGHT, is_flat",
            "a pass goes on although its list has no room for what is under way",
        ),
        f"{DENSE}[1-24-1-inner-0.8]",
        "overflowed",
    ),
    "split-spread-hides-what-waits": Mutation(
        Fault(
            "rtl.split.links",
            "group.eq(here | Cat(*below).any())",
            "group.eq(here)",
            "a tree is idle although tuples wait in its queues",
        ),
        AHEAD,
        "idle although tuples wait",
    ),
    "split-change-behind-a-probe": Mutation(
        Fault(
            "rtl.split.collector",
            "no_store.eq((probing | self.store) & stays)",
            "no_store.eq(self.store & stays)",
            "the window changes behind a probe and before its pass",
        ),
        BEFORE,
        "a change behind a probe",
    ),
    "split-collector-written-over": Mutation(
        Fault(
            "rtl.split.collector",
            "self.i.ready.eq(idle)",
            "self.i.ready.eq(1)",
            "a tuple is taken while the one before it is not decided about",
        ),
        BEFORE,
        "two tuples in a register",
    ),
    "split-collector-seems-idle": Mutation(
        Fault(
            "rtl.split.collector",
            "self.busy.eq(self.waiting | ~idle)",
            "self.busy.eq(self.waiting)",
            "a core looks empty while a tuple in it is not decided about",
        ),
        BEFORE,
        "assert",
    ),
    "split-begin-loses-an-arrival": Mutation(
        Fault(
            "rtl.split.collector",
            "(bit & ~self.begin) | sets",
            "(bit | sets) & ~self.begin",
            "what arrives as a batch begins is lost",
        ),
        BEFORE,
        "assert (0, 0, 0) == (0, 0, 1)",
    ),
    "split-payload-written-over": Mutation(
        Fault(
            "rtl.split.subwindow",
            "due.eq(waits & ~self.kept)",
            "due.eq(waits)",
            "a payload is stored over one that a result is still to read",
        ),
        f"{DENSE}[2-3-1-none-0.8]",
        "pairs missing",
    ),
    "split-payload-never-written": Mutation(
        Fault(
            "rtl.split.subwindow",
            "waits.eq(stored | (waits & self.kept))",
            "waits.eq(stored)",
            "a payload that could not be stored at once never is",
        ),
        f"{DENSE}[2-3-1-none-0.8]",
        "pairs missing",
    ),
    "split-payload-of-the-next-tuple": Mutation(
        Fault(
            "rtl.split.subwindow",
            "m.If(due | ~waits)",
            "m.If(Const(1))",
            "while a payload waits the next one takes its register",
        ),
        f"{DENSE}[2-3-1-none-0.8]",
        "pairs missing",
    ),
    "split-payload-in-the-next-slot": Mutation(
        Fault(
            "rtl.split.subwindow",
            "slot = Cat(before.lane[:used], before.word)",
            "slot = Cat(head.lane[:used], head.word)",
            "a payload lies in the slot behind its key's",
        ),
        f"{DENSE}[2-3-1-none-0.8]",
        "pairs missing",
    ),
    "merger-turns-to-what-offered-once": Mutation(
        Fault(
            "rtl.trees",
            "seen.eq(offered)",
            "seen.eq(seen | offered)",
            "a merger in front of a link turns to inputs that have nothing any more",
        ),
        "test_split_links.py::test_a_merger_in_front_of_a_link_gives_a_payload_a_cycle[busy0]",
        "cycles are lost",
    ),
    "merger-forgets-what-a-link-says": Mutation(
        Fault(
            "rtl.trees",
            "ready.eq(turn & soon.replicate(self.inputs))",
            "ready.eq(turn)",
            "a merger takes what the link behind it does not",
        ),
        "test_split_links.py::test_a_merger_in_front_of_a_link_passes_everything_once[0.8]",
        "payloads arrived, not",
    ),
    "split-single-store-over-store": Mutation(
        Fault(
            "rtl.split.collector",
            "refused = (stores & no_store) | (expires & no_expiry)",
            "refused = expires & no_expiry",
            "a second tuple to store replaces the first",
        ),
        BEFORE,
        "a change behind a probe",
    ),
    "split-single-probe-over-probe": Mutation(
        Fault(
            "rtl.split.collector",
            "no_probe.eq(probing & stays)",
            "no_probe.eq(0)",
            "a probe takes the place of one that waits",
        ),
        f"{DENSE}[2-3-1-none-0.8]",
        "pairs missing",
    ),
    "split-single-stays-refused": Mutation(
        Fault(
            "rtl.split.collector",
            "stores.eq(Mux(idle, may_store, still_stores))",
            "stores.eq(Mux(idle, may_store, 0))",
            "a tuple that had to wait is not stored",
        ),
        f"{DENSE}[2-3-1-none-0.8]",
        "pairs missing",
    ),
    "split-single-span-stands-still": Mutation(
        Fault(
            "rtl.split.subwindow",
            "late_down.eq(down)",
            "late_down.eq(number)",
            "a ring never becomes shorter",
        ),
        f"{DENSE}[2-3-1-none-0.8]",
        "Error",
    ),
    "split-single-ends-a-word-early": Mutation(
        Fault(
            "rtl.split.half",
            "w.second_last.eq(w.left == 1)",
            "w.second_last.eq(1)",
            "a pass ends after its third word",
        ),
        f"{DENSE}[1-24-1-inner-0.8]",
        "pairs missing",
    ),
    "split-single-last-word-lost": Mutation(
        Fault(
            "rtl.split.half",
            "push.eq((is_seen & last_seen) | (is_seen & Cat(*found).any()))",
            "push.eq(is_seen & Cat(*found).any())",
            "the last word of a pass without a match does not end it",
        ),
        f"{DENSE}[2-3-1-none-0.8]",
        "Error",
    ),
    "split-emitter-looks-on": Mutation(
        Fault(
            "rtl.split.emitter",
            "(looking & ~is_last)",
            "looking",
            "words of the next batch are given with the one before",
        ),
        f"{DENSE}[1-4-1-outer-0.8]",
        "Error",
    ),
    "split-emitter-idle-beside-a-batch": Mutation(
        Fault(
            "rtl.split.emitter",
            "idle.eq((idle & ~ready) | finished)",
            "idle.eq(idle | finished)",
            "a batch is taken while results of the one before are left",
        ),
        f"{DENSE}[2-3-1-none-0.8]",
        "Error",
    ),
    "split-emitter-never-idle-again": Mutation(
        Fault(
            "rtl.split.emitter",
            "idle.eq((idle & ~ready) | finished)",
            "idle.eq(idle & ~ready)",
            "an emitter takes one batch and no other",
        ),
        f"{DENSE}[1-4-1-outer-0.8]",
        "Error",
    ),
    "split-half-idle-before-its-batch": Mutation(
        Fault(
            "rtl.split.half",
            "working = collects | w.waits | emitter.busy",
            "working = collects | emitter.busy",
            "a half is idle while a batch is taken over",
        ),
        f"{IDLE}[0.0-none]",
        "idle although",
    ),
    "split-half-idle-before-it-decides": Mutation(
        Fault(
            "rtl.split.half",
            "collects = collector.busy if",
            "collects = collector.waiting if",
            "a half is idle while a tuple lies in its register",
        ),
        f"{IDLE}[0.8-outer]",
        "idle although",
    ),
}
