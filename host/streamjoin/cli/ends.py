"""Both ends of ``streamjoin join``: files and pipes that it reads, and where its result goes."""

import argparse
import sys
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamjoin.engines.job import Job
from streamjoin.errors import InputError
from streamjoin.inputs.files import files_of, is_pattern
from streamjoin.inputs.piped import read_piped
from streamjoin.outputs import STREAMED, SUFFIXES, check_target, check_types
from streamjoin.relations import Relation
from streamjoin.results.rows import JoinResult, declared_schema
from streamjoin.sequence import Request
from streamjoin_common.language.selections import Selection

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from streamjoin.run import Outcome

PIPE = "-"
WRITTEN_ROWS = 1 << 16
"""Rows of a batch that is written."""


@dataclass(frozen=True)
class Asked:
    """What the flags say of inputs and outputs.

    Attributes
    ----------
    output, metrics : Path or None
        Files to write.
    to_stdout : bool
        Whether the result goes to standard output.
    selection : Selection or None
        The columns of joined rows; None for row numbers.
    piped : str or None
        The side that is read from standard input.
    suffix : str
        That of the output's format.
    shows_metrics : bool
        Whether the table of metrics is printed: not behind rows on the same terminal.
    """

    output: Path | None
    metrics: Path | None
    to_stdout: bool
    selection: Selection | None
    piped: str | None
    suffix: str
    shows_metrics: bool

    @classmethod
    def of(cls, args: argparse.Namespace) -> "Asked":
        """Read the flags.

        Raises
        ------
        InputError
            If they contradict one another.
        """
        to_stdout = args.output == PIPE
        if args.columns and args.output is None:
            raise InputError("--columns says what --output holds: give --output FILE, or -")
        if args.format and not to_stdout:
            raise InputError(
                "--format is that of --output -; a file's ending says its own: .parquet, .arrow, "
                ".csv"
            )
        if to_stdout and args.json:
            raise InputError(
                "--output - and --json both write to standard output: write the metrics to a file "
                "with --metrics FILE.json"
            )
        if args.quiet and args.json:
            raise InputError("--quiet and --json contradict each other: drop one of them")
        if to_stdout and sys.stdout is None:
            raise InputError("--output -: standard output is closed")
        if to_stdout and args.format != "csv" and sys.stdout.isatty():
            raise InputError(
                "--output -: standard output is a terminal, and Arrow is bytes: add --format csv, "
                "or a pipe"
            )
        piped = [side for side, text in (("r", args.r), ("s", args.s)) if text == PIPE]
        if len(piped) > 1:
            raise InputError("--r - and --s -: only one of them can be standard input")
        if piped and sys.stdin is None:
            raise InputError(f"--{piped[0]} -: standard input is closed")
        if piped and sys.stdin.isatty():
            raise InputError(f"--{piped[0]} -: standard input is a terminal: pipe a table into it")
        columns = ",".join(args.columns) if args.columns else None
        return cls(
            None if to_stdout or args.output is None else Path(args.output),
            args.metrics,
            to_stdout,
            None if columns is None else Selection.parse(columns),
            piped[0] if piped else None,
            f".{args.format or STREAMED[0]}"
            if to_stdout
            else Path(args.output or "").suffix.lower(),
            not args.quiet and not (to_stdout and sys.stdout.isatty() and sys.stderr.isatty()),
        )

    def targets(self, r: Path | Relation, s: Path) -> list[Path]:
        """Return the files to write, refused here if they cannot be."""
        targets = []
        if self.output is not None:
            check_target(self.output, SUFFIXES, "--output")
            targets.append(self.output)
        if self.metrics is not None:
            check_target(self.metrics, (".json",), "--metrics")
            targets.append(self.metrics)
        if len(set(targets)) < len(targets):
            raise InputError("--output and --metrics name the same file")
        read = {file.resolve() for given in (r, s) for file in _read(given)}
        for target in targets:
            if target.resolve() in read:
                raise InputError(f"{target}: is an input; it would be overwritten")
            patterns = [given for given in (r, s) if isinstance(given, Path) and is_pattern(given)]
            matched = [
                each for each in patterns if fnmatch(str(target.absolute()), str(each.absolute()))
            ]
            if matched:
                raise InputError(f"{target}: matches the input {matched[0]}; choose another name")
            if read.intersection(target.resolve().parents):
                raise InputError(f"{target}: is in the folder of an input; choose another folder")
        return targets

    def inputs(self, request: Request, r: Path | Relation, s: Path) -> tuple[Any, Any]:
        """Return what is joined: a piped side is read here, only the columns that are needed."""
        if self.piped is None:
            return r, s
        side = self.piped
        predicate, arrivals = request.predicate, request.arrivals
        keys = predicate.r_columns if side == "r" else predicate.s_columns
        arrival = arrivals.r if side == "r" else arrivals.s

        def needed(names: list[str]) -> list[str]:
            ts = arrival.among(names, side)
            chosen = self.selection.needed(side, names) if self.selection else []
            return [*keys, *chosen, *([ts] if ts else [])]

        table = read_piped(sys.stdin.buffer, needed, list(keys))
        return (table, s) if side == "r" else (r, table)

    def result(self, job: Job) -> "Callable[[Outcome], pa.RecordBatchReader]":
        """Return what makes the result's batches; columns that cannot be are refused here."""
        columns = self.selection
        if columns is None:
            return lambda outcome: JoinResult(outcome).pairs.to_reader(WRITTEN_ROWS)
        check_types(declared_schema(job, columns), self.suffix)
        return lambda outcome: JoinResult(outcome).batches(WRITTEN_ROWS, columns)


def _read(given: Path | Relation) -> list[Path]:
    if isinstance(given, Relation):
        return [Path(given.location)]
    return files_of(given) if is_pattern(given) else [given]
