"""What switches in a design while it joins: its gates simulated, every result checked.

The input is that of ``streamjoin hw rate``: both windows are full before anything is counted, then
tuples are offered in every cycle. Counted is from then to the cycle that takes the last of them.
"""

import ctypes
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from streamjoin_common.contract import DesignParams
from streamjoin_hw.flow import build, emit, toolchain
from streamjoin_hw.sim.bulk import Owed, SlidingJoin
from streamjoin_hw.sim.model import Model, ModelError
from streamjoin_hw.sim.order import ArrivalOrder
from streamjoin_hw.studies.power.netlist import KINDS, flow_digest, gates
from streamjoin_hw.studies.rate.loads import Load, draw

CELLS_NAME = "cells.json"
_COUNTER = build.DRIVER.with_name("activity.h")
_MAX_CYCLES = 1 << 40
"""Maximum cycles of an input: more than any run takes."""


@dataclass(frozen=True)
class Activity:
    """What a run gave.

    Parameters
    ----------
    cycles : int
        Clock cycles that were counted.
    tuples : int
        Tuples of both sides that were taken in them.
    cycles_per_tuple : float
        From the first tuple's acceptance to the last one's.
    counts : dict of str to int
        How often what each of :data:`~streamjoin_hw.studies.power.netlist.KINDS` names happened.
    cells : dict of str to int
        What the netlist consists of.
    """

    cycles: int
    tuples: int
    cycles_per_tuple: float
    counts: dict[str, int]
    cells: dict[str, int]


class GateModel(Model):
    """A model of a design's gates, which counts what switches."""

    def counts(self) -> dict[str, int]:
        """Return how often each kind has switched since the model was opened."""
        counts = (ctypes.c_uint64 * len(KINDS))()
        self.library.sjm_activity(self.handle, counts)
        return dict(zip(KINDS, counts, strict=True))


def build_gates(params: DesignParams, report: Callable[[str], None]) -> Path:
    """Return the folder of a model of a design's gates, building it where it is not cached.

    Parameters
    ----------
    params : DesignParams
        The design.
    report : callable taking str
        Receives the name of each stage as it begins.

    Raises
    ------
    ToolError
        If a tool is missing, fails or takes too long.
    """
    cxx = toolchain.compiler()
    tool = toolchain.verilator()

    def make(made: Path) -> None:
        report("emitting Verilog")
        verilog = emit.emit_verilog(params, made)
        report("making gates")
        netlist, cells = gates(verilog, verilog.stem)
        (made / CELLS_NAME).write_text(json.dumps(cells) + "\n")
        build.compile_model(params, netlist, tool, cxx, report, counts_activity=True)

    key = build.cache_key(params, tool, cxx, board=False)
    gate_key = hashlib.sha256(f"{key} {flow_digest()} {_COUNTER.read_text()}".encode()).hexdigest()
    return build.kept_model(f"{params.digest}-gates-{gate_key[:16]}", make)


def measure(params: DesignParams, folder: Path, load: Load) -> Activity:
    """Run an input on a design's gates and count what switches.

    Parameters
    ----------
    params : DesignParams
        The design; its first term an equality, its only one.
    folder : Path
        What :func:`build_gates` returned.
    load : Load
        The input; of its tuples the last only ends it and is not counted.

    Raises
    ------
    ModelError
        If a result is missing, surplus or out of a promised order.
    """
    windows = (load.window, load.window)
    join, owed, order = SlidingJoin(params, windows, {}), Owed(), ArrivalOrder(params)
    filling, rest = draw(load, params)
    counted, end = rest.cut(load.tuples - 1)
    stamps: list[tuple[int, dict[str, int]]] = []
    accepted = np.empty(0, np.int64)
    model = GateModel(params, folder)
    with model:
        model.set_registers({"window_r": load.window, "window_s": load.window})
        for chunk in (filling, counted, end):
            order.take(chunk)
            stamps.append((model.cycles, model.counts()))
            taken = np.empty(len(chunk.sides), np.int64)
            pieces = list(
                model.feed(chunk, last=chunk is end, accepted=taken, max_cycles=_MAX_CYCLES)
            )
            accepted = taken if chunk is counted else accepted
            for piece in pieces:
                order.see(piece.r, piece.s)
            received = np.concatenate([piece.r << np.uint64(32) | piece.s for piece in pieces])
            owed.update(join.join(chunk), received)
    wrong = owed.difference() or order.fault
    if wrong:
        raise ModelError(f"the gates of {params.cores} cores, seed {load.seed}: {wrong}")
    (begin, before), (done, after) = stamps[1:]
    return Activity(
        cycles=done - begin,
        tuples=len(counted.sides),
        cycles_per_tuple=float(accepted[-1] - accepted[0]) / (len(accepted) - 1),
        counts={kind: after[kind] - before[kind] for kind in KINDS},
        cells=json.loads((folder / CELLS_NAME).read_text()),
    )
