"""Whole calls beside other systems: measured alike, and every result compared."""

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.bench import calls
from streamjoin.errors import MismatchError


@pytest.mark.parametrize("name", calls.CASES)
def test_all_systems_agree_on_every_case(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = calls.CASES[name]
    monkeypatch.setitem(calls.CASES, name, case._replace(quick=2000))
    result = calls.measure(name, "quick", rounds=1, threads=1)
    assert set(result["systems"]) == {"auto", "npj", "prj", "duckdb", "polars", "pyarrow"}
    assert all(each["cpu_s"] > 0 for each in result["systems"].values())
    assert result["pairs"] > 0


def test_a_system_with_another_result_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: object) -> pa.Table:
        row = np.zeros(1, dtype=np.uint32)
        return pa.table({"r_row": row, "s_row": row})

    monkeypatch.setattr(calls, "_polars", wrong)
    name = "10 k int32"
    monkeypatch.setitem(calls.CASES, name, calls.CASES[name]._replace(quick=20))
    with pytest.raises(MismatchError, match=r"10 k int32: polars differs from auto: 1 pairs where"):
        calls.measure(name, "quick", rounds=1, threads=1)
