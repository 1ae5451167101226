"""``streamjoin advise``: which engine suits a workload, and why."""

import argparse
from pathlib import Path
from typing import Any

from streamjoin.advise import GOALS, Advice, thresholds
from streamjoin.api import as_window
from streamjoin.bench.workloads import read_workload
from streamjoin.cli import options, semistream
from streamjoin.cli.terminal import print_json, print_paragraph, print_table, progress, say
from streamjoin.engines.job import Job
from streamjoin.errors import InputError
from streamjoin.verbs import advice as advice_of

EPILOG = """\
examples:
  streamjoin advise runs/workloads/equi --window all
  streamjoin advise --r r.parquet --s s.parquet --on key --window count:500
  streamjoin advise --calibrate      measures this machine, some minutes
  streamjoin advise runs/workloads/equi --rate 1e6 --store raw
                                     memory that meshjoin and ssbj need
"""


class AdviseVerb:
    """Measures a workload's features and walks the decision tree."""

    help = "Measures a workload's features and names the engine that suits it, with reasons."

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the verb's flags."""
        parser.epilog = EPILOG
        parser.add_argument("what", type=Path, metavar="DIR", nargs="?", help="a workload folder")
        options.add_inputs(parser, sampled=True)
        options.add_predicate(parser)
        parser.add_argument("--window", help="default that of the workload; of files, all")
        options.add_arrivals(parser)
        options.add_threads(parser)
        parser.add_argument(
            "--arrival",
            choices=("replay", "instant"),
            help="default: replay where there are arrival times; that of join is instant",
        )
        parser.add_argument(
            "--speedup", type=float, default=1.0, help="a replay runs X times faster"
        )
        parser.add_argument(
            "--goal",
            choices=GOALS,
            help="default: latency for a replay of an equality under windows all and tumbling, "
            "else throughput; other joins, as of sliding windows, know throughput alone",
        )
        parser.add_argument(
            "--calibrate",
            action="store_true",
            help="measure the engines here and keep the tree's thresholds with their evidence",
        )
        semistream.configure(parser)
        parser.add_argument("--json", action="store_true", help="print JSON")

    def run(self, args: argparse.Namespace) -> int:
        """Advise, or calibrate."""
        if args.calibrate:
            return _calibrate(args)
        if args.calibrate_stores:
            return semistream.calibrate(args)
        if (args.r is None) != (args.s is None):
            given, other = ("--r", "--s") if args.s is None else ("--s", "--r")
            raise InputError(f"{given} is one of two inputs: add {other} FILE")
        if "-" in (args.r, args.s):
            raise InputError("advise reads a sample of files, not standard input: name a file")
        if (args.what is None) == (args.r is None):
            raise InputError(
                "name a workload folder, as runs/workloads/equi, or two files with --r and --s, or "
                "--calibrate"
            )
        if semistream.asked(args):
            return semistream.forecast(_job(args), args)
        advice = advice_of.advise(
            *([args.r, args.s] if args.what is None else [args.what]),
            on=args.on,
            band=args.band,
            window=args.window,
            threads=args.threads,
            arrival=args.arrival,
            speedup=args.speedup,
            goal=args.goal,
            ts=args.ts,
            ts_unit=args.ts_unit,
        )
        _, path = thresholds.load()
        own = path != thresholds.SHIPPED
        source = str(path) if own else "the package's own; --calibrate measures this machine"
        if args.json:
            print_json(_plain(advice, source))
        else:
            _print(advice, source)
        return 0


def _job(args: argparse.Namespace) -> Job:
    """Read the workload or the two inputs."""
    if args.what is None:
        return advice_of.job_between(
            args.r, args.s, options.predicate(args), as_window(args.window),
            ts=args.ts, ts_unit=args.ts_unit,
            threads=args.threads, arrival=args.arrival, speedup=args.speedup,
        )  # fmt: skip
    workload = read_workload(args.what, ("oracle",), args.threads)
    return advice_of.job_of(options.on_workload(args, workload), args.arrival, args.speedup)


def _plain(advice: Advice, source: str) -> dict[str, Any]:
    return {
        "engine": advice.engine,
        "goal": advice.goal,
        "reasons": list(advice.reasons),
        "features": advice.features.to_dict(),
        "thresholds": source,
    }


def _print(advice: Advice, source: str) -> None:
    print_table(["feature", "estimate"], [list(row) for row in advice.features.table_rows()])
    print_paragraph("")
    print_table(
        ["step", "because"],
        [[str(step), reason] for step, reason in enumerate(advice.reasons, start=1)],
    )
    print_paragraph("")
    print_table(["advice", "goal", "thresholds from"], [[advice.engine, advice.goal, source]])


def _calibrate(args: argparse.Namespace) -> int:
    from streamjoin.bench.calibrate import calibrate

    if args.what is not None or args.r is not None or args.s is not None:
        raise InputError("--calibrate measures the machine and takes no workload folder or file")
    with progress("calibrating") as on_progress:
        document = calibrate(args.threads, on_progress)
    path = thresholds.calibrated_path()
    thresholds.save(document, path)
    if args.json:
        print_json(document)
        return 0
    values, regret = document["thresholds"], document["regret"]
    print_table(["threshold", "value"], [[name, str(value)] for name, value in values.items()])
    say(
        f"over {len(document['evidence'])} measured points the tree's choice takes at most "
        f"{regret['max']:.2f} times, on average {regret['mean']:.2f} times, the best engine's time"
    )
    say(f"kept with the evidence in {path}")
    return 0


VERB = AdviseVerb()
