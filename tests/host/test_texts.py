"""Strings as bytes are found where Python's dictionary finds them."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamjoin.engines.semi.keys import ABSENT, Dictionary
from streamjoin.errors import InputError
from streamjoin.inputs.strings import Strings

SHORT = st.text(st.sampled_from("ab\0é漢\ud800"), max_size=3)
KINDS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]


def objects(texts: list[str]) -> np.ndarray:
    return np.array([*texts, None], dtype=object)[:-1]


@settings(deadline=None)
@given(known=st.lists(SHORT), asked=st.lists(SHORT))
def test_ranks_are_those_of_a_dictionary_of_pythons_texts(
    known: list[str], asked: list[str]
) -> None:
    expected = {text: rank for rank, text in enumerate(dict.fromkeys(known))}
    ranks = Dictionary(objects(known), None).ranks(objects(asked), None)
    assert ranks.tolist() == [expected.get(text, ABSENT) for text in asked]


def test_many_texts_that_differ_in_one_byte_are_told_apart() -> None:
    known = [f"{number:06d}" for number in range(0, 200_000, 2)]
    asked = [f"{number:06d}" for number in range(200_000)]
    ranks = Dictionary(objects(known), None).ranks(objects(asked), None)
    right = np.arange(200_000) // 2
    right[1::2] = ABSENT
    assert np.array_equal(ranks, right)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_arrows_texts_are_read_where_they_lie_in_slices_and_chunks(kind: pa.DataType) -> None:
    texts = ["", "one", "two", "", "dreißig", "one"]
    plain = pa.array(texts) if pa.types.is_dictionary(kind) else pa.array(texts, kind)
    whole = plain.dictionary_encode() if pa.types.is_dictionary(kind) else plain
    column = pa.chunked_array([whole.slice(1, 3), whole.slice(4, 2)])
    from pathlib import Path

    from streamjoin.relations import Projection
    from streamjoin.relations.batches import compared

    table = pa.table({"k": column})
    _, columns = compared(table, Projection(compared=("k",)), np.arange(5), Path("r"))
    held, missing = columns["k"]
    assert isinstance(held, Strings)
    assert held.objects().tolist() == texts[1:]
    assert missing is None
    assert Dictionary(objects(["one", ""]), None).ranks(held, None).tolist() == [0, -1, 1, -1, 0]


def test_bytes_that_are_no_text_are_refused() -> None:
    broken = pa.Array.from_buffers(pa.string(), 1, [None, *pa.array([b"\xff"]).buffers()[1:]])
    with pytest.raises(InputError, match=r"^r: column 'k' holds strings that are not UTF-8$"):
        Strings.of_arrow(broken, "k", "r")
