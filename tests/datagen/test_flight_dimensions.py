"""Flights as a stream over a dimension table at rest."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from streamjoin_datagen.errors import SpecError
from streamjoin_datagen.imports.flight_dimensions import (
    DIMENSIONS,
    dimension_files,
    dimension_identity,
    import_dimension,
)
from streamjoin_datagen.store import unchanged

ROWS_AND_PAIRS = {
    "planes": (3_322, 284_170),
    "airports": (1_458, 329_174),
    "weather": (26_115, 335_220),
}


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_every_dimension_has_its_known_rows_and_pairs(dimension: str, tmp_path: Path) -> None:
    rows, pairs = ROWS_AND_PAIRS[dimension]
    files = dimension_files(dimension)
    import_dimension(dimension, files, tmp_path / "w")
    found = json.loads((tmp_path / "w" / "workload.json").read_text())
    assert (found["r"]["rows"], found["s"]["rows"]) == (rows, 336_776)
    assert found["expected"] == {"window": "all", "pairs": pairs, "digest": None}
    assert unchanged(tmp_path / "w", dimension_identity(dimension, files)) is not None
    r, s = (pq.read_table(tmp_path / "w" / f"{stream}.parquet") for stream in ("r", "s"))
    assert not r.column("ts").to_numpy().any()
    ts = s.column("ts").to_numpy()
    assert ts[0] == 0
    assert (np.diff(ts) >= 0).all()


def test_a_flight_departs_in_its_hour(tmp_path: Path) -> None:
    import_dimension("airports", dimension_files("airports"), tmp_path / "w")
    s = pq.read_table(tmp_path / "w" / "s.parquet")
    hours = s.column("hour_utc").to_numpy().astype(np.int64)
    ts = s.column("ts").to_numpy()
    first_minute = 5 * 60 + 15  # the first flight leaves at 5:15 local time
    assert np.unique((ts // 60_000_000 + first_minute) // 60 - (hours - hours[0])).tolist() == [5]


def test_another_dimension_table_is_refused_with_what_there_is() -> None:
    with pytest.raises(SpecError, match="master must be one of planes, airports, weather, not 'x'"):
        dimension_files("x")
