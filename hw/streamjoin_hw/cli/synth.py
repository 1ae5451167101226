"""``streamjoin hw synth``."""

import argparse
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamjoin_common.documents import read_json
from streamjoin_common.errors import UsageError
from streamjoin_common.installed import shipped
from streamjoin_common.installed.completing import complete
from streamjoin_hw.cli.options import chosen, design_from
from streamjoin_hw.cli.terminal import print_table, say, stages, write_text
from streamjoin_hw.studies.synth.targets import RESOURCE_NAMES, TARGETS, Target, share_in_words

if TYPE_CHECKING:
    from streamjoin_hw.studies.synth.settings import Settings

BOARD_SUFFIX = "-board"
"""Of the name of a stored record whose top level is the one for boards."""

USUAL_CLOCK_MHZ = 100.0
USUAL_DEADLINE_S = 3600
MAX_PLACEMENTS = 9
MAX_DEADLINE_S = 5 * 3600
"""Of one tool; a placement of 64 cores on an ECP5-85 takes up to half an hour."""


def configure(action: argparse.ArgumentParser) -> None:
    """Add the flags."""
    configure_run(action)
    action.add_argument("--seed", type=int, default=1, metavar="SEED", help="of the placer")
    _configure_stored(action)
    action.add_argument("--json", action="store_true", help="print the record as JSON")
    action.add_argument(
        "--out",
        metavar="DIR",
        help="write the record (synth.json) beside the design's Verilog and manifest",
    )


def _configure_stored(action: argparse.ArgumentParser) -> None:
    action.add_argument(
        "--record", metavar="FILE", help="write the record alone, as benchmarks/synth keeps them"
    )
    action.add_argument(
        "--stored",
        metavar="DIR",
        nargs="?",
        const=str(shipped.EXPERIMENTS / "synth"),
        help="only show the records kept in a folder (default: those of the project)",
    )
    action.add_argument(
        "--compare",
        action="store_true",
        help="with --stored: show which records are of a design that has changed since; takes "
        "seconds a design",
    )


def configure_run(action: argparse.ArgumentParser) -> None:
    """Add the flags that say on what and how to synthesise."""
    target = action.add_argument("--target", metavar="PART", help=f"one of {', '.join(TARGETS)}")
    complete(target, lambda _: TARGETS)
    action.add_argument(
        "--no-route",
        action="store_true",
        help="count cells only, where place and route is possible",
    )
    action.add_argument(
        "--flat", action="store_true", help="synthesise all cores, not one of them once"
    )
    action.add_argument(
        "--board-top",
        action="store_true",
        help="take the top level that Vivado gets, with the words that a DMA carries",
    )
    for flag, kind, default, name, help_line in (
        (
            *("--clock", float, None, "MHZ"),
            f"clock in MHz to aim at where it is routed ({USUAL_CLOCK_MHZ:g})",
        ),
        ("--placements", int, 1, "COUNT", "route the best of so many, by its estimated clock"),
        ("--deadline", float, USUAL_DEADLINE_S, "SECONDS", "each tool may take this long"),
    ):
        action.add_argument(flag, type=kind, default=default, metavar=name, help=help_line)


def target_of(arguments: argparse.Namespace) -> Target:
    """Return the part that is asked for.

    Raises
    ------
    UsageError
        If none is named, or one that is not known.
    """
    return TARGETS[chosen("--target", arguments.target, TARGETS)]


def settings_of(arguments: argparse.Namespace, target: Target, seed: int) -> "Settings":
    """Return how to synthesise with a seed of the placer.

    A design that is routed is in its harness.

    Raises
    ------
    UsageError
        If a flag is out of its range.
    """
    from streamjoin_hw.studies.synth.settings import (
        BOARD_TOP,
        DESIGN_TOP,
        HARNESS_TOP,
        Settings,
    )

    clock_mhz = USUAL_CLOCK_MHZ if arguments.clock is None else arguments.clock
    for flag, value, minimum, maximum in (
        ("--clock", clock_mhz, 1, 1000),
        ("--seed", seed, 0, 2**31 - 1),
        ("--placements", arguments.placements, 1, MAX_PLACEMENTS),
        ("--deadline", arguments.deadline, 1, MAX_DEADLINE_S),
    ):
        if not minimum <= value <= maximum:
            shown = value if isinstance(value, int) else f"{value:g}"
            raise UsageError(f"{flag} must be from {minimum} to {maximum}, not {shown}")
    is_routed = target.has_timing and not arguments.no_route
    for flag, is_given in (
        ("--placements", arguments.placements > 1),
        ("--clock", arguments.clock is not None),
    ):
        if is_given and not is_routed:
            raise UsageError(
                f"{flag} is for designs that are routed: give --target ecp5-85k or lifcl-40, "
                "and no --no-route"
            )
    return Settings(
        routed=not arguments.no_route,
        flat=arguments.flat,
        clock_hz=clock_mhz * 1e6,
        seed=seed,
        placements=arguments.placements,
        top=BOARD_TOP if arguments.board_top else HARNESS_TOP if is_routed else DESIGN_TOP,
        deadline_s=arguments.deadline,
    )


def run(arguments: argparse.Namespace) -> int:
    """Synthesise the design; the status is 1 if it does not fit."""
    if arguments.stored is not None:
        if arguments.preset or arguments.param or arguments.target:
            raise UsageError("--stored shows all records: drop --preset, --param and --target")
        return _stored(arguments)
    if arguments.compare:
        raise UsageError("--compare goes with --stored, which shows the records to compare")
    target = target_of(arguments)
    settings = settings_of(arguments, target, arguments.seed)
    params = design_from(arguments.preset, arguments.param)
    from streamjoin_common.storage import check_writable
    from streamjoin_hw.studies.synth.record import RECORD_NAME, record, write_record

    if arguments.out is not None:
        check_writable(Path(arguments.out) / RECORD_NAME)
    if arguments.record is not None:
        check_writable(Path(arguments.record))
    with stages(f"synthesising for {target.name}") as report:
        recorded = record(params, target, settings, report)
    if arguments.out is not None:
        folder = Path(arguments.out)
        write_record(params, recorded, folder)
        say(f"wrote the record, Verilog and manifest to {folder}")
    if arguments.record is not None:
        write_text(json.dumps(recorded, indent=2) + "\n", Path(arguments.record))
    if arguments.json:
        print(json.dumps(recorded))
    else:
        print_table(("measure", "value"), rows(recorded))
    if recorded["does_not_fit"]:
        say(recorded["does_not_fit"])
        return 1
    return 0


def _stored(arguments: argparse.Namespace) -> int:
    """Show the records of a folder; if asked, each beside the design as it is now."""
    folder = Path(arguments.stored)
    records = {file: read_json(file) for file in sorted(folder.glob("*.json"))}
    if not records:
        raise UsageError(f"--stored must name a folder with records, not {arguments.stored!r}")
    current = _compared(records) if arguments.compare else {}
    if arguments.json:
        flags = {file: {"is_current": current[file]} for file in current}
        print(json.dumps([{"name": f.stem, **flags.get(f, {}), **r} for f, r in records.items()]))
    else:
        columns = ["record", "part", "LUT", "clock", "compared\n/cycle"]
        columns += ["current"] if current else []
        lines = []
        for file, plain in records.items():
            verdict = ["yes" if current[file] else "no"] if current else []
            lines.append([file.stem, *_stored_row(plain), *verdict])
        print_table(columns, lines, {"LUT", "clock", "compared\n/cycle"})
        if not current:
            say("to see which of them are of a design that has changed since, add --compare")
    for file, is_current in current.items():
        if not is_current:
            renewing = _renewing(records[file], file)
            say(f"{file.stem} is of an earlier design; to renew it:  {renewing}")
    return 0


def _stored_row(plain: dict[str, Any]) -> tuple[str, ...]:
    if not plain["resources"]:
        return (plain["part"], "-", "no result", str(plain["comparisons_per_cycle"] or "-"))
    lut, clock = plain["resources"]["lut"], plain["clock"]["hz"]
    return (
        plain["part"],
        f"{lut['used']:,} ({share_in_words(lut)})",
        "not timed" if clock is None else f"{clock / 1e6:.1f} MHz",
        str(plain["comparisons_per_cycle"] or "-"),
    )


def _compared(records: dict[Path, dict[str, Any]]) -> dict[Path, bool]:
    """Whether each record is of the design as it is now; takes seconds a design."""
    from streamjoin_hw.studies.synth.settings import verilog_digest

    current = {}
    with stages("comparing with the designs as they are") as report:
        for number, (file, plain) in enumerate(records.items(), start=1):
            report(f"{file.stem}, {number} of {len(records)}")
            current[file] = verilog_digest(_verilog_now(plain)) == plain["verilog_sha256"]
    return current


def _verilog_now(recorded: dict[str, Any]) -> str:
    """Return the Verilog that a record's parameters give now."""
    from streamjoin_common.contract import DesignParams
    from streamjoin_hw.studies.selftest.stimulus import Expected
    from streamjoin_hw.studies.selftest.top import selftest_verilog
    from streamjoin_hw.studies.synth.settings import (
        DESIGN_TOP,
        SELFTEST_TOP,
        Settings,
        verilog_of,
    )

    params, top = DesignParams.from_dict(recorded["params"]), recorded["settings"].get("top")
    if top == SELFTEST_TOP:
        facts = recorded["selftest"]
        wanted = Expected(facts["results"], facts["checksum"])
        return selftest_verilog(params, facts["tuples"], wanted)
    return verilog_of(params, Settings(top=top or DESIGN_TOP))


def _renewing(recorded: dict[str, Any], file: Path) -> str:
    """Return the command that makes a record anew; one of a preset is named after it."""
    from streamjoin_common.contract.presets import PRESETS
    from streamjoin_hw.studies.synth.page import typed_params
    from streamjoin_hw.studies.synth.settings import BOARD_TOP, SELFTEST_TOP

    top, preset = recorded["settings"].get("top"), file.stem
    if top == SELFTEST_TOP:
        made = f"build/{preset}"
        return (
            f"streamjoin hw bitstream --board {preset} --out {made} && "
            f"cp {made}/bitstream.json {file}"
        )
    settings, params = recorded["settings"], recorded["params"]
    typed = [f"cores={params['cores']}", *(f"{name}={v}" for name, v in typed_params(params))]
    words = ["streamjoin", "hw", "synth", "--target", recorded["target"]]
    known = PRESETS.get(preset.removesuffix(BOARD_SUFFIX))
    if known is not None and json.loads(json.dumps(known.to_dict())) == params:
        words += ["--preset", preset.removesuffix(BOARD_SUFFIX)]
    elif "copies" in settings:
        words = [*words[:2], "scale", *words[3:], "--param", *typed[1:]]
        words += ["--cores", str(params["cores"] * settings["copies"])]
        words += ["--each", str(params["cores"])]
    else:
        words += ["--param", *typed]
    words += ["--board-top"] if top == BOARD_TOP else []
    words += ["--flat"] if settings["flat"] else []
    if "clock_hz" in settings:
        words += ["--clock", f"{settings['clock_hz'] / 1e6:g}", "--seed", str(settings["seed"])]
        words += ["--placements", str(settings.get("placements", 1))]
    elif TARGETS[recorded["target"]].has_timing:
        words += ["--no-route"]
    kept = ["--record", str(file)]
    return shlex.join(
        [*words, *(["--out", str(file.parent), "--renew"] if "copies" in settings else kept)]
    )


def rows(recorded: dict[str, Any]) -> list[tuple[str, str]]:
    """Put a record into rows that are read from top to bottom."""
    lines = [("part", recorded["part"])]
    for name, use in recorded["resources"].items():
        used = f"{use['used']:,} of {use['available']:,} ({share_in_words(use)})"
        lines.append((RESOURCE_NAMES[name], used))
    lines.append(("counted by", f"{recorded['resources_source']}; {recorded['method']}"))
    clock = recorded["clock"]
    if clock["hz"] is None:
        lines.append(("clock", clock["source"]))
    else:
        lines.append(("clock", f"{clock['hz'] / 1e6:.1f} MHz ({clock['source']})"))
        lines.append(("longest path", clock["critical_path_in_words"]))
    comparisons, density = recorded["comparisons_per_cycle"], recorded["comparisons_per_1000_lut"]
    if comparisons is not None:
        lines.append(("comparisons a cycle", f"at most {comparisons}, {density} for 1,000 LUT"))
    lines.append(("tools", ", ".join(" ".join(pair) for pair in recorded["tools"].items())))
    took = ", ".join(f"{stage} {seconds:g}" for stage, seconds in recorded["seconds"].items())
    lines.append(("seconds", took))
    return lines
