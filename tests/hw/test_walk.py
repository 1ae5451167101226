"""What is recorded of the design is what it does, in the waveforms and on the animated page."""

import json
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.devtools import Browser
from tests.hw.commands import run

from streamjoin_common.contract import DesignParams, active_cores
from streamjoin_common.contract.presets import PRESETS, REFERENCE_BAND
from streamjoin_common.errors import UsageError
from streamjoin_common.storage import StorageError
from streamjoin_hw.sim import testing
from streamjoin_hw.studies.walk.page import walk_page
from streamjoin_hw.studies.walk.recording import Recording, record
from streamjoin_hw.studies.walk.waves import record_waves

SEED = 5

DESIGNS = {
    "tiny": (PRESETS["tiny"], (8, 8)),
    "uneven": (PRESETS["tiny"], (3, 7)),
    "band": (DesignParams(cores=3, segment_tuples=4, lanes=2, terms=REFERENCE_BAND), (6, 5)),
    "one core": (DesignParams(cores=1, segment_tuples=3, lanes=1), (3, 2)),
}


def recorded(name: str, tuples: int = 40, **pauses: int) -> Recording:
    """Run a design on random tuples."""
    params, windows = DESIGNS[name]
    rng = np.random.default_rng([SEED, *windows])
    return record(testing.random_workload(params, rng, tuples, windows=windows), **pauses)


def data_in(page: str) -> Any:
    """Return what the page is drawn from."""
    recording = re.search(
        r'<script id="recording" type="application/json">(.*?)</script>', page, re.S
    )
    assert recording
    return json.loads(recording[1])


# ---- the recording and the page's data ------------------------------------------------------


@pytest.mark.parametrize("name", DESIGNS)
def test_the_page_shows_the_windows_as_they_are_defined(name: str) -> None:
    """After every step the cores hold the last tuples of each side, oldest furthest on."""
    recording = recorded(name, idle_per_1024=200, stall_per_1024=300)
    workload = recording.workload
    data = data_in(walk_page(recording))
    assert data["cores"] == active_cores(workload.params, workload.window_r, workload.window_s)
    arrivals = iter(workload.arrivals)
    windows: tuple[deque[Any], deque[Any]] = (
        deque(maxlen=workload.window_r),
        deque(maxlen=workload.window_s),
    )
    for step in data["steps"]:
        # A bubble takes a slot of the window like any tuple.
        windows[step["side"]].append(step["arrived"])
        if step["arrived"] is not None:
            arrival = next(arrivals)
            assert (step["side"], step["arrived"]) == (arrival.side, arrival.payload)
        placed = [(side, row) for side, row, _, _ in step["positions"]]
        assert len(placed) == len(set(placed)), "a tuple is in two cores"
        for side in (0, 1):
            # From where R enters; S enters at the other end.
            walked = sorted(
                ((core, slot) if side == 0 else (-core, slot), row)
                for each, row, core, slot in step["positions"]
                if each == side
            )
            newest_first = [row for row in reversed(windows[side]) if row is not None]
            assert [row for _, row in walked] == newest_first
            assert len({position for position, _ in walked}) == len(walked), (
                "two tuples in one slot"
            )
            assert all(0 <= slot < data["slots"][side] for (_, slot), _ in walked)
    assert next(arrivals, None) is None, "a tuple never arrived"


@pytest.mark.parametrize("name", DESIGNS)
def test_the_page_shows_every_match_once_in_the_core_where_it_meets(name: str) -> None:
    recording = recorded(name)
    assert testing.difference(testing.reference(recording.workload), recording.pairs) == ""
    data = data_in(walk_page(recording))
    shown = [(r, s) for step in data["steps"] for r, s, _ in step["matches"]]
    assert len(shown) > 5
    assert sorted(shown) == sorted(recording.pairs)
    for step in data["steps"]:
        where = {(side, row): core for side, row, core, _ in step["positions"]}
        for r, s, core in step["matches"]:
            assert where[0, r] == where[1, s] == core


def test_pauses_change_when_something_happens_and_not_what() -> None:
    def happened(recording: Recording) -> Any:
        return [(step.side, step.arrived, step.positions) for step in recording.steps]

    plain, paused = recorded("tiny"), recorded("tiny", idle_per_1024=900, stall_per_1024=500)
    assert happened(plain) == happened(paused)
    assert plain.cycles < paused.cycles


# ---- the page in a browser ------------------------------------------------------------------

MEASURE = r"""
<script>
const press = (key) => dispatchEvent(new KeyboardEvent('keydown', {key, cancelable: true}));
const answer = {playing: timer !== null, button: get('play').textContent};
press(' ');
answer.toggled = [timer !== null, get('play').textContent];
show(0);
const drawn = () => ({
  inside: [...tuples].filter(([, group]) => group.style.opacity === '1')
    .map(([who, group]) => [who, group.style.transform]).sort(),
  lines: lines.children.length, met: document.querySelectorAll('.tuple.met').length,
  fills: [get('fill0').textContent, get('fill1').textContent], pairs: get('pairs').textContent,
  said: get('said').textContent,
});
answer.steps = [drawn()];
for (let step = 0; step < data.steps.length; step++) {
  press('ArrowRight');
  answer.steps.push(drawn());
}
press('ArrowLeft');
answer.back = at;
show(12);
const box = stage.getBoundingClientRect();
answer.page = [innerWidth, document.documentElement.scrollWidth];
answer.stage = [box.left, box.right];
answer.scroll = get('box').scrollWidth - get('box').clientWidth;
const scale = box.width / stage.viewBox.baseVal.width;
answer.font_px = Math.min(...[...stage.querySelectorAll('text')]
  .map((e) => parseFloat(getComputedStyle(e).fontSize) * scale));
answer.ground = getComputedStyle(document.body).backgroundColor;
answer.pace = getComputedStyle(document.documentElement).getPropertyValue('--pace').trim();
const measured = document.createElement('pre');
measured.id = 'measured';
measured.textContent = JSON.stringify(answer);
parent.document.body.append(measured);
</script>
"""


@pytest.mark.parametrize(("width_px", "dark"), [(400, True), (900, False)])
def test_the_arrow_keys_walk_through_the_recording(
    chromium: Browser, tmp_path: Path, width_px: int, dark: bool
) -> None:
    recording = recorded("tiny")
    page = walk_page(recording)
    seen = chromium.measure(page, MEASURE, tmp_path, width_px, dark=dark)
    data = data_in(page)
    assert (seen["playing"], seen["button"]) == (True, "pause")
    assert seen["toggled"] == [False, "play"]
    assert seen["back"] == len(data["steps"]) - 1
    assert seen["page"] == [width_px, width_px]
    assert seen["scroll"] == 0
    assert 0 <= seen["stage"][0] < seen["stage"][1] <= width_px
    assert seen["font_px"] >= 9
    assert seen["ground"] == ("rgb(20, 23, 28)" if dark else "rgb(251, 250, 247)")
    before, *steps = seen["steps"]
    assert before["inside"] == []
    matches = 0
    for step, shown in zip(data["steps"], steps, strict=True):
        assert [who for who, _ in shown["inside"]] == sorted(
            f"{side},{row}" for side, row, *_ in step["positions"]
        )
        spots = {spot for _, spot in shown["inside"]}
        assert len(spots) == len(step["positions"]), "two tuples are drawn at one point"
        matches += len(step["matches"])
        assert shown["lines"] == len(step["matches"])
        assert shown["met"] == len({(0, r) for r, _, _ in step["matches"]}) + len(
            {(1, s) for _, s, _ in step["matches"]}
        )
        assert shown["pairs"] == f"{matches} of {len(recording.pairs)}"
        for side in (0, 1):
            stored = sum(each == side for each, *_ in step["positions"])
            assert shown["fills"][side] == f"{stored} of {data['windows'][side]} "


def test_nothing_moves_by_itself_where_motion_is_unwelcome(
    chromium: Browser, tmp_path: Path
) -> None:
    page = walk_page(recorded("band"))
    seen = chromium.measure(page, MEASURE, tmp_path, 400, still=True)
    assert (seen["playing"], seen["button"], seen["pace"]) == (False, "play", "0s")


def test_a_long_chain_scrolls_and_the_page_does_not(chromium: Browser, tmp_path: Path) -> None:
    params = DesignParams(cores=8, segment_tuples=4)
    rng = np.random.default_rng(SEED)
    page = walk_page(record(testing.random_workload(params, rng, 30, windows=(32, 32))))
    seen = chromium.measure(page, MEASURE, tmp_path, 400)
    assert seen["page"] == [400, 400]
    assert seen["scroll"] > 0
    assert seen["font_px"] >= 7


def test_the_page_needs_nothing_from_elsewhere() -> None:
    page = walk_page(recorded("one core"))
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|url\(|@import|<link|<img|src=", page)


# ---- commands -------------------------------------------------------------------------------


def test_animate_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "deep" / "walk.html"
    assert run("animate", "--preset", "tiny", "--out", str(file)) == 0
    assert capsys.readouterr() == ("", f"wrote {file}\n")
    data = data_in(file.read_text())
    assert (data["cores"], data["windows"], data["slots"]) == (4, [8, 8], [2, 2])
    assert sum(step["arrived"] is not None for step in data["steps"]) == 40


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("animate", "--preset", "tiny"), "--out must name the HTML file to write"),
        (
            ("animate", "--preset", "tiny", "--out", "w.html", "--param", "forward=fast"),
            "hw animate shows the lock-step chain: drop --param forward=fast",
        ),
        (
            ("animate", "--preset", "tiny", "--out", "w.html", "--window-r", "32"),
            "a page shows up to 8 cores of 4 tuples of each side, not 4 cores with windows of 32 "
            "and 8: set --param cores=4, --window-r or --window-s",
        ),
        (
            ("animate", "--preset", "tiny", "--out", "w.html", "--tuples", "5001"),
            "--tuples must be from 1 to 5000 where every signal is recorded, not 5001",
        ),
        (
            (
                *("animate", "--preset", "tiny", "--out", "w.html", "--tuples", "600"),
                *("--param", "payload_bits=8"),
            ),
            "--tuples must be at most 256 where payload_bits=8 number the rows, not 600",
        ),
        (
            ("simulate", "--preset", "tiny", "--waves", "w.vcd", "--tuples", "6000"),
            "--tuples must be from 1 to 5000 where every signal is recorded, not 6000",
        ),
        (
            ("simulate", "--preset", "tiny", "--waves", "w.gtkw"),
            "--waves must name a .vcd file, not 'w.gtkw'",
        ),
    ],
)
def test_a_mistake_is_one_sentence(
    words: tuple[str, ...], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$"):
        run(*words)
    assert not list(tmp_path.iterdir())


# ---- waveforms ------------------------------------------------------------------------------


def vcd_header(document: str) -> dict[str, str]:
    """Return the code of every variable of a VCD by its full name."""
    scopes: list[str] = []
    codes: dict[str, str] = {}
    for line in document[: document.index("$enddefinitions")].splitlines():
        match line.split():
            case ["$scope", _, name, "$end"]:
                scopes.append(name)
            case ["$upscope", "$end"]:
                scopes.pop()
            case ["$var", _, width, code, name, "$end"]:
                bits = "" if width == "1" else f"[{int(width) - 1}:0]"
                codes[".".join([*scopes, name]) + bits] = code
    return codes


def vcd_cycles(document: str, clock: str, wanted: dict[str, str]) -> Iterator[dict[str, str]]:
    """Yield the values just before every rising edge of a clock."""
    names: dict[str, list[str]] = {}
    for name, code in wanted.items():
        names.setdefault(code, []).append(name)
    values: dict[str, str] = {}
    changes: dict[str, str] = {}
    for line in document[document.index("$dumpvars") :].splitlines()[1:]:
        if line.startswith("#"):
            values |= changes
            changes = {}
        elif line[0] in "bs":
            value, code = line[1:].split()
            changes |= dict.fromkeys(names.get(code, []), value)
        elif line[0] in "01":
            if line[1:] == clock and line[0] == "1" and values:
                yield dict(values)
            changes |= dict.fromkeys(names.get(line[1:], []), line[0])


def test_waveforms_hold_the_signals_of_the_save_file_and_the_designs_results(
    tmp_path: Path,
) -> None:
    params, windows = DESIGNS["tiny"]
    rng = np.random.default_rng(SEED)
    workload = testing.random_workload(params, rng, 60, windows=windows)
    file = tmp_path / "deep" / "tiny.vcd"
    recording, save = record_waves(workload, file, seed=1, idle_per_1024=300, stall_per_1024=300)
    assert sorted(file.parent.iterdir()) == [save, file]
    assert save == file.with_suffix(".gtkw")
    lines = save.read_text().splitlines()
    assert lines[0] == '[dumpfile] "tiny.vcd"'
    document = file.read_text()
    codes = vcd_header(document)
    shown = [line for line in lines if line.startswith("bench.")]
    assert len(shown) > 60
    assert set(shown) <= set(codes)
    assert not [name for name in shown if "$" in name or "\\" in name]
    groups = [line[1:] for line in lines if line.startswith("-")]
    assert (
        groups[::2]
        == groups[1::2]
        == [
            *("tuples", "results", "state"),
            *(f"core {index}" for index in range(params.cores)),
        ]
    )
    short = {name.rpartition(".")[2].partition("[")[0]: name for name in shown[:16]}
    wanted = {name: codes[whole] for name, whole in short.items()}
    cycles = list(vcd_cycles(document, codes["bench.top.clk"], wanted))
    results = [
        each
        for each in cycles
        if each["result_valid"] == each["result_ready"] == "1"
        and each["result_is_punctuation"] == "0"
    ]
    pairs = [
        (int(each["result_r_payload"], 2), int(each["result_s_payload"], 2)) for each in results
    ]
    assert pairs == recording.pairs
    given = [each for each in cycles if each["tuple_valid"] == each["tuple_ready"] == "1"]
    assert [each["tuple_side"] for each in given] == ["RS"[a.side] for a in workload.arrivals]
    phases = [each["phase"] for each in cycles]
    assert set(phases) == {"WAITING", "RUNNING", "DRAINING"}


def test_simulate_with_waves_says_what_it_wrote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "w.vcd"
    words = ("--tuples", "30", "--waves", str(file), "--json")
    assert run("simulate", "--preset", "tiny-band", *words) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["verdict"] == "exact"
    assert printed.err == f"wrote {file} and {tmp_path / 'w.gtkw'}\n"


def test_waves_that_cannot_be_written_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match=r"w.vcd cannot be written \(Not a directory"):
        run("simulate", "--preset", "tiny", "--waves", str(tmp_path / "file" / "w.vcd"))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
