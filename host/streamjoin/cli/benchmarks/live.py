"""``streamjoin bench live``: rate and latency of live joins."""

import argparse
import json
from pathlib import Path
from typing import Any

from streamjoin import run as runs
from streamjoin.bench.live import CASES, JUDGE, WINDOW_TUPLES, measure
from streamjoin.cli.terminal import (
    duration,
    print_json,
    print_paragraph,
    print_table,
    progress,
    say,
    si,
)
from streamjoin_common.storage import write_text

RECORDS = "live.json"
"""File in the folder of a run."""

ROUNDS = {"quick": 3, "full": 5}
LATENCIES = ["p50", "p99", "p99.9", "max"]


def run(args: argparse.Namespace) -> int:
    """Measure every case and print the table."""
    threads, rounds = args.threads or 1, ROUNDS[args.size]
    records = (args.out or Path("runs/bench") / f"live-{args.size}") / RECORDS
    results = []
    with progress("live joins") as on_progress:
        for tuples in CASES:
            results.append(measure(tuples, args.size, rounds, threads))
            on_progress(len(results), len(CASES))
    settings = {"size": args.size, "threads": threads, "rounds": rounds}
    found = {**settings, "environment": runs.environment(), "cases": results}
    write_text(records, json.dumps(found, indent=2) + "\n", parents=True)
    if args.json:
        print_json(found)
    else:
        _print(results, rounds, threads)
    say(f"the records are in {records}")
    return 0


def _print(results: list[dict[str, Any]], rounds: int, threads: int) -> None:
    headings = ["tuples a call", "tuples/s", *LATENCIES, "p99, wall clock"]
    rows = [
        [
            f"{result['tuples']:,}",
            si(result["tuples_per_s"]),
            *(duration(result["cpu_us"][name]) for name in LATENCIES),
            duration(result["wall_us"]["p99"]),
        ]
        for result in results
    ]
    print_table(headings, rows, set(headings))
    print_paragraph(
        "CPU time of a call's thread: a push, and taking the results. Inner join by one column, "
        f"windows of {WINDOW_TUPLES:,} tuples, {threads} thread{'s' * (threads > 1)}, medians of "
        f"{rounds} rounds. The pairs are those of {JUDGE}."
    )
