"""The engines on a board: the interface of the project, the board below."""

from typing import Any

import numpy as np
import pytest

import streamjoin as sj
from streamjoin_common.contract.presets import PRESETS


def streams(tuples: int, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(2):
        ts = np.sort(rng.integers(0, 5 * tuples, tuples))
        columns = {"k": rng.integers(0, 6, tuples), "x": rng.integers(0, 50, tuples)}
        columns = {name: column.astype(np.int32) for name, column in columns.items()}
        made.append({**columns, "y": columns["x"].astype(np.float32) / 3, "ts": ts})
    return made[0], made[1]


@pytest.mark.parametrize("window", ["count:32", "count:7,20", "all", "tumbling:500us"])
def test_an_equi_join_on_a_board_is_exact(
    board: Any, bitstream: Any, monkeypatch: pytest.MonkeyPatch, window: str
) -> None:
    on = board("tiny")
    monkeypatch.chdir(bitstream(PRESETS["tiny"]).parent)
    r, s = streams(300, 3)
    result = sj.join(
        r,
        s,
        on="k",
        window=window,
        engine="fpga-handshake",
        backend="pynq",
        knobs={"overlay": "streamjoin.bit"},
        check=True,
    )
    metrics = result.metrics
    assert metrics["pairs"] > 100
    assert metrics["backend"] == "pynq"
    assert metrics["clock_source"] == "board: PL clock 0, read back"
    assert metrics["design"] == PRESETS["tiny"].digest
    assert metrics["cycles"] >= 600
    assert not on.memories


def test_the_self_test_can_be_left_out(board: Any, bitstream: Any) -> None:
    r, s = streams(300, 3)
    how = {"on": "k", "window": "count:32", "engine": "fpga-handshake", "backend": "pynq"}
    sent = []
    for self_test in ("on", "off"):
        on = board("tiny")
        knobs = {"overlay": str(bitstream(PRESETS["tiny"])), "self_test": self_test}
        sj.join(r, s, **how, knobs=knobs, check=True)
        sent.append(on.faults.sent_words)
    # A header is sent with every 32 tuples.
    assert sent == [600 + 19 + 2 * (600 + 19), 600 + 19]


def test_the_band_query_and_the_other_designs_run_on_a_board(board: Any, bitstream: Any) -> None:
    r, s = streams(300, 4)
    for preset, engine, predicate in (
        ("tiny-band", "fpga-handshake", {"band": ["x=x:3:4", "y=y:1:2"]}),
        ("tiny-split", "fpga-splitjoin", {"on": "k"}),
        ("tiny-hash", "fpga-splitjoin-hash", {"on": "k"}),
    ):
        board(preset)
        knobs = {"overlay": str(bitstream(PRESETS[preset]))}
        how = {"window": "count:24", "engine": engine, "backend": "pynq", "knobs": knobs}
        result = sj.join(r, s, **predicate, **how, check=True)
        assert result.metrics["pairs"] > 100


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ({"on": "k", "window": "time:9us"}, "has timestamp_bits 0 and this join needs 32"),
        ({"band": "x=x:1:1", "window": "count:9"}, "has terms equi and this join needs band:int32"),
        ({"on": "k", "window": "count:33"}, "and the design holds 32"),
        ({"on": "k", "window": "count:9", "engine": "fpga-splitjoin"}, "has the design handshake"),
        ({"on": "k", "window": "count:9", "knobs": {}}, r"needs knobs={'overlay': 'FILE.bit'}"),
        ({"on": "k", "window": "count:9", "knobs": {"overlay": "x"}}, "the path of a .bit file"),
        (
            {"on": "k", "window": "count:9", "backend": "model"},
            r"amaranth is not installed, which|g\+\+ is needed to build",
        ),
    ],
)
def test_what_the_overlay_cannot_do_is_refused(
    bitstream: Any, what: dict[str, Any], sentence: str
) -> None:
    r, s = streams(50, 5)
    knobs = {"overlay": str(bitstream(PRESETS["tiny"]))}
    how = {"engine": "fpga-handshake", "backend": "pynq", "knobs": knobs, **what}
    with pytest.raises(sj.StreamJoinError, match=sentence):
        sj.join(r, s, **how)
