"""``streamjoin hw rate``."""

import argparse
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from streamjoin_common.contract import DesignParams, ParameterError, TermKind
from streamjoin_common.errors import UsageError
from streamjoin_common.suggestions import did_you_mean
from streamjoin_hw.cli.options import GROUP_HELP, chosen_group, design_from
from streamjoin_hw.cli.terminal import built_model, print_table, progress

if TYPE_CHECKING:
    from streamjoin_hw.studies.rate.loads import Load

USUAL_PRESET = "pynq-z2-hash"
USUAL_WINDOWS = "256,1024,8192"
USUAL_RATES = "0,0.25,1,2,4"
USUAL_KEYS = "uniform,zipf"

HEADINGS = {
    "match_rate": "match\nrate",
    "owed_per_tuple": "owed\n/tuple",
    "cycles_per_tuple": "cycles\n/tuple",
    "comparisons_per_cycle": "compared\n/cycle",
    "at_most": "at\nmost",
}
"""Headings of two lines, so that a row fits a screen of 80 columns."""


def configure(action: argparse.ArgumentParser) -> None:
    """Add the flags."""
    for flag, help_line in (
        (
            "--windows",
            f"count windows of both sides in tuples ({USUAL_WINDOWS}, as held; "
            "all that is held where cores scan)",
        ),
        ("--rates", f"matches that a tuple owes on average ({USUAL_RATES}; 1 where cores scan)"),
        (
            "--keys",
            f"uniform, zipf (R by Zipf's law, S evenly), zipf-both, gauss, shifting, one (the same "
            f"key everywhere) or reference (the reference band query) ({USUAL_KEYS}; uniform where "
            "cores scan)",
        ),
        (
            "--sides",
            "alternate, random, runs-64, bursts-1024, r-90 or one-sided (random; all where cores "
            "scan)",
        ),
    ):
        action.add_argument(flag, metavar="A,B,...", help=help_line)
    action.add_argument(
        "--groups", metavar="A,B,...", default="1", help=f"{GROUP_HELP}, a run each"
    )
    action.add_argument(
        "--tuples", type=int, metavar="COUNT", help="of each run (50000; 20480 where cores scan)"
    )
    action.add_argument("--seed", type=int, default=1, metavar="SEED", help="of the input")
    action.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Measure each load and print a row for each window and kind of keys."""
    from streamjoin_hw.studies.rate.loads import measure, most_comparisons
    from streamjoin_hw.studies.synth.record import max_comparisons

    params = _design(arguments)
    check_terms(params, bands=True)
    loads = _loads(arguments, params)
    folder = built_model(params)
    rows: list[dict[str, Any]] = []
    with progress("measuring", len(loads), hidden_below=2) as report:
        for done, load in enumerate(loads, start=1):
            measured = measure(params, folder, load)
            compared = {}
            if not params.has_index:
                compared = {
                    "comparisons_per_cycle": round(load.window / measured.cycles, 1),
                    "at_most": round(most_comparisons(params, load), 1),
                    "peak": max_comparisons(params),
                }
            rows.append(
                {
                    "window": load.window,
                    "keys": load.keys,
                    "sides": load.sides,
                    **({"group": load.group} if params.has_groups else {}),
                    "match_rate": load.match_rate,
                    "owed_per_tuple": round(measured.owed, 3),
                    "cycles_per_tuple": round(measured.cycles, 3),
                    **compared,
                    "seed": load.seed,
                    "verdict": "exact",
                }
            )
            report(done)
    if arguments.json:
        print(json.dumps(rows))
    else:
        columns = tuple(HEADINGS.get(name, name) for name in rows[0])
        cells = [tuple(str(cell) for cell in row.values()) for row in rows]
        print_table(columns, cells, {*columns} - {"keys", "sides", "verdict"}, ("seed", "peak"))
    return 0


def _design(arguments: argparse.Namespace) -> DesignParams:
    """Build parameters, over the usual preset unless one is named, or a design without one.

    Raises
    ------
    UsageError, ParameterError
        As :func:`~streamjoin_hw.cli.options.design_from`; where nothing was named, with the preset.
    """
    names_design = any(each.partition("=")[0].strip() == "design" for each in arguments.param)
    if arguments.preset or names_design:
        return design_from(arguments.preset, arguments.param)
    try:
        return design_from(USUAL_PRESET, arguments.param)
    except ParameterError as error:
        raise ParameterError(
            f"{error} (of {USUAL_PRESET}: give --preset, or --param design, for another)"
        ) from error


def _loads(arguments: argparse.Namespace, params: DesignParams) -> "list[Load]":
    """Read what is to be measured."""
    from streamjoin_hw.studies.rate.loads import KEYS, SIDES, Load

    scans = not params.has_index
    capacity = params.window_capacity
    usual = [word for word in _words(USUAL_WINDOWS) if int(word) <= capacity] or [str(capacity)]
    if scans:
        usual = [str(capacity)]
    asked = usual if arguments.windows is None else _words(arguments.windows)
    windows = [int(_number("--windows", string, 1, whole=True)) for string in asked]
    for window in windows:
        if window > capacity:
            raise UsageError(
                f"--windows must be at most {capacity}, which the design holds, not {window}"
            )
    usual_rates, usual_keys = ("1", "uniform") if scans else (USUAL_RATES, USUAL_KEYS)
    rates = [
        _number("--rates", string, 0)
        for string in _words(usual_rates if arguments.rates is None else arguments.rates)
    ]
    most = min(windows)
    if arguments.rates is None:
        rates = [rate for rate in rates if rate <= most]
    for rate in rates:
        if rate > most:
            raise UsageError(
                f"--rates must be at most {most}: a tuple owes no more matches than a window holds "
                f"tuples; not {rate:g}"
            )
    kinds = _among("--keys", usual_keys if arguments.keys is None else arguments.keys, KEYS)
    usual_sides = ",".join(SIDES) if scans else "random"
    sides = _among("--sides", usual_sides if arguments.sides is None else arguments.sides, SIDES)
    groups = [
        chosen_group(params, int(_number("--groups", string, 0, whole=True)))
        for string in _words(arguments.groups)
    ]
    tuples = arguments.tuples
    if tuples is None:
        tuples = 20_480 if scans else 50_000
    if tuples < 1:
        raise UsageError(f"--tuples must be at least 1, not {tuples}")
    return [
        Load(window, rate, kind, tuples, arguments.seed, each, group)
        for group in groups
        for window in windows
        for kind in kinds
        for rate in rates
        for each in sides
    ]


def _among(flag: str, string: str, names: Iterable[str]) -> list[str]:
    """Read a list of names."""
    words = _words(string)
    for word in words:
        if word not in names:
            near = did_you_mean(word, names)
            raise UsageError(f"{flag} must be among {', '.join(names)}, not {word!r}{near}")
    return words


def check_terms(params: DesignParams, *, bands: bool = False) -> None:
    """Refuse a design that the loads are not made for.

    Raises
    ------
    UsageError
        If its predicate is not one equality of keys or, with ``bands``, of equalities and bands.
    """
    plain = not params.timestamp_bits and params.theta is None
    if bands:
        if not plain:
            raise UsageError("--param terms must be equi and band, without timestamps and theta")
        return
    (kind, *others) = [term.kind for term in params.terms]
    if others or kind is not TermKind.EQUI or not plain:
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
