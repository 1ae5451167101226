"""The register map: the one definition for hardware, driver, manifest and documentation."""

from dataclasses import dataclass

from streamjoin_common.contract.limits import JOIN_KINDS
from streamjoin_common.contract.params import DesignParams
from streamjoin_common.contract.terms import KeyType, TermKind

MAGIC = 0x534A4F4E
"""What the ``identity`` register reads: "SJON"."""


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
    read gives 0). ``effect`` says when a written value counts. ``type`` says how its 32 bits are
    read: ``"uint32"``, ``"int32"`` (two's complement) or ``"float32"``.
    """

    name: str
    offset: int
    access: str
    doc: str
    effect: str = ""
    fields: tuple[RegisterField, ...] = ()
    type: str = "uint32"


NEXT_INPUT = (
    "counts for every input whose first tuple is accepted from the cycle of the write's response on"
)
NEXT_S_TUPLE = (
    "counts for every S tuple accepted from the cycle of the write's response on: a pair joins by "
    "the widths of its S tuple's acceptance, whichever tuple came first"
)


def _time_registers(params: DesignParams) -> list[Register]:
    maximum = (1 << params.timestamp_bits) - 1
    windows = [
        Register(
            f"time_{side.lower()}",
            0x38 + 4 * index,
            "rw",
            f"Time window of {side}: a pair of which this side's tuple arrived first joins if "
            f"the other arrived less than this later; from 1 to {maximum - 1}; {maximum}, as after "
            f"reset, is no limit. A tuple's own time is at most {maximum - 1}.",
            f"counts for every {side} tuple accepted from the cycle of the write's response on",
        )
        for index, side in enumerate("RS")
    ]
    evicted = Register(
        "evicted",
        0x60,
        "ro",
        "Tuples pushed out of a full count window before their time, since reset: pairs may be "
        "missing.",
    )
    return [*windows, evicted]


def _punctuated(params: DesignParams) -> str:
    """Return what a star ends the results of."""
    if not params.has_groups:
        return "tuple"
    return "group of group_arrivals; the side is 1 if an S tuple is in it"


def _setting_registers(params: DesignParams) -> list[Register]:
    """Settings of ``splitjoin``: order, its interval, which cores to exclude."""
    entries = []
    if params.order != "none":
        entries.append(
            Register(
                "order",
                0x64,
                "rw",
                "The order of results.",
                NEXT_INPUT,
                (
                    RegisterField(
                        "level",
                        0,
                        2,
                        "0 none; 1 outer: by arrival of the later tuple; 2 inner: then by arrival "
                        f"of the earlier one. At most {params.order}, which it is after reset.",
                    ),
                    RegisterField(
                        "punctuate",
                        4,
                        1,
                        "Give a beat with tuser's punctuation bit and its side after the results "
                        f"of every {_punctuated(params)}.",
                    ),
                ),
            )
        )
    if params.order == "inner":
        entries.append(
            Register(
                "interval",
                0x68,
                "rw",
                f"Under the inner order, results whose earlier tuples lie in the same group of so "
                f"many times {params.cores} tuples are not ordered among each other; the largest "
                "power of two that divides it counts. 0 is one group; 1, as after reset, is exact.",
                NEXT_INPUT,
            )
        )
    if params.has_groups:
        entries.append(
            Register(
                "group_arrivals",
                0x6C,
                "rw",
                "Under the outer order, results whose later tuples are in the same group of so "
                "many arrivals are not ordered among each other. Arrivals of both sides are "
                "counted together, from the first one of an input; its last group may have fewer. "
                "0 is one group; 1, as after reset, is exact. Under the inner order it is taken "
                "as 1.",
                NEXT_INPUT,
            )
        )
    for word in range(-(-params.cores // 32)):
        last = min(params.cores, 32 * word + 32) - 1
        entries.append(
            Register(
                f"masked{word}",
                0x100 + 4 * word,
                "rw",
                f"A bit for each of cores {32 * word} to {last}: it finds nothing, as if it had "
                "failed; the others are not affected. 0 after reset.",
                NEXT_INPUT,
            )
        )
    return entries


def _kind_register() -> Register:
    """Return the choice of the kind of join."""
    numbered = ", ".join(f"{number} {kind}" for number, kind in enumerate(JOIN_KINDS))
    return Register(
        "kind",
        0x28,
        "rw",
        "The kind of join.",
        NEXT_INPUT,
        (
            RegisterField(
                "kind",
                0,
                3,
                f"{numbered}; 0 after reset, and others are as 0. semi gives the first pair of "
                "each R tuple that leaves the cores. A result without a partner has r_missing or "
                "s_missing; it may stand anywhere before the punctuation with tlast, whatever the "
                "order, and comes out some time after its count window has passed, or at the end.",
            ),
        ),
    )


def _index_registers() -> list[Register]:
    """Splitters and counters of ``splitjoin-index``."""
    settings = (
        Register(
            "splitter_index",
            0x64,
            "rw",
            "Which splitter the next write of splitter sets; each such write counts it up by one.",
            "at once",
            (
                RegisterField(
                    "number",
                    0,
                    16,
                    "Up to the number of buckets less one: the bucket that begins above it; bucket "
                    "0 has words, but no splitter below it.",
                ),
                RegisterField("side", 16, 1, "0 for the index of R, 1 for that of S."),
            ),
        ),
        Register(
            "splitter",
            0x68,
            "rw",
            "The highest ordered code of the bucket below, at least that of the splitter before. "
            "After power-up the buckets divide all codes evenly; a reset keeps what was written.",
            "at once while the status is idle; ignored otherwise",
        ),
        Register(
            "bucket_words",
            0x7C,
            "rw",
            "Which words the bucket has that the next write of splitter sets: code c belongs to "
            "word first + (c >> shift), a lower code never to a later word. 0, as after reset: one "
            "word, that of its number.",
            "with the next write of splitter",
            (
                RegisterField("first", 0, 24, "Words are counted on past the last of the index."),
                RegisterField("shift", 24, 6, "log2 of the codes of a word; 32 for one word."),
                RegisterField("several", 31, 1, "1 for the words that first and shift say."),
            ),
        ),
    )
    counters = (
        ("index_reads", "Cycles in which buckets were read and their tuples compared."),
        ("displaced", "Tuples stored outside their bucket, which was full."),
        ("held_r", "R tuples in the index now."),
        ("held_s", "S tuples in the index now."),
    )
    return [
        *settings,
        *(
            Register(name, 0x6C + 4 * index, "ro", doc)
            for index, (name, doc) in enumerate(counters)
        ),
    ]


def registers(params: DesignParams) -> tuple[Register, ...]:
    """The register map of a design; its offsets are unique."""
    entries = [
        Register("identity", 0x00, "ro", f"Reads {MAGIC:#010x}, the letters SJON."),
        Register("version", 0x04, "ro", "Version of this interface."),
        Register("digest_low", 0x08, "ro", "Bits 31:0 of the design's digest."),
        Register("digest_high", 0x0C, "ro", "Bits 63:32 of the design's digest."),
        Register("cores", 0x10, "ro", "Join cores."),
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
                    "drain",
                    1,
                    1,
                    "Write 1 to end the input without tlast; reads 0 once its punctuation is on "
                    "its way, which may not be taken yet; ignored while an input that ended with "
                    "tlast still drains.",
                ),
                RegisterField(
                    "soft_reset",
                    2,
                    1,
                    "Write 1 to empty the design and clear the counters; drops a drain written "
                    "with it and clears enable unless written with it. A beat that is offered at "
                    "the output stays until it is taken, and no tuple is accepted meanwhile; then "
                    "tvalid falls, and the results that were owed are never offered; reads 1 until "
                    "the design is empty. aresetn alone withdraws an offered beat.",
                ),
            ),
        ),
        Register(
            "status",
            0x24,
            "ro",
            "What the design is doing, up to three cycles late.",
            fields=(
                RegisterField(
                    "idle", 0, 1, "Empty: no tuple held, no result owed; some cycles late."
                ),
                RegisterField("draining", 1, 1, "Pushing empty slots until all pairs have met."),
                RegisterField("held", 2, 1, "Stalled because a result FIFO is nearly full."),
                RegisterField("starved", 3, 1, "Ready for a tuple and none is offered."),
                RegisterField(
                    "window_error",
                    4,
                    1,
                    "A window is not from 1 to the capacity or, in the chain of cores, the larger "
                    "one is above segment_tuples times the smaller of the other one and the number "
                    "of cores: no tuple is accepted until the two fit, which the write of one may "
                    "bring about; to change both for an input that is offered already, clear "
                    "enable meanwhile. Settles within 256 cycles of a write to the empty design.",
                ),
                RegisterField(
                    "output_stalled",
                    5,
                    1,
                    "A result or the punctuation is offered and not taken. With held, the output "
                    "is what limits; starved without it, the input is.",
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
            "Cycles from the acceptance of an input's first tuple until its punctuation is taken, "
            "over all inputs since reset: up to three more for each input. An input without tuples "
            "counts from its drain on; cycles of two inputs at once count once.",
        ),
        Register(
            "cycles_high",
            0x44,
            "ro",
            "Bits 63:32 of the same, as they were at the last read of 31:0.",
        ),
        Register(
            "tuples_r",
            0x48,
            "ro",
            "R tuples accepted since reset. Counters follow what they count within five cycles.",
        ),
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
        Register(
            "hold_cycles",
            0x5C,
            "ro",
            "Cycles in which a nearly full result FIFO would hold the scan.",
        ),
    ]
    if params.decides_kinds:
        entries.append(_kind_register())
    if params.timestamp_bits:
        entries += _time_registers(params)
    if params.design == "splitjoin":
        entries += _setting_registers(params)
    if params.design == "splitjoin-index":
        entries += _index_registers()
    # What a tuple of R looks for is computed with the widths, too: they hold for a whole input.
    at_begin = params.design == "splitjoin-index" or params.has_point_windows
    effect = NEXT_INPUT if at_begin else NEXT_S_TUPLE
    for index, term in enumerate(params.terms):
        if term.kind is TermKind.BAND:
            is_float = term.type is KeyType.FLOAT32
            bits = "its float32 bits" if is_float else "a signed 32-bit integer"
            for bound_index, bound in enumerate(("lo", "hi")):
                entries.append(
                    Register(
                        f"band_{bound}{index}",
                        0x80 + 8 * index + 4 * bound_index,
                        "rw",
                        f"Band width {bound} of term {index}, {bits}; 0 after reset.",
                        effect,
                        type="float32" if is_float else "int32",
                    )
                )
    return tuple(sorted(entries, key=lambda each: each.offset))
