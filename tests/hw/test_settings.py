"""Settings of an input that are written while its first tuple comes: the old ones or the new."""

from typing import Any

import pytest
from tests.hw.top_bench import ENABLE, SOFT_RESET, Bench, run

from streamjoin_common.contract import (
    JOIN_KINDS,
    SIDE_R,
    SIDE_S,
    DesignParams,
    TUser,
    result_beat_layout,
)
from streamjoin_hw.rtl.top import Top

TUPLES = 12
OLD = 5
LAGS = range(5)
"""Cycles from the beginning of a write until the first tuple is offered."""

DESIGNS = {
    "chain": {"cores": 2},
    "fast": {"cores": 2, "forward": "fast"},
    "split": {"design": "splitjoin", "cores": 2},
    "hash": {"design": "splitjoin-hash", "cores": 1, "segment_tuples": 8, "buckets": 2, "ways": 2},
    "index": {
        "design": "splitjoin-index",
        "cores": 1,
        "segment_tuples": 8,
        "lanes": 2,
        "buckets": 16,
        "ways": 2,
    },
}
ORDERED = DesignParams(design="splitjoin", cores=2, segment_tuples=4, order="outer")
GROUPED = DesignParams(
    design="splitjoin", cores=2, segment_tuples=4, order="outer", stars="grouped"
)
STARS = 1 | 1 << 4
"""Of the register ``order``: outer order with stars."""

TLAST, TDATA = 64, 128
"""Where they begin in what the bench takes; ``tuser`` is in front."""


class Race:
    """Offers an input so many cycles after a write begins, and sees which of them is first."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.is_first = False

    async def begin(self, **settings: int) -> None:
        """Empty the design and set what is given."""
        bench = self.bench
        bench.waiting.clear()
        bench.set(m_axis_results_tready=1)
        await bench.write("control", SOFT_RESET)
        while await bench.read("control") & SOFT_RESET:
            pass
        for name, value in settings.items():
            await bench.write(name, value)
        await bench.write("control", ENABLE)
        # A chain that forwards by step makes its plan.
        await bench.tick(20 if bench.dut.params.stores_in_turn else 256)
        bench.given.clear()
        bench.accepted = 0

    async def write(self, name: str, value: int, lag: int, tuples: list[Any]) -> None:
        """Write, and offer tuples; :attr:`is_first` says whether one is taken before the answer."""
        bench = self.bench
        bench.set(s_axil_ctrl_awaddr=bench.offsets[name], s_axil_ctrl_wdata=value)
        bench.set(s_axil_ctrl_awvalid=1, s_axil_ctrl_wvalid=1, s_axil_ctrl_wstrb=15)
        for cycle in range(40):
            if cycle == lag:
                bench.send(*tuples, last=True)
            if cycle == 1:
                bench.set(s_axil_ctrl_awvalid=0, s_axil_ctrl_wvalid=0)
            if bench.get("s_axil_ctrl_bvalid"):
                break
            await bench.tick()
        assert bench.get("s_axil_ctrl_bvalid")
        self.is_first = bench.accepted > 0
        bench.set(s_axil_ctrl_bready=1)
        await bench.tick()
        bench.set(s_axil_ctrl_bready=0)
        if cycle < lag:
            await bench.tick(lag - cycle)
            bench.send(*tuples, last=True)

    async def results(self, ends: bool = True) -> list[dict[str, int]]:
        """Wait for the end of the input and return its beats, or see that none is taken."""
        bench = self.bench
        for _ in range(1500 if ends else 60):
            if bench.given and bench.given[-1] >> TLAST & 1:
                break
            await bench.tick()
        else:
            assert not ends, "the input does not end"
        layout = result_beat_layout(bench.dut.params)
        beats = []
        for beat in bench.given:
            fields = {
                field.name: beat >> TDATA + field.offset & (1 << field.width) - 1
                for field in layout
            }
            user = {"is_result": beat >> TUser.RESULT & 1, "ends": beat >> TUser.PUNCTUATION & 1}
            beats.append({**fields, **user})
        return beats


S_THEN_R = [(SIDE_S, k, k) for k in range(TUPLES)] + [(SIDE_R, k, k) for k in range(TUPLES)]


def met(beats: list[dict[str, int]]) -> list[int]:
    """Return the payloads of the S tuples that were in a pair."""
    rows = [each for each in beats if each["is_result"]]
    return sorted(
        each["s_payload"]
        for each in rows
        if not each.get("r_missing") and not each.get("s_missing")
    )


@pytest.mark.parametrize("new", [0, 2, 2**32 - 1])
@pytest.mark.parametrize("name", DESIGNS)
def test_a_window_counts_from_the_answer_on(name: str, new: int) -> None:
    params = DesignParams(**{"segment_tuples": 4, **DESIGNS[name]})
    firsts = []

    async def scenario(bench: Bench) -> None:
        race = Race(bench)
        for lag in LAGS:
            await race.begin(window_r=OLD, window_s=OLD)
            await race.write("window_s", new, lag, S_THEN_R)
            firsts.append(race.is_first)
            window = OLD if race.is_first else new
            if 1 <= window <= params.window_capacity:
                found = met(await race.results())
                assert found == list(range(TUPLES - window, TUPLES)), f"offered after {lag} cycles"
            else:
                assert not await race.results(ends=False)
                assert not bench.accepted, f"offered after {lag} cycles"

    run(Top(params), scenario)
    assert set(firsts) == {False, True}


@pytest.mark.parametrize("name", ["fast", "split", "hash", "index"])
def test_a_window_of_all_kinds_counts_from_the_answer_on(name: str) -> None:
    params = DesignParams(**{"segment_tuples": 4, "kinds": "all", **DESIGNS[name]})
    firsts = []

    async def scenario(bench: Bench) -> None:
        race = Race(bench)
        for lag in LAGS:
            await race.begin(window_r=OLD, window_s=1, kind=JOIN_KINDS.index("full"))
            await race.write("window_s", OLD, lag, S_THEN_R)
            firsts.append(race.is_first)
            beats = await race.results()
            window = 1 if race.is_first else OLD
            assert met(beats) == list(range(TUPLES - window, TUPLES)), f"{lag} cycles"
            alone = sorted(each["s_payload"] for each in beats if each["r_missing"])
            assert alone == list(range(TUPLES - window)), f"{lag} cycles"

    run(Top(params), scenario)
    assert set(firsts) == {False, True}


@pytest.mark.parametrize(("old", "new"), [(0, STARS), (STARS, 0)], ids=["asked", "ended"])
@pytest.mark.parametrize("params", [ORDERED, GROUPED], ids=["single", "grouped"])
def test_an_order_counts_from_the_answer_on(params: DesignParams, old: int, new: int) -> None:
    firsts = []
    groups = {"group_arrivals": 1} if params.has_groups else {}

    async def scenario(bench: Bench) -> None:
        race = Race(bench)
        for lag in LAGS:
            await race.begin(order=old, **groups)
            await race.write("order", new, lag, S_THEN_R)
            firsts.append(race.is_first)
            ends = sum(each["ends"] for each in await race.results())
            # That of the input alone, or a star for each tuple or group too.
            has_stars = (old if race.is_first else new) == STARS
            assert ends == 1 + has_stars * 2 * TUPLES, f"offered after {lag} cycles"

    run(Top(params), scenario)
    assert set(firsts) == {False, True}


def test_masks_count_from_the_answer_on() -> None:
    params = DesignParams(design="splitjoin", cores=2, segment_tuples=4)
    firsts = []

    async def scenario(bench: Bench) -> None:
        race = Race(bench)
        (name,) = (name for name in bench.offsets if name.startswith("masked"))
        for lag in LAGS:
            await race.begin(**{name: 0})
            await race.write(name, 0b11, lag, S_THEN_R)
            firsts.append(race.is_first)
            found = met(await race.results())
            assert bool(found) is race.is_first, f"offered after {lag} cycles"

    run(Top(params), scenario)
    assert set(firsts) == {False, True}
