"""Comparisons of inputs in memory."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import streamjoin as sj


def test_inputs_in_memory_are_compared_as_they_are_joined() -> None:
    rng = np.random.default_rng(5)
    r = {"k": rng.integers(0, 30, 200), "sent": np.arange(200)}
    s = pa.table({"k": rng.integers(0, 30, 200), "got": np.arange(200)})
    asked: dict[str, Any] = {"on": "k", "window": "time:50us", "ts": "sent=got", "how": "full"}
    knobs = {"handshake": {"batch": 8}}
    compared = sj.compare(r, s, ["kang", "handshake"], **asked, rounds=1, threads=1, knobs=knobs)
    assert compared.ok
    workload = compared.records["workloads"][0]
    joined = sj.join(r, s, **asked, engine="oracle")
    assert (workload["pairs"], workload["digest"]) == (len(joined), joined.metrics["digest"])
    assert workload["how"] == "full"
    given: dict[str, Any] = {}
    exec(compared.records["command"].replace("sj.compare(r, s,", "given.update("), {"given": given})
    assert given == {
        **asked, "on": ["k"], "engines": "kang,handshake", "rounds": 1, "threads": 1, "knobs": knobs
    }  # fmt: skip
    suite = "benchmarks/workloads/small.toml"
    for wrong, sentence in {
        lambda: sj.compare(r, s, on="k"): "^no engine is named: add engines='kang,",
        lambda: sj.compare(r): "^compare takes a workload's folder or suite, or both inputs",
        lambda: sj.compare(r, s, "nppj", on="k"): r"no engine 'nppj': did you mean npj\? To list",
        lambda: sj.compare(r, s, "npj"): r"^a predicate is needed: on=.* or band=",
        lambda: sj.compare(r, s, "npj", on="k", knobs={"prj": {}}): "not for 'prj': name it in",
        lambda: sj.compare(r, s, "npj", on="k", window="time:1s"): r"with ts='COL'$",
        lambda: sj.compare(r, s, "npj", on="k", rounds=True): "rounds must be 1 to 1000, not True",
        lambda: sj.compare(suite, ts="a"): "^ts= does not go with a suite",
        lambda: sj.compare(suite, "npj"): "^engines= does not go with a suite",
        lambda: sj.compare("nowhere", "npj", ts="a"): "^ts= does not go with a workload's folder",
    }.items():
        with pytest.raises(sj.InputError, match=sentence):
            wrong()
