"""``streamjoin hw synth``."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamjoin_hw.design_options import UsageError, design_from
from streamjoin_hw.synth.targets import RESOURCE_NAMES, TARGETS, Target
from streamjoin_hw.terminal import print_table, say, stages

if TYPE_CHECKING:
    from streamjoin_hw.synth.record import Settings

USUAL_CLOCK_MHZ = 100.0
USUAL_DEADLINE_S = 3600
MOST_DEADLINE_S = 5 * 3600
"""Below ``cache.ABANDONED_S``: the folder of a tool that still runs is somebody's."""


def configure(action: argparse.ArgumentParser) -> None:
    """Add the flags."""
    configure_run(action)
    action.add_argument("--json", action="store_true", help="print the record as JSON")
    action.add_argument(
        "--out",
        metavar="DIR",
        help="write the record (synth.json) beside the design's Verilog and manifest",
    )


def configure_run(action: argparse.ArgumentParser) -> None:
    """Add the flags that say on what and how to synthesise."""
    action.add_argument(
        "--target", metavar="PART", required=True, help=f"one of {', '.join(TARGETS)}"
    )
    action.add_argument(
        "--no-route",
        action="store_true",
        help="count cells only, where place and route is possible",
    )
    action.add_argument(
        "--flat", action="store_true", help="synthesise all cores, not one of them once"
    )
    for flag, kind, default, name, text in (
        ("--clock", float, USUAL_CLOCK_MHZ, "MHZ", "clock to aim at in MHz"),
        ("--seed", int, 1, "SEED", "of the placer"),
        ("--deadline", float, USUAL_DEADLINE_S, "SECONDS", "each tool may take this long"),
    ):
        action.add_argument(
            flag, type=kind, default=default, metavar=name, help=f"{text} ({default:g})"
        )


def target_of(arguments: argparse.Namespace) -> Target:
    """Return the part that is asked for.

    Raises
    ------
    UsageError
        If it is not known.
    """
    if arguments.target not in TARGETS:
        raise UsageError(f"--target must be one of {', '.join(TARGETS)}, not {arguments.target!r}")
    return TARGETS[arguments.target]


def settings_of(arguments: argparse.Namespace) -> "Settings":
    """Return how to synthesise.

    Raises
    ------
    UsageError
        If a flag is out of its range.
    """
    from streamjoin_hw.synth.record import Settings

    for flag, value, least, most in (
        ("--clock", arguments.clock, 1, 1000),
        ("--seed", arguments.seed, 0, 2**31 - 1),
        ("--deadline", arguments.deadline, 1, MOST_DEADLINE_S),
    ):
        if not least <= value <= most:
            raise UsageError(f"{flag} must be from {least} to {most}, not {value:g}")
    return Settings(
        routed=not arguments.no_route,
        flat=arguments.flat,
        clock_hz=arguments.clock * 1e6,
        seed=arguments.seed,
        deadline_s=arguments.deadline,
    )


def run(arguments: argparse.Namespace) -> int:
    """Synthesise the design; the status is 1 if it does not fit."""
    target = target_of(arguments)
    settings = settings_of(arguments)
    params = design_from(arguments.preset, arguments.param)
    if arguments.out == "":
        raise UsageError("--out must name a folder, not nothing")
    from streamjoin_hw.synth.record import record, write_record

    with stages(f"synthesising for {target.name}") as tell:
        found = record(params, target, settings, tell)
    if arguments.out is not None:
        folder = Path(arguments.out)
        write_record(params, found, folder)
        say(f"wrote the record, Verilog and manifest to {folder}")
    if arguments.json:
        print(json.dumps(found))
    else:
        print_table(("measure", "value"), rows(found))
    if found["does_not_fit"]:
        say(found["does_not_fit"])
        return 1
    return 0


def rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Put a record into rows that are read from top to bottom."""
    lines = [("part", found["part"])]
    for name, use in found["resources"].items():
        share = f"{use['share']:.1%}".replace("%", " %")
        text = f"{use['used']:,} of {use['available']:,} ({share})"
        lines.append((RESOURCE_NAMES[name], text))
    lines.append(("counted by", f"{found['resources_source']}; {found['method']}"))
    clock = found["clock"]
    if clock["hz"] is None:
        lines.append(("clock", clock["source"]))
    else:
        lines.append(("clock", f"{clock['hz'] / 1e6:.1f} MHz ({clock['source']})"))
        lines.append(("longest path", clock["critical_path_in_words"]))
    most, density = found["comparisons_per_cycle"], found["comparisons_per_1000_lut"]
    if most is not None:
        lines.append(("comparisons a cycle", f"at most {most}, {density} for 1,000 LUT"))
    lines.append(("tools", ", ".join(" ".join(pair) for pair in found["tools"].items())))
    took = ", ".join(f"{stage} {seconds:g}" for stage, seconds in found["seconds"].items())
    lines.append(("seconds", took))
    return lines
