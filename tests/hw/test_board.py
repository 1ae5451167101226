"""The words that a DMA carries: groups in, packets out, whatever stalls."""

import random
from typing import Any

import pytest
from tests.hw.checks import simulate

from streamjoin_common.contract import (
    GROUP_TUPLES,
    HEADER,
    MARK,
    TRAILER,
    DesignParams,
    LayoutField,
    TUser,
    input_word_bits,
    max_packet_bytes,
    parse_term,
    result_word_bits,
)
from streamjoin_hw.rtl.board_top import GroupReader, PacketWriter

PARAMS = DesignParams(cores=2, segment_tuples=4)
STALLS = pytest.mark.parametrize(("idle", "stall"), [(0, 0), (0.5, 0), (0, 0.7), (0.4, 0.4)])


def joined(layout: tuple[LayoutField, ...], **values: int) -> int:
    return sum(values[each.name] << each.offset for each in layout if each.name in values)


def split(layout: tuple[LayoutField, ...], word: int) -> dict[str, int]:
    return {each.name: word >> each.offset & ((1 << each.width) - 1) for each in layout}


async def feed(ctx: Any, offer: Any, valid: Any, ready: Any, items: list[Any], idle: Any) -> None:
    for item in items:
        while idle():
            await ctx.tick()
        offer(item)
        ctx.set(valid, 1)
        await ctx.tick().until(ready)
        ctx.set(valid, 0)


async def collect(
    ctx: Any, valid: Any, ready: Any, values: tuple[Any, ...], count: int, stall: Any
) -> list[tuple[int, ...]]:
    """Take a count of payloads; each must stay as it was offered until it is taken."""
    beats: list[tuple[int, ...]] = []
    kept = None
    for _ in range(50_000):
        if len(beats) == count:
            break
        takes = not stall()
        ctx.set(ready, takes)
        _, _, offered, *now = await ctx.tick().sample(valid, *values)
        if offered:
            assert kept in (None, tuple(now)), "an offered payload changed"
            kept = None if takes else tuple(now)
            if takes:
                beats.append(tuple(now))
        else:
            assert kept is None, "an offered payload was withdrawn"
    assert len(beats) == count
    return beats


@STALLS
def test_tuples_come_out_of_groups_with_their_sides_and_the_end(idle: float, stall: float) -> None:
    rng = random.Random(1)
    words: list[int] = []
    right: list[tuple[int, int, int]] = []
    for size in (1, GROUP_TUPLES, 5, 0, 2, 31):
        last = rng.randrange(2) if size else 0
        sides = rng.getrandbits(size) if size else 0
        words.append(joined(HEADER, sides=sides, tuples=size, last=last, mark=MARK))
        for position in range(size):
            data = rng.getrandbits(64)
            words.append(data)
            right.append((data, sides >> position & 1, int(last and position == size - 1)))
    words.insert(0, joined(HEADER, sides=5, tuples=3, last=1, mark=MARK ^ 1))  # dropped
    reader = GroupReader(PARAMS)

    async def source(ctx: Any) -> None:
        def offer(word: int) -> None:
            ctx.set(reader.i_data, word)

        pauses = random.Random(2)
        await feed(
            ctx, offer, reader.i_valid, reader.i_ready, words, lambda: pauses.random() < idle
        )

    async def sink(ctx: Any) -> None:
        pauses = random.Random(3)
        values = (reader.o_data, reader.o_side, reader.o_last)
        received = await collect(
            ctx, reader.o_valid, reader.o_ready, values, len(right), lambda: pauses.random() < stall
        )
        assert received == right

    simulate(reader, source, sink)


@STALLS
def test_results_come_in_packets_that_their_trailers_describe(idle: float, stall: float) -> None:
    rng = random.Random(4)
    beats = []
    for position in range(400):
        is_last = position in (150, 399)
        user = 1 << TUser.PUNCTUATION if is_last or rng.random() < 0.2 else 1 << TUser.RESULT
        beats.append((rng.getrandbits(64), user, int(is_last)))
    owed = [data for data, user, _ in beats if user & 1]
    writer = PacketWriter(PARAMS, packet_results=16, packet_cycles=40)
    packets: list[tuple[list[int], dict[str, int]]] = []

    async def source(ctx: Any) -> None:
        def offer(beat: tuple[int, int, int]) -> None:
            for signal, value in zip(
                (writer.i_data, writer.i_user, writer.i_last), beat, strict=True
            ):
                ctx.set(signal, value)

        pauses = random.Random(5)
        await feed(
            ctx, offer, writer.i_valid, writer.i_ready, beats, lambda: pauses.random() < idle
        )

    async def sink(ctx: Any) -> None:
        pauses = random.Random(6)
        body: list[int] = []
        while sum(trailer["end"] for _, trailer in packets) < 2:
            ((data, last),) = await collect(
                ctx,
                writer.o_valid,
                writer.o_ready,
                (writer.o_data, writer.o_last),
                1,
                lambda: pauses.random() < stall,
            )
            if last:
                packets.append((body, split(TRAILER, data)))
                body = []
            else:
                body.append(data)
        assert not body

    simulate(writer, source, sink)
    assert [word for body, _ in packets for word in body] == owed
    for body, trailer in packets:
        assert trailer == {"results": len(body), "end": trailer["end"], "mark": MARK}
        assert len(body) <= 16
    assert packets[-1][1]["end"]
    assert len(packets) >= len(owed) / 16


@STALLS
def test_two_results_of_a_beat_are_two_words_of_a_packet(idle: float, stall: float) -> None:
    """Also where the packet is full between them, and grows old while a word waits."""
    params = DesignParams(
        design="splitjoin-hash", cores=1, segment_tuples=8, lanes=2, beat_results=2
    )
    rng = random.Random(7)
    beats, owed = [], []
    for _ in range(200):
        user = rng.choice([0b1, 0b1001, 0b1101, 0b10])
        words = [rng.getrandbits(64), rng.getrandbits(64)]
        owed += words[: {0b10: 0, 0b1: 1}.get(user, 2)]
        beats.append((words[0] | words[1] << 64, user, 0))
    beats.append((0, 0b10, 1))
    writer = PacketWriter(params, packet_results=5, packet_cycles=9)
    given: list[int] = []
    trailers: list[dict[str, int]] = []

    async def source(ctx: Any) -> None:
        def offer(beat: tuple[int, int, int]) -> None:
            for signal, value in zip(
                (writer.i_data, writer.i_user, writer.i_last), beat, strict=True
            ):
                ctx.set(signal, value)

        pauses = random.Random(5)
        await feed(
            ctx, offer, writer.i_valid, writer.i_ready, beats, lambda: pauses.random() < idle
        )

    async def sink(ctx: Any) -> None:
        pauses = random.Random(6)
        outputs = (writer.o_valid, writer.o_ready, (writer.o_data, writer.o_last), 1)
        while not trailers or not trailers[-1]["end"]:
            ((data, last),) = await collect(ctx, *outputs, lambda: pauses.random() < stall)
            if last:
                trailers.append(split(TRAILER, data))
            else:
                given.append(data)

    simulate(writer, source, sink)
    assert given == owed
    assert sum(each["results"] for each in trailers) == len(owed)
    assert {each["results"] for each in trailers} >= {5}


def test_a_packet_is_closed_when_it_is_old_though_nothing_follows() -> None:
    writer = PacketWriter(PARAMS, packet_results=16, packet_cycles=40)

    async def testbench(ctx: Any) -> None:
        ctx.set(writer.o_ready, 1)
        ctx.set(writer.i_data, 7)
        ctx.set(writer.i_user, 1 << TUser.RESULT)
        ctx.set(writer.i_valid, 1)
        await ctx.tick()
        ctx.set(writer.i_valid, 0)
        for cycle in range(60):
            _, _, valid, last, data = await ctx.tick().sample(
                writer.o_valid, writer.o_last, writer.o_data
            )
            if valid:
                assert last
                assert split(TRAILER, data) == {"results": 1, "end": 0, "mark": MARK}
                assert cycle == 40
                return
        raise AssertionError("the packet stayed open")

    simulate(writer, testbench)


def test_a_packet_that_waits_to_be_taken_does_not_grow_old() -> None:
    """Or a slow host would get packets of a few results, each as slow as a full one."""
    writer = PacketWriter(PARAMS, packet_results=16, packet_cycles=40)

    async def testbench(ctx: Any) -> None:
        ctx.set(writer.i_user, 1 << TUser.RESULT)
        ctx.set(writer.i_valid, 1)
        results = 0
        for cycle in range(300):
            # Some are taken early, as a DMA's own buffer does, then nothing for a long time.
            ctx.set(writer.o_ready, cycle < 3 or cycle > 200)
            _, _, valid, ready, last = await ctx.tick().sample(
                writer.o_valid, writer.o_ready, writer.o_last
            )
            if valid and ready:
                if last:
                    assert results == 16
                    return
                results += 1
        raise AssertionError("the packet stayed open")

    simulate(writer, testbench)


def test_no_packet_is_opened_by_punctuation_alone() -> None:
    writer = PacketWriter(PARAMS, packet_results=16, packet_cycles=4)

    async def testbench(ctx: Any) -> None:
        ctx.set(writer.o_ready, 1)
        ctx.set(writer.i_user, 1 << TUser.PUNCTUATION)
        ctx.set(writer.i_valid, 1)
        for _ in range(30):
            _, _, valid = await ctx.tick().sample(writer.o_valid)
            assert not valid

    simulate(writer, testbench)


@pytest.mark.parametrize(
    ("terms", "timestamp_bits", "bits"),
    [
        (("equi:int32",), 0, 64),
        (("equi:int32",), 32, 128),
        (("band:int32", "band:float32"), 0, 128),
        (("band:int32",) * 4, 32, 256),
    ],
)
def test_words_are_the_least_power_of_two_that_holds_a_tuple(
    terms: tuple[str, ...], timestamp_bits: int, bits: int
) -> None:
    params = DesignParams(
        cores=1,
        segment_tuples=1,
        terms=tuple(parse_term(term) for term in terms),
        timestamp_bits=timestamp_bits,
    )
    assert input_word_bits(params) == bits
    assert result_word_bits(params) == 64
    assert max_packet_bytes(params) == (65536 + 1) * 8
