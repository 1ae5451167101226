"""``streamjoin engines``: what there is and what it can do."""

import argparse

from streamjoin.cli.options import complete_engines
from streamjoin.cli.terminal import print_json, print_paragraph, print_table, say
from streamjoin.engines import listing

EPILOG = """\
examples:
  streamjoin engines
  streamjoin engines splitjoin
  streamjoin engines --json
"""


class EnginesVerb:
    """Lists the engines, or explains one."""

    help = "Every engine with its capabilities, or one with its knobs, and whether it is usable."

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the verb's flags."""
        parser.epilog = EPILOG
        name = parser.add_argument("name", metavar="NAME", nargs="?", help="explain this one")
        complete_engines(name)
        parser.add_argument("--json", action="store_true", help="print JSON")

    def run(self, args: argparse.Namespace) -> int:
        """Print the catalogue, or an engine."""
        if args.name is not None:
            one = listing.entry(args.name)
            if args.json:
                print_json(one.to_dict())
            else:
                _explain(one)
            return 0
        entries = listing.engines()
        if args.json:
            print_json([each.to_dict() for each in entries])
            return 0
        headings = [
            "engine",
            "platform",
            "predicate",
            "windows",
            "order",
            "runs\nhere",
            "what it is",
        ]
        print_table(
            headings,
            [
                [
                    each.engine,
                    each.platform,
                    " ".join(each.predicates),
                    " ".join(each.windows),
                    each.order,
                    each.unusable or "yes",
                    each.summary.partition(":")[0].rstrip("."),
                ]
                for each in entries
            ],
            droppable=("what it is", "platform", "order"),
        )
        say("to explain one with its knobs, type  streamjoin engines NAME")
        return 0


def _explain(one: listing.EngineEntry) -> None:
    threads = "as many as --threads says" if one.parallel else "one"
    rows = [
        ["platform", one.platform],
        ["predicates", ", ".join(one.predicates)],
        ["windows", ", ".join(one.windows)],
        ["order of results", f"{one.order}, the strongest that it promises"],
        ["arrivals", ", ".join(one.arrivals)],
        ["threads", threads],
        ["joins live", "yes, in sj.StreamJoiner" if one.live else "no"],
        ["usable here", "yes" if one.unusable is None else f"no: {one.unusable}"],
    ]
    if one.backends:
        rows.insert(1, ["backends", f"{', '.join(one.backends)}; the first is the default"])
    if one.stores:
        rows.insert(1, ["R", "a file, or a relation that stays in its store"])
    print_paragraph(f"{one.engine}: {one.summary}")
    print_paragraph("")
    print_table(["property", "value"], rows)
    print_paragraph("")
    if not one.knobs:
        print_paragraph("It has no knobs.")
        return
    print_table(
        ["knob", "default", "takes", "meaning"],
        [[knob.name, str(knob.default), knob.range, knob.meaning] for knob in one.knobs],
    )
    first = one.knobs[0]
    print_paragraph("")
    print_paragraph(f"To set one, add  --set {first.name}={first.default}  to streamjoin join.")


VERB = EnginesVerb()
