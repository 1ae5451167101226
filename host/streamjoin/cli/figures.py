"""What ``compare`` and ``bench`` print of records: measured figures apart from simulated ones."""

from collections.abc import Callable, Sequence
from typing import Any

from streamjoin.cli.terminal import duration, print_paragraph, say
from streamjoin.report.charts.stacked import plain
from streamjoin.report.results import ORIGINS, Result, WorkloadResults, group

Results = Sequence[tuple[WorkloadResults, Result]]


def print_apart(records: dict[str, Any], print_results: Callable[[Results], None]) -> None:
    """Print a table of measured results and, below it, one of simulated ones; then the errors.

    Parameters
    ----------
    records : dict
        The content of ``records.json``.
    print_results : callable
        Prints one table of results.
    """
    results = [(one, result) for one in group(records) for result in one.results]
    measured = [each for each in results if each[1].measured]
    simulated = [each for each in results if not each[1].measured]
    if measured:
        print_results(measured)
    if simulated:
        clocks = _clocks(simulated)
        at = next(iter(clocks)) if len(clocks) == 1 else "the clock in the table"
        if measured:
            print_paragraph("")
        print_paragraph(f"simulated, not measured; seconds are cycles at {at}:")
        print_results(simulated)
    for record in records["records"]:
        if record["error"]:
            say(f"{record['workload']}, {record['engine']}: {record['error']}")


def clock_heading(results: Results) -> list[str]:
    """Head a column of clocks where there are several; a single one stands above the table."""
    return ["clock"] if len(_clocks(results)) > 1 else []


def clock_text(result: Result) -> str:
    """Name the clock of a result."""
    return plain(result.clock.text) if result.clock else "-"


def _clocks(results: Results) -> dict[str, None]:
    return dict.fromkeys(clock_text(result) for _, result in results)


CALL = "whole call"
"""Heads the column of the whole call's time."""


def call_heading(results: Results) -> list[str]:
    """Head a column of whole calls where a result has one."""
    return [CALL] if any(result.call_spread for _, result in results) else []


def call_text(result: Result) -> str:
    """Return the median time of a result's whole calls."""
    total = result.spread("total_s")
    return duration(total["median"] * 1e6) if total else "-"


def latency_headings(results: Results, names: Sequence[str]) -> list[str]:
    """Head a column for each percentile and origin: ``p50`` over ``from arrival``.

    There is none where no result has latencies.
    """
    present = {result.latency_from for _, result in results if result.latency_us}
    origins = [origin for origin in ORIGINS if origin in present]
    return [f"{name}\n{_short(origin)}" for origin in origins for name in names]


def latency_cells(result: Result, headings: Sequence[str]) -> list[str]:
    """Fill the columns of :func:`latency_headings`: those of another origin stay empty."""
    mine = _short(result.latency_from)
    cells = []
    for heading in headings:
        name, origin = heading.split("\n")
        latency = result.latency_us if origin == mine else None
        cells.append(duration(latency[name] if latency else None))
    return cells


def _short(origin: str | None) -> str:
    return f"from {origin.removeprefix('run ')}" if origin else "of unknown start"


def verdict(result: Result, oracle: str) -> str:
    """Say with whom a result agrees."""
    record = result.record
    if not record["checked"]:
        return str(record["status"])
    return "is the check" if record["engine"] == oracle else f"equal to {oracle}"
