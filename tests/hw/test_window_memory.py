"""Windows lie in the kind of memory that was asked for, and behave the same in each."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amaranth.back import verilog
from tests.hw.test_handshake import run_inputs

from streamjoin_common.contract import FORWARDS, DesignParams
from streamjoin_common.contract.limits import MEMORIES
from streamjoin_common.contract.presets import EQUI
from streamjoin_hw.flow.yowasp import yosys
from streamjoin_hw.rtl.chain.subwindow import SubWindow
from streamjoin_hw.rtl.memory import SegmentRing
from streamjoin_hw.rtl.streams import r_layout
from streamjoin_hw.sim.testing import random_workload

SEED = 31
HOLDERS: dict[str, Callable[..., Any]] = {"step": SegmentRing, "fast": SubWindow}


def small(forward: str, memory: str) -> DesignParams:
    return DesignParams(
        cores=2,
        segment_tuples=16,
        lanes=2,
        terms=EQUI,
        payload_bits=8,
        forward=forward,
        window_memory=memory,
    )


def cells_of(params: DesignParams, folder: Path) -> dict[str, int]:
    """Synthesize one side's part of a core for a Xilinx family and count its cells."""
    holder = HOLDERS[params.forward](params, r_layout(params))
    (folder / "holder.v").write_text(verilog.convert(holder, name="holder"))
    family = "xcup -uram" if params.window_memory == "uram" else "xc7"
    commands = [
        "read_verilog holder.v",
        f"synth_xilinx -family {family} -flatten -noiopad -noclkbuf -top holder "
        "-run begin:map_luts",
        "tee -o cells.json stat -json",
    ]
    yosys(commands, folder, "Yosys")
    report = json.loads((folder / "cells.json").read_text())
    counts: dict[str, int] = report["modules"]["\\holder"]["num_cells_by_type"]
    return counts


@pytest.mark.parametrize("forward", ["step", pytest.param("fast", marks=pytest.mark.slow)])
@pytest.mark.parametrize("memory", [each for each in MEMORIES if each != "auto"])
def test_synthesis_takes_the_kind_of_memory_asked_for(
    forward: str, memory: str, tmp_path: Path
) -> None:
    params = small(forward, memory)
    counts = cells_of(params, tmp_path)

    def count(start: str) -> int:
        return sum(number for name, number in counts.items() if name.startswith(start))

    bits = params.segment_tuples * r_layout(params).size
    assert (count("RAMB") > 0) == (memory == "bram"), counts
    assert (count("URAM") > 0) == (memory == "uram"), counts
    assert (count("RAM") - count("RAMB") > 0) == (memory == "lutram"), counts
    assert (count("FD") >= bits) == (memory == "registers"), counts


@pytest.mark.parametrize("forward", FORWARDS)
@pytest.mark.parametrize("memory", MEMORIES)
def test_every_kind_of_memory_gives_the_same_results(forward: str, memory: str) -> None:
    params = small(forward, memory)
    workload = random_workload(params, np.random.default_rng(SEED), 80, domain=6)
    run_inputs(params, [workload], 0.2, 0.3)
