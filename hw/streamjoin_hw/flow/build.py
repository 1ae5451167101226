"""From Verilog to the Verilated model, a shared library that is kept in a cache."""

import hashlib
import json
import os
import platform
import shutil
from collections.abc import Callable
from pathlib import Path

from streamjoin_common import contract
from streamjoin_common.contract import LIBRARY_NAME, DesignParams
from streamjoin_common.errors import ToolError
from streamjoin_common.storage import cache
from streamjoin_hw.flow import toolchain
from streamjoin_hw.flow.emit import (
    BOARD_VERILOG_NAME,
    MANIFEST_NAME,
    VERILOG_NAME,
    emit_verilog,
    manifest,
    sources_hash,
    tool_versions,
    verilog_source,
)

BUILD_DEADLINE_S = 900
"""Seconds that one tool may take on the largest design that is sensible to simulate."""

KEPT_MODELS = 256
"""Models kept in the cache; the ones used longest ago go first."""

VERILATOR_FLAGS = (
    "--cc",
    "-O3",
    "--no-timing",
    "--x-assign",
    "fast",
    "--x-initial",
    "fast",
    "--noassert",
    # Amaranth's Verilog widens operands on purpose and everywhere.
    "-Wno-WIDTH",
    # Yosys gives a signal its default before the case statement, not in it.
    "-Wno-CASEINCOMPLETE",
)
ONE_FILE = "VM_PARALLEL_BUILDS=0"
"""Makefile variable of Verilator: all generated C++ is compiled as one file."""

CXX_FLAGS = ("-fPIC", "-fno-plt", "-fno-stack-protector", "-DVL_IGNORE_UNKNOWN_ARCH")

OPTIMISATION = "STREAMJOIN_MODEL_OPTIMISATION"
"""Variable of the environment with the C++ compiler's level, ``-O2`` by default.

``-Og`` compiles in half the time and simulates a little slower: for many models and few tuples.
"""
LEVELS = ("-O0", "-Og", "-O1", "-O2", "-O3")

_PACKAGE = Path(__file__).resolve().parents[1]
_RUNTIME = "libverilated.a"
# Cores kept as modules share their code: half the compile time, and a quarter faster at 40 cores.
VERILATOR_CONTROL = '`verilator_config\nno_inline -module "streamjoin_core"\n'
DRIVER = _PACKAGE / "sim" / "driver" / "driver.cpp"


def _log_nothing(_message: str) -> None:
    """Take a progress message and do nothing."""


def _optimisation() -> str:
    """Return the C++ compiler's level of optimisation."""
    level = os.environ.get(OPTIMISATION, "-O2")
    if level not in LEVELS:
        raise ToolError(f"{OPTIMISATION} must be one of {', '.join(LEVELS)}, not {level!r}")
    return level


def _tools_key(tool: toolchain.Verilator, cxx: str) -> str:
    """Return a key of the tools and flags that compile a model."""
    what = [tool.version, cxx, platform.machine(), *VERILATOR_FLAGS, *CXX_FLAGS, _optimisation()]
    return hashlib.sha256(chr(0).join(what).encode()).hexdigest()[:16]


def cache_key(params: DesignParams, tool: toolchain.Verilator, cxx: str, board: bool) -> str:
    """Return all that can change a design's model, as the name of its folder."""
    driver = hashlib.sha256(DRIVER.read_bytes()).hexdigest()
    what = [sources_hash(), driver, json.dumps(tool_versions(), sort_keys=True)]
    what.append(_tools_key(tool, cxx))
    if board:
        what.append("board")
    if params.theta is not None:
        # A user's function can look at what its digest does not cover; its hardware shows it.
        what.append(verilog_source(params))
    return f"{params.digest}-{hashlib.sha256(chr(0).join(what).encode()).hexdigest()[:16]}"


def build_model(
    params: DesignParams, *, report: Callable[[str], None] | None = None, board: bool = False
) -> Path:
    """Return the folder of a design's Verilated model, building it where it is not cached.

    Parameters
    ----------
    params : DesignParams
        The design.
    report : callable taking str, optional
        Receives the name of each stage as it begins.
    board : bool
        See :func:`verilog_source`.

    Returns
    -------
    Path
        Folder with ``model.so`` (C interface in ``sim/driver/driver.cpp``) and ``manifest.json``.

    Raises
    ------
    ToolError
        If a tool is missing or fails.
    """
    log = report or _log_nothing
    cxx = toolchain.compiler()
    tool = toolchain.verilator()
    return kept_model(
        cache_key(params, tool, cxx, board),
        lambda made: _compile(params, made, tool, cxx, log, board=board),
    )


def kept_model(key: str, make: Callable[[Path], None], *, kind: str = "models") -> Path:
    """Return the folder of a model in the cache, making it where it is not there.

    Parameters
    ----------
    key : str
        Its name: all that can change the model.
    make : callable taking Path
        Fills a folder; ``obj`` in it is not kept.
    kind : str
        Folder of the cache; models of a kind make room for each other.

    Raises
    ------
    ToolError
        If ``make`` does.
    """

    def model(made: Path) -> None:
        make(made)
        shutil.rmtree(made / "obj")

    return cache.entry(kind, key, model, max_entries=KEPT_MODELS)


def _compile(
    params: DesignParams,
    made: Path,
    tool: toolchain.Verilator,
    cxx: str,
    report: Callable[[str], None],
    *,
    board: bool,
) -> None:
    """Fill a folder with Verilog, manifest and model."""
    report("emitting Verilog")
    verilog = emit_verilog(params, made, board=board)
    versions = {"verilator": tool.version}
    facts = manifest(params, versions)
    (made / MANIFEST_NAME).write_text(json.dumps(facts, indent=2) + "\n")
    compile_model(params, verilog, tool, cxx, report, board=board)


def compile_model(
    params: DesignParams,
    verilog: Path,
    tool: toolchain.Verilator,
    cxx: str,
    report: Callable[[str], None],
    *,
    board: bool = False,
    counts_activity: bool = False,
) -> None:
    """Compile a design's Verilog into a shared library beside it.

    Parameters
    ----------
    params : DesignParams
        The design.
    verilog : Path
        Its Verilog, or the netlist that was made of it.
    tool : Verilator
        What to compile with.
    cxx : str
        The C++ compiler.
    report : callable taking str
        Receives the name of each stage as it begins.
    board : bool
        See :func:`verilog_source`.
    counts_activity : bool
        Whether the Verilog is a netlist that shows its nets (``studies/power/netlist.py``), and
        what switches in it is to be counted.

    Raises
    ------
    ToolError
        If a tool fails.
    """
    made = verilog.parent
    objects = made / "obj"
    objects.mkdir()
    options = objects / "control.vlt"
    options.write_text(VERILATOR_CONTROL)
    report("verilating")
    command = [
        str(tool.path),
        *VERILATOR_FLAGS,
        "--top-module",
        Path(BOARD_VERILOG_NAME if board else VERILOG_NAME).stem,
        "--prefix",
        "Vmodel",
        "--Mdir",
        str(objects),
        "-CFLAGS",
        " ".join((_optimisation(), *CXX_FLAGS)),
        str(options),
        str(verilog),
    ]
    toolchain.run(command, tool.env(), BUILD_DEADLINE_S, "Verilator")
    report("compiling the model")
    jobs = str(min(2, os.cpu_count() or 1))
    # One C++ file: several would read Verilator's headers again, half of a small model's time.
    make = ["make", "-s", ONE_FILE, "-C", str(objects), "-f", "Vmodel.mk", "-j", jobs]
    level = _optimisation()
    slow = "-O1" if level in ("-O2", "-O3") else level
    optimise = [f"OPT_FAST={level}", f"OPT_SLOW={slow}", f"OPT_GLOBAL={level}"]
    optimise += [f"CXX={cxx}", f"LINK={cxx}"]

    # Verilator's own library is the same for every model: it is compiled with the first one.
    def compile_targets(*targets: str) -> None:
        what = [*make, *optimise, *targets]
        toolchain.run(what, tool.env(), BUILD_DEADLINE_S, "compiling the model")

    def compile_runtime(kept: Path) -> None:
        compile_targets(_RUNTIME)
        shutil.copy2(objects / _RUNTIME, kept)

    compile_targets("libVmodel.a")
    runtime = cache.entry("verilator", f"runtime-{_tools_key(tool, cxx)}", compile_runtime)
    (control,) = (each for each in contract.registers(params) if each.name == "control")
    (soft_reset,) = (each.bit for each in control.fields if each.name == "soft_reset")
    include = Path(dict(tool.environment).get("VERILATOR_ROOT") or _verilator_root(tool))
    layouts = (contract.tuple_layout(params), contract.result_beat_layout(params))
    bits = tuple(contract.beat_bits(layout) for layout in layouts)
    if board:
        bits = (contract.input_word_bits(params), contract.result_word_bits(params))
    link = [
        cxx,
        "-shared",
        "-std=gnu++17",
        level,
        *CXX_FLAGS,
        f"-I{objects}",
        f"-I{include / 'include'}",
        f"-I{include / 'include' / 'vltstd'}",
        f"-DTUPLE_BYTES={bits[0] // 8}",
        f"-DRESULT_BYTES={bits[1] // 8}",
        *(["-DFOR_BOARD"] if board else []),
        *(["-DCOUNT_ACTIVITY"] if counts_activity else []),
        f'-DDESIGN_DIGEST="{params.digest}"',
        f"-DCONTROL_OFFSET={control.offset}",
        f"-DSOFT_RESET_MASK={1 << soft_reset}",
        str(DRIVER),
        str(objects / "libVmodel.a"),
        str(runtime / _RUNTIME),
        "-pthread",
        "-o",
        str(made / LIBRARY_NAME),
    ]
    toolchain.run(link, tool.env(), BUILD_DEADLINE_S, "linking the model")


def _verilator_root(tool: toolchain.Verilator) -> str:
    """Ask a system's Verilator where its headers are."""
    asked = [str(tool.path), "--getenv", "VERILATOR_ROOT"]
    return toolchain.run(asked, tool.env(), 60, "verilator --getenv").strip()
