"""``streamjoin engines``: what there is and what it can do."""

import argparse

from streamjoin.cli.terminal import print_json, print_table
from streamjoin.engines import catalog


class EnginesVerb:
    """Lists the engines."""

    help = "Every engine with its capabilities, and whether it is usable here."

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the verb's flags."""
        parser.epilog = "example:\n  streamjoin engines --json"
        parser.add_argument("--json", action="store_true", help="print JSON")

    def run(self, args: argparse.Namespace) -> int:
        """Print the catalog."""
        rows = []
        for name in catalog.names():
            engine = catalog.get(name)
            can = engine.capabilities
            rows.append(
                {
                    "engine": name,
                    "platform": can.platform,
                    "predicates": sorted(can.predicates),
                    "windows": sorted(can.windows),
                    "order": can.order,
                    "arrivals": sorted(can.arrivals),
                    "backends": list(can.backends),
                    "parallel": can.parallel,
                    "knobs": {knob.name: knob.default for knob in engine.knobs},
                    "usable": engine.unusable() or "yes",
                    "summary": engine.summary,
                }
            )
        if args.json:
            print_json(rows)
            return 0
        headings = ["engine", "platform", "predicates", "windows", "order", "knobs", "usable"]
        print_table(
            headings,
            [[_text(row[name]) for name in headings] for row in rows],
            droppable=("knobs", "platform", "order"),
        )
        return 0


def _text(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={default}" for name, default in value.items())
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


VERB = EnginesVerb()
