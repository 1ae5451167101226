"""``streamjoin bench``: published experiments."""

import argparse
import os
import shlex
from functools import partial
from pathlib import Path
from typing import Any

from streamjoin.bench import experiments, points, runner
from streamjoin.bench.live import PREDICATES
from streamjoin.cli import figures
from streamjoin.cli.benchmarks import calls, cpu_fpga, listing, live, regress
from streamjoin.cli.benchmarks.kept import alone, says_how_to_go_on
from streamjoin.cli.benchmarks.own_help import EPILOG, Name
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
from streamjoin.errors import InputError, StreamJoinError
from streamjoin.report import claims as claims_page
from streamjoin.report import stored
from streamjoin.report.records import RECORDS_FILE
from streamjoin.report.results import Result
from streamjoin.report.run_folder import check_run_folder, write_run
from streamjoin.report.sentences import claim_figure, claim_published, claim_said
from streamjoin.report.stored import crossover
from streamjoin.run import check_options
from streamjoin_common import storage
from streamjoin_common.installed.completing import complete
from streamjoin_common.storage import check_writable

OWN_TABLES = {"calls": calls.run, "live": live.run, "cpu-fpga": cpu_fpga.run}
"""Benchmarks of their own kind, by name."""


RUNS, DATA = Path("runs/bench"), Path("runs/workloads")

PREDICATE = "int64"
"""Predicate of ``bench live`` where none is asked for."""


class BenchVerb:
    """Runs an experiment."""

    help = "Published experiments: every figure checked, resumable, one report."

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the verb's flags."""
        parser.epilog = EPILOG
        name = parser.add_argument(
            "name",
            action=Name,
            metavar="NAME",
            help=f"{', '.join(experiments.OTHERS)}, an experiment, or a TOML file; list says what "
            "each is",
        )
        parser.add_argument(
            "records",
            nargs="*",
            type=Path,
            metavar="RECORD",
            help="regress: two records or runs of experiments, calls or live, or folders of them; "
            "the earlier one first",
        )
        complete(
            name,
            lambda _: [*experiments.OTHERS, *experiments.names()],
            files=True,
        )
        parser.add_argument(
            "--size", choices=experiments.SIZES, default="quick", help="of the experiment's points"
        )
        parser.add_argument(
            "--threads",
            type=int,
            help="default: all processors; calls and live: 1, and CPU time is shown; cpu-fpga: 1",
        )
        predicates = parser.add_argument(
            "--predicates",
            default=PREDICATE,
            metavar="A,B,...",
            help=f"live: what to join by, all or of {', '.join(PREDICATES)}; default %(default)s",
        )
        complete(predicates, lambda _: ["all", *PREDICATES])
        parser.add_argument(
            "--out",
            type=Path,
            metavar="RUN",
            help="default runs/bench/NAME-SIZE; claims: a page in Markdown",
        )
        parser.add_argument(
            "--data", type=Path, default=DATA, metavar="DIR", help="where workloads are made"
        )
        parser.add_argument(
            "--record",
            type=Path,
            metavar="DIR",
            help="store a small record of a run whose results are right, DIR/NAME-SIZE.json",
        )
        parser.add_argument("--force", action="store_true", help=FORCE_HELP)
        parser.add_argument("--json", action="store_true", help="print the records as JSON")

    def run(self, args: argparse.Namespace) -> int:
        """Run or list; 1 if any result is wrong or missing."""
        threads = (os.cpu_count() or 1) if args.threads is None else args.threads
        if args.name == "regress":
            return regress.run(args)
        if args.records:
            raise InputError(f"bench {args.name} takes no {args.records[0]}: only regress does")
        if args.record is not None and args.name in {"list", "claims", "calls", "live"}:
            raise InputError(f"bench {args.name} is no experiment: drop --record {args.record}")
        if args.predicates != PREDICATE and args.name != "live":
            given = f"--predicates {args.predicates}"
            raise InputError(f"bench {args.name} takes no {given}: only live does")
        for path in filter(None, (args.record, args.out)):
            check_writable(path)
        if args.name == "list":
            return listing.run(args)
        if args.name == "claims":
            return _claims(args)
        check_options(threads=threads, speedup=1.0, order="none", arrival="instant")
        if args.name == "live":  # keeps nothing of what is not finished
            return live.run(args)
        if args.name == "all" and args.out is not None:
            raise InputError(f"all experiments write to {RUNS}: drop --out {args.out}")
        own = RUNS / f"{Path(args.name).stem}-{args.size}"
        with says_how_to_go_on(RUNS if args.name == "all" else args.out or own, _typed(args)):
            if args.name in OWN_TABLES:
                return OWN_TABLES[args.name](args)
            return _all(args, threads) if args.name == "all" else _run(args, args.name, threads)


def _typed(args: argparse.Namespace) -> str:
    """Return the command that goes on where this one ends: without ``--force``, which begins."""
    words = ["streamjoin", "bench", args.name, "--size", args.size]
    for flag in ("threads", "out", "record", "data"):
        given = getattr(args, flag)
        if given is not None and (flag, given) != ("data", DATA):
            words += [f"--{flag}", str(given)]
    return shlex.join([*words, *(["--json"] if args.json else [])])


def _all(args: argparse.Namespace, threads: int) -> int:
    """Run every experiment, then CPU beside FPGA; 1 if any result is wrong or missing."""
    status = 0
    every = [experiments.read(name, args.size) for name in experiments.names()]
    try:
        runner.generate_all(every, RUNS, args.data)
    except StreamJoinError as error:  # each experiment tries again to make its own
        say(str(error))
    names = [*experiments.names(), crossover.NAME]
    for number, name in enumerate(names, start=1):
        say(f"experiment {number} of {len(names)}: {name}")
        try:
            if name == crossover.NAME:
                done = cpu_fpga.run(argparse.Namespace(**{**vars(args), "threads": None}))
            else:
                done = _run(args, name, threads)
            status = max(status, done)
        except StreamJoinError as error:  # one that lacks a package does not end the others
            say(f"{name}: {error}")
            status = 1
    return status


def _run(args: argparse.Namespace, name: str, threads: int) -> int:
    """Run one experiment; 1 if any result is wrong or missing."""
    experiment = experiments.read(name, args.size)
    runner.check(experiment, args.size)
    out = args.out or RUNS / f"{experiment.name}-{args.size}"
    check_run_folder(out, say, force=args.force, whose=(experiment.name, args.size))
    words = ["streamjoin", "bench", name, "--size", args.size]
    words += ["--data", str(args.data)] if args.data != DATA else []
    words += ["--record", str(args.record)] if args.record else []
    command = shlex.join([*words, "--threads", str(threads), "--out", str(out)])
    check_writable(args.data)
    say(f"{experiment.title} ({experiment.source}), {len(experiment.points)} points")
    measured: list[str] = []

    def show(what: str) -> Any:
        measured.append(what)
        return progress(what)

    with alone(out / points.FOLDER):
        records = runner.run_experiment(
            experiment, runner.RunFolders(out, args.data, threads), command, show, say
        )
    page = write_run(records, out, say)
    if args.json:
        print_json(records)
    elif measured or args.name != "all":  # all shows once what it measured
        _print(records)
    say(f"the page is {page}")
    wrong = stored.wrong_results(records)
    if args.record and wrong:
        say(f"no record is stored: {wrong[0]}")
    elif args.record:
        say(f"the record is {stored.store(records, args.record)}")
    failed = any(record["status"] != "ok" for record in records["records"])
    return 1 if failed or (args.record and wrong) else 0


def _claims(args: argparse.Namespace) -> int:
    """Judge every claim by the records of the runs that there are; nothing is run.

    Wrong and unchecked results have no figures; they are named, and the status is 1.
    """
    judged, missing, wrong = [], [], []
    for name in experiments.names():
        experiment = experiments.read(name, args.size)
        folder = RUNS / f"{name}-{args.size}"
        if not experiment.claims:
            continue
        if not (folder / RECORDS_FILE).is_file():
            missing.append(name)
            continue
        run = _stored(folder, name, args.size)
        wrong += [f"{folder}: {each}" for each in stored.wrong_results(run)]
        if stale := experiments.changed(experiment, run):
            say(f"{folder}: {stale}")
        held = [claim.held(run["records"]) for claim in experiment.claims]
        judged.append(claims_page.Judged(name, run, held))
    if missing:
        say(f"{RUNS} has no run at size {args.size} of {', '.join(missing)}")
    if not judged:
        raise InputError(
            f"{RUNS} has no run with claims at size {args.size}: type  streamjoin bench iawj-real "
            f"--size {args.size}"
        )
    command = shlex.join(["streamjoin", "bench", "claims", "--size", args.size])
    if args.out is not None:
        storage.write_text(args.out, claims_page.page(judged, f"{command} --out PAGE"))
        say(f"the page is {args.out}")
    if args.json:
        print_json([{"experiment": each.experiment, "claims": each.claims} for each in judged])
        return _told(wrong)
    rows = [
        [
            ", ".join(claim["figures"]),
            claim_published(claim),
            claim_figure(claim),
            claim["verdict"],
            each.experiment,
        ]
        for each in judged
        for claim in each.claims
    ]
    print_table(["figure", "there", "here", "verdict", "experiment"], rows, {"there", "here"})
    say(claims_page.counted(judged))
    return _told(wrong)


def _stored(folder: Path, name: str, size: str) -> dict[str, Any]:
    """Read the run of an experiment at a size; refuse another one that lies in its folder."""
    run = stored.read(folder / RECORDS_FILE)
    about = run["experiment"]
    if (about["name"], about["size"]) != (name, size):
        raise InputError(
            f"{folder / RECORDS_FILE}: is of {about['name']} at size {about['size']}, not of "
            f"{name} at size {size}"
        )
    return run


def _told(wrong: list[str]) -> int:
    """Name wrong results; 1 if there are any."""
    for each in wrong:
        say(f"{each}: its figures count for nothing")
    return 1 if wrong else 0


def _print(records: dict[str, Any]) -> None:
    baseline = records["experiment"]["baseline"]
    serves = any(record.get("semi_stream") for record in records["records"])
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
        verdict = f"{claim['verdict']}: " if "verdict" in claim else ""
        print_paragraph(f"{verdict}{claim_published(claim)} there; here {claim_said(claim)}", 4)


VERB = BenchVerb()
