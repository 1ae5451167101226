"""``streamjoin compare``: several engines side by side."""

import argparse
import os
import shlex
from dataclasses import replace
from pathlib import Path

from streamjoin.bench.compare import compare
from streamjoin.bench.suites import read_suite
from streamjoin.bench.workloads import DEFAULT_ROUNDS, Comparison, read_workload
from streamjoin.cli import figures, options
from streamjoin.cli.terminal import print_json, print_table, progress, say, si
from streamjoin.engines import catalog
from streamjoin.errors import InputError
from streamjoin.report.run_folder import check_run_folder, write_run
from streamjoin_common.language.kinds import parse_how

EPILOG = """\
examples:
  streamjoin compare runs/workloads/band --engines kang,fpga-handshake --out runs/first
  streamjoin compare benchmarks/workloads/small.toml --out runs/small
"""


class CompareVerb:
    """Compares engines on a workload or a suite of them."""

    help = "Several engines side by side on one workload or a suite, each checked, one report."

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the verb's flags."""
        parser.epilog = EPILOG
        parser.add_argument("what", type=Path, metavar="DIR|SUITE.toml")
        parser.add_argument("--engines", metavar="A,B,...", help="a suite names its own")
        parser.add_argument("--window", help="instead of the workload's own")
        options.add_predicate(parser)
        options.add_how(parser)
        parser.add_argument("--out", type=Path, required=True, metavar="RUN", help="a folder")
        parser.add_argument(
            "--data",
            type=Path,
            default=Path("runs/workloads"),
            metavar="DIR",
            help="where a suite's workloads are made; default runs/workloads",
        )
        parser.add_argument("--rounds", type=int, help=f"measured rounds; default {DEFAULT_ROUNDS}")
        parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
        options.add_max_pairs(parser)
        parser.add_argument("--json", action="store_true", help="print the records as JSON")

    def run(self, args: argparse.Namespace) -> int:
        """Run, write the page, print the table; 1 if any result is wrong or missing."""
        check_run_folder(args.out, say)
        title, comparisons = _comparisons(args)
        for comparison in comparisons:
            for name in comparison.engines:
                catalog.get(name)
        command = shlex.join(["streamjoin", *_words(args)])
        records = compare(comparisons, title, command, progress, say)
        page = write_run(records, args.out, say)
        if args.json:
            print_json(records)
        else:
            figures.print_apart(records, _print)
        say(f"the page is {page}")
        return 0 if all(record["status"] == "ok" for record in records["records"]) else 1


def _comparisons(args: argparse.Namespace) -> tuple[str, list[Comparison]]:
    if args.what.suffix == ".toml":
        for flag in ("engines", "window", "on", "band"):
            if getattr(args, flag):
                raise InputError(f"--{flag} does not go with a suite: it names its own")
        if args.how != "inner":
            raise InputError("--how does not go with a suite: its workloads are joined inner")
        name, comparisons = read_suite(args.what, args.data, args.threads)
    else:
        if not args.engines:
            raise InputError("--engines is needed, as kang,fpga-handshake; see streamjoin engines")
        only = read_workload(args.what, tuple(args.engines.split(",")), args.threads)
        only = replace(options.on_workload(args, only), how=parse_how(args.how))
        name, comparisons = only.name, [only]
    if args.rounds is not None:
        comparisons = [replace(each, rounds=args.rounds) for each in comparisons]
    if args.max_pairs is not None:
        comparisons = [replace(each, max_pairs=args.max_pairs) for each in comparisons]
    return name, comparisons


def _words(args: argparse.Namespace) -> list[str]:
    """The command line that repeats this run."""
    words = ["compare", str(args.what)]
    for flag in ("engines", "window", "rounds", "max-pairs"):
        value = getattr(args, flag.replace("-", "_"))
        if value is not None:
            words += [f"--{flag}", str(value)]
    if args.how != "inner":
        words += ["--how", args.how]
    for flag in ("on", "band"):
        for value in getattr(args, flag) or ():
            words += [f"--{flag}", value]
    return [*words, "--threads", str(args.threads), "--out", str(args.out)]


def _print(results: figures.Results) -> None:
    latencies = figures.latency_headings(results, ("p50", "p99"))
    clock = figures.clock_heading(results)
    cycles = ["cycles"] if any(result.record.get("cycles") for _, result in results) else []
    headings = ["workload", "window", "engine", "platform", "tuples/s", *latencies, "pairs"]
    headings += [*cycles, *clock, "checked"]
    rows = []
    for workload, result in results:
        record = result.record
        rows.append(
            [
                str(workload.workload["name"]),
                str(workload.workload["window"]),
                result.name,
                str(record["platform"]),
                si(result.throughput),
                *figures.latency_cells(result, latencies),
                f"{record['pairs']:,}" if "pairs" in record else "-",
                *([f"{record['cycles']:,}" if record.get("cycles") else "-"] if cycles else []),
                *([figures.clock_text(result)] if clock else []),
                figures.verdict(result, str(workload.workload["oracle"])),
            ]
        )
    late = latencies[1::2] + latencies[::2]
    print_table(
        headings,
        rows,
        {"tuples/s", *latencies, "pairs", "cycles"},
        ("platform", "window", *late, "cycles", "pairs"),
    )


VERB = CompareVerb()
