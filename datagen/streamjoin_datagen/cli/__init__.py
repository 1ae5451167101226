"""The verb ``streamjoin data``: generate and import workloads.

Importing this module is cheap; Spark and Arrow are imported when something is to be done.
"""

import argparse
import dataclasses
import json
import shutil
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamjoin_common.installed import shipped
from streamjoin_common.installed.completing import complete
from streamjoin_common.language.arrivals import UNITS
from streamjoin_datagen.cli.jobs import IMPORTS, Job, jobs_of, refuse
from streamjoin_datagen.cli.output import plain, print_columns, print_outcomes, progress_bars, say
from streamjoin_datagen.cli.usage import epilog
from streamjoin_datagen.errors import SpecError, require_known
from streamjoin_datagen.params import SPECS

if TYPE_CHECKING:
    from streamjoin_datagen.store import Outcome


class DataVerb:
    """The verb ``data`` as the command line finds it."""

    help = "generate or import the two streams of a workload"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the verb's arguments."""
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.epilog = epilog()
        add = parser.add_argument
        what = add(
            "what",
            nargs="+",
            metavar="WORKLOAD",
            help="a kind or suite listed below, or: import KIND FILE...",
        )
        complete(what, _whats, files=True)
        param = add(
            "--param",
            nargs="+",
            action="extend",
            default=[],
            metavar="K=V",
            help="parameters of a generated workload, listed below",
        )
        complete(param, _params)
        add("--seed", type=int, metavar="N", help="seed; required for every generated workload")
        add("--out", required=True, type=Path, metavar="DIR", help="folder to write")
        add("--partitions", type=int, metavar="P", help="Spark partitions; changes no byte")
        add("--threads", type=int, metavar="T", help="tasks at a time; every core by default")
        add("--master", metavar="URL", help="Spark URL, such as spark://HOST:7077")
        add("--yes", action="store_true", help="make it although its result is very large")
        add(
            "--on",
            action="append",
            default=[],
            metavar="COL[=COL][,COL...]",
            help="equal columns of an import",
        )
        add(
            "--band",
            action="append",
            default=[],
            metavar="COL=COL:LO:HI",
            help="banded columns of an import",
        )
        add("--ts", metavar="COL[=COL]", help="arrival column of an import, ts by default")
        add("--ts-unit", choices=UNITS, help="what an import's arrival times count; default us")
        add("--layout", metavar="NAME", help="of import alliancedb: stock, rovio, ysb or debs")
        add("--rows", type=int, metavar="N", default=20_000_000, help="of speed, for each kind")
        add("--json", action="store_true", help="print the table as JSON")

    def run(self, args: argparse.Namespace) -> int:
        """Make the workloads, print what was made, and return the exit status."""
        for flag in ("partitions", "threads"):
            value = getattr(args, flag)
            if value is not None and value < 1:
                raise SpecError(f"--{flag} must be at least 1, not {value}")
        if args.master and args.threads:
            raise SpecError("--threads does not go with --master: the cluster sets it")
        if args.what[0] == "speed":
            return _speed(args)
        outcomes = _make(jobs_of(args), args.threads, args.master)
        if args.json:
            print(json.dumps([plain(outcome) for outcome in outcomes], indent=2))
        else:
            print_outcomes(outcomes)
        return 0


VERB = DataVerb()


def _whats(typed: argparse.Namespace) -> list[str]:
    """List what a shell completes as the workload, or behind ``import``."""
    if getattr(typed, "what", None) == ["import"]:
        return list(IMPORTS)
    return [*SPECS, *shipped.names(shipped.SUITES), "import", "speed"]


def _params(typed: argparse.Namespace) -> list[str]:
    """List the parameters of the workload that is typed."""
    kind = SPECS[typed.what[0]]
    return [f"{field.name}=" for field in dataclasses.fields(kind) if field.name != "seed"]


def _speed(args: argparse.Namespace) -> int:
    """Measure how fast kinds are generated, and print a table."""
    from streamjoin_datagen.session import spark_session
    from streamjoin_datagen.speed import measure

    refuse(
        args,
        "speed",
        ("param", "seed", "partitions", "on", "band", "ts", "ts_unit", "layout", "yes"),
    )
    kinds = args.what[1:] or list(SPECS)
    for kind in kinds:
        require_known(kind, SPECS, "workload")
    if args.out.exists():
        raise SpecError(
            f"--out must be a new folder, which is removed again, and {args.out} is there: name "
            "another"
        )
    rows: list[dict[str, Any]] = []
    try:
        with spark_session(args.threads, spark_url=args.master) as session:
            for row in measure(kinds, args.rows, args.out, session):
                rows.append(row)
                say(f"{row['kind']}: {row.get('missing', 'measured')}")
    finally:
        shutil.rmtree(args.out, ignore_errors=True)
    done = [row for row in rows if "missing" not in row]
    if args.json:
        print(json.dumps(done, indent=2))
        return 0
    print_columns(
        ("workload", "rows", "rows/s", "rows/CPU s", "NumPy rows/CPU s", "bytes a row"),
        [
            (
                row["kind"],
                f"{row['rows']:,}",
                f"{row['rows_per_s'] / 1e6:.1f} M",
                f"{row['rows_per_cpu_s'] / 1e6:.1f} M",
                f"{row['numpy_rows_per_cpu_s'] / 1e6:.1f} M",
                f"{row['bytes'] / row['rows']:.1f}",
            )
            for row in done
        ],
        left=1,
    )
    return 0


def _make(jobs: list[Job], threads: int | None, spark_url: str | None) -> list["Outcome"]:
    """Make what is not there yet, all in one Spark session."""
    from streamjoin_datagen.store import STREAMS, Outcome, earlier, unchanged

    outcomes: dict[Path, Outcome] = {}
    for job in jobs:
        started = time.monotonic()
        there = unchanged(job.out, job.known)
        if there is not None:
            row_count, size = (sum(there[s][what] for s in STREAMS) for what in ("rows", "bytes"))
            seconds = time.monotonic() - started
            name = job.known["name"]
            outcomes[job.out] = Outcome(name, "unchanged", job.out, row_count, size, seconds)
            if len(jobs) == 1:
                say(f"{job.out} already holds {name}: unchanged")
        elif (other := earlier(job.out)) is not None:
            say(f"{job.out} holds {other['name']}: {job.known['name']} replaces it")
    wanted = [job for job in jobs if job.out not in outcomes]
    if outcomes and len(jobs) > 1:
        say(f"{len(outcomes)} of {len(jobs)} workloads are there already: unchanged")
    if any(job.needs_spark for job in wanted):
        from streamjoin_datagen.session import check_installed

        check_installed()
    try:
        with ExitStack() as stack:
            session = None
            show = stack.enter_context(progress_bars(len(wanted))) if wanted else None
            for job in wanted:
                assert show is not None
                progress = show(job.known["name"], job.announcement)
                if job.needs_spark and session is None:
                    from streamjoin_datagen.session import spark_session

                    session = stack.enter_context(spark_session(threads, spark_url=spark_url))
                outcomes[job.out] = job.make(session if job.needs_spark else None, progress)
    except KeyboardInterrupt:
        # With every workload written, only Spark still had to end, and it has.
        if len(outcomes) < len(jobs):
            raise
    return [outcomes[job.out] for job in jobs]
