"""Build every design point with Verilator and run the cocotb scenarios on it."""

import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import cocotb_tools.config
import pytest
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner
from sim_tests.coverage import required
from sim_tests.stimuli import DESIGN_TUPLES, DESIGNS, GROUPS, SEED, STALLS
from sim_tests.testbench import BIN

from streamjoin_common.contract import DesignParams
from streamjoin_hw.cli.terminal import print_table
from streamjoin_hw.flow.build import ONE_FILE, VERILATOR_CONTROL, kept_model
from streamjoin_hw.flow.compact import CHECKS_MACRO
from streamjoin_hw.flow.emit import verilog_source
from streamjoin_hw.flow.toolchain import verilator
from streamjoin_hw.rtl.top import TOP_MODULE

ROOT = Path(__file__).resolve().parent.parent

SCENARIOS = len(STALLS) + 13

QUICK = ("band-4", "fast-5", "time-3", "split-5", "group-5", "hash-4", "theta-3")
"""Designs that are always simulated: every kind of core, predicate, window and order; the others
are smaller, or further points of these."""

CASES = [
    *((name, "short") for name in QUICK),
    *(pytest.param(name, "long", marks=pytest.mark.slow) for name in DESIGNS),
]
"""Inputs of either length meet every bin; long ones fill and empty the windows more often."""

MAKE_FLAGS = f"{ONE_FILE} OPT_FAST=-Og OPT_GLOBAL=-Og"
"""Compiling takes longer than simulating: Python drives every cycle."""

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
    monkeypatch.setenv("MAKEFLAGS", MAKE_FLAGS)


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


def simulator_of(params: DesignParams, log: Path) -> Path:
    """Return the folder of a design's simulator, kept by everything that can change it."""
    source = verilog_source(params)
    tools = [verilator().version, metadata.version("cocotb"), str(cocotb_tools.config.libs_dir)]
    key = hashlib.sha256(
        chr(0).join([source, VERILATOR_CONTROL, *tools, *BUILD_FLAGS, MAKE_FLAGS]).encode()
    ).hexdigest()

    def make(folder: Path) -> None:
        objects = folder / "obj"
        objects.mkdir()
        design, control = objects / "design.v", objects / "control.vlt"
        design.write_text(source)
        control.write_text(VERILATOR_CONTROL)
        get_runner("verilator").build(
            sources=[control, design],
            hdl_toplevel=TOP_MODULE,
            build_args=BUILD_FLAGS,
            build_dir=objects,
            timescale=("1ns", "1ps"),
            log_file=log,
        )
        (objects / TOP_MODULE).rename(folder / TOP_MODULE)

    return kept_model(f"{params.digest}-{key[:16]}", make, kind="simulators")


@pytest.mark.usefixtures("simulator")
@pytest.mark.parametrize(("name", "length"), CASES)
def test_handshake_is_exact_in_every_scenario(
    name: str, length: str, tmp_path: Path, totals: dict[str, Counter[str]]
) -> None:
    tally_file = tmp_path / "tally.jsonl"
    results = get_runner("verilator").test(
        test_module="sim_tests.cocotb_handshake",
        hdl_toplevel=TOP_MODULE,
        hdl_toplevel_lang="verilog",
        build_dir=simulator_of(DESIGNS[name], tmp_path / "build.log"),
        test_dir=ROOT,
        results_xml=str(tmp_path / "results.xml"),
        seed=SEED,
        extra_env={
            "STREAMJOIN_DESIGN": name,
            "STREAMJOIN_LENGTH": length,
            "STREAMJOIN_TALLY": str(tally_file),
            "SEED": str(SEED),
            "COCOTB_LOG_LEVEL": os.environ.get("COCOTB_LOG_LEVEL", "WARNING"),
        },
        log_file=tmp_path / "test.log",
    )
    tests, failures = get_results(Path(results))
    log = (tmp_path / "test.log").read_text()
    assert failures == 0, log[-6000:]
    scenarios = SCENARIOS + len(GROUPS) * DESIGNS[name].has_groups
    assert tests == scenarios
    total: Counter[str] = Counter()
    for line in tally_file.read_text().splitlines():
        total.update(json.loads(line))
    totals[name if length == "short" else f"{name}, {length}"] = total
    assert total["scenarios"] == scenarios
    assert total["tuples"] >= DESIGN_TUPLES[length]
    empty = [each for each in required() if not total[f"{BIN}{each}"]]
    assert not empty, f"never met: {'; '.join(empty)}"
