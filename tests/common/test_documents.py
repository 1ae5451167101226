"""Whatever stands in a JSON or TOML file, its reader takes it or refuses it in a sentence."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.common.mutants import json_mutants, toml_mutants
from tests.host.report_samples import mixed_run, semi_stream_run

from streamjoin.advise import thresholds
from streamjoin.bench import experiments, points, workloads
from streamjoin.bench import suites as bench_suites
from streamjoin.device.manifest import read_manifest
from streamjoin.engines.semi import cost
from streamjoin.relations import Projection, open_store
from streamjoin.relations.postgres import _written
from streamjoin.report.records import read_records
from streamjoin_common.contract import DesignParams
from streamjoin_common.documents import (
    MAX_DEPTH_LEVELS,
    DocumentError,
    parse_json,
    parse_toml,
    read_json,
    read_toml,
)
from streamjoin_common.storage import cache
from streamjoin_datagen import store as datagen_store
from streamjoin_datagen import suites
from streamjoin_hw.flow.emit import manifest
from streamjoin_hw.studies.synth import scale
from streamjoin_spark.streaming import state as stream_state

SEED = int(os.environ.get("STREAMJOIN_SEED", "1"))
ROOT = Path(__file__).parents[2]
WORKLOAD = {
    "format": 1,
    "name": "w",
    "kind": "equi",
    "seed": 7,
    "window": "count:16,32",
    "predicate": {"on": "k", "band": ["x=a:1:2.5"]},
    "params": {"rate_r": 10, "skew": 0.5},
    "r": {"path": "r.parquet", "rows": 100, "bytes": 1000},
    "s": {"path": "s.parquet", "rows": 1000000000000, "bytes": 1000},
    "expected": {"window": "all", "pairs": 12, "digest": "00"},
    "generator": {"streamjoin": "0.1.0", "pyspark": "4.1"},
}
SUITE = """name = "small"
[[workload]]
name = "band"
kind = "band"
seed = 1
params = { rate_r = 2000, rate_s = 2000, duration_s = 10, window = "count:1024" }
engines = ["kang", "npj"]
window = "time:10ms,5ms"
rounds = 3
threads = 2
arrival = "replay"
speedup = 2.5
knobs = { npj = { load = 2 } }

[[workload]]
kind = "flights"
engines = ["npj"]
"""
BATCH = {**stream_state.BEGINNING, "format": stream_state.FORMAT, "batch": 3, "pairs": 5}


def known(read: Callable[[], Any], mutant: bytes) -> str | None:
    """Read; return the sentence of a refusal. Every other exception is a failure."""
    try:
        read()
    except Exception as error:
        if getattr(error, "exit_status", None) is None:
            raise AssertionError(f"seed {SEED}: {error!r} of {mutant[:2000]!r}") from error
        sentence = str(error)
        assert sentence, mutant[:2000]
        assert len(sentence) < 12_000, mutant[:2000]
        return sentence
    return None


def fuzz(path: Path, mutants: Any, read: Callable[[], Any]) -> list[str]:
    """Give every mutant to a reader; return the refusals."""
    path.parent.mkdir(parents=True, exist_ok=True)
    refused = []
    for mutant in mutants:
        path.write_bytes(mutant)
        sentence = known(read, mutant)
        if sentence is not None:
            refused.append(sentence)
    return refused


def a_point(path: Path) -> object:
    """Read it as a point of an experiment; what is not believed is said, not raised."""
    return points.read_or_say(points.Kept(path, {}), lambda _: None)


def raw_store(path: Path) -> None:
    path.with_name("r.raw").touch()
    open_store("raw", path.with_name("r.raw"), Projection("k", ("a",))).close()


JSON_READERS: dict[str, tuple[str, Any, Callable[[Path], Any]]] = {
    "workload.json": (
        "workload.json",
        WORKLOAD,
        lambda path: workloads.read_workload(path.parent, ("oracle",), 1),
    ),
    "workload.json, written anew": (
        "workload.json",
        WORKLOAD,
        lambda path: datagen_store.unchanged(path.parent, {"name": "w", "kind": "equi"}),
    ),
    "records.json": ("records.json", mixed_run(), read_records),
    "records.json of semi-stream joins": (
        "records.json",
        semi_stream_run(),
        read_records,
    ),
    "manifest.json": (
        "manifest.json",
        manifest(DesignParams(cores=4, segment_tuples=8)),
        read_manifest,
    ),
    "point": ("point.json", {"workload": {}, "records": [{"status": "ok"}]}, a_point),
    "raw columns": ("r.raw.json", [["k", "int64"], ["a", "<f4"], ["b", "V16"]], raw_store),
    "complete.json": (
        "complete.json",
        {"a": {"bytes": 3, "sha256": "00"}},
        lambda path: cache.is_whole(path.parent),
    ),
    "record of a sweep": ("4.json", {"version": 1, "settings": {}}, scale._kept),
    "batch of a stream": (
        "batch-3.json",
        BATCH,
        lambda path: stream_state.last_record(path.parent),
    ),
}


@pytest.mark.parametrize("name", JSON_READERS)
def test_any_json_document_is_read_or_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    file, valid, read = JSON_READERS[name]
    path = tmp_path / "folder" / file
    fuzz(path, json_mutants(valid, SEED), lambda: read(path))


@pytest.mark.parametrize("module", [cost, thresholds], ids=["costs", "thresholds"])
def test_any_calibration_is_read_or_refused_in_a_sentence(
    module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMJOIN_CACHE", str(tmp_path))
    path = module.calibrated_path()
    valid = json.loads(module.SHIPPED.read_text())
    given = ("sqlite",) if module is cost else ()
    refused = fuzz(path, json_mutants(valid, SEED), lambda: module.load(*given))
    assert refused
    assert all("write it anew" in sentence for sentence in refused)


TOML_READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "suite": (SUITE, lambda path: bench_suites.read_suite(path, path.parent, 1)),
    "suite to generate": (SUITE, suites.read_suite),
    "experiment": (
        (ROOT / "benchmarks/pimtree-skew.toml").read_text(),
        lambda path: experiments.read(str(path), "quick"),
    ),
    "experiment with knobs": (
        (ROOT / "benchmarks/iawj-knobs.toml").read_text(),
        lambda path: experiments.read(str(path), "full"),
    ),
    "server": ('uri = "postgresql://me@host/db"\ntable = "t"\nown = false\n', _written),
}


@pytest.mark.parametrize("name", TOML_READERS)
def test_any_toml_document_is_read_or_refused_in_a_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_suites, "generate", lambda *_: [])
    monkeypatch.setattr(bench_suites, "zip", lambda *_, **__: (), raising=False)  # none was made
    valid, read = TOML_READERS[name]
    path = tmp_path / "document.toml"
    path.write_text(valid)
    read(path)
    refused = fuzz(path, toml_mutants(valid, SEED), lambda: read(path))
    assert any("nested too deeply" in sentence for sentence in refused)


def test_toml_holds_integers_of_at_most_64_bits() -> None:
    assert parse_toml(f"a = [{{ b = {2**64 - 1} }}]", "x") == {"a": [{"b": 2**64 - 1}]}
    for digits in (str(2**64), f"-{2**64}", "0x" + 5000 * "f"):
        with pytest.raises(DocumentError, match="x: holds an integer of more than 64 bits"):
            parse_toml(f"a = [{{ b = {digits} }}]", "x")


@pytest.mark.parametrize("parse", [parse_json, parse_toml])
def test_nesting_is_read_up_to_its_limit(parse: Callable[[str, str], Any]) -> None:
    begin = "" if parse is parse_json else "a = "
    levels = MAX_DEPTH_LEVELS - (parse is parse_toml)
    parse(begin + "[" * levels + "]" * levels, "file")
    for more in (levels + 1, 2000, 200_000):
        with pytest.raises(DocumentError, match=r"^file: is nested too deeply: at most 64 levels"):
            parse(begin + "[" * more + "]" * more, "file")


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ('{"rows": 1e999}', "is not JSON: the number 1e999 is too large"),
        ('{"rows": NaN}', "is not JSON: NaN is not a JSON number"),
        ('{"name": "\\ud800"}', "holds half a surrogate pair"),
        ("{", "is not JSON: Expecting property name"),
        ("9" * 5000, "is not JSON: Exceeds the limit"),
    ],
)
def test_what_is_wrong_with_json_is_said(document: str, reason: str) -> None:
    with pytest.raises(DocumentError, match=f"^file: {reason}"):
        parse_json(document, "file")


def test_a_pair_of_surrogates_is_a_character() -> None:
    assert parse_json('"\\ud83c\\udfc8"', "file") == "\U0001f3c8"


@pytest.mark.parametrize("read", [read_json, read_toml])
def test_only_regular_files_of_bounded_size_are_read(
    read: Callable[[Path], Any], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DocumentError, match="pipe: is no regular file"):
        read(tmp_path / "pipe")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(DocumentError, match="huge: has 1099511627776 bytes"):
        read(tmp_path / "huge")
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "nowhere")
    (tmp_path / "latin").write_bytes(b'"\xe9"')
    with pytest.raises(DocumentError, match="latin: is not UTF-8"):
        read(tmp_path / "latin")
