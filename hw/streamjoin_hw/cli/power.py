"""``streamjoin hw power``."""

import argparse
import json
from pathlib import Path

from streamjoin_common.contract import DesignParams, active_cores
from streamjoin_common.errors import UsageError
from streamjoin_hw.cli.options import design_from
from streamjoin_hw.cli.rate import check_terms
from streamjoin_hw.cli.terminal import print_paragraph, print_table, say, stages

PAPERS_CORES = "1,2,5,10"
PAPERS_DESIGN = ("cores=1", "segment_tuples=100", "window_memory=lutram")
USUAL_THROUGHPUT = 500_000.0
USUAL_MATCH_RATE = 0.1
MIN_TUPLES = 3
"""Minimum tuples of an input: two have an interval between them, a third one ends the input."""

RECORD_NAME, PAGE_NAME = "power.json", "power.html"


def configure(action: argparse.ArgumentParser) -> None:
    """Add the flags."""
    action.add_argument(
        "--cores",
        metavar="COUNT,...",
        help="counts of cores, a point each, that share the design's window (default: the design's "
        f"own; without a design {PAPERS_CORES}, the study of handshake join)",
    )
    for flag, name, help_line in (
        (
            "--throughput",
            "RATE",
            f"tuples of both sides a second; decides each clock ({USUAL_THROUGHPUT:g})",
        ),
        ("--clock", "MHZ", "one clock in MHz for every point, instead of a throughput"),
    ):
        action.add_argument(flag, type=float, metavar=name, help=help_line)
    for flag, kind, default, name, help_line in (
        ("--match-rate", float, USUAL_MATCH_RATE, "RATE", "matches that a tuple owes on average"),
        ("--tuples", int, 1001, "COUNT", "of the input, beside those that fill the windows"),
        ("--seed", int, 1, "SEED", "of the input"),
    ):
        action.add_argument(flag, type=kind, default=default, metavar=name, help=help_line)
    action.add_argument("--json", action="store_true", help="print the record as JSON")
    action.add_argument(
        "--out", metavar="DIR", help=f"write the record ({RECORD_NAME}) and the page ({PAGE_NAME})"
    )


def run(arguments: argparse.Namespace) -> int:
    """Simulate the gates of each point and print its modelled power."""
    from streamjoin_hw.studies.power.page import COLUMNS, notes, rows, study_page
    from streamjoin_hw.studies.power.study import Setting, study
    from streamjoin_hw.studies.rate.loads import Load

    designs, window = _designs(arguments)
    throughput, clock_hz = _speed(arguments)
    if arguments.tuples < MIN_TUPLES:
        raise UsageError(f"--tuples must be at least {MIN_TUPLES}, not {arguments.tuples}")
    if not 0 <= arguments.match_rate <= window:
        raise UsageError(
            f"--match-rate must be from 0 to {window}, the window, not {arguments.match_rate:g}"
        )
    if arguments.seed < 0:
        raise UsageError(f"--seed must be at least 0, not {arguments.seed}")
    load = Load(window, arguments.match_rate, "uniform", arguments.tuples, arguments.seed)
    with stages(f"{len(designs)} points") as report:
        record = study(designs, Setting(load, throughput, clock_hz), report=report)
    if arguments.out is not None:
        _write(Path(arguments.out), json.dumps(record, indent=2) + "\n", study_page(record))
    if arguments.json:
        print(json.dumps(record))
    else:
        parts = [name for name in COLUMNS if "(model mW)" in name and "dynamic" not in name]
        cells = rows(record["points"])
        print_table(COLUMNS, cells, COLUMNS, (*parts, "registers", "LUT"))
        for sentence in notes(record):
            print_paragraph(sentence)
    return 0


def _designs(arguments: argparse.Namespace) -> tuple[list[DesignParams], int]:
    """Return the points, and the window that all of them hold."""
    from streamjoin_hw.studies.power.study import with_cores

    is_papers = arguments.preset is None and not arguments.param
    base = design_from(arguments.preset, list(PAPERS_DESIGN) if is_papers else arguments.param)
    check_terms(base)
    window = base.window_capacity
    string = arguments.cores or (PAPERS_CORES if is_papers else str(base.cores))
    words = string.split(",")
    if not all(word.isascii() and word.isdigit() and int(word) for word in words):
        raise UsageError(f"--cores must be counts from 1 up, as in {PAPERS_CORES}, not {string!r}")
    designs = [with_cores(base, cores) for cores in sorted({int(word) for word in words})]
    for params in designs:
        active_cores(params, window, window)
    return designs, window


def _speed(arguments: argparse.Namespace) -> tuple[float | None, float | None]:
    """Return the throughput or the clock in Hz."""
    if arguments.clock is not None and arguments.throughput is not None:
        raise UsageError("give --throughput or --clock, not both: each decides the other")
    for flag, value, maximum in (
        ("--clock", arguments.clock, 1e3),
        ("--throughput", arguments.throughput, 1e9),
    ):
        if value is not None and not 0 < value <= maximum:
            raise UsageError(f"{flag} must be above 0 and at most {maximum:g}, not {value:g}")
    if arguments.clock is not None:
        return None, arguments.clock * 1e6
    return arguments.throughput or USUAL_THROUGHPUT, None


def _write(folder: Path, record: str, page: str) -> None:
    from streamjoin_common import storage

    storage.write_text(folder / RECORD_NAME, record, parents=True)
    storage.write_text(folder / PAGE_NAME, page)
    say(f"wrote {folder / PAGE_NAME}")
