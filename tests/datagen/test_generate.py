"""Workloads written by Spark: bytes, folders, expected pairs."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from streamjoin_datagen import pairs
from streamjoin_datagen.errors import GenerationError, SpecError
from streamjoin_datagen.generate import check_size, generate, known
from streamjoin_datagen.pairs import key_pairs, window_pairs
from streamjoin_datagen.params import SPECS, make_spec
from streamjoin_datagen.session import Session
from streamjoin_datagen.store import read_column, unchanged
from streamjoin_datagen.tables import build

PART_ROWS = 700
WORKLOADS: dict[str, tuple[str, dict[str, Any]]] = {
    "band": ("band", {"rate_r": 5000, "rate_s": 300, "duration_s": 1}),
    "band-poisson": ("band", {"rate_r": 5000, "duration_s": 1, "arrivals": "poisson"}),
    "unique": ("equi", {"r_tuples": 5000, "s_tuples": 3000, "rate": 3}),
    "duplicated": (
        "equi",
        {"keys": "duplicated", "duplicates": 3, "r_tuples": 5000, "s_tuples": 700},
    ),
    "zipf": (
        "equi",
        {"keys": "zipf", "skew": 1.2, "domain": 900, "r_tuples": 5000, "s_tuples": 3000},
    ),
    "empty": ("equi", {"r_tuples": 0, "s_tuples": 10}),
    "micro": ("micro", {"rate_r": 5, "rate_s": 3, "window_ms": 300, "windows": 2, "duplicates": 4}),
    "micro-skewed": (
        "micro",
        {"rate_r": 5, "rate_s": 3, "window_ms": 600, "key_skew": 0.8, "ts_skew": 1.2},
    ),
    "stock": ("stock", {"duration_ms": 40}),
    "rovio": ("rovio", {"duration_ms": 300}),
    "ysb": ("ysb", {"rate": 3, "duration_ms": 1500}),
    "debs": ("debs", {"posts": 3000, "comments": 2000}),
    "uniform": ("uniform", {"tuples": 3000, "window_tuples": 256}),
    "gaussian": ("gaussian", {"tuples": 3000, "window_tuples": 256}),
    "gamma": ("gamma", {"tuples": 3000, "window_tuples": 256}),
    "shifting-gaussian": ("shifting-gaussian", {"tuples": 3000, "window_tuples": 256}),
    "zipf-master": ("zipf-master", {"r_tuples": 3000, "s_tuples": 2000}),
    "zipf-master-wide": (
        "zipf-master",
        {"r_tuples": 3000, "s_tuples": 2000, "domain": 2_000_000_000},
    ),
}
EQUI = [name for name, (kind, _) in WORKLOADS.items() if SPECS[kind].counted_key]


def digests(folder: Path) -> dict[str, str]:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
    }


def described(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "workload.json").read_text()))


BYTES = {"band", "zipf", "micro-skewed"}
"""Workloads with strings, with keys of a skewed domain, and with times drawn too."""


@pytest.mark.parametrize(
    "which",
    [
        which if which in BYTES else pytest.param(which, marks=pytest.mark.slow)
        for which in WORKLOADS
    ],
)
def test_the_same_bytes_come_out_of_any_number_of_partitions(
    which: str, session: Session, tmp_path: Path
) -> None:
    kind, params = WORKLOADS[which]
    spec = make_spec(kind, 17, params)
    found = []
    for run, partitions in enumerate((1, 7, 200)):
        out = tmp_path / str(run)
        generate(spec, out, session, partitions=partitions, part_rows=PART_ROWS)
        found.append(digests(out))
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == 1 + sum(
        max(1, -(-spec.rows(stream) // PART_ROWS)) for stream in ("r", "s")
    )


@pytest.mark.parametrize("which", WORKLOADS)
def test_files_hold_the_rows_in_arrival_order_and_their_pairs_are_known(
    which: str, session: Session, tmp_path: Path
) -> None:
    kind, params = WORKLOADS[which]
    spec = make_spec(kind, 17, params)
    generate(spec, tmp_path / "w", session, partitions=7, part_rows=PART_ROWS)
    for stream in ("r", "s"):
        expected = build(spec, stream, 0, spec.rows(stream))
        read = pq.read_table(tmp_path / "w" / f"{stream}.parquet")
        assert read.combine_chunks() == expected.combine_chunks()
        entry = described(tmp_path / "w")[stream]
        assert entry["rows"] == spec.rows(stream)
        assert list(entry["columns"]) == expected.column_names
    if which not in EQUI:
        return
    r, s = (read_column(tmp_path / "w", stream, "k") for stream in ("r", "s"))
    met = r[:, None] == s[None, :]
    found = described(tmp_path / "w")
    window = found["expected"]["window"]
    assert window in ("all", found["window"])
    if window != "all":
        length_us = int(window.removeprefix("tumbling:").removesuffix("ms").removesuffix("s"))
        length_us *= 1000 if window.endswith("ms") else 1_000_000
        r, s = (read_column(tmp_path / "w", stream, "ts") // length_us for stream in ("r", "s"))
        met &= r[:, None] == s[None, :]
    assert found["expected"]["pairs"] == np.count_nonzero(met)


@pytest.mark.parametrize("domain", [50, (1 << 31) - 1])
def test_pairs_are_counted_alike_in_narrow_and_wide_domains(domain: int) -> None:
    rng = np.random.default_rng(6)
    r, s = rng.integers(1, 31, 300), rng.integers(11, 51, 200)  # each has keys of its own
    r, s = r * (domain // 50), s * (domain // 50)
    assert key_pairs(r, s, domain) == np.count_nonzero(r[:, None] == s[None, :])


@pytest.mark.parametrize("rows", [0, 1, 300])
@pytest.mark.parametrize("window", ["tumbling:1us", "tumbling:7us", "tumbling:1h"])
@pytest.mark.parametrize("domain", [50, (1 << 31) - 1])
@pytest.mark.parametrize("stretch_rows", [1, 40, 1 << 20])
def test_pairs_of_tumbling_windows_are_counted_in_any_stretches(
    rows: int, window: str, domain: int, stretch_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairs, "SPAN_ROWS", stretch_rows)
    rng = np.random.default_rng(rows)
    keys = [rng.integers(1, 6, count) * (domain // 50) for count in (rows, 200)]
    times = [np.sort(rng.integers(0, 90, count)) for count in (rows, 200)]
    length_us = {"tumbling:1us": 1, "tumbling:7us": 7, "tumbling:1h": 3_600_000_000}[window]
    met = np.equal.outer(*keys) & np.equal.outer(*(found // length_us for found in times))
    assert window_pairs(keys, times, window, domain) == met.sum()


def test_pairs_of_windows_without_rows_cost_nothing() -> None:
    keys, times = np.array([1, 2, 1]), np.array([0, 5, 1 << 55])
    assert window_pairs((keys, keys), (times, times), "tumbling:1us", 2) == 3


def test_the_description_says_what_was_made(session: Session, tmp_path: Path) -> None:
    spec = make_spec("band", 17, {"rate_r": 10, "rate_s": 20, "duration_s": 1, "lo": 4})
    generate(spec, tmp_path / "w", session, name="mine")
    found = described(tmp_path / "w")
    assert found["r"].pop("bytes") == (tmp_path / "w" / "r.parquet").stat().st_size
    assert found["s"].pop("bytes") == (tmp_path / "w" / "s.parquet").stat().st_size
    generator = found.pop("generator")
    assert generator["java"] == session.java_version
    assert found == {
        "format": 1,
        "name": "mine",
        "kind": "band",
        "params": {
            "rate_r": 10.0,
            "rate_s": 20.0,
            "duration_s": 1.0,
            "window": "count:1024",
            "domain": 10000,
            "lo": 4,
            "hi": 10,
            "arrivals": "regular",
        },
        "seed": 17,
        "r": {
            "path": "r.parquet",
            "rows": 10,
            "columns": {"x": "int32", "y": "float32", "z": "string", "ts": "int64"},
        },
        "s": {
            "path": "s.parquet",
            "rows": 20,
            "columns": {
                "a": "int32",
                "b": "float32",
                "c": "float64",
                "d": "bool",
                "ts": "int64",
            },
        },
        "predicate": {"band": ["x=a:4:10", "y=b:4:10"]},
        "window": "count:1024",
        "expected": None,
        "estimated_pairs": pytest.approx(200 * 15 / 10_000 * 14 / 9999),
    }


def test_only_an_identical_workload_is_unchanged(session: Session, tmp_path: Path) -> None:
    out = tmp_path / "w"
    spec = make_spec("equi", 1, {"r_tuples": 10, "s_tuples": 10})
    assert unchanged(out, known(spec)) is None
    generate(spec, out, session)
    assert unchanged(out, known(spec)) == described(out)
    assert unchanged(out, known(make_spec("equi", 2, {"r_tuples": 10, "s_tuples": 10}))) is None
    assert unchanged(out, known(spec, "other")) is None
    (out / "r.parquet").write_bytes(b"")
    assert unchanged(out, known(spec)) is None


def test_an_earlier_workload_is_replaced_whole(session: Session, tmp_path: Path) -> None:
    out = tmp_path / "w"
    generate(make_spec("equi", 1, {"r_tuples": 2000}), out, session, part_rows=PART_ROWS)
    generate(make_spec("equi", 2, {"r_tuples": 10, "s_tuples": 10}), out, session)
    assert sorted(digests(out)) == ["r.parquet", "s.parquet", "workload.json"]
    assert described(out)["seed"] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["w"]


def test_other_folders_are_not_overwritten(session: Session, tmp_path: Path) -> None:
    spec = make_spec("equi", 1, {"r_tuples": 10, "s_tuples": 10})
    (tmp_path / "thesis.txt").write_text("years of work")
    sentence = f"--out must be a new folder or a workload, and {tmp_path} holds other files: "
    sentence += "choose another folder"
    with pytest.raises(SpecError, match=f"^{re.escape(sentence)}$"):
        generate(spec, tmp_path, session)
    out = tmp_path / "w"
    generate(spec, out, session)
    (out / "notes.txt").write_text("mine")
    sentence = f"--out must hold a workload alone, and {out} also holds notes.txt: "
    sentence += "choose another folder"
    with pytest.raises(SpecError, match=f"^{re.escape(sentence)}$"):
        generate(spec, out, session)
    file = tmp_path / "thesis.txt"
    sentence = f"--out must be a folder, and {file} is a file"
    with pytest.raises(SpecError, match=f"^{re.escape(sentence)}$"):
        generate(spec, file, session)


def test_a_failed_job_leaves_the_earlier_workload(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "w"
    generate(make_spec("equi", 1, {"r_tuples": 10, "s_tuples": 10}), out, session)
    before = digests(out)

    def broken(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    # The worker gets the module's function by value, so this one reaches it.
    monkeypatch.setattr("streamjoin_datagen.generate.write_part", broken)
    sentence = f"a part could not be written: {out}/r.parquet: No space left on device"
    with pytest.raises(GenerationError, match=f"^{re.escape(sentence)}$") as caught:
        generate(make_spec("equi", 2, {"r_tuples": 10, "s_tuples": 10}), out, session)
    assert caught.value.exit_status == 1
    assert digests(out) == before
    assert [path.name for path in tmp_path.iterdir()] == ["w"]


def test_a_worker_that_raises_is_one_sentence(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> int:
        raise ArithmeticError("no such number")

    monkeypatch.setattr("streamjoin_datagen.generate.write_part", broken)
    sentence = "the Spark job failed: ArithmeticError: no such number"
    with pytest.raises(GenerationError, match=f"^{re.escape(sentence)}$"):
        generate(make_spec("equi", 2, {"r_tuples": 10}), tmp_path / "w", session)


def test_a_job_beyond_its_deadline_is_ended(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(*_: object, **__: object) -> int:
        import time

        time.sleep(60)
        return 0

    monkeypatch.setattr("streamjoin_datagen.generate.write_part", endless)
    monkeypatch.setattr("streamjoin_datagen.session.tasks.JOB_DEADLINE_S", 1.0)
    with pytest.raises(GenerationError, match=r"^the Spark job did not end within 1 s$"):
        generate(make_spec("equi", 2, {"r_tuples": 10}), tmp_path / "w", session)
    assert not list(tmp_path.iterdir())


def test_progress_ends_at_the_number_of_parts(session: Session, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    spec = make_spec("equi", 1, {"r_tuples": 2000, "s_tuples": 10})
    generate(
        spec,
        tmp_path / "w",
        session,
        part_rows=PART_ROWS,
        progress=lambda done, parts: seen.append((done, parts)),
    )
    assert seen[-1] == (4, 4)


def test_a_result_that_would_be_very_large_is_refused_with_its_size() -> None:
    sentence = (
        "debs-r10000000-seed1 would have about 2.5e+09 pairs, a result of 20 GB and above 1e+09 "
        "pairs: give --yes if that is meant"
    )
    with pytest.raises(SpecError, match=f"^{re.escape(sentence)}$"):
        check_size(make_spec("debs", 1, {"posts": 10_000_000}))
    for kind in SPECS:
        check_size(make_spec(kind, 1, {}))


@pytest.mark.parametrize(
    "which", ["micro", "zipf", "empty", pytest.param("stock", marks=pytest.mark.slow)]
)
def test_spark_counts_the_same_pairs(
    which: str, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, params = WORKLOADS[which]
    found = []
    for most in (1 << 27, 0):
        monkeypatch.setattr("streamjoin_datagen.generate.COUNTED_ROWS", most)
        generate(make_spec(kind, 17, params), tmp_path / "w", session, part_rows=PART_ROWS)
        found.append(described(tmp_path / "w")["expected"])
    assert found[0] == found[1]
