"""``streamjoin hw latency``."""

import argparse
import dataclasses
import json
from typing import Any

from streamjoin_common.contract import FORWARDS, DesignParams
from streamjoin_common.errors import UsageError
from streamjoin_common.suggestions import did_you_mean
from streamjoin_hw.cli.options import design_from
from streamjoin_hw.cli.terminal import print_paragraph, print_table, say, stages

USUAL_PRESET = "tiny"
USUAL_CORES = "1,2,4,8"

COLUMNS = ("variant", "cores", "window", "cycles a tuple", "first match", "last match", "agree")

VARIANTS = (*FORWARDS, "splitjoin")
"""The chain in lock step, the chain that forwards at once, and SplitJoin between its trees."""


def configure(action: argparse.ArgumentParser) -> None:
    """Add the flags."""
    action.add_argument(
        "--cores",
        metavar="COUNT,...",
        help=f"counts of cores, a row each (default: --param cores=COUNT, or {USUAL_CORES})",
    )
    action.add_argument(
        "--variant",
        metavar="NAME",
        help=f"only this one: {', '.join(VARIANTS[:-1])} or {VARIANTS[-1]} (default: those that "
        "--preset, --param design=NAME and forward=NAME choose, or all)",
    )
    action.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Measure each design and print it beside the closed forms; 1 if they differ."""
    if arguments.variant is not None and arguments.variant not in VARIANTS:
        near = did_you_mean(arguments.variant, VARIANTS)
        raise UsageError(
            f"--variant must be one of {', '.join(VARIANTS)}, not {arguments.variant}{near}"
        )
    base = design_from(arguments.preset or USUAL_PRESET, arguments.param)
    if base.has_index:
        raise UsageError(
            f"hw latency is about arrays of cores: the design must not be {base.design}"
        )
    if base.theta is not None:
        raise UsageError("the closed forms are of matches of equal keys: drop --param theta")
    if base.order == "inner":
        raise UsageError("under the inner order a match waits for others: --param order=outer")
    variants = _chosen(base, arguments)
    counts = _counts(arguments)
    designs = [_variant(base, variant, cores) for variant in variants for cores in counts]
    rows = [_row(params) for params in designs]
    if arguments.json:
        print(json.dumps(rows))
    else:
        print_paragraph("measured cycles, and in brackets those of the closed forms:")
        print_table(COLUMNS, [_cells(row) for row in rows], {*COLUMNS} - {"variant", "agree"})
    wrong = [row for row in rows if row["agree"] != "yes"]
    for row in wrong:
        say(f"{row['variant']} cores={row['cores']} does not agree with its closed forms")
    return 1 if wrong else 0


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A row as it is printed: measured figures with those of the closed forms."""
    return (
        *(str(row[name]) for name in ("variant", "cores", "window")),
        f"{row['cycles_per_tuple']:g}" + ("" if row["formula"] == "-" else f" ({row['formula']})"),
        *(f"{row[f'{at}_match_cycles']} ({row[f'{at}_formula']})" for at in ("first", "last")),
        row["agree"],
    )


def _chosen(base: DesignParams, arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the one of ``--variant``, or those that ``--param`` and ``--preset`` choose."""
    given = [each for each in arguments.param if each.startswith(("design=", "forward="))]
    variants: tuple[str, ...] = VARIANTS
    if base.design == "splitjoin" and (given or arguments.preset):
        variants = ("splitjoin",)
    elif arguments.preset or any(each.startswith("forward=") for each in given):
        variants = (base.forward,)
    elif given:
        variants = FORWARDS
    asked = arguments.variant
    if asked is None:
        return variants
    if given and asked not in variants:
        raise UsageError(f"--variant {asked} is not of --param {' '.join(given)}: drop one of them")
    return (asked,)


def _variant(base: DesignParams, variant: str, cores: int) -> DesignParams:
    """Return the design with another way between its cores."""
    if variant == "splitjoin":
        return dataclasses.replace(base, design="splitjoin", forward="step", cores=cores)
    return dataclasses.replace(
        base, design="handshake", cores=cores, probes=1, order="none", forward=variant
    )


def _counts(arguments: argparse.Namespace) -> list[int]:
    """Return the counts of ``--cores``, of ``--param cores=COUNT``, or the usual ones."""
    given = [each.removeprefix("cores=") for each in arguments.param if each.startswith("cores=")]
    if given and arguments.cores is not None:
        raise UsageError(f"--cores and --param cores={given[-1]} both count cores: drop one")
    text = arguments.cores if arguments.cores is not None else (given[-1] if given else USUAL_CORES)
    words = text.split(",")
    if not all(word.isascii() and word.isdigit() and int(word) for word in words):
        raise UsageError(f"--cores must be counts from 1 up, as in {USUAL_CORES}, not {text!r}")
    return [int(word) for word in words]


def _row(params: DesignParams) -> dict[str, Any]:
    """Measure the first and the last match."""
    from streamjoin_hw.flow.build import build_model
    from streamjoin_hw.sim.testing import step_cycles
    from streamjoin_hw.studies.latency.cases import latency_cycles, measure

    # In SplitJoin tuples share passes, more or fewer of them: there is no closed form.
    is_split = params.design == "splitjoin"
    variant = "splitjoin" if is_split else params.forward
    ages = range(params.window_capacity)
    first = min(ages, key=lambda age: latency_cycles(params, age))
    last = max(ages, key=lambda age: latency_cycles(params, age))
    with stages(f"{variant} cores={params.cores}") as report:
        folder = build_model(params, report=report)
        report("simulating")
        soon, late = measure(params, folder, first), measure(params, folder, last)
    period = step_cycles(params, params.window_capacity, params.cores)
    row: dict[str, Any] = {
        "variant": variant,
        "cores": params.cores,
        "window": params.window_capacity,
        "cycles_per_tuple": round(late.cycles_per_tuple, 3),
        "formula": "-" if is_split else period,
        "first_match_cycles": soon.latency_cycles,
        "first_formula": latency_cycles(params, first),
        "last_match_cycles": late.latency_cycles,
        "last_formula": latency_cycles(params, last),
    }
    pairs = [("first_match_cycles", "first_formula"), ("last_match_cycles", "last_formula")]
    pairs += [] if is_split else [("cycles_per_tuple", "formula")]
    agree = all(row[a] == row[b] for a, b in pairs)
    return {**row, "agree": "yes" if agree else "no"}
