"""Answers the question: where is a design better than a CPU core, and where is it not?"""

from collections.abc import Callable, Sequence
from typing import Any

from streamjoin.bench.cpu_fpga.inputs import QUERIES

Record = dict[str, Any]


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


def verdicts(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Compare the best of both sides, for every query and window.

    Returns
    -------
    list of dict
        ``query``, ``window``, ``cpu`` and ``fpga`` (the records of the fastest, through a port;
        ``fpga`` is None where no design holds the window), ``designs`` (all of them),
        ``rate_ratio`` (FPGA's rate, through its port, by the CPU's), ``latency_ratio`` (CPU's
        p99 at half its rate by the FPGA's, with the transfer), ``latency_ratio_inside`` (without).
    """
    found = []
    for query in (each.name for each in QUERIES):
        for window in sorted({each["window"] for each in records if each["query"] == query}):
            here = [each for each in records if (each["query"], each["window"]) == (query, window)]
            cpu = best(here, of_fpga=False, figure=with_transfer)
            fpga = best(here, of_fpga=True, figure=with_transfer)
            if cpu is None:
                continue
            at: dict[str, Any] = {"query": query, "window": window, "cpu": cpu, "fpga": fpga}
            at["designs"] = [each for each in here if each["is_fpga"]]
            found.append({**at, **_compare(cpu, fpga)})
    return found


def _compare(cpu: Record, fpga: Record | None) -> dict[str, Any]:
    if fpga is None:
        return dict.fromkeys(("rate_ratio", "latency_ratio", "latency_ratio_inside"))
    slow = latency_us(cpu)
    inside, whole = latency_us(fpga), latency_with_transfer_us(fpga)
    return {
        "rate_ratio": with_transfer(fpga) / with_transfer(cpu),
        "latency_ratio": slow / whole if slow and whole else None,
        "latency_ratio_inside": slow / inside if slow and inside else None,
    }


def answer(records: Sequence[Record]) -> str:
    """Say in one paragraph from which window, rate, predicate and latency bound on which side wins.

    A rate wins above what the CPU core sustains, a latency bound below the core's own p99. Beside
    the best design at each window stands what the core reaches there.
    """
    judged = verdicts(records)
    said = [
        _sentences(query, mine)
        for query in (each.name for each in QUERIES)
        if (mine := [each for each in judged if each["query"] == query])
    ]
    return " ".join([*said, *_energy(judged)])


def _sentences(query: str, mine: Sequence[dict[str, Any]]) -> str:
    held = [each for each in mine if each["fpga"]]
    won = [each for each in held if each["rate_ratio"] > 1]
    lost = [each for each in held if each["rate_ratio"] <= 1]
    said = []
    if won:
        cores = _range([with_transfer(each["cpu"]) / 1e6 for each in won])
        factors = _range([each["rate_ratio"] for each in won])
        said.append(
            f"the array wins at windows of {_windows(won)} tuples, {factors} times: from {cores} M "
            f"tuples/s on, which is all that a core sustains, up to {_by_board(won)} through its "
            "port."
        )
    if lost:
        factors = _range([1 / each["rate_ratio"] for each in lost])
        said.append(
            f"At windows of {_windows(lost)} the core sustains {factors} times the array's rate."
        )
    if held:
        said.append(_bound(held))
    if beyond := [each for each in mine if not each["fpga"]]:
        rates = _range([with_transfer(each["cpu"]) / 1e6 for each in beyond])
        said.append(
            f"No design that is known to fit a board holds windows of {_windows(beyond)}: there "
            f"the core wins, with {rates} M/s."
        )
    text = " ".join(said)
    return f"{query[0].upper()}{query[1:]}: {text[0].lower()}{text[1:]}"


def _by_board(judged: Sequence[dict[str, Any]]) -> str:
    """Name the rates of each board's fastest design, boards of the same rates together."""
    boards: dict[str, list[float]] = {}
    for each in judged:
        rates: dict[str, float] = {}
        for design in each["designs"]:
            board = str(design["who"]).partition(",")[0]
            rates[board] = max(rates.get(board, 0.0), with_transfer(design) / 1e6)
        for board, rate in rates.items():
            boards.setdefault(board, []).append(rate)
    named: dict[str, list[str]] = {}
    for board, several in boards.items():
        named.setdefault(_range(several), []).append(board)
    return ", ".join(f"{rates} M/s on a {' or '.join(who)}" for rates, who in named.items())


def _bound(held: Sequence[dict[str, Any]]) -> str:
    """Say for which bounds on the p99 latency at half the rate only one side will do."""
    known = [each for each in held if latency_us(each["cpu"]) and latency_us(each["fpga"])]
    if not known:
        return "No latency is known."
    core = _range([(latency_us(each["cpu"]) or 0) / 1e3 for each in known])
    whole = _range([latency_with_transfer_us(each["fpga"]) for each in known])
    inside = _range([latency_us(each["fpga"]) for each in known])
    lost = [each["window"] for each in known if each["latency_ratio"] <= 1]
    but = f" (not at windows of {_numbers(lost)})" if lost else ""
    return (
        f"At any rate it wins{but} where p99 has to be below the core's {core} ms, down to {whole} "
        f"us with the transfer, and {inside} us where the streams arrive at the part itself."
    )


def _energy(judged: Sequence[dict[str, Any]]) -> list[str]:
    held = [each for each in judged if each["fpga"]]
    if not held:
        return []
    core, design = (
        _range([each[side]["joules_per_million"] for each in held]) for side in ("cpu", "fpga")
    )
    return [
        f"A million tuples take a core {core} J and the array {design} J, by the watts below, at "
        "full rate."
    ]


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


def _numbers(windows: Sequence[int]) -> str:
    return ", ".join(f"{window:,}" for window in windows)
