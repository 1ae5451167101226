"""Faults in SplitJoin, each with the test that has to notice."""

from tests.hw.mutation import Mutation

from streamjoin_hw.formal.faults import Fault

RANDOM = "test_split.py::test_random_inputs_are_exact_and_in_order"
LONG = "test_split.py::test_long_passes_over_changing_windows_are_exact"
TIMES = "test_split.py::test_time_windows_are_exact"
MASKED = "test_split.py::test_a_masked_core_costs_the_share_that_it_stores"
QUEUE = "test_split_parts.py::test_a_queue_keeps_order_and_is_as_deep_as_it_says"
AHEAD = "test_split_parts.py::test_a_half_works_while_the_other_has_more_to_do"
BATCH = "test_split_parts.py::test_a_batch_knows_what_its_probes_meet_and_the_time_of_what_expires"
OUTLET = "test_split_parts.py::test_an_outlet_gives_what_was_ordered_though_one_order_waits"

SPLIT_MUTATIONS = {
    "split-no-spare-word": Mutation(
        Fault(
            "rtl.split.layouts",
            "return params.segment_words + (2 if params.lanes == 1 else 1)",
            "return params.segment_words",
            "what is stored overwrites what a pass still looks at",
        ),
        f"{LONG}[none]",
        "pairs missing",
    ),
    "split-expired-is-met": Mutation(
        Fault(
            "rtl.split.collector",
            ".eq(self.expire),",
            ".eq(0),",
            "a probe meets what expired while its batch was collected",
        ),
        f"{RANDOM}[3-4-2-4-none-0.5-0.0]",
        "surplus: first surplus",
    ),
    "split-early-gone": Mutation(
        Fault(
            "rtl.split.collector",
            ".eq(self.expire),",
            ".eq(1),",
            "a probe misses what expires after it",
        ),
        f"{LONG}[none]",
        "pairs missing",
    ),
    "split-later-is-met": Mutation(
        Fault(
            "rtl.split.collector",
            ".eq(self.store),",
            ".eq(1),",
            "a probe meets what is stored after it",
        ),
        f"{LONG}[none]",
        "surplus: first surplus",
    ),
    "split-second-expiry-lost": Mutation(
        Fault(
            "rtl.split.collector",
            "(~stores | ~self.store) & (~expires | ~self.expire)",
            "(~stores | ~self.store)",
            "a second tuple that expires in a batch is forgotten",
        ),
        f"{LONG}[none]",
        "surplus: first surplus",
    ),
    "split-stores-overtake-results": Mutation(
        Fault(
            "rtl.split.half",
            "(collector.batch.count != 0) | ~w.gives",
            "(collector.batch.count != 0) | 1",
            "tuples are stored while results of an old batch are still given",
        ),
        f"{RANDOM}[1-1-1-2-outer-0.5-0.0]",
        "pairs missing",
    ),
    "split-stale-slots-are-met": Mutation(
        Fault(
            "rtl.split.half",
            "((Const(1, lanes + 1) << w.range.end_lane) - 1)[:lanes]",
            "Const(-1, lanes)",
            "the last word counts to its end",
        ),
        f"{RANDOM}[3-4-2-4-outer-0.0-0.0]",
        "surplus: first surplus",
    ),
    "split-no-second-look": Mutation(
        Fault(
            "rtl.split.emitter",
            'list_ports["rewind"].eq(~alone)',
            'list_ports["rewind"].eq(0)',
            "the list is looked through for the first probe only",
        ),
        f"{RANDOM}[3-4-2-4-outer-0.0-0.0]",
        "payloads arrived, not",
    ),
    "split-full-list": Mutation(
        Fault(
            "rtl.split.emitter",
            "m.d.sync += self.alone.eq(1)",
            "m.d.sync += self.alone.eq(0)",
            "a list that is too short for a batch loses what it held",
        ),
        "test_split.py::test_dense_results_are_exact_and_in_order[outer]",
        "Error",
    ),
    "split-no-repeat": Mutation(
        Fault(
            "rtl.split.emitter",
            "self.again.eq(given & ~finished & self.alone)",
            "self.again.eq(0)",
            "no pass is repeated for the second probe of a batch",
        ),
        "test_split.py::test_dense_results_are_exact_and_in_order[outer]",
        "payloads arrived, not",
    ),
    "split-hasty-star": Mutation(
        Fault(
            "rtl.split.trees",
            "together = stars.all()",
            "together = stars.any()",
            "one core's star is taken for all",
        ),
        f"{RANDOM}[3-4-2-4-outer-0.0-0.0]",
        "Error",
    ),
    "split-row-ties": Mutation(
        Fault(
            "rtl.split.trees",
            "results[a] & ~before(k, a) for a in range(k)",
            "results[a] & before(a, k) for a in range(k)",
            "of equal rows it is not the first core's result that goes first",
        ),
        f"{RANDOM}[5-3-3-3-inner-0.5-0.5]",
        "Error",
    ),
    "split-sides-swapped": Mutation(
        Fault(
            "rtl.split.combiner",
            "due.w_data.eq(self.side)",
            "due.w_data.eq(~self.side)",
            "the other side's results are waited for",
        ),
        f"{RANDOM}[3-4-2-4-outer-0.0-0.0]",
        "Error",
    ),
    "split-dropped-expires-again": Mutation(
        Fault(
            "rtl.split.subwindow",
            "gone = [(count, -self.drop_slots), (ahead, self.drop_slots)]",
            "gone = [(count, -self.drop_slots)]",
            "a tuple that was dropped for its time makes another one expire",
        ),
        f"{TIMES}[inner-0.5-0.0-3]",
        "pairs missing",
    ),
    "split-drops-the-living": Mutation(
        Fault(
            "rtl.split.half",
            "w.scanned & leading & ~any_alive & held.any()",
            "w.scanned & leading & held.any()",
            "a word is dropped although a tuple in it lives",
        ),
        f"{TIMES}[none-0.5-0.0-3]",
        "pairs missing",
    ),
    "split-neighbour-masked": Mutation(
        Fault(
            "rtl.split.array",
            "core.masked.eq(masked[index])",
            "core.masked.eq(masked[index - 1])",
            "another core than the masked one finds nothing",
        ),
        f"{MASKED}[none-1]",
        "pairs missing",
    ),
    "split-merger-has-a-favourite": Mutation(
        Fault(
            "rtl.split.trees",
            "[bit.eq(a <= k < b) for",
            "[bit.eq(0) for",
            "a star merger always serves the first input",
        ),
        "test_split_parts.py::test_a_star_merger_takes_turns",
        "not in turns",
    ),
    "split-combiner-always-has-room": Mutation(
        Fault(
            "rtl.split.combiner",
            "self.room.eq(due.w_rdy)",
            "self.room.eq(1)",
            "a tuple sets out although its side cannot be remembered",
        ),
        "test_split_parts.py::test_the_combiner_has_room_for_as_many_sides_as_it_remembers",
        "more sides than it remembers",
    ),
    "split-sets-out-without-room": Mutation(
        Fault(
            "rtl.split.combiner",
            "due.w_en.eq(self.arrives & self.control.outer)",
            "due.w_en.eq(self.arrives & self.control.outer & ~due_valid)",
            "sides are remembered one at a time",
        ),
        "test_split_parts.py::test_the_combiner_has_room_for_as_many_sides_as_it_remembers",
        "more sides than it remembers",
    ),
    "split-merger-does-not-wait-for-the-lowest": Mutation(
        Fault(
            "rtl.split.trees",
            "complete = (results | stars).all()",
            "complete = (results | stars).any()",
            "a row is given before every input has shown its own",
        ),
        "test_split_parts.py::test_a_star_merger_waits_for_the_lowest_row_of_all",
        "given before every input",
    ),
    "split-offer-changes": Mutation(
        Fault(
            "rtl.split.combiner",
            "keeps.eq(self.o.valid & ~self.o.ready)",
            "keeps.eq(0)",
            "without order the combiner changes what waits to be taken",
        ),
        "test_split_parts.py::test_the_combiner_keeps_what_it_offers_until_it_is_taken[outer]",
        "an offer changed",
    ),
    "split-time-of-entry-missing": Mutation(
        Fault(
            "rtl.split.collector",
            "m.d.sync += now.eq(entering.ts)",
            "m.d.sync += now.eq(0)",
            "the oldest tuple expires at time 0",
        ),
        BATCH,
        "assert (0, 2) == (2, 2)",
    ),
    "split-time-of-entry-fleeting": Mutation(
        Fault(
            "rtl.split.collector",
            "m.d.comb += self.now.eq(now)",
            "with m.If(self.i.valid):\n                m.d.comb += self.now.eq(now)",
            "the time at which the oldest tuple expires is 0 while nothing is offered",
        ),
        BATCH,
        "assert (0, 2) == (2, 2)",
    ),
    "split-probe-too-many": Mutation(
        Fault(
            "rtl.split.collector",
            "(batch.count != params.probes) & ~self.begin",
            "~self.begin",
            "a probe is taken although the batch is full",
        ),
        BATCH,
        "more probes than a batch holds",
    ),
    "split-stored-over": Mutation(
        Fault(
            "rtl.split.collector",
            "(~stores | ~self.store) & (~expires | ~self.expire)",
            "(~expires | ~self.expire) | (stores & expires)",
            "a second tuple to store replaces the first",
        ),
        BATCH,
        "a second tuple to store",
    ),
    "split-queue-reads-too-early": Mutation(
        Fault(
            "rtl.split.queue",
            "memory.read_port(transparent_for=(write,))",
            "memory.read_port()",
            "a payload is read in the cycle in which it is written",
        ),
        QUEUE,
        "not in order",
    ),
    "split-queue-lets-by": Mutation(
        Fault(
            "rtl.split.queue",
            "(self.busy | ~self.o.ready)",
            "~self.o.ready",
            "a payload is taken to have passed although others are before it",
        ),
        QUEUE,
        "Error",
    ),
    "split-queue-written-over": Mutation(
        Fault(
            "rtl.split.queue",
            "self.i.ready.eq(level != self.places)",
            "self.i.ready.eq(1)",
            "a full queue takes more",
        ),
        QUEUE,
        "more than it holds",
    ),
    "split-queue-goes-round-early": Mutation(
        Fault(
            "rtl.split.queue",
            "start.eq(start + leaves)",
            "start.eq(Mux(start == self.places - 2, 0, start + leaves))",
            "the first payload is looked for one place short of the end",
        ),
        QUEUE,
        "Error",
    ),
    "split-queued-twice": Mutation(
        Fault(
            "rtl.split.array",
            "entry.i.valid.eq(arriving.valid & room)",
            "entry.i.valid.eq(arriving.valid)",
            "a tuple enters one half while the other half has no place for it",
        ),
        f"{RANDOM}[3-4-2-4-outer-0.0-0.0]",
        "Error",
    ),
    "split-queues-forgotten": Mutation(
        Fault(
            "rtl.split.array",
            "places = queue_places(params)",
            "places = 1 + 0 * queue_places(params)",
            "a half waits for the other",
        ),
        AHEAD,
        "found a place",
    ),
    "split-sides-of-the-queued-forgotten": Mutation(
        Fault(
            "rtl.split.combiner",
            "2 * queue_places(params)",
            "0 * queue_places(params) - 28",
            "so few sides are remembered that the queues stay empty",
        ),
        AHEAD,
        "found a place",
    ),
    "split-result-not-busy": Mutation(
        Fault(
            "rtl.split.array",
            "trees_busy = given.busy | left.busy",
            "trees_busy = left.busy",
            "the design ends an input while a result waits to be taken",
        ),
        "test_split_parts.py::test_an_array_is_busy_while_results_wait[1]",
        "idle although results wait",
    ),
    "split-order-replaced": Mutation(
        Fault(
            "rtl.split.outlet",
            "with m.If(~waits):",
            "with m.If(1):",
            "an order that waits is replaced by the next",
        ),
        OUTLET,
        "another",
    ),
    "split-fetched-over": Mutation(
        Fault(
            "rtl.split.outlet",
            "self.fetch.eq(~valid | self.o.ready)",
            "self.fetch.eq(1)",
            "a payload is fetched over one that was not taken",
        ),
        OUTLET,
        "another",
    ),
    "split-waits-for-the-trees": Mutation(
        Fault(
            "rtl.split.outlet",
            "self.i.ready.eq(~waits)",
            "self.i.ready.eq(~waits | self.o.ready)",
            "an emitter waits for what the trees decide",
        ),
        OUTLET,
        "ready runs through",
    ),
}
