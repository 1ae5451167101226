"""What tests and ``streamjoin hw simulate`` share: a reference and random workloads.

The reference is Kang's three-step procedure on row tuples (Kang, Naughton and Viglas, ICDE 2003;
quoted in handshake join, section 2.2) in the plainest way, and shares no code with the design.
"""

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from streamjoin_common import contract
from streamjoin_common.contract import (
    SIDE_R,
    SIDE_S,
    Bucket,
    DesignParams,
    KeyType,
    TermKind,
    TupleView,
)

Bits = int
"""The 32 bits of a key, as an unsigned number."""


@dataclass(frozen=True)
class Arrival:
    """One tuple as it arrives: its side, the bits of its keys, its payload, its time if any."""

    side: int
    keys: tuple[Bits, ...]
    payload: int
    ts: int = 0


@dataclass
class Workload:
    """An input and the registers it runs with.

    Parameters
    ----------
    params : DesignParams
        The design.
    arrivals : list of Arrival
        Tuples in arrival order.
    window_r, window_s : int
        Count windows in tuples.
    bands : dict of str to int
        Band widths by register name, as 32 bits.
    time_r, time_s : int, optional
        Time windows; None is no limit.
    group : int
        Arrivals of a group where stars are grouped; results are in order between groups.
    """

    params: DesignParams
    arrivals: list[Arrival]
    window_r: int
    window_s: int
    bands: dict[str, Bits] = field(default_factory=dict)
    time_r: int | None = None
    time_s: int | None = None
    group: int = 1

    @property
    def buckets(self) -> list[list[Bucket]]:
        """What to load into an ordered index, for R and for S; empty for other designs."""
        term = self.params.indexed_term or 0
        r, s = ([a.keys[term] for a in self.arrivals if a.side == side] for side in (0, 1))
        return buckets(self.params, (self.window_r, self.window_s), (r, s))

    @property
    def registers(self) -> dict[str, Bits]:
        """What to write beside the count windows: band widths, groups and time windows."""
        written = dict(self.bands)
        if self.params.has_groups:
            written["group_arrivals"] = self.group
        if not self.params.timestamp_bits:
            return written
        # Written also where there is no limit: else the last input's would stay in force.
        unlimited = (1 << self.params.timestamp_bits) - 1
        times = {"time_r": self.time_r, "time_s": self.time_s}
        return {
            **written,
            **{name: unlimited if time is None else time for name, time in times.items()},
        }


def beat_values(params: DesignParams, arrival: Arrival) -> tuple[int, ...]:
    """Values of a tuple's beat, in the order of its layout."""
    times = (arrival.ts,) if params.timestamp_bits else ()
    return (*arrival.keys, arrival.payload, *times)


def as_number(bits: Bits, key_type: KeyType) -> "int | np.float32":
    """Read a key's bits as the number they mean."""
    if key_type is KeyType.FLOAT32:
        number: np.float32 = np.uint32(bits).view(np.float32)
        return number
    signed = key_type is KeyType.INT32 and bits >= 1 << 31
    return bits - (1 << 32) if signed else bits


def numbers_of(
    workload: "Workload", arrival: Arrival
) -> "list[tuple[int | np.float32, int | np.float32]]":
    """Return, for each term, the numbers of an R tuple or the bounds of an S tuple.

    A pair matches if every number of R lies within the bounds of S. Each float bound is one
    float32 operation; NaN lies within nothing and bounds nothing.
    """
    intervals = []
    for index, (term, bits) in enumerate(zip(workload.params.terms, arrival.keys, strict=True)):
        key = as_number(bits, term.type)
        if term.kind is TermKind.KEY:
            continue
        if arrival.side == SIDE_R or term.kind is TermKind.EQUI:
            intervals.append((key, key))
            continue
        width_type = KeyType.FLOAT32 if term.type is KeyType.FLOAT32 else KeyType.INT32
        lo = as_number(workload.bands.get(f"band_lo{index}", 0), width_type)
        hi = as_number(workload.bands.get(f"band_hi{index}", 0), width_type)
        with np.errstate(all="ignore"):
            intervals.append((key - lo, key + hi))
    return intervals


def reference(workload: Workload) -> list[tuple[int, int]]:
    """Join by the three-step procedure: scan the other window, insert, expire.

    Returns
    -------
    list of (int, int)
        Payloads of R and S of every pair, in the order in which the later tuples arrive.
    """
    windows: tuple[deque[Any], deque[Any]] = (
        deque(maxlen=workload.window_r),  # inserting into a full deque expires the oldest
        deque(maxlen=workload.window_s),
    )
    pairs = []
    for arrival in workload.arrivals:
        mine = numbers_of(workload, arrival)
        length = workload.time_s if arrival.side == SIDE_R else workload.time_r
        for theirs, other in windows[1 - arrival.side]:
            if length is not None and arrival.ts >= other.ts + length:
                continue
            r, s = (mine, theirs) if arrival.side == SIDE_R else (theirs, mine)
            r_arrival, s_arrival = (arrival, other) if arrival.side == SIDE_R else (other, arrival)
            if all(
                low <= key <= high for (key, _), (low, high) in zip(r, s, strict=True)
            ) and own_condition(workload.params, r_arrival, s_arrival):
                pairs.append((r_arrival.payload, s_arrival.payload))
        windows[arrival.side].append((mine, arrival))
    return pairs


def rows_of_kind(
    pairs: Sequence[tuple[int, int]], of_r: Iterable[int], of_s: Iterable[int], kind: str
) -> list[tuple[int | None, int | None]]:
    """Return the result of a kind of join, from the pairs of the inner join and all tuples.

    Parameters
    ----------
    pairs : sequence of (int, int)
        Pairs, each tuple by a name of its own in its stream.
    of_r, of_s : iterable of int
        Names of all tuples.
    kind : str
        One of ``contract.JOIN_KINDS``.

    Returns
    -------
    list of (int or None, int or None)
    """
    met_r, met_s = ({pair[side] for pair in pairs} for side in (0, 1))
    rows: list[tuple[int | None, int | None]] = []
    if kind not in ("semi", "anti"):
        rows += pairs
    if kind == "semi":
        rows += [(r, None) for r in met_r]
    if kind in ("left", "full", "anti"):
        rows += [(r, None) for r in of_r if r not in met_r]
    if kind in ("right", "full"):
        rows += [(None, s) for s in of_s if s not in met_s]
    return rows


def own_condition(params: DesignParams, r: Arrival, s: Arrival) -> bool:
    """Evaluate the user's own predicate, if there is one, on Python's numbers.

    Amaranth's operators mean the same on values as Python's do on numbers, and neither wraps.
    """
    if params.theta is None or params.theta.function is None:
        return True
    views = []
    for side, arrival in (("R", r), ("S", s)):
        fields: dict[str, int] = {}
        for index, (term, bits) in enumerate(zip(params.terms, arrival.keys, strict=True)):
            if term.kind is TermKind.KEY:
                signed = term.type is KeyType.INT32 and bits >= 1 << 31
                fields[f"key{index}"] = bits - (1 << 32) if signed else bits
        views.append(TupleView(side, {**fields, "payload": arrival.payload}))
    return bool(params.theta.function(*views))


def interesting_keys(key_type: KeyType) -> list[Bits]:
    """Bits of keys at which arithmetic goes wrong first."""
    if key_type is KeyType.FLOAT32:
        return [
            0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x3F800000,
            0xBF800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFFFFFFF,
            0x7F800001,
        ]  # fmt: skip
    return [0, 1, 0xFFFFFFFF, 0xFFFFFFFE, 0x7FFFFFFF, 0x7FFFFFFE, 0x80000000, 0x80000001]


def buckets(
    params: DesignParams, windows: tuple[int, int], keys: tuple[list[Bits], list[Bits]]
) -> list[list[Bucket]]:
    """Return the buckets that fit the keys of each side; none for other designs.

    Parameters
    ----------
    params : DesignParams
        The design.
    windows : (int, int)
        Count windows of R and S in tuples.
    keys : (list of int, list of int)
        Bits of the keys of the indexed term, in the order of arrival.
    """
    term = params.indexed_term
    if params.design != "splitjoin-index" or term is None:
        return []
    return [
        contract.buckets_of(params, contract.order_codes(mine, params.terms[term].type), window)
        for mine, window in zip(keys, windows, strict=True)
    ]


def random_key(rng: np.random.Generator, key_type: KeyType, domain: int, extremes: float) -> Bits:
    """Draw a key from ``0..domain - 1`` around zero, or with ``extremes`` chance a nasty one."""
    if rng.random() < extremes:
        choices = interesting_keys(key_type)
        return choices[int(rng.integers(len(choices)))]
    number = int(rng.integers(domain))
    if key_type is KeyType.FLOAT32:
        return int(np.float32(number / 2 - domain / 4).view(np.uint32))
    return (number - domain // 2) & 0xFFFFFFFF if key_type is KeyType.INT32 else number


def random_workload(
    params: DesignParams,
    rng: np.random.Generator,
    tuples: int,
    *,
    domain: int | None = None,
    extremes: float = 0.0,
    windows: tuple[int, int] | None = None,
    share_r: float = 0.5,
    widths: int = 2,
    group: int | None = None,
) -> Workload:
    """Draw an input.

    Parameters
    ----------
    params : DesignParams
        The design.
    rng : Generator
        Source of randomness.
    tuples : int
        Tuples of both sides together.
    domain : int, optional
        Distinct keys; chosen so that a tuple finds about one match if not given.
    extremes : float
        Share of keys at the limits of their types.
    windows : (int, int), optional
        Count windows; drawn among the legal ones if not given.
    share_r : float
        Share of R among the tuples.
    widths : int
        Band widths are drawn from 0 to this.
    group : int, optional
        Arrivals of a group; drawn where stars are grouped if not given.

    With timestamps the gaps between tuples are drawn from 0 to 3, half of them 0, and the time
    windows so that about half of the count windows' tuples are within them.
    """
    if windows is None:
        windows = random_windows(params, rng)
    if domain is None:
        domain = usual_domain(params, windows)
    arrivals = []
    counts = [0, 0]
    ts, max_ts = 0, (1 << params.timestamp_bits) - 2
    for _ in range(tuples):
        side = SIDE_R if rng.random() < share_r else SIDE_S
        keys = tuple(random_key(rng, term.type, domain, extremes) for term in params.terms)
        if params.timestamp_bits:
            ts = min(ts + int(rng.choice([0, 0, 0, 1, 2, 3])), max_ts)
        payload = counts[side] & ((1 << params.payload_bits) - 1)
        arrivals.append(Arrival(side, keys, payload, ts))
        counts[side] += 1
    bands, (time_r, time_s) = random_bands(params, rng, widths), random_times(params, rng, windows)
    group = random_group(params, rng) if group is None else group
    window_r, window_s = windows
    return Workload(params, arrivals, window_r, window_s, bands, time_r, time_s, group)


def random_times(
    params: DesignParams, rng: np.random.Generator, windows: tuple[int, int]
) -> tuple[int, int] | tuple[None, None]:
    """Draw time windows that about half of the count windows' tuples are within."""
    if not params.timestamp_bits:
        return None, None
    time_r, time_s = (int(rng.integers(1, 2 * window + 2)) for window in windows)
    return time_r, time_s


GROUPS = (1, 2, 3, 7, 64, 0)
"""Arrivals of a group that is drawn: none, few, not a power of two, many, all."""


def random_group(params: DesignParams, rng: np.random.Generator) -> int:
    """Draw how many arrivals a group has, 1 where there are none."""
    return int(rng.choice(GROUPS)) if params.has_groups else 1


def usual_domain(params: DesignParams, windows: tuple[int, int]) -> int:
    """Distinct keys of a term with which a tuple finds about one match."""
    return max(2, int(max(windows) ** (1 / len(params.terms))) + 1)


def random_bands(params: DesignParams, rng: np.random.Generator, widths: int) -> dict[str, Bits]:
    """Draw band widths from 0 to ``widths``, in halves for floats, by register name."""
    bands = {}
    for index, term in enumerate(params.terms):
        if term.kind is TermKind.BAND:
            for bound in ("lo", "hi"):
                width = int(rng.integers(widths + 1))
                bits = width & 0xFFFFFFFF
                if term.type is KeyType.FLOAT32:
                    bits = int(np.float32(width / 2).view(np.uint32))
                bands[f"band_{bound}{index}"] = bits
    return bands


def random_windows(params: DesignParams, rng: np.random.Generator) -> tuple[int, int]:
    """Draw two windows that the design can hold together."""
    while True:
        window_r, window_s = (int(w) for w in rng.integers(1, params.window_capacity + 1, 2))
        try:
            contract.active_cores(params, window_r, window_s)
        except contract.ParameterError:
            continue
        return window_r, window_s


def step_cycles(params: DesignParams, opposite: int, active: int) -> int:
    """Cycles of one step, or pass, that is compared with a window of ``opposite`` tuples.

    With an index: of one tuple, as long as it owes no more than a match.
    """
    if params.has_index:
        return 1
    longest = -(-opposite // active)
    minimum = 2 if params.design == "handshake" else 1
    return max(minimum, -(-longest // params.lanes))


def difference(expected: Sequence[tuple[int, int]], received: Sequence[tuple[int, int]]) -> str:
    """Say in one sentence how two multisets of pairs differ; empty if they do not."""
    missing, surplus = Counter(expected) - Counter(received), Counter(received) - Counter(expected)
    if not missing and not surplus:
        return ""
    first = [f"missing {min(missing)}"] if missing else []
    first += [f"surplus {min(surplus)}"] if surplus else []
    return f"{missing.total()} pairs missing, {surplus.total()} surplus: first {', '.join(first)}"
