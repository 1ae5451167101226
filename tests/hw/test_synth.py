"""Area and clock by open tools: small real runs, their records, and what is reported."""

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from streamjoin_common.contract import DesignParams
from streamjoin_common.errors import UsageError
from streamjoin_common.storage import StorageError
from streamjoin_hw.cli import VERB
from streamjoin_hw.flow import toolchain
from streamjoin_hw.studies.synth import area, record, route, scale
from streamjoin_hw.studies.synth.area import Use
from streamjoin_hw.studies.synth.settings import Settings
from streamjoin_hw.studies.synth.targets import TARGETS

SMALL = ("--param", "cores=2", "--param", "segment_tuples=2")
PARAMS = DesignParams(cores=2, segment_tuples=2)


def run(*words: str) -> int:
    """Run the verb with these words."""
    parser = argparse.ArgumentParser(prog="streamjoin hw")
    VERB.configure(parser)
    return VERB.run(parser.parse_args(words))


def test_cells_of_a_xilinx_part_are_counted_and_written_into_the_manifest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--target", "xc7z020", *SMALL, "--out", str(tmp_path), "--json")
    assert run("synth", *words) == 0
    recorded = json.loads(capsys.readouterr().out)
    cells = recorded["cells"]
    assert recorded["resources"]["ff"]["used"] == sum(cells.get(f"FD{kind}E", 0) for kind in "RSCP")
    simple = sum(cells.get(f"LUT{inputs}", 0) for inputs in range(1, 7)) + cells.get("INV", 0)
    simple += sum(count for name, count in cells.items() if name.startswith("SRL"))
    assert recorded["resources"]["lut"]["used"] == simple + 4 * cells.get("RAM32M", 0) > 500
    # Two cores, a module each time; an adder chain is no LUT.
    assert cells["streamjoin_core"] == 2
    assert recorded["comparisons_per_cycle"] == 2
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["digest"] == PARAMS.digest
    assert manifest["resources"]["lut"] == recorded["resources"]["lut"]
    assert manifest["resources"]["source"] == "Yosys, estimated before placement (core once)"
    assert manifest["clock"] == {
        "target": "xc7z020",
        "hz": None,
        "source": "no timing was run: there is no place and route for this part here",
    }
    assert json.loads((tmp_path / "synth.json").read_text()) == recorded
    assert (tmp_path / "streamjoin_top.v").is_file()


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("ecp5-85k", "nextpnr-ecp5, post-route, LFE5U-85F-6BG756 speed grade 6"),
        ("lifcl-40", "nextpnr-nexus, post-route, LIFCL-40-9BG400C speed grade 9"),
    ],
)
def test_a_part_is_routed_and_its_longest_path_is_the_clock(
    capsys: pytest.CaptureFixture[str], name: str, source: str
) -> None:
    assert run("synth", "--target", name, *SMALL, "--json") == 0
    shown = capsys.readouterr()
    recorded = json.loads(shown.out)
    clock = recorded["clock"]
    path_ns = sum(step["ns"] for step in clock["critical_path"])
    assert path_ns == pytest.approx(1e9 / clock["hz"], abs=0.05)
    assert clock["source"] == source
    assert " levels of logic, " in clock["critical_path_in_words"]
    assert recorded["resources"]["lut"]["used"] > recorded["cells"]["LUT4"] > 500
    assert set(recorded["seconds"]) == {"elaborate", "synth", "pack", "place", "route"}
    assert run("synth", "--target", name, *SMALL) == 0
    table = capsys.readouterr().out
    assert f"{clock['hz'] / 1e6:.1f} MHz ({source[: source.index(',')]}, post-route" in table


def test_what_was_synthesised_before_is_not_synthesised_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reported: list[str] = []
    target = TARGETS["xc7z020"]
    first = record.record(PARAMS, target, Settings(), reported.append)

    def never(*_given: object, **_named: object) -> None:
        raise AssertionError("Yosys was started again")

    monkeypatch.setattr(area, "synthesise", never)
    assert record.record(PARAMS, target, Settings(), reported.append) == first
    with pytest.raises(AssertionError, match="started again"):
        record.record(dataclasses.replace(PARAMS, cores=3), target, Settings(), reported.append)


def test_a_tool_that_takes_too_long_is_given_up() -> None:
    with pytest.raises(toolchain.ToolError, match=r"^Yosys did not end within 1 s$"):
        run("synth", "--target", "xc7z020", "--param", "cores=5", "--param", "segment_tuples=9",
            "--deadline", "1")  # fmt: skip


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("synth", "--target", "spartan", *SMALL),
            "--target must be one of xc7z020, xczu7ev, xck26, ecp5-85k, lifcl-40, not 'spartan'",
        ),
        *(
            (words, "--target needs a name, one of xc7z020, xczu7ev, xck26, ecp5-85k, lifcl-40")
            for words in (
                ("synth", *SMALL),
                ("synth", "--target", "", *SMALL),
                ("scale", "--target=", *SMALL[2:], "--out", "here"),
            )
        ),
        (
            ("bitstream", "--out", "here"),
            "--board needs a name, one of pynq-z2, zcu104, kv260, ulx3s-85f",
        ),
        (
            ("synth", "--target", "xc7z020", *SMALL, "--clock", "0"),
            "--clock must be from 1 to 1000, not 0",
        ),
        (
            ("synth", "--target", "xc7z020", *SMALL, "--out", ""),
            "--out needs a path",
        ),
        (
            ("scale", "--target", "xc7z020", "--cores", "4,x", "--out", "here"),
            "--cores must be integers from 1 up, as in 4,8,16,32, not '4,x'",
        ),
        (
            (
                "scale",
                "--target",
                "ecp5-85k",
                "--cores",
                "4,6",
                "--each",
                "4",
                *SMALL[2:],
                "--out",
                "here",
            ),
            "--cores must be multiples of --each 4, and 6 is none",
        ),
        (
            ("scale", "--target", "ecp5-85k", "--each", "2,4", *SMALL[2:], "--out", "here"),
            "--each is one integer, as in 4, not '2,4'",
        ),
        (
            ("scale", "--target", "xc7z020", "--placements", "2", *SMALL[2:], "--out", "here"),
            "--placements is for designs that are routed: give --target ecp5-85k or lifcl-40, and "
            "no --no-route",
        ),
        (
            ("synth", "--target", "lifcl-40", "--placements", "2", "--no-route", *SMALL),
            "--placements is for designs that are routed: give --target ecp5-85k or lifcl-40, and "
            "no --no-route",
        ),
        (
            ("scale", "--target", "ecp5-85k", "--placements", "10", *SMALL[2:], "--out", "here"),
            "--placements must be from 1 to 9, not 10",
        ),
        (
            ("scale", "--target", "xc7z020", "--each", "4", *SMALL[2:], "--out", "here"),
            "--each compares clocks, and this study has none: give --target ecp5-85k or lifcl-40, "
            "without --no-route and --board-top",
        ),
        (
            ("scale", "--target", "xc7z020", "--preset", "tiny-index", "--out", "here"),
            "hw scale needs a design of several cores, and splitjoin-index has one: give --preset "
            "tiny or tiny-split, or count this one with hw synth",
        ),
    ],
)
def test_a_wrong_flag_is_one_sentence(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        run(*words)
    assert str(caught.value) == sentence
    assert caught.value.exit_status == 2


def test_a_part_that_is_too_small_is_named_with_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fits = {"lut": Use(10, 10), "ff": Use(3, 20)}
    assert area.lacking(fits, "XC7Z020") == ""
    over = {"lut": Use(53_201, 53_200), "ff": Use(3, 20), "ramb18": Use(560, 280)}
    sentence = (
        "the design does not fit the XC7Z020: it needs 53,201 LUT of 53,200 (1.0 times as many) "
        "and 560 RAMB18 of 280 (2.0 times as many)"
    )
    assert area.lacking(over, "XC7Z020") == sentence
    recorded = record.record(PARAMS, TARGETS["xc7z020"], Settings(), lambda _stage: None)
    monkeypatch.setattr(record, "record", lambda *_: {**recorded, "does_not_fit": sentence})
    assert run("synth", "--target", "xc7z020", *SMALL) == 1
    assert capsys.readouterr().err.endswith(f"{sentence}\n")


def test_a_design_that_cannot_be_placed_is_reported_with_the_first_error() -> None:
    output = "Info: so far\nERROR: Unable to place cell 'a', no BELs remaining to implement it\n"
    failure = route._failure(output, 255, TARGETS["ecp5-85k"])
    assert isinstance(failure, route.RouteError)
    assert str(failure) == (
        "the design does not fit the LFE5U-85F-6BG756: "
        "Unable to place cell 'a', no BELs remaining to implement it"
    )


def test_nextpnr_that_is_ended_says_nothing_of_the_design() -> None:
    """So no record is kept of it, and the same command tries again."""
    failure = route._failure("Info: Placing\n", -15, TARGETS["ecp5-85k"])
    assert not isinstance(failure, route.RouteError)
    assert str(failure) == (
        "nextpnr ended with status -15 and gave no reason; to try again, give the same command"
    )


def test_stages_are_reported_once_and_in_order() -> None:
    reported: list[str] = []
    hears = route._Stages(reported.append)
    for line in ("Info: Packing IOs..", "Info: Packing LUTs...", "Info: Routing globals...",
                 "Info: Packing what", "Info: Routing.."):  # fmt: skip
        hears(line)
    assert reported == ["pack", "route"]


def test_lines_are_heard_as_they_come_and_a_silent_tool_is_given_up() -> None:
    heard: list[str] = []
    output, status = toolchain.output_of(
        ["sh", "-c", "echo one; echo two; exit 3"], {}, 30, "sh", heard=heard.append
    )
    assert (output, status, heard) == ("one\ntwo\n", 3, ["one\n", "two\n"])
    with pytest.raises(toolchain.ToolError, match=r"^sleeping did not end within 0 s$"):
        toolchain.output_of(["sleep", "5"], {}, 0.1, "sleeping", heard=heard.append)


def test_equality_takes_half_the_luts_that_yosys_would_give_it(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """32 bits in groups of 2, as LUTs of 4 inputs want them: 16, and 5 that join them."""
    from streamjoin_common.storage import cache

    parent = cache.folder("check")
    parent.mkdir(parents=True, exist_ok=True)
    file = parent / "equal_under_test.v"
    file.write_text(
        "module pair(input clk, input [31:0] a, b, output reg o);\n"
        "always @(posedge clk) o <= a == b;\nendmodule\n"
    )
    for name, maximum in (("ecp5-85k", 22), ("lifcl-40", 22), ("xc7z020", 13)):
        counts = area.synthesise(TARGETS[name], file, top="pair", flat=True, deadline_s=300)
        assert area.uses(TARGETS[name], counts)["lut"].used <= maximum


def test_a_comparison_takes_a_lut_for_two_bits_and_compares() -> None:
    """32 bits are 16 LUTs of two outputs; Yosys proves the four comparisons of 16 bits."""
    from streamjoin_common.storage import cache
    from streamjoin_hw.flow.yowasp import yosys

    folder = cache.folder("check")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "compare_under_test.v"
    file.write_text(
        "module pair(input clk, input [31:0] a, b, output reg o);\n"
        "always @(posedge clk) o <= a <= b;\nendmodule\n"
    )
    target = TARGETS["xc7z020"]
    made = {area.COMPARISON: target.comparison}
    counts = area.synthesise(target, file, made=made, top="pair", flat=True, deadline_s=300)
    assert counts["LUT6_2"] == area.uses(target, counts)["lut"].used == 16
    (folder / "four.v").write_text(
        "module four(input [15:0] a, b, output [3:0] o);\n"
        "assign o = {a < b, a <= b, a > b, a >= b};\nendmodule\n"
    )
    for name, cells in (("xc7z020", "+/xilinx/cells_sim.v"), ("xczu7ev", "+/xilinx/cells_sim.v")):
        commands = [
            "read_verilog four.v",
            "hierarchy -top four",
            "proc",
            "copy four plain",
            f"techmap -map {area.COMPARISON.name} {TARGETS[name].comparison} four",
            "select -assert-count 32 four/t:LUT6_2",
            "select -assert-none four/t:$lt four/t:$le four/t:$gt four/t:$ge",
            f"read_verilog -lib {cells}",
            f"techmap -map {cells} four",
            "flatten four",
            "miter -equiv -flatten -make_outputs plain four both",
            "sat -verify -prove trigger 0 both",
        ]
        yosys(commands, folder, f"compare.v for {name}")


def test_the_top_level_for_boards_is_the_design_and_what_packs_its_words(tmp_path: Path) -> None:
    words = ("synth", "--target", "xc7z020", *SMALL)
    recorded = {}
    for top, flags in (("design", ()), ("board", ("--board-top",))):
        file = tmp_path / f"{top}.json"
        assert run(*words, *flags, "--record", str(file)) == 0
        recorded[top] = json.loads(file.read_text())
    design, board = (recorded[top]["resources"] for top in ("design", "board"))
    for kind in ("lut", "ff"):
        assert design[kind]["used"] < board[kind]["used"] < design[kind]["used"] + 500
    assert recorded["board"]["settings"] == {**recorded["design"]["settings"], "top": "board"}
    assert run(*words, "--board-top", "--out", str(tmp_path / "made")) == 0
    assert (tmp_path / "made" / "streamjoin_board.v").is_file()


@pytest.mark.parametrize(
    ("name", "top", "flags"), [("small", "design", ""), ("small-board", "board", " --board-top")]
)
def test_a_stored_record_of_an_earlier_design_is_reported_with_how_to_renew_it(
    name: str, top: str, flags: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = record.record(PARAMS, TARGETS["xc7z020"], Settings(top=top), lambda _stage: None)
    file = tmp_path / f"{name}.json"
    file.write_text(json.dumps(recorded))
    assert run("synth", "--stored", str(tmp_path), "--compare") == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[-1].endswith("yes")
    comparing = f"comparing with the designs as they are: {name}, 1 of 1\n"
    assert shown.err == comparing
    file.write_text(json.dumps({**recorded, "verilog_sha256": "0"}))
    assert run("synth", "--stored", str(tmp_path), "--compare") == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines()[-1].endswith("no")
    assert shown.err == comparing + (
        f"{name} is of an earlier design; to renew it:  streamjoin hw synth --target xc7z020 "
        f"--param cores=2 segment_tuples=2{flags} --record {file}\n"
    )
    with pytest.raises(UsageError, match=r"^--stored must name a folder with records, not "):
        run("synth", "--stored", str(tmp_path / "nowhere"))


STUDIES = Path(record.__file__).parents[4] / "benchmarks" / "scale"


@pytest.mark.parametrize(
    ("study", "cores"), [("chain-fast", 8), ("splitjoin", 4), ("chain-control", 4)]
)
def test_a_record_of_a_study_is_renewed_by_what_makes_the_same(
    study: str,
    cores: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stored = json.loads((STUDIES / study / f"cores-{cores:04}-seed-2.json").read_text())
    file = tmp_path / f"cores-{cores:04}-seed-2.json"
    file.write_text(json.dumps({**stored, "verilog_sha256": "0"}))
    assert run("synth", "--stored", str(tmp_path), "--compare") == 0
    _, command = capsys.readouterr().err.split("to renew it:  streamjoin hw ")
    asked: list[Any] = []

    def stand_in(params: DesignParams, target: Any, settings: Settings, _: Any) -> Any:
        asked.append((params.to_dict(), target.name, settings.identity(target, params)))
        return stored

    for module in (record, scale):
        monkeypatch.setattr(module, "record", stand_in)
    assert run(*command.split()) == 0
    ((params, target, settings),) = asked
    assert (params, target) == (stored["params"], stored["target"])
    for name in ("clock_hz", "seed", "placements", "copies", "top"):
        assert settings.get(name) == stored["settings"].get(name)
    assert json.loads(file.read_text()) == stored


def test_what_cannot_be_meant_is_refused_before_the_work(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("")
    small = ("--param", "cores=1", "segment_tuples=4")
    for words, said in [
        (("--target", "xc7z020", *small, "--out", str(taken)), "cannot be written"),
        (("--target", "xc7z020", *small, "--record", str(taken / "a")), "cannot be written"),
        (("--target", "xc7z020", *small, "--clock", "90"), "^--clock is for designs that are rou"),
        (("--target", "ecp5-85k", *small, "--clock", "90", "--no-route"), "^--clock is for"),
        (("--stored", "--preset", "tiny"), "^--stored shows all records: drop --preset"),
    ]:
        with pytest.raises((UsageError, StorageError), match=said):
            run("synth", *words)
