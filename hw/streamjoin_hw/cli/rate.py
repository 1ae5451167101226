"""``streamjoin hw rate``."""

import argparse
import json
from typing import Any

from streamjoin_common.contract import DesignParams, TermKind
from streamjoin_common.errors import UsageError
from streamjoin_common.suggestions import did_you_mean
from streamjoin_hw.cli.options import design_from
from streamjoin_hw.cli.terminal import built_model, print_table, progress

USUAL_PRESET = "pynq-z2-hash"
USUAL_WINDOWS = "256,1024,8192"
USUAL_RATES = "0,0.25,1,2,4"
USUAL_KEYS = "uniform,zipf"


def configure(action: argparse.ArgumentParser) -> None:
    """Add the flags."""
    for flag, default, help_line in (
        ("--windows", None, f"count windows of both sides in tuples ({USUAL_WINDOWS}, as held)"),
        ("--rates", USUAL_RATES, "matches that a tuple owes on average"),
        ("--keys", USUAL_KEYS, "uniform, zipf (R by Zipf's law, S evenly) or zipf-both"),
    ):
        shown = help_line if default is None else f"{help_line} ({default})"
        action.add_argument(flag, default=default, metavar="A,B,...", help=shown)
    action.add_argument(
        "--tuples", type=int, default=50_000, metavar="COUNT", help="of each run (50000)"
    )
    action.add_argument("--seed", type=int, default=1, metavar="SEED", help="default 1")
    action.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Measure each load and print a row for each window and kind of keys."""
    from streamjoin_hw.studies.rate.loads import KEYS, Load, measure

    params = design_from(arguments.preset or USUAL_PRESET, arguments.param)
    check_terms(params)
    capacity = params.window_capacity
    usual = [word for word in _words(USUAL_WINDOWS) if int(word) <= capacity] or [str(capacity)]
    asked = usual if arguments.windows is None else _words(arguments.windows)
    windows = [int(_number("--windows", string, 1, whole=True)) for string in asked]
    for window in windows:
        if window > params.window_capacity:
            raise UsageError(
                f"--windows must be at most {capacity}, which the design holds, not {window}"
            )
    rates = [_number("--rates", string, 0) for string in _words(arguments.rates)]
    kinds = _words(arguments.keys)
    for kind in kinds:
        if kind not in KEYS:
            near = did_you_mean(kind, KEYS)
            raise UsageError(f"--keys must be among {', '.join(KEYS)}, not {kind!r}{near}")
    if arguments.tuples < 1:
        raise UsageError(f"--tuples must be at least 1, not {arguments.tuples}")
    folder = built_model(params)
    loads = [
        Load(window, rate, kind, arguments.tuples, arguments.seed)
        for window in windows
        for kind in kinds
        for rate in rates
    ]
    rows: list[dict[str, Any]] = []
    with progress("measuring", len(loads), hidden_below=2) as report:
        for done, load in enumerate(loads, start=1):
            measured = measure(params, folder, load)
            rows.append(
                {
                    "window": load.window,
                    "keys": load.keys,
                    "match_rate": load.match_rate,
                    "owed_per_tuple": round(measured.owed, 3),
                    "cycles_per_tuple": round(measured.cycles, 3),
                    "comparisons_per_cycle": round(load.window / measured.cycles, 1),
                    "seed": load.seed,
                    "verdict": "exact",
                }
            )
            report(done)
    if arguments.json:
        print(json.dumps(rows))
    else:
        columns = tuple(name.replace("_", " ") for name in rows[0])
        cells = [tuple(map(str, row.values())) for row in rows]
        print_table(columns, cells, {*columns} - {"keys", "verdict"})
    return 0


def check_terms(params: DesignParams) -> None:
    """Refuse a design that the loads are not made for.

    Raises
    ------
    UsageError
        If its predicate is not one equality of keys.
    """
    (kind, *others) = [term.kind for term in params.terms]
    if others or kind is not TermKind.EQUI or params.timestamp_bits or params.theta is not None:
        raise UsageError("--param terms must be one equi term, without timestamps and theta")


def _words(string: str) -> list[str]:
    return [word.strip() for word in string.split(",")]


def _number(flag: str, string: str, minimum: int, *, whole: bool = False) -> float:
    """Read one number of a list."""
    try:
        number = int(string) if whole else float(string)
    except ValueError:
        number = minimum - 1
    if not minimum <= number < float("inf"):
        kind = "integers" if whole else "numbers"
        raise UsageError(f"{flag} must be {kind} from {minimum} up, as in 1,2,4, not {string!r}")
    return number
