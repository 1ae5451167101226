"""What a workload's data are like: figures and page."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin.cli import main
from streamjoin.report.profile import profile, zipf_exponent
from streamjoin.tuples import Stream
from streamjoin_common.language.predicates import Predicate

EQUI = {"on": ["k"]}


def stream(keys: Any, ts: Any = None, name: str = "k") -> Stream:
    times = np.zeros(len(keys), dtype=np.int64) if ts is None else np.asarray(ts, dtype=np.int64)
    return Stream({name: np.asarray(keys)}, times, "r")


def workload(folder: Path, r: dict[str, Any], s: dict[str, Any], predicate: Any = EQUI) -> Path:
    folder.mkdir()
    described = {
        "format": 1, "name": "mine", "kind": "equi", "params": {"rate": 3}, "seed": 1,
        "predicate": predicate, "window": "all", "expected": None,
    }  # fmt: skip
    for name, columns in (("r", r), ("s", s)):
        table = pa.table(columns)
        pq.write_table(table, folder / f"{name}.parquet")
        described[name] = {"path": f"{name}.parquet", "rows": table.num_rows}
    (folder / "workload.json").write_text(json.dumps(described))
    return folder


def test_keys_and_partners_are_counted() -> None:
    found = profile(
        stream([1, 1, 1, 2], [0, 1000, 1500, 3000]),
        stream([2, 3], [1000, 3000]),
        Predicate.parse(["k"], None),
    )
    r, s = found.streams
    assert (r.rows, r.keys, r.duplication, r.most_frequent) == (4, 2, 2.0, 0.75)
    assert (r.partnered, s.partnered) == (0.25, 0.5)
    assert (r.span_s, s.span_s) == (0.003, 0.003)
    assert r.busiest_per_ms == 2
    assert r.instants == 4
    assert r.slot_rates_per_s.sum() * 0.003001 / 200 == pytest.approx(4)
    assert r.frequencies.tolist() == [3, 1]


def test_bands_have_values_in_shared_bins() -> None:
    found = profile(
        stream([0.0, 1.0, np.nan], name="x"),
        stream([2.0], name="a"),
        Predicate.parse(None, ["x=a:1:1"]),
    )
    assert found.edges == (0.0, 2.0)
    assert [int(each.histogram.sum()) for each in found.streams] == [2, 1]
    assert found.streams[1].histogram[-1] == 1
    assert found.streams[0].partnered is None


def test_empty_streams_and_data_at_rest_are_described() -> None:
    found = profile(stream(np.array([], dtype=np.int32)), stream([5]), Predicate.parse(["k"], None))
    r, s = found.streams
    assert (r.rows, r.keys, r.rate_per_s, r.skew, r.partnered) == (0, 0, None, None, None)
    assert (s.span_s, s.rate_per_s, len(s.slot_rates_per_s)) == (0.0, None, 0)


@pytest.mark.parametrize("skew", [0.5, 1.0, 1.5])
def test_the_exponent_of_zipf_counts_is_found(skew: float) -> None:
    counts = (1e7 * np.arange(1, 5001) ** -skew).astype(np.int64)
    assert zipf_exponent(counts) == pytest.approx(skew, abs=0.01)


def test_few_frequent_keys_have_no_exponent() -> None:
    assert zipf_exponent(np.array([1000, 19, 19, 19, 19, 19])) is None


def test_the_page_stands_alone_and_the_table_says_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = {"k": [1, 2, 2], "ts": [0, 5, 2_000_000]}
    folder, page = workload(tmp_path / "w", keys, keys), tmp_path / "page.html"
    assert main(["stats", str(folder), "-o", str(page)]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"tuples a key \(mean over keys\) +1\.50 +1\.50\n", shown)
    text = page.read_text()
    assert "1.50" in text
    assert not re.search(r'(src|href)="(?!#)|<script|@import|url\((?!#)', text)
    assert sorted(set(re.findall(r'<h4 id="(\w+)"', text))) == ["ranks", "rates"]
    for chart in re.findall(r'<svg class="chart.*?</svg>', text, flags=re.DOTALL):
        wanted = int(re.search(r'data-marks="(\d+)"', chart)[1])  # type: ignore[index]
        assert len(re.findall(r'id="[\w-]*mark-[RS]"', chart)) == wanted == 2


def test_json_has_every_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = {"x": [1.5, 2.5], "ts": [0, 0]}
    folder = workload(tmp_path / "w", values, {"a": [1.0]}, {"band": ["x=a:1:1"]})
    assert main(["stats", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["workload"], found["r"]["rows"], found["s"]["keys"]) == ("mine", 2, 1)
    assert found["r"]["rate_per_s"] is None


def test_what_is_no_workload_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["stats", str(tmp_path)]) == 2
    shown = capsys.readouterr().err
    assert shown == (
        f"streamjoin: {tmp_path}: there is no workload.json; make one with  streamjoin data\n"
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"seed": "x"}, "seed must be an integer, not 'x'"),
        ({"params": [1]}, "params must be a table, not [1]"),
        ({"window": "time:1ms"}, "window time:1ms needs arrival times"),
    ],
)
def test_a_damaged_description_is_one_sentence(
    change: dict[str, Any], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, page = described_otherwise(tmp_path, change), tmp_path / "page.html"
    assert main(["stats", str(folder), "-o", str(page)]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1
    assert not page.exists()


def test_what_a_description_may_lack_is_not_on_the_page(tmp_path: Path) -> None:
    folder, page = (
        described_otherwise(tmp_path, {"seed": None, "params": None}),
        tmp_path / "p.html",
    )
    assert main(["stats", str(folder), "-o", str(page)]) == 0
    assert "Parameters" not in page.read_text()


def test_control_characters_of_names_do_not_reach_a_page(tmp_path: Path) -> None:
    folder, page = described_otherwise(tmp_path, {"name": "a\x1b[2J\x07"}), tmp_path / "p.html"
    assert main(["stats", str(folder), "-o", str(page)]) == 0
    text = page.read_text()
    assert "a\\x1b[2J\\x07" in text
    assert not set(map(chr, [*range(9), *range(11, 32), 127])) & set(text)


def described_otherwise(folder: Path, change: dict[str, Any]) -> Path:
    made = workload(folder / "w", {"k": [1, 2]}, {"k": [2]})
    path = made / "workload.json"
    plain = {**json.loads(path.read_text()), **change}
    path.write_text(json.dumps({key: value for key, value in plain.items() if value is not None}))
    return made
