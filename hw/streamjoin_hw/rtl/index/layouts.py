"""Widths and layouts of the ordered index.

A bucket's *word* holds a few tuples, in *slots*. Words are numbered like buckets and lie in
``ways`` banks in turn, so that a word and the next ones, one of each bank, are read together.
"""

from typing import Any

from amaranth.hdl import Mux
from amaranth.lib import data

from streamjoin_common.contract import KEY_BITS, DesignParams, KeyType, TermKind
from streamjoin_hw.rtl.streams import r_layout, s_layout

ROUND_BITS = 3
"""Bits of a round's number: a spread looks young again after 8 rounds, which only costs reads."""

NUMBER_BITS = 8
"""Bits of an arrival's number, which wraps: half of the numbers are enough for all inside."""


def word_bits(params: DesignParams) -> int:
    """Bits of a bucket's or word's number."""
    return params.buckets.bit_length() - 1


def row_bits(params: DesignParams) -> int:
    """Bits of a word's address in its bank."""
    return word_bits(params) - bank_bits(params)


def bank_bits(params: DesignParams) -> int:
    """Lowest bits of a word's number, which say in which bank it is."""
    return params.ways.bit_length() - 1


def bank_of(params: DesignParams, word: Any) -> Any:
    """Return the bank of a word."""
    return word[: bank_bits(params)]


def row_of(params: DesignParams, word: Any) -> Any:
    """Return the address of a word in its bank."""
    return word[bank_bits(params) :]


def rows_of(params: DesignParams, word: Any) -> list[Any]:
    """Return the addresses, in each bank, of a word and the next ones (the first after all)."""
    ahead = [word + (params.ways - 1 - bank) for bank in range(params.ways)]
    return [each[bank_bits(params) : word_bits(params)] for each in ahead]


def rows_layout(params: DesignParams) -> data.ArrayLayout:
    """Layout of an address in each bank."""
    return data.ArrayLayout(row_bits(params), params.ways)


def ring_bits(params: DesignParams) -> int:
    """Bits of the slot of the ring in which a tuple's position is kept until it expires."""
    return params.ring_tuples.bit_length() - 1


def sequence_bits(params: DesignParams) -> int:
    """Bits of a tuple's number; the lowest are its slot in the ring."""
    return ring_bits(params) + 1


def position_layout(params: DesignParams) -> data.StructLayout:
    """Layout of where a tuple is stored: ``word`` and a bit for its ``slot``."""
    return data.StructLayout({"word": word_bits(params), "slot": params.bucket_slots})


def spread_layout(params: DesignParams) -> data.StructLayout:
    """Layout of how far a bucket's tuples lie behind its word, in words.

    ``now``, of those stored in ``round``; ``before``, of those of the round before. A round ends
    when all tuples of the round before have expired: what is in the window is of these two.
    ``latest``, of the one that was displaced last: the tuples behind it are the next to expire.
    """
    bits = word_bits(params)
    return data.StructLayout({"round": ROUND_BITS, "now": bits, "before": bits, "latest": bits})


def own_interval(params: DesignParams) -> int | None:
    """Return the term by which an R arrival brings an interval of S codes; None if there is none.

    Integer bounds are exact from either side, so that S tuples are stored with one code for it
    instead of their own interval. Float32 bounds are rounded, each its own way.
    """
    term = params.indexed_term
    if term is None or params.terms[term].kind is not TermKind.BAND:
        return None
    return None if params.terms[term].type is KeyType.FLOAT32 else term


def stored_layouts(params: DesignParams) -> list[data.StructLayout]:
    """Layouts of stored R and S tuples."""
    members = dict(s_layout(params).members)
    term = own_interval(params)
    if term is not None:
        del members[f"lo{term}"], members[f"hi{term}"]
        members = {f"code{term}": KEY_BITS, **members}
    return [r_layout(params), data.StructLayout(members)]


def asking_layouts(params: DesignParams) -> list[data.StructLayout]:
    """Layouts of what an S tuple asks the index of R, and an R tuple that of S."""
    members = dict(r_layout(params).members)
    if own_interval(params) is not None:
        members |= {"low": KEY_BITS, "high": KEY_BITS}
    return [s_layout(params), data.StructLayout(members)]


def errand_layout(params: DesignParams) -> data.StructLayout:
    """Layout of what an arrival does in an index.

    ``stores``, it is stored, else it looks for others, if there is anything to look for
    (``looks``); ``word``, its own or the first of an interval; ``extent``, words behind that one in
    which to look, and ``until``, the last of them.
    """
    words = dict.fromkeys(("word", "extent", "until"), word_bits(params))
    return data.StructLayout({"stores": 1, "looks": 1, **words})


def planned_layout(params: DesignParams) -> data.StructLayout:
    """Layout of an errand of which is known how far it reads.

    ``rows``, how often ``ways`` words are read after the first time, or that is ``short``, not at
    all. Of a tuple that is stored: ``at``, the first word that is searched for a slot, ``start``
    words behind its own; ``hint``, where to go on if that is its own; its bucket's spread ``now``,
    or three quarters of ``before`` if that is more, and ``before`` (:func:`spread_layout`).
    ``until`` is ``word`` for one that is stored. ``stale``, a spread that was read for it has been
    raised since.
    """
    bits = word_bits(params)
    offsets = dict.fromkeys(("until", "at", "start", "hint", "now", "before"), bits)
    kinds = dict.fromkeys(("stores", "looks", "stale", "short"), 1)
    return data.StructLayout({**kinds, "word": bits, "rows": row_bits(params), **offsets})


def chosen_layout(params: DesignParams) -> data.StructLayout:
    """Layout of what goes through the last stages: a row of a search, a tuple, or both.

    ``search``, there is a row to be read, which begins with ``word`` and is the last one if it
    ``ends``; its search goes from ``home`` to ``until``. ``scans``, it is read, or nothing is to be
    looked at. ``stores``, there is a ``tuple`` behind the search, a :func:`planned_layout`, of
    which ``rows`` are the addresses of the words from ``at`` on.
    """
    bits = word_bits(params)
    kinds = dict.fromkeys(("search", "scans", "ends", "stale", "stores"), 1)
    words = dict.fromkeys(("word", "home", "until"), bits)
    tuples = {"tuple": planned_layout(params), "rows": rows_layout(params)}
    return data.StructLayout({**kinds, **words, **tuples})


def touches(bucket: Any, word: Any, until: Any) -> Any:
    """Return whether a bucket is among the words from one until another, counted around."""
    is_behind, is_before = bucket >= word, bucket <= until
    return Mux(word <= until, is_behind & is_before, is_behind | is_before)


def found_layout(params: DesignParams) -> data.StructLayout:
    """Layout of a word with matches: the payload of who asked, and what it met.

    ``single``, that is one tuple.
    """
    return data.StructLayout({**met_layout(params).members, "single": 1})


def met_layout(params: DesignParams) -> data.StructLayout:
    """Layout of a word that has been compared; see :func:`found_layout`."""
    return data.StructLayout(
        {
            "probe": params.payload_bits,
            "mask": params.lanes,
            "payloads": data.ArrayLayout(params.payload_bits, params.lanes),
        }
    )
