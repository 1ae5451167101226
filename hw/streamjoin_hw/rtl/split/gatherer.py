"""What a core with shared comparators is to do next: one batch at a time, of whichever half."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, signed
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from streamjoin_common.contract import SIDE_R, SIDE_S, DesignParams
from streamjoin_hw.rtl.split.collector import group_members
from streamjoin_hw.rtl.split.hits import BANKS
from streamjoin_hw.rtl.split.layouts import SPARE_SLOTS, body_layout, key_layout, routed_layout
from streamjoin_hw.rtl.streams import Component, View, payload_of, registers_of, signal_of
from streamjoin_hw.rtl.turn import Turn

MAX_RECENT = SPARE_SLOTS - 1
"""Maximum tuples that expire in a ring between a batch's begin and its last result."""


def keys_layout(params: DesignParams) -> data.StructLayout:
    """Layout of a batch of probes by their keys, which are alike on both sides; else as a batch of
    :class:`~streamjoin_hw.rtl.split.collector.Collector`.
    """
    return data.StructLayout(
        {
            "count": bits_for(params.probes),
            "probes": data.ArrayLayout(key_layout(params, SIDE_R), params.probes),
            "gone": params.probes,
            "there": params.probes,
            **group_members(params),
        }
    )


BALANCE_BITS = 12
"""Bits of how far one half is ahead of the other, in tuples: up to what queues and trees hold."""


class Expired(Component):
    """Count the tuples that expired in a ring since the begin of its oldest unfinished batch.

    So many slots beyond the window may still be read, and are not to be written over.

    Parameters
    ----------
    limit : int
        Maximum tuples, one less than a power of two.

    Members
    -------
    clear : In(1)
        There is no batch.
    begin : In(1)
        A batch begins; a tuple that expires with it counts for it.
    expire : In(1)
        A tuple expires.
    finished : In(1)
        The oldest batch has read all it will.
    spent : Out(1)
        There are ``limit``; from a register.
    """

    clear: Signal
    begin: Signal
    expire: Signal
    finished: Signal
    spent: Signal

    def __init__(self, limit: int = MAX_RECENT) -> None:
        self.limit = limit
        flags = ("clear", "begin", "expire", "finished")
        super().__init__({**{name: In(1) for name in flags}, "spent": Out(1)})

    def elaborate(self, _platform: object) -> Module:
        """Build a count for each batch, of what expired before the next one's begin, and a sum."""
        m = Module()
        recent = Signal(range(self.limit + 1))
        batches = Signal(range(BANKS + 1))
        oldest = Signal(range(BANKS), init=1)
        newest = Signal(range(BANKS))
        counts = [payload_of(len(recent), name=f"since{bank}") for bank in range(BANKS)]
        left, rest = Signal.like(batches), Signal.like(recent)
        m.d.comb += [
            self.spent.eq(recent == self.limit),
            left.eq(batches - self.finished),
            rest.eq(recent - Mux(self.finished, Array(counts)[oldest], 0)),
        ]
        m.d.sync += [
            batches.eq(left + self.begin),
            oldest.eq(oldest + self.finished),
            recent.eq(Mux(left == 0, self.begin & self.expire, rest + self.expire)),
        ]
        following = (newest + 1)[: len(newest)]
        with m.If(self.begin):
            m.d.sync += newest.eq(following)
        for bank, count in enumerate(counts):
            with m.If(self.begin & (following == bank)):
                m.d.sync += count.eq(self.expire)
            with m.Elif(~self.begin & (newest == bank)):
                m.d.sync += count.eq(count + self.expire)
        with m.If(self.clear):
            m.d.sync += [recent.eq(0), batches.eq(0), oldest.eq(1), newest.eq(0)]
        return m


class Gatherer(Component):
    """Collect a batch of one half while the last batch, of either, is compared.

    Halves are named by the side that they store. A tuple of the other side is a probe; one of the
    stored side is stored, or makes the oldest one expire, when it is the core's turn. A batch holds
    up to ``probes`` probes, at most one tuple to store and at most one that expires; what would
    not fit waits at the input. Changes of a window before a batch's first probe are no part of
    it: they are ``done`` in the next cycle. While nothing is collected the half is chosen anew in
    each cycle: the one that was given fewer tuples, if it can go on, else the other. But the other
    one's probes wait while the comparators are busy, so that its batches grow. All cores are given
    the same tuples, so their choices are nearly the same, and none waits for another's.

    A batch of probes is only begun where ``free`` says that its pass will wait for nothing. So a
    batch never keeps the other half's tuples waiting for results that are due after theirs.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    index : In(bits_for(cores - 1))
        The core's number, constant.
    clear : In(1)
        Count anew; only beside a reset, and once before the first tuple.
    i : In(stream.Signature(routed_layout(params))).array(2)
        All tuples in arrival order, for the half that stores R, for the one that stores S. A
        stream's ``ready`` depends on the payloads of both.
    idle : In(1)
        Nothing is compared.
    free : In(2)
        A bit for each half: its emitter has room for a batch. Stays until ``begin``.
    finished : In(2)
        A bit for each half: all results of its oldest batch have been given.
    begin : In(1)
        The batch is taken over; a new one begins. Keys and bits stay a cycle longer.
    waiting : Out(1)
        There are probes.
    side : Out(1)
        The half of the batch.
    changes : Out(2)
        A bit for each half: its window changes in this cycle; with it ``store``, ``expire`` :
        Out(1), ``enter`` : Out(key_layout), and ``payload`` : Out(payload_bits).array(2).
    batch : Out(keys_layout(params))
    put : Out(2), put_index : Out
        A bit for each half: a probe is collected in this cycle, that of its stream.
    busy : Out(1)
        There is something to do.
    """

    index: Signal
    clear: Signal
    i: Any
    idle: Signal
    free: Signal
    finished: Signal
    begin: Signal
    waiting: Signal
    side: Signal
    changes: Signal
    store: Signal
    expire: Signal
    enter: View
    batch: View
    put: Signal
    put_index: Signal
    payload: Any
    busy: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        super().__init__(
            {
                "index": In(bits_for(params.cores - 1)),
                **{name: In(1) for name in ("clear", "idle", "begin")},
                "i": In(stream.Signature(routed_layout(params))).array(2),
                **{name: In(2) for name in ("free", "finished")},
                **{name: Out(2) for name in ("changes", "put")},
                **{name: Out(1) for name in ("waiting", "side", "store", "expire", "busy")},
                "enter": Out(key_layout(params, SIDE_R)),
                "payload": Out(params.payload_bits).array(2),
                "batch": Out(keys_layout(params)),
                "put_index": Out(bits_for(params.probes - 1)),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the choice of a half, the turns, and the registers of a batch."""
        m = Module()
        params = self.params
        batch = registers_of(self.batch.shape(), "count", name="batch")
        m.d.comb += self.batch.eq(batch)
        streams = self.i
        bits = _Bits()
        prefer = self._balance(m, bits)
        self._halves(m, bits, prefer)
        arrives, probes, able = bits.arrives, bits.probes, bits.able

        empty = Signal()
        at = Signal()
        kept = Signal()
        changing = self.store | self.expire
        m.d.comb += [
            empty.eq((batch.count == 0) & ~changing),
            at.eq(Mux(empty, prefer ^ ~(able.bit_select(prefer, 1)[0]), kept)),
            self.side.eq(kept),
            self.waiting.eq(batch.count != 0),
            self.busy.eq(~empty),
        ]
        is_probe, mine, accepts, fits = (
            Signal(name=name) for name in ("is_probe", "mine", "accepts", "fits")
        )
        here = {
            name: each.bit_select(at, 1)
            for name, each in (("probe", probes), ("store", bits.stores), ("expire", bits.expires))
        }
        stays = (~here["store"] | ~self.store) & (~here["expire"] | ~self.expire)
        stays &= ~here["expire"] | ~bits.spent.bit_select(at, 1)
        done = self.begin | ((batch.count == 0) & changing)
        m.d.comb += [
            is_probe.eq(here["probe"]),
            mine.eq(here["store"] | here["expire"]),
            fits.eq(
                Mux(
                    empty,
                    able.bit_select(at, 1),
                    Mux(is_probe, batch.count != params.probes, stays),
                )
            ),
            self.changes.eq(Cat(done & (kept == half) for half in (SIDE_R, SIDE_S))),
        ]
        for half, each in enumerate(streams):
            m.d.comb += [
                each.ready.eq((at == half) & fits & ~done),
                arrives[half].eq(each.valid & each.ready),
                self.put[half].eq(arrives[half] & is_probe),
            ]
        m.d.comb += accepts.eq(arrives.any())
        key = self._bodies(m, bits, at)
        enter = payload_of(self.enter.shape())
        m.d.comb += self.enter.eq(enter)
        m.d.comb += self.put_index.eq(batch.count)
        begins = is_probe | mine
        if params.has_groups:
            begins |= bits.late.bit_select(at, 1)
        with m.If(accepts & begins):
            m.d.sync += kept.eq(at)
        with m.If(accepts & is_probe):
            m.d.sync += [
                batch.count.eq(batch.count + 1),
                batch.probes[batch.count].eq(key),
                batch.gone.bit_select(batch.count, 1).eq(self.expire),
                batch.there.bit_select(batch.count, 1).eq(self.store),
            ]
        with m.Elif(accepts):
            with m.If(here["store"]):
                m.d.sync += [self.store.eq(1), enter.eq(key)]
            with m.If(here["expire"]):
                m.d.sync += self.expire.eq(1)
        if params.has_groups:
            self._end_groups(m, bits, batch, (accepts, at))
        with m.If(done):
            m.d.sync += [batch.count.eq(0), self.store.eq(0), self.expire.eq(0)]
        return m

    def _end_groups(
        self, m: Module, bits: "_Bits", batch: View, accepted: tuple[Signal, Signal]
    ) -> None:
        """Have a star follow the last probe of a group that has any in its half.

        If that probe is of a batch before, a blank one stands for it, for which a batch is begun.
        """
        accepts, at = accepted
        is_probe, late, closes = (
            each.bit_select(at, 1) for each in (bits.probes, bits.late, bits.closes)
        )
        with m.If(accepts & is_probe):
            m.d.sync += batch.ends.bit_select(batch.count, 1).eq(closes)
        with m.If(accepts & late):
            for p in range(self.params.probes):
                with m.If(batch.count == p + 1):
                    m.d.sync += batch.ends[p].eq(1)
        with m.If(accepts & (batch.count == 0)):
            m.d.sync += batch.blank.eq(late)
            with m.If(late):
                m.d.sync += [batch.count.eq(1), batch.ends[0].eq(1)]
        for half, each in enumerate(self.i):
            probe, pending = bits.probes[half], bits.pending[half]
            m.d.comb += [
                bits.closes[half].eq(each.p.closes),
                bits.late[half].eq(each.p.closes & ~probe & pending),
            ]
            with m.If(bits.arrives[half]):
                m.d.sync += pending.eq(~each.p.closes & (pending | probe))

    def _balance(self, m: Module, bits: "_Bits") -> Signal:
        """Return the half that was given fewer tuples; where it is even, one that has a probe."""
        # How many more the half that stores R was given; it is as far behind as queues hold.
        ahead = Signal(signed(BALANCE_BITS))
        prefer = Signal()
        m.d.sync += ahead.eq(ahead + bits.arrives[SIDE_R] - bits.arrives[SIDE_S])
        with m.If(ahead == 0):
            m.d.comb += prefer.eq(Mux(self.i[0].valid & bits.probes[SIDE_R], SIDE_R, SIDE_S))
        with m.Else():
            m.d.comb += prefer.eq(Mux(ahead < 0, SIDE_R, SIDE_S))
        return prefer

    def _halves(self, m: Module, bits: "_Bits", prefer: Signal) -> None:
        """Say of each half what it is offered, and whether it can go on with that."""
        params = self.params
        for half, each in enumerate(self.i):
            turns = []
            for name, event in (("storing", 1), ("expiring", each.p.full)):
                m.submodules[f"{name}{half}"] = turn = Turn(params.cores)
                m.d.comb += [
                    turn.index.eq(self.index),
                    turn.clear.eq(self.clear),
                    turn.event.eq(bits.arrives[half] & ~bits.probes[half] & event),
                ]
                turns.append(turn.mine & event)
            m.submodules[f"expired{half}"] = expired = Expired()
            m.d.comb += [
                expired.clear.eq(self.clear),
                expired.begin.eq(self.begin & (self.side == half)),
                expired.expire.eq(self.changes[half] & self.expire),
                expired.finished.eq(self.finished[half]),
            ]
            full = bits.expires[half] & bits.spent[half]
            may_open = self.free[half] & ((prefer == half) | self.idle)
            m.d.comb += [
                bits.probes[half].eq(each.p.side != half),
                bits.stores[half].eq(turns[0]),
                bits.expires[half].eq(turns[1]),
                bits.spent[half].eq(expired.spent),
            ]
            able = Mux(bits.probes[half], may_open, ~full)
            if params.has_groups:
                able &= ~bits.late[half] | may_open
            m.d.comb += bits.able[half].eq(each.valid & able)

    def _bodies(self, m: Module, bits: "_Bits", at: Signal) -> Any:
        """Choose the key that arrives; payloads have ways of their own."""
        params, streams = self.params, self.i
        bodies = [
            body_layout(params, half)(each.p.body[: body_layout(params, half).size])
            for half, each in enumerate(streams)
        ]
        key = signal_of(self.enter.shape())
        for name in self.enter.shape().members:
            m.d.comb += key[name].eq(Mux(at, bodies[1][name], bodies[0][name]))
        for half in (SIDE_R, SIDE_S):
            payload = payload_of(params.payload_bits, name=f"entering{half}")
            with m.If(bits.arrives[half] & bits.stores[half] & ~bits.probes[half]):
                m.d.sync += payload.eq(bodies[half].payload)
            m.d.comb += self.payload[half].eq(payload)
        return key


class _Bits:
    """A bit for each half, of the tuple that it is offered."""

    def __init__(self) -> None:
        self.arrives, self.probes, self.stores, self.expires = (
            Signal(2, name=name) for name in ("arrives", "probes", "stores", "expires")
        )
        self.spent = Signal(2)
        self.able = Signal(2)
        # Where stars are grouped: it closes its group, the half has had a probe of that, and both
        # although it is no probe.
        self.closes = Signal(2)
        self.pending = Signal(2)
        self.late = Signal(2)
