"""Answers the question: where is a design better than a CPU core, and where is it not?"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from streamjoin.bench.cpu_fpga.inputs import QUERIES

Record = dict[str, Any]

NOISE = 0.1
"""Share by which a p99 may fall as the load rises before its record counts as disturbed."""


RATE_NOISE = 0.12
"""Share by which a rate may rise with the window: what a search at the quick size leaves open."""


def best(
    records: Sequence[Record], *, of_fpga: bool, figure: Callable[[Record], float | None]
) -> Record | None:
    """Return the record with the highest figure on one side; None if there is none."""
    mine = [each for each in records if each["is_fpga"] == of_fpga and figure(each)]
    return max(mine, key=lambda each: figure(each) or 0.0, default=None)


def with_transfer(record: Record) -> float:
    """Return the rate of a record, through a board's port where it is a design's."""
    transfer = record.get("transfer")
    return float(transfer["rate_tuples_per_s"] if transfer else record["rate_tuples_per_s"])


def latency_us(record: Record, load: str = "50%", name: str = "p99") -> float | None:
    """Return a quantile of the latency at a load, in microseconds, without a transfer."""
    value = record["latency_us"][load][name]
    return None if value is None else float(value)


def latency_with_transfer_us(record: Record, load: str = "50%", name: str = "p99") -> float | None:
    """Return a quantile of the latency at a load, to a board and back where it is a design's."""
    value, transfer = latency_us(record, load, name), record.get("transfer")
    return value if value is None or not transfer else value + float(transfer["added_us"])


def is_disturbed(record: Record, others: Sequence[Record] = ()) -> bool:
    """Whether others on the machine took part in what was measured.

    They did where the p99 falls as the load rises by more than :data:`NOISE`, as no queue's does,
    or where a core's rate is exceeded in a larger window by more than :data:`RATE_NOISE`: a join's
    cost does not fall with its window.

    Parameters
    ----------
    record : dict
        The record.
    others : sequence of dict
        Those that it is held beside; of other queries and contestants, too.
    """
    if any(_exceeds(other, record) for other in others):
        return True
    known = [us for load in record["latency_us"] if (us := latency_us(record, load)) is not None]
    pairs = itertools.pairwise(known)
    return any(later < (1 - NOISE) * before for before, later in pairs)


def _exceeds(other: Record, record: Record) -> bool:
    """Whether a core's rate is higher in a larger window."""
    rates = other["rate_tuples_per_s"], record["rate_tuples_per_s"]
    return (
        not record["is_fpga"]
        and (other["query"], other["who"]) == (record["query"], record["who"])
        and other["window"] > record["window"]
        and rates[0] > (1 + RATE_NOISE) * rates[1]
    )


@dataclass(frozen=True)
class Lowest:
    """The lowest p99 of all CPU engines and loads at a window.

    Attributes
    ----------
    p99_us : float
        In microseconds, from the arrival of the later tuple.
    rate_tuples_per_s : float
        Rate of the arrivals at which it was measured.
    who : str
        Whose it is.
    """

    p99_us: float
    rate_tuples_per_s: float
    who: str


def lowest(records: Sequence[Record]) -> Lowest | None:
    """Return the lowest p99 that any CPU engine reached at any load; None if none is known."""
    found = [
        Lowest(us, float(load.rstrip("%")) / 100 * record["rate_tuples_per_s"], record["who"])
        for record in records
        if not record["is_fpga"]
        for load in record["latency_us"]
        if (us := latency_us(record, load)) is not None
    ]
    return min(found, key=lambda each: each.p99_us, default=None)


@dataclass(frozen=True)
class Boards:
    """Boards whose fastest designs have the same rates and latencies at the windows they hold.

    Attributes
    ----------
    names : tuple of str
        As tables and charts call them.
    fastest : dict of int to list of dict
        By window, the record of the fastest design of each board that holds it.
    """

    def alone(self, window: int) -> str:
        """Name the boards that hold a window where not all of them do; empty where all do."""
        here = self.fastest[window]
        return "" if len(here) == len(self.names) else " or ".join(map(board_of, here))

    names: tuple[str, ...]
    fastest: dict[int, list[Record]]

    @property
    def clock(self) -> str:
        """How the figures came about, with the clock."""
        mhz = next(iter(self.fastest.values()))[0].get("clock_mhz")
        return "simulated" + (f", {mhz:.0f} MHz assumed" if mhz else "")

    @property
    def label(self) -> str:
        """Names with how the figures came about."""
        return f"{', '.join(self.names)}: {self.clock}"


def by_board(records: Sequence[Record]) -> list[Boards]:
    """Return the boards of the designs of a query, those of the same figures as one.

    A board that holds windows for which another has no design may still be one with it.
    """
    found: dict[str, dict[int, Record]] = {}
    for record in records:
        if not record["is_fpga"]:
            continue
        mine = found.setdefault(board_of(record), {})
        held = mine.get(record["window"])
        if held is None or with_transfer(record) > with_transfer(held):
            mine[record["window"]] = record
    groups: list[list[str]] = []
    for name, mine in found.items():
        same = (each for each in groups if all(_agree(found[other], mine) for other in each))
        if (group := next(same, None)) is None:
            groups.append(group := [])
        group.append(name)
    return [
        Boards(
            tuple(names),
            {
                at: [found[name][at] for name in names if at in found[name]]
                for at in sorted({at for name in names for at in found[name]})
            },
        )
        for names in groups
    ]


def _agree(one: dict[int, Record], other: dict[int, Record]) -> bool:
    """Whether two boards hold a window alike and have the same figures at all that both hold."""
    common = one.keys() & other.keys()
    return bool(common) and all(
        figure(one[at]) == figure(other[at])
        for at in common
        for figure in (with_transfer, latency_with_transfer_us)
    )


def board_of(record: Record) -> str:
    """Return the board of a design's record."""
    return str(record["who"]).partition(",")[0]


def verdicts(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Compare a core with every board, for every query and window.

    Returns
    -------
    list of dict
        ``query``; ``window``; ``cpu``, the record of the fastest engine; ``lowest``, the
        :class:`Lowest` p99; ``boards``, for each of :func:`by_board` that holds the window
        ``boards``, ``fastest`` (the record of each), ``rate_ratio`` (its rate, through its port,
        by the CPU's) and ``latency_ratio`` (the lowest p99 of a CPU engine by its p99 at half its
        rate, with the transfer).
    """
    found = []
    for query in (each.name for each in QUERIES):
        mine = [each for each in records if each["query"] == query]
        groups = by_board(mine)
        for window in sorted({each["window"] for each in mine}):
            here = [each for each in mine if each["window"] == window]
            cpu = best(here, of_fpga=False, figure=with_transfer)
            if cpu is None:
                continue
            low = lowest(here)
            boards = [
                _compared(cpu, low, boards, window) for boards in groups if window in boards.fastest
            ]
            at = {"query": query, "window": window, "cpu": cpu, "lowest": low, "boards": boards}
            found.append(at)
    return found


def _compared(cpu: Record, low: Lowest | None, boards: Boards, window: int) -> dict[str, Any]:
    fastest = boards.fastest[window]
    whole = latency_with_transfer_us(fastest[0])
    return {
        "boards": boards,
        "fastest": fastest,
        "rate_ratio": with_transfer(fastest[0]) / with_transfer(cpu),
        "latency_ratio": low.p99_us / whole if low and whole else None,
    }


def answers(records: Sequence[Record]) -> list[str]:
    """Say in one paragraph for each query from which window, rate and latency bound on who wins.

    A rate wins above what the fastest CPU engine sustains, a bound on the p99 below the lowest of
    all CPU engines at all loads. Boards of other figures are told apart.
    """
    judged = verdicts(records)
    queries = dict.fromkeys(each["query"] for each in judged)
    return [_said(query, [each for each in judged if each["query"] == query]) for query in queries]


def _said(query: str, mine: Sequence[dict[str, Any]]) -> str:
    groups: dict[str, list[dict[str, Any]]] = {}
    for at in mine:
        for each in at["boards"]:
            groups.setdefault(each["boards"].label, []).append({**at, **each})
    said = []
    if groups:
        held = [at for at in mine if at["boards"]]
        cores = _range([with_transfer(at["cpu"]) / 1e6 for at in held])
        rates = "; ".join(_rates(group, len(held)) for group in groups.values())
        said = [
            f"at windows of {_windows(held)} tuples a core sustains {cores} M tuples/s; "
            f"through its port {rates}.",
            _bound([at for at in held if at["lowest"]], list(groups.values())),
            _energy(held),
        ]
    if beyond := [at for at in mine if not at["boards"]]:
        rates = _range([with_transfer(at["cpu"]) / 1e6 for at in beyond])
        said.append(
            f"No design known to fit a board holds windows of {_windows(beyond)}: there "
            f"the core wins, with {rates} M tuples/s."
        )
    text = " ".join(said)
    return f"{query[0].upper()}{query[1:]}: {text[0].lower()}{text[1:]}"


def _rates(group: Sequence[dict[str, Any]], windows: int) -> str:
    """Say by how much boards are faster than a core, or slower."""
    boards = group[0]["boards"]
    won = [at["rate_ratio"] for at in group if at["rate_ratio"] > 1]
    lost = [at for at in group if at["rate_ratio"] <= 1]
    said = [f"{_range(won)} times as much"] if won else []
    if lost:
        said.append(f"only {_range([at['rate_ratio'] for at in lost])} times at {_windows(lost)}")
    limits = [
        f", {_windows([at])} on a {alone} alone"
        for at in group
        if (alone := boards.alone(at["window"]))
    ]
    at = f" at {_windows(group)}" if len(group) < windows else ""
    return f"{_named(boards)} ({boards.clock}) {' and '.join(said)}{at}{''.join(limits)}"


def _bound(held: Sequence[dict[str, Any]], groups: Sequence[Sequence[dict[str, Any]]]) -> str:
    """Say for which bounds on the p99 latency only a design will do."""
    known = [[at for at in group if at["latency_ratio"]] for group in groups]
    known = [group for group in known if group]
    if not known:
        return "No latency is known."
    bounds = _range([at["lowest"].p99_us / 1e3 for at in held])
    at_rates = _range([at["lowest"].rate_tuples_per_s / 1e3 for at in held])
    designs = "; ".join(
        f"{_range([latency_with_transfer_us(at['fastest'][0]) for at in group])} and "
        f"{_range([latency_us(at['fastest'][0]) for at in group])} us on "
        f"{_named(group[0]['boards'])}"
        for group in known
    )
    windows = {at["window"] for group in known for at in group if at["latency_ratio"] <= 1}
    lost = [at for at in held if at["window"] in windows]
    but = f" (not at windows of {_windows(lost)})" if lost else ""
    return (
        f"A bound on p99 below {bounds} ms, by window the lowest that any CPU engine reached, at "
        f"{at_rates} k tuples/s, only a design meets{but}: at half its rate, with and without the "
        f"transfer, {designs}."
    )


def _energy(held: Sequence[dict[str, Any]]) -> str:
    """Say how many joules a million tuples take on a core and on each board."""
    joules: dict[str, list[float | None]] = {"core": []}
    for at in held:
        joules["core"].append(at["cpu"].get("joules_per_million"))
        for each in at["boards"]:
            for record in each["fastest"]:
                joules.setdefault(board_of(record), []).append(record.get("joules_per_million"))
    core, *boards = (f"a {name} {_range(values)}" for name, values in joules.items())
    return f"A million tuples take {', '.join([f'{core} J', *boards])}."


def _named(boards: Boards) -> str:
    return f"a {' or '.join(boards.names)}"


def _windows(judged: Sequence[dict[str, Any]]) -> str:
    """Name windows: the first and the last where there are more than two."""
    windows = [each["window"] for each in judged]
    if len(windows) > 2:
        return f"{windows[0]:,} to {windows[-1]:,}"
    return " and ".join(f"{window:,}" for window in windows)


def _range(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "unknown"
    low, high = f"{min(known):.2g}", f"{max(known):.2g}"
    low, high = (f"{float(text):,g}" for text in (low, high))
    return low if low == high else f"{low} to {high}"
