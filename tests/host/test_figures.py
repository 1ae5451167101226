"""Every figure of the papers has a command or a reason; experiments cite what there is."""

import argparse
import json
import re
from pathlib import Path

import pytest
from tests.host import report_samples as samples
from tests.host.test_bench_records import run_of

from streamjoin.bench import experiments, figures
from streamjoin.cli import bench, main
from streamjoin.errors import InputError


@pytest.fixture(scope="module")
def listed() -> tuple[figures.Paper, ...]:
    return figures.papers()


def test_all_figures_with_measurements_are_listed(listed: tuple[figures.Paper, ...]) -> None:
    counts = {paper.key: len(paper.figures) for paper in listed}
    assert counts == {"iawj": 23, "handshake": 5, "pimtree": 23, "splitjoin": 7, "ssbj": 12}
    shown = [figure for paper in listed for figure in paper.figures if not figure.why]
    assert len(shown) >= 60


def test_every_claim_of_a_paper_says_in_which_figure_it_stands() -> None:
    for name in experiments.names():
        for claim in experiments.read(name, "full").claims:
            for figure in re.findall(r"figure (\d+)", claim.text):
                assert any(re.search(rf" {figure}[a-f]?$", cited) for cited in claim.figures), claim
            assert claim.figures, (name, claim.text)


def test_a_figure_is_shown_or_explained_and_not_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = figures.LIST.read_text()
    path = tmp_path / "figures.toml"
    monkeypatch.setattr(figures, "LIST", path)
    for old, new, sentence in (
        ('"4a" = { shows', '"4c" = { shows', "there is no figure 'ssbj 4a' in"),
        ('"9" = {', '"9" = { why = "x",', "iawj 9 must be shown, or why says why it is not"),
        ('"11d" = {', '"11e" = { shows = "x" }\n"11d" = {', "pimtree 11e must be shown"),
    ):
        assert old in text
        path.write_text(text.replace(old, new))
        with pytest.raises(InputError, match=sentence):
            figures.papers()


def test_all_experiments_run_though_one_cannot(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[str] = []

    def run(_args: object, name: str, _threads: int) -> int:
        ran.append(name)
        if name == "b":
            raise InputError("a package is missing")
        return 0

    monkeypatch.setattr(bench, "_run", run)

    def compared(args: argparse.Namespace) -> int:
        assert args.threads is None, "designs are compared with one core"
        ran.append("cpu-fpga")
        return 0

    def without_spark(*_: object) -> None:
        raise InputError("no data was made")

    monkeypatch.setattr(bench.cpu_fpga, "run", compared)
    monkeypatch.setattr(bench.runner, "generate_all", without_spark)
    monkeypatch.setattr(experiments, "read", lambda name, _size: name)
    monkeypatch.setattr(experiments, "names", lambda: ["a", "b", "c"])
    assert main(["bench", "all", "--threads", "2"]) == 1
    assert ran == ["a", "b", "c", "cpu-fpga"]
    said = capsys.readouterr().err
    assert "b: a package is missing" in said
    assert "no data was made" in said
    assert main(["bench", "all", "--out", "x"]) == 2
    assert ran == ["a", "b", "c", "cpu-fpga"]


def test_claims_are_judged_by_stored_records_without_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(experiments, "names", lambda: ["handshake-band"])
    assert main(["bench", "claims"]) == 2
    assert "runs/bench has no run with claims at size quick" in capsys.readouterr().err
    records = [
        samples.record(
            "handshake",
            family="simd",
            settings={"simd": simd},
            throughput_tuples_per_s=samples.spread(100.0 * (1 + 2 * simd)),
        )
        for simd in (0, 1)
    ]
    run = tmp_path / "runs/bench/handshake-band-quick"
    run.mkdir(parents=True)
    whole = run_of(*records)
    about, right = whole["experiment"], whole["records"]
    (run / "records.json").write_text(json.dumps(whole))
    assert main(["bench", "claims", "--out", "claims.md"]) == 0
    told = capsys.readouterr()
    assert "4 claims: 1 holds in part, 3 not measured" in told.err
    assert re.search(r"handshake 15 +4 x +3\.00 x +holds in part +handshake-band", told.out)
    assert "| handshake 15 | handshake join, section 5.3" in (tmp_path / "claims.md").read_text()
    for changed in ({"status": "wrong", "error": "one pair"}, {"checked": False}):
        whole["records"] = [right[0], right[1] | changed]
        (run / "records.json").write_text(json.dumps(whole))
        assert main(["bench", "claims"]) == 1
        told = capsys.readouterr().err
        assert "4 claims: 4 not measured" in told
        assert re.search("handshake on .* is (wrong|unchecked): its figures count", told)
    whole["records"] = right
    for other, sentence in (
        ({"size": "full"}, "is of handshake-band at size full, not of handshake-band at size q"),
        ({"name": "x"}, "is of x at size quick, not of handshake-band at size quick"),
        (None, "is the record of no experiment"),
    ):
        whole["experiment"] = {**about, **other} if other else None
        (run / "records.json").write_text(json.dumps(whole))
        assert main(["bench", "claims"]) == 2
        assert sentence in capsys.readouterr().err
