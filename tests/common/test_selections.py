"""The columns of joined rows, as ``--columns`` takes them."""

import pytest

from streamjoin_common.errors import InputError
from streamjoin_common.language.selections import Selection

R, S = ["k", "a", "x.y"], ["k", "b", "c,d"]


@pytest.mark.parametrize(
    ("columns", "outputs"),
    [
        ("r.a,s.b", "a b"),
        (" s.b , a ", "b a"),
        ("r.k,s.k", "k_r k_s"),
        ("r.k", "k"),
        ("r.x.y", "x.y"),
        (["s.c,d"], "c,d"),
        ("s.*,r.k", "k_s b c,d k_r"),
        ("r.a,*", "a k_r x.y k_s b c,d"),
        ("*", "k_r a x.y k_s b c,d"),
    ],
)
def test_columns_keep_their_names_unless_the_other_side_has_the_same(
    columns: str | list[str], outputs: str
) -> None:
    chosen = Selection.parse(columns).resolve(R, S)
    assert [each.name for each in chosen] == outputs.split()
    assert all(each.column in (R if each.side == "r" else S) for each in chosen)


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_some_kinds_have_columns_of_r_alone(how: str) -> None:
    assert [each.name for each in Selection.parse("*").resolve(R, S, how=how)] == R
    with pytest.raises(InputError, match=rf"s\.b: a join of kind {how} has R's columns only"):
        Selection.parse("r.a,s.b").resolve(R, S, how=how)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("r.c", r"r: there is no column 'c'; it has k, a, x\.y"),
        ("c", r"there is no column 'c': r has k, a, x\.y; s has k, b, c,d"),
        ("k", r"the column 'k' is in both r and s: write r\.k or s\.k"),
        ("", r"a name is missing: write r\.a, s\.b, r\.\*, s\.\* or \*"),
        ("r.a,,s.b", "a name is missing"),
        ("t.a", r"there is no column 't\.a': r has"),
        ("r.a,r.a", r"the column r\.a is named twice"),
        ([], "a name is missing"),
        ([3], r"columns must be names such as r\.a, s\.b, .* not \[3\]"),
        (7, "not 7"),
    ],
)
def test_a_mistaken_column_is_one_sentence(columns: object, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Selection.parse(columns).resolve(R, S)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_a_column_of_s_is_refused_where_rows_have_r_alone() -> None:
    for name in ("price", "s.price"):
        with pytest.raises(InputError, match="a join of kind semi has R's columns only"):
            Selection.parse(name).resolve(["k"], ["k", "price"], how="semi")


def test_names_that_suffixes_make_equal_are_refused() -> None:
    with pytest.raises(InputError, match="two columns would be called 'k_r'"):
        Selection.parse("*").resolve(["k", "k_r"], ["k"])
    with pytest.raises(InputError, match="the column 'k' occurs 2 times"):
        Selection.parse("r.k").resolve(["k", "k"], ["k"])
