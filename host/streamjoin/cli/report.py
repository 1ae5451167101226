"""``streamjoin report``: records in, one page out."""

import argparse
from pathlib import Path

from streamjoin.cli.terminal import say
from streamjoin.errors import InputError

EPILOG = """\
examples:
  streamjoin report runs/small
  streamjoin report runs/before runs/after -o both.html
  streamjoin report runs/large --workload band -o band.html
"""


class ReportVerb:
    """Writes the page of one or several runs."""

    help = "Records in, one self-contained page out."

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the verb's flags."""
        parser.epilog = EPILOG
        parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folders of runs")
        parser.add_argument(
            "-o", "--out", type=Path, metavar="PAGE", help="default, for one run: its report.html"
        )
        parser.add_argument(
            "--workload",
            action="append",
            default=[],
            metavar="NAME",
            help="show this workload alone, into -o PAGE; may be repeated",
        )

    def run(self, args: argparse.Namespace) -> int:
        """Write the page."""
        from streamjoin.outputs import check_target
        from streamjoin.report import RUN_PAGE, write_report

        out = args.out
        if out is None and args.workload:
            raise InputError("-o PAGE.html is needed with --workload: a run's own page shows all")
        if out is None:
            if len(args.runs) > 1 or not args.runs[0].is_dir():
                raise InputError("-o PAGE.html is needed, save for the folder of one run")
            out = args.runs[0] / RUN_PAGE
        check_target(out, (".html",), "-o")
        write_report(args.runs, out, args.workload)
        say(f"the page is {out}")
        return 0


VERB = ReportVerb()
