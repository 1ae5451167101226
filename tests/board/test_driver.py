"""The driver through pynq itself: exact results, both directions at once, memory given back."""

from typing import Any

import numpy as np
import pynq
import pytest
from memory_device import DESIGN_BASE, BoardError
from modelled_device import Faults
from streams import check_exact, nothing, owed, pairs_of, random_input

from streamjoin.device import pynq as driver
from streamjoin.device.base import Beats, Results
from streamjoin.device.packing import pack
from streamjoin.device.selftest import TUPLES
from streamjoin.errors import DeviceError
from streamjoin_common.contract import PACKET_RESULTS, tuple_layout
from streamjoin_common.contract.presets import PRESETS


def test_it_runs_under_the_real_pynq_with_an_old_numpy(opened: Any) -> None:
    board, device = opened()
    assert pynq.__version__.startswith(("3.1.", "4.0."))
    assert int(np.__version__.split(".")[0]) < 2
    assert board.downloads == [str(device._loaded._overlay.bitfile_name)]
    assert device.clock_hz == 100e6
    assert device.clock_source == "board: PL clock 0, read back"


def test_known_inputs_are_joined_before_a_users(opened: Any) -> None:
    board, device = opened("tiny-band")
    assert board.faults.sent_words >= 2 * TUPLES
    assert device.read("tuples_r") == device.read("results") == 0
    assert device.read("window_r") == device.params.window_capacity
    assert device.read("band_lo0") == device.read("band_hi1") == 0
    board, _ = opened("tiny-band", tested=False)
    assert board.faults.sent_words == 0


@pytest.mark.parametrize("preset", ["tiny", "tiny-band", "tiny-split", "tiny-hash"])
def test_results_are_exact_whatever_the_input_length(opened: Any, preset: str) -> None:
    _, device = opened(preset, chunk_bytes=6000)
    total = 0
    for seed, tuples in enumerate((1, 2, 31, 32, 33, 64, 65, 700, 3000)):
        keys = 3 if len(device.params.terms) > 1 else 8
        total += check_exact(device, random_input(device.params, tuples, keys=keys, seed=seed))
    assert total > 1000


def test_an_empty_input_gives_nothing(opened: Any) -> None:
    _, device = opened()
    empty = random_input(device.params, 0, keys=1, seed=0)
    outcome = device.stream(empty, nothing, nothing)
    assert outcome.cycles == 0


def test_transfers_keep_to_what_the_dma_takes(opened: Any) -> None:
    """A length register of 20 bits, as a transfer of 2^20 bytes would be one of none."""
    board = {"length_bits": 20, "cycles_at_once": 60_000}
    _, device = opened(options=board, chunk_bytes=1 << 26)
    lengths = []
    begin = device._send.driver.transfer

    def spy(buffer: Any, start: int, count_bytes: int) -> None:
        lengths.append(count_bytes)
        begin(buffer, start, count_bytes)

    device._send.driver.transfer = spy
    beats = random_input(device.params, 150_000, keys=1 << 30, seed=1)
    device.stream(beats, nothing, nothing)
    group_bytes = 33 * 8
    assert lengths[0] == ((1 << 20) - 1) // group_bytes * group_bytes
    assert sum(lengths) == 8 * (150_000 + -(-150_000 // 32))


def test_a_length_register_that_is_too_narrow_is_refused(board: Any, bitstream: Any) -> None:
    board(length_bits=14)
    with pytest.raises(DeviceError, match="takes transfers of 16383 bytes and a packet of results"):
        driver.PynqDevice(bitstream(PRESETS["tiny"]))


def test_more_results_than_a_buffer_holds_come_while_input_goes_on(opened: Any) -> None:
    _, device = opened(options={"cycles_at_once": 20_000}, chunk_bytes=1 << 13, quiet_s=0.2)
    params = device.params
    tuples = 4000
    columns = {"key0": np.zeros(tuples, np.uint32), "payload": np.arange(tuples, dtype=np.uint32)}
    sides = (np.arange(tuples) % 2).astype(np.uint8)
    beats = Beats(pack(tuple_layout(params), columns, tuples), sides)
    order: list[str] = []
    found: list[Results] = []

    def on_results(results: Results) -> None:
        order.append("results")
        found.append(results)

    device.stream(beats, on_results, lambda _: order.append("taken"))
    right = owed(params, beats, params.window_capacity, params.window_capacity)
    assert len(right) > PACKET_RESULTS
    assert pairs_of(params, found) == right
    assert len(found) > 1
    assert "results" in order[: order.index("taken", 3)]


def test_a_few_results_are_seen_long_before_the_input_ends(opened: Any) -> None:
    _, device = opened(options={"cycles_at_once": 10_000}, chunk_bytes=1 << 14)
    params = device.params
    tuples = 60_000
    keys = np.arange(tuples, dtype=np.uint32)
    keys[1] = keys[0]
    columns = {"key0": keys, "payload": np.arange(tuples, dtype=np.uint32)}
    sides = (np.arange(tuples) % 2).astype(np.uint8)
    beats = Beats(pack(tuple_layout(params), columns, tuples), sides)
    taken, seen = [0], []
    device.stream(beats, lambda _: seen.append(taken[-1]), taken.append)
    assert len(seen) == 1
    assert seen[0] < 0.8 * tuples


def test_stamps_grow_and_results_come_after_their_tuples(opened: Any) -> None:
    _, device = opened(chunk_bytes=2000)
    found: list[Results] = []
    beats = random_input(device.params, 2000, keys=3, seed=4)
    outcome = device.stream(beats, found.append, nothing)
    stamps = np.concatenate([results.cycles for results in found])
    assert (np.diff(outcome.accepted_cycles) >= 0).all()
    assert (np.diff(stamps) >= 0).all()
    assert stamps[0] >= outcome.accepted_cycles[0]


def test_callbacks_that_fail_leave_a_device_that_works(opened: Any) -> None:
    _, device = opened(chunk_bytes=2000)

    class Stop(BaseException):
        pass

    def stop(_what: Any) -> None:
        raise Stop

    beats = random_input(device.params, 3000, keys=3, seed=5)
    for callbacks in ((stop, nothing), (nothing, stop)):
        with pytest.raises(Stop):
            device.stream(beats, *callbacks)
        assert device.status()["idle"] == 1
        check_exact(device, random_input(device.params, 500, keys=4, seed=6))


def test_a_word_on_offer_is_taken_before_the_design_counts_as_empty(opened: Any) -> None:
    """A soft reset waits for it, and the DMA takes none without a buffer."""
    board, device = opened(options={"cycles_at_once": 20}, chunk_bytes=2000)
    board.log = []
    board.faults = Faults(error_bit=1 << 5, error_after_words=100)
    with pytest.raises(DeviceError, match="slave error"):
        device.stream(random_input(device.params, 3000, keys=1, seed=5), nothing, nothing)
    control = device._registers["control"].offset + DESIGN_BASE
    seen = [value for kind, address, value in board.log if (kind, address) == ("read", control)]
    assert seen[0] == 0b101
    assert seen[-1] == 1
    check_exact(device, random_input(device.params, 500, keys=4, seed=6))


def test_beats_of_another_width_are_refused(opened: Any) -> None:
    _, device = opened()
    wrong = Beats(np.zeros((2, 3), np.uint8), np.zeros(2, np.uint8))
    with pytest.raises(DeviceError, match="do not fit the design's tuples"):
        device.stream(wrong, nothing, nothing)


def test_closing_stops_the_dma_before_its_memory_goes(opened: Any) -> None:
    board, device = opened()
    assert board.receive.active
    device.close()
    assert not board.receive.active
    assert not board.memories
    device.close()


def test_the_model_notices_memory_that_is_freed_under_a_transfer(opened: Any) -> None:
    board, device = opened()
    with pytest.raises(BoardError, match="freed under a transfer"):
        board.return_pointer(board.receive.address)
    device.close()


def test_the_model_has_a_cache_that_has_to_be_flushed(board: Any) -> None:
    made = board()
    buffer = pynq.allocate(shape=(64,), dtype=np.uint8)
    buffer[:] = 7
    memory = made.memories[buffer.physical_address]
    assert (memory.dram != 7).any()
    buffer.flush()
    assert (memory.dram == 7).all()
    memory.dram[:] = 9
    assert (buffer == 7).all()
    buffer.invalidate()
    assert (buffer == 9).all()
    buffer.freebuffer()


def test_a_drain_may_be_silent_for_as_long_as_it_takes(opened: Any) -> None:
    _, device = opened(quiet_s=1.0)
    assert device.quiet_limit_s == pytest.approx(1.0 + 2 * 32 * 3 / 100e6)
