"""Files in other people's layouts, and TPC-H made by its program."""

import argparse
import gzip
import json
import lzma
import re
import shutil
import stat
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin_common.errors import InputError
from streamjoin_datagen.cli import VERB
from streamjoin_datagen.errors import GenerationError, SpecError
from streamjoin_datagen.generate import generate
from streamjoin_datagen.imports.layouts import TPCH, read_layout
from streamjoin_datagen.kinds import tpchgen
from streamjoin_datagen.kinds.tpch import ROWS_AT_1
from streamjoin_datagen.params import make_spec
from streamjoin_datagen.session import Session
from streamjoin_datagen.tables import build


def imported(out: Path, *words: object) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    VERB.configure(parser)
    assert VERB.run(parser.parse_args([*map(str, words), "--out", str(out)])) == 0
    return dict(json.loads((out / "workload.json").read_text()))


def rows(out: Path, stream: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in pq.read_table(out / f"{stream}.parquet").to_pylist()]


@pytest.mark.parametrize("packed", ["txt", "xz", "gz"])
def test_stock_is_read_packed_or_not_and_counted_by_the_second(packed: str, tmp_path: Path) -> None:
    strings = {"r": "7|0\n8|999\n7|1000\n", "s": "7|5\n7|1500\n8|1999\n"}
    opener = {"txt": open, "xz": lzma.open, "gz": gzip.open}[packed]
    for stream, text in strings.items():
        with opener(tmp_path / f"{stream}.{packed}", "wb") as file:  # type: ignore[operator]
            file.write(text.encode())
    files = [tmp_path / f"{stream}.{packed}" for stream in strings]
    found = imported(tmp_path / "w", "import", "alliancedb", *files, "--layout", "stock")
    assert rows(tmp_path / "w", "r") == [(7, 0), (8, 999_000), (7, 1_000_000)]
    assert found["window"] == "tumbling:1s"
    assert found["expected"] == {"window": "tumbling:1s", "pairs": 2, "digest": None}
    assert found["r"]["columns"] == {"k": "int32", "ts": "int64"}
    assert found["params"]["layout"] == "stock"


def test_rovio_joins_itself(tmp_path: Path) -> None:
    (tmp_path / "rovio.txt").write_text("5|KM|279|0\n6|TP|331|0\n5|KM|1|11\n")
    file = tmp_path / "rovio.txt"
    found = imported(tmp_path / "w", "import", "alliancedb", file, file, "--layout", "rovio")
    assert found["expected"]["pairs"] == 5
    assert rows(tmp_path / "w", "s")[2] == (5, "KM", 1, 11_000)


def test_a_table_of_ysb_is_at_rest_beside_its_stream(tmp_path: Path) -> None:
    (tmp_path / "campaigns.txt").write_text("1\n2\n3\n")
    (tmp_path / "events.txt").write_text("2|1\n2|4\n9|7\n")
    files = [tmp_path / "campaigns.txt", tmp_path / "events.txt"]
    found = imported(tmp_path / "w", "import", "alliancedb", *files, "--layout", "ysb")
    assert (found["window"], found["expected"]["pairs"]) == ("all", 2)
    assert rows(tmp_path / "w", "r") == [(1, 0), (2, 0), (3, 0)]


def test_debs_takes_the_first_column_alone(tmp_path: Path) -> None:
    (tmp_path / "posts.csv").write_text("4,x,1.5\n4,y,2\n")
    (tmp_path / "comments.csv").write_text("4|a\n5|b\n")
    files = [tmp_path / "posts.csv", tmp_path / "comments.csv"]
    found = imported(tmp_path / "w", "import", "alliancedb", *files, "--layout", "debs")
    assert found["expected"]["pairs"] == 2
    assert rows(tmp_path / "w", "s") == [(4, 0), (5, 0)]


def test_tpch_tables_are_read_as_text_and_parquet(tmp_path: Path) -> None:
    (tmp_path / "customer.tbl").write_text("1|C#1|a|15|p|7.5|m|c|\n2|C#2|b|3|p|8.5|m|c|\n")
    orders = pa.table({"o_comment": ["x", "y"], "o_orderkey": [1, 2], "o_custkey": [2, 2]})
    pq.write_table(orders, tmp_path / "orders.parquet")
    files = [tmp_path / "customer.tbl", tmp_path / "orders.parquet"]
    found = imported(tmp_path / "w", "import", "tpch", *files)
    assert found["expected"]["pairs"] == 2
    assert rows(tmp_path / "w", "r") == [(1, 15, 0), (2, 3, 0)]
    assert rows(tmp_path / "w", "s") == [(2, 1, 0), (2, 2, 0)]


MISTAKES = [
    ("stock", "7|0\n", "7\n", "{s} must have at least 2 columns a line, not 1"),
    ("stock", "7|0\n", "", "{s} must have at least 2 columns a line, not 1"),
    ("stock", "7|0\n8|x\n", "7|0\n", "{r}: column 1 must be integer milliseconds"),
    ("stock", "7|5\n7|4\n", "7|0\n", "{r}: ts goes back at row 1, from 5000 to 4000: sort the "
     "file by ts"),
    ("stock", "7|5\n|6\n", "7|0\n", "{r}: column 'k' is empty in row 1: remove such rows"),
    ("trades", "7|0\n", "7|0\n", "--layout must be one of stock, rovio, ysb, debs, not 'trades'"),
]  # fmt: skip


@pytest.mark.parametrize(("layout", "r", "s", "sentence"), MISTAKES)
def test_a_file_of_another_layout_is_one_sentence(
    layout: str, r: str, s: str, sentence: str, tmp_path: Path
) -> None:
    paths = {"r": tmp_path / "r.txt", "s": tmp_path / "s.txt"}
    paths["r"].write_text(r)
    paths["s"].write_text(s)
    with pytest.raises(SpecError, match=f"^{re.escape(sentence.format(**paths))}$"):
        imported(tmp_path / "w", "import", "alliancedb", *paths.values(), "--layout", layout)
    assert not (tmp_path / "w").exists()


def test_a_damaged_archive_is_one_sentence(tmp_path: Path) -> None:
    for name in ("r.xz", "s.xz"):
        (tmp_path / name).write_bytes(b"no archive")
    files = [tmp_path / "r.xz", tmp_path / "s.xz"]
    with pytest.raises(SpecError, match=r"r\.xz cannot be read as text columns: "):
        imported(tmp_path / "w", "import", "alliancedb", *files, "--layout", "stock")


def test_tpch_orders_are_its_generators_whatever_the_split(
    session: Session, tmp_path: Path
) -> None:
    assert tpchgen.find_program(), "tpchgen-cli comes with the extra datagen"
    spec = make_spec("tpch-orders", None, {"scale_factor": 0.02, "rate": 5})
    whole = build(spec, "s", 0, spec.rows("s"))
    parts = [
        build(spec, "s", first, count) for first, count in ((0, 1), (1, 20_000), (20_001, 9_999))
    ]
    assert pa.concat_tables(parts).combine_chunks() == whole.combine_chunks()
    orders = whole.column("order").to_pylist()
    # TPC-H numbers eight orders of every 32.
    assert orders == [row // 8 * 32 + row % 8 for row in range(1, 30_001)]
    for partitions in (1, 7):
        generate(spec, tmp_path / str(partitions), session, partitions=partitions)
    files = [(tmp_path / run / "s.parquet").read_bytes() for run in ("1", "7")]
    assert files[0] == files[1]
    found = json.loads((tmp_path / "1" / "workload.json").read_text())
    assert (found["expected"]["pairs"], found["seed"]) == (30_000, None)
    assert spec.name == "tpch-orders-sf0.02-v5"


@pytest.mark.parametrize(("factor", "stream"), [(0.29, "s"), (0.41, "r")])
def test_tpch_tables_have_all_rows_where_the_product_is_a_little_less(
    factor: float, stream: str
) -> None:
    spec = make_spec("tpch-orders", None, {"scale_factor": factor})
    rows = spec.rows(stream)
    assert int(factor * ROWS_AT_1[stream]) == rows - 1
    assert build(spec, stream, rows - 10, 10).num_rows == 10


def fake_program(folder: Path, body: str) -> None:
    """Put a program of that name on a path of its own."""
    program = folder / tpchgen.PROGRAM
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("echo no room left >&2; exit 3", "tpchgen-cli ended with 3: no room left"),
        ("exec sleep 60", "tpchgen-cli did not end within 1 s"),
    ],
)
def test_a_generator_that_fails_is_one_sentence(
    body: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_program(tmp_path, body)
    monkeypatch.setattr(tpchgen, "find_program", lambda: str(tmp_path / tpchgen.PROGRAM))
    monkeypatch.setattr(tpchgen, "DEADLINE_S", 1.0)
    tpchgen._part.cache_clear()
    with pytest.raises(GenerationError, match=f"^{re.escape(sentence)}$"):
        build(make_spec("tpch-orders", None, {"scale_factor": 0.03}), "r", 0, 10)


def test_a_generator_that_is_not_there_is_one_sentence(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    sentence = (
        "tpchgen-cli is not installed, which tpch-orders needs: "
        "type pip install 'streamjoin[datagen]'"
    )
    with pytest.raises(SpecError, match=f"^{re.escape(sentence)}$"):
        generate(make_spec("tpch-orders", None, {}), tmp_path / "w", session)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("factor", [0.0, 0.005, 1500.0])
def test_a_scale_factor_is_in_hundredths(factor: float) -> None:
    with pytest.raises(SpecError, match=r"^scale_factor must be a "):
        make_spec("tpch-orders", None, {"scale_factor": factor})


def test_a_packed_file_that_grows_beyond_the_memory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.tbl.gz"
    path.write_bytes(gzip.compress(b"1|2|3|\n" * 1_000_000))
    assert path.stat().st_size < 1 << 16
    with (
        mock.patch("streamjoin_datagen.imports.layouts.available_bytes", return_value=5 << 20),
        pytest.raises(InputError, match=r"s.tbl.gz: takes at least 5,242,880 bytes"),
    ):
        read_layout(TPCH, "s", path)
