"""From words with matches to results in order, each tuple's ended by a star."""

from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.memory import lane_bits
from streamjoin_hw.rtl.split.groups.rounds import Rounds
from streamjoin_hw.rtl.split.hits import BANKS, hit_layout, index_of, long_list, short_list
from streamjoin_hw.rtl.split.layouts import is_single, ordered_port, row_member, token_layout
from streamjoin_hw.rtl.split.outlet import Outlet
from streamjoin_hw.rtl.split.subwindow import word_bits
from streamjoin_hw.rtl.streams import Component, View, payload_of, registers_of


class _Batches(NamedTuple):
    """Whether a batch can be taken, that it is, how many probes it has; a probe's payload.

    Where stars are grouped also the probes that end a group.
    """

    ready: Value
    take: Signal
    probes: Value
    probing: Value
    ends: Value | None


class Emitter(Component):
    """Give the results of a batch, and a star after those of each probe.

    Matches are kept in a list of words and read once for each probe, so that results are grouped
    by probe although all probes were compared at once. If the list is too short for a batch, it
    serves the first probe alone, word by word as they arrive, and asks for another pass for each
    of the others. Without order the list is a FIFO.

    Where comparators are shared, no pass may wait for results: the list holds all words of
    :data:`BANKS` batches, and never asks for a pass. Payloads of probes are then in a memory,
    written as they arrive, a bank for each batch.

    Parameters
    ----------
    params : DesignParams
        The design.
    side : int
        The side that is stored; probes are of the other one.

    Members
    -------
    ordered : In(1), unless stars are grouped
        Results by probe, with stars.
    hit : In(hit_layout(params)), push : In(1)
        A word for the list.
    nearly_full : Out(1)
        Do not scan on: fewer than :data:`IN_FLIGHT` words are free; from a register.
    settled : In(1)
        There are words still to be read, and nothing is on its way to the list.
    ready_batch : In(1), count : In, payloads : In
        A batch whose words were or will be pushed next: how many probes, and their payloads.
    ends : In(probes), where stars are grouped
        With ``count``, for each probe: its group's results end with its own.
    take : Out(1)
        The batch is taken; its payloads need not be kept.
    put : In(1), put_index : In, put_payload : In(payload_bits), begun : In(1), count : In
        Instead of these where comparators are shared: the payload of a probe of the batch that is
        collected, until it has ``begun`` with a count of probes.
    free : Out(1), finished : Out(1)
        There also: another batch may be collected, and begin; all results of the oldest one have
        been given.
    alone : Out(1), probe : Out, again : Out(1)
        Compare one probe alone from now on, this one; with ``again`` in a pass from the start.
        Where stars are grouped those of one group, with ``serves : Out(probes)``.
    fetch : Out(1), fetch_word, fetch_lane : Out, payload : In(payload_bits)
        Read of a stored payload, there a cycle later.
    o : Out(stream.Signature(token_layout(params)))
    busy : Out(1)
        There is something to give.
    """

    ordered: Signal
    hit: View
    push: Signal
    nearly_full: Signal
    settled: Signal
    ready_batch: Signal
    count: Signal
    ends: Signal
    payloads: View
    put: Signal
    put_index: Signal
    put_payload: Signal
    begun: Signal
    free: Signal
    finished: Signal
    take: Signal
    alone: Signal
    probe: Signal
    serves: Signal
    again: Signal
    fetch: Signal
    fetch_word: Signal
    fetch_lane: Signal
    payload: Signal
    o: stream.Interface
    busy: Signal

    def __init__(self, params: DesignParams, side: int) -> None:
        self.params = params
        self.side = side
        probe_bits, grouped = bits_for(params.probes - 1), params.has_groups
        if params.has_shared_comparators:
            ports = {
                **{name: In(1) for name in ("put", "begun")},
                **{name: Out(1) for name in ("free", "finished")},
                "put_index": In(probe_bits),
                "put_payload": In(params.payload_bits),
            }
        else:
            ports = {
                **{name: In(1) for name in ("settled", "ready_batch")},
                **{name: Out(1) for name in ("nearly_full", "alone", "again", "take")},
                "payloads": In(data.ArrayLayout(params.payload_bits, params.probes)),
                **({"serves": Out(params.probes)} if grouped else {"probe": Out(probe_bits)}),
            }
        super().__init__(
            {
                **{name: In(1) for name in (*ordered_port(params), "push")},
                **{name: Out(1) for name in ("fetch", "busy")},
                **ports,
                **({"ends": In(params.probes)} if grouped else {}),
                "hit": In(hit_layout(params)),
                "count": In(bits_for(params.probes)),
                "fetch_word": Out(word_bits(params)),
                "fetch_lane": Out(lane_bits(params)),
                "payload": In(params.payload_bits),
                "o": Out(stream.Signature(token_layout(params))),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the list, the walk through it, and the read of payloads."""
        m = Module()
        params, shared = self.params, self.params.has_shared_comparators
        rounds, ordered, probe = self._turns()
        # One of these is 1: there is no batch; words of one are looked at; its last one was, and
        # results are left to give. What is offered of a batch is copied until one is taken.
        idle, looking, closing, many, last_probe = (
            Signal(name=name, init=name == "idle")
            for name in ("idle", "looking", "closing", "many", "last_probe")
        )
        count = payload_of(len(self.count))
        alone: Any = Const(0, 1) if shared else self.alone
        serving = payload_of(params.probes)
        m.submodules.outlet = outlet = Outlet(params, self.side)
        wiring.connect(m, outlet.o, wiring.flipped(self.o))
        keep = self._banks if shared else self._registers
        ready, take, next_count, probing, _ = batch = keep(m, idle, outlet.probe)
        m.d.comb += [
            take.eq(ready & idle),
            last_probe.eq(self._is_last(probe, count) if rounds is None else rounds.last),
            many.eq(ordered & ~alone & ~last_probe),
        ]
        with m.If(idle):
            m.d.sync += count.eq(next_count)

        # The list: written at `end`, looked at from `here`, free before `start`.
        listed = long_list if shared else short_list
        next_word, empty, list_ports = listed(self, m, params, many)

        # What is left of the matches of one probe, `serving`, in the word that is being looked at.
        rest = registers_of(
            data.StructLayout(
                {"left": params.lanes, "word": word_bits(params), **row_member(params)}
            ),
            "left",
            name="rest",
        )
        left = rest.left
        lowest = left & (~left + 1)[: len(left)]
        ends, loads, nothing_left = (
            Signal(name=name) for name in ("ends", "loads", "nothing_left")
        )
        m.d.comb += [
            nothing_left.eq((left == 0) | (outlet.i.ready & (left == lowest))),
            loads.eq(looking & nothing_left & ~empty),
            ends.eq(closing & (left == 0)),
        ]
        seen = Signal(params.probes)
        wanted, leaves, chosen = self._choose(
            m, next_word, (ordered, probe if rounds is None else rounds.serves), seen
        )
        m.d.comb += list_ports["look"].eq(loads & leaves)
        with m.If(loads):
            m.d.sync += [
                rest.word.eq(next_word.word),
                serving.eq(wanted),
                seen.eq(Mux(leaves, 0, seen | wanted)),
            ]
            if params.order == "inner":
                m.d.sync += rest.row.eq(next_word.row)
        m.d.sync += left.eq(Mux(loads, chosen, Mux(outlet.i.ready, left & ~lowest, left)))

        # The end of a probe's results, or a group's.
        given, finished = Signal(name="given"), Signal(name="finished")
        m.d.comb += given.eq(ends & outlet.i.ready)
        is_last = loads & next_word.last & leaves
        m.d.sync += [
            idle.eq((idle & ~ready) | finished),
            looking.eq(take | (looking & ~is_last) | (given & ~finished)),
            closing.eq(is_last | (closing & ~given)),
        ]
        with m.If(given):
            with m.If(last_probe | ~ordered):
                m.d.sync += probe.eq(0)
                m.d.comb += finished.eq(1)
            with m.Else():
                m.d.sync += probe.eq(probe + 1)
                m.d.comb += list_ports["rewind"].eq(~alone)
        self._divide(m, rounds, batch, given)
        if shared:
            m.d.comb += self.finished.eq(finished)
        else:
            self._alone(m, given, finished)
            self._starve(m, looking & many & (left == 0) & empty, list_ports)

        m.d.comb += [
            outlet.i.valid.eq((left != 0) | (ends & ordered)),
            outlet.i.p.lane.eq(index_of(lowest, params.lanes)),
            outlet.i.p.probe.eq(index_of(serving, params.probes)),
            outlet.probing.eq(probing),
        ]
        self._give(m, rest, outlet)
        m.d.comb += self.busy.eq(~idle | ready | list_ports["held"] | self.o.valid)
        return m

    def _turns(self) -> tuple[Rounds | None, Value, Any]:
        """Return the rounds, whether a star follows each, and the probe that is served instead.

        Without rounds probes are served one after the other, if in order.
        """
        params = self.params
        if params.has_groups:
            rounds = Rounds(params.probes)
            return rounds, rounds.star, Signal(bits_for(params.probes - 1))
        ordered: Value = self.ordered if params.order != "none" else Const(0, 1)
        if params.has_shared_comparators:
            return None, ordered, Signal(bits_for(params.probes - 1))
        return None, ordered, self.probe

    def _is_last(self, probe: Value, count: Value) -> Value:
        """Return whether a batch's last probe is served; with one probe slot it is the only one."""
        return Const(1, 1) if self.params.probes == 1 else probe + 1 == count

    def _divide(self, m: Module, rounds: Rounds | None, batch: _Batches, given: Signal) -> None:
        """Serve the probes of one group together, then those of the next."""
        if rounds is None:
            return
        m.submodules.rounds = rounds
        m.d.comb += [
            rounds.take.eq(batch.take),
            rounds.count.eq(batch.probes),
            rounds.ends.eq(batch.ends),
            rounds.step.eq(given),
        ]
        if not self.params.has_shared_comparators:
            m.d.comb += self.serves.eq(rounds.serves)

    def _choose(
        self, m: Module, word: View, serves: tuple[Value, Any], seen: Signal
    ) -> tuple[Value, Value, Value]:
        """Choose whose matches in a word come next, whether the word is then done, and which.

        In order a word is looked at for one probe; else for each that has a match in it, in
        rounds for each of the round.
        """
        (ordered, probe), probes = serves, self.params.probes
        if is_single(self.params):
            return Const(1, 1), Const(1, 1), word.mask[0]
        matching, wanted, leaves = (
            Signal(probes, name="matching"),
            Signal(probes, name="wanted"),
            Signal(name="leaves"),
        )
        unseen = matching & ~seen
        if self.params.has_groups:
            unseen &= probe
        m.d.comb += [
            matching.eq(Cat(*(word.mask[p].any() for p in range(probes)))),
            wanted.eq(unseen & (~unseen + 1)[:probes]),
            leaves.eq((Const(0, 1) if self.params.has_groups else ordered) | (unseen == wanted)),
        ]
        if not self.params.has_groups:
            with m.If(ordered):
                m.d.comb += wanted.eq((Const(1, probes) << probe)[:probes])
        chosen = reduce(or_, (Mux(wanted[p], word.mask[p], 0) for p in range(probes)))
        return wanted, leaves, chosen

    def _give(self, m: Module, rest: View, outlet: Outlet) -> None:
        """Say what is given next, and wire the read of its stored payload."""
        order = outlet.i.p
        m.d.comb += [
            order.word.eq(rest.word),
            outlet.payload.eq(self.payload),
            self.fetch.eq(outlet.fetch),
            self.fetch_word.eq(outlet.fetch_word),
            self.fetch_lane.eq(outlet.fetch_lane),
        ]
        if self.params.order != "none":
            m.d.comb += order.star.eq(rest.left == 0)
        if self.params.order == "inner":
            m.d.comb += order.row.eq(rest.row + order.lane)

    def _alone(self, m: Module, given: Signal, finished: Signal) -> None:
        """Ask for another pass for the next probe of a batch whose probes are served alone."""
        with m.If(finished):
            m.d.sync += self.alone.eq(0)
        # Given late, when the output is taken; the pass begins a cycle later.
        m.d.sync += self.again.eq(given & ~finished & self.alone)

    def _starve(self, m: Module, waits: Value, list_ports: Any) -> None:
        """Serve a probe alone where the list cannot hold its batch.

        The first probe, whose results so far were given, goes on.
        """
        with m.If(waits & self.nearly_full & self.settled):
            m.d.sync += self.alone.eq(1)
            m.d.comb += list_ports["forget"].eq(1)

    def _registers(self, m: Module, idle: Signal, probe: Signal) -> _Batches:
        """Keep the payloads of the batch whose results are given."""
        payloads = payload_of(self.payloads.shape())
        with m.If(idle):
            m.d.sync += payloads.eq(self.payloads)
        each = [payloads[p] for p in range(self.params.probes)]
        picked = Array(each)[probe] if len(each) > 1 else each[0]
        ends = self.ends if self.params.has_groups else None
        return _Batches(self.ready_batch, self.take, self.count, picked, ends)

    def _banks(self, m: Module, idle: Signal, probe: Signal) -> _Batches:
        """Keep payloads and counts of the batches that were begun and of the one collected."""
        params, take = self.params, Signal(name="take")
        pending = Signal(range(BANKS))
        collected, first = (
            Signal(range(BANKS), name="collected"),
            Signal(range(BANKS), name="first"),
        )
        given = payload_of(range(BANKS))
        counts = [payload_of(len(self.count), name=f"count{bank}") for bank in range(BANKS)]
        ended = [payload_of(self.params.probes, name=f"ends{bank}") for bank in range(BANKS)]
        m.d.comb += self.free.eq(pending != BANKS - 1)
        m.d.sync += pending.eq(pending + self.begun - take)
        with m.If(self.begun):
            m.d.sync += collected.eq(collected + 1)
            for bank, count in enumerate(counts):
                with m.If(collected == bank):
                    m.d.sync += count.eq(self.count)
                    if params.has_groups:
                        m.d.sync += ended[bank].eq(self.ends)
        m.d.sync += first.eq(first + take)
        with m.If(idle):
            m.d.sync += given.eq(first)
        memory: Any = Memory(shape=params.payload_bits, depth=BANKS << len(self.put_index), init=[])
        m.submodules.probing = memory
        write, read = memory.write_port(), memory.read_port(domain="comb")
        m.d.comb += [
            write.addr.eq(Cat(self.put_index, collected)),
            write.data.eq(self.put_payload),
            write.en.eq(self.put),
            read.addr.eq(Cat(probe, given)),
        ]
        ends = Array(ended)[first] if params.has_groups else None
        return _Batches(pending != 0, take, Array(counts)[first], read.data, ends)
