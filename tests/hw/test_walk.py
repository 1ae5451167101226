"""What is watched from inside: the recording is true, the page shows it, the waves open."""

import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamjoin_hw.cli import HardwareVerb
from streamjoin_hw.contract import SIDE_R, SIDE_S, DesignParams
from streamjoin_hw.presets import EQUI, REFERENCE_BAND
from streamjoin_hw.testing import random_workload, reference
from streamjoin_hw.walk.page import page_data, walk_page
from streamjoin_hw.walk.recording import Recording, record

SEED = 31
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


def recorded(params: DesignParams, windows: tuple[int, int], tuples: int = 40) -> Recording:
    rng = np.random.default_rng([SEED, *windows])
    workload = random_workload(params, rng, tuples, windows=windows, domain=4)
    return record(workload, seed=SEED, idle_per_1024=100, stall_per_1024=200)


DESIGNS = {
    "equi": DesignParams(cores=3, segment_tuples=3, lanes=2, terms=EQUI),
    "band": DesignParams(cores=2, segment_tuples=4, lanes=1, terms=REFERENCE_BAND),
    "time": DesignParams(cores=2, segment_tuples=3, lanes=3, terms=EQUI, timestamp_bits=12),
}


@pytest.mark.parametrize("windows", [(6, 6), (3, 5), (1, 2)])
@pytest.mark.parametrize("design", DESIGNS)
def test_a_recording_shows_what_the_design_did(design: str, windows: tuple[int, int]) -> None:
    found = recorded(DESIGNS[design], windows)
    assert Counter(found.pairs) == Counter(reference(found.workload))
    shown = [(r, s) for step in found.steps for r, s, _ in step.matches]
    assert Counter(shown) == Counter(found.pairs)
    arrived = [(step.side, step.arrived) for step in found.steps if step.arrived is not None]
    assert arrived == [(each.side, each.payload) for each in found.workload.arrivals]


def test_tuples_walk_one_way_and_leave_in_order() -> None:
    found = recorded(DESIGNS["equi"], (6, 6))
    before: dict[tuple[int, int], tuple[int, int]] = {}
    for step in found.steps:
        for who, (core, slot) in step.places.items():
            was_core, was_slot = before.get(who, (core, slot))
            forward = core - was_core if who[0] == SIDE_R else was_core - core
            assert forward in {0, 1}
            assert (core, slot) != (was_core, was_slot) or who[0] != step.side or who not in before
            if who[0] != step.side:
                assert (core, slot) == (was_core, was_slot)
        before = step.places
    assert not [who for who in before if who[0] == SIDE_R], "the drain pushes all of R out"


def test_a_match_is_shown_in_the_core_where_both_are() -> None:
    for step in recorded(DESIGNS["equi"], (6, 6)).steps:
        for r, s, core in step.matches:
            assert step.places[SIDE_R, r][0] == step.places[SIDE_S, s][0] == core


def test_the_page_holds_the_recording_and_nothing_from_elsewhere() -> None:
    found = recorded(DESIGNS["equi"], (6, 6))
    page = walk_page(found)
    data = re.search(r'type="application/json">(.*?)</script>', page, flags=re.S)
    assert data is not None
    assert json.loads(data[1]) == json.loads(json.dumps(page_data(found)))
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)
    assert "prefers-reduced-motion" in page


def test_the_page_draws_a_step_in_a_browser(tmp_path: Path) -> None:
    assert BROWSER is not None, "make setup installs Chromium"
    found = recorded(DESIGNS["equi"], (6, 6))
    page = tmp_path / "walk.html"
    page.write_text(walk_page(found), encoding="utf-8")
    at = next(index for index, step in enumerate(found.steps) if step.matches)
    done = subprocess.run(
        [
            BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--virtual-time-budget=3000",
            "--dump-dom",
            f"file://{page}#{at + 1}",
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    dom = done.stdout
    step = found.steps[at]
    assert dom.count('class="meeting"') == len(step.matches)
    met = {(SIDE_R, r) for r, _, _ in step.matches} | {(SIDE_S, s) for _, s, _ in step.matches}
    assert len(re.findall(r'class="tuple [rs] met"', dom)) == len(met)
    inside = len(re.findall(r'class="tuple[^>]*opacity: 1', dom))
    assert inside == len(step.places)


def hw(*words: str) -> int:
    import argparse

    parser = argparse.ArgumentParser()
    HardwareVerb().configure(parser)
    arguments = parser.parse_args(list(words))
    return int(arguments.action_run(arguments))


def test_animate_writes_the_page(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "walk.html"
    assert hw("animate", "--preset", "tiny", "--out", str(out)) == 0
    assert out.read_text().startswith("<!doctype html>")


def test_waves_name_the_signals_and_open_grouped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tiny.vcd"
    words = ["simulate", "--preset", "tiny", "--tuples", "60", "--waves", str(file), "--json"]
    assert hw(*words) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "exact"
    header = file.read_text().partition("$enddefinitions")[0]
    names = set(re.findall(r"\$var \w+ \d+ \S+ (\S+)", header))
    assert {"running", "draining", "held"} <= names
    save = (tmp_path / "tiny.gtkw").read_text()
    assert '[dumpfile] "tiny.vcd"' in save
    assert {"tuples", "results", "core 0", "core 3"} <= set(
        re.findall(r"^-(.*)$", save, flags=re.M)
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tiny.gtkw", "tiny.vcd"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["animate", "--preset", "tiny"], "--out must name the HTML file to write"),
        (["animate", "--preset", "tiny", "--tuples", "0", "--out", "x"], "--tuples must be from 1"),
        (
            ["animate", "--preset", "tiny", "--param", "forward=fast", "--out", "x"],
            "leave out --param forward=fast",
        ),
        (
            ["animate", "--preset", "tiny", "--window-r", "32", "--window-s", "32", "--out", "x"],
            "a page shows up to 8 cores of 4 tuples",
        ),
        (
            ["simulate", "--preset", "tiny", "--tuples", "9999", "--waves", "x.vcd"],
            "--tuples must be from 1 to 5000",
        ),
    ],
)
def test_what_cannot_be_shown_is_refused_in_a_sentence(
    words: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    error: Any
    with pytest.raises(ValueError, match=re.escape(sentence)) as error:
        hw(*words)
    assert error.value.exit_status == 2
    assert not list(tmp_path.iterdir())
