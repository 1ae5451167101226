"""The verb ``streamjoin data``: generate and import workloads.

Importing this module is cheap; Spark and Arrow are imported when something is to be done.
"""

import argparse
import functools
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamjoin_common.language.arrivals import UNITS
from streamjoin_common.printing import printable
from streamjoin_datagen.errors import SpecError, require
from streamjoin_datagen.params import SPECS
from streamjoin_datagen.usage import epilog

if TYPE_CHECKING:
    from streamjoin_datagen.generate import Progress
    from streamjoin_datagen.session.session import Session
    from streamjoin_datagen.spec import WorkloadSpec
    from streamjoin_datagen.store import Outcome


@dataclass(frozen=True)
class _Job:
    """One workload to make: what is known of it, and how it is made."""

    known: dict[str, Any]
    out: Path
    make: Callable[["Session | None", "Progress"], "Outcome"]
    needs_spark: bool = True


class DataVerb:
    """The verb ``data`` as the command line finds it."""

    help = "generate or import the two streams of a workload"

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the verb's arguments."""
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.epilog = epilog()
        add = parser.add_argument
        add(
            "what",
            nargs="+",
            metavar="WORKLOAD",
            help="a kind listed below, SUITE.toml, or: import KIND FILE...",
        )
        add(
            "--param",
            nargs="+",
            action="extend",
            default=[],
            metavar="K=V",
            help="parameters of a generated workload, listed below",
        )
        add("--seed", type=int, metavar="N", help="seed; required for every generated workload")
        add("--out", required=True, type=Path, metavar="DIR", help="folder to write")
        add("--partitions", type=int, metavar="P", help="Spark partitions; changes no byte")
        add("--threads", type=int, metavar="T", help="tasks at a time; every core by default")
        add("--master", metavar="URL", help="Spark master, such as spark://HOST:7077")
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
            raise SpecError("--threads does not go with --master: it says so itself")
        if args.what[0] == "speed":
            return _speed(args)
        outcomes = _make(_jobs(args), args.threads, args.master)
        if args.json:
            print(json.dumps([_plain(outcome) for outcome in outcomes], indent=2))
        else:
            _print_table(outcomes)
        return 0


VERB = DataVerb()

IMPORTS = ("flights", "csv", "parquet", "alliancedb", "tpch")
"""What ``import`` takes, by its first word."""


def _speed(args: argparse.Namespace) -> int:
    """Measure how fast kinds are generated, and print a table."""
    from streamjoin_datagen.session.session import spark_session
    from streamjoin_datagen.speed import measure

    _refuse(
        args,
        "speed",
        ("param", "seed", "partitions", "on", "band", "ts", "ts_unit", "layout", "yes"),
    )
    kinds = args.what[1:] or list(SPECS)
    for kind in kinds:
        require(kind in SPECS, "workload", f"one of {', '.join(SPECS)}", kind)
    if args.out.exists():
        raise SpecError(f"--out must be a new folder, and {args.out} is there: it is removed again")
    found = []
    try:
        with spark_session(args.threads, master=args.master) as session:
            for row in measure(kinds, args.rows, args.out, session):
                found.append(row)
                _say(f"{row['kind']}: {row.get('missing', 'measured')}")
    finally:
        shutil.rmtree(args.out, ignore_errors=True)
    done = [row for row in found if "missing" not in row]
    if args.json:
        print(json.dumps(done, indent=2))
        return 0
    _print_columns(
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


def _jobs(args: argparse.Namespace) -> list[_Job]:
    word, *rest = args.what
    if word == "import":
        _refuse(args, "import", ("param", "seed", "partitions", "yes"))
        return [_import_job(args, *rest)]
    _refuse(args, word, ("on", "band", "ts", "ts_unit", "layout"))
    if rest:
        raise SpecError(f"one workload at a time: {word} is followed by {rest[0]}")
    if word.endswith(".toml"):
        _refuse(args, "a suite", ("param", "seed"))
        return _suite_jobs(Path(word), args.out, args.partitions)
    from streamjoin_datagen.params import make_spec, parse_params

    spec = make_spec(word, args.seed, parse_params(args.param))
    if not args.yes:
        from streamjoin_datagen.generate import check_size

        check_size(spec)
    return [_spec_job(spec, args.out, None, args.partitions)]


def _refuse(args: argparse.Namespace, what: str, flags: tuple[str, ...]) -> None:
    for flag in flags:
        if getattr(args, flag) not in (None, [], False):
            written = flag.replace("_", "-")
            raise SpecError(f"--{written} does not go with {what}: leave it out")


def _spec_job(spec: "WorkloadSpec", out: Path, name: str | None, partitions: int | None) -> _Job:
    from streamjoin_datagen.generate import generate, known

    def make(session: "Session | None", progress: "Progress") -> "Outcome":
        assert session is not None
        return generate(spec, out, session, name=name, partitions=partitions, progress=progress)

    return _Job(known(spec, name), out, make)


def _flights_job(files: list[str], out: Path, name: str | None = None) -> _Job:
    from streamjoin_datagen.imports.flights import flight_files, flights_identity, import_flights

    found = flight_files(files)

    def make(session: "Session | None", progress: "Progress") -> "Outcome":
        assert session is not None
        outcome = import_flights(found, out, session, name=name)
        progress(1, 1)
        return outcome

    return _Job(flights_identity(found, name), out, make)


def _master_job(master: str, out: Path, name: str | None = None) -> _Job:
    from streamjoin_datagen.imports.flight_dimensions import (
        import_masters,
        master_files,
        master_identity,
    )

    found = master_files(master)

    def make(session: "Session | None", progress: "Progress") -> "Outcome":
        assert session is None
        outcome = import_masters(master, found, out, name=name)
        progress(1, 1)
        return outcome

    return _Job(master_identity(master, found, name), out, make, needs_spark=False)


def _suite_jobs(path: Path, out: Path, partitions: int | None) -> list[_Job]:
    from streamjoin_datagen.suites import read_suite

    jobs = []
    for entry in read_suite(path).entries:
        folder = out / entry.name
        if entry.master is not None:
            jobs.append(_master_job(entry.master, folder, entry.name))
        elif entry.spec is None:
            jobs.append(_flights_job([], folder, entry.name))
        else:
            jobs.append(_spec_job(entry.spec, folder, entry.name, partitions))
    return jobs


def _import_job(args: argparse.Namespace, kind: str = "", *files: str) -> _Job:
    if kind == "flights":
        _refuse(args, "import flights", ("on", "band", "ts", "ts_unit", "layout"))
        if len(files) == 1 and not Path(files[0]).exists():
            return _master_job(files[0], args.out)
        return _flights_job(list(files), args.out)
    if kind not in IMPORTS:
        raise SpecError(f"import takes {', '.join(IMPORTS[:-1])} or {IMPORTS[-1]}, not {kind!r}")
    if kind != "alliancedb":
        _refuse(args, f"import {kind}", ("layout",))
    if len(files) != 2:
        raise SpecError(f"import {kind} takes the file of R and that of S, not {len(files)} files")
    from streamjoin_common.language.arrivals import Arrivals
    from streamjoin_common.language.predicates import Predicate
    from streamjoin_datagen.imports import files as imports
    from streamjoin_datagen.imports import layouts

    paths = {"r": Path(files[0]), "s": Path(files[1])}
    window, ts, reader = "all", args.ts, imports.csv_table
    if kind in ("csv", "parquet"):
        predicate = Predicate.parse(args.on, args.band)
        if kind == "parquet":
            reader = imports.parquet_table
    else:
        _refuse(args, f"import {kind}", ("on", "band", "ts", "ts_unit"))
        layout = layouts.TPCH
        if kind == "alliancedb":
            names = layouts.LAYOUTS
            require(args.layout in names, "--layout", f"one of {', '.join(names)}", args.layout)
            layout = names[args.layout]
        predicate, window = Predicate.parse("k"), layout.window
        ts, reader = None, functools.partial(layouts.read_layout, layout)
    arrivals = Arrivals.parse(ts, args.ts_unit)
    known = imports.tables_identity(
        kind, paths, predicate, ts, ts_unit=args.ts_unit, layout=args.layout, window=window
    )

    def make(session: "Session | None", progress: "Progress") -> "Outcome":
        assert session is None
        outcome = imports.import_tables(known, paths, args.out, predicate, arrivals, reader=reader)
        progress(1, 1)
        if args.ts not in (None, "ts"):
            _say(f"the arrival column {args.ts!r} is named ts in the workload")
        return outcome

    return _Job(known, args.out, make, needs_spark=False)


def _make(jobs: list[_Job], threads: int | None, master: str | None) -> list["Outcome"]:
    """Make what is not there yet, all in one Spark session."""
    from streamjoin_datagen.store import STREAMS, Outcome, earlier, unchanged

    found: dict[Path, Outcome] = {}
    for job in jobs:
        started = time.monotonic()
        there = unchanged(job.out, job.known)
        if there is not None:
            rows, size = (sum(there[s][what] for s in STREAMS) for what in ("rows", "bytes"))
            seconds = time.monotonic() - started
            name = job.known["name"]
            found[job.out] = Outcome(name, "unchanged", job.out, rows, size, seconds)
            _say(f"{job.out} already holds {name}: left as it is")
        elif (other := earlier(job.out)) is not None:
            _say(f"{job.out} holds {other['name']}: {job.known['name']} takes its place")
    wanted = [job for job in jobs if job.out not in found]
    try:
        with ExitStack() as stack:
            session = None
            show = stack.enter_context(_progress_bars(len(wanted))) if wanted else None
            for job in wanted:
                assert show is not None
                progress = show(job)
                if job.needs_spark and session is None:
                    from streamjoin_datagen.session.session import spark_session

                    session = stack.enter_context(spark_session(threads, master=master))
                found[job.out] = job.make(session if job.needs_spark else None, progress)
    except KeyboardInterrupt:
        # With every workload in its place only Spark had still to end, and it has.
        if len(found) < len(jobs):
            raise
    return [found[job.out] for job in jobs]


@contextmanager
def _progress_bars(jobs: int) -> Iterator[Callable[[_Job], "Progress"]]:
    """Show on a terminal's stderr how far each workload is; elsewhere, a line for each."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        places = iter(range(1, jobs + 1))

        def show(job: _Job) -> Callable[[int, int], None]:
            name = job.known["name"]
            if not console.is_terminal:
                doing = "generating" if job.known["kind"] in SPECS else "importing"
                _say(f"{doing} {name}{' with Spark' if job.needs_spark else ''}")
            bar = bars.add_task(f"{next(places)}/{jobs} {printable(name)}", total=None)
            return lambda done, parts: bars.update(bar, completed=done, total=parts)

        yield show


def _say(message: str) -> None:
    print(printable(message), file=sys.stderr, flush=True)


def _plain(outcome: "Outcome") -> dict[str, Any]:
    return {
        "workload": outcome.workload,
        "status": outcome.status,
        "path": str(outcome.folder),
        "rows": outcome.rows,
        "bytes": outcome.bytes,
        "seconds": round(outcome.seconds, 3),
    }


def _print_table(outcomes: list["Outcome"]) -> None:
    _print_columns(
        ("workload", "status", "rows", "bytes", "seconds"),
        [
            (o.workload, o.status, f"{o.rows:,}", f"{o.bytes:,}", f"{o.seconds:.2f}")
            for o in outcomes
        ],
        left=2,
    )


def _print_columns(head: tuple[str, ...], rows: list[tuple[str, ...]], *, left: int) -> None:
    """Print a table, its first columns aligned on the left."""
    lines = [tuple(printable(text) for text in line) for line in (head, *rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(head))]
    for line in lines:
        padded = [
            text.ljust(width) if place < left else text.rjust(width)
            for place, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(padded).rstrip())
