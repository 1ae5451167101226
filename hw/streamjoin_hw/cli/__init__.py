"""``streamjoin hw``: Verilog, manifest, Verilated model, a quick simulation.

Importing this module stays cheap: every heavy library is imported where it is used.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

from streamjoin_common import storage
from streamjoin_common.contract import BOARDS, DesignParams, ParameterError, active_cores
from streamjoin_common.contract.presets import PRESETS
from streamjoin_common.errors import UsageError
from streamjoin_common.installed.completing import complete
from streamjoin_hw.cli import latency, rate
from streamjoin_hw.cli.options import (
    GROUP_HELP,
    as_typed,
    chosen,
    chosen_group,
    design_from,
    parameters_help,
)
from streamjoin_hw.cli.power import configure as configure_power
from streamjoin_hw.cli.prove import configure as configure_prove
from streamjoin_hw.cli.scale import configure as configure_scale
from streamjoin_hw.cli.synth import configure as configure_synth
from streamjoin_hw.cli.terminal import built_model, progress, say, show, stages, write_text
from streamjoin_hw.cli.walk import check_seed, chosen_windows, configure_input

_EXAMPLES = """examples:
  streamjoin hw verilog --preset tiny --out build/tiny
  streamjoin hw manifest --preset tiny --param cores=16
  streamjoin hw registers --preset tiny-band --out docs/registers.md
  streamjoin hw model --preset tiny-band --json
  streamjoin hw simulate --preset tiny --tuples 2000 --idle 200 --stall 500
  streamjoin hw simulate --preset tiny --tuples 10000000 --idle 100 --stall 200
  streamjoin hw simulate --preset tiny --tuples 100 --waves build/tiny.vcd
  streamjoin hw latency --cores 1,2,4,8 --param segment_tuples=16
  streamjoin hw rate --preset tiny-hash --windows 48 --rates 0,1,4
  streamjoin hw synth --target ecp5-85k --preset tiny --out build/tiny
  streamjoin hw scale --target ecp5-85k --preset tiny --cores 4,8 --out scale
  streamjoin hw power --cores 1,2,5,10 --out runs/power
  streamjoin hw animate --preset tiny --out walk.html
  streamjoin hw bitstream --board ulx3s-85f --out build/ulx3s-85f
  streamjoin hw prove merger-passage meeting-dense --depth 30
"""

PROGRESS_LEAST_TUPLES = 2000
"""Inputs below this end too soon for a progress bar to be of use."""


OUTPUT_FLAGS = ("out", "waves", "record")
"""Flags of the actions that name what is written."""


def _check_outputs(arguments: argparse.Namespace) -> None:
    """Refuse what cannot be written before anything is computed."""
    for flag in OUTPUT_FLAGS:
        name = getattr(arguments, flag, None)
        if name == "":
            raise UsageError(f"--{flag} needs a path")
        if name is not None:
            storage.check_writable(Path(name))


def _out(arguments: argparse.Namespace) -> Path | None:
    return None if arguments.out is None else Path(arguments.out)


def _verilog(arguments: argparse.Namespace) -> int:
    from streamjoin_common.contract import HEADER_NAME
    from streamjoin_hw.flow.core_file import CORE_NAME
    from streamjoin_hw.flow.emit import MANIFEST_NAME, emit_verilog

    params = design_from(arguments.preset, arguments.param)
    folder = _out(arguments)
    if folder is None:
        raise UsageError("--out must name the folder that the Verilog is written to")
    path = emit_verilog(params, folder)
    say(f"wrote {path}, and beside it {MANIFEST_NAME}, {HEADER_NAME} and {CORE_NAME}")
    print(path)
    return 0


def _manifest(arguments: argparse.Namespace) -> int:
    from streamjoin_hw.flow.emit import manifest

    params = design_from(arguments.preset, arguments.param)
    write_text(json.dumps(manifest(params), indent=2) + "\n", _out(arguments))
    return 0


def _registers(arguments: argparse.Namespace) -> int:
    from streamjoin_hw.cli.pages import registers_page

    params = design_from(arguments.preset, arguments.param)
    write_text(registers_page(params), _out(arguments))
    return 0


def _model(arguments: argparse.Namespace) -> int:
    params = design_from(arguments.preset, arguments.param)
    folder = built_model(params)
    target = _out(arguments)
    if target is not None:
        if target.exists():
            raise UsageError(
                f"--out must name a folder that is not there yet, not {str(target)!r}: "
                "remove it, or name another"
            )
        folder = _copied(folder, target)
    print(
        json.dumps({"folder": str(folder), "digest": params.digest}) if arguments.json else folder
    )
    return 0


def _copied(folder: Path, target: Path) -> Path:
    """Copy a folder, which appears whole or not at all."""
    import shutil

    with storage.new_folder(target, replace=False) as made:
        for path in sorted(folder.rglob("*")):
            copy = made / path.relative_to(folder)
            if path.is_dir():
                copy.mkdir()
            else:
                shutil.copy2(path, copy)
    return target


def _per_1024(flag: str, value: int) -> int:
    if not 0 <= value <= 1000:
        raise UsageError(f"{flag} must be from 0 to 1000 (of 1024 cycles), not {value}")
    return value


def _simulate(arguments: argparse.Namespace) -> int:
    from streamjoin_hw.sim.run import EXACT, bulk_run

    params = design_from(arguments.preset, arguments.param)
    if arguments.tuples < 1:
        raise UsageError(f"--tuples must be at least 1, not {arguments.tuples}")
    check_seed(arguments.seed)
    group = chosen_group(params, arguments.group)
    idle, stall = _per_1024("--idle", arguments.idle), _per_1024("--stall", arguments.stall)
    if arguments.waves is not None:
        return _waves(arguments, params, idle, stall)
    windows = chosen_windows(arguments, params.window_capacity)
    active_cores(params, *windows)
    folder = built_model(params)
    with progress("simulating", arguments.tuples, hidden_below=PROGRESS_LEAST_TUPLES) as report:
        figures = bulk_run(
            params,
            folder,
            tuples=arguments.tuples,
            windows=windows,
            seed=arguments.seed,
            idle_per_1024=idle,
            stall_per_1024=stall,
            report=report,
            group=group,
        )
    show(figures, as_json=arguments.json)
    return 0 if figures["verdict"] == EXACT else 1


def _waves(arguments: argparse.Namespace, params: Any, idle: int, stall: int) -> int:
    from streamjoin_hw.cli.walk import waves

    return waves(arguments, params, idle, stall)


def _animate(arguments: argparse.Namespace) -> int:
    from streamjoin_hw.cli.walk import animate

    return animate(arguments)


def _of(module: str) -> Callable[[argparse.Namespace], int]:
    """Return an action that a module of its own runs, imported when it does."""

    def run(arguments: argparse.Namespace) -> int:
        status: int = import_module(f"streamjoin_hw.{module}").run(arguments)
        return status

    return run


def _bitstream(arguments: argparse.Namespace) -> int:
    from streamjoin_hw.flow.vivado import CLOCK_MHZ, vivado_bitstream
    from streamjoin_hw.studies.selftest import ulx3s

    names = (*BOARDS, ulx3s.BOARD)
    chosen("--board", arguments.board, names)
    folder = _out(arguments)
    if folder is None:
        raise UsageError("--out must name the folder that the bitstream is written to")
    params = design_from(arguments.preset or arguments.board, arguments.param)
    if arguments.board == ulx3s.BOARD:
        if arguments.clock is not None:
            raise UsageError("--clock is for the boards that Vivado builds for: drop it")
        with stages(f"bitstream for {ulx3s.BOARD}") as report:
            made = ulx3s.bitstream(params, folder, report)
        print(made)
        say(ulx3s.summary(made.parent))
        return 0
    clock_mhz = CLOCK_MHZ if arguments.clock is None else arguments.clock
    print(vivado_bitstream(params, arguments.board, folder, say, clock_mhz))
    return 0


def _configure_bitstream(action: argparse.ArgumentParser) -> None:
    board = action.add_argument(
        "--board",
        metavar="NAME",
        help="pynq-z2, zcu104 or kv260 (needs Vivado), or ulx3s-85f (a self-test, by open tools); "
        "also the preset",
    )
    complete(board, lambda _: (*BOARDS, "ulx3s-85f"))
    action.add_argument(
        "--clock",
        type=float,
        metavar="MHZ",
        help="clock of the design, with Vivado (default 100): slower ones are easier to meet",
    )
    action.add_argument("--out", metavar="PATH", help="folder that is not there yet")


class HardwareVerb:
    """The verb ``hw`` of the ``streamjoin`` command."""

    help = (
        "Simulates, animates, measures, synthesizes, proves a design; writes Verilog, bitstreams."
    )

    _CONFIGURE = MappingProxyType(
        {
            "latency": latency.configure,
            "rate": rate.configure,
            "synth": configure_synth,
            "scale": configure_scale,
            "power": configure_power,
            "bitstream": _configure_bitstream,
        }
    )
    _USUAL_PRESETS = MappingProxyType(
        {"latency": latency.USUAL_PRESET, "rate": f"{rate.USUAL_PRESET}, none with --param design"}
    )
    _ACTIONS = (
        ("verilog", _verilog, "write the design's Verilog and manifest to a folder"),
        ("manifest", _manifest, "print the design's manifest"),
        ("registers", _registers, "print the register map as a page of the documentation"),
        ("model", _model, "build the Verilated model and print its folder"),
        ("simulate", _simulate, "run random tuples through the model and check the result"),
        (
            "latency",
            _of("cli.latency"),
            "measure cycles a tuple and a match take, beside closed forms",
        ),
        (
            "rate",
            _of("cli.rate"),
            "measure cycles a tuple takes under loads of given match rate and skew",
        ),
        (
            "synth",
            _of("cli.synth"),
            "count what the design uses of a part and how fast its clock can be",
        ),
        ("scale", _of("cli.scale"), "show clock and area against the number of cores"),
        (
            "power",
            _of("cli.power"),
            "model the dynamic power of cores and clock from what switches in simulated gates",
        ),
        ("animate", _animate, "write a page that shows tuples walk through the cores and meet"),
        ("bitstream", _bitstream, "build a board's bitstream, by open tools or with Vivado"),
        (
            "prove",
            _of("cli.prove"),
            "prove parts of the design, and that each proof finds its fault",
        ),
    )

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the actions and their flags."""
        parameters = parameters_help()
        parser.epilog = f"{parameters}\n{_EXAMPLES}"
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
        for name, run, help_line in self._ACTIONS:
            example = next(line for line in _EXAMPLES.splitlines() if f" hw {name}" in line)
            about = "" if name == "prove" else f"{parameters}\n"
            action = actions.add_parser(
                name,
                help=help_line,
                description=f"{help_line[0].upper()}{help_line[1:]}.",
                epilog=f"{about}example:\n{example}",
                formatter_class=argparse.RawDescriptionHelpFormatter,
            )
            action.set_defaults(action_run=run)
            if name == "prove":
                configure_prove(action)
                continue
            usual = self._USUAL_PRESETS.get(name)
            preset = action.add_argument(
                "--preset",
                metavar="NAME",
                help=f"named design point: {', '.join(PRESETS)}"
                + (f"; default {usual}" if usual else ""),
            )
            complete(preset, lambda _: PRESETS)
            param = action.add_argument(
                "--param",
                metavar="K=V",
                nargs="+",
                action="extend",
                default=[],
                help="set parameters, over the preset: cores=16 terms=band:int32,band:float32",
            )
            complete(param, lambda _: [f"{each.name}=" for each in fields(DesignParams)])
            if name in ("model", "simulate"):
                action.add_argument("--json", action="store_true", help="print JSON")
            if name == "simulate":
                self._configure_simulate(action)
            elif name in self._CONFIGURE:
                self._CONFIGURE[name](action)
            elif name == "animate":
                configure_input(action, 40)
                action.add_argument("--out", metavar="PATH", help="where to write the page")
            else:
                action.add_argument("--out", metavar="PATH", help="where to write")

    @staticmethod
    def _configure_simulate(action: argparse.ArgumentParser) -> None:
        configure_input(action, 1000)
        for flag, help_line in (
            ("--idle", "input pauses, of 1024 cycles, at most 1000 (default 0)"),
            ("--stall", "output is not ready, of 1024 cycles, at most 1000 (default 0)"),
        ):
            action.add_argument(flag, type=int, default=0, metavar="COUNT", help=help_line)
        action.add_argument("--group", type=int, default=1, metavar="COUNT", help=GROUP_HELP)
        action.add_argument(
            "--waves",
            nargs="?",
            const="build/waves.vcd",
            metavar="FILE",
            help="write every signal's waveform as VCD (default build/waves.vcd), and a .gtkw "
            "beside it that groups them; runs in Amaranth's simulator, up to 5000 tuples",
        )

    def run(self, arguments: argparse.Namespace) -> int:
        """Run the chosen action; returns the exit status."""
        _check_outputs(arguments)
        try:
            status: int = arguments.action_run(arguments)
        except ParameterError as error:
            raise ParameterError(as_typed(str(error), vars(arguments))) from error
        return status


VERB = HardwareVerb()
__all__ = ["VERB", "HardwareVerb", "ParameterError", "UsageError", "design_from"]
