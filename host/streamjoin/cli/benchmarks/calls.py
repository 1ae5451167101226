"""``streamjoin bench calls``: whole calls beside other systems.

Every case is kept as soon as it is measured: the same command goes on where it was interrupted.
"""

import argparse
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from streamjoin.bench.call_cases import CASES
from streamjoin.bench.calls import ORDER_SEED, OWN
from streamjoin.cli.benchmarks.kept import kept_records, machine, sealed
from streamjoin.cli.terminal import (
    duration,
    print_json,
    print_paragraph,
    print_table,
    progress,
    say,
)
from streamjoin.errors import DeadlineError, StreamJoinError
from streamjoin_common.installed.environment import load_average
from streamjoin_common.storage import write_text

CASE_DEADLINE_S = 1800
"""Maximum seconds between two results: one case of 10 M tuples takes half a minute."""

RECORDS = "calls.json"
"""File in the folder of a run."""

ROUNDS = {"quick": 3, "full": 5}


def run(args: argparse.Namespace) -> int:
    """Measure every case in a process of its own and print the table.

    Raises
    ------
    InputError
        If the folder has cases that were measured otherwise, and ``--force`` is not given.
    """
    threads = args.threads or 1
    out = args.out or Path("runs/bench") / f"calls-{args.size}"
    settings = {"size": args.size, "threads": threads, "rounds": ROUNDS[args.size]}
    settings |= {"order_seed": ORDER_SEED, "environment": machine()}
    cases = CASES[args.size]
    kept = {} if args.force else kept_records(out / RECORDS, settings, "cases", "case")
    missing = [name for name in cases if name not in kept]
    if kept:
        again = "" if missing else ": type --force to measure again"
        say(f"{len(kept)} of {len(cases)} cases are in {out} already{again}")
    with progress("whole calls") as on_progress:
        for name, result in zip(missing, _measured(missing, settings), strict=True):
            kept[name] = sealed({**result, "measured": {"load_average": load_average()}})
            records = {**settings, "cases": list(kept.values())}
            write_text(out / RECORDS, json.dumps(records, indent=2) + "\n", parents=True)
            on_progress(len(kept), len(cases))
    results = [kept[name] for name in cases]
    if args.json:
        print_json({**settings, "cases": results})
    else:
        _print(results, settings)
    say(f"the records are in {out / RECORDS}")
    return 0


def _print(results: list[dict[str, Any]], settings: dict[str, Any]) -> None:
    others = [name for name in results[0]["systems"] if name not in OWN]
    headings = ["case", *OWN, *others]
    threads = settings["threads"]
    measure, name = ("CPU", "cpu_s") if threads == 1 else ("Wall", "wall_s")
    rows = [
        [
            str(result["case"]),
            *(duration(result["systems"][each][name] * 1e6) for each in headings[1:]),
        ]
        for result in results
    ]
    print_table(headings, rows, set(headings[1:]))
    print_paragraph(
        f"{measure} time of a whole call, median of {settings['rounds']} interleaved rounds, each "
        f"in an order of its own (seed {settings['order_seed']}), {threads} "
        f"thread{'s' * (threads > 1)}. Arrow tables in, an Arrow table of row "
        "numbers out, or of a float64 column of each side, or of these and R's keys. Lower is "
        "better; all results are equal. A case without a number has the tuples of the case above "
        "with the same keys."
    )


def _measured(cases: list[str], settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a result for each case; the process that measures ends with the iterator."""
    if not cases:
        return
    command = [sys.executable, "-m", "streamjoin.bench.calls", *cases]
    for name in ("size", "rounds", "threads"):
        command += [f"--{name}", str(settings[name])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None  # a pipe was asked for
            for _ in cases:
                line = _within(CASE_DEADLINE_S, child.stdout.readline, child.kill)
                if not line:
                    raise StreamJoinError("bench calls: the process that measures has failed")
                yield json.loads(line)
        finally:
            child.kill()


def _within(deadline_s: float, read: Callable[[], str], kill: Callable[[], None]) -> str:
    """Read a line; when it takes too long, end the process that should write it."""
    late = threading.Event()

    def end() -> None:
        late.set()
        kill()

    timer = threading.Timer(deadline_s, end)
    timer.start()
    try:
        line = read()
    finally:
        timer.cancel()
    if late.is_set():
        raise DeadlineError(f"bench calls: a case took over {deadline_s:g} s and was ended")
    return line
