"""Studies of clock and area against cores: what is kept, what is said, and the control."""

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.hw.test_lint import near
from tests.hw.test_synth import PARAMS, SMALL, run

from streamjoin_common.contract import DesignParams, Theta, parse_term
from streamjoin_common.contract.presets import PRESETS
from streamjoin_common.errors import DeadlineError, ToolError, UsageError
from streamjoin_hw.cli import scale as scale_cli
from streamjoin_hw.cli.options import design_from
from streamjoin_hw.studies.synth import record, scale
from streamjoin_hw.studies.synth.area import Use
from streamjoin_hw.studies.synth.harness import harness_verilog
from streamjoin_hw.studies.synth.page import design_in_words
from streamjoin_hw.studies.synth.settings import Settings
from streamjoin_hw.studies.synth.targets import TARGETS


@pytest.fixture
def fake_record(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Stand-in for synthesis with 700 LUT a core; returns the counts of cores asked for."""
    asked: list[int] = []

    def stand_in(
        params: DesignParams, target: Any, settings: Settings, tell: Callable[[str], None]
    ) -> dict[str, Any]:
        asked.append(params.cores)
        tell("route")
        if params.cores == 4 and asked.count(4) == 1:
            raise KeyboardInterrupt
        uses = {name: Use(1000 + 700 * params.cores, 83_640) for name in ("lut", "ff")}
        return {
            **record.failure(params, target, settings, ToolError()),
            "resources": {name: use.as_json() for name, use in uses.items()},
            "clock": {"hz": 102e6 - 2e6 * settings.seed - params.cores * 1e6,
                      "source": "a stand-in",
                      "critical_path_in_words": "from here to there"},
        }  # fmt: skip

    monkeypatch.setattr(scale, "record", stand_in)
    monkeypatch.setattr(scale, "tools", lambda *_: {"yosys": "1"})
    monkeypatch.setattr(record, "tools", lambda *_: {"yosys": "1"})
    return asked


def test_an_interrupted_study_goes_on_where_it_was(
    fake_record: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("scale", "--target", "ecp5-85k", "--cores", "2,4,8", *SMALL[2:], "--out")
    with pytest.raises(KeyboardInterrupt):
        run(*words, str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["cores-0002-seed-1.json"]
    assert run(*words, str(tmp_path)) == 0
    assert fake_record == [2, 4, 4, 8]
    assert run(*words, str(tmp_path), "--json") == 0
    assert fake_record == [2, 4, 4, 8]
    table, told = capsys.readouterr()
    assert "scale on ecp5-85k: 1 of 3, 2 cores, seed 1, route" in told
    assert "scale on ecp5-85k: 3 of 3, 8 cores, seed 1, route" in told
    assert "A further core costs 700 LUT; in handshake join's table 1 it costs 653" in table
    assert "From 2 to 8 cores the clock falls by 6.1 %." in table
    # Another placement is another point, and the slower of two counts.
    capsys.readouterr()
    assert run(*words, str(tmp_path), "--seeds", "1,2") == 0
    assert fake_record[4:] == [2, 4, 8]
    assert "96.0 (96.0 to 98.0)" in capsys.readouterr().out


def test_a_control_has_the_cores_of_designs_side_by_side(
    fake_record: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("scale", "--target", "ecp5-85k", "--cores", "2,8", "--each", "2", *SMALL[2:])
    assert run(*words, "--out", str(tmp_path)) == 0
    assert fake_record == [2, 2]
    recorded = json.loads((tmp_path / "cores-0008-seed-1.json").read_text())
    assert recorded["settings"]["copies"] == 4
    assert recorded["params"]["cores"] == 2
    assert recorded["comparisons_per_cycle"] == 8
    table = capsys.readouterr().out
    assert "designs of 2 cores side by side" in table
    assert "From 2 to 8 cores" in table
    # The design alone is none of these points, and nothing is written over.
    with pytest.raises(UsageError, match="is of another study, with cores 2 and not 8"):
        run(*words[:5], *SMALL[2:], "--out", str(tmp_path))
    assert json.loads((tmp_path / "cores-0008-seed-1.json").read_text()) == recorded
    assert fake_record == [2, 2]


def test_records_of_an_earlier_design_are_not_written_over_unasked(
    fake_record: list[int], tmp_path: Path
) -> None:
    words = ("scale", "--target", "ecp5-85k", "--cores", "1,2", *SMALL[2:], "--out", str(tmp_path))
    path = tmp_path / "cores-0002-seed-1.json"
    for content in ("{", "[]", "{}", '{"version": 1}', "null", "7"):
        path.write_text(content)
        with pytest.raises(UsageError, match=r"seed-1\.json is no record of a study: give --out "):
            run(*words, "--renew")
        assert path.read_text() == content
    path.unlink()
    assert run(*words) == 0
    made = json.loads(path.read_text())
    for name in (*scale.PLAIN, *scale.OBJECTS):
        for broken in ({**made, name: None}, {key: made[key] for key in made if key != name}):
            if name in scale.PLAIN and name in broken:
                continue
            path.write_text(json.dumps(broken))
            with pytest.raises(UsageError, match=r"seed-1\.json is no record of a study"):
                run(*words)
    earlier = [
        {"verilog_sha256": "0"},
        {"settings": {**made["settings"], "placer": "--another"}},
        {"tools": {"yosys": "0"}},
        {"version": made["version"] - 1},
    ]
    for change in earlier:
        changed = json.dumps({**made, "failed": "", **change})
        path.write_text(changed)
        with pytest.raises(UsageError, match=r"is of an earlier design, flow or tool: .* --renew"):
            run(*words)
        assert path.read_text() == changed
        assert run(*words, "--renew") == 0
        assert json.loads(path.read_text()) == made
    assert fake_record[:2] == [1, 2]
    assert fake_record.count(2) == 1 + len(earlier)


def test_a_parameter_that_is_not_named_by_default_is_of_another_study_too(
    fake_record: list[int], tmp_path: Path
) -> None:
    words = ("scale", "--target", "ecp5-85k", "--cores", "2", *SMALL[2:], "--out", str(tmp_path))
    assert run(*words, "--param", "forward=fast", "kinds=all") == 0
    with pytest.raises(UsageError, match="of another study, with kinds all and not as by default"):
        run(*words, "--renew", "--param", "forward=fast")
    assert fake_record == [2]


def test_a_failure_is_not_written_over_a_result(
    fake_record: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("scale", "--target", "ecp5-85k", "--cores", "2", *SMALL[2:], "--out", str(tmp_path))
    assert run(*words) == 0
    path = tmp_path / "cores-0002-seed-1.json"
    made = json.dumps({**json.loads(path.read_text()), "failed": "", "verilog_sha256": "0"})
    path.write_text(made)

    def give_up(*_: Any) -> None:
        raise DeadlineError("Yosys did not end within 1 s")

    monkeypatch.setattr(scale, "record", give_up)
    with pytest.raises(ToolError, match="did not end"):
        run(*words, "--renew")
    assert path.read_text() == made
    assert fake_record == [2]
    path.unlink()
    assert run(*words) == 1
    assert "did not end" in json.loads(path.read_text())["failed"]
    # What has no result is shown, too.
    assert run("synth", "--stored", str(tmp_path)) == 0


def test_flags_that_a_study_would_not_heed_are_refused(tmp_path: Path) -> None:
    small = ("--param", "segment_tuples=4")
    for words, said in [
        (("xc7z020", "--seeds", "1,2", *small), "^--seeds are of the placer"),
        (("ecp5-85k", "--seeds", "1,2", "--no-route", *small), "^--seeds are of the placer"),
        (("ecp5-85k", *small, "--param", "cores=2"), "^--cores counts the cores of each point"),
        (("xc7z020", *small, "--clock", "90"), "^--clock is for designs that are routed"),
    ]:
        with pytest.raises(UsageError, match=said):
            run("scale", "--cores", "1", "--out", str(tmp_path / "new"), "--target", *words)
        assert not (tmp_path / "new").exists()


def test_records_of_another_aim_are_not_written_over(
    fake_record: list[int], tmp_path: Path
) -> None:
    words = ("scale", "--target", "ecp5-85k", "--cores", "2", *SMALL[2:], "--out", str(tmp_path))
    assert run(*words, "--seeds", "2") == 0
    page = (tmp_path / "scale.html").read_text()
    assert "Aimed at 100 MHz; seeds 2." in page
    for flag, value, made in [
        ("--clock", "200", "clock_hz 100000000 and not 200000000"),
        ("--placements", "3", "placements 1 and not 3"),
        ("--param", "segment_tuples=8", "segment_tuples"),
    ]:
        # One seed is new: it is refused before any is placed.
        with pytest.raises(UsageError, match=made):
            run(*words, "--seeds", "1,2", flag, value)
    assert fake_record == [2]
    assert (tmp_path / "scale.html").read_text() == page


def test_designs_side_by_side_are_shifted_one_into_the_next() -> None:
    verilog = harness_verilog(DesignParams(cores=2, segment_tuples=2), 3)
    top = verilog[verilog.index("module streamjoin_harness(serial_in, serial_out, clk);") :]
    top = top.split("endmodule")[0]
    copies = re.findall(r" copy\d+ \((.*?)\);", top, re.S)
    into, out = (re.findall(rf"\.serial_{end}\((.*)\)", "\n".join(copies)) for end in ("in", "out"))
    assert len(copies) == len(set(out)) == 3
    assert into == ["serial_in", *out[:2]]
    assert out[2] == "serial_out"


def test_the_page_of_a_study_loads_nothing(fake_record: list[int], tmp_path: Path) -> None:
    del fake_record
    assert run("scale", "--target", "ecp5-85k", "--cores", "1,2", *SMALL[2:], "--out",
               str(tmp_path)) == 0  # fmt: skip
    page = (tmp_path / scale_cli.PAGE_NAME).read_text()
    assert page.count("<svg") == 1
    assert "src=" not in page
    assert "<td>1,700</td>" in page


def said_of(params: DesignParams) -> str:
    """Return what a page says of a design's parameters."""
    said = re.fullmatch(r"Design: (.*); other .* default\.", design_in_words(params.to_dict()))
    assert said is not None
    return said[1]


@pytest.mark.parametrize("params", PRESETS.values(), ids=PRESETS)
def test_a_page_names_a_design_as_one_types_it(params: DesignParams) -> None:
    typed = said_of(params).split(", ")
    assert design_from(None, [f"cores={params.cores}", *typed]) == params


def test_a_page_names_a_predicate_of_the_users() -> None:
    term, theta = parse_term("key:int32"), Theta.of(near)
    params = DesignParams(cores=4, segment_tuples=2, terms=(term,), theta=theta)
    assert said_of(params) == "segment_tuples=2, terms=key:int32, theta=near"


def test_a_point_that_took_too_long_is_tried_again_with_more_time() -> None:
    target = TARGETS["xc7z020"]
    settings = Settings(deadline_s=10)
    late = DeadlineError("Yosys did not end within 10 s")
    failed = record.failure(PARAMS, target, settings, late)
    assert scale.is_current(failed, target, settings, PARAMS)
    longer = dataclasses.replace(settings, deadline_s=20)
    assert not scale.is_current(failed, target, longer, PARAMS)
    changed = dataclasses.replace(PARAMS, lanes=2)
    assert not scale.is_current(failed, target, settings, changed)
    killed = record.failure(PARAMS, target, settings, ToolError("nextpnr ended with status -9"))
    assert not scale.is_current(killed, target, settings, PARAMS)
