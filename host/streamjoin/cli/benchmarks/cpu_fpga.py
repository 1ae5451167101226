"""``streamjoin bench cpu-fpga``: rates and latencies of CPU engines beside designs on boards.

Every point is kept as soon as it is measured: the same command goes on where it was interrupted.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from streamjoin.bench.cpu_fpga.contestants import CONTESTANTS, Contestant
from streamjoin.bench.cpu_fpga.costs import ASSUMED, add_costs
from streamjoin.bench.cpu_fpga.inputs import QUERIES, Query
from streamjoin.bench.cpu_fpga.measure import JUDGE, measure
from streamjoin.bench.cpu_fpga.verdict import latency_us, sentences
from streamjoin.cli.benchmarks.kept import kept_records, machine
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
from streamjoin_common.storage import write_text

RECORDS, PAGE = "cpu-fpga.json", "report.html"
"""Files in the folder of a run."""

WINDOWS = {
    "quick": (1 << 8, 1 << 10, 1 << 13, 1 << 16),
    "full": tuple(1 << bits for bits in range(8, 17)),
}
LARGE_BOARDS = ("kv260",)
"""Boards of the full size alone: their designs take minutes to compile."""


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
    settings = {"size": args.size, "environment": machine()}
    kept = {} if args.force else kept_records(out / RECORDS, settings, "points", "point")
    points = _points(args.size)
    if kept and len(kept) < len(points):
        say(f"{len(kept)} of {len(points)} points are in {out} already")
    with progress("CPU beside FPGA") as on_progress:
        for contestant, query, window in points:
            name = f"{query.name}, {window}, {contestant.name}"
            if name not in kept:
                found = measure(contestant, query, window, args.size, say)
                who = {"point": name, "query": query.name, "window": window}
                who |= {"who": contestant.name, "engine": contestant.engine}
                who |= {"is_fpga": contestant.is_fpga, "knobs": dict(contestant.knobs)}
                kept[name] = {**who, **add_costs(contestant, window, found)}
                records = {**settings, "points": list(kept.values())}
                write_text(out / RECORDS, json.dumps(records, indent=2) + "\n", parents=True)
            on_progress(len(kept), len(points))
    result = {**settings, "points": list(kept.values())}
    write_page(render_crossover(result), out / PAGE)
    if args.json:
        print_json(result)
    else:
        _print(result["points"])
    say(f"the page is {out / PAGE}, the records are in {out / RECORDS}")
    return 0


def _points(size: str) -> list[tuple[Contestant, Query, int]]:
    """Return all points of a size: who is measured, by which query, in which window."""
    return [
        (contestant, query, window)
        for query in QUERIES
        for window in WINDOWS[size]
        for contestant in CONTESTANTS
        if contestant.takes(query) and contestant.holds(window)
        if size == "full" or contestant.board not in LARGE_BOARDS
    ]


def _print(points: list[dict[str, Any]]) -> None:
    headings = ["query", "window", "who", "tuples/s", "p99", "J/M"]
    rows = [
        [
            point["query"],
            f"{point['window']:,}",
            point["who"],
            si(point["rate_tuples_per_s"]),
            duration(latency_us(point)),
            f"{point['joules_per_million']:.2g}",
        ]
        for point in points
    ]
    print_table(headings, rows, {*headings} - {"query", "who"})
    for sentence in sentences(points):
        print_paragraph(sentence)
    print_paragraph(
        "Rates of both streams together that are sustained, p99 latencies at half of "
        "each contestant's own rate, joules for a million tuples. The CPU is measured on one "
        f"thread, designs are simulated; all results are those of {JUDGE}. {ASSUMED}"
    )
