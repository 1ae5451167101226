"""A design on a part, as a record: what it uses, how fast it is, what said so."""

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from streamjoin_common import contract, storage
from streamjoin_common.contract import DesignParams
from streamjoin_common.documents import read_json
from streamjoin_common.errors import DeadlineError, ToolError
from streamjoin_common.storage import cache
from streamjoin_hw.flow import emit
from streamjoin_hw.rtl.board_top import BOARD_MODULE
from streamjoin_hw.rtl.top import TOP_MODULE
from streamjoin_hw.studies.synth import area, route
from streamjoin_hw.studies.synth.harness import HARNESS_MODULE
from streamjoin_hw.studies.synth.settings import (
    BOARD_TOP,
    DESIGN_TOP,
    HARNESS_TOP,
    Settings,
    StageSeconds,
    tools,
    verilog_digest,
    verilog_of,
)
from streamjoin_hw.studies.synth.targets import Target

RECORD_NAME = "synth.json"
RECORD_VERSION = 1
"""Raised when records change their meaning."""

KEPT_RECORDS = 200
"""Records kept in the cache; the oldest go first."""

MODULES = {DESIGN_TOP: TOP_MODULE, BOARD_TOP: BOARD_MODULE, HARNESS_TOP: HARNESS_MODULE}
"""The Verilog module of each top level."""

NOT_TIMED = "no timing was run: there is no place and route for this part here"


def max_comparisons(params: DesignParams, copies: int = 1) -> int | None:
    """Return the comparisons of two tuples that a design makes in a cycle, at most.

    In SplitJoin each side has comparators of its own and both can be busy, unless they are shared;
    in a chain one tuple at a time is compared. None for an index, which does not compare to find.
    """
    if params.has_index:
        return None
    has_own = params.design == "splitjoin" and not params.has_shared_comparators
    sides = 2 if has_own else 1
    return copies * sides * params.cores * params.lanes * params.probes


def _key(
    params: DesignParams, identity: dict[str, Any], versions: dict[str, str], verilog_source: str
) -> str:
    what = [RECORD_VERSION, identity, versions, verilog_digest(verilog_source)]
    mixed = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()
    return f"{params.digest}-{mixed[:16]}"


def record(
    params: DesignParams,
    target: Target,
    settings: Settings,
    report: Callable[[str], None],
) -> dict[str, Any]:
    """Synthesise a design, unless the same was done before.

    Parameters
    ----------
    params : DesignParams
        The design.
    target : Target
        The part.
    settings : Settings
        How.
    report : callable taking str
        Receives the name of each stage as it begins.

    Returns
    -------
    dict
        The record, in JSON values. ``does_not_fit`` is a sentence, empty if the design fits.

    Raises
    ------
    ToolError
        If a tool is missing, fails or takes too long.
    """
    report("elaborate")
    begin = time.monotonic()
    verilog_source = verilog_of(params, settings)
    elaborated_s = time.monotonic() - begin
    versions = tools(target, settings)

    def make(made: Path) -> None:
        work = made / "work"
        work.mkdir()
        recorded = _run(params, target, settings, report, work=work, verilog_source=verilog_source)
        recorded["tools"] = versions
        recorded["seconds"] = {"elaborate": round(elaborated_s, 1), **recorded["seconds"]}
        shutil.rmtree(work)  # the netlist is a hundred times larger than the record
        (made / RECORD_NAME).write_text(json.dumps(recorded, indent=2) + "\n")

    key = _key(params, settings.identity(target, params), versions, verilog_source)
    kept = cache.entry("synth", key, make, max_entries=KEPT_RECORDS)
    kept_record: dict[str, Any] = read_json(kept / RECORD_NAME)
    return kept_record


def described(
    params: DesignParams, target: Target, settings: Settings, verilog_source: str
) -> dict[str, Any]:
    """Return the part of a record that says what was synthesised, and how.

    Parameters
    ----------
    params, target, settings : DesignParams, Target, Settings
        What, for which part and how.
    verilog_source : str
        The Verilog.
    """
    return {
        "version": RECORD_VERSION,
        "target": target.name,
        "part": target.part,
        "digest": params.digest,
        "params": params.to_dict(),
        "verilog_sha256": verilog_digest(verilog_source),
        "method": area.FLAT if settings.flat else area.CORE_ONCE,
        "settings": settings.identity(target, params),
        "deadline_s": settings.deadline_s,
        "comparisons_per_cycle": max_comparisons(params, settings.copies),
    }


def failure(
    params: DesignParams, target: Target, settings: Settings, error: ToolError
) -> dict[str, Any]:
    """Return the record of a design that a tool gave up.

    Parameters
    ----------
    params, target, settings : DesignParams, Target, Settings
        What was to be synthesised.
    error : ToolError
        Why there is no result; of one that took too long, ``timed_out`` says so.
    """
    sentence = str(error)
    return {
        **described(params, target, settings, verilog_of(params, settings)),
        "resources": {},
        "resources_source": "",
        "cells": {},
        "clock": {"hz": None, "source": sentence},
        "comparisons_per_1000_lut": None,
        "does_not_fit": "",
        "failed": sentence,
        "timed_out": isinstance(error, DeadlineError),
        "tools": tools(target, settings),
        "seconds": {},
    }


def _run(
    params: DesignParams,
    target: Target,
    settings: Settings,
    report: Callable[[str], None],
    *,
    work: Path,
    verilog_source: str,
) -> dict[str, Any]:
    """Run the tools in a folder."""
    verilog = work / emit.VERILOG_NAME
    verilog.write_text(verilog_source)
    clocked = StageSeconds(report)
    clocked("synth")
    counts = area.synthesise(
        target,
        verilog,
        made=area.by_hand(target, params),
        top=MODULES[settings.top],
        flat=settings.flat,
        deadline_s=settings.deadline_s,
    )
    uses, source = area.uses(target, counts), "Yosys, estimated before placement"
    misfit = area.lacking(uses, target.part)
    routed = None
    if settings.routed and target.has_timing and not misfit:
        try:
            routed = route.place_and_route(
                target,
                work,
                clock_hz=settings.clock_hz,
                seed=settings.seed,
                placements=settings.placements,
                deadline_s=settings.deadline_s,
                heard=clocked,
            )
            uses, source = routed.uses, f"{routed.router.program}, as packed"
            if settings.top == HARNESS_TOP:
                source += " with the registers of its harness"
        except route.RouteError as error:
            misfit = str(error)
    seconds = clocked.ended()
    return {
        **described(params, target, settings, verilog_source),
        "resources": {name: use.as_json() for name, use in uses.items()},
        "resources_source": source,
        "cells": counts,
        "clock": _not_routed(target, settings) if routed is None else clock_of(target, routed),
        "comparisons_per_1000_lut": comparisons_per_1000_lut(
            max_comparisons(params, settings.copies), uses
        ),
        "does_not_fit": misfit,
        "failed": "",
        "seconds": seconds,
    }


def comparisons_per_1000_lut(comparisons: int | None, uses: Mapping[str, area.Use]) -> float | None:
    """Return what a thousand of the LUTs in use compare in a cycle, at most; None for an index."""
    return None if comparisons is None else round(comparisons / uses["lut"].used * 1000, 2)


def _not_routed(target: Target, settings: Settings) -> dict[str, Any]:
    is_open = target.has_timing and settings.routed
    reason = "not routed" if target.has_timing else NOT_TIMED
    return {"hz": None, "source": "could not be routed" if is_open else reason}


def clock_of(target: Target, routed: route.Routed) -> dict[str, Any]:
    """Return what a record says of the clock of a routed design."""
    router = routed.router
    return {
        "hz": round(routed.clock_hz),
        "source": f"{router.program}, post-route, {target.part} speed grade {router.speed}",
        "critical_path": list(routed.path),
        "critical_path_in_words": route.path_in_words(routed.path),
        **({"placements": list(routed.placements)} if routed.placements else {}),
    }


def manifest_with(params: DesignParams, recorded: dict[str, Any]) -> dict[str, Any]:
    """Return a design's manifest with what its record says, each with its source."""
    resources = {
        "target": recorded["target"],
        "part": recorded["part"],
        "source": f"{recorded['resources_source']} ({recorded['method']})",
        **recorded["resources"],
    }
    clock = {name: recorded["clock"][name] for name in ("hz", "source")}
    return contract.manifest(
        params,
        source_revision=emit.source_revision(),
        tools=recorded["tools"],
        resources=resources,
        clock={"target": recorded["target"], **clock},
    )


def write_record(params: DesignParams, recorded: dict[str, Any], folder: Path) -> None:
    """Write a record into a folder, beside the design's Verilog and its manifest.

    Raises
    ------
    StorageError
        If the folder or a file cannot be written.
    """
    emit.emit_verilog(params, folder, board=recorded["settings"].get("top") == BOARD_TOP)
    for name, plain in (
        (emit.MANIFEST_NAME, manifest_with(params, recorded)),
        (RECORD_NAME, recorded),
    ):
        storage.write_text(folder / name, json.dumps(plain, indent=2) + "\n")
