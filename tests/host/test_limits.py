"""What the machine could do at best, against which experiments hold their figures."""

import time
from typing import Any

import pytest

from streamjoin.bench import limits
from streamjoin.bench.runner import Limit


def test_semi_stream_joins_are_held_against_the_scan_of_their_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def rate(*how: Any) -> float:
        asked.append(how)
        return 5e9

    monkeypatch.setattr(limits, "store_rate", rate)
    limit = Limit("store")
    work = {"rows": 100.0, "row_bytes": 120}
    record = {
        "knobs": {"store": "raw", "r_bytes": 120, "kept_bytes": 120},
        "semi_stream": {"store": "raw", "loops": 50_000, "work": work},
    }
    nothing = {"n_r": 0, "n_s": 0, "pairs": 0}
    assert limit.min_s(nothing, record, 1) == pytest.approx(50_000 * 100 * 120 / 5e9)
    assert limit.min_s(nothing, record, 1) > 0
    assert asked == [("raw", 120, 120)]
    assert list(limit.rates) == ["bytes read of raw, rows=120, kept=120"]
    record["knobs"]["kept_bytes"] = 0
    limit.min_s(nothing, record, 1)
    assert asked[1:] == [("raw", 120, 16)]


@pytest.mark.parametrize("kind", ["arrow", "raw"])
def test_a_store_is_read_from_its_begin_to_its_end(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter(range(6))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(times)))
    monkeypatch.setattr(limits, "STORE_BYTES", 120_000)
    monkeypatch.setattr(limits, "READ_BYTES", (7_000,))
    read = 120 if kind == "raw" else 40
    assert limits.store_rate(kind, 120, 40) == 1000 * read


def test_the_limit_is_what_must_be_moved() -> None:
    assert limits.least_bytes(10, 3) == 10 * 8 + 3 * 8
    assert limits.copy_bandwidth() > 1e8  # a tenth of a gigabyte a second: any memory does
