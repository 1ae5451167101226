"""Programs as users write them: what must pass the type checker, and what must not."""

from datetime import timedelta

import numpy as np
import pyarrow as pa

import streamjoin as sj

KEYS = {"k": np.arange(3)}

WINDOWS: list[sj.TimeWindow | sj.TumblingWindow | sj.CountWindow] = [
    sj.TimeWindow(timedelta(seconds=10)),
    sj.TimeWindow(10, timedelta(days=1)),
    sj.TumblingWindow(timedelta(minutes=1)),
    sj.TumblingWindow(1_000_000),
    sj.CountWindow(64),
    sj.CountWindow(64, 32),
    sj.CountWindow(timedelta(seconds=1)),  # type: ignore[arg-type]  # a count is no time
    sj.TimeWindow("10s"),
]


def joined() -> pa.Table:
    """Join, compare and ask."""
    length: int = sj.TimeWindow(timedelta(seconds=10)).r_us
    result = sj.join(KEYS, KEYS, on="k", lateness=timedelta(microseconds=length))
    sj.join(KEYS, KEYS, left_on="k")  # type: ignore[call-arg]  # it is on=
    sj.join(KEYS, KEYS, on="k", how="outer")  # type: ignore[arg-type]  # it is full
    sj.join(KEYS, KEYS, on="k", order="ordered")  # type: ignore[arg-type]  # of three words
    compared: sj.Compared = sj.compare(KEYS, KEYS, ["npj"], on="k", ts_unit="ms")
    sj.compare("runs/workloads/band", "kang,splitjoin", rounds=1)
    engine: str = sj.advise(KEYS, KEYS, on="k").engine
    sj.StreamJoiner(on="k", lateness=timedelta(seconds=1)).push_r(KEYS)
    assert compared.ok, engine
    return result.table("r.*")
