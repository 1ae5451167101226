"""Design parameters: what a user chooses, checked when it is made; the rest are properties."""

import dataclasses
import hashlib
import json
import math
from dataclasses import dataclass
from typing import Any

from streamjoin_common.contract.limits import (
    CHOICES,
    COUNTS,
    FOREIGN,
    GROUPS_INTERFACE_VERSION,
    HOLD_WORDS,
    KINDS_INTERFACE_VERSION,
    MAX_TERMS,
    MIN_PAYLOAD_BITS,
    OLDER_INTERFACE_VERSION,
    WINDOW_BITS,
    is_count,
    is_power,
    rows_kept,
)
from streamjoin_common.contract.terms import (
    KeyType,
    ParameterError,
    Term,
    TermKind,
    parse_term,
    require,
)
from streamjoin_common.contract.theta import Theta

INTERFACE_VERSION = 5
"""Version of the newest layouts and registers."""


@dataclass(frozen=True, kw_only=True)
class DesignParams:
    """Everything a user chooses about a design, checked when it is made.

    Parameters
    ----------
    design : str
        Name of the design: ``"handshake"``, a chain of cores that scan, ``"splitjoin"``,
        independent ones between trees, or one core that looks tuples up by hash
        (``"splitjoin-hash"``) or by order (``"splitjoin-index"``).
    cores : int
        Join cores, 1 to 1024. There is one in ``"splitjoin-hash"`` and ``"splitjoin-index"``.
    segment_tuples : int
        Tuples of each stream that one core holds, 1 to 65536. The window capacity of a stream
        is ``cores * segment_tuples``.
    lanes : int
        Stored tuples that one core compares in one cycle, 1 to 64. A power of two in
        ``"splitjoin-hash"``, a multiple of ``ways`` in ``"splitjoin-index"``.
    terms : tuple of Term
        The predicate, a conjunction of 1 to 4 conditions, one key column of each side each.
    payload_bits : int
        Bits of payload (the row number) that travel with each tuple, 8 to 32.
    merge_arity : int
        Inputs of one merger of a collection tree, outputs of one node of a distribution tree, 2
        to 16.
    result_fifo_words : int
        Depth of each core's result FIFO in scan words, 16 (twice ``HOLD_WORDS``) to 4096. With more
        than 288 cores in lock step there are at least 17.
    forward : str
        How tuples pass a chain: ``"step"``, they walk through it in lock step, or ``"fast"``, they
        are forwarded along it at once and each is stored in one core.
    probes : int
        Arriving tuples that a core of ``splitjoin`` compares in one pass over its sub-window, 1 to
        16.
    order : str
        The strictest order that ``splitjoin`` can promise: ``"none"``, ``"outer"``, results by
        arrival of the later tuple, or ``"inner"``, then by arrival of the earlier one too. The
        order of ``splitjoin-index`` is ``"outer"``, with ``"inner"`` that.
    comparators : str
        What compares in a core of ``splitjoin``: ``"own"`` comparators of each half, or
        ``"shared"`` ones for whichever half has work; in count windows, for equality and bands.
    timestamp_bits : int
        Bits of a tuple's time, 8 to 32, for time windows beside the count windows; 0 for none.
        The highest time is reserved.
    window_memory : str
        What the windows are kept in: ``"registers"``, ``"lutram"``, ``"bram"``, ``"uram"`` where a
        part has it (UltraScale+), or ``"auto"``, which leaves it to the synthesis tool.
    theta : Theta, optional
        The user's own condition, beside those of the terms; on the command line
        ``theta=FILE.py:FUNCTION``.
    buckets : int
        Buckets of each stream's index, a power of two from 2 to 65536 (from ``2 * ways`` in
        ``"splitjoin-index"``); for ``"splitjoin-hash"`` and ``"splitjoin-index"``.
    ways : int
        Tuples that a bucket names itself, 2 to 16, older ones being linked, in
        ``"splitjoin-hash"``; buckets that are read in one cycle, 2, 4 or 8, in
        ``"splitjoin-index"``.
    lead_tuples : int
        Tuples that may be accepted while an earlier one still looks for its partners, a power of
        two from 8 to 4096; for ``"splitjoin-hash"``.
    own_buckets : int
        Buckets of each stream's index that are for one frequent key each, a power of two from 2 to
        65536, or 0 for none; for ``"splitjoin-hash"``.
    beat_results : int
        Maximum results in a beat, 1 or 2, and links followed at once; for ``"splitjoin-hash"``.
    kinds : str
        Kinds of join that a register chooses from: ``"inner"`` alone, or ``"all"``, for which
        payloads are kept outside the windows. A chain that forwards by step has ``"inner"``.
    stars : str
        What an order of ``splitjoin`` is exact between: ``"each"`` arrival and the next, or
        ``"grouped"``, groups of as many as a register says.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.
    """

    design: str = "handshake"
    cores: int
    segment_tuples: int
    lanes: int = 1
    terms: tuple[Term, ...] = (Term(TermKind.EQUI, KeyType.INT32),)
    payload_bits: int = 32
    merge_arity: int = 4
    result_fifo_words: int = 2 * HOLD_WORDS
    forward: str = "step"
    probes: int = 1
    order: str = "none"
    timestamp_bits: int = 0
    window_memory: str = "auto"
    theta: Theta | None = None
    buckets: int = 4096
    ways: int = 8
    lead_tuples: int = 64
    comparators: str = "own"
    kinds: str = "inner"
    stars: str = "each"
    own_buckets: int = 0
    beat_results: int = 1

    def __post_init__(self) -> None:
        for name, (minimum, maximum) in COUNTS.items():
            value = getattr(self, name)
            integer = f"an integer from {minimum} to {maximum}"
            require(is_count(value, minimum, maximum), name, integer, value)
        require(self.lanes <= self.segment_tuples, "lanes", "at most segment_tuples", self.lanes)
        strings = [term.text if isinstance(term, Term) else repr(term) for term in self.terms]
        if len(strings) > MAX_TERMS:
            raise ParameterError(
                f"terms must be 1 to {MAX_TERMS} terms, not {len(strings)}: {','.join(strings)}"
            )
        require(
            bool(self.terms) and all(isinstance(t, Term) for t in self.terms),
            "terms",
            f"1 to {MAX_TERMS} Term objects",
            self.terms,
        )
        object.__setattr__(self, "terms", tuple(self.terms))
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            require(value in choices, name, f"one of {', '.join(choices)}", value)
        for name in FOREIGN[self.design]:
            plain = type(self).__dataclass_fields__[name].default
            value = getattr(self, name)
            require(value == plain, name, f"{plain} in the design {self.design}", value)
        require(
            self.timestamp_bits == 0 or is_count(self.timestamp_bits, 8, 32),
            "timestamp_bits",
            "0 or an integer from 8 to 32",
            self.timestamp_bits,
        )
        require(
            self.theta is None or isinstance(self.theta, Theta),
            "theta",
            "a Theta, as Theta.of makes it",
            self.theta,
        )
        require(
            self.theta is not None or any(t.kind is not TermKind.KEY for t in self.terms),
            "terms",
            "other than keys alone where there is no theta",
            ",".join(strings),
        )
        require(
            self.window_capacity < 1 << WINDOW_BITS,
            "cores * segment_tuples",
            f"below {1 << WINDOW_BITS}",
            self.window_capacity,
        )
        require(
            self.stores_in_turn or not self.decides_kinds,
            "kinds",
            "inner where a chain forwards by step, take forward=fast for the others",
            self.kinds,
        )
        grouped_order = self.order != "none" or not self.has_groups
        require(grouped_order, "order", "outer or inner where stars are grouped", self.order)
        if self.has_shared_comparators:
            self._check_shared(",".join(strings))
        if self.design == "splitjoin-hash":
            self._check_hash(",".join(strings))
        if self.design == "splitjoin-index":
            self._check_index(",".join(strings))

    def _check_shared(self, terms: str) -> None:
        """Check what comparators need that take a stored tuple of either side."""
        shared = " where comparators are shared"
        require(self.timestamp_bits == 0, "timestamp_bits", f"0{shared}", self.timestamp_bits)
        theta = None if self.theta is None else self.theta.name
        require(theta is None, "theta", f"none{shared}", theta)
        if any(term.kind is TermKind.KEY for term in self.terms):
            raise ParameterError(f"terms must be equi and band terms{shared}, not {terms}")
        if self.has_point_windows:
            bands = f"each{shared} for bands"
            require(not self.has_groups, "stars", bands, self.stars)

    def _check_hash(self, terms: str) -> None:
        """Check what only a design with an index needs."""
        require(self.cores == 1, "cores", "1 for splitjoin-hash", self.cores)
        require(is_power(self.lanes, 1, 64), "lanes", "a power of two up to 64", self.lanes)
        for name, minimum, maximum in (("buckets", 2, 65536), ("lead_tuples", 8, 4096)):
            value, which = getattr(self, name), f"a power of two from {minimum} to {maximum}"
            require(is_power(value, minimum, maximum), name, which, value)
        require(is_count(self.ways, 2, 16), "ways", "an integer from 2 to 16", self.ways)
        if self.own_buckets:
            own, most = self.own_buckets, self.buckets
            which = f"0 or a power of two from 2 to buckets = {most}"
            require(is_power(own, 2, most), "own_buckets", which, own)
        if self.beat_results > 1:
            require(self.lanes > 1, "lanes", "at least 2 where a beat has 2 results", self.lanes)
            is_inner = not self.decides_kinds
            require(is_inner, "kinds", "inner where a beat has 2 results", self.kinds)
        if all(term.kind is not TermKind.EQUI for term in self.terms):
            raise ParameterError(f"terms must hold an equi term for splitjoin-hash, not {terms}")

    def _check_index(self, terms: str) -> None:
        """Check what only a design with an ordered index needs."""
        name = self.design
        require(self.cores == 1, "cores", f"1 for {name}", self.cores)
        require(is_power(self.ways, 2, 8), "ways", f"2, 4 or 8 for {name}", self.ways)
        lanes = f"a multiple of ways = {self.ways} for {name}"
        require(self.lanes % self.ways == 0, "lanes", lanes, self.lanes)
        buckets = f"a power of two from 2 * ways = {2 * self.ways} to 65536 for {name}"
        is_legal = is_power(self.buckets, 2 * self.ways, 65536)
        require(is_legal, "buckets", buckets, self.buckets)
        slots = self.buckets * self.bucket_slots
        require(
            self.segment_tuples < slots,
            "segment_tuples",
            f"below buckets * lanes / ways = {slots} for {name}",
            self.segment_tuples,
        )
        is_ordered = self.order == "none" or self.orders_by_age
        require(is_ordered, "order", f"none, or inner with kinds=all, for {name}", self.order)
        if self.indexed_term is None:
            raise ParameterError(f"terms must hold a band or equi term for {name}, not {terms}")

    @property
    def has_shared_comparators(self) -> bool:
        """Whether one pool of comparators serves both halves of a core."""
        return self.comparators == "shared"

    @property
    def has_point_windows(self) -> bool:
        """Whether a window keeps one code a band term, and arrivals of both sides an interval."""
        has_band = any(term.kind is TermKind.BAND for term in self.terms)
        return self.has_shared_comparators and has_band

    @property
    def has_groups(self) -> bool:
        """Whether a register says how many arrivals an order is not exact among."""
        return self.stars == "grouped"

    @property
    def decides_kinds(self) -> bool:
        """Whether a register chooses among all kinds of join."""
        return self.kinds == "all"

    @property
    def orders_by_age(self) -> bool:
        """Whether an index puts an arrival's results by the slots of the earlier tuples."""
        return self.decides_kinds and self.has_index and self.order == "inner"

    @property
    def kept_rows(self) -> int:
        """Rows of each stream whose payload is kept where all kinds are decided."""
        return rows_kept(self.window_capacity)

    @property
    def array(self) -> "DesignParams":
        """Parameters of what is between intake and output: payloads may be row slots there."""
        if not self.decides_kinds:
            return self
        slot_bits = (self.kept_rows - 1).bit_length()
        return dataclasses.replace(self, payload_bits=max(MIN_PAYLOAD_BITS, slot_bits))

    @property
    def has_index(self) -> bool:
        """Whether tuples are looked up instead of compared with the whole window."""
        return self.design in ("splitjoin-hash", "splitjoin-index")

    @property
    def bucket_slots(self) -> int:
        """Tuples that a bucket of ``splitjoin-index`` has room for."""
        return self.lanes // self.ways

    @property
    def indexed_term(self) -> int | None:
        """Number of the term that ``splitjoin-index`` orders tuples by: the first but keys."""
        kinds = [term.kind for term in self.terms]
        return next((i for i, kind in enumerate(kinds) if kind is not TermKind.KEY), None)

    @property
    def order_promise(self) -> str:
        """The order of results, one of :data:`ORDERS`, unless the registers ask for less."""
        return "outer" if self.has_index and not self.orders_by_age else self.order

    @property
    def ring_tuples(self) -> int:
        """Slots of each stream's ring in a design with an index, a power of two.

        In ``splitjoin-hash`` a tuple is not written over one that a tuple accepted up to
        ``lead_tuples`` before may still read, whatever the windows.
        """
        if self.design == "splitjoin-index":
            return max(2, 1 << (self.segment_tuples - 1).bit_length())
        minimum = max(self.segment_tuples + self.lead_tuples, 2 * self.lanes)
        return 1 << (minimum - 1).bit_length()

    @property
    def window_capacity(self) -> int:
        """Tuples of each stream that the whole design holds."""
        return self.cores * self.segment_tuples

    @property
    def segment_words(self) -> int:
        """Memory words of one segment, ``lanes`` tuples each."""
        return math.ceil(self.segment_tuples / self.lanes)

    @property
    def stores_in_turn(self) -> bool:
        """Whether each tuple is stored in one core, round robin; else it walks through all."""
        return self.design != "handshake" or self.forward == "fast"

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as plain JSON values."""
        # Not `dataclasses.asdict`, which would copy the function of theta.
        plain = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        plain["terms"] = [term.text for term in self.terms]
        for name in ("comparators", "kinds", "stars", "own_buckets", "beat_results"):
            # Designs made before there was a choice keep their digest.
            if plain[name] == type(self).__dataclass_fields__[name].default:
                del plain[name]
        if self.theta is not None:
            plain["theta"] = {"name": self.theta.name, "source_digest": self.theta.source_digest}
        return plain

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "DesignParams":
        """Build parameters from :meth:`to_dict`'s form.

        Raises
        ------
        ParameterError
            If a name is unknown or a value is out of its range.
        """
        known = {field.name for field in dataclasses.fields(cls)}
        for name in plain:
            require(name in known, "parameter", f"one of {', '.join(sorted(known))}", name)
        values = dict(plain)
        if "terms" in values:
            strings = values["terms"]
            listed = isinstance(strings, list | tuple)
            listed = listed and all(isinstance(string, str) for string in strings)
            require(listed, "terms", "a list of terms, such as key:int32", strings)
            values["terms"] = tuple(parse_term(string) for string in strings)
        if values.get("theta") is not None:
            values["theta"] = Theta(**values["theta"])
        return cls(**values)

    @property
    def interface_version(self) -> int:
        """Version of the design's layouts and registers, part of its digest.

        Raised for the designs whose layouts or registers change, so that the others, and what was
        measured of them, stay as they are.
        """
        if self.beat_results > 1:
            return INTERFACE_VERSION
        if self.has_groups:
            return GROUPS_INTERFACE_VERSION
        has_newer = self.decides_kinds or self.design == "splitjoin-index"
        return KINDS_INTERFACE_VERSION if has_newer else OLDER_INTERFACE_VERSION

    @property
    def digest(self) -> str:
        """Identity of the design: 16 hexadecimal digits over parameters and interface."""
        identity = {"interface": self.interface_version, **self.to_dict()}
        document = json.dumps(identity, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(document.encode()).hexdigest()[:16]
