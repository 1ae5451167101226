"""``streamjoin bench cpu-fpga``: rates and latencies of CPU engines beside designs on boards.

Every point is kept as soon as it is measured: the same command goes on where it was interrupted.
"""

import argparse
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamjoin.bench.compare import now, revision
from streamjoin.bench.cpu_fpga.contestants import CONTESTANTS, Contestant
from streamjoin.bench.cpu_fpga.costs import ASSUMED, add_costs
from streamjoin.bench.cpu_fpga.inputs import QUERIES, Query
from streamjoin.bench.cpu_fpga.measure import at_clock, measure
from streamjoin.bench.cpu_fpga.verdict import answers, latency_us, latency_with_transfer_us
from streamjoin.cli.benchmarks.kept import alone, kept_records, machine, sealed
from streamjoin.cli.terminal import (
    duration,
    print_json,
    print_paragraph,
    print_table,
    progress,
    say,
    si,
)
from streamjoin.errors import InputError
from streamjoin.report.crossover import render_crossover
from streamjoin.report.page import write_page
from streamjoin.report.stored import crossover
from streamjoin_common.installed.environment import load_average
from streamjoin_common.storage import check_writable, write_text

RECORDS, PAGE = "cpu-fpga.json", "report.html"
"""Files in the folder of a run."""

WINDOWS = {
    "quick": (1 << 8, 1 << 10, 1 << 13, 1 << 16),
    "full": tuple(1 << bits for bits in range(8, 17)),
}


def run(args: argparse.Namespace) -> int:
    """Measure every point, print the table and write the page.

    Raises
    ------
    InputError
        If threads are asked for, or the folder has points that were measured otherwise.
    """
    if args.threads not in (None, 1):
        raise InputError("bench cpu-fpga compares designs with one core: drop --threads")
    out = args.out or Path("runs/bench") / f"cpu-fpga-{args.size}"
    if args.record is not None:
        check_writable(args.record)
    with alone(out):
        result = _measure_all(args, out)
    write_page(render_crossover(result), out / PAGE)
    if args.json:
        print_json(result)
    else:
        _print(result["points"])
    say(f"the page is {out / PAGE}, the records are in {out / RECORDS}")
    if args.record is not None:
        say(f"the record is {crossover.store(result, args.record)}")
    return 0


def _measure_all(args: argparse.Namespace, out: Path) -> dict[str, Any]:
    """Measure what is not kept; return all records."""
    settings = {"size": args.size, "environment": machine()}
    kept = {} if args.force else kept_records(out / RECORDS, settings, "points", "point")
    points = _points(args.size)
    if kept and len(kept) < len(points):
        say(f"{len(kept)} of {len(points)} points are in {out} already")
    with progress("CPU beside FPGA") as on_progress:
        for contestant, query, window in points:
            name = f"{query.name}, {window}, {contestant.name}"
            if name not in kept:
                who = {"point": name, "query": query.name, "window": window}
                who |= {"who": contestant.name, "engine": contestant.engine}
                who |= {"is_fpga": contestant.is_fpga, "knobs": dict(contestant.knobs)}
                found = _measured(contestant, query, window, args.size, kept)
                kept[name] = sealed({**who, **found})
                records = {**settings, "points": list(kept.values())}
                write_text(out / RECORDS, json.dumps(records, indent=2) + "\n", parents=True)
            on_progress(len(kept), len(points))
    names = [f"{query.name}, {window}, {contestant.name}" for contestant, query, window in points]
    return {**settings, "points": [kept[name] for name in names]}


def _measured(
    contestant: Contestant,
    query: Query,
    window: int,
    size: str,
    kept: Mapping[str, dict[str, Any]],
) -> dict[str, Any]:
    """Measure a point; a design that was measured for another board differs in its clock alone."""
    began, began_cpu = time.perf_counter(), time.process_time()
    same = next((each for each in kept.values() if _is_same(each, contestant, query, window)), None)
    if same is not None and contestant.board is not None:
        found = at_clock(same, contestant.board.clock_mhz)
    else:
        found = measure(contestant, query, window, size, say)
    at = {
        "at": now(),
        "revision": revision(),
        "took_s": round(time.perf_counter() - began, 3),
        "took_cpu_s": round(time.process_time() - began_cpu, 3),
        "load_average": load_average(),
    }
    return {**add_costs(contestant, window, found), "measured": at}


def _is_same(record: Mapping[str, Any], contestant: Contestant, query: Query, window: int) -> bool:
    """Whether a record is of the same design and inputs, at whatever clock."""
    if not contestant.is_fpga or (record["query"], record["window"]) != (query.name, window):
        return False
    knobs = ({**each, "clock_mhz": None} for each in (record["knobs"], contestant.knobs))
    return record["engine"] == contestant.engine and next(knobs) == next(knobs)


def _points(size: str) -> list[tuple[Contestant, Query, int]]:
    """Return all points of a size: who is measured, by which query, in which window."""
    return [
        (contestant, query, window)
        for query in QUERIES
        for window in WINDOWS[size]
        for contestant in CONTESTANTS
        if contestant.takes(query) and contestant.holds(window)
        if size == "full" or not contestant.slow
    ]


def _print(points: list[dict[str, Any]]) -> None:
    headings = ["query", "window", "who", "tuples/s", "p99", "with transfer", "J/M"]
    rows = [
        [
            point["query"],
            f"{point['window']:,}",
            point["who"],
            si(point["rate_tuples_per_s"]),
            duration(latency_us(point)),
            duration(latency_with_transfer_us(point)) if point["is_fpga"] else "-",
            f"{point['joules_per_million']:.2g}" if point["joules_per_million"] else "-",
        ]
        for point in points
    ]
    print_table(headings, rows, {*headings} - {"query", "who"})
    for said in answers(points):
        print_paragraph(said)
    print_paragraph(
        "Rates of both streams together that are sustained, p99 latencies at half of "
        "each contestant's own rate, joules for a million tuples. The CPU is measured on one "
        f"thread, designs are simulated; all results are those of another engine. {ASSUMED}"
    )
