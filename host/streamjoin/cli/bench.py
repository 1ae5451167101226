"""``streamjoin bench``: published experiments."""

import argparse
import os
import shlex
from pathlib import Path
from typing import Any

from streamjoin.bench import experiments, runner
from streamjoin.bench.compare import check_run_folder
from streamjoin.cli.terminal import duration, print_json, print_table, progress, say, si
from streamjoin.run import check_options

EPILOG = """\
examples:
  streamjoin bench list
  streamjoin bench iawj-micro --size quick

An interrupted run goes on where it was when the same command is typed again.
"""


class BenchVerb:
    """Runs an experiment."""

    help = "Published experiments: every figure checked, resumable, one report."

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the verb's flags."""
        parser.epilog = EPILOG
        parser.add_argument("name", metavar="NAME", help="list, an experiment, or a TOML file")
        parser.add_argument("--size", choices=experiments.SIZES, default="quick")
        parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
        parser.add_argument("--out", type=Path, metavar="RUN", help="default runs/bench/NAME-SIZE")
        parser.add_argument("--data", type=Path, default=Path("runs/workloads"), metavar="DIR")
        parser.add_argument("--json", action="store_true", help="print the records as JSON")

    def run(self, args: argparse.Namespace) -> int:
        """Run or list; 1 if any result is wrong or missing."""
        if args.name == "list":
            return _list(args)
        check_options(threads=args.threads, speedup=1.0, order="none", arrival="instant")
        experiment = experiments.read(args.name, args.size)
        runner.check(experiment, args.size)
        out = args.out or Path("runs/bench") / f"{experiment.name}-{args.size}"
        check_run_folder(out, say)
        words = ["streamjoin", "bench", args.name, "--size", args.size]
        command = shlex.join([*words, "--threads", str(args.threads), "--out", str(out)])
        say(f"{experiment.title} ({experiment.source}), {len(experiment.points)} points")
        try:
            records, page = runner.run_experiment(
                experiment, runner.Place(out, args.data, args.threads), command, progress, say
            )
        except KeyboardInterrupt:
            say(f"finished points are kept in {out}; to go on, type {command}")
            raise
        if args.json:
            print_json(records)
        else:
            _print(records)
        say(f"the page is {page}")
        return 0 if all(record["status"] == "ok" for record in records["records"]) else 1


def _list(args: argparse.Namespace) -> int:
    rows = []
    for name in experiments.names():
        found = {size: experiments.read(name, size) for size in experiments.SIZES}
        points = {size: len(each.points) for size, each in found.items()}
        about = found["full"]
        rows.append({"experiment": name, **points, "source": about.source, "title": about.title})
    if args.json:
        print_json(rows)
        return 0
    headings = ["experiment", "quick", "full", "title", "source"]
    print_table(
        headings,
        [[str(row[heading]) for heading in headings] for row in rows],
        {"quick", "full"},
        ("source", "title"),
    )
    return 0


def _print(records: dict[str, Any]) -> None:
    baseline = records["experiment"]["baseline"]
    oracles = {workload["name"]: workload["oracle"] for workload in records["workloads"]}
    serves = any("semi_stream" in record for record in records["records"])
    rates = {
        (record["workload"], record["engine"]): _service_rate(record) if serves else _rate(record)
        for record in records["records"]
    }
    headings = ["point", "engine", "threads", "tuples/s", "min to max"]
    headings += ["service/s"] if serves else []
    headings += [f"x {baseline}", "p95", "last match", "CPU", "peak", "of limit", "checked"]
    rows = []
    for record in records["records"]:
        rate, base = (
            rates.get((record["workload"], engine)) for engine in (record["engine"], baseline)
        )
        spread = record.get("throughput_tuples_per_s") or {}
        curve = record.get("progress") or []
        share = record.get("share_of_limit")
        peak = record.get("peak_bytes")
        cpu_s = _median(record, "cpu_s")
        rows.append(
            [
                record["workload"],
                record["engine"],
                str(record["threads"]),
                si(_rate(record)),
                f"{si(spread.get('min'))} to {si(spread.get('max'))}",
                *([si(rate)] if serves else []),
                f"{rate / base:.2f}" if rate and base else "-",
                duration((record.get("latency_us") or {}).get("p95")),
                duration(curve[-1][1] * 1e3) if curve else "-",
                duration(cpu_s * 1e6) if cpu_s is not None else "-",
                f"{peak / 2**20:.0f} MiB" if peak is not None else "-",
                f"{share:.0%}" if share else "-",
                _verdict(record, oracles[record["workload"]]),
            ]
        )
    print_table(
        headings,
        rows,
        {*headings} - {"point", "engine", "checked"},
        ("min to max", "peak", "CPU", "of limit", "p95", "last match"),
    )
    _print_claims(records["experiment"]["claims"])
    for record in records["records"]:
        if record["error"]:
            say(f"{record['workload']}, {record['engine']}: {record['error']}")


def _rate(record: dict[str, Any]) -> float | None:
    return _median(record, "throughput_tuples_per_s")


def _service_rate(record: dict[str, Any]) -> float | None:
    return (record.get("semi_stream") or {}).get("service_rate_tuples_per_s")


def _median(record: dict[str, Any], name: str) -> float | None:
    found = (record.get(name) or {}).get("median")
    return None if found is None else float(found)


def _print_claims(claims: list[dict[str, Any]]) -> None:
    if not claims:
        return
    rows = []
    for claim in claims:
        found = [claim[key] for key in ("median", "min", "max")]
        here, least, most = ("-" if each is None else f"{each:.2f}" for each in found)
        of = "" if claim["of"] == "throughput" else f" ({claim['of'].replace('_', ' ')})"
        spread = f"{least} to {most}" if claim["points"] else "-"
        there = f"{claim['published']:.3g}"
        rows.append([f"{claim['text']}{of}", there, here, spread, str(claim["points"])])
    headings = ["published", "there x", "here x", "least to most", "points"]
    print_table(headings, rows, {*headings[1:]}, folding="published")


def _verdict(record: dict[str, Any], oracle: str) -> str:
    if not record["checked"]:
        return str(record["status"])
    return "is the check" if record["engine"] == oracle else f"equal to {oracle}"


VERB = BenchVerb()
