"""``streamjoin bench``: published experiments."""

import argparse
import os
import shlex
from functools import partial
from pathlib import Path
from typing import Any

from streamjoin.bench import experiments, runner
from streamjoin.cli import calls, figures, live
from streamjoin.cli.options import FORCE_HELP
from streamjoin.cli.terminal import (
    duration,
    print_json,
    print_paragraph,
    print_table,
    progress,
    say,
    si,
)
from streamjoin.report.results import Result
from streamjoin.report.run_folder import check_run_folder, write_run
from streamjoin.report.sentences import claim_said
from streamjoin.run import check_options
from streamjoin_common.installed.completing import complete
from streamjoin_common.storage import check_writable

EPILOG = """\
examples:
  streamjoin bench list
  streamjoin bench iawj-micro --size quick
  streamjoin bench calls --size full
  streamjoin bench live

An interrupted run goes on where it was when the same command is typed again.
"""


OWN_TABLES = {"calls": calls.run, "live": live.run}
"""Benchmarks of their own kind, by name."""


class BenchVerb:
    """Runs an experiment."""

    help = "Published experiments: every figure checked, resumable, one report."

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the verb's flags."""
        parser.epilog = EPILOG
        name = parser.add_argument(
            "name", metavar="NAME", help="list, calls, live, an experiment, or a TOML file"
        )
        complete(name, lambda _: ["list", *OWN_TABLES, *experiments.names()], files=True)
        parser.add_argument("--size", choices=experiments.SIZES, default="quick")
        parser.add_argument(
            "--threads",
            type=int,
            help="default: all processors; calls and live: 1, and CPU time is shown",
        )
        parser.add_argument("--out", type=Path, metavar="RUN", help="default runs/bench/NAME-SIZE")
        parser.add_argument("--data", type=Path, default=Path("runs/workloads"), metavar="DIR")
        parser.add_argument("--force", action="store_true", help=FORCE_HELP)
        parser.add_argument("--json", action="store_true", help="print the records as JSON")

    def run(self, args: argparse.Namespace) -> int:
        """Run or list; 1 if any result is wrong or missing."""
        threads = (os.cpu_count() or 1) if args.threads is None else args.threads
        if args.name == "list":
            return _list(args)
        check_options(threads=threads, speedup=1.0, order="none", arrival="instant")
        if args.name in OWN_TABLES:
            return OWN_TABLES[args.name](args)
        experiment = experiments.read(args.name, args.size)
        runner.check(experiment, args.size)
        out = args.out or Path("runs/bench") / f"{experiment.name}-{args.size}"
        check_run_folder(out, say, force=args.force)
        words = ["streamjoin", "bench", args.name, "--size", args.size]
        command = shlex.join([*words, "--threads", str(threads), "--out", str(out)])
        check_writable(args.data)
        say(f"{experiment.title} ({experiment.source}), {len(experiment.points)} points")
        try:
            records = runner.run_experiment(
                experiment, runner.RunFolders(out, args.data, threads), command, progress, say
            )
        except KeyboardInterrupt:
            say(f"finished points are kept in {out}; to go on, type {command}")
            raise
        page = write_run(records, out, say)
        if args.json:
            print_json(records)
        else:
            _print(records)
        say(f"the page is {page}")
        return 0 if all(record["status"] == "ok" for record in records["records"]) else 1


def _list(args: argparse.Namespace) -> int:
    rows = []
    for name in experiments.names():
        sized = {size: experiments.read(name, size) for size in experiments.SIZES}
        points = {size: len(each.points) for size, each in sized.items()}
        about = sized["full"]
        rows.append({"experiment": name, **points, "source": about.source, "title": about.title})
    if args.json:
        print_json(rows)
        return 0
    headings = ["experiment", "quick", "full", "title"]
    print_table(
        headings,
        [[str(row[heading]) for heading in headings] for row in rows],
        {"quick", "full"},
    )
    say("quick and full count the points of each size; --json has the sources too")
    return 0


def _print(records: dict[str, Any]) -> None:
    baseline = records["experiment"]["baseline"]
    serves = any("semi_stream" in record for record in records["records"])
    figures.print_apart(records, partial(_print_results, baseline, serves))
    _print_claims(records["experiment"]["claims"])


def _print_results(baseline: str, serves: bool, results: figures.Results) -> None:
    latencies = figures.latency_headings(results, ("p95",))
    clock = figures.clock_heading(results)
    call = figures.call_heading(results)
    headings = ["point", "engine", "threads", *call, "tuples/s", "min to max", *clock]
    headings += ["service/s"] if serves else []
    headings += [
        f"times\n{baseline}",
        *latencies,
        "last match",
        "CPU",
        "peak",
        "of limit",
        "checked",
    ]
    rates = {}
    for workload, result in results:
        rate = _service_rate(result) if serves else result.throughput
        rates[id(workload), result.name, result.clock] = rate
    rows = []
    for workload, result in results:
        record = result.record
        # Measured figures are never divided by simulated ones, nor by those of another clock.
        rate, base = (
            rates.get((id(workload), name, result.clock)) for name in (result.name, baseline)
        )
        spread = record.get("throughput_tuples_per_s") or {}
        curve = record.get("progress") or []
        share, peak = record.get("share_of_limit"), record.get("peak_bytes")
        cpu = result.spread("cpu_s")
        several = record.get("rounds") != 1
        rows.append(
            [
                str(workload.workload["name"]),
                result.name,
                str(record["threads"]),
                *([figures.call_text(result)] if call else []),
                si(result.throughput),
                f"{si(spread.get('min'))} to {si(spread.get('max'))}" if several else "one round",
                *([figures.clock_text(result)] if clock else []),
                *([si(rate)] if serves else []),
                f"{rate / base:.2f}" if rate and base else "-",
                *figures.latency_cells(result, latencies),
                duration(curve[-1][1] * 1e3) if curve else "-",
                duration(cpu["median"] * 1e6) if cpu else "-",
                f"{peak / 2**20:.0f} MiB" if peak is not None else "-",
                f"{share:.0%}" if share else "-",
                figures.verdict(result, str(workload.workload["oracle"])),
            ]
        )
    print_table(
        headings,
        rows,
        {*headings} - {"point", "engine", "clock", "checked"},
        ("min to max", "peak", "CPU", "of limit", *latencies, "last match", "threads"),
    )


def _service_rate(result: Result) -> float | None:
    rate = (result.record.get("semi_stream") or {}).get("service_rate_tuples_per_s")
    return None if rate is None else float(rate)


def _print_claims(claims: list[dict[str, Any]]) -> None:
    if not claims:
        return
    for claim in claims:
        print_paragraph(f"published: {claim['text']}")
        print_paragraph(f"{claim['published']:.3g} x there; here {claim_said(claim)}", 4)


VERB = BenchVerb()
