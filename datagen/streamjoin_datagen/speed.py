"""How fast workloads are generated, beside NumPy's own generator writing the same file.

Every kind is generated in one Spark session at about the size asked for. The yardstick is one
process that draws columns of the same types with :class:`numpy.random.Generator`, uniform and
without any law, and writes them with the same settings: what generation costs beyond that is
the price of laws, of order-free randomness and of Spark.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin_datagen.generate import generate
from streamjoin_datagen.params import make_spec
from streamjoin_datagen.rows import fillers
from streamjoin_datagen.session import Session
from streamjoin_datagen.spec import WorkloadSpec
from streamjoin_datagen.store import BLOCK_ROWS, STREAMS, part_ranges, write_part
from streamjoin_datagen.tables import schema

SIZES: dict[str, tuple[str, ...]] = {
    "band": ("rate_r", "rate_s"),
    "equi": ("r_tuples", "s_tuples"),
    "micro": ("rate_r", "rate_s"),
    "stock": ("rate_r", "rate_s"),
    "rovio": ("rate",),
    "ysb": ("rate",),
    "debs": ("posts", "comments"),
    "uniform": ("tuples",),
    "gaussian": ("tuples",),
    "gamma": ("tuples",),
    "shifting-gaussian": ("tuples",),
    "zipf-master": ("r_tuples", "s_tuples"),
    "tpch-orders": ("scale_factor",),
}
"""Parameters that a kind's number of rows is proportional to."""


def sized(kind: str, rows: int, seed: int = 1) -> WorkloadSpec:
    """Make a kind with its defaults and about so many rows in both streams together."""
    plain = make_spec(kind, seed, {})
    factor = rows / sum(plain.rows(stream) for stream in STREAMS)
    params: dict[str, Any] = {}
    for name in SIZES[kind]:
        value = plain.params[name] * factor
        counts = isinstance(plain.params[name], int) or kind == "micro"
        params[name] = max(1, round(value)) if counts else value
    if kind == "tpch-orders":
        params["scale_factor"] = max(1, round(params["scale_factor"] * 100)) / 100
    return make_spec(kind, seed, params)


def measure(
    kinds: list[str], rows: int, folder: Path, session: Session
) -> Iterator[dict[str, Any]]:
    """Generate every kind and its yardstick in turn.

    Yields
    ------
    dict
        ``kind``, ``rows``, ``bytes``; rows a second of time, and a second of one core's work,
        which says more on a busy machine: ``rows_per_s``, ``rows_per_cpu_s``, and
        ``numpy_rows_per_cpu_s``.
    """
    for kind in kinds:
        spec = sized(kind, rows)
        missing = spec.missing()
        if missing:
            yield {"kind": kind, "missing": missing}
            continue
        # The first workload of a session starts its workers, which is not this kind's doing.
        generate(sized(kind, 1000), folder / "small", session)
        started = time.perf_counter()
        outcome = generate(spec, folder / kind, session, count=False)
        seconds = time.perf_counter() - started
        started = time.process_time()
        drawn = _yardstick(spec, folder / f"numpy-{kind}")
        yield {
            "kind": kind,
            "rows": outcome.rows,
            "rows_per_s": outcome.rows / seconds,
            "rows_per_cpu_s": outcome.rows / outcome.worker_cpu_s,
            "numpy_rows_per_cpu_s": drawn / (time.process_time() - started),
            "bytes": outcome.bytes,
        }


def _yardstick(spec: WorkloadSpec, folder: Path) -> int:
    """Write as many rows of the same types; return them."""
    rng = np.random.default_rng(1)
    written = 0
    for stream in STREAMS:
        form = schema(spec, stream)
        for name, first, count in part_ranges(stream, spec.rows(stream)):
            blocks = (
                _drawn(rng, form, min(BLOCK_ROWS, first + count - start))
                for start in range(first, first + count, BLOCK_ROWS)
            )
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            write_part(folder / name, form, blocks)
            written += count
    return written


def _drawn(rng: np.random.Generator, form: pa.Schema, rows: int) -> pa.Table:
    columns: dict[str, Any] = {}
    for field in form:
        if field.name == "ts":
            columns[field.name] = np.cumsum(rng.integers(0, 3, rows, dtype=np.int64))
        elif pa.types.is_string(field.type):
            words = rng.integers(0, 1 << 60, (2, rows), dtype=np.uint64)
            columns[field.name] = fillers.strings([words[0], words[1]])
        elif pa.types.is_boolean(field.type):
            columns[field.name] = rng.integers(0, 2, rows, dtype=np.int8).astype(np.bool_)
        elif pa.types.is_floating(field.type):
            columns[field.name] = rng.random(rows).astype(field.type.to_pandas_dtype())
        else:
            columns[field.name] = rng.integers(
                1, 1 << 31, rows, dtype=field.type.to_pandas_dtype(), endpoint=False
            )
    return pa.table(columns, schema=form)
