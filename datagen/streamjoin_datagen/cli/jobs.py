"""What the command line asks for, as jobs: one a workload, known before it is made."""

import argparse
import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamjoin_common.installed import shipped
from streamjoin_datagen.cli.output import say
from streamjoin_datagen.errors import SpecError, require
from streamjoin_datagen.params import SPECS

if TYPE_CHECKING:
    from streamjoin_datagen.session import Session
    from streamjoin_datagen.session.tasks import Progress
    from streamjoin_datagen.spec import WorkloadSpec
    from streamjoin_datagen.store import Outcome


@dataclass(frozen=True)
class Job:
    """One workload to make: what is known of it, and how it is made."""

    known: dict[str, Any]
    out: Path
    make: Callable[["Session | None", "Progress"], "Outcome"]
    needs_spark: bool = True

    @property
    def announcement(self) -> str:
        """Line that is printed where no progress bar is shown."""
        doing = "generating" if self.known["kind"] in SPECS else "importing"
        return f"{doing} {self.known['name']}{' with Spark' if self.needs_spark else ''}"


IMPORTS = ("flights", "csv", "parquet", "alliancedb", "tpch")
"""What ``import`` takes, by its first word."""


def jobs_of(args: argparse.Namespace) -> list[Job]:
    """Return the jobs that the arguments ask for, checked.

    Raises
    ------
    SpecError
        If they ask for what cannot be made.
    """
    word, *rest = args.what
    if word == "import":
        refuse(args, "import", ("param", "seed", "partitions", "yes"))
        return [_import_job(args, *rest)]
    refuse(args, word, ("on", "band", "ts", "ts_unit", "layout"))
    if rest:
        raise SpecError(f"one workload at a time: {word} is followed by {rest[0]}")
    suite = shipped.suite(Path(word))
    if suite.suffix == ".toml":
        refuse(args, "a suite", ("param", "seed"))
        return _suite_jobs(suite, args.out, args.partitions)
    from streamjoin_datagen.params import make_spec, parse_params

    spec = make_spec(word, args.seed, parse_params(args.param))
    if not args.yes:
        from streamjoin_datagen.generate import check_size

        check_size(spec)
    return [_spec_job(spec, args.out, None, args.partitions)]


def refuse(args: argparse.Namespace, what: str, flags: tuple[str, ...]) -> None:
    """Refuse flags that do not go with what is asked for.

    Raises
    ------
    SpecError
        Naming the first of them.
    """
    for flag in flags:
        if getattr(args, flag) not in (None, [], False):
            written = flag.replace("_", "-")
            raise SpecError(f"--{written} does not go with {what}: remove it")


def _spec_job(spec: "WorkloadSpec", out: Path, name: str | None, partitions: int | None) -> Job:
    from streamjoin_datagen.generate import generate, known

    def make(session: "Session | None", progress: "Progress") -> "Outcome":
        assert session is not None
        return generate(spec, out, session, name=name, partitions=partitions, progress=progress)

    return Job(known(spec, name), out, make)


def _flights_job(files: list[str], out: Path, name: str | None = None) -> Job:
    from streamjoin_datagen.imports.flights import flight_files, flights_identity, import_flights

    paths = flight_files(files)

    def make(session: "Session | None", progress: "Progress") -> "Outcome":
        assert session is None
        outcome = import_flights(paths, out, name=name)
        progress(1, 1)
        return outcome

    return Job(flights_identity(paths, name), out, make, needs_spark=False)


def _dimension_job(dimension: str, out: Path, name: str | None = None) -> Job:
    from streamjoin_datagen.imports.flight_dimensions import (
        dimension_files,
        dimension_identity,
        import_dimension,
    )

    paths = dimension_files(dimension)

    def make(session: "Session | None", progress: "Progress") -> "Outcome":
        assert session is None
        outcome = import_dimension(dimension, paths, out, name=name)
        progress(1, 1)
        return outcome

    return Job(dimension_identity(dimension, paths, name), out, make, needs_spark=False)


def _suite_jobs(path: Path, out: Path, partitions: int | None) -> list[Job]:
    from streamjoin_datagen.suites import read_suite

    jobs = []
    for entry in read_suite(path).entries:
        folder = out / entry.name
        if entry.dimension is not None:
            jobs.append(_dimension_job(entry.dimension, folder, entry.name))
        elif entry.spec is None:
            jobs.append(_flights_job([], folder, entry.name))
        else:
            jobs.append(_spec_job(entry.spec, folder, entry.name, partitions))
    return jobs


def _import_job(args: argparse.Namespace, kind: str = "", *files: str) -> Job:
    if kind == "flights":
        refuse(args, "import flights", ("on", "band", "ts", "ts_unit", "layout"))
        if len(files) == 1 and not Path(files[0]).exists():
            return _dimension_job(files[0], args.out)
        return _flights_job(list(files), args.out)
    if kind not in IMPORTS:
        raise SpecError(f"import takes {', '.join(IMPORTS[:-1])} or {IMPORTS[-1]}, not {kind!r}")
    if kind != "alliancedb":
        refuse(args, f"import {kind}", ("layout",))
    if len(files) != 2:
        raise SpecError(f"import {kind} takes the file of R and that of S, not {len(files)} files")
    from streamjoin_common.language.arrivals import Arrivals
    from streamjoin_common.language.predicates import Predicate
    from streamjoin_datagen.imports import files as imports
    from streamjoin_datagen.imports import layouts, readers

    paths = {"r": Path(files[0]), "s": Path(files[1])}
    window, ts, reader = "all", args.ts, readers.csv_table
    if kind in ("csv", "parquet"):
        predicate = Predicate.parse(args.on, args.band)
        if kind == "parquet":
            reader = readers.parquet_table
    else:
        refuse(args, f"import {kind}", ("on", "band", "ts", "ts_unit"))
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
            say(f"the arrival column {args.ts!r} is named ts in the workload")
        return outcome

    return Job(known, args.out, make, needs_spark=False)
