"""``streamjoin bench calls``: whole calls beside other systems."""

import argparse
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from streamjoin.bench.calls import CASES, OWN
from streamjoin.cli.terminal import duration, print_json, print_paragraph, print_table, progress
from streamjoin.errors import DeadlineError, StreamJoinError

CASE_DEADLINE_S = 1800
"""Maximum seconds between two results: one case of 10 M tuples takes half a minute."""

THREADS = 1
"""Threads of every system: CPU time is what is compared."""

ROUNDS = {"quick": 3, "full": 5}


def run(args: argparse.Namespace) -> int:
    """Measure every case in a process of its own and print the table."""
    results = []
    with progress("whole calls") as on_progress:
        for result in _measured(args.size):
            results.append(result)
            on_progress(len(results), len(CASES))
    if args.json:
        print_json(results)
    else:
        _print(results, args.size)
    return 0


def _print(results: list[dict[str, Any]], size: str) -> None:
    others = [name for name in results[0]["systems"] if name not in OWN]
    headings = ["case", *OWN, *others]
    print_table(headings, [_row(result, headings[1:]) for result in results], set(headings[1:]))
    share = "" if size == "full" else ", with a tenth of the rows that a case's name says"
    print_paragraph(
        f"CPU time of a whole call, median of {ROUNDS[size]} interleaved rounds, one thread"
        f"{share}. Arrow tables in, an Arrow table of row numbers out; all results are equal."
    )


def _row(result: dict[str, Any], systems: list[str]) -> list[str]:
    times = [duration(result["systems"][name]["cpu_s"] * 1e6) for name in systems]
    return [str(result["case"]), *times]


def _measured(size: str) -> Iterator[dict[str, Any]]:
    """Yield a result for each case; the process that measures ends with the iterator."""
    command = [sys.executable, "-m", "streamjoin.bench.calls", *CASES, "--size", size]
    command += ["--rounds", str(ROUNDS[size]), "--threads", str(THREADS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None  # a pipe was asked for
            for _ in CASES:
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
