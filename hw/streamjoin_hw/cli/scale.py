"""``streamjoin hw scale``."""

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamjoin_common.errors import UsageError
from streamjoin_hw.cli.options import design_from
from streamjoin_hw.cli.synth import configure_run, settings_of, target_of
from streamjoin_hw.cli.terminal import print_paragraph, print_table, say, stages
from streamjoin_hw.studies.synth.targets import share_in_words

if TYPE_CHECKING:
    from streamjoin_hw.studies.synth.scale import Point
    from streamjoin_hw.studies.synth.settings import Settings

USUAL_CORES = "4,8,16,32"
PAGE_NAME = "scale.html"
COLUMNS = (
    *("cores", "LUT", "FF", "LUT a core", "of the part", "clock in MHz", "seconds"),
    "longest path",
)


def configure(action: argparse.ArgumentParser) -> None:
    """Add the flags."""
    configure_run(action)
    action.add_argument(
        "--cores",
        default=USUAL_CORES,
        metavar="COUNT,...",
        help=f"counts of cores, a point each (default {USUAL_CORES})",
    )
    action.add_argument(
        "--seeds",
        "--seed",
        default="1",
        metavar="SEED,...",
        help="of the placer, a placement each; the clock of a point is their median, the slower "
        "one of an even number's two",
    )
    action.add_argument(
        "--each",
        metavar="COUNT",
        help="as a control: a point's cores are those of designs of so many cores side by side, "
        "which nothing connects, and what these lose in clock the tools lose",
    )
    action.add_argument("--json", action="store_true", help="print the records as JSON")
    action.add_argument(
        "--out",
        metavar="DIR",
        required=True,
        help="folder of the records, from which an interrupted study resumes, and of the page; "
        "records of other settings or an earlier design are not written over",
    )
    action.add_argument(
        "--renew", action="store_true", help="replace records of an earlier design, flow or tool"
    )


def _numbers(string: str, flag: str, example: str) -> list[int]:
    words = string.split(",")
    if not all(word.isascii() and word.isdigit() and int(word) for word in words):
        raise UsageError(f"{flag} must be integers from 1 up, as in {example}, not {string!r}")
    return sorted({int(word) for word in words})


def _cores_of_each(
    arguments: argparse.Namespace, counts: Sequence[int], settings: Sequence["Settings"]
) -> int | None:
    """Return the cores of each of several designs side by side; None for one design.

    Raises
    ------
    UsageError
        If a point's cores are no multiple of them, or nothing is routed.
    """
    from streamjoin_hw.studies.synth.settings import HARNESS_TOP

    if arguments.each is None:
        return None
    numbers = _numbers(arguments.each, "--each", "4")
    if len(numbers) > 1:
        raise UsageError(f"--each is one integer, as in 4, not {arguments.each!r}")
    if settings[0].top != HARNESS_TOP:
        raise UsageError(
            "--each compares clocks, and this study has none: give --target ecp5-85k or lifcl-40, "
            "without --no-route and --board-top"
        )
    (each_has,) = numbers
    for cores in counts:
        if cores % each_has:
            raise UsageError(f"--cores must be multiples of --each {each_has}, and {cores} is none")
    return each_has


def run(arguments: argparse.Namespace) -> int:
    """Synthesise each point that is not there yet; 1 if none of them fits."""
    target = target_of(arguments)
    seeds = _numbers(arguments.seeds, "--seeds", "1,2,3")
    settings = [settings_of(arguments, target, seed) for seed in seeds]
    counts = _numbers(arguments.cores, "--cores", USUAL_CORES)
    # Every point is checked before the first one takes its minutes.
    if any(each.startswith("cores=") for each in arguments.param):
        raise UsageError("--cores counts the cores of each point: drop --param cores")
    if len(seeds) > 1 and not (settings[0].routed and target.has_timing):
        raise UsageError(
            "--seeds are of the placer, and this study places nothing: give one, or --target "
            "ecp5-85k or lifcl-40 without --no-route"
        )
    if arguments.preset is None:
        base = design_from(None, [*arguments.param, f"cores={counts[0]}"])
    else:
        base = design_from(arguments.preset, arguments.param)
    if base.has_index:
        raise UsageError(
            f"hw scale needs a design of several cores, and {base.design} has one: give --preset "
            "tiny or tiny-split, or count this one with hw synth"
        )
    for cores in counts:
        dataclasses.replace(base, cores=cores)
    each_has = _cores_of_each(arguments, counts, settings)
    from streamjoin_common import storage
    from streamjoin_hw.studies.synth.scale import planned, points, refuse_others, sweep

    folder = Path(arguments.out)
    total = len(counts) * len(seeds)
    with stages(f"scale on {target.name}") as report:
        report("comparing records that are there with the design")
        placements = planned(base, counts, settings, each_has)
        refuse_others(folder, target, placements, renews=arguments.renew)
        storage.make_folder(folder)
        records = sweep(
            base,
            counts,
            target,
            settings,
            folder=folder,
            report=report,
            ended=lambda done: report(f"{done} of {total} done"),
            each_has=each_has,
        )
    storage.write_text(folder / PAGE_NAME, study_page(records))
    say(f"wrote {folder / PAGE_NAME}")
    if arguments.json:
        sys.stdout.write(json.dumps(records) + "\n")
    else:
        print_table(COLUMNS, [_row(each) for each in points(records)], COLUMNS[:-1])
        for sentence in sentences(records):
            print_paragraph(sentence)
    return 0 if any(each["resources"] and not each["does_not_fit"] for each in records) else 1


def _row(point: "Point") -> tuple[str, ...]:
    recorded, cores = point.median, point.cores
    uses, clock = recorded["resources"], recorded["clock"]
    words = recorded["does_not_fit"] or clock.get("critical_path_in_words") or clock["source"]
    seconds = f"{sum(sum(each['seconds'].values()) for each in point.records):.0f}"
    if not uses:
        return (str(cores), "-", "-", "-", "-", "-", seconds, words)
    lut = uses["lut"]
    return (
        str(cores),
        f"{lut['used']:,}",
        f"{uses['ff']['used']:,}",
        f"{lut['used'] / cores:.0f}",
        share_in_words(lut),
        _clock_in_words(point),
        seconds,
        words,
    )


def _clock_in_words(point: "Point") -> str:
    """Return the median clock in MHz, and of several placements the slowest and the fastest."""
    if point.median["clock"]["hz"] is None:
        return "-"
    words = f"{point.median['clock']['hz'] / 1e6:.1f}"
    clocks = point.clocks_hz
    if len(clocks) > 1:
        words += f" ({clocks[0] / 1e6:.1f} to {clocks[-1] / 1e6:.1f})"
    return words


def sentences(records: Sequence[dict[str, Any]]) -> list[str]:
    """Say what the points show, beside the paper's figure."""
    from streamjoin_hw.studies.synth.scale import PAPER_LUTS_A_CORE, clock_loss, luts_a_core

    said = []
    copied = records[0]["params"]["cores"] if "copies" in records[-1]["settings"] else None
    slope = luts_a_core(records)
    if slope is not None and copied is None:
        said.append(
            f"A further core costs {slope:.0f} LUT; in handshake join's table 1 it costs "
            f"{PAPER_LUTS_A_CORE} (1.24 % of an XC6VLX760T for nine)."
        )
    if copied is not None:
        said.append(
            f"A control: designs of {copied} cores side by side, which nothing connects. What they "
            "lose in clock the tools lose."
        )
    loss = clock_loss(records)
    if loss is not None:
        few, many, share = loss
        said.append(
            f"From {few} to {many} cores the clock falls by {share:.1%}.".replace("%", " %")
        )
    return said


def _asked(records: Sequence[dict[str, Any]]) -> list[str]:
    """Say what clock a study aimed at and how often it placed."""
    settings = [each["settings"] for each in records if "clock_hz" in each["settings"]]
    if not settings:
        return []
    seeds = sorted({each["seed"] for each in settings})
    best = settings[0].get("placements", 1)
    of_best = f", the best of {best} placements each" if best > 1 else ""
    return [
        f"Aimed at {settings[0]['clock_hz'] / 1e6:g} MHz; seeds "
        f"{', '.join(map(str, seeds))}{of_best}. A point's clock is the median, of an even number "
        "the slower one of the two."
    ]


def study_page(records: Sequence[dict[str, Any]]) -> str:
    """Return the study as a page with clock and LUTs against cores."""
    from streamjoin_hw.studies.synth.page import ACCENT, design_in_words, drawn, page
    from streamjoin_hw.studies.synth.scale import cores_of, points

    studied = points(records)
    placed = [each.median for each in studied if each.median["resources"]]
    routed = [each.median for each in studied if each.median["clock"]["hz"]]

    def paint(axes: Any) -> None:
        left, right = axes
        x = [cores_of(each) for each in routed]
        left.plot(x, [each["clock"]["hz"] / 1e6 for each in routed], "-", color=ACCENT)
        for each in studied:
            clocks = [hz / 1e6 for hz in each.clocks_hz]
            left.plot([each.cores] * len(clocks), clocks, "o", color=ACCENT)
        for each in axes:
            each.xaxis.get_major_locator().set_params(integer=True)
        left.set(xlabel="cores", ylabel="clock in MHz", ylim=(0, None))
        x = [cores_of(each) for each in placed]
        right.plot(x, [each["resources"]["lut"]["used"] for each in placed], "o-", color=ACCENT)
        right.set(xlabel="cores", ylabel="LUT", ylim=(0, None))

    first = records[0]
    said = [f"{each.cores} cores {_clock_in_words(each)} MHz" for each in studied]
    notes = [
        *sentences(records),
        f"Clock: {(routed or records)[0]['clock']['source']}. "
        f"LUT: {first['resources_source']}; {first['method']}.",
        *_asked(records),
        design_in_words(first["params"]),
        f"Tools: {', '.join(' '.join(pair) for pair in first['tools'].items())}.",
    ]
    return page(
        f"Clock and area against cores on {first['part']}",
        drawn(paint, panels=2, alt="; ".join(said)),
        (COLUMNS, [_row(each) for each in studied]),
        notes,
    )
