"""``streamjoin rate``: the highest arrival rate that engines sustain."""

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from streamjoin import run, verify
from streamjoin.bench.sustained import Attempt, Sustained, search
from streamjoin.bench.workloads import read_workload
from streamjoin.cli import options
from streamjoin.cli.terminal import duration, print_json, print_table, progress, say, si
from streamjoin.errors import InputError

EPILOG = """\
example:
  streamjoin rate runs/workloads/band --engines kang,splitjoin \\
      --window count:16384 --threads 2

Arrival times are squeezed until an engine is no longer done soon after the last
arrival.
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
        joins = [request.resolve(name, job) for name in names]
        with progress("oracle") as on_progress:
            expected = verify.expected(job, on_progress)
        rates: list[Sustained] = []
        try:
            for join in joins:
                heard = partial(_say, join.engine.name)
                check = partial(join.verify, expected=expected)
                rates.append(search(join, args.precision, check, heard))
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


def _plain(one: Sustained) -> dict[str, Any]:
    return {
        "environment": run.environment(),
        "engine": one.engine,
        "threads": one.threads,
        "at_rest_tuples_per_s": one.at_rest_tuples_per_s,
        "sustained": one.best.to_dict() if one.best else None,
        "attempts": [each.to_dict() for each in one.attempts],
        "verified": True,
    }


def _print(rates: list[Sustained]) -> None:
    headings = ["engine", "threads", "sustained", "p95 there\nfrom arrival", "at rest", "replays"]
    rows = []
    for one in rates:
        best = one.best
        rows.append(
            [
                one.engine,
                str(one.threads),
                si(best.rate_tuples_per_s, "tuples/s") if best else "none that was tried",
                duration(best.p95_us) if best else "-",
                si(one.at_rest_tuples_per_s, "tuples/s"),
                str(len(one.attempts)),
            ]
        )
    print_table(headings, rows, {*headings[1:]})


VERB = RateVerb()
