"""What a design is, as data: parameters, tuple and result layouts, register map, manifest.

The one definition that the Amaranth designs, the driver, the simulation models, the test
benches and the documentation share. Standard library only, so that a board can import it
without any hardware tool. Parameters are what the user chooses; everything that follows from
them is a property. A design's identity is the digest of its parameters and of this interface.
"""

import dataclasses
import hashlib
import json
import math
from dataclasses import dataclass
from enum import Enum
from typing import Any

INTERFACE_VERSION = 1
"""Raised whenever layouts or registers change meaning: part of every design's digest."""

MAGIC = 0x534A4F4E
"""What the ``identity`` register reads: "SJON"."""


class KeyType(str, Enum):
    """Type of one join column as it travels in a tuple; every one is 32 bits wide."""

    INT32 = "int32"
    UINT32 = "uint32"
    FLOAT32 = "float32"


class TermKind(str, Enum):
    """How one column of R is compared with one column of S."""

    EQUI = "equi"
    BAND = "band"


@dataclass(frozen=True)
class Term:
    """One condition of a conjunctive predicate, on the key field of the same index.

    ``EQUI`` holds if the two keys are equal. ``BAND`` holds if ``s - lo <= r <= s + hi``, the
    widths ``lo`` and ``hi`` being registers.
    """

    kind: TermKind
    type: KeyType

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", TermKind(self.kind))
        object.__setattr__(self, "type", KeyType(self.type))

    @property
    def text(self) -> str:
        """The term as it is written in a parameter: ``equi:int32``."""
        return f"{self.kind.value}:{self.type.value}"


class ParameterError(ValueError):
    """A design parameter is out of its range; the message names it and what is required."""

    exit_status = 2


def _require(ok: bool, name: str, requirement: str, value: object) -> None:
    if not ok:
        raise ParameterError(f"{name} must be {requirement}, not {value!r}")


def _is_count(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


HOLD_WORDS = 8
"""Words that must be free in a core's result FIFO for it not to ask for a hold.

After the write that leaves fewer free, the level shows it (1 cycle), ``hold`` is registered (1),
ORed over the cores (1 for each level of 32, at most 2), and the next scan command is withheld;
the commands of these cycles, and the two words between command and FIFO (memory, mask), still
arrive: at most 6 words, where ``HOLD_WORDS - 1`` = 7 are free.
"""

KEY_BITS = 32
MAX_TERMS = 4
WINDOW_BITS = 24


@dataclass(frozen=True, kw_only=True)
class DesignParams:
    """Everything a user chooses about a design, checked when it is made.

    Parameters
    ----------
    design : str
        Name of the design; ``"handshake"``.
    cores : int
        Join cores in the chain, 1 to 1024.
    segment_tuples : int
        Tuples of each stream that one core holds, 1 to 65536. The window capacity of a stream
        is ``cores * segment_tuples``.
    lanes : int
        Stored tuples that one core compares in one cycle, 1 to 64.
    terms : tuple of Term
        The predicate, a conjunction of 1 to 4 conditions, one key column of each side each.
    payload_bits : int
        Bits of payload (the row number) that travel with each tuple, 8 to 32.
    merge_arity : int
        Inputs of one merger of the result collection tree, 2 to 16.
    result_fifo_words : int
        Depth of each core's result FIFO in scan words, at least ``2 * HOLD_WORDS``.

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

    def __post_init__(self) -> None:
        _require(self.design == "handshake", "design", "'handshake'", self.design)
        _require(_is_count(self.cores, 1, 1024), "cores", "an integer from 1 to 1024", self.cores)
        _require(
            _is_count(self.segment_tuples, 1, 65536),
            "segment_tuples",
            "an integer from 1 to 65536",
            self.segment_tuples,
        )
        _require(_is_count(self.lanes, 1, 64), "lanes", "an integer from 1 to 64", self.lanes)
        _require(self.lanes <= self.segment_tuples, "lanes", "at most segment_tuples", self.lanes)
        _require(
            1 <= len(self.terms) <= MAX_TERMS and all(isinstance(t, Term) for t in self.terms),
            "terms",
            f"1 to {MAX_TERMS} Term objects",
            self.terms,
        )
        object.__setattr__(self, "terms", tuple(self.terms))
        _require(
            _is_count(self.payload_bits, 8, 32),
            "payload_bits",
            "an integer from 8 to 32",
            self.payload_bits,
        )
        _require(
            _is_count(self.merge_arity, 2, 16),
            "merge_arity",
            "an integer from 2 to 16",
            self.merge_arity,
        )
        _require(
            _is_count(self.result_fifo_words, 2 * HOLD_WORDS, 4096),
            "result_fifo_words",
            f"an integer from {2 * HOLD_WORDS} to 4096",
            self.result_fifo_words,
        )
        _require(
            self.window_capacity < 1 << WINDOW_BITS,
            "cores * segment_tuples",
            f"below {1 << WINDOW_BITS}",
            self.window_capacity,
        )

    @property
    def window_capacity(self) -> int:
        """Tuples of each stream that the whole design holds."""
        return self.cores * self.segment_tuples

    @property
    def segment_words(self) -> int:
        """Memory words of one segment, ``lanes`` tuples each."""
        return math.ceil(self.segment_tuples / self.lanes)

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters as plain JSON values."""
        plain = dataclasses.asdict(self)
        plain["terms"] = [term.text for term in self.terms]
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
            _require(name in known, "parameter", f"one of {', '.join(sorted(known))}", name)
        values = dict(plain)
        if "terms" in values:
            values["terms"] = tuple(parse_term(text) for text in values["terms"])
        return cls(**values)

    @property
    def digest(self) -> str:
        """Identity of the design: 16 hexadecimal digits over parameters and interface."""
        identity = {"interface": INTERFACE_VERSION, **self.to_dict()}
        text = json.dumps(identity, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def active_cores(params: DesignParams, window_r: int, window_s: int) -> int:
    """Cores that take part when the windows have these sizes.

    A core holds a share of both windows, so no more cores than the smaller window has tuples
    can take part, and those must hold the larger one.

    Parameters
    ----------
    params : DesignParams
        The design.
    window_r, window_s : int
        Count windows in tuples.

    Raises
    ------
    ParameterError
        If a window is empty or above the capacity, or the two are too uneven to be held.
    """
    capacity = params.window_capacity
    for name, window in (("window_r", window_r), ("window_s", window_s)):
        _require(_is_count(window, 1, capacity), name, f"an integer from 1 to {capacity}", window)
    active = min(params.cores, window_r, window_s)
    smaller, larger = sorted((("window_r", window_r), ("window_s", window_s)), key=lambda w: w[1])
    room = active * params.segment_tuples
    _require(
        larger[1] <= room,
        larger[0],
        f"at most {room} while {smaller[0]} is {smaller[1]} "
        f"(a segment holds {params.segment_tuples} tuples)",
        larger[1],
    )
    return active


def parse_term(text: str) -> Term:
    """Read ``equi:int32`` or ``band:float32``.

    Raises
    ------
    ParameterError
        If the text names no known kind or type.
    """
    kind, _, type_name = text.partition(":")
    kinds, types = [k.value for k in TermKind], [t.value for t in KeyType]
    _require(
        kind in kinds and type_name in types,
        "term",
        f"{'|'.join(kinds)}:{'|'.join(types)}",
        text,
    )
    return Term(TermKind(kind), KeyType(type_name))


@dataclass(frozen=True)
class LayoutField:
    """One field of a packed beat: ``width`` bits from bit ``offset`` upwards."""

    name: str
    offset: int
    width: int


def _pack(widths: list[tuple[str, int]]) -> tuple[LayoutField, ...]:
    fields, offset = [], 0
    for name, width in widths:
        fields.append(LayoutField(name, offset, width))
        offset += width
    return tuple(fields)


def tuple_layout(params: DesignParams) -> tuple[LayoutField, ...]:
    """Layout of ``s_axis_tuples_tdata``: the keys in the order of the terms, then the payload."""
    keys = [(f"key{index}", KEY_BITS) for index in range(len(params.terms))]
    return _pack([*keys, ("payload", params.payload_bits)])


def result_layout(params: DesignParams) -> tuple[LayoutField, ...]:
    """Layout of ``m_axis_results_tdata``: the payloads of R and of S."""
    return _pack([("r_payload", params.payload_bits), ("s_payload", params.payload_bits)])


def beat_bits(layout: tuple[LayoutField, ...]) -> int:
    """Width of ``tdata`` for a layout: the fields' bits rounded up to whole bytes."""
    last = layout[-1]
    return -(-(last.offset + last.width) // 8) * 8


SIDE_R, SIDE_S = 0, 1
"""Values of ``tdest`` on the input and of ``tuser``'s side bit on the output."""


class TUser:
    """Bits of ``m_axis_results_tuser``."""

    RESULT = 0
    PUNCTUATION = 1
    SIDE = 2
    BITS = 3


@dataclass(frozen=True)
class RegisterField:
    """Bits of a register that mean something of their own."""

    name: str
    bit: int
    width: int
    doc: str


@dataclass(frozen=True)
class Register:
    """One 32-bit register of the AXI4-Lite slave.

    ``access`` is ``"ro"`` (read only), ``"rw"`` (read and write) or ``"wo"`` (a write acts, a
    read gives 0). ``effect`` says when a written value counts.
    """

    name: str
    offset: int
    access: str
    doc: str
    effect: str = ""
    fields: tuple[RegisterField, ...] = ()


NEXT_INPUT = "sampled when the first tuple of an input is accepted by the empty design"
NEXT_TUPLE = "counts for every tuple accepted after the write"


def registers(params: DesignParams) -> tuple[Register, ...]:
    """The register map of a design, in the order of its offsets."""
    found = [
        Register("identity", 0x00, "ro", f"Reads {MAGIC:#010x}, the letters SJON."),
        Register("version", 0x04, "ro", "Version of this interface."),
        Register("digest_low", 0x08, "ro", "Bits 31:0 of the design's digest."),
        Register("digest_high", 0x0C, "ro", "Bits 63:32 of the design's digest."),
        Register("cores", 0x10, "ro", "Join cores of the chain."),
        Register("segment_tuples", 0x14, "ro", "Tuples of each stream that one core holds."),
        Register("lanes", 0x18, "ro", "Stored tuples that one core compares in one cycle."),
        Register(
            "control",
            0x20,
            "rw",
            "Starts, drains and resets the design.",
            fields=(
                RegisterField("enable", 0, 1, "Accept tuples; 1 after reset."),
                RegisterField(
                    "drain", 1, 1, "Write 1 to end the input without tlast; reads 0 when done."
                ),
                RegisterField(
                    "soft_reset", 2, 1, "Write 1 to empty the design and clear the counters."
                ),
            ),
        ),
        Register(
            "status",
            0x24,
            "ro",
            "What the design is doing now.",
            fields=(
                RegisterField("idle", 0, 1, "Empty: no tuple held, no result owed."),
                RegisterField("draining", 1, 1, "Pushing empty slots until all pairs have met."),
                RegisterField("held", 2, 1, "Stalled because a result FIFO is nearly full."),
                RegisterField("starved", 3, 1, "Ready for a tuple and none is offered."),
                RegisterField(
                    "window_error",
                    4,
                    1,
                    "The window registers cannot be held together: no tuple is accepted until "
                    "they can. Settles within 128 cycles of a write to the empty design.",
                ),
            ),
        ),
        Register(
            "window_r",
            0x30,
            "rw",
            "Count window of R in tuples, 1 to the capacity; the capacity after reset.",
            NEXT_INPUT,
        ),
        Register(
            "window_s",
            0x34,
            "rw",
            "Count window of S in tuples, 1 to the capacity; the capacity after reset.",
            NEXT_INPUT,
        ),
        Register(
            "cycles_low",
            0x40,
            "ro",
            "Cycles from the first tuple to the end of the drain, over all inputs since reset.",
        ),
        Register(
            "cycles_high",
            0x44,
            "ro",
            "Bits 63:32 of the same, as they were at the last read of 31:0.",
        ),
        Register("tuples_r", 0x48, "ro", "R tuples accepted since reset."),
        Register("tuples_s", 0x4C, "ro", "S tuples accepted since reset."),
        Register("results", 0x50, "ro", "Result beats handed over since reset."),
        Register(
            "input_stall_cycles", 0x54, "ro", "Cycles in which a tuple was offered and not taken."
        ),
        Register(
            "results_backpressure_cycles",
            0x58,
            "ro",
            "Cycles in which a result was offered and not taken.",
        ),
        Register("hold_cycles", 0x5C, "ro", "Cycles in which a full result FIFO held the scan."),
    ]
    for index, term in enumerate(params.terms):
        if term.kind is TermKind.BAND:
            bits = "its float32 bits" if term.type is KeyType.FLOAT32 else "an integer"
            for place, bound in enumerate(("lo", "hi")):
                found.append(
                    Register(
                        f"band_{bound}{index}",
                        0x80 + 8 * index + 4 * place,
                        "rw",
                        f"Band width {bound} of term {index}, {bits}; 0 after reset.",
                        NEXT_TUPLE,
                    )
                )
    return tuple(found)


def manifest(
    params: DesignParams,
    *,
    source_revision: str = "",
    tools: dict[str, str] | None = None,
    resources: dict[str, Any] | None = None,
    clock: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Describe a built design in JSON values: what the driver needs and what made it.

    Parameters
    ----------
    params : DesignParams
        The design.
    source_revision : str
        Revision of the source that built it, empty where unknown.
    tools : dict of str to str
        Tool names and versions.
    resources, clock : dict
        After synthesis: what the design uses, the clock in Hz, each with its source.
    """

    def rows(items: tuple[Any, ...]) -> list[dict[str, Any]]:
        return [dataclasses.asdict(item) for item in items]

    return {
        "interface_version": INTERFACE_VERSION,
        "digest": params.digest,
        "params": params.to_dict(),
        "window_capacity": params.window_capacity,
        "tuple_bits": beat_bits(tuple_layout(params)),
        "tuple_layout": rows(tuple_layout(params)),
        "result_bits": beat_bits(result_layout(params)),
        "result_layout": rows(result_layout(params)),
        "registers": rows(registers(params)),
        "source_revision": source_revision,
        "tools": tools or {},
        "resources": resources,
        "clock": clock,
    }
