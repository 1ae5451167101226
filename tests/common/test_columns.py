"""The columns of joined rows, as ``--columns`` takes them."""

import pytest

from streamjoin_common.errors import InputError
from streamjoin_common.language.columns import output_columns

R, S = ["k", "a", "x.y"], ["k", "b", "c,d"]


@pytest.mark.parametrize(
    ("columns", "outputs"),
    [
        ("r.a,s.b", "a b"),
        (" s.b , r.a ", "b a"),
        ("r.k,s.k", "k_r k_s"),
        ("r.k", "k"),
        ("r.x.y", "x.y"),
        (["s.c,d"], "c,d"),
        ("s.*,r.k", "k_s b c,d k_r"),
        ("*", "k_r a x.y k_s b c,d"),
    ],
)
def test_columns_keep_their_names_unless_the_other_side_has_the_same(
    columns: str | list[str], outputs: str
) -> None:
    chosen = output_columns(columns, R, S)
    assert [column.output for column in chosen] == outputs.split()
    assert all(column.name in (R if column.side == "r" else S) for column in chosen)


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_some_kinds_have_columns_of_r_alone(how: str) -> None:
    assert [column.output for column in output_columns("*", R, S, r_only=how)] == R
    with pytest.raises(InputError, match=f"{how} joins give rows of R alone, not 's.b'"):
        output_columns("r.a,s.b", R, S, r_only=how)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("r.c", r"there is no column 'r\.c'; there are r\.k, r\.a, r\.x\.y, s\.k, s\.b, s\.c,d"),
        ("a", r"a column is r\.COL or s\.COL, or \* for all, not 'a'; there are r\.k"),
        ("", r"a column is r\.COL or s\.COL, or \* for all, not ''"),
        ("t.a", r"not 't\.a'"),
        ("r.a,r.a", r"columns name 'r\.a' twice"),
        ("r.a,*", r"columns name 'r\.a' twice"),
        ([], r"columns name none: name some of r\.k, r\.a"),
        ([3], r"columns must be a string such as 'r\.a,s\.b' or strings, not \[3\]"),
        (7, "not 7"),
    ],
)
def test_a_mistaken_column_is_one_sentence(columns: object, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        output_columns(columns, R, S)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_names_that_suffixes_make_equal_are_refused() -> None:
    with pytest.raises(InputError, match="two columns would be called 'k_r'"):
        output_columns("*", ["k", "k_r"], ["k"])
    with pytest.raises(InputError, match="r has 2 columns 'k'"):
        output_columns("r.k", ["k", "k"], ["k"])
