"""``streamjoin compare``: several engines side by side."""

import argparse
from pathlib import Path

from streamjoin.bench.workloads import DEFAULT_ROUNDS
from streamjoin.cli import figures, options
from streamjoin.cli.terminal import print_json, print_table, progress, say, si
from streamjoin.verbs import comparison
from streamjoin_common.installed import shipped
from streamjoin_common.installed.completing import complete

EPILOG = """\
examples:
  streamjoin compare runs/workloads/band --engines kang,splitjoin \\
      --out runs/first
  streamjoin compare small --out runs/small
"""


class CompareVerb:
    """Compares engines on a workload or a suite of them."""

    help = "Several engines side by side on a workload or a suite, all checked, one report."

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the verb's flags."""
        parser.epilog = EPILOG
        what = parser.add_argument(
            "what",
            type=Path,
            metavar="DIR|SUITE",
            help="a workload's folder, a suite's TOML file, or a suite: small, medium, large",
        )
        complete(what, lambda _: shipped.names(shipped.SUITES), files=True)
        engines = parser.add_argument("--engines", metavar="A,B,...", help="a suite names its own")
        options.complete_engines(engines, listed=True)
        parser.add_argument("--window", help="instead of the workload's own")
        options.add_predicate(parser)
        options.add_how(parser)
        parser.add_argument("--out", type=Path, required=True, metavar="RUN", help="a folder")
        parser.add_argument(
            "--data",
            type=Path,
            default=comparison.DEFAULT_DATA,
            metavar="DIR",
            help="where a suite's workloads are made",
        )
        parser.add_argument("--rounds", type=int, help=f"measured rounds; default {DEFAULT_ROUNDS}")
        options.add_threads(parser)
        options.add_max_pairs(parser)
        parser.add_argument("--force", action="store_true", help=options.FORCE_HELP)
        parser.add_argument("--json", action="store_true", help="print the records as JSON")

    def run(self, args: argparse.Namespace) -> int:
        """Run, write the page, print the table; 1 if any result is wrong or missing."""
        compared = comparison.compare(
            args.what,
            args.engines,
            on=args.on,
            band=args.band,
            window=args.window,
            how=args.how,
            rounds=args.rounds,
            threads=args.threads,
            max_pairs=args.max_pairs,
            data=args.data,
            out=args.out,
            force=args.force,
            show=progress,
            say=say,
        )
        if args.json:
            print_json(compared.records)
        else:
            figures.print_apart(compared.records, _print)
        say(f"the page is {compared.page}")
        return 0 if compared.ok else 1


def _print(results: figures.Results) -> None:
    latencies = figures.latency_headings(results, ("p50", "p99"))
    clock = figures.clock_heading(results)
    cycles = ["cycles"] if any(result.record.get("cycles") for _, result in results) else []
    kinds = [str(one.workload.get("how") or "inner") for one, _ in results]
    how = ["how"] if set(kinds) - {"inner"} else []
    call = figures.call_heading(results)
    headings = ["workload", "window", *how, "engine", "platform", *call, "tuples/s", *latencies]
    headings += ["pairs", *cycles, *clock, "checked"]
    rows = []
    for (workload, result), kind in zip(results, kinds, strict=True):
        record = result.record
        rows.append(
            [
                str(workload.workload["name"]),
                str(workload.workload["window"]),
                *([kind] if how else []),
                result.name,
                str(record["platform"]),
                *([figures.call_text(result)] if call else []),
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
        {"tuples/s", figures.CALL, *latencies, "pairs", "cycles"},
        ("platform", "window", *late, "cycles", "pairs"),
    )


VERB = CompareVerb()
