"""Stored records of area and clock: they are of the designs, and documents say what they hold."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from streamjoin_common.contract import DesignParams
from streamjoin_common.contract.presets import PRESETS
from streamjoin_hw.studies.synth import scale

STORED = Path(__file__).resolve().parents[2] / "benchmarks" / "synth"
BOARDS = {"pynq-z2": "xc7z020", "zcu104": "xczu7ev", "kv260": "xck26"}


@pytest.mark.parametrize("preset", BOARDS)
def test_the_preset_of_a_board_fits_its_part(preset: str) -> None:
    """By the record of a longer run; whether its Verilog has changed since, ``--stored`` says."""
    file = STORED / f"{preset}.json"
    renew = f"streamjoin hw synth --target {BOARDS[preset]} --preset {preset} --record {file}"
    recorded = json.loads(file.read_text())
    assert recorded["digest"] == PRESETS[preset].digest, f"type  {renew}"
    assert recorded["target"] == BOARDS[preset]
    assert not recorded["does_not_fit"]
    assert recorded["resources"]["lut"]["share"] <= 0.7
    assert recorded["resources"]["ramb18"]["share"] <= 0.9


@pytest.mark.parametrize(
    ("folder", "chosen"),
    [
        ("chain", {"design": "handshake"}),
        ("chain-six", {"design": "handshake"}),
        ("chain-fast", {"design": "handshake", "forward": "fast"}),
        ("chain-fast-64", {"design": "handshake", "forward": "fast"}),
        ("chain-nexus", {"design": "handshake"}),
        ("splitjoin", {"design": "splitjoin"}),
    ],
)
def test_the_documented_clocks_are_those_of_the_records(
    folder: str, chosen: dict[str, Any]
) -> None:
    """By the records of longer runs, which ``hw scale --out`` with their folder shows."""
    page = (STORED.parents[1] / "docs" / "decisions" / "0026-a-clock-that-stays.md").read_text()
    files = sorted((STORED.parent / "scale" / folder).glob("cores-*.json"))
    records = [json.loads(file.read_text()) for file in files]
    for recorded in records:
        cores = recorded["params"]["cores"]
        params = DesignParams(**{**chosen, "cores": cores, "segment_tuples": 16})
        assert recorded["digest"] == params.digest, "the parameters have changed: run hw scale anew"
    studied = scale.points(records)
    assert studied[0].cores == (64 if folder == "chain-fast-64" else 4)
    for point in studied:
        clocks = [f"{hz / 1e6:.1f}" for hz in point.clocks_hz]
        median = f"{point.median['clock']['hz'] / 1e6:.1f} MHz"
        assert f"| {folder} | {point.cores} | {median} | {', '.join(clocks)} |" in page


def test_the_documented_clocks_of_the_ordered_index_are_those_of_the_records() -> None:
    page = STORED.parents[1] / "docs" / "decisions" / "0023-an-ordered-index-of-windows.md"
    files = sorted((STORED.parent / "scale" / "index").glob("seed-*.json"))
    records = [json.loads(file.read_text()) for file in files]
    base = PRESETS["tiny-index"]
    params = dataclasses.replace(base, segment_tuples=256, lanes=8, buckets=128)
    assert {each["digest"] for each in records} == {params.digest}
    assert [each["settings"]["seed"] for each in records] == [1, 2, 3]
    clocks = [each["clock"]["hz"] / 1e6 for each in records]
    assert min(clocks) > 100, "the goal"
    assert "{:.1f}, {:.1f}\nand {:.1f} MHz".format(*clocks) in page.read_text().replace("*", "")
