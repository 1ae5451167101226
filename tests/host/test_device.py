"""The device driver: packing, identity, deadlines, faults."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamjoin.device import model
from streamjoin.device.base import Beats, Results
from streamjoin.device.packing import pack, unpack
from streamjoin.errors import DeadlineError, DeviceError
from streamjoin_common.contract import DesignParams, LayoutField, result_layout, tuple_layout

PARAMS = DesignParams(cores=3, segment_tuples=4, lanes=2)
pytestmark = pytest.mark.timeout(600)  # the first use builds the model


@given(
    widths=st.lists(st.integers(1, 32), min_size=1, max_size=6),
    rows=st.integers(0, 5),
    seed=st.integers(0, 99),
)
def test_what_is_packed_can_be_unpacked(widths: list[int], rows: int, seed: int) -> None:
    layout, offset = [], 0
    for index, width in enumerate(widths):
        layout.append(LayoutField(f"f{index}", offset, width))
        offset += width
    rng = np.random.default_rng(seed)
    columns = {
        field.name: rng.integers(0, 1 << field.width, rows, dtype=np.uint64).astype(np.uint32)
        for field in layout
    }
    packed = pack(tuple(layout), columns, rows)
    assert packed.shape == (rows, -(-offset // 8))
    for row in range(rows):  # the beat as one number, by the definition of the layout
        whole = int.from_bytes(packed[row].tobytes(), "little")
        for field in layout:
            bits = whole >> field.offset & ((1 << field.width) - 1)
            assert bits == int(columns[field.name][row])
    for name, column in unpack(tuple(layout), packed).items():
        assert column.tolist() == columns[name].tolist()


@pytest.fixture(scope="module")
def folder() -> Path:
    return model.build(PARAMS, lambda _: None)


def beats(keys: list[tuple[int, int]]) -> Beats:
    """Beats of ``(dest, key)``; the payload is the place."""
    columns = {
        "key0": np.array([key for _, key in keys], np.uint32),
        "payload": np.arange(len(keys), dtype=np.uint32),
    }
    packed = pack(tuple_layout(PARAMS), columns, len(keys))
    return Beats(packed, np.array([dest for dest, _ in keys], np.uint8))


def collect(device: model.ModelDevice, sent: Beats) -> list[Results]:
    received: list[Results] = []
    device.stream(sent, received.append, lambda _: None)
    return received


def test_one_input_after_the_other_without_a_reset(folder: Path) -> None:
    with model.ModelDevice(PARAMS, folder) as device:
        for _ in range(3):
            received = collect(device, beats([(0, 5), (1, 5), (1, 6)]))
            assert sum(len(results.data) for results in received) == 1
        assert device.read("tuples_s") == 6
        assert device.status()["idle"] == 1


def test_an_empty_input_gives_nothing(folder: Path) -> None:
    with model.ModelDevice(PARAMS, folder) as device:
        assert collect(device, beats([])) == []


@pytest.mark.parametrize(("idle", "stall"), [(0, 0), (900, 0), (0, 900), (500, 500)])
def test_stalls_lose_nothing(folder: Path, idle: int, stall: int) -> None:
    rng = np.random.default_rng(8)
    sent = beats([(int(side), 1) for side in rng.integers(0, 2, 300)])
    with model.ModelDevice(
        PARAMS, folder, seed=3, idle_per_1024=idle, stall_per_1024=stall
    ) as device:
        device.write("window_r", 5)
        received = collect(device, sent)
        assert device.read("results") == sum(len(results.data) for results in received)
    seen: dict[int, list[int]] = {0: [], 1: []}
    owed = 0
    for index, side in enumerate(sent.dest.tolist()):
        owed += min(len(seen[1 - side]), 12 if side == 0 else 5)
        seen[side].append(index)
    assert sum(len(results.data) for results in received) == owed


def test_a_result_that_nobody_takes_leaves_an_empty_design(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A soft reset waits until what is offered is taken: the driver has to take it."""
    monkeypatch.setattr(model, "RESULTS_AT_ONCE", 1)
    with model.ModelDevice(PARAMS, folder) as device:

        def stop(_results: Results) -> None:
            device.status()  # it tells of a stall three cycles late
            assert device.status()["output_stalled"] == 1
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            device.stream(beats([(0, 5), (1, 5), (1, 5), (1, 5)]), stop, lambda _: None)
        assert device.status()["idle"] == 1
        assert device.read("control") == 1
        assert pairs(collect(device, beats(CLEAN))) == CLEAN_PAIRS


def test_a_model_of_another_design_is_refused(folder: Path) -> None:
    other = DesignParams(cores=4, segment_tuples=4, lanes=2)
    with pytest.raises(DeviceError, match=f"the device holds design {PARAMS.digest}, the manifest"):
        model.ModelDevice(other, folder)


def test_a_library_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.so").write_bytes(b"not a library")
    with pytest.raises(DeviceError, match="the model cannot be loaded"):
        model.ModelDevice(PARAMS, tmp_path)


def test_beats_of_another_width_are_refused(folder: Path) -> None:
    wrong = Beats(np.zeros((2, 3), np.uint8), np.zeros(2, np.uint8))
    with (
        model.ModelDevice(PARAMS, folder) as device,
        pytest.raises(DeviceError, match="do not fit the design's tuples"),
    ):
        collect(device, wrong)


def test_a_design_that_stops_is_a_deadline_with_its_status(folder: Path) -> None:
    with model.ModelDevice(PARAMS, folder) as device:
        device.write("control", 0)  # not enabled: it takes nothing
        with pytest.raises(DeadlineError, match=r"took no tuple and gave no result for .* idle=1"):
            collect(device, beats([(0, 1)]))
        assert pairs(collect(device, beats(CLEAN))) == CLEAN_PAIRS  # enabled anew, and empty


def pairs(received: list[Results]) -> set[tuple[int, int]]:
    """The pairs of payloads, each once."""
    listed = []
    for results in received:
        fields = unpack(result_layout(PARAMS), results.data)
        listed += zip(fields["r_payload"].tolist(), fields["s_payload"].tolist(), strict=True)
    assert len(set(listed)) == len(listed)
    return set(listed)


CLEAN = [(1, 5), (0, 5), (0, 6), (1, 6), (1, 5)]
CLEAN_PAIRS = {(1, 0), (2, 3), (1, 4)}


class Stop(BaseException):
    """Stands for the key that a user presses."""


@pytest.mark.parametrize("by", ["on_results", "on_taken"])
def test_an_input_that_a_callback_ends_leaves_nothing_behind(
    folder: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    def stop(what: Results | int) -> None:
        if isinstance(what, Results) or what >= 20:
            raise Stop

    monkeypatch.setattr(model, "CYCLES_AT_ONCE", 40)
    with model.ModelDevice(PARAMS, folder) as device:
        device.write("window_r", 7)
        calls = {"on_results": lambda _: None, "on_taken": lambda _: None, by: stop}
        with pytest.raises(Stop):
            device.stream(beats([(0, 5), (1, 5)] * 100), **calls)
        assert device.read("window_r") == 7
        assert device.status()["idle"] == 1
        assert pairs(collect(device, beats(CLEAN))) == CLEAN_PAIRS


def test_after_windows_that_cannot_be_held_legal_ones_are_exact(folder: Path) -> None:
    with model.ModelDevice(PARAMS, folder) as device:
        device.write("window_r", PARAMS.window_capacity + 1)
        with pytest.raises(DeadlineError, match="window_error=1"):
            collect(device, beats([(1, 6), (0, 6)]))
        device.write("window_r", PARAMS.window_capacity)
        # They settle in these cycles, and a beat that is still offered would be taken.
        assert [device.status() for _ in range(60)][-1]["window_error"] == 0
        assert pairs(collect(device, beats(CLEAN))) == CLEAN_PAIRS


class Broken:
    """Stands in for the library and fails in one way."""

    def __init__(self, real: Any, **answers: Any) -> None:
        self._real, self._answers = real, answers

    def __getattr__(self, name: str) -> Any:
        if name in self._answers:
            return lambda *_: self._answers[name]
        return getattr(self._real, name)


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        ({"sjm_read": 1}, "reading register 0x0 failed"),
        ({"sjm_open": None}, "the model does not start"),
        ({"sjm_read": 0}, "the device is no streamjoin design: identity reads 0x00000000"),
    ],
)
def test_a_fault_when_it_is_opened_is_a_clear_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any], sentence: str
) -> None:
    load = model._load
    monkeypatch.setattr(model, "_load", lambda path: Broken(load(path), **answers))
    with pytest.raises(DeviceError, match=sentence):
        model.ModelDevice(PARAMS, folder)


def test_a_fault_while_it_runs_is_a_clear_error(folder: Path) -> None:
    with model.ModelDevice(PARAMS, folder) as device:
        real = device._library
        device._library = Broken(real, sjm_run=9)
        with pytest.raises(DeviceError, match="the model stopped in state 9"):
            collect(device, beats([(0, 1)]))
        device._library = Broken(real, sjm_write=1)
        with pytest.raises(DeviceError, match="writing register 0x30 failed"):
            device.write("window_r", 1)
        device._library = real
        assert collect(device, beats([(0, 1)])) == []  # and it works again
