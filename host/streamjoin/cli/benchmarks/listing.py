"""``streamjoin bench list``: every experiment, and what there is beside them."""

import argparse

from streamjoin.bench import experiments
from streamjoin.cli.terminal import print_json, print_table, say

EXPERIMENT, OTHER = "experiment", "other"
"""Kinds of benchmarks."""


def run(args: argparse.Namespace) -> int:
    """Print the list."""
    rows: list[dict[str, str | int | None]] = []
    for name in experiments.names():
        sized = {size: experiments.read(name, size) for size in experiments.SIZES}
        points = {size: len(each.points) for size, each in sized.items()}
        about = sized["full"]
        of_it = {"source": about.source, "title": about.title}
        rows.append({"name": name, "kind": EXPERIMENT, **points, **of_it})
    for name, title in experiments.OTHERS.items():
        points_of_none = dict.fromkeys(experiments.SIZES)
        rows.append({"name": name, "kind": OTHER, **points_of_none, "source": None, "title": title})
    if args.json:
        print_json(rows)
        return 0
    headings = ["name", *experiments.SIZES, "title"]
    print_table(
        headings,
        [["-" if row[each] is None else str(row[each]) for each in headings] for row in rows],
        {*experiments.SIZES},
    )
    say("quick and full count an experiment's points of each size; --json has the sources too")
    return 0
