"""``streamjoin hw prove``."""

import argparse
import json
from pathlib import Path

from streamjoin_common.errors import UsageError
from streamjoin_common.installed.completing import complete
from streamjoin_common.suggestions import did_you_mean
from streamjoin_hw.cli.terminal import print_table, say


def configure(action: argparse.ArgumentParser) -> None:
    """Add the flags."""
    names = action.add_argument(
        "names", nargs="*", metavar="NAME", help="proofs (default: all); a wrong name lists them"
    )
    complete(names, _names)
    action.add_argument("--depth", type=int, metavar="COUNT", help="cycles to search")
    action.add_argument(
        "--quick",
        action="store_true",
        help="search as deep as the tests do: up to two minutes each",
    )
    action.add_argument("--json", action="store_true", help="print JSON")
    action.add_argument(
        "--out", metavar="PATH", help="folder for counterexamples (default: build/proofs)"
    )


def _names(_typed: argparse.Namespace) -> list[str]:
    from streamjoin_hw.formal import prove

    return list(prove.names())


def run(arguments: argparse.Namespace) -> int:
    """Run the proofs that are asked for; the status is 0 if all hold."""
    from streamjoin_hw.formal import prove

    known = prove.names()
    for name in arguments.names:
        if name not in known:
            raise UsageError(
                f"NAME must be among {', '.join(known)}, not {name!r}{did_you_mean(name, known)}"
            )
    if arguments.depth is not None and arguments.depth < 1:
        raise UsageError(f"--depth must be at least 1, not {arguments.depth}")
    verdicts = prove.run_all(
        arguments.names or known,
        depth=arguments.depth,
        quick=arguments.quick,
        kept=Path(arguments.out or "build/proofs"),
        report=say,
    )
    if arguments.json:
        print(json.dumps([each.as_json() for each in verdicts]))
    else:
        columns = ("proof", "what", "claims", "method", "depth", "seconds", "holds", "its fault")
        print_table(
            columns,
            [each.as_row() for each in verdicts],
            {"depth", "seconds"},
            ("claims", "method"),
        )
    for each in verdicts:
        if each.failed:
            where = f": see {each.trace}" if each.trace else ""
            say(f"{each.name} does not hold, {each.failed!r} fails{where}")
        if not each.fault_found:
            say(f"{each.name} does not find its fault ({each.fault})")
    return 0 if all(each.holds for each in verdicts) else 1
