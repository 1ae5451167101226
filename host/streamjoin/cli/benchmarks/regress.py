"""``streamjoin bench regress A B``: what is slower than before, beyond the noise."""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from streamjoin.cli.terminal import duration, print_json, print_table, say
from streamjoin.errors import InputError
from streamjoin.report import stored
from streamjoin.report.stored import others, regress
from streamjoin.report.stored.crossover_form import is_one
from streamjoin.report.stored.regress import FASTER, FEW, SAME, SLOWER, Change, Comparison

HEADINGS = ("point", "engine", "figure", "before", "after", "times", "change")

Found = tuple[Path, dict[str, Any]]
"""A record and where it lies."""


def run(args: argparse.Namespace) -> int:
    """Compare two records, or the records of two folders; 1 if anything is slower or gone."""
    if len(args.records) != 2:
        raise InputError(
            "bench regress compares two: two records, runs, or folders of them, of experiments, "
            "calls or live, as  streamjoin bench regress benchmarks/results runs/bench"
        )
    compared, refused = [], []
    for before, after in _pairs(*args.records):
        try:
            named = str(before[0]), str(after[0])
            compared.append(regress.compare(before[1], after[1], named))
        except InputError as error:
            refused.append(error)
    if args.json:
        print_json([_plain(each) for each in compared])
    else:
        for each in compared:
            _print(each)
    for refusal in refused[:-1]:
        say(str(refusal))
    if refused:
        raise refused[-1]
    changes = [change for each in compared for change in each.changes]
    if all(change.verdict == FEW for change in changes):
        raise InputError(
            f"{args.records[0]} and {args.records[1]} are not comparable: no figure has "
            f"{regress.MIN_ROUNDS} rounds in both, so that nothing is known of the noise"
        )
    say(_counted(changes))
    gone = any(each.gone for each in compared)
    return 1 if gone or any(change.verdict == SLOWER for change in changes) else 0


def _pairs(first: Path, second: Path) -> list[tuple[Found, Found]]:
    """Return the records of the same experiments at the same sizes; of two files, those two."""
    sides = [_found(path) for path in (first, second)]
    if len(sides[0]) == len(sides[1]) == 1:
        return [(next(iter(sides[0].values())), next(iter(sides[1].values())))]
    for mine, other, where in ((sides[0], sides[1], first), (sides[1], sides[0], second)):
        alone = [" ".join(name) for name in mine if name not in other]
        if alone:
            say(f"only {where} has {', '.join(alone)}")
    both = [(sides[0][name], sides[1][name]) for name in sides[0] if name in sides[1]]
    if not both:
        raise InputError(f"{first} and {second} are not comparable: they share no experiment")
    return both


def _found(path: Path) -> dict[tuple[str, str], Found]:
    """Return the records that a path names, by experiment and size."""
    found: dict[tuple[str, str], Found] = {}
    for file in stored.find(path):
        if is_one(file):
            raise InputError(
                f"{file}: is of bench cpu-fpga, whose records are not compared: give records of "
                "experiments, calls or live"
            )
        run = others.read(file) if others.is_one(file) else stored.read(file)
        name = run["experiment"]["name"], run["experiment"]["size"]
        if name in found:
            raise InputError(f"{found[name][0]} and {file} are both of {' '.join(name)}: drop one")
        found[name] = file, run
    return found


def _plain(compared: Comparison) -> dict[str, Any]:
    return {
        "experiment": compared.experiment,
        "notes": compared.notes,
        "gone": compared.gone,
        "changes": [
            {**vars(change), "ratio": change.ratio if math.isfinite(change.ratio) else None}
            for change in compared.changes
        ],
    }


def _print(compared: Comparison) -> None:
    for note in compared.notes:
        say(f"{compared.experiment}: {note}")
    if compared.gone:
        say(f"{compared.experiment}: only before, and gone: {', '.join(compared.gone)}")
    changed = sorted(compared.of(SLOWER, FASTER), key=lambda change: -change.ratio)
    if changed:
        print_table(HEADINGS, [_row(change) for change in changed], {"before", "after", "times"})


def _row(change: Change) -> list[str]:
    def text(figure: float) -> str:
        return f"{figure:,.0f}" if change.figure == "cycles" else duration(figure * 1e6)

    times = f"{change.ratio:.2f}" if math.isfinite(change.ratio) else "-"
    texts = (text(change.before), text(change.after), times, change.verdict)
    return [change.point, change.engine, change.figure, *texts]


def _counted(changes: Sequence[Change]) -> str:
    count = {
        verdict: sum(change.verdict == verdict for change in changes)
        for verdict in (SLOWER, FASTER, SAME, FEW)
    }
    judged = len(changes) - count[FEW]
    said = f"{judged} figures: " + ", ".join(f"{count[each]} {each}" for each in (SLOWER, FASTER))
    said += f", {count[SAME]} {SAME}"
    if alone := sum(change.cpu_alone and change.verdict != FEW for change in changes):
        said += f"; {alone} of them are CPU times that were judged alone"
    if count[FEW]:
        said += f"; {count[FEW]} more have fewer than {regress.MIN_ROUNDS} rounds: not judged"
    return said
