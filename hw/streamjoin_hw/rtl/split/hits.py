"""A word with matches, and the list of them that a half keeps."""

from typing import Any

from amaranth.hdl import Assert, Cat, Module, Signal, Value
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.utils import bits_for

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.memory import memory_of, word_after
from streamjoin_hw.rtl.queues import ResultQueue
from streamjoin_hw.rtl.split.layouts import edge_words, ring_words, row_member
from streamjoin_hw.rtl.split.subwindow import word_bits
from streamjoin_hw.rtl.streams import View

IN_FLIGHT = 5
"""Words of a list that are free until ``nearly_full`` rises: one arrives before its register shows
it, three are between read and list, so that one stays free."""


def hit_layout(params: DesignParams) -> data.StructLayout:
    """Layout of a word with matches: ``mask[p][l]`` is 1 if probe ``p`` matches lane ``l``.

    The last word of a pass is there whether it has matches or not, with ``last``. Where windows
    keep points, ``before`` and ``behind`` are the words of the pass before this one and behind it,
    up to :func:`~streamjoin_hw.rtl.split.layouts.edge_words`: more are alike for every probe.
    """
    edges = {}
    if params.has_point_windows:
        edges = dict.fromkeys(("before", "behind"), bits_for(edge_words(params)))
    return data.StructLayout(
        {
            "mask": data.ArrayLayout(params.lanes, params.probes),
            "word": word_bits(params),
            **edges,
            **row_member(params),
            "last": 1,
        }
    )


BANKS = 4
"""Batches of a half between the first one's begin and its last result, where comparators are
shared: one whose results are given, others that wait, and one that is collected.
"""


def list_words(params: DesignParams) -> int:
    """Count the words of a list; all batches' fit where comparators are shared."""
    if params.has_shared_comparators:
        needed = max(params.result_fifo_words, BANKS * ring_words(params) + IN_FLIGHT)
        return 1 << (needed - 1).bit_length()
    return params.result_fifo_words


def short_list(
    emitter: Any, m: Module, params: DesignParams, many: Signal
) -> tuple[View, Value, Any]:
    """Build the list of words of an emitter that keeps them while there are ``many`` rounds.

    Returns the word looked at, whether there is none, and ports.
    """
    if params.probes == 1:
        return single_list(emitter, m, params)
    depth = list_words(params)
    words: Any = Memory(shape=hit_layout(params), depth=depth, init=[])
    m.submodules.words = words
    write, read = words.write_port(), words.read_port(domain="comb")
    end, here, start = (Signal(range(depth), name=name) for name in ("end", "here", "start"))
    level = Signal(range(depth + 1))
    unseen = Signal(range(depth + 1))
    empty = Signal()
    ports = {name: Signal(name=name) for name in ("look", "rewind", "forget", "held")}

    m.d.comb += [
        write.addr.eq(end),
        write.data.eq(emitter.hit),
        write.en.eq(emitter.push),
        read.addr.eq(here),
        empty.eq(unseen == 0),
        ports["held"].eq(level != 0),
        Assert(~emitter.push | (level != depth), "a list of matches overflowed"),
    ]
    m.d.sync += emitter.nearly_full.eq(level > depth - IN_FLIGHT)
    with m.If(emitter.push):
        m.d.sync += end.eq(word_after(end, depth))
    frees = ports["look"] & ~many
    with m.If(ports["look"]):
        m.d.sync += here.eq(word_after(here, depth))
    with m.If(frees):
        m.d.sync += start.eq(word_after(start, depth))
    m.d.sync += [
        level.eq(level + emitter.push - frees),
        unseen.eq(unseen + emitter.push - ports["look"]),
    ]
    with m.If(ports["rewind"]):
        m.d.sync += [here.eq(start), unseen.eq(level + emitter.push)]
    with m.If(ports["forget"]):
        m.d.sync += [start.eq(here), level.eq(0)]
    return read.data, empty, ports


def single_list(emitter: Any, m: Module, params: DesignParams) -> tuple[View, Value, Any]:
    """Build the list where a batch is one probe: nothing is looked at again.

    Two words more may be on their way to it: a comparison takes two cycles, and what says that room
    is left is a cycle late. It does not say that it holds words: their batch is looked at until its
    last one, or is still to be taken.
    """
    queue = ResultQueue(hit_layout(params), list_words(params), IN_FLIGHT + 2, is_flat=True)
    m.submodules.words = queue
    ports = {name: Signal(name=name) for name in ("look", "rewind", "forget", "held")}
    m.d.comb += [
        queue.word.eq(emitter.hit),
        queue.write.eq(emitter.push),
        queue.take.eq(ports["look"]),
        emitter.nearly_full.eq(queue.few),
    ]
    return queue.head, ~queue.is_there, ports


def long_list(
    emitter: Any, m: Module, params: DesignParams, many: Signal
) -> tuple[View, Signal, dict[str, Signal]]:
    """Build the list that never fills, in a memory that is read a cycle ahead."""
    depth = list_words(params)
    words: Any = memory_of(params.window_memory, hit_layout(params), depth)
    m.submodules.words = words
    write, read = words.write_port(), words.read_port()
    end, here, start, seen = (
        Signal(range(depth), name=name) for name in ("end", "here", "start", "seen")
    )
    empty = Signal()
    following = Signal.like(here)
    full = Signal()
    ports = {name: Signal(name=name) for name in ("look", "rewind", "held")}
    m.d.comb += [
        write.addr.eq(end),
        write.data.eq(emitter.hit),
        write.en.eq(emitter.push),
        following.eq(here + ports["look"]),
        # A word is read a cycle after it was written at the earliest.
        read.addr.eq(following),
        empty.eq(here == seen),
        Assert(~full, "a list of matches overflowed"),
    ]
    m.d.sync += [
        end.eq(end + emitter.push),
        seen.eq(end),
        here.eq(following),
        start.eq(start + (ports["look"] & ~many)),
        full.eq(emitter.push & ((end + 1)[: len(end)] == start)),
    ]
    with m.If(ports["rewind"]):
        m.d.comb += following.eq(start)
    return read.data, empty, ports


def index_of(onehot: Value, count: int) -> Value:
    """Return the number of the bit that is 1."""
    bits = []
    for bit in range(bits_for(count - 1)):
        positions = [onehot[k] for k in range(count) if k >> bit & 1]
        bits.append(Cat(*positions).any() if positions else onehot[:0].any())
    return Cat(*bits)
