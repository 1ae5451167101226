"""How a kind of join is written."""

import pytest

from streamjoin_common.errors import InputError
from streamjoin_common.language.kinds import KINDS, parse_how


def test_every_kind_reads_itself() -> None:
    assert [parse_how(how) for how in KINDS] == list(KINDS)


@pytest.mark.parametrize(
    ("wrong", "ending"),
    [
        ("lefft", "not 'lefft': did you mean left?"),
        ("outer", "not 'outer': did you mean full?"),
        ("LEFT", "not 'LEFT': did you mean left?"),
        ("full_outer", "not 'full_outer': did you mean full?"),
        ("leftanti", "not 'leftanti': did you mean anti?"),
        ("", "anti, not ''"),
        (None, "anti, not None"),
        (["left"], "anti, not ['left']"),
    ],
)
def test_a_wrong_kind_is_one_sentence_with_the_nearest(wrong: object, ending: str) -> None:
    with pytest.raises(InputError) as error:
        parse_how(wrong)
    assert str(error.value).startswith("how is one of inner, left, right, full, semi, anti, not ")
    assert str(error.value).endswith(ending)
