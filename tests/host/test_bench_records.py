"""Stored records of experiments: small, enough for verdicts and charts, shown as they are."""

import copy
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from tests.host import report_samples as samples

from streamjoin.bench import claims, experiments
from streamjoin.cli import main
from streamjoin.errors import InputError
from streamjoin.report import stored
from streamjoin.report.stored import chart, page

ROOT = Path(__file__).parents[2]
MAX_BYTES = 2_000_000


def run_of(*records: dict[str, Any], **experiment: Any) -> dict[str, Any]:
    """A run of ``handshake-band`` whose records lie on points of their own settings."""
    run = samples.run(records=copy.deepcopy(list(records)), workloads=[])
    for record in run["records"]:
        name = f"simd simd={record['settings']['simd']}"
        record["workload"] = name
        if name not in [workload["name"] for workload in run["workloads"]]:
            workload = samples.workload(name, family="simd", settings=record["settings"], seed=7)
            workload["measured"] = {"revision": "abc", "took_s": 1.5, "load_average": 0.5}
            run["workloads"].append(workload)
    run["command"] = "streamjoin bench handshake-band --threads 2 --out /somewhere --data /there"
    about = {"name": "handshake-band", "size": "quick", "source": "s", "limit": "l"}
    run["experiment"] = {**about, "baseline": "kang", "claims": [], **experiment}
    run["environment"] = {
        "cpu": "a Xeon",
        "cores": 2,
        "memory_bytes": 8_000_000_000,
        "revision": "new",
    }
    return run


def of_simd(rate: float, simd: int, **changes: Any) -> dict[str, Any]:
    return samples.record(
        "handshake",
        family="simd",
        settings={"simd": simd},
        throughput_tuples_per_s=samples.spread(rate),
        each_round={"cpu_s": [0.1, 0.2, 0.15], "wall_s": [0.1] * 3, "total_cpu_s": [1.0] * 3},
        **changes,
    )


FULL = {
    "progress": [[0.0, 0.1], [0.45, 1.0], [0.5, 2.123456], [0.9, 3.0], [1.0, 4.0]],
    "structure_bytes": 4096,
    "counters": {"l1d_read_misses": 12.0, "instructions": 99.0},
    "semi_stream": {
        "service_rate_tuples_per_s": 92787.86654623278,
        "cache_share": 0.25,
        "memory_bytes": {"h_s": 10, "free": 3},
        "loop_us": {"wait": 1.0, "disk": 3.0},
        "cost_model": {"loop_us": 3.5, "read_us": 2.0},
        "loops": 7154,
    },
}


def test_a_stored_record_has_every_figure_that_claims_are_of(tmp_path: Path) -> None:
    run = run_of(of_simd(1234567.891, 1, **FULL))
    kept = stored.read(stored.store(run, tmp_path))
    before, after = run["records"][0], kept["records"][0]
    known = 0
    for measure in claims.MEASURES.values():
        value = measure.get(before)
        known += value is not None
        assert measure.get(after) == (None if value is None else pytest.approx(value, rel=1e-4))
    assert known == len(claims.MEASURES)
    for name in ("family", "settings", "digest", "engine", "threads", "rounds", "pairs"):
        assert after[name] == before[name], name
    assert after["each_round"] == {"wall_s": [0.1] * 3, "cpu_s": [0.1, 0.2, 0.15]}


def test_a_stored_record_is_small_and_names_no_folder_of_the_machine(tmp_path: Path) -> None:
    curve = [[share / 100, share / 7] for share in range(101)]
    run = run_of(of_simd(1.0, 0, **FULL | {"progress": curve}), of_simd(3.0, 1))
    path = stored.store(run, tmp_path)
    assert path.name == "handshake-band-quick.json"
    text = path.read_text()
    assert len(text) < len(json.dumps(run)) / 2
    assert "somewhere" not in text
    assert "data/band-uniform" not in text
    kept = stored.read(path)
    assert kept["command"] == "streamjoin bench handshake-band --threads 2"
    assert kept["environment"]["revision"] == "abc"  # of the points, not of who gathered them
    assert kept["environment"]["load_average"] == 0.5
    assert [workload["seed"] for workload in kept["workloads"]] == [7, 7]
    assert stored.store(kept, tmp_path / "again").read_text() == text


def test_only_runs_of_experiments_whose_results_are_right_are_stored(tmp_path: Path) -> None:
    wrong = run_of(of_simd(1.0, 0), of_simd(1.0, 1, status="wrong", error="one pair is missing"))
    with pytest.raises(InputError, match="handshake on simd simd=1 is wrong"):
        stored.store(wrong, tmp_path)
    unchecked = run_of(of_simd(1.0, 0, checked=False))
    with pytest.raises(InputError, match="handshake on simd simd=0 is unchecked"):
        stored.store(unchecked, tmp_path)
    (tmp_path / "records").mkdir()
    for number, run in enumerate((wrong, unchecked)):
        (tmp_path / "records" / "x.json").write_text(json.dumps(run))
        with pytest.raises(InputError, match=f"x.json: no verdict .* simd={1 - number} is"):
            page.runs(tmp_path / "records")
    (tmp_path / "records" / "x.json").unlink()
    (tmp_path / "records").rmdir()
    other = {name: value for name, value in run_of(of_simd(1.0, 0)).items() if name != "experiment"}
    with pytest.raises(InputError, match="of no experiment"):
        stored.store(other, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_page_says_there_here_verdict_machine_and_what_is_not_measured(tmp_path: Path) -> None:
    stored.store(run_of(of_simd(100.0, 0), of_simd(300.0, 1)), tmp_path)
    text = page.page(page.runs(tmp_path))
    assert "| handshake 15 |" in text
    assert "| 4 x | 3.00 x | throughput | **holds in part** |" in text
    assert "[handshake-band.toml](../../benchmarks/handshake-band.toml)" in text
    assert "![" in text
    assert "a Xeon, 2 processors, 8 GB" in text
    assert "revision abc" in text
    assert "others used" not in text
    assert "4 claims: 1 holds in part, 3 not measured" in text
    assert "The experiment was changed since" in text  # these points are not those of the file
    assert "## iawj-real\n\nNo record is stored.\n" in text
    busy = run_of(of_simd(1.0, 0), of_simd(3.0, 1))
    for workload in busy["workloads"]:
        workload["measured"]["load_average"] = 3.4
    stored.store(busy, tmp_path)
    assert "others used the machine too: load 3.4" in page.page(page.runs(tmp_path))


def test_the_cause_of_a_claim_is_said_only_where_it_does_not_hold() -> None:
    asked = {
        "text": "twice",
        "published": 2,
        "workload": "simd",
        "engine": "handshake",
        "where": {"simd": 1},
        "over_where": {"simd": 0},
        "why": "memory is slower here",
    }
    entrants = [("simd", ["handshake"], {"simd": simd}, 1) for simd in (0, 1)]
    (claim,) = claims.read([asked], "x.toml", entrants)
    slow, quick = (run_of(of_simd(1.0, 0), of_simd(rate, 1))["records"] for rate in (1.0, 2.0))
    assert claim.held(slow)["why"] == "memory is slower here"
    assert claim.held(quick)["why"] == ""
    bare = {name: value for name, value in asked.items() if name != "why"}
    for published, rate, why in (
        (2, 1.0, "no run has looked for the cause"),
        (1, 1.05, "no difference beyond the noise of 10%"),
        (2, 1.6, ""),
    ):
        (claim,) = claims.read([bare | {"published": published}], "x.toml", entrants)
        run = run_of(of_simd(1.0, 0), of_simd(rate, 1))
        assert claim.held(run["records"])["why"] == why
    with pytest.raises(InputError, match="why must be a string, not 3"):
        claims.read([asked | {"why": 3}], "x.toml", entrants)


def test_a_cause_is_a_sentence_in_the_table_and_what_its_run_found_stands_once_below() -> None:
    """Two claims with the same note share it; a cause without a note has no number."""
    whys = ("slow. 3 ms", "late. 3 ms", "rare")
    claimed = [{"why": why} for why in whys]
    notes: dict[str, int] = {}
    assert [page.cause(notes, claim) for claim in claimed] == ["slow (1)", "late (1)", "rare"]
    assert notes == {"3 ms": 1}


def test_a_chart_has_a_line_for_each_engine_and_the_same_bytes_each_time() -> None:
    other = samples.record(
        "kang", family="simd", settings={"simd": 0}, throughput_tuples_per_s=samples.spread(5.0)
    )
    run = run_of(of_simd(1.0, 0), of_simd(300.0, 1), other)
    (panel,) = chart.panels(run)
    assert panel.lines == {"handshake": [(0, 1.0), (1, 300.0)], "kang": [(0, 5.0)]}
    assert (panel.setting, panel.values) == ("simd", ["0", "1"])
    drawn = chart.svg(run)
    assert drawn == chart.svg(copy.deepcopy(run))
    root = ET.fromstring(drawn)
    lines = [each for each in root.iter() if each.tag.endswith("polyline")]
    assert len(lines) == 2
    (first, last) = (tuple(map(float, at.split(","))) for at in lines[0].attrib["points"].split())
    assert first[0] < last[0]
    assert first[1] > last[1]  # the higher figure stands higher


def test_a_chart_of_arrivals_shows_latency_and_each_other_setting_has_a_panel() -> None:
    run = run_of(of_simd(1.0, 0), of_simd(2.0, 1))
    for workload, threads in zip(run["workloads"], (1, 2), strict=True):
        workload["settings"] = {"threads": threads, "rate": 100}
        workload["arrival"] = "replay"
    (panel,) = chart.panels(run)
    assert panel.unit == "95th percentile of latency"
    assert panel.lines == {"handshake": [(0, 20e-6), (1, 20e-6)]}
    run["workloads"][0]["settings"] = {"threads": 1, "rate": 100}
    run["workloads"][1]["settings"] = {"threads": 2, "rate": 200}
    assert [panel.title for panel in chart.panels(run)] == ["simd (rate=100)", "simd (rate=200)"]


def test_the_stored_records_are_small_and_of_experiments_that_there_are() -> None:
    paths = sorted(stored.FOLDER.glob("*"))
    assert sum(path.stat().st_size for path in paths) < MAX_BYTES
    for path in stored.find(stored.FOLDER):
        run = stored.read(path)
        about = run["experiment"]
        assert path.name == f"{about['name']}-{about['size']}.json"
        assert about["name"] in experiments.names()
        assert all(record["status"] == "ok" for record in run["records"])
        assert run["environment"]["cpu"]
        points = experiments.read(about["name"], about["size"]).points
        seeds = {point.label: point.table.get("seed") for point in points}
        for workload in run["workloads"]:
            name = workload["name"]
            assert workload.get("seed") == seeds.get(name, workload.get("seed")), name


def test_every_chart_in_the_documentation_is_of_a_stored_record() -> None:
    charts = {path.stem for path in (ROOT / "docs/results/charts").glob("*")}
    assert charts == {path.stem for path in stored.FOLDER.glob("*.json")}


def test_record_is_refused_where_nothing_is_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("list", "claims", "calls"):
        assert main(["bench", name, "--record", "x"]) == 2
        assert f"bench {name} is no experiment: drop --record x" in capsys.readouterr().err
    assert main(["bench", "list", "x"]) == 2
    assert re.search("takes no x: only regress does", capsys.readouterr().err)
    assert main(["bench", "calls", "--predicates", "strings"]) == 2
    assert "calls takes no --predicates strings: only live does" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no /proc here")
@pytest.mark.parametrize(
    "words",
    [
        *(f"{name} --out" for name in ("iawj-micro", "calls", "cpu-fpga", "claims")),
        *(f"{name} --record" for name in ("iawj-micro", "all", "cpu-fpga")),
    ],
)
def test_a_folder_that_cannot_be_written_is_refused_before_the_run(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *words.split(), "/proc/x"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("streamjoin: /proc/x cannot be written (")
