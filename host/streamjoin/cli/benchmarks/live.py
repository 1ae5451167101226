"""``streamjoin bench live``: rate and latency of live joins."""

import argparse
import json
from pathlib import Path
from typing import Any

from streamjoin.bench.live import CASES, PREDICATES, WINDOW_TUPLES, measure
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
from streamjoin_common.installed.environment import environment, load_average
from streamjoin_common.storage import write_text

RECORDS = "live.json"
"""File in the folder of a run."""

ROUNDS = {"quick": 3, "full": 5}
LATENCIES = ["p50", "p99", "p99.9", "max"]


def run(args: argparse.Namespace) -> int:
    """Measure every case and print the table.

    Raises
    ------
    InputError
        If there is no such predicate.
    """
    predicates = _predicates(args.predicates)
    threads, rounds = args.threads or 1, ROUNDS[args.size]
    records = (args.out or Path("runs/bench") / f"live-{args.size}") / RECORDS
    results = []
    with progress("live joins") as on_progress:
        for predicate in predicates:
            for tuples in CASES:
                result = measure(tuples, args.size, rounds, threads, predicate)
                results.append({**result, "measured": {"load_average": load_average()}})
                on_progress(len(results), len(CASES) * len(predicates))
    settings = {"size": args.size, "threads": threads, "rounds": rounds}
    found = {**settings, "environment": environment(), "cases": results}
    write_text(records, json.dumps(found, indent=2) + "\n", parents=True)
    if args.json:
        print_json(found)
    else:
        _print(results, rounds, threads)
    say(f"the records are in {records}")
    return 0


def _predicates(asked: str) -> list[str]:
    names = list(PREDICATES) if asked == "all" else asked.split(",")
    for name in names:
        if name not in PREDICATES:
            raise InputError(f"no predicate {name!r}: choose all, or of {', '.join(PREDICATES)}")
    return names


def _print(results: list[dict[str, Any]], rounds: int, threads: int) -> None:
    headings = ["predicate", "tuples\na call", "tuples/s", *LATENCIES, "wall\np99"]
    rows = [
        [
            result["predicate"],
            f"{result['tuples']:,}",
            si(result["tuples_per_s"]),
            *(duration(result["cpu_us"][name]) for name in LATENCIES),
            duration(result["wall_us"]["p99"]),
        ]
        for result in results
    ]
    print_table(headings, rows, set(headings[1:]))
    print_paragraph(
        "CPU time of a call's thread: a push, and taking the results. Inner join, windows of "
        f"{WINDOW_TUPLES:,} tuples, {threads} thread{'s' * (threads > 1)}, medians of {rounds} "
        "rounds, about one pair a tuple; the last column is by the wall clock. The pairs are those "
        "of another engine."
    )
