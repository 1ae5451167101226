"""Flags that several verbs share."""

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from streamjoin.errors import InputError
from streamjoin.relations import KINDS as STORES
from streamjoin_common.installed.completing import complete
from streamjoin_common.language.arrivals import UNITS
from streamjoin_common.language.kinds import KINDS
from streamjoin_common.language.order import ORDERS
from streamjoin_common.language.predicates import Predicate

if TYPE_CHECKING:
    from streamjoin.bench.workloads import Comparison


FORCE_HELP = "write the run into a folder that holds something else, which stays"

FILE_HELP = "a Parquet file or folder, Arrow IPC or CSV, a pattern as 'a/*.parquet'"
PIPED_HELP = ", or - for Arrow IPC or CSV on standard input"
STORE_HELP = (
    "; or, for a semi-stream join, a relation in a store that is read there: KIND:LOCATION[:TABLE],"
    " as sqlite:planes.db:planes or postgres:postgresql://host/db:planes "
    f"(kinds: {', '.join(STORES)})"
)


def add_inputs(parser: argparse.ArgumentParser, *, sampled: bool = False) -> None:
    """Add ``--r`` and ``--s``; where a sample is enough they may lack, and are no pipes."""
    file = FILE_HELP if sampled else FILE_HELP + PIPED_HELP
    for flag, metavar, more in (("r", "FILE|STORE", STORE_HELP), ("s", "FILE", "")):
        parser.add_argument(
            f"--{flag}",
            required=not sampled,
            metavar=metavar,
            help=f"{flag.upper()}: {file}{more}",
        )


def add_predicate(parser: argparse.ArgumentParser) -> None:
    """Add ``--on`` and ``--band``."""
    parser.add_argument(
        "--on", action="append", metavar="COL[=COL][,...]", help="equal columns: k or rk=sk"
    )
    parser.add_argument(
        "--band",
        action="append",
        metavar="COL=COL:LO:HI",
        help="x=a:10:10 means a-10 <= x <= a+10; of times 't=u within 5s'; may be repeated",
    )


def predicate(args: argparse.Namespace) -> Predicate:
    """Read what :func:`add_predicate` added."""
    return Predicate.parse(args.on, args.band)


def on_workload(args: argparse.Namespace, workload: "Comparison") -> "Comparison":
    """Replace a workload's window and predicate where flags name others."""
    from streamjoin.verbs.workload import changed

    return changed(workload, args.on, args.band, args.window)


def add_max_pairs(parser: argparse.ArgumentParser) -> None:
    """Add ``--max-pairs``."""
    parser.add_argument(
        "--max-pairs",
        type=int,
        metavar="N",
        help="end a run beyond N pairs, and let no estimate refuse it before; default: refuse a "
        "result that by samples surely outgrows the free memory",
    )


def add_how(parser: argparse.ArgumentParser) -> None:
    """Add ``--how``."""
    how = parser.add_argument(
        "--how",
        default="inner",
        metavar="KIND",
        help=f"kind of join: {', '.join(KINDS)}; default inner",
    )
    complete(how, lambda _: KINDS)


def add_arrivals(parser: argparse.ArgumentParser) -> None:
    """Add ``--ts`` and ``--ts-unit``."""
    parser.add_argument(
        "--ts",
        metavar="COL[=COL]",
        help="the arrival column, ts by default, '' for none; R's and S's as sent=received. "
        "Windows tumbling and time need one on both sides",
    )
    parser.add_argument(
        "--ts-unit", choices=UNITS, help="what arrival times count that are numbers; default us"
    )


def add_threads(parser: argparse.ArgumentParser) -> None:
    """Add ``--threads``."""
    cores = os.cpu_count() or 1
    parser.add_argument(
        "--threads",
        type=int,
        default=cores,
        help="threads that an engine may use; default: all cores",
    )


def add_running(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say how to run."""
    add_threads(parser)
    parser.add_argument(
        "--arrival",
        choices=("instant", "replay"),
        default="instant",
        help="hand all over at once, the default, or honour arrival times",
    )
    parser.add_argument("--speedup", type=float, default=1.0, help="a replay runs X times faster")
    parser.add_argument("--order", choices=ORDERS, default="none", help="order of the results")
    add_max_pairs(parser)
    parser.add_argument("--backend", choices=("model", "pynq"), help="where a design runs")
    complete(add_knobs(parser, "tuning parameters of the engine"), _knobs_of)


def add_knobs(parser: argparse.ArgumentParser, meaning: str) -> argparse.Action:
    """Add ``--set``; return it."""
    return parser.add_argument(
        "--set", action="extend", nargs="+", default=[], metavar="KNOB=VALUE", help=meaning
    )


def _engines(_typed: argparse.Namespace) -> list[str]:
    from streamjoin.engines import catalog

    return catalog.names()


def complete_engines(action: argparse.Action, *more: str, listed: bool = False) -> None:
    """Let a shell complete names of engines, with commas between them if ``listed``."""
    complete(action, lambda typed: [*more, *_engines(typed)], listed=listed)


def _knobs_of(typed: argparse.Namespace) -> list[str]:
    from streamjoin.engines import catalog

    name = getattr(typed, "engine", "auto")
    return [] if name == "auto" else [f"{knob.name}=" for knob in catalog.get(name).knobs]


def knobs(args: argparse.Namespace) -> dict[str, Any]:
    """Read ``--set``.

    Raises
    ------
    InputError
        If one is not ``KNOB=VALUE``.
    """
    knobs = {}
    for text in args.set:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise InputError(f"--set takes KNOB=VALUE, as cores=16, not {text!r}")
        knobs[name] = value
    return knobs


def knobs_by_engine(args: argparse.Namespace, engines: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Read ``--set`` for several engines: each gets the knobs that it has.

    Raises
    ------
    InputError
        If one is not ``KNOB=VALUE``, or no engine has it.
    """
    from streamjoin.engines import catalog

    given = knobs(args)
    have = {name: catalog.get(name).knob_names for name in engines}
    for knob in given:
        if not any(knob in names for names in have.values()):
            raise InputError(f"--set {knob}: none of {', '.join(engines)} has this knob")
    return {
        name: {knob: value for knob, value in given.items() if knob in names}
        for name, names in have.items()
    }
