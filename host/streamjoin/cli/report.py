"""``streamjoin report``: records in, one page out."""

import argparse
from pathlib import Path

from streamjoin.cli.terminal import say


class ReportVerb:
    """Writes the page of one or several runs."""

    help = "Records in, one self-contained page out."

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the verb's flags."""
        parser.epilog = "example:\n  streamjoin report runs/small -o report.html"
        parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folders of runs")
        parser.add_argument("-o", "--out", type=Path, required=True, metavar="PAGE")

    def run(self, args: argparse.Namespace) -> int:
        """Write the page."""
        from streamjoin.outputs import check_target
        from streamjoin.report import write_report

        check_target(args.out, (".html",), "-o")
        write_report(args.runs, args.out)
        say(f"the page is {args.out}")
        return 0


VERB = ReportVerb()
