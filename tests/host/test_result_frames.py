"""Joined rows as data frames, and as they are printed: names and digits."""

import numpy as np
import pyarrow as pa
import pytest

import streamjoin as sj


def test_columns_whose_names_clash_twice_are_all_shown() -> None:
    r, s = {"k": [1], "a": [2], "a_r": [3]}, {"k": [1], "a": [4]}
    result = sj.join(r, s, on="k")
    assert repr(result).splitlines()[1].split() == ["k_r", "r.a", "a_r", "k_s", "a_s"]
    with pytest.raises(sj.InputError, match="a_r"):
        result.to_pandas()
    for table in (result.to_pandas, result.to_polars):
        assert list(table(r_suffix="_left").columns) == ["k_left", "a_left", "a_r", "k_s", "a_s"]
        for wrong in (None, 3):
            with pytest.raises(sj.InputError, match=f"^s_suffix must be a string, not {wrong}$"):
                table(s_suffix=wrong)


@pytest.mark.parametrize("kind", ["int64", "uint64"])
def test_pandas_gets_every_digit_of_integers_beside_missing_values(kind: str) -> None:
    wide, other = (1 << 60) + 1, -(1 << 53) - 1 if kind == "int64" else (1 << 64) - 1
    r = {"k": np.array([1, 2]), "a": np.array([wide, other], dtype=kind)}
    result = sj.join(r, {"k": np.array([2, 3])}, on="k", how="full")
    found = result.to_pandas("r.a")["a"]
    assert str(found.dtype) == kind.replace("i", "I").replace("u", "U")
    assert sorted(found.dropna().tolist()) == sorted([wide, other])
    assert found.isna().sum() == 1
    assert str(result.to_pandas("s.k")["k"].dtype) == "float64"  # as pandas' own merge


def test_integers_inside_of_other_columns_keep_their_digits() -> None:
    exact, wide = (1 << 53) - 1, (1 << 53) + 1
    map_type = pa.map_(pa.string(), pa.uint64())
    for value in (exact, wide):
        r = pa.table(
            {
                "k": [1, 2],
                "s": pa.array([{"a": value}, {"a": None}]),
                "l": pa.array([[value, None], None]),
                "m": pa.array([[("x", value), ("y", None)], None], map_type),
                "n": pa.array([[[value, None]], [[]]]),
                "other": pa.array([[1, None], [2]]),
            }
        )
        frame = sj.join(r, {"k": [1, 2]}, on="k", engine="npj").to_pandas(["r.*"])
        frame = frame.set_index("k").loc[1]
        assert int(frame["s"]["a"]) == value
        assert int(frame["l"][0]) == value
        assert int(frame["m"][0][1]) == value
        assert int(frame["n"][0][0]) == value
        assert frame["other"].dtype == float


def test_digits_are_kept_under_missing_lists_and_in_types_of_the_user() -> None:
    wide = (1 << 53) + 1

    class Meters(pa.ExtensionType):
        def __init__(self) -> None:
            super().__init__(pa.int64(), "streamjoin.tests.meters")

        def __arrow_ext_serialize__(self) -> bytes:
            return b""

        @classmethod
        def __arrow_ext_deserialize__(cls, storage: pa.DataType, _: bytes) -> "Meters":
            return cls()

    storage = pa.array([wide, None], pa.int64())
    r = pa.table(
        {
            "k": [1, 2],
            "fixed": pa.array([[wide], None], pa.list_(pa.int64(), 1)),
            "own": pa.ExtensionArray.from_storage(Meters(), storage),
        }
    )
    frame = sj.join(r, {"k": [1, 2]}, on="k", engine="npj").to_pandas(["fixed", "own"])
    assert int(frame["fixed"][0][0]) == int(frame["own"][0]) == wide


def test_a_result_without_rows_becomes_a_frame_whatever_its_types() -> None:
    kinds = [pa.list_view(pa.int64()), pa.large_list_view(pa.list_(pa.int8())), pa.string_view()]
    columns = {f"c{number}": pa.nulls(1, kind) for number, kind in enumerate(kinds)}
    r = pa.table({"k": [1], "d": pa.array(["a"]).dictionary_encode(), **columns})
    result = sj.join(r, {"k": [2]}, on="k", engine="npj")
    assert result.to_pandas(["r.*"]).shape == (0, 5)
    assert result.to_polars("r.k").shape == (0, 1)
    assert [len(batch) for batch in result] == [0]
