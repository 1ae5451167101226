"""Files that several test files join."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with a small r.parquet and s.parquet, and files that are wrong."""
    rng = np.random.default_rng(3)
    ts = np.arange(0, 5000, 10)
    r = {
        "k": pa.array(rng.integers(0, 50, 500), pa.int32()),
        "x": pa.array(rng.integers(0, 100, 500), pa.int32()),
        "y": pa.array(rng.uniform(0, 100, 500), pa.float32()),
        "z": pa.array([f"text{i}" for i in range(500)]),
        "ts": pa.array(ts),
    }
    s = {
        "k": pa.array(rng.integers(0, 50, 500), pa.int32()),
        "a": pa.array(rng.integers(0, 100, 500), pa.int32()),
        "b": pa.array(rng.uniform(0, 100, 500), pa.float32()),
        "c": pa.array([f"text{i % 7}" for i in range(500)]),
        "ts": pa.array(ts),
    }
    pq.write_table(pa.table(r), tmp_path / "r.parquet")
    pq.write_table(pa.table(s), tmp_path / "s.parquet")
    back = ts.copy()
    back[7] = 3
    pq.write_table(pa.table({**r, "ts": pa.array(back)}), tmp_path / "unsorted.parquet")
    whole = (tmp_path / "r.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "empty.parquet").write_bytes(b"")
    (tmp_path / "semicolons.csv").write_text("k;ts\n1;2\n")
    (tmp_path / "folder").mkdir()
    pv.write_csv(pa.table(r), tmp_path / "r.csv")
    with pa.OSFile(str(tmp_path / "s.arrow"), "wb") as sink:
        table = pa.table(s)
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    return tmp_path
