"""``streamjoin stats``: what a workload's data are like."""

import argparse
from pathlib import Path

from streamjoin.cli.terminal import print_json, print_table, say

EPILOG = """\
examples:
  streamjoin stats runs/workloads/equi
  streamjoin stats runs/workloads/stock -o stock.html
"""


class StatsVerb:
    """Describes a workload: rates over time, how keys repeat, how values are spread."""

    help = "What a workload's data are like: rates, keys, skew; as a table and as a page."

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the verb's flags."""
        parser.epilog = EPILOG
        parser.add_argument("what", type=Path, metavar="DIR", help="a workload folder")
        parser.add_argument("-o", "--out", type=Path, metavar="PAGE", help="write a page too")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def run(self, args: argparse.Namespace) -> int:
        """Describe the workload."""
        from streamjoin.bench.workloads import read_workload
        from streamjoin.outputs import check_target
        from streamjoin.report.page import write_page
        from streamjoin.report.profile import profile
        from streamjoin.report.profile_page import figures, render_profile
        from streamjoin.streams import read_streams

        if args.out:
            check_target(args.out, (".html",), "-o")
        workload = read_workload(args.what, ("oracle",), 1)
        r, s = read_streams(workload.r, workload.s, workload.predicate, workload.request.arrivals)
        workload.check_rows(r.rows, s.rows)
        measured = profile(r, s, workload.predicate)
        if args.out:
            write_page(render_profile(workload, measured), args.out)
            say(f"the page is {args.out}")
        if args.json:
            streams = {stream.name.lower(): stream.plain() for stream in measured.streams}
            print_json({"workload": workload.name, **streams})
        else:
            rows = [[name, *cells] for name, cells in figures(measured)]
            print_table([workload.name, "R", "S"], rows, numeric={"R", "S"})
        return 0


VERB = StatsVerb()
