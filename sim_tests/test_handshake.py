"""Build every design point with Verilator and run the cocotb scenarios on it."""

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner
from sim_tests.coverage import required
from sim_tests.stimuli import DESIGN_TUPLES, DESIGNS, SEED, STALLS
from sim_tests.testbench import BIN

from streamjoin_hw.cli.terminal import print_table
from streamjoin_hw.flow.build import VERILATOR_CONTROL
from streamjoin_hw.flow.compact import CHECKS_MACRO
from streamjoin_hw.flow.emit import emit_verilog
from streamjoin_hw.flow.toolchain import verilator
from streamjoin_hw.rtl.top import TOP_MODULE

ROOT = Path(__file__).resolve().parent.parent

SCENARIOS = len(STALLS) + 13

BUILD_FLAGS = [
    "--assert",
    f"-D{CHECKS_MACRO}",
    "--no-timing",
    # Amaranth's Verilog widens operands on purpose; Yosys puts defaults before a case statement.
    "-Wno-WIDTH",
    "-Wno-CASEINCOMPLETE",
    # cocotb makes every signal inside visible, which takes the compiler minutes; the scenarios
    # look at the ports alone.
    "--no-public-flat-rw",
    "--public-depth",
    "1",
]


@pytest.fixture
def simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a working Verilator first on the path."""
    for name, value in verilator().env().items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def totals() -> Iterator[dict[str, Counter[str]]]:
    """What was counted for each design; printed as a table in the end."""
    counted: dict[str, Counter[str]] = {}
    yield counted
    bins = [each for total in counted.values() for each in total if each.startswith(BIN)]
    plain = [each for total in counted.values() for each in total if not each.startswith(BIN)]
    others = [each for each in dict.fromkeys(bins) if each.removeprefix(BIN) not in required()]
    rows = [*dict.fromkeys(plain), *(f"{BIN}{each}" for each in required()), *sorted(others)]
    sys.stdout.write(f"\nseed {SEED}; each bin counts cycles, or tuples, or inputs\n")
    print_table(
        ("count", *counted),
        [
            (row.removeprefix(BIN), *(f"{total[row]:,}" for total in counted.values()))
            for row in rows
        ],
    )


@pytest.mark.usefixtures("simulator")
@pytest.mark.parametrize("name", DESIGNS)
def test_handshake_is_exact_in_every_scenario(
    name: str, tmp_path: Path, totals: dict[str, Counter[str]]
) -> None:
    source = emit_verilog(DESIGNS[name], tmp_path)
    control = tmp_path / "control.vlt"
    control.write_text(VERILATOR_CONTROL)
    tally_file = tmp_path / "tally.jsonl"
    runner = get_runner("verilator")
    runner.build(
        sources=[control, source],
        hdl_toplevel=TOP_MODULE,
        build_args=BUILD_FLAGS,
        build_dir=tmp_path / "sim_build",
        timescale=("1ns", "1ps"),
        log_file=tmp_path / "build.log",
    )
    results = runner.test(
        test_module="sim_tests.cocotb_handshake",
        hdl_toplevel=TOP_MODULE,
        build_dir=tmp_path / "sim_build",
        test_dir=ROOT,
        results_xml=str(tmp_path / "results.xml"),
        seed=SEED,
        extra_env={
            "STREAMJOIN_DESIGN": name,
            "STREAMJOIN_TALLY": str(tally_file),
            "SEED": str(SEED),
            "COCOTB_LOG_LEVEL": os.environ.get("COCOTB_LOG_LEVEL", "WARNING"),
        },
        log_file=tmp_path / "test.log",
    )
    tests, failures = get_results(Path(results))
    log = (tmp_path / "test.log").read_text()
    assert failures == 0, log[-6000:]
    assert tests == SCENARIOS
    total: Counter[str] = Counter()
    for line in tally_file.read_text().splitlines():
        total.update(json.loads(line))
    totals[name] = total
    assert total["scenarios"] == SCENARIOS
    assert total["tuples"] >= DESIGN_TUPLES
    empty = [each for each in required() if not total[f"{BIN}{each}"]]
    assert not empty, f"never met: {'; '.join(empty)}"
