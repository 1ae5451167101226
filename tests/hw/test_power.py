"""Dynamic power as a model: exact counts, plain arithmetic, a study that checks its results."""

import argparse
import dataclasses
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from streamjoin_common.contract import DesignParams
from streamjoin_common.errors import UsageError
from streamjoin_hw.cli import VERB
from streamjoin_hw.flow import build, toolchain
from streamjoin_hw.sim.model import ModelError
from streamjoin_hw.sim.testing import step_cycles
from streamjoin_hw.studies.power import activity, model, netlist, page, study
from streamjoin_hw.studies.power.activity import Activity
from streamjoin_hw.studies.power.study import Setting
from streamjoin_hw.studies.rate.loads import Load

SMALL = DesignParams(cores=1, segment_tuples=4, payload_bits=8, window_memory="lutram")
SMALL_WORDS = ("cores=1", "segment_tuples=4", "payload_bits=8", "window_memory=lutram")

KNOWN = """
module known(input aclk, output [3:0] count_o, output parity, output [15:0] from_luts,
             output reg [19:0] from_block);
  reg [3:0] count = 0;
  always @(posedge aclk) count <= count + 1;
  assign count_o = count;
  assign parity = ^count;
  (* ram_style = "distributed" *) reg [15:0] in_luts [15:0];
  always @(posedge aclk) if (count[1]) in_luts[count] <= {4{count}};
  assign from_luts = in_luts[count];
  (* ram_style = "block" *) reg [19:0] in_block [15:0];
  always @(posedge aclk) begin
    if (count[0]) from_block <= in_block[count];
    if (count == 3) in_block[count] <= {5{count}};
  end
endmodule
"""

BENCH = """
#include <cstdio>
#include "activity.h"
int main() {
  Vmodel top;
  Activity activity;
  for (int cycle = 0; cycle <= CYCLES; ++cycle) {
    top.aclk = 0;
    top.eval();
    activity.sample(top);
    top.aclk = 1;
    top.eval();
  }
  for (uint64_t count : activity.counts) std::printf("%llu ", (unsigned long long)count);
}
"""


def run(*words: str) -> int:
    """Run the verb with these words."""
    parser = argparse.ArgumentParser(prog="streamjoin hw")
    VERB.configure(parser)
    return VERB.run(parser.parse_args(["power", *words]))


def counted(verilog: str, top: str, cycles: int) -> tuple[list[int], dict[str, int]]:
    """Make gates of a module, clock them, and return what was counted and the cells."""
    tool = toolchain.verilator()
    counter = activity._COUNTER
    flags = f"-I{counter.parent} -DCYCLES={cycles} -std=gnu++17 -Og"
    words = ("--cc", "--exe", "--build", "--no-timing", "-Wno-fatal", "--prefix", "Vmodel")

    def make(folder: Path) -> None:
        source, bench = folder / f"{top}.v", folder / "bench.cpp"
        source.write_text(verilog)
        bench.write_text(BENCH)
        gates, cells = netlist.gates(source, top)
        (folder / "cells.json").write_text(json.dumps(cells))
        made = ("--top-module", top, "--Mdir", str(folder / "obj"), "-o", "../bench")
        command = [str(tool.path), *words, *made, "-CFLAGS", flags, str(gates), str(bench)]
        toolchain.run(command, tool.env(), 200, "Verilator")

    what = (verilog, BENCH, flags, tool.version, netlist.flow_digest(), counter.read_text())
    key = hashlib.sha256(chr(0).join(what).encode()).hexdigest()[:16]
    folder = build.kept_model(f"bench-{key}", make)
    output = toolchain.run([str(folder / "bench")], tool.env(), 60, "the bench")
    cells = json.loads((folder / "cells.json").read_text())
    return [int(word) for word in output.split()], cells


def test_what_a_known_design_switches_is_counted_exactly() -> None:
    cycles = 16 * 25
    (registers, luts, written, accesses), cells = counted(KNOWN, "known", cycles)
    assert cells["registers"] == 4
    assert cells["lut_ram_bits"] == 16 * 16
    assert cells["block_ram_slices"] == 3
    # A counter of four bits toggles 16 + 8 + 4 + 2 times in 16 cycles.
    counter = sum(bin(c ^ (c + 1) % 16).count("1") for c in range(16)) * cycles // 16
    assert registers == counter == 30 * 25
    # LUT memory holds what was written a round before, or zeros; the next count, the parity and the
    # two conditions are computed by LUTs.
    words, before, reads = [0] * 16, 0, 0
    switched = 0
    for cycle in range(cycles + 1):
        count = cycle % 16
        parity = bin(count).count("1") & 1
        now = words[count] | parity << 16 | (count + 1) % 16 << 17 | (count == 3) << 21
        switched += bin(now ^ before).count("1") if cycle else 0
        before = now
        reads += count & 1
        if count & 2:
            words[count] = count * 0x1111
    assert luts == switched
    ones = sum(16 for cycle in range(cycles + 1) if cycle & 2)
    assert written == ones
    # 20 bits are three slices: read in every other cycle, written once in 16.
    assert accesses == 3 * reads + 3 * sum(cycle % 16 == 3 for cycle in range(cycles + 1))


def test_a_cell_that_cannot_be_counted_is_refused() -> None:
    cell = {"type": "$adff", "connections": {}}
    module = {"cells": {"odd": cell}, "ports": {}, "netnames": {}}
    sentence = "Yosys left a cell of the kind $adff, which cannot be counted"
    with pytest.raises(toolchain.ToolError, match=f"^{re.escape(sentence)}$"):
        netlist.watch({"modules": {"top": module}}, "top")


def test_modelled_power_grows_linearly_with_the_clock() -> None:
    counts = {"register": 500, "lut": 900, "lut_ram": 30, "block_ram": 7}
    switching = model.switching_per_cycle(counts, 100, registers=40)
    slow, fast = model.watts(switching, 5e6), model.watts(switching, 50e6)
    assert set(slow) == set(model.CONSTANTS)
    for kind, power in slow.items():
        assert power > 0
        assert fast[kind] == pytest.approx(10 * power)


def test_the_model_gives_the_microwatts_of_the_data_sheet() -> None:
    # In every cycle a register toggles: its output has half the frequency of the clock.
    counts = {"register": 100, "lut": 200, "lut_ram": 0, "block_ram": 100}
    power = model.watts(model.switching_per_cycle(counts, 100, registers=3), 10e6)
    assert power["register"] == pytest.approx(1.1e-6 * 10 / 2)
    assert power["lut"] == pytest.approx(1.4e-6 * 10)
    assert power["block_ram"] == pytest.approx(175e-6 * 10)
    assert power["clock"] == pytest.approx(3 * 1.3e-6 * 10)
    assert power["clock_trunk"] == pytest.approx(100e-6 * 10)
    assert power["lut_ram"] == 0


def made_up(cores: int, cycles_per_tuple: float, registers: int = 100, luts: int = 9) -> Any:
    """Return a point of the paper's study with made-up counts."""
    counts = {"register": 10, "lut": luts, "lut_ram": 1, "block_ram": 0}
    cells = {"registers": registers, "luts": 50, "lut_ram_bits": 9, "block_ram_slices": 0}
    load = Load(study.PAPER_WINDOW, 1.0, "uniform", 10, 1)
    params = DesignParams(cores=cores, segment_tuples=100 // cores)
    activity = Activity(100, 9, cycles_per_tuple, counts, cells)
    return study.point(params, Setting(load, study.PAPER_THROUGHPUT, None), activity)


def test_a_throughput_decides_the_clock_and_the_papers_figures_stand_beside() -> None:
    one, ten, three = made_up(1, 100.0), made_up(10, 10.0), made_up(3, 34.0)
    for entry in (one, ten):
        assert entry["clock_hz"] == entry["paper"]["clock_mhz"] * 1e6
        assert entry["throughput_tuples_per_s"] == pytest.approx(500_000)
    assert three["paper"] is None
    first, second = page.rows([one, ten])
    assert first[-3:] == ("50", "100", "1.00")
    assert second[-3:] == ("5", "68", "0.68")


# In uW, half of p times the toggles a second, or p times the clock: what falls from 50 to 5 MHz,
# and what the LUTs' power rises by.
BALANCE = 0.9 * (0.5 * 0.1 * 1.1 + 0.5 * 0.01 * 1.1 + 100 * 1.3 + 100) * 50
BALANCE /= 0.5 * 1.4 * (9 * 5 - 0.09 * 50)


@pytest.mark.parametrize(
    ("luts", "end"),
    [
        (50, "that does not rest on the constants."),
        (900, f"if the latter's constants were {BALANCE:,.0f} times as large."),
    ],
)
def test_the_trend_says_whether_it_rests_on_the_constants(luts: int, end: str) -> None:
    # Only the LUTs may need more: 9 toggles at 50 MHz, 50 or 900 at 5; all else at the tenth.
    few, many = made_up(1, 100.0), made_up(10, 10.0, luts=luts)
    lowest, rest, moved = study.trend([few, many])
    logic = 0.5 * (0.1 * 1.1 + 0.01 * 1.1 + 0.09 * 1.4) * 50e-3
    assert study._without_clock(few) == pytest.approx(logic)
    assert f" {study._without_clock(few):.3g} mW" in rest
    assert "10 cores at 5 MHz" in lowest
    assert moved.endswith(end)
    assert study.trend([few]) == []


@pytest.mark.slow  # two models of gates are compiled
@pytest.mark.timeout(900)
def test_a_study_runs_gates_checks_their_results_and_writes_record_and_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    params = [word for each in SMALL_WORDS for word in ("--param", each)]
    words = (*params, "--cores", "2,1", "--throughput", "1e6", "--tuples", "101")
    assert run(*words, "--match-rate", "1", "--out", str(tmp_path), "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert json.loads((tmp_path / "power.json").read_text()) == record
    one, two = record["points"]
    for cores, entry in enumerate((one, two), start=1):
        params_of = DesignParams.from_dict(entry["params"])
        assert (params_of.cores, params_of.window_capacity) == (cores, 4)
        cycles = step_cycles(params_of, 4, cores)
        assert entry["cycles_per_tuple"] == cycles
        assert entry["clock_hz"] == pytest.approx(cycles * 1e6)
        assert entry["modelled_dynamic_mw"] == pytest.approx(sum(entry["modelled_mw"].values()))
        assert all(entry["counts"][kind] > 0 for kind in ("register", "lut", "lut_ram"))
        assert entry["kind"] == "a model, not a measurement"
    assert two["cells"]["registers"] > one["cells"]["registers"]
    shown = (tmp_path / "power.html").read_text()
    assert "a model, not a measurement" in shown
    assert "Excluded: static power" in shown
    assert not re.search(r'(src|href)="(?!data:|#)', shown)  # nothing is fetched
    clock = str(one["clock_hz"] / 1e6)
    assert run(*params, "--clock", clock, "--match-rate", "1", "--tuples", "101") == 0
    heading, _, row, *sentences = capsys.readouterr().out.splitlines()
    assert "dynamic (model mW)" in heading
    # The same input at the same clock, asked for the other way round.
    assert f"{one['modelled_dynamic_mw']:.4g}" in row.split()
    assert any("a model, not a measurement" in each for each in sentences)


def test_a_wrong_result_of_the_gates_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = activity.build_gates(SMALL, lambda _: None)
    right: Any = activity.SlidingJoin
    monkeypatch.setattr(
        activity, "SlidingJoin", lambda params, _, bands: right(params, (3, 3), bands)
    )
    load = Load(4, 2.0, "uniform", 60, 1)
    with pytest.raises(ModelError, match="surplus"):
        activity.measure(SMALL, folder, load)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--cores", "1;2"), "--cores must be counts from 1 up, as in 1,2,5,10, not '1;2'"),
        (("--cores", "0"), "--cores must be counts from 1 up, as in 1,2,5,10, not '0'"),
        (
            ("--clock", "50", "--throughput", "1e5"),
            "give --throughput or --clock, not both: each decides the other",
        ),
        (("--clock", "0"), "--clock must be above 0 and at most 1000, not 0"),
        (("--throughput", "nan"), "--throughput must be above 0 and at most 1e+09, not nan"),
        (("--tuples", "2"), "--tuples must be at least 3, not 2"),
        (("--seed", "-1"), "--seed must be at least 0, not -1"),
        (("--match-rate", "101"), "--match-rate must be from 0 to 100, the window, not 101"),
        (("--out", ""), "--out needs a path"),
        (
            ("--preset", "tiny-band"),
            "--param terms must be one equi term, without timestamps and theta",
        ),
    ],
)
def test_a_mistake_about_power_is_one_sentence(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$"):
        run(*words)


def test_the_papers_designs_share_its_window() -> None:
    base = DesignParams(cores=1, segment_tuples=100)
    shares = [study.with_cores(base, cores).segment_tuples for cores in (1, 2, 3, 10)]
    assert shares == [100, 50, 34, 10]
    assert dataclasses.replace(study.with_cores(base, 10), cores=1, segment_tuples=100) == base
