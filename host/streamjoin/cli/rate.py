"""``streamjoin rate``: the highest arrival rate that engines sustain."""

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from streamjoin import verify
from streamjoin.bench.sustained import (
    LOADS,
    MIN_REPLAY_S,
    Attempt,
    Loaded,
    Sustained,
    search,
    under_loads,
)
from streamjoin.bench.workloads import read_workload
from streamjoin.cli import options
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
from streamjoin_common.installed.environment import environment

EPILOG = """\
example:
  streamjoin rate runs/workloads/band --engines kang,splitjoin \\
      --window count:16384 --threads 2

Arrival times are squeezed until an engine is no longer done soon after the last
arrival. Latencies are counted from the arrival of the later tuple, with
whatever it waits for. A design's are cycles of its model at its clock, without
the transfer to a board. An input of few tuples shows a rate up to that at which
it lasts half a second: "at least" is what an engine keeps up with there.
"""

DEFAULT_PRECISION = 0.05
MIN_PRECISION, MAX_PRECISION = 0.005, 0.5


class RateVerb:
    """Searches the rate that engines sustain."""

    help = "The highest arrival rate that engines sustain without a growing queue."

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the verb's flags."""
        parser.epilog = EPILOG
        parser.add_argument("what", type=Path, metavar="DIR", help="a workload folder")
        engines = parser.add_argument(
            "--engines", metavar="A,B,...", required=True, help="engines to measure"
        )
        options.complete_engines(engines, listed=True)
        parser.add_argument("--window", help="instead of the workload's own")
        options.add_predicate(parser)
        options.add_threads(parser)
        parser.add_argument(
            "--precision",
            type=float,
            default=DEFAULT_PRECISION,
            help=f"share between the rates kept up with and not; default {DEFAULT_PRECISION}",
        )
        parser.add_argument(
            "--loads",
            action="store_true",
            help="also replay at 10, 50 and 90 %% of each engine's rate: latencies from the "
            "arrival of the later tuple, of CPU engines and designs alike",
        )
        options.add_knobs(parser, "tuning parameters, for each of the engines that has them")
        options.add_max_pairs(parser)
        parser.add_argument("--json", action="store_true", help="print JSON")

    def run(self, args: argparse.Namespace) -> int:
        """Search for every engine, each result held against the oracle."""
        if not MIN_PRECISION <= args.precision <= MAX_PRECISION:
            raise InputError(
                f"--precision must be {MIN_PRECISION} to {MAX_PRECISION}, not {args.precision}"
            )
        names = tuple(args.engines.split(","))
        workload = options.on_workload(args, read_workload(args.what, names, args.threads))
        request = replace(workload, arrival="replay", max_pairs=args.max_pairs).request
        job = request.read(workload.r, workload.s)
        knobs = options.knobs_by_engine(args, names)
        joins = [request.resolve(name, job, knobs[name]) for name in names]
        with progress("oracle") as on_progress:
            expected = verify.expected(job, on_progress)
        rates: list[Sustained] = []
        try:
            for join in joins:
                heard = partial(_say, join.engine.name)
                check = partial(join.verify, expected=expected)
                rates.append(search(join, args.precision, check, heard))
                if rates[-1].at_least:
                    say(_bounded(rates[-1], job.tuples))
                if args.loads:
                    rates[-1] = under_loads(join, rates[-1], LOADS, check)
        finally:  # Ctrl-C, too, leaves what is known of the engines before
            if rates and args.json:
                print_json([_plain(one) for one in rates])
            elif rates:
                _print(rates)
        return 0 if all(one.best for one in rates) else 1


def _say(name: str, attempt: Attempt) -> None:
    verdict = "kept up" if attempt.kept_up else "fell behind"
    say(
        f"{name}: {si(attempt.rate_tuples_per_s, 'tuples/s')} for {attempt.arriving_s:.3g} s, "
        f"{verdict} ({duration(max(0.0, attempt.behind_s) * 1e6)} late)"
    )


def _bounded(one: Sustained, tuples: int) -> str:
    return (
        f"{one.engine} keeps up with all that {tuples:,} tuples allow, for a replay must last "
        f"{MIN_REPLAY_S:g} s: for its limit generate about {one.wanted:,}"
    )


def _plain(one: Sustained) -> dict[str, Any]:
    return {
        "environment": environment(),
        "engine": one.engine,
        "threads": one.threads,
        "at_rest_tuples_per_s": one.at_rest_tuples_per_s,
        "clock_hz": one.clock_hz,
        "clock_source": one.clock_source,
        "at_least": one.at_least,
        "sustained": one.best.to_dict() if one.best else None,
        "attempts": [each.to_dict() for each in one.attempts],
        "loaded": [each.to_dict() for each in one.loaded],
        "verified": True,
    }


def _print(rates: list[Sustained]) -> None:
    loads = [f"p50, p99\nat {load:.0%}" for load in LOADS if any(one.loaded for one in rates)]
    headings = ["engine", "threads", "sustained", "p95 there\nfrom arrival", *loads]
    headings += ["at rest", "replays"]
    rows = []
    for one in rates:
        best = one.best
        rows.append(
            [
                one.engine,
                str(one.threads),
                _rate(one),
                duration(best.p95_us) if best else "-",
                *(_latencies(one.loaded[number : number + 1]) for number in range(len(loads))),
                si(one.at_rest_tuples_per_s, "tuples/s"),
                str(len(one.attempts)),
            ]
        )
    print_table(headings, rows, {*headings[1:]})
    for one in rates:
        if one.clock_hz:
            print_paragraph(
                f"{one.engine}: seconds are cycles at {one.clock_hz / 1e6:g} MHz "
                f"({one.clock_source}), without the transfer to a board and back."
            )


def _rate(one: Sustained) -> str:
    if one.best is None:
        return "none that was tried"
    rate = si(one.best.rate_tuples_per_s, "tuples/s")
    return f"at least {rate}" if one.at_least else rate


def _latencies(loaded: tuple[Loaded, ...]) -> str:
    """Write the latencies at a load, with their origin where it is not the arrival."""
    if not loaded:
        return "-"
    (at,) = loaded
    both = ", ".join(duration(at.latency_us[name]) for name in ("p50", "p99"))
    return both if at.latency_from == "arrival" else f"{both} from {at.latency_from}"


VERB = RateVerb()
