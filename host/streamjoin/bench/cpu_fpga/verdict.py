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
    """Return a quantile of the latency at a load, in microseconds."""
    value = record["latency_us"][load][name]
    return None if value is None else float(value)


def verdicts(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Compare the best of both sides, for every query and window.

    Returns
    -------
    list of dict
        ``query``, ``window``, ``cpu`` and ``fpga`` (names of the fastest), ``rate_ratio``
        (FPGA's rate, through its port, by the CPU's), ``latency_ratio`` (CPU's p99 at half its
        rate by the FPGA's, with the transfer), ``latency_ratio_inside`` (without).
    """
    found = []
    for query in (each.name for each in QUERIES):
        for window in sorted({each["window"] for each in records if each["query"] == query}):
            here = [each for each in records if (each["query"], each["window"]) == (query, window)]
            cpu = best(here, of_fpga=False, figure=with_transfer)
            fpga = best(here, of_fpga=True, figure=with_transfer)
            if cpu is None:
                continue
            found.append(
                {"query": query, "window": window, "cpu": cpu["who"], **_compare(cpu, fpga)}
            )
    return found


def _compare(cpu: Record, fpga: Record | None) -> dict[str, Any]:
    if fpga is None:
        nothing = ("fpga", "rate_ratio", "latency_ratio", "latency_ratio_inside")
        return dict.fromkeys(nothing)
    slow, quick = latency_us(cpu), latency_us(fpga)
    added = fpga["transfer"]["added_us"]
    return {
        "fpga": fpga["who"],
        "rate_ratio": with_transfer(fpga) / with_transfer(cpu),
        "latency_ratio": slow / (quick + added) if slow and quick else None,
        "latency_ratio_inside": slow / quick if slow and quick else None,
    }


def sentences(records: Sequence[Record]) -> list[str]:
    """Say for each query where the FPGA is better, by rate and by latency."""
    said = []
    for query in (each.name for each in QUERIES):
        mine = [each for each in verdicts(records) if each["query"] == query]
        if mine:
            said.append(_sentence(query, mine))
    return said


def _sentence(query: str, mine: Sequence[dict[str, Any]]) -> str:
    held = [each for each in mine if each["fpga"]]
    if not held:
        return f"{query}: no design holds these windows."
    rates = _where(held, "rate_ratio")
    latencies = _where(held, "latency_ratio")
    inside = _range([each["latency_ratio_inside"] for each in held])
    beyond = [each["window"] for each in mine if not each["fpga"]]
    outgrown = f" No design here holds windows of {_numbers(beyond)}." if beyond else ""
    return (
        f"{query}: by rate {rates}; by p99 latency at half the rate, with the transfer, "
        f"{latencies} ({inside} times as short inside the design).{outgrown}"
    )


def _where(held: Sequence[dict[str, Any]], name: str) -> str:
    """Say at which windows a ratio is above 1, and how large it is."""
    known = [each for each in held if each[name] is not None]
    won = [each["window"] for each in known if each[name] > 1]
    if not known:
        return "nothing is known"
    ratios = _range([each[name] for each in known])
    if not won:
        return f"the CPU is better at all windows (FPGA {ratios} times as good)"
    if len(won) == len(known):
        return f"the FPGA is better at all windows that it holds ({ratios} times)"
    return f"the FPGA is better at windows of {_numbers(won)} ({ratios} times over all)"


def _range(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "unknown"
    low, high = f"{min(known):.2g}", f"{max(known):.2g}"
    low, high = (f"{float(text):,g}" for text in (low, high))
    return low if low == high else f"{low} to {high}"


def _numbers(windows: Sequence[int]) -> str:
    return ", ".join(f"{window:,}" for window in windows)
