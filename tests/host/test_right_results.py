"""What a comparison is checked with: right results that points share, and the order asked for."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from streamjoin import verify
from streamjoin.bench import compare, suites
from streamjoin.bench.workloads import Comparison
from streamjoin.errors import InputError
from streamjoin.sequence import Request
from streamjoin.tuples import Pairs
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import AllWindow, CountWindow


def test_points_on_the_same_data_share_one_right_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = np.arange(10)
    computed = mock.Mock(return_value=verify.Expected(Pairs(rows, rows), "oracle"))
    monkeypatch.setattr(compare.verify, "expected", computed)
    ask = Request(predicate=Predicate.parse("k", None), window=AllWindow())
    wider = replace(ask, window=CountWindow(3, 4))
    for kept, times in ((100, 3), (10, 4), (0, 5)):
        monkeypatch.setattr(compare, "MAX_KEPT_PAIRS", kept)
        computed.reset_mock()
        right = compare.RightResults()
        for folder, request in (("a", ask), ("a", ask), ("b", ask), ("a", wider), ("a", ask)):
            asked: Any = mock.Mock(folder=folder, request=request)
            found, _ = right.of(asked, mock.Mock(), mock.Mock())
            assert found is computed.return_value
        assert computed.call_count == times


def test_a_table_says_the_order_of_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    r = {"k": np.arange(40) % 7, "ts": np.arange(40)}
    known = Comparison(
        None, "x", "memory", r, r, Predicate.parse("k", None), CountWindow(9), ("splitjoin",)
    )
    monkeypatch.setattr(suites, "read_workload", lambda *_: known)
    for order in ("none", "inner"):
        table = {"engines": ["splitjoin"], "order": order, "rounds": 1}
        suites.check_table(table, "x")
        asked = suites.as_table(table, Path("x"), 2)
        _, (record,) = compare.compare_one(asked, lambda _: nullcontext(lambda *_: None), print)
        assert (record["status"], record["order"]) == ("ok", order)
    with pytest.raises(InputError, match="x: order must be one of none, outer, inner, not 'by'"):
        suites.check_table({"engines": ["splitjoin"], "order": "by"}, "x")
