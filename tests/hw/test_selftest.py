"""The self-test: what passes is right, and what is wrong fails."""

import dataclasses
import json
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator
from tests.hw import kept

from streamjoin.cli import main
from streamjoin_common.contract import DesignParams
from streamjoin_common.contract.presets import PRESETS
from streamjoin_common.errors import UsageError
from streamjoin_hw.flow.toolchain import ToolError
from streamjoin_hw.sim.testing import Arrival, Workload, reference
from streamjoin_hw.studies.selftest import ulx3s
from streamjoin_hw.studies.selftest.stimulus import Expected, chunks, expected, key_bits, weights
from streamjoin_hw.studies.selftest.top import SelfTest
from streamjoin_hw.studies.selftest.ulx3s import WRITTEN, bitstream
from streamjoin_hw.studies.synth.route import Routed

SMALL = {
    "chain": DesignParams(cores=2, segment_tuples=2),
    "tree": DesignParams(design="splitjoin", cores=2, segment_tuples=4, payload_bits=12),
    "band": DesignParams(cores=1, segment_tuples=3, terms=PRESETS["tiny-band"].terms),
}
TUPLES = 60
MAX_CYCLES = 4000


def verdict(dut: SelfTest, **inputs: int) -> str:
    """Run a self-test to its end; returns which of its outputs is 1."""
    said = []

    async def board(ctx: Any) -> None:
        for name, value in inputs.items():
            ctx.set(getattr(dut, name), value)
        for _ in range(MAX_CYCLES):
            await ctx.delay(1e-6)
            ctx.set(dut.clk, 1)
            await ctx.delay(1e-6)
            ctx.set(dut.clk, 0)
            lit = [name for name in ("running", "passed", "failed") if ctx.get(getattr(dut, name))]
            assert len(lit) == 1
            if lit != ["running"]:
                said.append(lit[0])
            if len(said) == 100:  # it stays
                return

    simulator = Simulator(dut)
    simulator.add_testbench(board)
    simulator.run()
    assert len(set(said)) <= 1, f"the verdict changes: {said}"
    return said[0] if said else "running"


@pytest.mark.parametrize("shape", SMALL)
def test_the_expected_checksum_is_that_of_the_reference_join(shape: str) -> None:
    params = SMALL[shape]
    (chunk,) = chunks(params, TUPLES)
    columns = zip(chunk.sides, chunk.keys, chunk.payloads, strict=True)
    arrivals = [
        Arrival(int(side), tuple(map(int, keys)), int(payload)) for side, keys, payload in columns
    ]
    capacity = params.window_capacity
    pairs = reference(Workload(params, arrivals, capacity, capacity))
    assert len(pairs) > 5
    assert {each.side for each in arrivals} == {0, 1}
    total = sum((2 * r + 1) * (2 * s + 1) for r, s in pairs)
    assert expected(params, TUPLES) == Expected(len(pairs), total % 2**32)


def test_results_that_changed_partners_have_another_checksum() -> None:
    r, s = np.array([3, 8], np.uint64), np.array([5, 2], np.uint64)
    assert weights(r, s).sum() != weights(r, s[::-1]).sum()


@pytest.mark.parametrize("shape", SMALL)
def test_a_design_that_is_right_passes(shape: str) -> None:
    params = SMALL[shape]
    assert verdict(SelfTest(params, TUPLES, expected(params, TUPLES))) == "passed"


@pytest.mark.parametrize("shape", SMALL)
def test_one_wrong_bit_in_one_result_fails(shape: str) -> None:
    params = SMALL[shape]
    assert verdict(SelfTest(params, TUPLES, expected(params, TUPLES)), fault=1) == "failed"


def test_a_result_too_few_fails() -> None:
    params = SMALL["chain"]
    right = expected(params, TUPLES)
    assert (
        verdict(SelfTest(params, TUPLES, Expected(right.results + 1, right.checksum))) == "failed"
    )


def test_a_design_that_goes_on_without_an_end_fails() -> None:
    params = SMALL["chain"]
    # So impatient that the way through the design is taken for a standstill.
    dut = SelfTest(params, TUPLES, expected(params, TUPLES), patience_log2=2)
    assert verdict(dut) == "failed"


def test_a_pressed_button_keeps_it_from_ending() -> None:
    params = SMALL["chain"]
    assert verdict(SelfTest(params, TUPLES, expected(params, TUPLES)), restart=1) == "running"


def test_random_bits_of_all_keys_leave_one_for_the_side() -> None:
    wide = DesignParams(cores=64, segment_tuples=1024)
    assert key_bits(wide) == 17
    assert key_bits(SMALL["band"]) == 1
    with pytest.raises(UsageError, match=r"^a self-test gives no times: set timestamp_bits=0$"):
        key_bits(DesignParams(cores=1, segment_tuples=2, timestamp_bits=16))


def test_beats_of_two_results_are_refused() -> None:
    pairs = DesignParams(
        design="splitjoin-hash", cores=1, segment_tuples=8, lanes=2, beat_results=2
    )
    with pytest.raises(UsageError, match=r"^a self-test takes one result a beat: set"):
        expected(pairs, TUPLES)


implement = ulx3s._implement


def implemented(folder: Path, verilog_source: str, report: Callable[[str], None]) -> Routed:
    """Do what the tools do, or what they did with the same Verilog, pins and sources."""

    def make(made: Path) -> None:
        stages: list[str] = []
        routed = implement(made, verilog_source, stages.append)
        (made / "routed").write_bytes(pickle.dumps((routed, stages)))

    tools = [kept.tool_version(f"yowasp-{tool}") for tool in ("yosys", "nextpnr-ecp5", "ecppack")]
    pins = ulx3s._CONSTRAINTS.read_text()
    entry = kept.once([*tools, kept.sources(), pins, verilog_source], make)
    routed: Routed
    routed, stages = pickle.loads((entry / "routed").read_bytes())
    for stage in stages:
        report(stage)
    shutil.copytree(entry, folder, dirs_exist_ok=True)
    return routed


def test_a_bitstream_comes_with_its_record_or_not_at_all(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # The checkout may lie where temporary files do, which the WebAssembly tools do not see.
    pins = tmp_path_factory.mktemp("constraints") / "board.lpf"
    shutil.copyfile(ulx3s._CONSTRAINTS, pins)
    monkeypatch.setattr(ulx3s, "_CONSTRAINTS", pins)
    monkeypatch.setattr(ulx3s, "_implement", implemented)
    words = ["hw", "bitstream", "--board", "ulx3s-85f"]
    small = [f"--param={each}" for each in ("design=handshake", "cores=1", "segment_tuples=2")]
    small += ["--param=lanes=1", "--param=probes=1", "--param=order=none"]
    small.append("--param=window_memory=auto")
    out = tmp_path / "made"
    assert main([*words, *small, "--out", str(out)]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{out / 'streamjoin.bit'}\n"
    line = printed.err.splitlines()[-1]
    assert " LUT" in line
    assert " MHz at most; passes with " in line
    assert line.endswith(f"all of it in {out / 'bitstream.json'}")
    assert {path.name for path in out.iterdir()} == set(WRITTEN)
    bits = (out / "streamjoin.bit").read_bytes()
    assert b"Part: LFE5U-85F-6CABGA381" in bits[:200]
    # What every bitstream of an ECP5 begins with, before its commands.
    assert b"\xff\xff\xbd\xb3" in bits[:300]
    record = json.loads((out / "bitstream.json").read_text())
    params = DesignParams(cores=1, segment_tuples=2)
    assert record["digest"] == params.digest
    wanted = expected(params, record["selftest"]["tuples"])
    assert record["selftest"]["checksum"] == wanted.checksum
    assert record["clock"]["hz"] >= record["oscillator_hz"] == 25e6
    assert 500 < record["resources"]["lut"]["used"] < 10_000
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["digest"] == params.digest
    assert manifest["clock"]["hz"] == 25e6
    assert manifest["resources"].items() >= record["resources"].items()

    # The record can be kept beside those of synthesis, and shows a design that has changed.
    kept = tmp_path / "kept"
    kept.mkdir()
    file = kept / "ulx3s-85f.json"
    file.write_text(json.dumps(record))
    assert main(["hw", "synth", "--stored", str(kept), "--compare"]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[-1].endswith("yes")
    file.write_text(json.dumps({**record, "verilog_sha256": "0"}))
    assert main(["hw", "synth", "--stored", str(kept), "--compare"]) == 0
    assert capsys.readouterr().err == (
        "comparing with the designs as they are: ulx3s-85f, 1 of 1\n"
        "ulx3s-85f is of an earlier design; to renew it:  streamjoin hw bitstream "
        "--board ulx3s-85f --out build/ulx3s-85f && "
        f"cp build/ulx3s-85f/bitstream.json {file}\n"
    )
    shutil.rmtree(kept)

    assert main([*words, *small, "--out", str(out)]) == 2
    assert main([*words, "--param=timestamp_bits=16", "--out", str(tmp_path / "other")]) == 2
    assert capsys.readouterr().err.endswith("a self-test gives no times: set timestamp_bits=0\n")
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


@pytest.mark.parametrize(
    "counts",
    [{"DP16KD": 2}, pytest.param(None, marks=pytest.mark.slow)],
    ids=["given", "of Yosys"],
)
def test_a_design_that_does_not_fit_the_board_is_said_to(
    counts: dict[str, int] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if counts is not None:
        monkeypatch.setattr(ulx3s, "synthesise", lambda *_args, **_how: counts)
    # A part with one block RAM: to fill the board's would take Yosys minutes.
    small = {**ulx3s.TARGET.available, "dp16kd": 1}
    monkeypatch.setattr(ulx3s, "TARGET", dataclasses.replace(ulx3s.TARGET, available=small))
    params = DesignParams(cores=1, segment_tuples=512, window_memory="bram")
    with pytest.raises(ToolError, match=r"does not fit the LFE5U-85F-6BG381: it needs .* DP16KD"):
        bitstream(params, tmp_path / "out", lambda _: None, tuples=100)
    assert not list(tmp_path.iterdir())
