"""Soft reset at the top levels: what is offered is taken first, and what arrives later counts."""

import pytest
from tests.hw.top_bench import DRAIN, ENABLE, PATIENCE_CYCLES, SOFT_RESET, Bench, run

from streamjoin_common.contract import SIDE_R, SIDE_S, DesignParams, TUser
from streamjoin_hw.rtl.board_top import BoardTop
from streamjoin_hw.rtl.top import Top

DESIGNS = {
    "chain": DesignParams(cores=1, segment_tuples=2),
    "fast": DesignParams(cores=1, segment_tuples=2, forward="fast"),
    "split": DesignParams(design="splitjoin", cores=1, segment_tuples=2),
    "wide": DesignParams(design="splitjoin", cores=5, segment_tuples=2, merge_arity=2),
    "shared": DesignParams(
        design="splitjoin", cores=1, segment_tuples=2, probes=2, comparators="shared"
    ),
    "grouped": DesignParams(
        design="splitjoin", cores=1, segment_tuples=2, order="outer", stars="grouped"
    ),
    "kinds": DesignParams(design="splitjoin", cores=1, segment_tuples=2, kinds="all"),
    "hash": DesignParams(design="splitjoin-hash", cores=1, segment_tuples=4, buckets=2, ways=2),
    "index": DesignParams(
        design="splitjoin-index", cores=1, segment_tuples=4, lanes=2, buckets=8, ways=2
    ),
}
EVERY = pytest.mark.parametrize("name", DESIGNS)

PAIR = ((SIDE_R, 5, 1), (SIDE_S, 5, 2))


@EVERY
def test_an_offered_result_stays_until_it_is_taken_and_then_all_is_empty(name: str) -> None:
    async def scenario(bench: Bench) -> None:
        bench.send(*PAIR)
        await bench.until("m_axis_results_tvalid")
        beat = bench.beat()
        bench.send((SIDE_R, 5, 3), (SIDE_S, 5, 4))
        await bench.tick(8)
        assert not bench.waiting  # the design holds them too
        await bench.write("control", ENABLE | SOFT_RESET)
        bench.send((SIDE_S, 5, 6), (SIDE_R, 5, 7), last=True)
        await bench.still_offered(beat, 12)
        assert await bench.read("control") == ENABLE | SOFT_RESET
        bench.set(m_axis_results_tready=1)
        await bench.tick()
        assert bench.given == [beat]
        await bench.tick()
        assert not bench.get("m_axis_results_tvalid"), "a second beat follows"
        for _ in range(PATIENCE_CYCLES):
            await bench.tick()
        assert await bench.read("control") == ENABLE
        assert [await bench.read(f"tuples_{side}") for side in "rs"] == [1, 1]
        # The pair of the two tuples after the reset, and the end.
        assert len(bench.given) == 3
        users = [each & 0xFF for each in bench.given[1:]]
        assert users[0] >> TUser.RESULT & 1
        assert users[1] == 1 << TUser.PUNCTUATION

    run(Top(DESIGNS[name]), scenario)


@pytest.mark.parametrize(("forward", "cores"), [("step", 9), ("fast", 17)])
def test_what_is_in_the_tree_of_lines_does_not_outlive_a_reset(forward: str, cores: int) -> None:
    params = DesignParams(cores=cores, segment_tuples=1, lanes=1, forward=forward, merge_arity=2)

    async def scenario(bench: Bench) -> None:
        for number in range(30):
            bench.send((number % 2, 5, 1 + number))
        await bench.until("m_axis_results_tvalid")
        await bench.tick(PATIENCE_CYCLES)
        bench.waiting.clear()
        beat = bench.beat()
        await bench.write("control", ENABLE | SOFT_RESET)
        bench.send((SIDE_S, 5, 101), (SIDE_R, 5, 102), last=True)
        bench.set(m_axis_results_tready=1)
        await bench.tick(2 * PATIENCE_CYCLES)
        assert len(bench.given) == 3
        assert bench.given[0] == beat
        users = [each & 0xFF for each in bench.given[1:]]
        assert users[0] >> TUser.RESULT & 1
        assert users[1] == 1 << TUser.PUNCTUATION
        assert (bench.given[1] >> 128) & 0xFFFFFFFF == 102
        assert bench.given[1] >> 160 == 101

    run(Top(params), scenario)


@EVERY
def test_every_tuple_accepted_after_the_answer_counts(name: str) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.until("s_axis_tuples_tready")
        for key in range(40):
            bench.send((key % 2, key, key))
        await bench.tick(4)
        await bench.write("control", ENABLE | SOFT_RESET)
        bench.send((SIDE_R, 50, 0), last=True)
        bench.set(m_axis_results_tready=1)
        while bench.waiting:
            await bench.tick()
        await bench.tick(8)
        counted = await bench.read("tuples_r") + await bench.read("tuples_s")
        assert 0 < bench.accepted_since_answer < bench.accepted
        assert counted == bench.accepted_since_answer

    run(Top(DESIGNS[name]), scenario)


def test_a_drain_written_while_a_soft_reset_waits_ends_the_empty_input_after_it() -> None:
    async def scenario(bench: Bench) -> None:
        bench.send(*PAIR)
        await bench.until("m_axis_results_tvalid")
        await bench.write("control", ENABLE | SOFT_RESET)
        await bench.write("control", ENABLE | DRAIN)
        await bench.still_offered(bench.beat(), 40)
        assert await bench.read("control") == ENABLE | DRAIN | SOFT_RESET
        bench.set(m_axis_results_tready=1)
        await bench.tick(PATIENCE_CYCLES)
        assert [each & 0xFF for each in bench.given[1:]] == [1 << TUser.PUNCTUATION]
        assert await bench.read("control") == ENABLE

    run(Top(DESIGNS["chain"]), scenario)


def test_responses_outlive_a_soft_reset() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.ask("identity")
        await bench.write("control", ENABLE | SOFT_RESET, answer=False)
        await bench.tick(20)
        assert bench.get("s_axil_ctrl_bvalid")
        assert bench.get("s_axil_ctrl_rvalid")
        assert bench.get("s_axil_ctrl_rdata") == 0x534A4F4E
        bench.set(s_axil_ctrl_bready=1, s_axil_ctrl_rready=1)
        await bench.tick(2)
        assert not bench.get("s_axil_ctrl_bvalid")
        bench.set(s_axil_ctrl_bready=0, s_axil_ctrl_rready=0)
        assert await bench.read("control") == ENABLE

    run(Top(DESIGNS["chain"]), scenario)


def test_a_reset_withdraws_what_a_soft_reset_waits_for() -> None:
    async def scenario(bench: Bench) -> None:
        bench.send(*PAIR)
        await bench.until("m_axis_results_tvalid")
        await bench.write("control", ENABLE | SOFT_RESET)
        bench.set(aresetn=0)
        await bench.tick(2)
        bench.set(aresetn=1)
        assert not bench.get("m_axis_results_tvalid")
        await bench.tick(2)
        assert await bench.read("control") == ENABLE

    run(Top(DESIGNS["chain"]), scenario)


@pytest.mark.parametrize("held", ["result", "trailer"])
def test_an_offered_word_stays_until_it_is_taken(held: str) -> None:
    async def scenario(bench: Bench) -> None:
        bench.send(*PAIR, last=True)
        await bench.until("m_axis_words_tvalid")
        if held == "trailer":
            bench.set(m_axis_words_tready=1)
            await bench.tick()
            bench.set(m_axis_words_tready=0)
            await bench.until("m_axis_words_tvalid")
            assert bench.get("m_axis_words_tlast")
        beat = bench.beat()
        await bench.write("control", ENABLE | SOFT_RESET)
        bench.send((SIDE_S, 5, 6), (SIDE_R, 5, 7), last=True)
        await bench.still_offered(beat, 12)
        before = len(bench.given)
        bench.set(m_axis_words_tready=1)
        await bench.tick(PATIENCE_CYCLES)
        assert bench.given[before] == beat
        # One packet of the input after the reset: its pair, and the trailer.
        assert [each & 1 for each in bench.given[before + 1 :]] == [0, 1]
        assert await bench.read("control") == ENABLE

    run(BoardTop(DESIGNS["chain"]), scenario)


@pytest.mark.parametrize("name", ["chain", "fast", "split", "wide"])
def test_nothing_of_before_is_left_wherever_a_reset_comes(name: str) -> None:
    """Cores that are reset later than others have results that must not get into their trees."""

    async def scenario(bench: Bench) -> None:
        bench.set(m_axis_results_tready=1)
        await bench.write("control", ENABLE)
        for delay in range(24):
            bench.send(*((side, 5, 100 + k) for k in range(2) for side in (SIDE_R, SIDE_S)))
            while bench.waiting:
                await bench.tick()
            await bench.tick(delay)
            await bench.write("control", ENABLE | SOFT_RESET)
            while await bench.read("control") & SOFT_RESET:
                pass
            bench.given.clear()
            bench.send((SIDE_R, 5, 1), (SIDE_S, 5, 2), last=True)
            for _ in range(PATIENCE_CYCLES):
                await bench.tick()
            payloads = {bench.given[0] >> 128 & 0xFF, bench.given[0] >> 160 & 0xFF}
            assert (len(bench.given), payloads) == (2, {1, 2}), f"after {delay} cycles"

    run(Top(DESIGNS[name]), scenario)
