"""Faults of board and DMA: each is its own sentence, and the device works again afterwards."""

import json
import sys
from pathlib import Path
from typing import Any

import pynq
import pytest
from modelled_device import Faults
from streams import check_exact, nothing, random_input

from streamjoin.device import overlay, watch
from streamjoin.device.pynq import PynqDevice
from streamjoin.errors import DeadlineError, DeviceError, InputError, UnavailableError
from streamjoin_common.contract.presets import PRESETS


@pytest.mark.parametrize(
    ("faults", "kind", "sentence"),
    [
        (
            Faults(error_bit=1 << 5, error_after_words=300),
            DeviceError,
            r"the DMA failed while sending \(status 0x21\): slave error: memory answered",
        ),
        (
            Faults(error_bit=1 << 6, error_after_words=300),
            DeviceError,
            r"the DMA failed while sending \(status 0x41\): decode error: the address",
        ),
        (
            Faults(error_bit=1 << 4, error_after_words=0),
            DeviceError,
            r"the DMA failed while sending \(status 0x11\): internal error",
        ),
        (
            Faults(stuck_after_words=300),
            DeadlineError,
            r"took no tuple and gave no result for .* s: idle=0, .*dma_sending=0x0",
        ),
        (Faults(short_by_bytes=8), DeviceError, "does not end with its trailer"),
        (Faults(short_by_bytes=3), DeviceError, "no multiple of a word's 8 bytes: it is too short"),
        (
            Faults(dma_reset_after_words=300),
            DeviceError,
            r"the DMA was reset or stopped while (sending|receiving) \(status 0x1\)",
        ),
        (
            Faults(design_reset_after_words=300),
            DeviceError,
            r"the design was reset by something else in the middle of an input: its cycles went",
        ),
    ],
    ids=["slave", "decode", "internal", "stuck", "short-word", "short-bytes", "dma", "design"],
)
def test_a_fault_while_it_streams_is_clear_and_passes(
    opened: Any, faults: Faults, kind: Any, sentence: str
) -> None:
    board, device = opened(chunk_bytes=2000, quiet_s=1.5 if kind is DeadlineError else 5.0)
    board.faults = faults
    with pytest.raises(kind, match=sentence):
        device.stream(random_input(device.params, 3000, keys=3, seed=1), nothing, nothing)
    board.faults = Faults()
    assert device.status()["idle"] == 1
    for seed in range(2):
        assert check_exact(device, random_input(device.params, 1500, keys=4, seed=seed)) > 100


@pytest.mark.parametrize(
    ("faults", "kind", "sentence"),
    [
        (
            Faults(wrong_bit_after_words=700),
            DeviceError,
            r"self-test failed: of \d+ known pairs of 600 tuples 1 are missing, and 1 results are ",
        ),
        (
            Faults(stuck_after_words=300),
            DeadlineError,
            r"self-test did not end: the design took no tuple and gave no result for 5.* s: idle=0",
        ),
        (
            Faults(design_reset_after_words=700),
            DeviceError,
            r"self-test did not end: the design was reset by something else",
        ),
        (Faults(short_by_bytes=8), DeviceError, r"self-test did not end: .* with its trailer"),
    ],
    ids=["wrong", "stuck", "reset", "short"],
)
def test_a_board_that_is_at_fault_is_found_before_a_users_tuples(
    board: Any, bitstream: Any, faults: Faults, kind: Any, sentence: str
) -> None:
    on = board("tiny")
    on.faults = faults
    path = bitstream(PRESETS["tiny"])
    with pytest.raises(kind, match=sentence) as caught:
        PynqDevice(path, chunk_bytes=2000)
    assert str(caught.value).endswith("see First contact in docs/boards.md")
    assert not on.memories
    on.faults = Faults()
    with PynqDevice(path) as device:
        check_exact(device, random_input(device.params, 500, keys=4, seed=6))


@pytest.mark.parametrize(
    ("met_mhz", "is_fine"), [(100, True), (96, True), (95, False), (50, False)]
)
def test_a_clock_that_the_design_was_not_built_for_is_refused(
    board: Any, bitstream: Any, met_mhz: float, is_fine: bool
) -> None:
    board("tiny")
    path = bitstream(PRESETS["tiny"])
    manifest = path.with_name("manifest.json")
    facts = {**json.loads(manifest.read_text()), "clock": {"hz": met_mhz * 1e6, "source": "test"}}
    manifest.write_text(json.dumps(facts))
    if is_fine:
        PynqDevice(path).close()
        return
    with pytest.raises(
        DeviceError, match=f"gives the design 100 MHz and .* at {met_mhz} MHz: PYNQ"
    ):
        PynqDevice(path)


def test_a_packet_that_outgrows_its_buffer_is_an_error(opened: Any) -> None:
    """What the DMA does where its buffer is too small, which no packet of the design's is."""
    board, device = opened()
    board.receive.length = 64
    with pytest.raises(DeviceError, match=r"while receiving .*a packet larger than its buffer"):
        device.stream(random_input(device.params, 500, keys=2, seed=1), nothing, nothing)
    check_exact(device, random_input(device.params, 500, keys=2, seed=1))


def test_a_design_that_takes_nothing_is_a_deadline_with_its_status(opened: Any) -> None:
    _, device = opened(quiet_s=1.5)
    device.write("control", 0)
    with pytest.raises(DeadlineError, match=r"gave no result for .* starved=0.*dma_receiving=0x0"):
        device.stream(random_input(device.params, 50, keys=2, seed=1), nothing, nothing)
    check_exact(device, random_input(device.params, 50, keys=2, seed=1))


def test_another_design_is_refused_and_nothing_is_left(board: Any, bitstream: Any) -> None:
    on = board("tiny")
    other = PRESETS["tiny-hash"]
    with pytest.raises(DeviceError, match=f"the device holds design {PRESETS['tiny'].digest}, the"):
        PynqDevice(bitstream(other))
    assert not on.memories
    with PynqDevice(bitstream(PRESETS["tiny"])) as device:
        check_exact(device, random_input(device.params, 50, keys=2, seed=1))


def test_a_dma_that_does_not_start_is_a_deadline_not_a_hang(board: Any, bitstream: Any) -> None:
    on = board()
    on.faults = Faults(never_starts=True)
    with pytest.raises(DeadlineError, match="the DMA's channel for sending did not start within"):
        PynqDevice(bitstream(PRESETS["tiny"]))
    on.faults = Faults()
    PynqDevice(bitstream(PRESETS["tiny"])).close()


def test_a_dma_that_was_left_in_the_middle_is_brought_back(board: Any, bitstream: Any) -> None:
    on = board()
    on.send.status = on.receive.status = 0x51
    with PynqDevice(bitstream(PRESETS["tiny"])) as device:
        check_exact(device, random_input(device.params, 50, keys=2, seed=1))


def test_an_overlay_without_the_design_is_refused(
    board: Any, bitstream: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    on = board()
    whole = on.get_bitfile_metadata("")
    del whole.ip_dict["streamjoin"]
    monkeypatch.setattr(on, "get_bitfile_metadata", lambda *_: whole)
    with pytest.raises(DeviceError, match="has no cell streamjoin, only dma"):
        PynqDevice(bitstream(PRESETS["tiny"]))


def test_what_lies_beside_the_bitstream_is_read_with_care(board: Any, bitstream: Any) -> None:
    board()
    path = bitstream(PRESETS["tiny"])
    manifest = path.with_name("manifest.json")
    facts = json.loads(manifest.read_text())
    cases = [
        ("{", "is no manifest: it is not JSON"),
        ("{}", "is no manifest of a design"),
        ("[]", "is no manifest of a design"),
        (json.dumps({**facts, "digest": "0" * 16}), "written by another version"),
    ]
    for text, sentence in cases:
        manifest.write_text(text)
        with pytest.raises(InputError, match=sentence):
            PynqDevice(path)
    manifest.unlink()
    with pytest.raises(InputError, match="it must lie beside the bitstream"):
        PynqDevice(path)
    manifest.write_text(json.dumps(facts))
    path.with_suffix(".hwh").unlink()
    with pytest.raises(InputError, match=r"no .*streamjoin\.hwh: copy it beside the bitstream"):
        PynqDevice(path)
    with pytest.raises(InputError, match="there is no bitstream"):
        PynqDevice(path.with_name("other.bit"))


def on_board(bitstream: Path, name: str) -> Path:
    facts = json.loads((bitstream.with_name("manifest.json")).read_text())
    bitstream.with_name("manifest.json").write_text(json.dumps({**facts, "board": name}))
    return bitstream


def test_a_bitstream_for_another_board_is_refused_before_it_is_loaded(
    board: Any, bitstream: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = board()
    path = on_board(bitstream(PRESETS["tiny"]), "pynq-z2")
    monkeypatch.setenv("BOARD", "ZCU104")
    sentence = "is for the board pynq-z2 and this is zcu104: build one with .* --board zcu104"
    with pytest.raises(InputError, match=sentence):
        PynqDevice(path)
    monkeypatch.delenv("BOARD")
    (tmp_path / "pynq_board").write_bytes(b"KV260\0")
    monkeypatch.setattr(overlay, "BOARD_FILE", tmp_path / "pynq_board")
    with pytest.raises(InputError, match="and this is kv260"):
        PynqDevice(path)
    assert not made.downloads
    for name in ("Pynq-Z2", "Pynq-Z1", "Unknown"):
        monkeypatch.setenv("BOARD", name)
        PynqDevice(path).close()


@pytest.mark.parametrize(
    ("error", "euid", "kind", "sentence"),
    [
        (RuntimeError("No Devices Found"), 0, UnavailableError, "PYNQ finds no board here: run"),
        (PermissionError(13, "denied"), 1000, UnavailableError, "only root may load an overlay"),
        (OSError("Root permissions required."), 1000, UnavailableError, "only root .*sudo -i"),
        (KeyError("ps"), 0, DeviceError, r"PYNQ does not load .*\(KeyError: 'ps'\): copy"),
    ],
)
def test_what_pynq_refuses_is_said_in_a_sentence(
    board: Any,
    bitstream: Any,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    euid: int,
    kind: Any,
    sentence: str,
) -> None:
    board()

    def refuse(_bitstream: str) -> None:
        raise error

    monkeypatch.setattr(pynq, "Overlay", refuse)
    monkeypatch.setattr("os.geteuid", lambda: euid)
    with pytest.raises(kind, match=sentence):
        PynqDevice(bitstream(PRESETS["tiny"]))


def test_a_board_without_memory_says_so_and_keeps_none(
    board: Any, bitstream: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = board()
    allocate, calls = made.allocate, []

    def fail_later(*what: Any, **how: Any) -> Any:
        calls.append(what)
        if len(calls) == 3:
            raise RuntimeError("BO allocation failed")
        return allocate(*what, **how)

    monkeypatch.setattr(made, "allocate", fail_later)
    with pytest.raises(DeviceError, match=r"has no \d+ bytes left for the DMA \(BO allocation"):
        PynqDevice(bitstream(PRESETS["tiny"]))
    assert not made.memories


def test_where_pynq_is_missing_a_sentence_says_how_to_get_it(
    bitstream: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynq", None)
    with pytest.raises(
        UnavailableError, match=r"pynq is not installed, .*: type pip install '\.\[board\]'"
    ):
        PynqDevice(bitstream(PRESETS["tiny"]))


def test_a_drain_that_another_program_asks_for_is_told_and_passes(opened: Any) -> None:
    _, device = opened(chunk_bytes=2000)

    def drain(_taken: int) -> None:
        device.write("control", 0b11)

    with pytest.raises(DeviceError, match=r"the design ended the input after \d+ of 3000 tuples"):
        device.stream(random_input(device.params, 3000, keys=50, seed=1), nothing, drain)
    check_exact(device, random_input(device.params, 500, keys=4, seed=2))


def test_a_program_that_was_stopped_itself_does_not_blame_the_design(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = [0.0]
    monkeypatch.setattr(watch, "monotonic", lambda: now_s[0])
    looks: list[int] = []

    def progress() -> tuple[int, ...]:
        looks.append(1)
        return (7,)

    watched = watch.Watch(progress, lambda: "idle=0", 5.0)
    for _ in range(10):  # each an hour later
        now_s[0] += 3600
        watched.look(False)
    watched.look(True)

    def look_often() -> None:
        for _ in range(1000):
            now_s[0] += watch.LOOK_S * 1.1
            watched.look(False)

    with pytest.raises(DeadlineError, match=r"gave no result for 5\.\d s: idle=0"):
        look_often()
    assert len(looks) > 90
