"""A self-test: short known inputs through a device, before the data of a user.

A bitstream that misses its timing, a clock that is too fast or a transfer that loses parts shows
here, not as a wrong result. The right pairs are computed here in the plainest way, from the
definition: neither the engines nor the oracle take part.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamjoin.device.base import Beats, Device, Results
from streamjoin.device.packing import pack, unpack
from streamjoin.errors import DeadlineError, DeviceError
from streamjoin_common.contract import (
    SIDE_R,
    DesignParams,
    KeyType,
    ParameterError,
    TermKind,
    active_cores,
    result_layout,
    tuple_layout,
)

TUPLES = 600
"""Tuples of each of the two inputs: a millisecond of a board's time."""

WINDOW_TUPLES = 128
"""Maximum window of the first input; tuples leave it."""

DISTINCT_KEYS = 12
"""About one in so many pairs of a window joins."""

LO, HI = 1, 2
"""Widths of every band."""

ADVICE = (
    "this build does not do what it was built for, on this board, at this clock: see First "
    "contact in docs/boards.md"
)

Uint64s = NDArray[np.uint64]


@dataclass(frozen=True)
class KnownInput:
    """An input and the pairs that it owes.

    Attributes
    ----------
    windows : (int, int)
        Count windows of R and of S in tuples.
    beats : Beats
        The tuples; the payload is the tuple's number, as far as it has bits.
    pairs : ndarray of uint64, optional
        Payloads of each pair owed, R's in the high half, sorted; None with a user's predicate.
    """

    windows: tuple[int, int]
    beats: Beats
    pairs: Uint64s | None


def known_inputs(params: DesignParams) -> list[KnownInput]:
    """Return inputs for a design, the second with smaller and uneven windows."""
    wide = min(params.window_capacity, WINDOW_TUPLES)
    narrow = (max(1, wide // 2), max(1, wide // 3))
    try:
        active_cores(params, *narrow)
    except ParameterError:  # a chain in lock step holds windows of about one length
        narrow = (max(1, wide // 2),) * 2
    return [_known(params, windows, seed) for seed, windows in enumerate(((wide, wide), narrow))]


def _known(params: DesignParams, windows: tuple[int, int], seed: int) -> KnownInput:
    rng = np.random.default_rng(seed)
    numbers = np.arange(TUPLES, dtype=np.int64)
    per_term = max(2, round(DISTINCT_KEYS ** (1 / len(params.terms))))
    columns, values = {}, []
    for index, term in enumerate(params.terms):
        drawn = rng.integers(0, per_term, TUPLES, dtype=np.int64)
        if term.type is KeyType.FLOAT32:
            keys = (drawn - per_term // 2).astype(np.float32)
            columns[f"key{index}"] = keys.view(np.uint32)
            values.append(keys.astype(np.int64))
        else:
            # A few values each at a few points of the whole range.
            spread = drawn // 3 * (1 << 32) // per_term + drawn % 3
            first = -(1 << 31) if term.type is KeyType.INT32 else 0
            values.append(spread + first + 5)
            columns[f"key{index}"] = (values[-1] % (1 << 32)).astype(np.uint32)
    payload = (numbers % (1 << params.payload_bits)).astype(np.uint32)
    columns["payload"] = payload
    if params.timestamp_bits:
        latest = (1 << params.timestamp_bits) - 2
        columns["ts"] = np.minimum(numbers, latest).astype(np.uint32)
    dest = rng.integers(0, 2, TUPLES).astype(np.uint8)
    beats = Beats(pack(tuple_layout(params), columns, TUPLES), dest)
    if params.theta is not None:
        return KnownInput(windows, beats, None)
    met = [(payload[r], payload[s]) for r, s in _owed(params, values, dest, windows)]
    pairs = np.array(met, dtype=np.uint64).reshape(-1, 2)
    return KnownInput(windows, beats, np.sort(pairs[:, 0] << np.uint64(32) | pairs[:, 1]))


def _owed(
    params: DesignParams,
    values: list[NDArray[np.int64]],
    dest: NDArray[np.uint8],
    windows: tuple[int, int],
) -> list[tuple[int, int]]:
    """Return the pairs: each tuple with those of the other side's window that meet every term."""
    pairs, past = [], (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    for number, side in enumerate(dest):
        others = past[1 - side][-windows[1 - side] :]
        meets = np.ones(len(others), dtype=bool)
        for term, keys in zip(params.terms, values, strict=True):
            of_r, of_s = keys[number], keys[others]
            if side != SIDE_R:
                of_r, of_s = of_s, of_r
            if term.kind is TermKind.EQUI:
                meets &= of_r == of_s
            elif term.kind is TermKind.BAND:
                meets &= (of_s - LO <= of_r) & (of_r <= of_s + HI)
        for other in others[meets]:
            pairs.append((number, int(other)) if side == SIDE_R else (int(other), number))
        own = np.append(past[side], number)
        past = (own, past[1]) if side == SIDE_R else (past[0], own)
    return pairs


def self_test(device: Device) -> int:
    """Join the known inputs on a device, which then is as before: registers, no counts.

    Returns
    -------
    int
        Pairs that were compared; 0 with a user's predicate, of which nothing is known.

    Raises
    ------
    DeviceError
        If a result is missing, wrong or more than there are.
    DeadlineError
        If the device makes no progress.
    """
    settings = _settings(device.params)
    before = {name: device.read(name) for name in (*settings, "window_r", "window_s")}
    for name, value in settings.items():
        device.write(name, value)
    compared = 0
    for known in known_inputs(device.params):
        for name, window in zip(("window_r", "window_s"), known.windows, strict=True):
            device.write(name, window)
        compared += _run(device, known)
    for name, value in before.items():
        device.write(name, value)
    device.restart()  # counters are those of the user's data
    return compared


def _settings(params: DesignParams) -> dict[str, int]:
    """Return the registers that a self-test sets beside the windows."""
    settings = {"kind": 0} if params.decides_kinds else {}
    if params.timestamp_bits:
        settings.update(dict.fromkeys(("time_r", "time_s"), (1 << params.timestamp_bits) - 1))
    for index, term in enumerate(params.terms):
        if term.kind is TermKind.BAND:
            for bound, width in (("lo", LO), ("hi", HI)):
                bits = int(np.float32(width).view(np.uint32))
                is_float = term.type is KeyType.FLOAT32
                settings[f"band_{bound}{index}"] = bits if is_float else width
    return settings


def _run(device: Device, known: KnownInput) -> int:
    """Run one input and compare its results with what it owes."""
    params, received = device.params, [np.empty(0, dtype=np.uint64)]

    def take(results: Results) -> None:
        fields = unpack(result_layout(params), results.data)
        of_r = fields["r_payload"].astype(np.uint64)
        received.append(of_r << np.uint64(32) | fields["s_payload"])

    try:
        device.stream(known.beats, take, lambda _: None)
    except (DeviceError, DeadlineError) as error:
        raise type(error)(f"the board's self-test did not end: {error}; {ADVICE}") from error
    if known.pairs is None:
        return 0
    found = np.sort(np.concatenate(received))
    if np.array_equal(found, known.pairs):
        return len(found)
    owed, given = (_counted(each) for each in (known.pairs, found))
    missing = sum(max(0, count - given.get(pair, 0)) for pair, count in owed.items())
    surplus = sum(max(0, count - owed.get(pair, 0)) for pair, count in given.items())
    raise DeviceError(
        f"the board's self-test failed: of {len(known.pairs)} known pairs of {TUPLES} tuples "
        f"{missing} are missing, and {surplus} results are wrong; {ADVICE}"
    )


def _counted(pairs: Uint64s) -> dict[int, int]:
    values, counts = np.unique(pairs, return_counts=True)
    return dict(zip(values.tolist(), counts.tolist(), strict=True))
